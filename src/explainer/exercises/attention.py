"""Checks for the chapter on keys, queries and values."""

from collections.abc import Callable

import torch
from torch import Tensor

from explainer.exercises import checks
from explainer.theory import duality


@checks.check("subtract the largest score first, then take exp, then divide by the sum.")
def softmax(reader_fn: Callable[[Tensor], Tensor]) -> None:
    """Check a function scores (T,) -> attention weights (T,).

    Properties: the weights sum to one; two of them stand in the ratio exp(l_i - l_j); a constant added to all scores
    changes nothing, even when it is a thousand.
    Raises: AssertionError with a hint.
    """
    scores = checks.random_tensors()(5)

    def answer(scores: Tensor) -> Tensor:
        return checks.call(reader_fn, scores, shape=(len(scores),))

    weights = answer(scores)
    checks.require(
        checks.close(weights.sum(), torch.ones((), dtype=weights.dtype)),
        f"the weights sum to {weights.sum():.3f}, not to 1; look at what you divide by.",
    )
    checks.require(
        checks.close(weights / weights[0], (scores - scores[0]).exp()),
        "two weights do not stand in the ratio exp(l_i - l_j); look at how a score becomes a positive number.",
    )
    checks.require(
        checks.close(answer(scores - 3), weights),
        "3 subtracted from all scores changes the weights; it should cancel between numerator and denominator.",
    )
    large = checks.run(reader_fn, scores + 1000)
    checks.require(
        isinstance(large, Tensor) and large.shape == scores.shape and checks.close(large, weights),
        "1000 added to all scores changes the weights: exp(1000) is too large for a float; "
        "take something away from all scores first that does not change the result.",
    )
    print("Passed: positive, sum 1, in the ratio exp(l_i - l_j), and the same after any shift of all scores.")


@checks.check("scores = keys @ query / sqrt(d); softmax over the tokens; then the weighted sum of the rows of values.")
def softmax_attention(reader_fn: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function (query (d,), keys (T, d), values (T, d_v)) -> (d_v,): one head at one position.

    Properties: a single token gives its value; equal scores give the mean value; one vector added to all values moves
    the output by it, one added to all keys does not move it; the weights of two tokens stand in the ratio
    exp((k_1 - k_2) . q / sqrt(d)).
    Raises: AssertionError with a hint.
    """
    T, d, d_v = 5, 4, 3
    draw = checks.random_tensors()
    query, keys, values, shift = draw(d), draw(T, d), draw(T, d_v), draw(d)

    def answer(*arguments: Tensor) -> Tensor:
        return checks.call(reader_fn, *arguments, shape=(d_v,))

    output = answer(query, keys, values)
    checks.require(
        checks.close(answer(query, keys[:1], values[:1]), values[0]),
        "with a single token the output is not its value; one weight alone must be 1.",
    )
    checks.require(
        checks.close(answer(torch.zeros_like(query), keys, values), values.mean(0)),
        "with a query of zeros all scores are equal, and the output should be the mean value; look at the normaliser "
        "and at the axis of the softmax.",
    )
    checks.require(
        checks.close(answer(query, keys, values + 2), output + 2),
        "2 added to all values does not move the output by 2; the weights should sum to 1 and not see the values.",
    )
    checks.require(
        checks.close(answer(query, keys + shift, values), output),
        "one vector added to all keys moves the output; it shifts all scores alike, which softmax does not see.",
    )
    checks.require(
        checks.close(output, duality.softmax_attention(query, keys, values)),
        "the weights of two tokens do not stand in the ratio exp((k_1 - k_2) · q / sqrt(d)); look at the factor of "
        "the scores.",
    )
    print("Passed: one head at one position, with the scale 1 / sqrt(d) and weights that sum to 1.")


@checks.check("fill the scores of later tokens with -inf before the softmax; exp(-inf) is 0.")
def causal_attention(reader_fn: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function (queries (T, d), keys (T, d), values (T, d_v)) -> (T, d_v): one head at all positions.

    Properties: the first row is the first value; later tokens do not change earlier rows; each row is softmax
    attention over its own token and those before it.
    Raises: AssertionError with a hint.
    """
    T, d, d_v = 6, 4, 3
    draw = checks.random_tensors()
    queries, keys, values = draw(T, d), draw(T, d), draw(T, d_v)

    def answer(*arguments: Tensor) -> Tensor:
        return checks.call(reader_fn, *arguments, shape=(len(arguments[0]), d_v))

    output, half = answer(queries, keys, values), T // 2
    checks.require(
        checks.close(answer(queries[:half], keys[:half], values[:half]), output[:half]),
        "without the later tokens the earlier rows are different; look at which scores are masked, and on which side.",
    )
    checks.require(
        checks.close(output[0], values[0]),
        "the first token sees only itself, so its row should be its own value.",
    )
    expected = [duality.softmax_attention(queries[t], keys[: t + 1], values[: t + 1]) for t in range(T)]
    checks.require(
        checks.close(output, torch.stack(expected)),
        "a row is not softmax attention over its own token and those before it; mask before the softmax, so that the "
        "weights that are left sum to 1, and keep the scale 1 / sqrt(d).",
    )
    print("Passed: every token attends to itself and to what stands before it, and to nothing else.")
