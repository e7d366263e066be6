"""Checks for the chapter `three_predictions` and its study `context_or_training`."""

from collections.abc import Callable, Sequence

import torch
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
