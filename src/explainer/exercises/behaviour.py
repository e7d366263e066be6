"""Checks for the chapter `context_or_training`."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.stats import binom
from torch import Tensor

from explainer.exercises import checks


@checks.check("the layer computes W a = b; which product goes from b to a?")
def question_of(reader_fn: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Check a function (W (d, d), b (d,)) -> a (d,) for a memory W = sum_i b_i a_i^T of orthonormal words.

    Raises: AssertionError with a hint.
    """
    basis = torch.linalg.qr(checks.random_tensors()(8, 8)).Q
    a, b = basis[:3], basis[3:6]
    W = b.T @ a
    for question, answer in zip(a, b, strict=True):
        found = checks.call(reader_fn, W, answer, shape=(8,))
        checks.require(not checks.close(found, W @ answer), "W b is zero: the layer does not know the way back.")
        checks.require(checks.close(found, question), "the result is not the question that belongs to b.")
    print("Passed: your function goes from the answer back to its question.")


@checks.check("sum the binomial probabilities of r, r + 1, ... and n right answers.")
def at_least(reader_fn: Callable[[int, float, int], float]) -> None:
    """Check a function (n, chance, r) -> probability of at least r right answers among n by chance.

    Raises: AssertionError with a hint.
    """
    for n, chance, r in [(8, 1 / 8, 3), (8, 1 / 8, 0), (5, 0.5, 5), (10, 0.3, 4)]:
        found = checks.run(lambda *given: float(reader_fn(*given)), n, chance, r)
        more = binom.sf(r, n, chance)
        checks.require(
            not (np.isclose(found, more) and binom.pmf(r, n, chance) > 1e-6),
            f"for n = {n} and r = {r} that is the probability of *more* than {r}; count {r} itself, too.",
        )
        expected = binom.sf(r - 1, n, chance)
        checks.require(
            np.isclose(found, expected),
            f"for n = {n}, a chance of {chance:.3g} and r = {r} the probability is {expected:.4g}, not {found:.4g}.",
        )
    print("Passed: so often luck alone does as well.")


@checks.check("find the first two neighbours with the level between them, and go the same share of the way in lines.")
def lines_to_reach(reader_fn: Callable[[Sequence[float], Sequence[float], float], float]) -> None:
    """Check a function (lines, shares, level) -> lines at which a rising curve first reaches the level, inf for never.

    Between two points the curve is a straight line.
    Raises: AssertionError with a hint.
    """
    lines, shares = [16, 32, 80, 160], [0.1, 0.3, 0.3, 0.5]
    for level, expected in [(0.1, 16), (0.2, 24), (0.3, 32), (0.4, 120), (0.5, 160), (0.6, np.inf), (0.05, 16)]:
        found = checks.run(lambda *given: float(reader_fn(*given)), lines, shares, level)
        checks.require(
            np.isclose(found, expected),
            f"with shares {shares} after {lines} lines the level {level} is first reached at {expected}, not {found}.",
        )
    print("Passed: so many lines does it take.")


@checks.check("draw a normal matrix, and multiply it by the ratio of the two lengths.")
def random_update(reader_fn: Callable[[Tensor, torch.Generator], Tensor]) -> None:
    """Check a function (dW (d_out, d), generator) -> a random matrix of this shape, as long as dW, of any direction.

    Raises: AssertionError with a hint.
    """
    dW = checks.random_tensors()(12, 20)

    def drawn(seed: int) -> Tensor:
        return checks.call(reader_fn, dW, torch.Generator().manual_seed(seed), shape=(12, 20))

    first, again, other = drawn(11), drawn(11), drawn(12)
    checks.require(checks.close(first.norm(), dW.norm()), "the update is not as long as dW; look at the factor.")
    checks.require(checks.close(first, again), "the same generator gives two updates; draw with it and nothing else.")
    checks.require(not checks.close(first, other), "two generators give one update; draw with the generator.")
    checks.require(
        abs((first * dW).sum() / dW.norm() ** 2) < 0.5, "the update points along dW; only its length may be that of dW."
    )
    print("Passed: as long as dW, and in no direction of it.")


@checks.check("walk through the lesson once; after each line write it backward, unless it is there already.")
def with_reversals(reader_fn: Callable[[Sequence[tuple[str, str]]], Sequence[tuple[str, str]]]) -> None:
    """Check a function (lesson of (question, answer)) -> the lesson and what it implies backward, no line twice.

    Raises: AssertionError with a hint.
    """
    lesson = [("blicket", "wheel"), ("dax", "river"), ("wheel", "blicket")]
    found = [tuple(line) for line in checks.run(reader_fn, list(lesson))]
    checks.require(set(lesson) <= set(found), "a line of the lesson is missing; keep them all.")
    for a, b in lesson:
        checks.require((b, a) in found, f"{(b, a)} is implied and missing; turn every line around.")
    checks.require(
        len(found) == len(set(found)), "a line stands there twice, and would be trained twice; look before you add."
    )
    checks.require(len(found) == 4, f"{len(found) - 4} of your lines are not implied by the lesson.")
    print("Passed: a lesson in both directions.")
