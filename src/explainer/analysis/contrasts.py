"""What the published minimal pairs of lessons say: similarities of contrasts, and answers when they are put in.

Everything takes tables of `explainer.results("minimal-pairs")`. Pairs of tasks are fixed, seeds are drawn: all values
are means over the pairs of each seed that has every pair, with Student's interval over seeds.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from explainer.experiments.minimal_pairs import INTERVENTIONS
from explainer.theory import statistics
from explainer.theory.statistics import Interval


def of_seeds(frame: pd.DataFrame, column: str) -> pd.Series:
    """Mean over pairs of tasks for each seed that has them all."""
    by_pair = frame.groupby(["seed", "pair"])[column].mean().unstack()
    return by_pair.mean(axis="columns", skipna=False).dropna()


def similarities(rows: pd.DataFrame) -> dict[str, Interval]:
    """Of contexts and trainings of one strength: what is compared, floor, ceilings and yardstick.

        own, other              cos(c_A - c_B, f_A - f_B), context and training of the same words, or of others
        own - other             what the words cost
        yardstick               own sqrt((1 - C) (1 - F)), what they would cost if they counted as the task does
        contexts, trainings     C and F, two contrasts of one kind
        own / sqrt(C F)         own, corrected for what two lessons of one task do not share
        examples, reordered     of what two sets of words do differently in one task, and its ceiling

    The floor of all is 0. `rows` are those of "strengths", one for each pair and seed, or of "cells".
    """
    means = {name: of_seeds(rows, name) for name in ("own", "other", "contexts", "trainings", "examples", "reordered")}
    C, F = means["contexts"], means["trainings"].clip(lower=0)
    found = means | {
        "own - other": means["own"] - means["other"],
        "yardstick": means["own"] * np.sqrt((1 - C) * (1 - F)),
        "own / sqrt(C F)": means["own"] / np.sqrt(C * F.where(F > 0)),
    }
    return {name: statistics.student(values.dropna()) for name, values in found.items()}


def by_pair(rows: pd.DataFrame, column: str) -> dict[str, Interval]:
    """A column for each pair of tasks, Student over its seeds."""
    return {pair: statistics.student(its[column].dropna()) for pair, its in rows.groupby("pair", sort=False)}


def by_layer(layers: pd.DataFrame, column: str) -> Interval:
    """A column of "layers" in each layer, an interval of arrays."""
    means = pd.DataFrame({n: of_seeds(its, column) for n, its in layers.groupby("layer")})
    return statistics.student(means.to_numpy())


def answers(interventions: pd.DataFrame, column: str = "right") -> dict[str, Interval]:
    """A column of "interventions" by what is put in, mean over both directions and pairs."""
    found = {name: of_seeds(interventions[interventions["intervention"] == name], column) for name in INTERVENTIONS}
    return {name: statistics.student(values) for name, values in found.items()}


PUT_IN: Mapping[str, str] = {
    "context_along_ft": "context",
    "context_along_other_ft": "context",
    "context_along_near": "context",
    "ft_along_icl": "ft",
    "ft_along_near": "ft",
}
"""Parts that are put in, and the pass that they are put into."""


def share_of_the_whole(interventions: pd.DataFrame) -> dict[str, Interval]:
    """How much of what the whole change does each part does: (x - base) / (whole - base) of the log odds of A over B.

    Both directions and all pairs of a seed are averaged first.
    """
    means = {name: of_seeds(interventions[interventions["intervention"] == name], "log_odds") for name in INTERVENTIONS}
    shares = {
        name: (means[name] - means[base]) / (means[f"{base}_whole"] - means[base]) for name, base in PUT_IN.items()
    }
    return {name: statistics.student(values) for name, values in shares.items()}


def equally_strong(changes: pd.DataFrame) -> dict[str, dict[int, Interval]]:
    """Right answers of a lesson's own task by kind and strength: where do a context and a training answer alike?"""
    own = changes[changes["kind"].isin(("ICL", "FT"))]
    own = own.assign(right=own["right_a"].where(own["lesson"] == "A", own["right_b"]))
    return {
        kind: {int(n): statistics.student(of_seeds(rows, "right")) for n, rows in its.groupby("strength")}
        for kind, its in own.groupby("kind")
    }
