"""Similarities along the depth of a model: do they rise towards the top, and in which layers are they there at all?

Rows are values in the layers, (seeds, layers), layer 0 next to the input, as `explainer.results.reporting.layer_rows`
gives them; NaN where there is none. All intervals are Student's over seeds. Only means over queries are kept for each
layer, so that what seeds have in common by sharing queries cannot be taken into account: where they share many, as on
word pairs, these intervals are too narrow (`explainer.results.coverage`, "Student over seeds").
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from explainer.results import reporting
from explainer.results.published import TEN_TASKS, results
from explainer.theory import statistics
from explainer.theory.statistics import Interval

_Rows = np.ndarray


def by_task(control: str, grids: Sequence[str] | None = None, **where: Any) -> dict[str, pd.DataFrame]:
    """The tables "layers" of a control, task by task; arguments as in `explainer.results`.

    Without grids those of `published.TEN_TASKS`, of the comparison itself or the untrained model. Raises StudyError,
    too, where the cells of a task differ in more than their seeds: a grid of two token positions has to be asked for
    one of them.
    """
    frames = pd.concat([results(grid, "layers", control=control, **where) for grid in grids or TEN_TASKS[control]])
    tables = frames.drop_duplicates(["cell", "layer"])
    reporting.require_one_setting(tables)
    return dict(list(tables.groupby("task", sort=False)))


def rank_trend(rows: _Rows) -> Interval:
    """Does a similarity rise with depth? Spearman's rank correlation of layer and value, seed by seed.

    1 if every layer is above the one below it, -1 if below, 0 without a trend. The layers of one curve depend on each
    other, so the p-value of a single rank correlation would be far too small: only the spread over seeds is used.
    """
    order = np.arange(rows.shape[1])
    return statistics.student([spearmanr(order, row, nan_policy="omit").statistic for row in rows])


class Signs(NamedTuple):
    """In how many cases an estimate is settled above zero, settled below it, or not settled."""

    rises: int
    falls: int
    undecided: int


def verdict(estimates: Mapping[str, Interval]) -> Signs:
    """How many of the estimates have a sign that is settled after Holm's correction for their number."""
    return signs(reporting.corrected(estimates))


def signs(estimates: Mapping[str, Interval], level: float = 0.05) -> Signs:
    """How many of the estimates, whose p-values are corrected, are settled above zero, below it, or not at all."""
    found = [np.sign(e.estimate) * (e.p_value < level) for e in estimates.values()]
    return Signs(*(found.count(sign) for sign in (1, -1, 0)))


def settled(rows: _Rows, level: float = 0.05) -> np.ndarray:
    """Whether the mean over seeds of each layer is above zero after Holm's correction for the number of layers."""
    means = statistics.student(rows)
    return (statistics.holm(means.p_value) < level) & (means.estimate > 0)
