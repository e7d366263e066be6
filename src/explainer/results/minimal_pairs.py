"""What the published minimal pairs of lessons say: similarities of contrasts, and answers when they are put in.

Everything takes tables of `results("minimal-pairs")`. A value is a function of means over pairs of tasks of the means
over their seeds, with Student's interval of the jackknife over seeds.
"""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from explainer.results import reporting
from explainer.theory.statistics import Interval

_Means = Mapping[str, float]  # columns as means over pairs of tasks


def _interval(rows: pd.DataFrame, value: Callable[[_Means], float]) -> Interval:
    """A function of the means of columns, with its interval."""
    numbers = rows.select_dtypes("number").columns.drop("seed")
    of_settings = rows.groupby(["seed", "pair"])[list(numbers)].mean()

    def of(kept: pd.DataFrame) -> float:
        means = kept.groupby("pair").mean().mean()
        return value(dict(zip(means.index, means, strict=True)))

    return reporting.jackknife(of_settings, of)


def _mean(rows: pd.DataFrame, column: str) -> Interval:
    """The mean of one column over pairs and seeds."""
    return _interval(rows[["seed", "pair", column]], lambda means: means[column])


def similarities(rows: pd.DataFrame) -> dict[str, Interval]:
    """The similarities of contexts and trainings of one strength, with their floor, ceilings and yardstick.

        own, other              cos(c_A - c_B, f_A - f_B), context and training of the same words, or of others
        own - other             what the words cost
        yardstick               own sqrt((1 - C) (1 - F)), what they would cost if they counted as the task does
        contexts, trainings     C and F, two contrasts of one kind
        own / sqrt(C F)         own, corrected for what two lessons of one task do not share
        examples, reordered     of what two sets of words do differently in one task, and its ceiling

    `rows` are those of "strengths", one for each pair and seed, or of "settings". NaN where C or F is not above 0.
    """
    names = ("own", "other", "contexts", "trainings", "examples", "reordered")
    derived: dict[str, Callable[[_Means], float]] = {
        "own - other": lambda m: m["own"] - m["other"],
        "yardstick": lambda m: m["own"] * np.sqrt((1 - m["contexts"]) * (1 - m["trainings"])),
        "own / sqrt(C F)": lambda m: (
            m["own"] / np.sqrt(m["contexts"] * m["trainings"]) if min(m["contexts"], m["trainings"]) > 0 else np.nan
        ),
    }
    chosen = rows[["seed", "pair", *names]]
    return {name: _mean(rows, name) for name in names} | {name: _interval(chosen, of) for name, of in derived.items()}


def by_layer(layers: pd.DataFrame, column: str) -> Interval:
    """A column of "layers" in each layer, an interval of arrays."""
    each = [_mean(its, column) for _, its in layers.groupby("layer")]
    estimate, low, high = np.transpose([tuple(of) for of in each])
    return Interval(estimate, low, high)


def answers(interventions: pd.DataFrame, column: str = "right") -> dict[str, Interval]:
    """A column of "interventions" by what is put in, mean over both directions and pairs."""
    return {str(name): _mean(its, column) for name, its in interventions.groupby("intervention", sort=False)}


_PUT_IN: Mapping[str, str] = {
    "context_along_ft": "context",
    "context_along_other_ft": "context",
    "context_along_near": "context",
    "ft_along_icl": "ft",
    "ft_along_near": "ft",
}
"""Parts that are put in, and the pass that they are put into."""


def share_of_the_whole(interventions: pd.DataFrame) -> dict[str, Interval]:
    """What each part does of what the whole change does: (x - base) / (whole - base) of the log odds of A over B."""
    odds = interventions.pivot_table(index=["seed", "pair"], columns="intervention", values="log_odds").reset_index()

    def share(name: str, base: str) -> Callable[[_Means], float]:
        return lambda m: (m[name] - m[base]) / (m[f"{base}_whole"] - m[base])

    return {name: _interval(odds, share(name, base)) for name, base in _PUT_IN.items()}
