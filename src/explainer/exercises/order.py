"""Checks for the chapter `order`."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from explainer.exercises import checks
from explainer.theory import fast_weights, order

Rule = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(keys (n, d), values (n, d_v), query (d,)) -> answer (d_v,)."""


@checks.check("each later pair keeps the share 1 - rate of what was there.")
def recency_weights(reader_fn: Callable[[float, int], Sequence[float]]) -> None:
    """Check a function (rate, n) -> the n weights of pairs with one unit key under the delta rule, first pair first.

    Raises: AssertionError with a hint.
    """
    for rate, n in [(0.5, 4), (0.2, 6), (1.0, 3)]:
        key = torch.ones(n, 1, dtype=torch.float64)
        expected = order.delta_weights(rate, key, key[0])
        found = _numbers(reader_fn, rate, n, length=n)
        checks.require(
            not (rate < 1 and checks.close(found, expected.flip(0))),
            "your weights are those of the pairs last to first.",
        )
        checks.require(
            checks.close(found, expected),
            f"with a rate of {rate} and {n} pairs the weights are {expected.numpy().round(3)}; look at the exponent, "
            "and at the factor that the newest pair has.",
        )
    print("Passed: your weights are those of the layer.")


@checks.check("the variance over orders is a product of two sums of squares, divided by n - 1.")
def order_variance(reader_fn: Callable[[Tensor, Tensor], float]) -> None:
    """Check a function (weights (n,), values (n,)) -> variance of the answer over all orders, without listing them.

    Raises: AssertionError with a hint.
    """
    draw = checks.random_tensors()
    for n in (2, 3, 12):
        w, v = draw(n), draw(n) + 5
        found = checks.run(lambda *given: float(reader_fn(*given)), w, v)
        checks.require(
            np.isclose(found, checks.run(lambda *given: float(reader_fn(*given)), w, v + 1)),
            "adding 1 to every value changes your variance; only differences between the values may count.",
        )
        expected = order.order_variance(w, v)
        checks.require(
            np.isclose(found, expected),
            f"with n = {n} it is {expected:.4g}, not {found:.4g}; both sums are of squares around the mean.",
        )
    print("Passed: also for twelve demonstrations, whose 479,001,600 orders nobody lists.")


@checks.check("multiply out (I - rate k_2 k_2^T) from the right, for both orders.")
def order_gap(reader_fn: Callable[[float, Tensor, Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function (rate, k_1, v_1, k_2, v_2) -> S_12 - S_21, (d_v, d), of the delta rule.

    Raises: AssertionError with a hint.
    """
    draw = checks.random_tensors()
    k, v = draw(2, 4), draw(2, 3)

    def gap(rate: float, a: int = 0, b: int = 1) -> Tensor:
        return checks.call(reader_fn, rate, k[a], v[a], k[b], v[b], shape=(3, 4))

    checks.require(
        checks.close(gap(0.6), -gap(0.6, 1, 0)), "changing the names of the two pairs does not change the sign."
    )
    checks.require(checks.close(gap(0.6), 4 * gap(0.3)), "twice the rate should make it four times as large.")
    checks.require(
        checks.close(gap(0.6), order.order_gap(0.6, k, v)),
        "it differs from the two passes; look at which value meets which key, at the sign and at k_1 . k_2.",
    )
    print("Passed: of second order in the rate, and nothing for orthogonal keys.")


@checks.check("after pair t the answer should be the mean of the first t values.")
def fair_rates(reader_fn: Callable[[int], Sequence[float]]) -> None:
    """Check a function n -> n rates with which the delta rule weighs n pairs of one unit key the same.

    Raises: AssertionError with a hint.
    """
    for n in (1, 4, 7):
        rates = _numbers(reader_fn, n, length=n)
        key = torch.ones(n, 1, dtype=torch.float64)
        weights = fast_weights.recurrent(key, key, torch.eye(n, dtype=torch.float64), rates)[-1]
        checks.require(
            checks.close(weights, weights.mean().expand(n)) and bool((weights.abs() > checks.TOLERANCE).all()),
            f"with your rates the {n} weights are {weights.numpy().round(3)}; they should be equal, and not zero.",
        )
    print("Passed: with these rates one pass over the pairs has no order.")


@checks.check("call the rule on each row of itertools.permutations(range(n)), and take the mean.")
def order_average(reader_fn: Callable[[Rule, Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function (rule, keys, values, query) -> the rule's answer, averaged over all orders of the pairs.

    Raises: AssertionError with a hint.
    """
    draw = checks.random_tensors()
    keys, values, query = draw(3, 2), draw(3, 2), draw(2)

    def delta(K: Tensor, V: Tensor, q: Tensor) -> Tensor:
        return V.T @ order.delta_weights(0.5, K, q)

    def sum_of_values(K: Tensor, V: Tensor, q: Tensor) -> Tensor:
        return V.sum(0)

    def answer(rule: Rule, rows: Sequence[int] = (0, 1, 2)) -> Tensor:
        return checks.call(reader_fn, rule, keys[list(rows)], values[list(rows)], query, shape=(2,))

    checks.require(
        checks.close(answer(sum_of_values), values.sum(0)),
        "a rule without an order should keep its answer; divide by n!.",
    )
    checks.require(
        checks.close(answer(delta), answer(delta, (2, 0, 1))),
        "your average depends on the order in which the pairs are given; use all orders.",
    )
    expected = torch.stack([delta(keys[row], values[row], query) for row in order.orders(3)]).mean(0)
    checks.require(
        checks.close(answer(delta), expected),
        "it is not the mean over the orders; keys and values have to change places together.",
    )
    print("Passed: the average over orders has no order.")


def _numbers(reader_fn: Callable, *arguments: object, length: int) -> Tensor:
    """Call the reader's function and require so many numbers."""
    found = torch.as_tensor(np.asarray(checks.run(reader_fn, *arguments), dtype=float))
    checks.require(tuple(found.shape) == (length,), f"there should be {length} numbers, not {found.numel()}.")
    return found
