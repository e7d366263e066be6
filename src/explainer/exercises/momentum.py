"""Checks for momentum attention."""

from collections.abc import Callable

import torch
from torch import Tensor

from explainer.exercises import checks
from explainer.theory import duality


@checks.check("row t is eta times the sum of row t - 1 of the average and row t - 1 of the values.")
def momentum_average(reader_fn: Callable[[Tensor, float], Tensor]) -> None:
    """Check a function (value (T, d), eta) -> (T, d) with the sum over i < t of eta^(t-i) v_i in row t.

    Properties: nothing at the first position; nothing of the present or the future; a single value decays by eta at
    every step; random values against the sum written out.
    Raises: AssertionError with a hint.
    """
    value = checks.random_tensors()(7, 3)
    first = torch.zeros_like(value)
    first[0] = value[0]
    for eta in (0.5, 0.9):
        average = checks.call(reader_fn, value, eta, shape=(7, 3))
        checks.require(checks.close(average[:1], 0 * average[:1]), "row 0 is not zero, but it has no past.")
        later = torch.cat([value[:4], 2 * value[4:]])
        checks.require(
            checks.close(checks.call(reader_fn, later, eta, shape=(7, 3))[:5], average[:5]),
            "row t changes with v_t or with a later value; only i < t may enter.",
        )
        decays = eta ** torch.arange(1, 7, dtype=value.dtype)
        checks.require(
            checks.close(checks.call(reader_fn, first, eta, shape=(7, 3))[1:], decays[:, None] * value[0]),
            "v_0 alone does not come back as eta v_0, eta^2 v_0, ...; look at the exponent t - i.",
        )
        sums = torch.stack([sum((eta ** (t - i) * value[i] for i in range(t)), 0 * value[0]) for t in range(7)])
        checks.require(checks.close(average, sums), "random values do not give the sum over all i < t.")
    print("Passed: causal, zero at the start, and a decay of eta with every position.")


@checks.check("start with T = 1 and T = 2 on paper: how often does each push appear?")
def momentum_dual(reader_fn: Callable[[Tensor, Tensor, Tensor, float], Tensor]) -> None:
    """Check a function (values (T, d_v), keys (T, d), queries (m, d), mu) -> (m, d_v), the dual of heavy ball.

    One pair is seen at each step, and the output is (W_T - W_0) q. Properties: linear in the queries; plain linear
    attention at mu = 0; the steps of heavy ball taken one by one.
    Raises: AssertionError with a hint.
    """
    draw = checks.random_tensors()
    values, keys, queries = draw(5, 2), draw(5, 3), draw(4, 3)

    def answer(queries: Tensor, mu: float) -> Tensor:
        return checks.call(reader_fn, values, keys, queries, mu, shape=(len(queries), 2))

    checks.require(
        checks.close(answer(2 * queries, 0.5), 2 * answer(queries, 0.5)),
        "twice the query does not give twice the output; the comparison k_i . q belongs into the sum.",
    )
    checks.require(
        checks.close(answer(queries, 0.0), duality.linear_attention(values, keys, queries)),
        "without momentum it is not linear attention; every weight is 1 at mu = 0.",
    )
    for mu in (0.5, 0.9):
        W = V = torch.zeros(2, 3, dtype=values.dtype)
        for v, k in zip(values, keys, strict=True):
            V = mu * V + torch.outer(v, k)
            W = W + V
        checks.require(
            checks.close(answer(queries, mu), queries @ W.T),
            f"at mu = {mu} it differs from heavy ball taken step by step; the oldest pair weighs most.",
        )
    print("Passed: linear in the query, and the same as heavy ball taken step by step.")


@checks.check("a factor that depends on t and one that depends on i have the product eta^(t-i).")
def momentum_keys(reader_fn: Callable[[Tensor, Tensor, float], tuple[Tensor, Tensor]]) -> None:
    """Check a function (keys (T, d), queries (T, d), eta) -> keys (T, d + 1), queries (T, d + 1), with one more entry.

    Linear attention to the pairs i < t with them is linear attention with the given ones plus the average. Properties:
    the given entries are unchanged; the product of the new ones is eta^(t-i) for i < t.
    Raises: AssertionError with a hint.
    """
    draw = checks.random_tensors()
    keys, queries = draw(6, 3), draw(6, 3)
    for eta in (0.5, 0.9):
        pairs = checks.run(reader_fn, keys, queries, eta)
        checks.require(
            isinstance(pairs, tuple) and len(pairs) == 2,
            "your function should return the keys and then the queries, each with one more entry.",
        )
        longer_keys, longer_queries = (checks.call(lambda each=each: each, shape=(6, 4)) for each in pairs)
        checks.require(
            checks.close(longer_keys[:, :3], keys) and checks.close(longer_queries[:, :3], queries),
            "the first entries are not the given ones; append the new entry at the end.",
        )
        lag = torch.arange(6)[:, None] - torch.arange(6)
        product = torch.outer(longer_queries[:, 3], longer_keys[:, 3])
        checks.require(
            checks.close(product[lag > 0], eta ** lag[lag > 0].to(keys.dtype)),
            "the new entries of query t and key i do not have the product eta^(t-i) for i < t.",
        )
    print("Passed: linear attention with one more entry in keys and queries is momentum attention without softmax.")


@checks.check("inputs stand at the even places, targets at the odd ones; the query at the end has no target.")
def joined_pairs(reader_fn: Callable[[Tensor], Tensor]) -> None:
    """Check a function (tokens x_1, y_1, ..., x_N, y_N, x_q, (2N + 1, d)) -> (N, 2d), each x_i beside its y_i.

    Properties: the shape; each input before its own target; the query is in no row.
    Raises: AssertionError with a hint.
    """
    for n, d in ((3, 2), (1, 4)):
        tokens = checks.random_tensors()(2 * n + 1, d)
        found = checks.call(reader_fn, tokens, shape=(n, 2 * d))
        inputs, targets = found.split(d, dim=1)
        checks.require(
            not checks.close(inputs, tokens[2::2]),
            "each target stands beside the next input, not its own.",
        )
        checks.require(checks.close(inputs, tokens[:-1:2]), "the first half of a row should be x_i.")
        checks.require(checks.close(targets, tokens[1::2]), "the second half of a row should be y_i.")
    print("Passed: every target has its own input beside it.")
