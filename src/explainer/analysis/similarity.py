"""What the similarities of all tasks say together, and which zero-shot errors FT and ICL repair."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from explainer.analysis import reporting
from explainer.theory import statistics
from explainer.theory.statistics import Interval

Array = np.ndarray

RESAMPLES = 500  # the interval's ends are known to about a tenth of its width
FEWEST_REPAIRS = 20  # with fewer, the interval of a share is wider than 0.4
MOST_UNDEFINED = 0.01


def over_tasks(values: Mapping[str, Interval]) -> Interval:
    """Mean over tasks with Student's interval: tasks are the sample, whatever their n."""
    return statistics.student(list(reporting.estimates(values).values()))


class Difference(NamedTuple):
    """A mean difference over tasks with Student's interval and the p-value of the paired t-test; tasks above 0."""

    interval: Interval
    above: int


def difference_over_tasks(a: Mapping[str, Interval], b: Mapping[str, Interval]) -> Difference:
    """A - B task by task: tasks are the sample, seeds and queries theirs. Tasks that only one has are left out."""
    each = np.array([a[task].estimate - b[task].estimate for task in a if task in b])
    return Difference(statistics.student(each), int((each > 0).sum()))


@dataclass(frozen=True)
class Repairs:
    """Rec2FTP over all seeds of a task, its chance value, the same within each right answer, and what is above that.

    The chance values weigh seeds and labels as Rec2FTP does, by the errors that FT repairs: sum_g f_g c_g / sum_g f_g
    over the groups g (seeds, or seeds and labels), f_g the repairs of FT and c_g the share of zero-shot errors that ICL
    repairs in the group. Two models that only prefer the same label more often have a Rec2FTP above `chance`, but not
    above `within_label`. The excess is recall minus `within_label`.
    """

    n_errors: int
    n_repaired: int
    recall: Interval
    chance: Interval
    within_label: Interval
    excess: Interval

    @property
    def carries(self) -> bool:
        """Whether FT repairs enough for a share: 20 errors or more, and hardly a resample without any."""
        return self.n_repaired >= FEWEST_REPAIRS and self.recall.undefined <= MOST_UNDEFINED


def repairs(queries: pd.DataFrame) -> Repairs:
    """Count what FT and ICL repair, with intervals by nested bootstrap over seeds and queries for all shares alike.

    Answers without labels form one group. Raises StudyError where FT diverged.
    """
    known = queries.assign(label=queries["label"].fillna(0))
    columns = reporting.groups(known, "zsl_correct", "icl_correct", "ft_correct", "label")
    seeds = [(~zsl, ~zsl & icl, ~zsl & ft, labels) for zsl, icl, ft, labels in columns]
    generator = np.random.default_rng(0)
    resampled = np.array([_shares(_resample(seeds, generator)) for _ in range(RESAMPLES)])
    undefined = float(np.isnan(resampled[:, 0]).mean())
    low, high = np.nanquantile(resampled, (0.025, 0.975), axis=0) if undefined < 1 else np.full((2, 4), np.nan)
    shares = zip(_shares(seeds), low, high, strict=True)
    n_errors, n_repaired = (int(sum(seed[i].sum() for seed in seeds)) for i in (0, 2))
    return Repairs(n_errors, n_repaired, *(Interval(*map(float, ends), undefined=undefined) for ends in shares))


Seed = tuple[Array, Array, Array, Array]
"""Over the queries of one seed: wrong under ZSL, repaired by ICL, repaired by FT, label."""


def _resample(seeds: Sequence[Seed], generator: np.random.Generator) -> list[Seed]:
    drawn = [seeds[g] for g in generator.integers(len(seeds), size=len(seeds))]
    rows = [generator.integers(len(seed[0]), size=len(seed[0])) for seed in drawn]
    return [tuple(array[row] for array in seed) for seed, row in zip(drawn, rows, strict=True)]


def _shares(seeds: Sequence[Seed]) -> Float[Array, " 4"]:
    """Recall, chance, chance within the label, recall minus the latter; NaN where FT repairs nothing."""
    both, chance, within_label = (sum(counts) for counts in zip(*(_counts(*seed) for seed in seeds), strict=True))
    n_ft = sum(by_ft.sum() for _, _, by_ft, _ in seeds)
    return np.array([both, chance, within_label, both - within_label]) / n_ft if n_ft else np.full(4, np.nan)


def _counts(wrong: Array, by_icl: Array, by_ft: Array, labels: Array) -> tuple[float, float, float]:
    """Common repairs, and how many there would be if ICL repaired any error, or any of a label, at random."""
    groups = [wrong & (labels == y) for y in np.unique(labels)]
    chance, *of_labels = (by_ft[g].sum() * by_icl[g].mean() if g.any() else 0.0 for g in (wrong, *groups))
    return float((by_icl & by_ft).sum()), chance, sum(of_labels)
