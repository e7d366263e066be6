"""Contrasts of two lessons: minimal pairs of tasks, and rules that nobody could know.

Everything takes tables of `results` for grids of "minimal-pairs", whose draws are seeds of a pair of tasks, or of
"new-rule", whose draws are seeds of a kind of cue. Values are functions of means over pairs, or cues, which are fixed,
with Student's interval of the jackknife over seeds (`table_intervals.of_means`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from explainer.results import table_intervals
from explainer.results.agreement_results import yardstick
from explainer.results.published import results
from explainer.theory.statistics import Interval


def both_grids(grid: str, table: str = "settings") -> pd.DataFrame:
    """A table of a grid and of its fellow with categories, of which there are fewer words: all three cues."""
    return results((grid, f"{grid}-category"), table)


def _draws(rows: pd.DataFrame) -> list[str]:
    """The columns of a draw: of a pair of tasks, or of a kind of cue."""
    return ["seed", "pair" if "pair" in rows else "cue"]


def similarities(rows: pd.DataFrame) -> dict[str, Interval]:
    """The similarities of contexts and trainings of one strength, with their floor, ceilings and yardstick.

        own, other              cos(c_A - c_B, f_A - f_B), context and training of the same words, or of others
        own - other             what the words cost
        yardstick               own sqrt((1 - C) (1 - F)), what they would cost if they counted as the task does
        contexts, trainings     C and F, two contrasts of one kind
        own / sqrt(C F)         own, corrected for what two lessons of one task do not share
        examples, reordered     of what two sets of words do differently in one task, and its ceiling

    `rows` are those of "settings", or of "strengths" of one number of epochs and part of the layers. NaN where C or F
    is not above 0.
    """
    values: dict[str, str | table_intervals.Value] = {
        name: name for name in ("own", "other", "contexts", "trainings", "examples", "reordered")
    }
    draws = _draws(rows)
    means = rows.groupby(draws)[list(values)].mean()
    values |= {
        "own - other": lambda m: m.own - m.other,
        "yardstick": yardstick,
        "own / sqrt(C F)": lambda m: m.own / largest_similarity(m.contexts, m.trainings),
    }
    return {name: table_intervals.of_means(means, value, draws) for name, value in values.items()}


def largest_similarity(contexts: float, trainings: float) -> float:
    """What a context and a training could share, given how well two of each agree: sqrt(C F), or NaN."""
    return (contexts * trainings) ** 0.5 if min(contexts, trainings) > 0 else np.nan


# Right answers.


def accuracy_by_own_rule(changes: pd.DataFrame) -> pd.Series:
    """The share of right answers by the rule that was taught, a number for each row; rule A where none was."""
    return changes["right_a"].where(changes["lesson"] != "B", changes["right_b"])


def mean_by(rows: pd.DataFrame, by: str, column: str = "right") -> dict[Any, Interval]:
    """A column by the strength of a lesson, or by the intervention, mean over directions and over pairs or cues."""
    return table_intervals.by_group(rows, by, lambda its: table_intervals.of_means(its, column, _draws(its)))


def share_of_the_whole(interventions: pd.DataFrame) -> dict[str, Interval]:
    """What each part does of what the whole change does: (x - base) / (whole - base) of the log odds of A over B."""
    draws = _draws(interventions)
    odds = interventions.pivot_table(index=draws, columns="intervention", values="log_odds")
    bases: Mapping[str, str] = {
        "context_along_ft": "context", "context_along_other_ft": "context", "context_along_near": "context",
        "ft_along_icl": "ft", "ft_along_near": "ft",
    }  # fmt: skip

    def share(part: str, base: str) -> Interval:
        return table_intervals.of_means(odds, lambda m: (m[part] - m[base]) / (m[f"{base}_whole"] - m[base]), draws)

    return {part: share(part, base) for part, base in bases.items()}


# Votes.


def agreement(answers: pd.DataFrame, given: str, *, wrong: bool = False) -> dict[str, Interval]:
    """How often a column of "answers" is what the model answers after the context, or does where that is wrong.

    agreement       hits / queries; cues count by their queries
    chance          the same if each query were given what a random query of the same draw and rule is given
    beyond chance   (agreement - chance) / (1 - chance)
    """
    draw = ["seed", "cue", "rule"]
    shares = answers.groupby([*draw, given]).size() / answers.groupby(draw).size()
    asked = answers[answers["icl"] != answers["right"]] if wrong else answers
    chance = shares.reindex(pd.MultiIndex.from_frame(asked[[*draw, "icl"]])).fillna(0).to_numpy()
    counted = asked.assign(hit=asked[given] == asked["icl"], chance=chance)
    values: dict[str, table_intervals.Value] = {
        "agreement": lambda sums: sums.hit / sums.n,
        "chance": lambda sums: sums.chance / sums.n,
        "beyond chance": lambda sums: (sums.hit - sums.chance) / (sums.n - sums.chance),
    }
    return {name: table_intervals.of_sums(counted, value, ["seed", "cue"]) for name, value in values.items()}
