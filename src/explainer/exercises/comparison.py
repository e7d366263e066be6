"""Exercises on the measures of the comparison, on what a study can find, and on what descent would predict."""

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.stats import kendalltau, nct
from scipy.stats import t as student_t
from torch import Tensor

from explainer.exercises.checks import Cases, Exercise, Inputs
from explainer.theory import fast_weights, order, statistics

# Scores, ranks, intervals and what a study can find.


_SCORES, _LABELS = np.array([-0.5, 0.2, 0.1, 0.1, 2.0]), np.array([0, 1, 0, 1, 1])


def _tau_cases(z: Tensor) -> Cases:
    x, y = z.numpy()
    return {
        "a ranking and itself do not give 1; there are T (T - 1) / 2 pairs, each counted once.": (x, x),
        "a reversed ranking does not give -1; discordant pairs count against the others.": (x, -x),
        "five concordant pairs and one discordant of six do not give 4/6.": (np.arange(4.0), np.array([0, 2, 1, 3.0])),
        "two random rankings do not give P_c - P_d over all pairs.": [(x[:T], y[:T]) for T in (2, 5, 9)],
    }


def _quantile(draws: int) -> float:
    return student_t.ppf(0.975, draws - 1)


def _fewest(spread: float, difference: float, *, quantile: Callable = _quantile) -> int:
    return next(S for S in range(2, 10_000) if quantile(S) * spread / S**0.5 < difference)


def _power(spread: float, difference: float, S: int) -> float:
    critical, shift = _quantile(S), difference / spread * S**0.5
    return nct.sf(critical, S - 1, shift) + nct.cdf(-critical, S - 1, shift)


calibration = Exercise(
    hint="for each candidate, subtract its mean log-probability over the queries.",
    passed="no candidate is preferred on average, and the queries still differ as before.",
    right=lambda log_probs: log_probs - log_probs.mean(axis=0),
    counts=lambda scores, log_probs: scores(log_probs) - scores(log_probs).mean(),
    shapes=((7, 3),),
    cases=lambda z: {
        "a candidate still scores higher on average, or two queries differ otherwise.": (z.numpy(),),
        "a constant bias towards one candidate still changes the scores.": ((z + torch.arange(3)).numpy(),),
    },
    mistakes={
        "look at the axis of the mean: it runs over queries.": lambda p: p - p.mean(axis=1, keepdims=True),
        "each candidate has a mean of its own.": lambda p: p - p.mean(),
        "the difference between two queries' scores has changed.": lambda p: (p - p.mean(axis=0)) / p.std(axis=0),
    },
)
auc = Exercise(
    hint="compare every positive query with every negative one; a tie counts half.",
    passed="order alone decides, ties count one half, swapping the classes mirrors the result.",
    right=lambda scores, labels: (1 + np.sign(scores[labels == 1][:, None] - scores[labels == 0])).mean() / 2,
    cases={
        "perfectly ordered scores do not give 1; look at the comparison.": (_LABELS * 1.0, _LABELS),
        "scores in reversed order do not give 0; look at its direction.": (-_LABELS * 1.0, _LABELS),
        "equal scores do not give one half; how do ties count?": (np.zeros(5), _LABELS),
        "five wins and a tie of six pairs do not give 5.5/6.": (_SCORES, _LABELS),
        "an increasing transform of the scores changes the result; only order may matter.": (_SCORES**3, _LABELS),
        "swapping the classes does not give one minus the result.": (_SCORES, 1 - _LABELS),
    },
)
rec2ftp = Exercise(
    hint="first find the queries that zero-shot gets wrong and fine-tuning gets right.",
    passed="a share of what FT repairs, and nothing else counts.",
    right=lambda zsl, icl, ft: (~zsl & ft & icl).sum() / (~zsl & ft).sum(),
    shapes=((5, 3, 40),),
    cases=lambda z: {
        "ICL repairs all that FT repairs; it should be 1.": tuple(np.array([[0, 0, 0], [1, 1, 0], [1, 1, 0]]) > 0),
        "count step by step what ZSL, FT and ICL get right.": [*map(tuple, (z > 0).numpy())],
    },
    mistakes={
        "divide by the number of FT's repairs.": lambda zsl, icl, ft: (~zsl & ft & icl).mean(),
        "queries that ZSL gets right need no repair.": lambda zsl, icl, ft: (ft & icl).sum() / ft.sum(),
        "queries that FT gets wrong are counted, too.": lambda zsl, icl, ft: (
            (~zsl & ft & icl).sum() / (~zsl & icl).sum()
        ),
    },
)
holm = Exercise(
    hint="sort the p-values; the smallest is multiplied by m, the next by m - 1, and so on.",
    passed="factors from m to 1, never above 1, never out of order.",
    right=statistics.holm,
    shapes=((5, 6),),
    cases=lambda z: {
        "a single p-value should stay as it is; look at the factor.": (np.array([0.03]),),
        "the factors of three p-values should be 3, 2 and 1.": (np.array([0.001, 0.01, 0.6]),),
        "a corrected p-value is larger than 1; cut it there.": (np.array([0.7, 0.8, 0.9]),),
        "a larger p-value ends below a smaller one; each takes the largest so far.": (np.array([0.04, 0.045]),),
        "the order of the p-values matters; sort, correct, put them back.": (np.array([0.6, 0.01, 0.001]),),
        "compare it step by step on paper.": [(p,) for p in (z.sigmoid() ** 3).numpy()],
    },
    mistakes={"these are Bonferroni's; Holm's factors fall from m to 1.": lambda p: np.minimum(1, len(p) * p)},
)
kendall_tau = Exercise(
    hint="count the pairs of tokens that both sides put in the same order, and those in opposite orders.",
    passed="concordant minus discordant pairs over all pairs, whatever the scores' scale.",
    right=lambda x, y: kendalltau(x, y).statistic,
    shapes=((2, 9),),
    cases=_tau_cases,
    mistakes={"an increasing transform changes it; only order may matter.": lambda x, y: np.corrcoef(x, y)[0, 1]},
)
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


def _both(lesson: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [*lesson, *((b, a) for a, b in lesson)]


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
with_reversals = Exercise(
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
)
order_variance = Exercise(
    hint="the variance over orders is a product of two sums of squares, divided by n - 1.",
    passed="also for twelve demonstrations, whose 479,001,600 orders nobody lists.",
    right=order.order_variance,
    shapes=((2, 2), (2, 3), (2, 12)),
    cases=lambda *pairs: {"both sums are of squares around the mean.": [(w, v + 5) for w, v in pairs]},
    mistakes={
        "adding 1 to every value changes it; only differences may count.": lambda w, v: w.var() * (v**2).sum(),
        "divide by n - 1 once.": lambda w, v: w.var() * v.var() * (len(w) - 1) ** 2 / len(w),
    },
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
