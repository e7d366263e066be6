"""The queries of all ten tasks, and which of the zero-shot errors FT and ICL repair."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float

from explainer.results import reporting
from explainer.results.published import TEN_TASKS, results
from explainer.theory import statistics
from explainer.theory.statistics import Interval

_Array = np.ndarray

_RESAMPLES = 500  # the interval's ends are known to about a tenth of its width
_FEWEST_REPAIRS = 20  # with fewer, the interval of a share is wider than 0.4
_MOST_UNDEFINED = 0.01


def queries(control: str = "none") -> pd.DataFrame:
    """The queries of all ten tasks, or those of the untrained model, of the settings whose FT did not diverge."""
    found = pd.concat([results(grid, "queries", control=control) for grid in TEN_TASKS[control]])
    return found[found["ft_correct"].notna()]


@dataclass(frozen=True)
class Repairs:
    """Rec2FTP over all seeds of a task, its chance value, the same within each right answer, and what is above that.

        sum_g f_g c_g / sum_g f_g over groups g, seeds or seeds and labels
    with f_g the repairs of FT and c_g the share of zero-shot errors that ICL repairs in the group. The excess is recall
    minus `within_label`. `n_different` counts the different queries that FT repairs.
    """

    n_errors: int
    n_repaired: int
    n_different: int
    recall: Interval
    chance: Interval
    within_label: Interval
    excess: Interval

    @property
    def carries(self) -> bool:
        """Whether FT repairs enough for a share: 20 errors or more, and hardly a resample without any."""
        return self.n_repaired >= _FEWEST_REPAIRS and self.recall.undefined <= _MOST_UNDEFINED


def repairs(queries: pd.DataFrame) -> Repairs:
    """Count what FT and ICL repair, with the intervals of one crossed bootstrap for all shares.

    Answers without labels form one group. Raises ExperimentError where FT diverged.
    """
    known = queries.assign(label=queries["label"].fillna(0) if "label" in queries else 0)
    sample = reporting.as_sample(known, "zsl_correct", "icl_correct", "ft_correct", "label")
    seeds = [(~zsl, ~zsl & icl, ~zsl & ft, labels) for zsl, icl, ft, labels in sample.groups]
    times, drawn = statistics.crossed_draws(sample, n_resamples=_RESAMPLES)
    counts = [times[:, [g]] * drawn[:, numbers].astype(float) for g, numbers in enumerate(sample.queries)]
    resampled = _shares(seeds, counts)
    undefined = float(np.isnan(resampled[0]).mean())
    low, high = np.nanquantile(resampled, (0.025, 0.975), axis=1) if undefined < 1 else np.full((2, 4), np.nan)
    shares = zip(_shares(seeds, [np.ones((1, n)) for n in sample.sizes])[:, 0], low, high, strict=True)
    n_errors, n_repaired = (int(sum(seed[i].sum() for seed in seeds)) for i in (0, 2))
    recall, *others = (Interval(*map(float, ends), undefined=undefined) for ends in shares)
    repaired = [numbers[by_ft] for numbers, (_, _, by_ft, _) in zip(sample.queries, seeds, strict=True)]
    n_different = len(np.unique(np.concatenate(repaired)))
    return Repairs(n_errors, n_repaired, n_different, statistics.widen_degenerate(recall, n_different), *others)


_Seed = tuple[_Array, _Array, _Array, _Array]
"""Over the queries of one seed: wrong under ZSL, repaired by ICL, repaired by FT, label."""


def _shares(seeds: Sequence[_Seed], counts: Sequence[Float[_Array, "r _"]]) -> Float[_Array, "4 r"]:
    """Recall, chance, chance within the label, recall minus the latter; NaN where FT repairs nothing.

    In resample r, query i of seed g counts `counts[g][r, i]` times.
    """
    each = [_counts(*seed, times) for seed, times in zip(seeds, counts, strict=True)]
    both, chance, within_label, n_ft = (sum(column) for column in zip(*each, strict=True))
    with np.errstate(invalid="ignore"):
        return np.array([both, chance, within_label, both - within_label]) / n_ft


def _counts(
    wrong: _Array, by_icl: _Array, by_ft: _Array, labels: _Array, times: Float[_Array, "r n"]
) -> tuple[_Array, ...]:
    """Common repairs, how many there would be if ICL repaired any error, or any of a label, at random, and FT's."""

    def at_random(group: _Array) -> _Array:
        n_errors = times @ group
        return (times @ (by_ft & group)) * (times @ (by_icl & group)) / np.maximum(n_errors, 1)

    of_labels = sum((at_random(wrong & (labels == y)) for y in np.unique(labels)), np.zeros(len(times)))
    return times @ (by_icl & by_ft), at_random(wrong), of_labels, times @ by_ft
