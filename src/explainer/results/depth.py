"""Similarities along the depth of a model: do they rise towards the top, and in which layers are they there at all?

Rows are values in the layers, (seeds, layers), layer 0 next to the input, as `reporting.settings_by_layer` gives them.
All intervals are Student's over seeds; where seeds share many queries they are too narrow.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from explainer.results import aggregate, reporting
from explainer.results.published import TEN_TASKS, results
from explainer.theory import statistics
from explainer.theory.statistics import Interval

_Rows = np.ndarray
_LEVEL = 0.05  # of p-values


def by_task(control: str, grids: Sequence[str] | None = None, **where: Any) -> dict[str, pd.DataFrame]:
    """The tables "layers" of a control, task by task; arguments as in `explainer.results`.

    Without grids those of `published.TEN_TASKS`. Raises ExperimentError, too, where the settings of a task differ in
    more than their seeds.
    """
    frames = pd.concat([results(grid, "layers", control=control, **where) for grid in grids or TEN_TASKS[control]])
    tables = frames.drop_duplicates(["setting", "layer"])
    reporting.require_only_seeds_differ(tables)
    return aggregate.split(tables, "task")


def rank_trend(rows: _Rows) -> Interval:
    """Does a similarity rise with depth? Spearman's rank correlation of layer and value, seed by seed."""
    order = np.arange(rows.shape[1])
    # SciPy makes the class of this result when it is imported, where no type checker sees its fields.
    trends = [spearmanr(order, row, nan_policy="omit").statistic for row in rows]  # pyright: ignore[reportAttributeAccessIssue]
    return statistics.student(trends)


class Signs(NamedTuple):
    """In how many cases an estimate is settled above zero, settled below it, or not settled."""

    rises: int
    falls: int
    undecided: int


def settled_signs(estimates: Mapping[str, Interval]) -> Signs:
    """How many of the estimates have a sign that is settled after Holm's correction for their number."""
    return count_signs(reporting.corrected(estimates))


def count_signs(estimates: Mapping[Any, Interval]) -> Signs:
    """How many of the estimates, whose p-values are corrected, are settled above zero, below it, or not at all."""
    found = [np.sign(e.estimate) * (e.p_value < _LEVEL) for e in estimates.values()]
    return Signs(*(found.count(sign) for sign in (1, -1, 0)))


def settled(rows: _Rows) -> np.ndarray:
    """Whether the mean over seeds of each layer is above zero after Holm's correction for the number of layers."""
    means = statistics.student(rows)
    return (statistics.holm(np.asarray(means.p_value)) < _LEVEL) & (means.estimate > 0)
