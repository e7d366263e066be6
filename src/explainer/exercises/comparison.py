"""Exercises on the measures of the comparison, on what a study can find, and on what descent would predict."""

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.stats import nct
from scipy.stats import t as student_t
from torch import Tensor

from explainer.exercises.checks import Exercise, Inputs
from explainer.theory import fast_weights, statistics

# Intervals and what a study can find.


def _quantile(draws: int) -> float:
    return student_t.ppf(0.975, draws - 1)


def _fewest(spread: float, difference: float, *, quantile: Callable = _quantile) -> int:
    return next(S for S in range(2, 10_000) if quantile(S) * spread / S**0.5 < difference)


def _power(spread: float, difference: float, S: int) -> float:
    critical, shift = _quantile(S), difference / spread * S**0.5
    return nct.sf(critical, S - 1, shift) + nct.cdf(-critical, S - 1, shift)


draws_needed = Exercise(
    hint="the half width with S draws is t(.975, S - 1) times the spread over the root of S.",
    passed="so many draws settle a difference of this size, if the spread is right.",
    right=_fewest,
    cases=[(1.0, 0.5), (1.0, 0.1), (0.05, 0.05), (0.02, 0.5)],
    mistakes={
        "take Student's t, not the normal distribution.": lambda s, d: _fewest(s, d, quantile=lambda S: 1.96),
        "look for the fewest: one draw less would do.": lambda s, d: _fewest(s, d) + 1,
    },
)
not_excluded = Exercise(
    hint="take the end of Student's interval that is farther from zero.",
    passed="what is farther from zero than this is excluded.",
    right=lambda differences: max(-statistics.student(differences).low, statistics.student(differences).high),
    cases={"the spread has S - 1 in its denominator, and so has t.": [([2, -1, 3],), ([-4, -5, 1, -2],)]},
    mistakes={
        "this is the half width alone; the middle is not at zero.": lambda d: statistics.student(d).high - np.mean(d),
        "where the mean is negative, the lower end is farther from zero.": lambda d: abs(statistics.student(d).high),
    },
)
power = Exercise(
    hint="the mean of S draws, in units of its standard error, has a noncentral Student distribution.",
    passed="so often a study of this size finds what is there.",
    right=_power,
    tolerance=0.02,
    cases={
        "without any difference the interval excludes zero in one of twenty studies.": (1.0, 0.0, 6),
        "look at the critical value and at the shift.": [(1.0, 1.0, 5), (0.05, 0.02, 20), (1.0, -0.5, 10)],
    },
    mistakes={"the mean of S draws varies less than one draw.": lambda s, d, S: _power(s, d / S**0.5, S)},
)
core_hours = Exercise(
    hint="the time grows with the draws and with the weights.",
    passed="so many hours does it take, if nothing else grows.",
    right=lambda hours, draws, wanted, c: hours * wanted / draws * c,
    cases=[(10.0, 5, 20, 1.0), (10.0, 5, 5, 20.0), (6.5, 4, 10, 3.0)],
    mistakes={"these draws took the hours together, not each.": lambda hours, draws, wanted, c: hours * wanted * c},
)
share_of_the_way = Exercise(
    hint="measure everything from the floor: value minus floor, over ceiling minus floor.",
    passed="0 is the floor, 1 the ceiling, and no unit is left.",
    right=lambda floor, value, ceiling: (value - floor) / (ceiling - floor),
    cases={
        "a value at the floor should be at 0 of the way.": (0.2, 0.2, 0.7),
        "a value at the ceiling should be at 1 of the way.": (0.2, 0.7, 0.7),
        "below the floor the share is negative; do not clip it.": (0.2, 0.1, 0.7),
        "another unit or zero changes the share.": [(-1.0, 2.0, 3.0), (20.0, 50.0, 70.0)],
    },
    mistakes={"measure both from the floor.": lambda floor, value, ceiling: value / ceiling},
)

# Order, wrong labels, reversal: the chapter `three_predictions` and its studies.


def _answers(z: Tensor) -> list[Inputs]:
    """A memory of three orthonormal pairs with each of its answers."""
    basis = torch.linalg.qr(z).Q
    W = basis[3:6].T @ basis[:3]
    return [(W, b) for b in basis[3:6]]


def _weights(rates: Callable, n: int) -> Tensor:
    """What the delta rule weighs n pairs of one unit key with, over the mean weight."""
    key = torch.ones(n, 1, dtype=torch.float64)
    weights = fast_weights.recurrent(key, key, torch.eye(n, dtype=torch.float64), rates(n))[-1]
    return weights / weights.mean()


question_of = Exercise(
    hint="the layer computes W a = b; which product goes from b to a?",
    passed="your function goes from the answer back to its question.",
    right=lambda W, b: W.T @ b,
    shapes=((8, 8),),
    cases=_answers,
    mistakes={"W b is zero: the layer does not know the way back.": lambda W, b: W @ b},
)
fair_rates = Exercise(
    hint="after pair t the answer should be the mean of the first t values.",
    passed="with these rates one pass over the pairs has no order.",
    right=lambda n: 1 / np.arange(1, n + 1),
    counts=_weights,
    cases={"the weights of the pairs should be equal, and not zero.": [(1,), (4,), (7,)]},
    mistakes={"with one rate for all, the last pair weighs most.": lambda n: np.full(n, 1 / n)},
)
shuffled_share = Exercise(
    hint="on average one answer of a shuffled list is back at its own place.",
    passed="your share is the mean over all orders.",
    right=lambda k: 1 - 1 / k,
    cases=[(2,), (4,), (6,)],
    mistakes={
        "some lines stay right by luck; take the mean over all orders.": lambda k: 1.0,
        "this is the share that stays right.": lambda k: 1 / k,
    },
)
examples_to_override = Exercise(
    hint="solve 1 - 2 p N / (N + m) < 0 for N.",
    passed="flipped labels win as soon as there are that many.",
    right=lambda p, m: math.floor(m / (2 * p - 1) + 1e-9) + 1,
    cases=[(1.0, 10.0), (0.75, 10.0), (0.6, 33.0), (1.0, 10.5)],
    mistakes={
        "the mean has to turn, not to vanish.": lambda p, m: math.ceil(m / (2 * p - 1) - 1e-9),
        "right labels pull back: it is 2 p - 1 that counts.": lambda p, m: math.floor(m / p) + 1,
    },
)
