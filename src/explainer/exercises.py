"""Checks that readers run on their own answers to the exercises.

A check calls the reader's function on small random float64 tensors and tests properties the answer must have. It
prints one line when they hold; otherwise it raises AssertionError with the property that failed and where to look.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from explainer.theory import duality, linear_transformer, metrics, regression, statistics

_TOLERANCE = 1e-9


def linear_attention(reader_fn: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function (values (n, d_out), keys (n, d_in), queries (m, d_in)) -> (m, d_out).

    Properties: linear in queries, in keys and in values; additive over pairs; blind to directions orthogonal to the
    keys; a single pair of unit key returns its value to a query equal to the key. They leave one function.
    Raises: AssertionError with a hint.
    """
    n, m, d_in, d_out = 5, 4, 3, 2
    draw = _random_tensors()
    values, keys, queries, other = draw(n, d_out), draw(n, d_in), draw(m, d_in), draw(m, d_in)

    def answer(*arguments: Tensor) -> Tensor:
        return _call(reader_fn, *arguments, shape=(len(arguments[2]), d_out))

    output = answer(values, keys, queries)
    _require(
        _close(answer(values, keys, queries + other), output + answer(values, keys, other)),
        "the output is not linear in the query; look for a softmax, a norm or another non-linear function of it.",
    )
    _require(
        _close(answer(values, -2 * keys, queries), -2 * output),
        "multiplying all keys by -2 does not multiply the output by -2; look for a normaliser.",
    )
    _require(
        _close(answer(-2 * values, keys, queries), -2 * output),
        "multiplying all values by -2 does not multiply the output by -2; look at how the values enter.",
    )
    _require(
        _close(output, sum(answer(values[i : i + 1], keys[i : i + 1], queries) for i in range(n))),
        "the output for all pairs is not the sum of the outputs for each pair; look for a mean or a normaliser.",
    )
    unit_key = keys[:1] / keys[:1].norm()
    orthogonal = queries - (queries @ unit_key.T) * unit_key
    _require(
        _close(answer(values[:1], unit_key, orthogonal), torch.zeros(m, d_out, dtype=values.dtype)),
        "a query orthogonal to the only key still gets an output; look at how query and key are compared.",
    )
    _require(
        _close(answer(values[:1], unit_key, unit_key), values[:1]),
        "a query equal to the only key, of length one, does not get that key's value back; look for a leftover factor.",
    )
    print("Passed: linear in queries, keys and values, a sum over pairs, without scale or normaliser.")


def ridge_dual(
    reader_fn: Callable[[Tensor, Tensor, Tensor, float, float, int], tuple[Tensor, Tensor, Tensor, float]],
) -> None:
    """Check a function (W_0, inputs, targets, lr, decay, steps) -> (values, keys, weights, W_0 factor).

    The training is full-batch gradient descent on 1/2 sum_i ||W x_i - y_i||^2 + decay/2 ||W||^2; shapes W_0
    (d_out, d_in), inputs (n, d_in), targets (n, d_out), values (J, d_out), keys (J, d_in), weights (J,). Any order
    and any grouping of the pairs is accepted as long as every key is one of the inputs and
    factor W_0 + sum_j weights_j values_j keys_j^T equals the weights that autograd reaches.
    Raises: AssertionError with a hint.
    """
    n, d_in, d_out, lr, decay = 4, 3, 2, 0.05, 0.8
    draw = _random_tensors()
    W_0, inputs, targets = draw(d_out, d_in), draw(n, d_in), draw(n, d_out)

    def error(inputs: Tensor, decay: float, steps: int) -> float:
        values, keys, weights, factor = _call_ridge_dual(reader_fn, W_0, inputs, targets, lr, decay, steps)
        W_T = factor * W_0 + torch.einsum("j,jo,ji->oi", weights, values, keys)
        return (W_T - _ridge_by_autograd(W_0, inputs, targets, lr=lr, decay=decay, steps=steps)).abs().max().item()

    nothing_to_learn = torch.zeros_like(inputs)
    _require(
        error(inputs, decay=0.0, steps=3) < _TOLERANCE,
        "without decay and after 3 steps the dual does not give the weights of plain gradient descent; look at which "
        "weights each step's errors are taken at, and at the sign and size of the errors.",
    )
    _require(
        error(nothing_to_learn, decay, steps=1) < _TOLERANCE and error(nothing_to_learn, decay, steps=3) < _TOLERANCE,
        "with all inputs zero the penalty alone moves the weights, and the factor of W_0 does not follow; look at what "
        "one step does to the weights when there is no data, and then at what several do.",
    )
    _require(
        error(inputs, decay, steps=1) < _TOLERANCE,
        "after a single step the dual does not give the trained weights; look at what the step does to the pairs that "
        "enter in it, as opposed to what was there before.",
    )
    _require(
        error(inputs, decay, steps=2) < _TOLERANCE,
        "one step is right, two are not; look at what the second step does to the pairs of the first, and at which "
        "weights the second step's errors are taken.",
    )
    _require(
        error(inputs, decay, steps=6) < _TOLERANCE,
        "two steps are right, six are not; look at how often each pair has been through a step by the end.",
    )
    print("Passed: the dual gives the weights that autograd reaches on the ridge loss, for 1, 2 and 6 steps.")


def permutation_invariant(update_fn: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Check that an update (inputs (n, d_in), targets (n, d_out)) -> (d_out, d_in) ignores the order of the rows.

    Every row must count, so that the update is not invariant for want of looking.
    Raises: AssertionError with a hint.
    """
    inputs, targets = _demonstrations()
    update = _usable_update(update_fn, inputs, targets)
    for order in _orders(len(inputs)):
        _require(
            _close(_call_update(update_fn, inputs[order], targets[order]), update),
            f"the order {order.tolist()} of the rows changes the update; look for a state or a weight that depends on "
            "the position of a row, and make sure that inputs and targets stay together.",
        )
    print("Passed: the update uses every demonstration and does not depend on their order.")


def order_dependent(update_fn: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Check that an update (inputs (n, d_in), targets (n, d_out)) -> (d_out, d_in) depends on the order of the rows.

    Every row must count, and the same rows in the same order must give the same update.
    Raises: AssertionError with a hint.
    """
    inputs, targets = _demonstrations()
    update = _usable_update(update_fn, inputs, targets)
    _require(
        any(
            not _close(_call_update(update_fn, inputs[order], targets[order]), update, tolerance=1e-6)
            for order in _orders(len(inputs))
        ),
        "no order of the rows changes the update; look for a sum over all rows, all seen from the same weights.",
    )
    print("Passed: the update uses every demonstration and depends on their order.")


def rank_of_update(reader_fn: Callable[[int, int, int], int]) -> None:
    """Check a function (n_demonstrations, d, d_v) -> rank of dW_ICL for demonstrations in general position.

    The ranks to compare with are measured on random keys (T, d) and values (T, d_v).
    Raises: AssertionError with a hint.
    """
    draw = _random_tensors()
    for n, d, d_v in [(0, 4, 3), (1, 4, 3), (2, 4, 3), (3, 5, 5), (9, 3, 6), (9, 6, 3), (4, 4, 4)]:
        update = duality.split_attention(draw(d), draw(n + 2, d), draw(n + 2, d_v), n).delta_W_icl
        measured = int(torch.linalg.matrix_rank(update))
        counted = _run(lambda *sizes: int(reader_fn(*sizes)), n, d, d_v)
        _require(
            counted == measured,
            f"with {n} demonstrations, d = {d} and d_v = {d_v} you count {counted}, the measured rank is "
            f"{'smaller' if measured < counted else 'larger'}; look at what one demonstration adds to the matrix, "
            "and at how many rows and columns the matrix has.",
        )
    print("Passed: your count is the measured rank of dW_ICL in all seven settings.")


def _require(condition: bool, hint: str) -> None:
    # Not an assert statement: the checks must also work under `python -O`.
    if not condition:
        raise AssertionError(f"Not yet: {hint}")


def _random_tensors() -> Callable[..., Tensor]:
    """Return a function that draws Gaussian tensors of given shapes, the same ones in every check."""
    generator = torch.Generator().manual_seed(0)
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)


def _close(actual: Tensor, expected: Tensor, tolerance: float = _TOLERANCE) -> bool:
    return torch.allclose(actual, expected, rtol=tolerance, atol=tolerance)


def _call(reader_fn: Callable, *arguments: object, shape: tuple[int, ...]) -> Tensor:
    """Call the reader's function and require a finite tensor of the given shape."""
    result = _run(reader_fn, *arguments)
    _require(isinstance(result, Tensor), f"your function returned {type(result).__name__}, not a tensor.")
    _require(
        tuple(result.shape) == shape,
        f"your function returned shape {tuple(result.shape)} for ({_describe(arguments)}); it should be {shape}.",
    )
    _require(result.dtype == torch.float64, f"your function turned float64 into {result.dtype}; keep the dtype.")
    _require(bool(result.isfinite().all()), "your function returned a number that is not finite.")
    return result.detach()


def _run(reader_fn: Callable, *arguments: object) -> object:
    # Copies: a function that changes its arguments in place must not disturb the next property.
    copies = [argument.clone() if isinstance(argument, Tensor) else argument for argument in arguments]
    try:
        return reader_fn(*copies)
    except Exception as error:
        raise AssertionError(
            f"Not yet: your function raised {type(error).__name__} for ({_describe(arguments)}): {error}"
        ) from error


def _describe(arguments: tuple[object, ...]) -> str:
    return ", ".join(f"shape {tuple(a.shape)}" if isinstance(a, Tensor) else repr(a) for a in arguments)


def _call_ridge_dual(reader_fn: Callable, W_0: Tensor, inputs: Tensor, targets: Tensor, *settings: float) -> tuple:
    result = _run(reader_fn, W_0, inputs, targets, *settings)
    _require(
        isinstance(result, tuple) and len(result) == 4 and all(isinstance(part, Tensor) for part in result[:3]),
        "your function should return three tensors, values, keys and weights, and a number, the factor of W_0.",
    )
    values, keys, weights, factor = result
    (d_out, d_in), J = W_0.shape, len(keys)
    _require(
        tuple(values.shape) == (J, d_out) and tuple(keys.shape) == (J, d_in) and tuple(weights.shape) == (J,),
        f"values {tuple(values.shape)}, keys {tuple(keys.shape)} and weights {tuple(weights.shape)} should have "
        f"shapes (J, {d_out}), (J, {d_in}) and (J,), one row for each pair.",
    )
    _require(
        bool((keys[:, None] == inputs[None]).all(-1).any(1).all()),
        "a key is not one of the inputs; look at what the query is compared with in the dual form.",
    )
    return values, keys, weights, factor


@torch.enable_grad()
def _ridge_by_autograd(W_0: Tensor, inputs: Tensor, targets: Tensor, *, lr: float, decay: float, steps: int) -> Tensor:
    """Minimise 1/2 sum_i ||W x_i - y_i||^2 + decay/2 ||W||^2 by gradient descent, gradients by autograd."""
    W = W_0
    for _ in range(steps):
        W = W.detach().requires_grad_()
        loss = ((inputs @ W.T - targets) ** 2).sum() / 2 + decay / 2 * (W**2).sum()
        W = W - lr * torch.autograd.grad(loss, W)[0]
    return W.detach()


def _demonstrations() -> tuple[Tensor, Tensor]:
    draw = _random_tensors()
    return draw(5, 3), draw(5, 2)


def _call_update(update_fn: Callable, inputs: Tensor, targets: Tensor) -> Tensor:
    return _call(update_fn, inputs, targets, shape=(targets.shape[1], inputs.shape[1]))


def _usable_update(update_fn: Callable, inputs: Tensor, targets: Tensor) -> Tensor:
    """Return the update after requiring that it is repeatable and that every demonstration has a part in it."""
    update = _call_update(update_fn, inputs, targets)
    _require(
        _close(_call_update(update_fn, inputs, targets), update),
        "two calls with the same rows give two updates; look for random numbers or a state kept between calls.",
    )
    for row in range(len(inputs)):
        changed = inputs.clone()
        changed[row] += 1
        _require(
            not _close(_call_update(update_fn, changed, targets), update),
            f"changing the input of row {row} does not change the update; every row should have a part in it.",
        )
    return update


def _orders(n: int) -> Iterator[Tensor]:
    """Yield the reversed order, a swap of the first two and a few shuffles of n rows."""
    yield torch.arange(n).flip(0)
    yield torch.tensor([1, 0, *range(2, n)])
    generator = torch.Generator().manual_seed(0)
    for _ in range(4):
        yield torch.randperm(n, generator=generator)


def calibration(reader_fn: Callable[[np.ndarray], np.ndarray]) -> None:
    """Check a function log_probs (n, m) -> scores (n, m) that removes label bias.

    Properties: afterwards no candidate is preferred on average; the differences between queries are as before; a bias
    added to every query changes nothing.
    Raises: AssertionError with a hint.
    """
    log_probs = np.random.default_rng(0).normal(size=(7, 3))
    scores = _call_array(reader_fn, log_probs, shape=(7, 3))
    _require(
        np.allclose(scores.mean(axis=0), scores.mean()),
        "on average over the queries, one candidate still scores higher than another; look at the axis of the mean.",
    )
    _require(
        np.allclose(np.diff(scores, axis=0), np.diff(log_probs, axis=0)),
        "the difference between two queries' scores has changed; subtract the same numbers from every query.",
    )
    shifted = _call_array(reader_fn, log_probs + np.array([3.0, -1.0, 0.5]), shape=(7, 3))
    _require(
        np.allclose(shifted - scores, (shifted - scores)[0, 0]),
        "a constant bias towards one candidate still changes the scores; look at what the mean runs over.",
    )
    print("Passed: no candidate is preferred on average, and the queries still differ as before.")


def auc(reader_fn: Callable[[np.ndarray, np.ndarray], float]) -> None:
    """Check a function (scores (n,), labels (n,) of 0 and 1) -> area under the ROC curve.

    Properties: 1 for perfect order, 0 for reversed, 1/2 for equal scores; unchanged by increasing transforms; turned
    into 1 - AUC by swapping the classes; a hand-counted case.
    Raises: AssertionError with a hint.
    """
    labels = np.array([0, 1, 0, 1, 1])
    scores = np.array([-0.5, 0.2, 0.1, 0.1, 2.0])

    def answer(scores: np.ndarray, labels: np.ndarray) -> float:
        return float(_call_array(reader_fn, scores, labels, shape=()))

    _require(
        np.isclose(answer(labels * 1.0, labels), 1), "perfectly ordered scores do not give 1; look at the comparison."
    )
    _require(
        np.isclose(answer(-labels * 1.0, labels), 0), "scores in reversed order do not give 0; look at its direction."
    )
    _require(np.isclose(answer(np.zeros(5), labels), 0.5), "equal scores do not give one half; look at how ties count.")
    _require(
        np.isclose(answer(np.exp(3 * scores) - 7, labels), answer(scores, labels)),
        "an increasing transform of the scores changes the result; only their order may matter.",
    )
    _require(
        np.isclose(answer(scores, 1 - labels), 1 - answer(scores, labels)),
        "swapping the classes does not give one minus the result; look at which pairs are counted.",
    )
    _require(np.isclose(answer(scores, labels), 5.5 / 6), "five wins and a tie out of six pairs do not give 5.5/6.")
    print("Passed: order alone decides, ties count one half, swapping the classes mirrors the result.")


def _call_array(reader_fn: Callable[..., object], *arguments: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    result = reader_fn(*(argument.copy() for argument in arguments))
    _require(result is not None, "your function returns nothing; end it with a return statement.")
    result = np.asarray(result, dtype=float)
    _require(result.shape == shape, f"the result has shape {result.shape}, it should be {shape}.")
    return result


def rec2ftp(reader_fn: Callable[[np.ndarray, np.ndarray, np.ndarray], float]) -> None:
    """Check a function (zsl, icl, ft), each (n,) and true where an answer is right, -> Rec2FTP, a share.

    Properties: 1 where ICL repairs all that FT repairs and 0 where it repairs nothing of it; queries that ZSL gets
    right or FT gets wrong do not count; a hand-counted case; random cases.
    Raises: AssertionError with a hint.
    """

    def answer(zsl: Sequence[int], icl: Sequence[int], ft: Sequence[int]) -> float:
        return float(_call_array(reader_fn, *(np.array(right, dtype=bool) for right in (zsl, icl, ft)), shape=()))

    _require(
        np.isclose(answer([0, 0, 0], [1, 1, 0], [1, 1, 0]), 1),
        "ICL repairs both queries that FT repairs, and the share is not 1; divide by the number of FT's repairs.",
    )
    _require(
        np.isclose(answer([0, 0, 0], [0, 0, 1], [1, 1, 0]), 0),
        "ICL repairs none of FT's repairs, and the share is not 0; count queries that both get right.",
    )
    _require(
        np.isclose(answer([0, 0, 0], [1, 1, 1], [1, 0, 0]), 1),
        "queries that FT gets wrong count; Rec2FTP asks only about what FT repairs.",
    )
    _require(
        np.isclose(answer([1, 1, 0, 0], [1, 1, 0, 1], [1, 1, 1, 1]), 1 / 2),
        "queries that ZSL gets right count; nothing can be repaired there.",
    )
    for zsl, icl, ft in np.random.default_rng(0).random((5, 3, 40)) < 0.5:
        expected = metrics.rec2ftp(*map(torch.from_numpy, (zsl, icl, ft)))
        _require(
            np.isclose(answer(zsl, icl, ft), expected),
            f"for random answers the result is not {expected:.3f}; count step by step what ZSL, FT and ICL get right.",
        )
    print("Passed: a share of what FT repairs, and nothing else counts.")


def holm(reader_fn: Callable[[np.ndarray], np.ndarray]) -> None:
    """Check a function p_values (m,) -> p-values (m,) corrected for their number by Holm's procedure.

    Properties: one p-value stays; the smallest is multiplied by m; none exceeds 1 or overtakes a larger one; the order
    of the p-values does not matter; a hand-counted case; random cases.
    Raises: AssertionError with a hint.
    """

    def answer(*p_values: float) -> np.ndarray:
        return _call_array(reader_fn, np.array(p_values), shape=(len(p_values),))

    _require(np.allclose(answer(0.03), 0.03), "a single p-value should stay as it is; look at the factor.")
    _require(
        np.isclose(answer(0.001, 0.5, 0.6)[0], 0.003),
        "the smallest of three p-values is not multiplied by three; look at the factor of the first.",
    )
    _require(
        np.isclose(answer(0.001, 0.01, 0.6)[1], 0.02),
        "the second of three is not multiplied by two; Holm's factors fall from m to 1.",
    )
    _require((answer(0.9, 0.8, 0.7) <= 1).all(), "a corrected p-value is larger than 1; cut it there.")
    _require(
        np.isclose(answer(0.04, 0.045)[1], 0.08),
        "a larger p-value ends below a smaller one; each takes the largest of the corrected ones up to its place.",
    )
    _require(
        np.allclose(answer(0.6, 0.01, 0.001), answer(0.001, 0.01, 0.6)[::-1]),
        "the order in which the p-values come changes the result; sort them, correct, and put them back.",
    )
    for p_values in np.random.default_rng(0).random((5, 6)) ** 3:
        _require(
            np.allclose(answer(*p_values), statistics.holm(p_values)),
            f"for {p_values.round(3).tolist()} the result differs from Holm's; compare it step by step on paper.",
        )
    print("Passed: factors from m to 1, never above 1, never out of order.")


def kendall_tau(reader_fn: Callable[[np.ndarray, np.ndarray], float]) -> None:
    """Check a function (x (T,), y (T,)) of scores without ties -> (P_c - P_d) / (T (T - 1) / 2).

    Properties: 1 for a ranking and itself, -1 for the reversed one; unchanged by increasing transforms; a hand-counted
    case; random cases of several lengths.
    Raises: AssertionError with a hint.
    """

    def answer(x: np.ndarray, y: np.ndarray) -> float:
        return float(_call_array(reader_fn, x, y, shape=()))

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 6))
    _require(
        np.isclose(answer(x, x), 1),
        "a ranking compared with itself does not give 1; there are T (T - 1) / 2 pairs, each counted once.",
    )
    _require(
        np.isclose(answer(x, -x), -1), "a reversed ranking does not give -1; discordant pairs count against the others."
    )
    _require(
        np.isclose(answer(np.exp(2 * x), y), answer(x, y)),
        "an increasing transform of the scores changes the result; only the order within each pair may matter.",
    )
    _require(
        np.isclose(answer(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0])), 4 / 6),
        "five concordant pairs and one discordant of six do not give 4/6; look at which pairs are compared.",
    )
    for T in (2, 5, 9):
        x, y = rng.normal(size=(2, T))
        pairs = [(i, j) for i in range(T) for j in range(i)]
        expected = np.mean([np.sign((x[i] - x[j]) * (y[i] - y[j])) for i, j in pairs])
        _require(
            np.isclose(answer(x, y), expected),
            f"two random rankings of {T} places do not give P_c - P_d over all pairs.",
        )
    print("Passed: concordant minus discordant pairs over all pairs, whatever the scores' scale.")


def momentum_average(reader_fn: Callable[[Tensor, float], Tensor]) -> None:
    """Check a function (value (T, d), eta) -> (T, d) with the sum over i < t of eta^(t-i) v_i in row t.

    Properties: nothing at the first position; nothing of the present or the future; a single value decays by eta at
    every step; random values against the sum written out.
    Raises: AssertionError with a hint.
    """
    value = _random_tensors()(7, 3)
    first = torch.zeros_like(value)
    first[0] = value[0]
    for eta in (0.5, 0.9):
        average = _call(reader_fn, value, eta, shape=(7, 3))
        _require(_close(average[:1], torch.zeros_like(average[:1])), "row 0 is not zero, but it has no past.")
        later = torch.cat([value[:4], 2 * value[4:]])
        _require(
            _close(_call(reader_fn, later, eta, shape=(7, 3))[:5], average[:5]),
            "row t changes with v_t or with a later value; only i < t may enter.",
        )
        decays = eta ** torch.arange(1, 7, dtype=value.dtype)
        _require(
            _close(_call(reader_fn, first, eta, shape=(7, 3))[1:], decays[:, None] * value[0]),
            "v_0 alone does not come back as eta v_0, eta^2 v_0, ...; look at the exponent t - i.",
        )
        sums = torch.stack([sum((eta ** (t - i) * value[i] for i in range(t)), 0 * value[0]) for t in range(7)])
        _require(_close(average, sums), "random values do not give the sum over all i < t.")
    print("Passed: causal, zero at the start, and a decay of eta with every position.")


def momentum_dual(reader_fn: Callable[[Tensor, Tensor, Tensor, float], Tensor]) -> None:
    """Check a function (values (T, d_v), keys (T, d), queries (m, d), mu) -> (m, d_v), the dual of heavy ball.

    One pair is seen at each step, and the output is (W_T - W_0) q. Properties: linear in the queries; plain linear
    attention at mu = 0; the steps of heavy ball taken one by one.
    Raises: AssertionError with a hint.
    """
    draw = _random_tensors()
    values, keys, queries = draw(5, 2), draw(5, 3), draw(4, 3)

    def answer(queries: Tensor, mu: float) -> Tensor:
        return _call(reader_fn, values, keys, queries, mu, shape=(len(queries), 2))

    _require(
        _close(answer(2 * queries, 0.5), 2 * answer(queries, 0.5)),
        "twice the query does not give twice the output; the comparison k_i . q belongs into the sum.",
    )
    _require(
        _close(answer(queries, 0.0), duality.linear_attention(values, keys, queries)),
        "without momentum it is not linear attention; every weight is 1 at mu = 0.",
    )
    for mu in (0.5, 0.9):
        W = V = torch.zeros(2, 3, dtype=values.dtype)
        for v, k in zip(values, keys, strict=True):
            V = mu * V + torch.outer(v, k)
            W = W + V
        _require(
            _close(answer(queries, mu), queries @ W.T),
            f"at mu = {mu} it differs from heavy ball taken step by step; the oldest pair weighs most.",
        )
    print("Passed: linear in the query, and the same as heavy ball taken step by step.")


def isotropic_gamma(reader_fn: Callable[[int, int, float], float]) -> None:
    """Check a function (d, n, variance) -> g with Gamma = g I, for inputs of covariance variance * I.

    Properties: no correction for endless prompts; proportional to the variance; the share of tr(Lambda) and that of
    Lambda itself; the matrix of the package in several settings.
    Raises: AssertionError with a hint.
    """

    def answer(d: int, n: int, variance: float) -> float:
        return _run(lambda *sizes: float(reader_fn(*sizes)), d, n, variance)

    _require(
        np.isclose(answer(5, 10**12, 1.0), 1),
        "for endless prompts of unit variance Gamma should be the covariance, g = 1; look at what is divided by n.",
    )
    _require(
        np.isclose(answer(5, 20, 3.0), 3 * answer(5, 20, 1.0)),
        "three times the variance does not give three times g; both parts of Gamma are proportional to it.",
    )
    _require(
        np.isclose(20 * (answer(9, 20, 1.0) - answer(5, 20, 1.0)), 4),
        "four dimensions more should add 4/n to g; look at the trace of the identity.",
    )
    for d, n, variance in [(1, 1, 1.0), (5, 20, 1.0), (3, 7, 0.4)]:
        covariance = variance * torch.eye(d, dtype=torch.float64)
        _require(
            np.isclose(answer(d, n, variance), linear_transformer.gamma(covariance, n)[0, 0].item()),
            f"with d = {d}, n = {n} and variance = {variance} g is not the diagonal of Gamma; count the two terms that "
            "are divided by n.",
        )
    print("Passed: g I is Gamma for isotropic inputs, in every setting.")


def ridge_attention(reader_fn: Callable[[Tensor, float, int], tuple[Tensor, Tensor]]) -> None:
    """Check a function (covariance (d, d), penalty, n) -> (W_PV, W_KQ), each (d+1, d+1), of one linear layer.

    The layer must predict like ridge regression, (X^T X + penalty I)^-1 X^T y, on every prompt of n examples whose
    X^T X is n times the covariance. (On other prompts no fixed layer can.) All scales (c W_PV, W_KQ / c) are accepted.
    Raises: AssertionError with a hint.
    """

    def agrees(d: int, n: int, penalty: float, seed: int) -> bool:
        prompts, covariance = _whitened_prompts(d, n, seed)
        layer = _call_ridge_attention(reader_fn, covariance, penalty, n)
        predictions = linear_transformer.layer_prediction(layer, prompts)
        return _close(predictions, regression.ridge(prompts, penalty), tolerance=1e-6)

    _require(
        agrees(3, 12, 1e-9, seed=0),
        "with almost no penalty the layer does not predict like least squares; look at what undoes the covariance, and "
        "at which entries of W_PV and W_KQ read inputs and targets.",
    )
    _require(
        agrees(3, 12, 12.0, seed=1),
        "with penalty = n = 12 the layer does not predict like ridge regression; the attention divides by n, and X^T X "
        "does not: see what that does to the penalty.",
    )
    _require(
        agrees(4, 30, 2.5, seed=2) and agrees(2, 5, 0.3, seed=3),
        "one setting is right, others are not; look for a number that should depend on d, n or the penalty.",
    )
    print("Passed: where the inputs have exactly the covariance, the layer is ridge regression.")


def scaled_prediction(reader_fn: Callable[[float], float]) -> None:
    """Check a function c -> prediction over right answer when every input is multiplied by c, at endless lengths.

    The layer was trained on the inputs as they were; the right answer is <w, c x_q>. The factors to compare with are
    measured on prompts whose inputs have exactly their covariance.
    Raises: AssertionError with a hint.
    """

    def answer(c: float) -> float:
        return _run(lambda scale: float(reader_fn(scale)), c)

    _require(np.isclose(answer(1.0), 1), "inputs as in training are predicted rightly: c = 1 should give 1.")
    _require(
        np.isclose(answer(-1.0), 1),
        "c = -1 mirrors prediction and right answer alike, so the factor should be 1; count how often c enters.",
    )
    prompts, covariance = _whitened_prompts(3, 12, seed=0)
    for c in (2.0, 0.5, 3.0):
        scaled = regression.covariate_shift(prompts, c * prompts.inputs)
        measured = (linear_transformer.prediction(torch.linalg.inv(covariance), scaled) / scaled.y_q)[0].item()
        _require(
            np.isclose(answer(c), measured),
            f"for c = {c} your factor is {'larger' if answer(c) > measured else 'smaller'} than the measured one; c "
            "enters through x_q, through x_i and through y_i, and the right answer has its share of it.",
        )
    print("Passed: your factors are the measured ones, for inputs made larger, smaller and mirrored.")


def paying_length(reader_fn: Callable[[int, int], float]) -> None:
    """Check a function (d, n) -> M at which longer prompts stop paying, for isotropic inputs and training length n.

    Stopping is meant sharply: the part of the risk that falls as 1/M equals the part that no prompt length removes.
    Raises: AssertionError with a hint.
    """
    for d, n in [(5, 20), (1, 10), (5, 80), (12, 40)]:
        identity = torch.eye(d, dtype=torch.float64)
        A = torch.linalg.inv(linear_transformer.gamma(identity, n))
        length = _run(lambda *sizes: float(reader_fn(*sizes)), d, n)
        _require(length > 0, f"with d = {d} and n = {n} your length is {length}; it should be above zero.")
        floor = linear_transformer.population_risk(A, identity, float("inf")).item()
        falling = linear_transformer.population_risk(A, identity, length).item() - floor
        _require(
            np.isclose(falling, floor),
            f"with d = {d} and n = {n}, at your M = {length:.4g} the part that falls with M is {falling / floor:.3g} "
            "times the part that stays; set the two terms of the isotropic risk equal and solve for M.",
        )
    print("Passed: at your length half of the risk is what no longer prompt removes, in all four settings.")


def _whitened_prompts(d: int, n: int, seed: int) -> tuple[regression.Prompts, Tensor]:
    """Draw prompts with X^T X = n covariance exactly; the query is free. Return them and the covariance."""
    generator = torch.Generator().manual_seed(seed)
    covariance = torch.randn(d, d, generator=generator, dtype=torch.float64)
    covariance = covariance @ covariance.T + 0.5 * torch.eye(d, dtype=torch.float64)
    prompts = regression.draw_prompts(4, n, covariance, generator=generator)
    X = torch.linalg.qr(prompts.X).Q * n**0.5 @ torch.linalg.cholesky(covariance).mT
    inputs = torch.cat([X, prompts.x_q[:, None]], dim=1)
    return regression.covariate_shift(prompts, inputs), covariance


def _call_ridge_attention(
    reader_fn: Callable, covariance: Tensor, penalty: float, n: int
) -> linear_transformer.LinearAttention:
    result, side = _run(reader_fn, covariance, penalty, n), len(covariance) + 1
    _require(
        isinstance(result, tuple) and len(result) == 2 and all(isinstance(part, Tensor) for part in result),
        "your function should return two tensors, W_PV and W_KQ.",
    )
    for name, matrix in zip(("W_PV", "W_KQ"), result, strict=True):
        _require(
            tuple(matrix.shape) == (side, side), f"{name} has shape {tuple(matrix.shape)}; it should be {(side, side)}."
        )
        _require(matrix.dtype == torch.float64, f"{name} turned float64 into {matrix.dtype}; keep the dtype.")
    return linear_transformer.LinearAttention(*result)
