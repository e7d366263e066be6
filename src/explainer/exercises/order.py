"""Checks for the chapter `three_predictions` and its study `order`."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from explainer.exercises import checks
from explainer.theory import fast_weights, order


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


def _numbers(reader_fn: Callable, *arguments: object, length: int) -> Tensor:
    """Call the reader's function and require so many numbers."""
    found = torch.as_tensor(np.asarray(checks.run(reader_fn, *arguments), dtype=float))
    checks.require(tuple(found.shape) == (length,), f"there should be {length} numbers, not {found.numel()}.")
    return found
