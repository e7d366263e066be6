"""What the published minimal pairs of lessons say: similarities of contrasts, and answers when they are put in.

Everything takes tables of `results("minimal-pairs")`. A value is a function of means over pairs of tasks of the means
over their seeds, with Student's interval of the jackknife over seeds.
"""

from collections.abc import Mapping
from operator import itemgetter

import numpy as np
import pandas as pd

from explainer.results import aggregate, verdict_scale
from explainer.results.aggregate import Value
from explainer.theory.statistics import Interval

_PAIRS = ["seed", "pair"]


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
    derived: dict[str, Value] = {
        "own - other": lambda m: m["own"] - m["other"],
        "yardstick": verdict_scale.yardstick,
        "own / sqrt(C F)": lambda m: (
            m["own"] / np.sqrt(m["contexts"] * m["trainings"]) if min(m["contexts"], m["trainings"]) > 0 else np.nan
        ),
    }
    values = {name: itemgetter(name) for name in names} | derived
    means = rows.groupby(_PAIRS)[list(names)].mean()
    return {name: aggregate.of_means(means, of) for name, of in values.items()}


def by_layer(layers: pd.DataFrame, column: str) -> Interval:
    """A column of "layers" in each layer, an interval of arrays."""
    of_layers = aggregate.by_number(layers, "layer", lambda its: aggregate.mean(its, column, _PAIRS))
    return Interval(*np.transpose([tuple(of) for of in of_layers.values()]))


def mean_by_intervention(interventions: pd.DataFrame, column: str = "right") -> dict[str, Interval]:
    """A column of "interventions" by what is put in, mean over both directions and pairs."""
    return aggregate.by_group(interventions, "intervention", lambda its: aggregate.mean(its, column, _PAIRS))


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
    odds = interventions.pivot_table(index=_PAIRS, columns="intervention", values="log_odds")

    def share(name: str, base: str) -> Value:
        return lambda m: (m[name] - m[base]) / (m[f"{base}_whole"] - m[base])

    return {name: aggregate.of_means(odds, share(name, base)) for name, base in _PUT_IN.items()}
