"""How often a 95 % interval holds the truth, in simulated studies in which seeds and queries vary as they do here.

In study after study, y = seed effect + query effect + rest. The seeds are new each time; each draws its queries from
one pool, a draw of all the texts that one could have asked about. The truth, the mean over all of both, is 0.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import pandas as pd

from explainer.theory import statistics
from explainer.theory.statistics import Components, Interval, Sample

_RESAMPLES = 400
_QUERIES, _POOL = 40, 200  # how many queries each seed draws, and from how many texts


def _simulated(share: Components, seeds: int, rng: np.random.Generator) -> Sample:
    """One study: y_gi = sqrt(s_A) a_g + sqrt(s_B) b_j(g, i) + sqrt(s_E) e_gi, with a, b and e standard normal."""
    seed, query, rest = np.sqrt(share)
    effects = query * rng.normal(size=_POOL)
    ids = rng.permuted(np.tile(np.arange(_POOL), (seeds, 1)), axis=1)[:, :_QUERIES]
    values = seed * rng.normal(size=(seeds, 1)) + effects[ids] + rest * rng.normal(size=(seeds, _QUERIES))
    return Sample([(row,) for row in values], list(ids))


def _nested_bootstrap(sample: Sample) -> Interval:
    """Queries as if they were of their seed alone: seeds are drawn, then examples within each drawn seed.

    Davison and Hinkley 1997, section 3.8. It stands here for comparison: seeds that share queries vary together.
    """
    values = np.array([group for (group,) in sample.groups])
    low, high = np.quantile(_nested_counts(*values.shape) @ values.ravel() / values.size, (0.025, 0.975))
    return Interval(values.mean(), low, high)


@lru_cache(maxsize=4)
def _nested_counts(n_seeds: int, n: int) -> np.ndarray:
    """How often each example is drawn in each resample, (resamples, n_seeds n)."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(n_seeds, size=(_RESAMPLES, n_seeds, 1)) * n + rng.integers(n, size=(_RESAMPLES, n_seeds, n))
    return np.array([np.bincount(each.ravel(), minlength=n_seeds * n) for each in drawn], dtype=float)


METHODS: Mapping[str, Callable[[Sample], Interval]] = {
    "nested bootstrap": _nested_bootstrap,
    "crossed bootstrap": partial(statistics.bootstrap_interval, n_resamples=_RESAMPLES),
    "Student over seeds": lambda its: statistics.student([group.mean() for (group,) in its.groups]),
    "Student, shared queries": lambda its: statistics.paired_difference(
        its, replace(its, groups=[(0 * y,) for (y,) in its.groups])
    ),
}
"""What can be done with the same values, by name. The second and the fourth are what this book does."""


def coverage(shares: pd.DataFrame, seeds: int, repetitions: int = 200) -> dict[str, Interval]:
    """For each method, the share of studies of so many seeds whose interval holds 0, with Wilson's 95 % interval.

    `shares` are parts of the variance, a row for each task and the columns of `Components`; the studies have the median
    of each, as parts of their sum, where an estimate below zero counts as zero. Of a difference, 1 - coverage is how
    often p < 0.05 although there is none.
    """
    share = Components(*Components(*shares.clip(lower=0).median()).shares)
    rng = np.random.default_rng(0)
    held = dict.fromkeys(METHODS, 0)
    for _ in range(repetitions):
        study = _simulated(share, seeds, rng)
        for name, method in METHODS.items():
            held[name] += not method(study).excludes_zero
    return {name: statistics.binomial_interval(count / repetitions, repetitions) for name, count in held.items()}
