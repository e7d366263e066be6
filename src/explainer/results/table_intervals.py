"""The one reducer of tables: means over what is nested within draws, and intervals over the draws.

A draw is a seed, or a model that was trained; within it there are tasks (or pairs of them, or cues), within these
queries and layers. Tasks are fixed: a mean over them is that of their means, and draws alone make an interval.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from explainer.theory import statistics
from explainer.theory.statistics import Interval

_T = TypeVar("_T")
_Name = TypeVar("_Name", bound=Hashable)

Value = Callable[[pd.Series], float]
"""A function of the means, or the sums, of columns."""


def by_group(rows: pd.DataFrame, by: str, function: Callable[[pd.DataFrame], _T]) -> dict[Any, _T]:
    """A function of the rows of each task, kind or control as they come, or of each whole number, in their order."""
    if pd.api.types.is_numeric_dtype(rows[by]):
        return {int(of_number[by].iloc[0]): function(of_number) for _, of_number in rows.groupby(by)}
    return {name: function(of_name) for name, of_name in rows.groupby(by, sort=False)}


def seed_means(rows: pd.DataFrame, columns: str | list[str], over: str = "task", *kinds: str) -> Any:
    """Means of columns, for each seed (and kind), over the means of each task; seeds that lack a value are left out."""
    of_tasks: Any = rows.groupby(["seed", over, *kinds], sort=False)[columns].mean().unstack(over)
    if isinstance(columns, str):
        return of_tasks.mean(axis=1, skipna=False).dropna().sort_index()
    means = {column: of_tasks[column].mean(axis=1, skipna=False) for column in columns}
    return pd.DataFrame(means).dropna().sort_index()


def over_seeds(rows: pd.DataFrame, column: str) -> Interval:
    """The mean of a column over tasks, with Student's interval over the seeds that have every task."""
    return statistics.student(seed_means(rows, column).to_numpy())


def by_task(rows: pd.DataFrame, column: str, minus: pd.DataFrame | None = None) -> dict[str, Interval]:
    """The mean of a column for each task, with Student's interval over its seeds.

    With other rows to subtract, it is the difference, seed by seed, and p-values are corrected by Holm's procedure for
    the number of tasks.
    """
    of_seeds = (
        rows.groupby(["task", "seed"], sort=False)[column].mean() if minus is None else _paired(rows, minus, column)
    )
    found = {str(task): statistics.student(values) for task, values in of_seeds.groupby("task", sort=False)}
    return found if minus is None else holm_corrected(found)


def mean_difference(a: pd.DataFrame, b: pd.DataFrame, column: str) -> Interval:
    """A minus B in the mean over tasks, paired by seed; a seed that lacks one side counts for the other tasks only."""
    return of_means(_paired(a, b, column).to_frame("difference"), "difference", ["seed", "task"])


def _paired(a: pd.DataFrame, b: pd.DataFrame, column: str) -> pd.Series:
    of_a, of_b = (side.groupby(["task", "seed"], sort=False)[column].mean() for side in (a, b))
    return (of_a - of_b).dropna()


def by_layer(layers: pd.DataFrame, column: str) -> Interval:
    """The mean of a column over tasks in each layer, an interval of arrays: Student's over seeds."""
    return statistics.student(layers.groupby(["seed", "layer"])[column].mean().unstack().to_numpy())


def of_means(rows: pd.DataFrame, value: str | Value, by: Sequence[str] = ("seed",)) -> Interval:
    """A column, or a function of columns, of means over draws: T(m), with Student's interval of the jackknife.

    `by` names draws and, where there are any, tasks: m are the means over tasks of their means over draws of the means
    over the rows of both. The interval is of the S numbers S T - (S - 1) T_without_i.
    """
    draws, *tasks = by
    function = itemgetter(value) if isinstance(value, str) else value
    means = rows.groupby([draws, *tasks]).mean(numeric_only=True)
    return _jackknife(means, lambda kept: function((kept.groupby(tasks).mean() if tasks else kept).mean()))


def of_sums(rows: pd.DataFrame, value: Value, by: Sequence[str] = ("seed",)) -> Interval:
    """A function of the sums of columns and of the number of rows, `n`, jackknifed over draws, the first of `by`."""
    sums = rows.assign(n=1).groupby(list(by)).sum(numeric_only=True)
    return _jackknife(sums, lambda kept: value(kept.sum()))


def _jackknife(table: pd.DataFrame, statistic: Callable[[pd.DataFrame], float]) -> Interval:
    """T of a table whose first index is the draw, with Student's interval of S T - (S - 1) T_without_i."""
    draws = table.index.unique(0)
    S, whole = len(draws), statistic(table)
    if S < 2:
        return statistics.student([whole])
    return statistics.student([S * whole - (S - 1) * statistic(table.drop(index=draw)) for draw in draws])


def holm_corrected(tested: Mapping[_Name, Interval]) -> dict[_Name, Interval]:
    """The same intervals with p-values corrected for their number by Holm's procedure."""
    p_values = statistics.holm(np.array([one.p_value for one in tested.values()], dtype=float))
    return {name: replace(one, p_value=float(p)) for (name, one), p in zip(tested.items(), p_values, strict=True)}


class Signs(NamedTuple):
    """In how many cases an estimate is above zero (p < 0.05), below it, or neither."""

    rises: int
    falls: int
    undecided: int

    @classmethod
    def among(cls, estimates: Mapping[Any, Interval]) -> "Signs":
        """Count estimates whose p-values are corrected."""
        signs = [np.sign(one.estimate) * (one.p_value < 0.05) for one in estimates.values()]
        return cls(*(signs.count(sign) for sign in (1, -1, 0)))
