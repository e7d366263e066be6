"""What tables of `results` say together: means over what is nested, and intervals over the draws.

A draw is a seed, or a model that was trained; within it there are tasks (or pairs of them, or cues), within these
queries and layers. Tasks are fixed: a mean over them is that of their means, and draws alone make an interval.
"""

from collections.abc import Callable
from operator import itemgetter
from typing import Any, TypeVar

import pandas as pd

from explainer.theory import statistics
from explainer.theory.statistics import Interval

_T = TypeVar("_T")

Value = Callable[[pd.Series], float]
"""A function of the means, or the sums, of columns."""


def split(rows: pd.DataFrame, by: str) -> dict[str, pd.DataFrame]:
    """The rows of each task, kind or control, in the order in which these come."""
    return by_group(rows, by, lambda its: its)


def by_group(rows: pd.DataFrame | pd.Series, by: str, of: Callable[[Any], _T]) -> dict[str, _T]:
    """What a function says of the rows of each task, kind or control, in the order in which these come."""
    return {str(name): of(its) for name, its in rows.groupby(by, sort=False)}


def by_number(rows: pd.DataFrame, by: str, of: Callable[[pd.DataFrame], _T]) -> dict[int, _T]:
    """What a function says of the rows of each whole number of a column, like steps of a training, in their order."""
    return {int(its[by].iloc[0]): of(its) for _, its in rows.groupby(by)}


def nested_means(rows: pd.DataFrame, columns: str | list[str], over: str, *kinds: str) -> Any:
    """Means of columns over tasks, the column `over`, of the means over the rows of each, for each seed and kind."""
    return rows.groupby(["seed", over, *kinds])[columns].mean().groupby(["seed", *kinds]).mean()


def over_draws(table: pd.DataFrame) -> dict[int, Interval]:
    """Student's interval over the draws, which are the columns, for each row: a number of steps, of tokens."""
    return {int(x): statistics.student(row) for x, row in zip(table.index, table.to_numpy(), strict=True)}


def jackknife(table: pd.DataFrame, statistic: Callable[[pd.DataFrame], float]) -> Interval:
    """A statistic T of a table whose first index is the draw, with Student's interval of S T - (S - 1) T_without_i."""
    draws = table.index.unique(0)
    S, whole = len(draws), statistic(table)
    if S < 2:
        return statistics.student([whole])
    return statistics.student([S * whole - (S - 1) * statistic(table.drop(index=draw)) for draw in draws])


def of_means(table: pd.DataFrame, value: Value) -> Interval:
    """A function of the means of columns over draws, the index, jackknifed over these.

    Where tasks are the second index, it is of the means over tasks of their means over draws.
    """
    tasks = table.index.names[1:]
    return jackknife(table, lambda kept: value((kept.groupby(tasks).mean() if tasks else kept).mean()))


def mean(rows: pd.DataFrame, column: str, by: list[str]) -> Interval:
    """`of_means` of one column, of its means over the rows of each draw, and of each task if `by` has both."""
    return of_means(rows.groupby(by)[[column]].mean(), itemgetter(column))


def of_sums(rows: pd.DataFrame, by: list[str], value: Value) -> Interval:
    """A function of the sums of columns and of the number of rows, `n`, jackknifed over draws, the first of `by`."""
    sums = rows.assign(n=1).groupby(by).sum(numeric_only=True)
    return jackknife(sums, lambda kept: value(kept.sum()))
