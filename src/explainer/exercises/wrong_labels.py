"""Checks for the chapter `three_predictions` and its study `wrong_labels`."""

from collections.abc import Callable

import numpy as np

from explainer.exercises import checks
from explainer.theory import order


@checks.check("on average one answer of a shuffled list is back at its own place.")
def shuffled_share(reader_fn: Callable[[int], float]) -> None:
    """Check a function k -> expected share of wrong pairs after the answers of k demonstrations are shuffled.

    Raises: AssertionError with a hint.
    """
    for k in (2, 4, 6):
        orders = order.orders(k)
        expected = (orders != orders[0]).double().mean().item()
        found = checks.run(lambda *given: float(reader_fn(*given)), k)
        checks.require(
            np.isclose(found, expected),
            f"for {k} demonstrations the mean over all {len(orders)} orders is {expected:.4g}, not {found:.4g}.",
        )
    print("Passed: your share is the mean over all orders.")


@checks.check("solve 1 - 2 p N / (N + m) < 0 for N.")
def examples_to_override(reader_fn: Callable[[float, float], int]) -> None:
    """Check a function (p, m) -> least number of examples at which the mean turns against a right prior, p > 1/2.

    Raises: AssertionError with a hint.
    """
    for p, m in [(1.0, 10.0), (0.75, 10.0), (0.6, 33.0), (1.0, 10.5)]:
        found = checks.run(lambda *given: int(reader_fn(*given)), p, m)
        least = next(N for N in range(1, 10_000) if 1 - 2 * p * N / (N + m) < -1e-12)
        checks.require(
            found == least,
            f"with p = {p} and m = {m} it is {least} examples, not {found}; it has to turn, not to vanish.",
        )
    print("Passed: flipped labels win as soon as there are that many.")
