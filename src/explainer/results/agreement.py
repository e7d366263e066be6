"""What contexts and trainings do to one model, each beside each: between which floor and ceiling a similarity stands.

Everything is computed from the tables "changes" and "pairs" of the experiment "agreement", with Student's interval over
seeds of means over queries and layers.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from explainer.data.tasks import TASKS
from explainer.results import aggregate, reporting
from explainer.results.published import results
from explainer.theory import statistics
from explainer.theory.statistics import Interval

DESCRIBED = ("kind", "lesson", "epochs", "rate")
"""The columns that tell what a change is."""

FOREIGN = "another task"
"""A lesson of `UpdateFilter`: any task but the own one; the tables have the name of that task."""

_FOREIGN_LESSONS = (*TASKS, "foreign")


@dataclass(frozen=True)
class UpdateFilter:
    """Changes by their kind (ICL or FT), lesson, and, for trainings, number of epochs and rate; None for any.

    The rate is told relative to that of the setting: 1, or 0.1 for the training at a tenth of it.
    """

    kind: str
    lesson: str | None = "own"
    epochs: int | None = None
    rate: float | None = 1.0

    def of(self, frame: pd.DataFrame, side: str) -> pd.Series:
        """Whether the change of a side, a or b, is such a one, for each row."""
        chosen = frame[f"{side}_kind"] == self.kind
        if self.lesson is not None:
            chosen &= frame[f"{side}_lesson"].isin(_FOREIGN_LESSONS if self.lesson == FOREIGN else (self.lesson,))
        if self.kind == "FT":
            if self.epochs is not None:
                chosen &= frame[f"{side}_epochs"] == self.epochs
            if self.rate is not None:
                chosen &= np.isclose(frame[f"{side}_rate"].astype(float) / frame["lr"], self.rate)
        return chosen


def pairs(grid: str, **where: Any) -> pd.DataFrame:
    """The pairs of a grid with what both changes are, as `with_updates` gives them."""
    return with_updates(results(grid, "pairs", **where), results(grid, "changes", **where))


def with_updates(found: pd.DataFrame, changes: pd.DataFrame) -> pd.DataFrame:
    """Pairs with what both changes are: columns a_kind, a_lesson, a_epochs, a_rate, and so for b."""
    for side in "ab":
        names = {"change": side} | {name: f"{side}_{name}" for name in DESCRIBED}
        its = changes[["setting", *names]].rename(columns=names)
        found = found.merge(its, on=["setting", side], how="left", validate="many_to_one")
    return found


def pairs_between(frame: pd.DataFrame, one: UpdateFilter, other: UpdateFilter) -> pd.DataFrame:
    """The pairs of one such change with one other such, whichever of them is a."""
    either = (one.of(frame, "a") & other.of(frame, "b")) | (one.of(frame, "b") & other.of(frame, "a"))
    return frame[either]


def common_repairs(frame: pd.DataFrame, of: UpdateFilter, by: UpdateFilter) -> pd.DataFrame:
    """How many zero-shot errors a change repairs, how many another one, and how many both, for each task and seed.

    Columns errors, of, by, both, and chance = of by / errors. The recall of the one by the other is both / of.
    """
    found = pairs_between(frame, of, by)
    first = of.of(found, "a") & by.of(found, "b")  # `of` is side a
    counts = pd.DataFrame(
        {
            "task": found["task"], "seed": found["seed"], "errors": found["zsl_errors"],
            "of": found["a_fixes"].where(first, found["b_fixes"]),
            "by": found["b_fixes"].where(first, found["a_fixes"]), "both": found["both_fix"],
        }
    )  # fmt: skip
    counts["chance"] = counts["of"] * counts["by"] / counts["errors"]
    return counts.groupby(["task", "seed"], sort=False).sum()


def by_task(frame: pd.DataFrame, measure: str) -> dict[str, Interval]:
    """Mean of a measure over the pairs of each seed, and Student's interval over seeds, for each task."""
    return aggregate.by_group(_of_seeds(frame, measure), "task", statistics.student)


def _of_seeds(frame: pd.DataFrame, measure: str) -> pd.Series:
    return frame.groupby(["task", "seed"], sort=False)[measure].mean()


def by_seed(frame: pd.DataFrame, measure: str) -> pd.Series:
    """Mean over tasks for each seed that has every task."""
    return _of_seeds(frame, measure).unstack("task").mean(axis="columns", skipna=False).dropna()


def over_tasks(frame: pd.DataFrame, measure: str) -> Interval:
    """Student's interval over seeds of the means over tasks."""
    return statistics.student(by_seed(frame, measure).to_numpy())


def differences(a: pd.DataFrame, b: pd.DataFrame, measure: str) -> dict[str, Interval]:
    """A minus B, seed by seed, for each task; p-values are corrected by Holm's procedure for the number of tasks."""
    of_seeds = (_of_seeds(a, measure) - _of_seeds(b, measure)).dropna()
    return reporting.corrected(aggregate.by_group(of_seeds, "task", statistics.student))


def mean_difference(a: pd.DataFrame, b: pd.DataFrame, measure: str) -> Interval:
    """A minus B in the mean over tasks, paired by seed; a seed that lacks one side counts for the other tasks only.

    Student's interval of the jackknife over seeds, of the mean over tasks of each task's mean over its seeds.
    """
    of_seed = (_of_seeds(a, measure) - _of_seeds(b, measure)).dropna().unstack("task")
    return aggregate.jackknife(of_seed, lambda kept: kept.mean().mean())


def rank_of_own_task(frame: pd.DataFrame, context: UpdateFilter, epochs: int, measure: str) -> pd.DataFrame:
    """How many trainings on other tasks are more similar to a context than the training on its own task.

    A row for each task and seed: `above`, and `n`, the number of other tasks.
    """
    trained = pairs_between(frame, context, UpdateFilter("FT", None, epochs))
    lesson = trained["b_lesson"].where(trained["b_kind"] == "FT", trained["a_lesson"])
    draw, foreign = ["task", "seed"], lesson.isin(TASKS)
    own = trained[lesson == "own"].set_index(draw)[measure].reindex(pd.MultiIndex.from_frame(trained[draw]))
    counted = trained[draw].assign(above=foreign & (trained[measure] > own.to_numpy()), n=foreign)
    return counted.groupby(draw, sort=False).sum().reset_index()
