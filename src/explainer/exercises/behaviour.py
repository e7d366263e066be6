"""Exercises on the chapter `three_predictions` and its studies."""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from explainer.exercises.checks import Exercise, Inputs
from explainer.theory import fast_weights, order

_Lesson = list[tuple[str, str]]


def _answers(z: Tensor) -> list[Inputs]:
    """A memory of three orthonormal pairs with each of its answers."""
    basis = torch.linalg.qr(z).Q
    W = basis[3:6].T @ basis[:3]
    return [(W, b) for b in basis[3:6]]


def _both(lesson: _Lesson) -> _Lesson:
    return [*lesson, *((b, a) for a, b in lesson)]


def _weights(rates: Callable, n: int) -> Tensor:
    """What the delta rule weighs n pairs of one unit key with, over the mean weight."""
    key = torch.ones(n, 1, dtype=torch.float64)
    weights = fast_weights.recurrent(key, key, torch.eye(n, dtype=torch.float64), rates(n))[-1]
    return weights / weights.mean()


EXERCISES = {
    "question_of": Exercise(
        asks="(W (d, d), b (d,)) -> a (d,) for a memory W = sum_i b_i a_i^T of orthonormal words",
        hint="the layer computes W a = b; which product goes from b to a?",
        passed="your function goes from the answer back to its question.",
        right=lambda W, b: W.T @ b,
        shapes=((8, 8),),
        cases=_answers,
        mistakes={"W b is zero: the layer does not know the way back.": lambda W, b: W @ b},
    ),
    "with_reversals": Exercise(
        asks="lesson of (question, answer) -> the lesson and what it implies backward, no line twice",
        hint="walk through the lesson once; after each line write it backward, unless it is there already.",
        passed="a lesson in both directions.",
        right=lambda lesson: list(dict.fromkeys(_both(lesson))),
        counts=lambda answer, lesson: sorted(map(tuple, answer(lesson))),
        cases=[([("blicket", "wheel"), ("dax", "river"), ("wheel", "blicket")],)],
        mistakes={
            "a line stands there twice, and would be trained twice; look before you add.": _both,
            "a line of the lesson is missing; keep them all.": lambda lesson: [(b, a) for a, b in lesson],
            "what the lesson implies is missing; turn every line around.": list,
        },
    ),
    "order_variance": Exercise(
        asks="(weights (n,), values (n,)) -> variance of the answer over all orders, without listing them",
        hint="the variance over orders is a product of two sums of squares, divided by n - 1.",
        passed="also for twelve demonstrations, whose 479,001,600 orders nobody lists.",
        right=order.order_variance,
        shapes=((2, 2), (2, 3), (2, 12)),
        cases=lambda *pairs: {"both sums are of squares around the mean.": [(w, v + 5) for w, v in pairs]},
        mistakes={
            "adding 1 to every value changes it; only differences may count.": lambda w, v: w.var() * (v**2).sum(),
            "divide by n - 1 once.": lambda w, v: w.var() * v.var() * (len(w) - 1) ** 2 / len(w),
        },
    ),
    "fair_rates": Exercise(
        asks="n -> n rates with which the delta rule weighs n pairs of one unit key the same",
        hint="after pair t the answer should be the mean of the first t values.",
        passed="with these rates one pass over the pairs has no order.",
        right=lambda n: 1 / np.arange(1, n + 1),
        counts=_weights,
        cases={"the weights of the pairs should be equal, and not zero.": [(1,), (4,), (7,)]},
        mistakes={"with one rate for all, the last pair weighs most.": lambda n: np.full(n, 1 / n)},
    ),
    "shuffled_share": Exercise(
        asks="k -> expected share of wrong pairs after the answers of k demonstrations are shuffled",
        hint="on average one answer of a shuffled list is back at its own place.",
        passed="your share is the mean over all orders.",
        right=lambda k: 1 - 1 / k,
        cases=[(2,), (4,), (6,)],
        mistakes={
            "some lines stay right by luck; take the mean over all orders.": lambda k: 1.0,
            "this is the share that stays right.": lambda k: 1 / k,
        },
    ),
    "examples_to_override": Exercise(
        asks="(p, m) -> least number of examples at which the mean turns against a right prior, p > 1/2",
        hint="solve 1 - 2 p N / (N + m) < 0 for N.",
        passed="flipped labels win as soon as there are that many.",
        right=lambda p, m: math.floor(m / (2 * p - 1) + 1e-9) + 1,
        cases=[(1.0, 10.0), (0.75, 10.0), (0.6, 33.0), (1.0, 10.5)],
        mistakes={
            "the mean has to turn, not to vanish.": lambda p, m: math.ceil(m / (2 * p - 1) - 1e-9),
            "right labels pull back: it is 2 p - 1 that counts.": lambda p, m: math.floor(m / p) + 1,
        },
    ),
}
