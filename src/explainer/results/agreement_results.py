"""What contexts and trainings do to one model, each beside each: swapped lessons, and what other examples cost.

Everything is computed from the tables "changes" and "pairs" of the experiment "agreement", with Student's interval over
seeds of means over queries and layers (`table_intervals`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from explainer.data.tasks import TASKS
from explainer.results.published import results
from explainer.results.table_intervals import of_means, over_seeds, seed_means
from explainer.theory import statistics
from explainer.theory.statistics import Interval

DESCRIBED = ("kind", "lesson", "epochs", "rate")
"""The columns that tell what a change is."""

FOREIGN = "another task"
"""A lesson of `UpdateFilter`: any task but the own one; the tables have the name of that task."""

_FOREIGN_LESSONS = (*TASKS, "foreign")

LESSONS: Mapping[str, str] = {
    "the same": "own",
    "the same, in another order": "reordered",
    "other examples of the task": "other",
    "shuffled answers": "shuffled",
    "another task": FOREIGN,
    "made-up words": "nonsense",
}
"""The lessons by which either side is swapped, as figures call them."""


@dataclass(frozen=True)
class UpdateFilter:
    """Changes by their kind (ICL or FT), lesson, and, for trainings, number of epochs and rate; None for any.

    The rate is told relative to that of the setting: 1, or 0.1 for the training at a tenth of it.
    """

    kind: str
    lesson: str | None = "own"
    epochs: int | None = None
    rate: float | None = 1.0

    def matches(self, frame: pd.DataFrame, side: str) -> pd.Series:
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
    """The pairs of a grid with what both changes are, as `with_changes` gives them."""
    return with_changes(results(grid, "pairs", **where), results(grid, "changes", **where))


def with_changes(pairs: pd.DataFrame, changes: pd.DataFrame) -> pd.DataFrame:
    """Pairs with what both changes are: columns a_kind, a_lesson, a_epochs, a_rate, and so for b."""
    for side in "ab":
        names = {"change": side} | {name: f"{side}_{name}" for name in DESCRIBED}
        described = changes[["setting", *names]].rename(columns=names)
        pairs = pairs.merge(described, on=["setting", side], how="left", validate="many_to_one")
    return pairs


def pairs_between(frame: pd.DataFrame, one: UpdateFilter, other: UpdateFilter) -> pd.DataFrame:
    """The pairs of one such change with one other such, whichever of them is a."""
    first = one.matches(frame, "a") & other.matches(frame, "b")
    return frame[first | (one.matches(frame, "b") & other.matches(frame, "a"))]


def common_repairs(frame: pd.DataFrame, of: UpdateFilter, by: UpdateFilter) -> pd.DataFrame:
    """How many zero-shot errors a change repairs, how many another one, and how many both, for each task and seed.

    Columns errors, of, by, both, and chance = of by / errors. The recall of the one by the other is both / of.
    """
    chosen = pairs_between(frame, of, by)
    first = of.matches(chosen, "a") & by.matches(chosen, "b")  # `of` is side a
    counts = pd.DataFrame(
        {
            "task": chosen["task"], "seed": chosen["seed"], "errors": chosen["zsl_errors"],
            "of": chosen["a_fixes"].where(first, chosen["b_fixes"]),
            "by": chosen["b_fixes"].where(first, chosen["a_fixes"]), "both": chosen["both_fix"],
        }
    )  # fmt: skip
    counts["chance"] = counts["of"] * counts["by"] / counts["errors"]
    return counts.groupby(["task", "seed"], sort=False).sum()


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


# Swapped lessons, and what other examples cost.

ICL, FT = UpdateFilter("ICL"), UpdateFilter("FT", epochs=10)


def lesson_swaps(pairs: pd.DataFrame, measure: str, training: UpdateFilter = FT) -> dict[str, dict[str, Interval]]:
    """A measure of a context and a training when either learns another lesson, beside two trainings and two contexts.

    Means over tasks with Student's interval over seeds, by who is compared and then by the lesson of the swapped side,
    as far as the pairs have it. Of other tasks those count that contexts have learned, too, whichever side is swapped.
    """
    of_contexts = {lesson for side in "ab" for lesson in pairs[f"{side}_lesson"][pairs[f"{side}_kind"] == "ICL"]}
    elsewhere = set(TASKS) - of_contexts
    pairs = pairs[~(pairs["a_lesson"].isin(elsewhere) | pairs["b_lesson"].isin(elsewhere))]
    kinds = {
        "context and training, training swapped": (ICL, training),
        "context and training, context swapped": (training, ICL),
        "two training runs": (training, training),
        "two contexts": (ICL, ICL),
    }
    swaps: dict[str, dict[str, Interval]] = {kind: {} for kind in kinds}
    for kind, (kept, swapped) in kinds.items():
        for name, lesson in LESSONS.items():
            chosen = pairs_between(pairs, kept, replace(swapped, lesson=lesson))
            if len(chosen) and not (kept == swapped and lesson == "own"):
                swaps[kind][name] = over_seeds(chosen, measure)
    return swaps


def n_complete_seeds(pairs: pd.DataFrame, training: UpdateFilter = FT) -> dict[str, int]:
    """How many seeds have a training on each lesson of `lesson_swaps` that diverged on no task."""
    trained = {name: pairs_between(pairs, ICL, replace(training, lesson=lesson)) for name, lesson in LESSONS.items()}
    return {name: len(seed_means(of, "sim_aou")) for name, of in trained.items() if len(of)}


CORNERS = ["own", "training_other", "context_other", "both_other", "contexts", "trainings"]
"""Columns of tables: own examples on both sides, other ones on either side and on both, two contexts, two trainings."""


def cost_of_examples(m: Any) -> dict[str, Any]:
    """What other examples of the task cost a similarity, of the means of CORNERS, and what they would if they counted.

        training swapped    own - training_other
        context swapped     own - context_other
        both swapped        (own + both_other - training_other - context_other) / 2
        yardstick           own sqrt((1 - C) (1 - F)),  C = contexts, F = trainings

    Either swap alone also asks what this training, or this context, is like; the third leaves that out. The yardstick
    is what the fall would be if what is special to the examples agreed as well as the whole does.
    """
    return {
        "training swapped": m["own"] - m["training_other"],
        "context swapped": m["own"] - m["context_other"],
        "both swapped": (m["own"] + m["both_other"] - m["training_other"] - m["context_other"]) / 2,
        "yardstick": yardstick(m),
    }


def yardstick(m: Any) -> Any:
    """What other examples, or words, would cost if they counted as the task does: own sqrt((1 - C) (1 - F))."""
    return m["own"] * ((1 - m["contexts"]) * (1 - m["trainings"])) ** 0.5


def cost_of_other_examples(pairs: pd.DataFrame, measure: str, training: UpdateFilter = FT) -> dict[str, Interval]:
    """`cost_of_examples` of a measure of a context and a training, and the yardstick with the order aside.

        order aside         own sqrt((C_r - C) (F_r - F)),  C_r and F_r of the own lesson in two orders

    The yardstick counts the order of training as special to the examples; "order aside" does not. Means over tasks:
    the falls with the jackknife over seeds, of the seeds and tasks that have all that a fall takes; the yardsticks with
    Student over those of the seeds. "both swapped" and "order aside" only where the pairs have what they take.
    """
    icl_other, ft_other = (replace(side, lesson="other") for side in (ICL, training))
    kinds = {
        "own": (ICL, training),
        "training_other": (ICL, ft_other),
        "context_other": (icl_other, training),
        "both_other": (icl_other, ft_other),
        "contexts": (ICL, icl_other),
        "trainings": (training, ft_other),
        "contexts_reordered": (ICL, replace(ICL, lesson="reordered")),
        "trainings_reordered": (training, replace(training, lesson="reordered")),
    }
    chosen = {name: pairs_between(pairs, *two).groupby(["seed", "task"])[measure].mean() for name, two in kinds.items()}
    table = pd.DataFrame(chosen)
    swapped = ["training_other", "context_other"]
    takes = {"training swapped": swapped[:1], "context swapped": swapped[1:], "both swapped": [*swapped, "both_other"]}
    costs = {}
    for name, others in takes.items():
        known = table.dropna(subset=["own", *others])
        if len(known):
            cost = known.assign(cost=cost_of_examples(known)[name])
            costs[name] = of_means(cost, "cost", ["seed", "task"])
    of_seeds = pd.DataFrame({name: seed_means(table.reset_index(), name) for name in map(str, table)})
    costs["yardstick"] = statistics.student(yardstick(of_seeds).dropna())
    if not of_seeds[["contexts_reordered", "trainings_reordered"]].dropna().empty:
        special_of_context, special_of_training = (
            (of_seeds[f"{two}_reordered"] - of_seeds[two]).clip(lower=0) for two in ("contexts", "trainings")
        )
        order_aside = of_seeds["own"] * (special_of_context * special_of_training) ** 0.5
        costs["order aside"] = statistics.student(order_aside.dropna())
    return costs


def accuracy_by_lesson(changes: pd.DataFrame, training: UpdateFilter = FT) -> dict[str, dict[str, Interval]]:
    """Right answers to the queries of a task after each lesson, by how it was taught and then by the lesson.

    `changes` are those of the experiment "agreement". Means over tasks, Student's interval over seeds.
    """
    described = changes.rename(columns={name: f"a_{name}" for name in DESCRIBED})
    kinds = {"after the context": ICL, "after the training": training}
    return {
        kind: {
            name: over_seeds(described[replace(which, lesson=lesson).matches(described, "a")], "accuracy")
            for name, lesson in LESSONS.items()
        }
        for kind, which in kinds.items()
    }
