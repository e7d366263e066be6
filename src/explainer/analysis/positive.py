"""The positive control of the whole comparison, from the tables of `explainer.results("positive")` and its other grids.

Models are the unit that is drawn: the mean over the tasks of each model, then Student's interval over models.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from explainer.theory.statistics import Interval, student

LEARNERS: Mapping[str, str] = {"least_squares": "least squares", "gradient_step": "one gradient step"}
"""Columns of the queries with what known learners predict from the same demonstrations, with their names in figures."""

_SAME = ("checkpoint", "model", "step", "seed", "k", "n_queries", "split", "lr")


def interval(frame: pd.DataFrame, measure: str) -> Interval:
    """Mean over models of the mean over their rows; rows without a value are left out."""
    return student(frame.dropna(subset=[measure]).groupby("model")[measure].mean().to_numpy(float))


def over_training(frame: pd.DataFrame, measure: str) -> dict[int, Interval]:
    """`interval` after each number of steps that has a value."""
    known = frame.dropna(subset=[measure])
    return {int(step): interval(its, measure) for step, its in known.groupby("step")}


def own_minus(frame: pd.DataFrame, control: str, measure: str) -> pd.DataFrame:
    """The measure with the own context minus that under a control, a row for each pair that differs in nothing else."""
    own, changed = (frame.loc[frame["control"] == name, [*_SAME, measure]] for name in ("none", control))
    both = own.merge(changed, on=list(_SAME), suffixes=("", "_changed"))
    return both.assign(**{measure: both[measure] - both[f"{measure}_changed"]})[[*_SAME, measure]]


def chosen_rate(frame: pd.DataFrame) -> float:
    """The rate at which FT answers most queries right and no training diverged; the smallest of several as good.

    Of a frame of the split "selection".
    """
    of_rate = frame.groupby("lr")
    stable = of_rate["diverged_at"].apply(lambda steps: steps.isna().all())
    return float(of_rate["ft_accuracy"].mean()[stable].idxmax())


def with_agreement(queries: pd.DataFrame) -> pd.DataFrame:
    """Whether ICL and FT answer as each known learner does: columns such as `icl_as_least_squares`.

    Learners are right where the sign of their prediction is that of the answer: `least_squares_correct`.
    """
    positive = {name: queries[name].to_numpy(float) > 0 for name in LEARNERS}
    added = {f"{name}_correct": answer == (queries["label"] == 1) for name, answer in positive.items()}
    for state in ("icl", "ft"):
        asked = queries[f"{state}_log_probs"].notna()
        says_plus = np.array([np.argmax(p) == 1 for p in queries.loc[asked, f"{state}_log_probs"]])
        for name, answer in positive.items():
            same = pd.Series(np.nan, queries.index)
            same[asked] = (says_plus == answer[asked]).astype(float)
            added[f"{state}_as_{name}"] = same
    return queries.assign(**added)


def share(queries: pd.DataFrame, column: str) -> Interval:
    """`interval` of a share; no end leaves [0, 1]."""
    found = interval(queries, column)
    low, high = np.clip((found.low, found.high), 0, 1)
    return replace(found, low=float(low), high=float(high))


def agreement_of_independent(queries: pd.DataFrame, column: str, other: str) -> float:
    """How often two learners with two answers agree if each errs by itself: p q + (1 - p)(1 - q).

    p and q are the shares of their right answers in the columns, the mean is over models.
    """
    known = queries.dropna(subset=[column, other])
    p, q = (known.astype({name: float}).groupby("model")[name].mean() for name in (column, other))
    return float((p * q + (1 - p) * (1 - q)).mean())
