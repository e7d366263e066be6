"""Checks for the chapter `wrong_labels`."""

from collections.abc import Callable

import numpy as np
from torch import Tensor

from explainer.exercises import checks
from explainer.theory import order, wrong_labels


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


@checks.check("a label drawn at random from c labels is the right one with probability 1/c.")
def wrong_share(reader_fn: Callable[[float, int], float]) -> None:
    """Check a function (share of labels replaced by random ones, number of labels) -> expected share of wrong labels.

    Raises: AssertionError with a hint.
    """
    for replaced, labels in [(1.0, 2), (0.5, 2), (1.0, 5), (0.0, 3)]:
        chances = [replaced / labels] * labels  # of each label, beside the right one that is kept
        expected = sum(chances[1:])
        found = checks.run(lambda *given: float(reader_fn(*given)), replaced, labels)
        checks.require(
            np.isclose(found, expected),
            f"with {replaced:.0%} replaced and {labels} labels, {expected:.0%} are wrong, not {found:.0%}; some random "
            "labels are right.",
        )
    print("Passed: random labels are not all wrong.")


@checks.check("the mean of the new label is (1 - 2 p) w . x; the step goes from w_0 towards it.")
def flipped_mean(reader_fn: Callable[[Tensor, Tensor, float, float], Tensor]) -> None:
    """Check a function (w (d,), w_0 (d,), p, eta) -> E w_hat (d,).

    Properties: the prior at rate 0; the flipped task at rate 1; right priors; random ones.
    Raises: AssertionError with a hint.
    """
    draw = checks.random_tensors()
    w, w_0 = draw(3), draw(3)

    def answer(w_0: Tensor, p: float, rate: float) -> Tensor:
        return checks.call(reader_fn, w, w_0, p, rate, shape=(3,))

    checks.require(checks.close(answer(w_0, 0.3, 0.0), w_0), "without a step the prior should stay.")
    checks.require(
        checks.close(answer(w_0, 1.0, 1.0), -w), "a whole step on labels that are all flipped should end at -w."
    )
    checks.require(
        checks.close(answer(w_0, 0.3, 0.6), wrong_labels.expected_weights(w, w_0, 0.3, 0.6)),
        "at p = 0.3 and eta = 0.6 it is not the mean; the prior keeps its share whatever the labels.",
    )
    print("Passed: the prior keeps 1 - eta, the labels bring eta (1 - 2 p).")


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


@checks.check("in `wrong_labels.risk`, set w_0 and the noise to zero and the length of w to one.")
def flip_scatter(reader_fn: Callable[[float, float, int, int], float]) -> None:
    """Check a function (p, eta, N, d) -> scatter of w_hat without a prior and without noise, for a w of length 1.

    Raises: AssertionError with a hint.
    """
    draw = checks.random_tensors()
    for p, rate, n, d in [(0.0, 0.5, 8, 3), (0.5, 0.5, 8, 3), (0.9, 0.8, 5, 2)]:
        w = draw(d)
        w = w / w.norm()
        expected = wrong_labels.risk(w, 0 * w, p, rate, n).scatter
        found = checks.run(lambda *given: float(reader_fn(*given)), p, rate, n, d)
        checks.require(
            np.isclose(found, expected),
            f"with p = {p}, eta = {rate}, N = {n} and d = {d} it is {expected:.4g}, not {found:.4g}; the mean of "
            "squares is the same for all p, the square of the mean is not.",
        )
    print("Passed: wrong labels add scatter, and most of it at one half.")
