"""The positive control of the whole comparison, from the tables of `results("trained-control")` and its other grids.

Models are the unit that is drawn: the mean over the tasks of each model, then Student's interval over models.
"""

import pandas as pd

from explainer.results import agreement, intervals
from explainer.theory.statistics import Interval, student

_SAME = ("checkpoint", "model", "step", "seed", "k", "n_queries", "split", "lr")


def over_training(frame: pd.DataFrame, measure: str) -> dict[int, Interval]:
    """Mean over models of the mean of a measure over their rows, after each number of steps that has a value."""
    known = frame.dropna(subset=[measure])
    return intervals.by_group(known, "step", lambda its: student(its.groupby("model")[measure].mean().to_numpy(float)))


def own_minus_control(frame: pd.DataFrame, control: str, measure: str) -> pd.DataFrame:
    """The measure with the own context minus that under a control, a row for each pair that differs in nothing else."""
    own, changed = (frame.loc[frame["control"] == name, [*_SAME, measure]] for name in ("none", control))
    both = own.merge(changed, on=list(_SAME), suffixes=("", "_changed"))
    return both.assign(**{measure: both[measure] - both[f"{measure}_changed"]})[[*_SAME, measure]]


def chosen_rate(frame: pd.DataFrame) -> float:
    """The rate at which FT answers most queries right and no training diverged; the smallest of several as good.

    The frame is of the split "selection".
    """
    of_rate = frame.groupby("lr")
    stable = of_rate["diverged_at"].apply(lambda steps: steps.isna().all())
    known = of_rate["ft_accuracy"].mean()[stable]
    return float(known.index[int(known.argmax())])


def other_examples(swaps: pd.DataFrame, sample: str = "model") -> dict[str, Interval]:
    """What SimAOU loses when one side has other examples, and what it would if the examples counted as the task does.

    `agreement.cost_of_examples` of "swaps", and own itself. Functions of means over layers, of the draws in which no
    training diverged, Student's jackknife over the `sample`: "model", each with the mean over its draws, or "seed",
    draws with the mean over models.
    """
    # Differences are those of the same draws.
    whole = swaps.groupby(["model", "seed"])[agreement.CORNERS].mean().astype(float).dropna()
    costs = ("training swapped", "context swapped", "both swapped", "yardstick")
    return {"own": intervals.of_means(whole, "own", [sample])} | {
        name: intervals.of_means(whole, lambda m, name=name: agreement.cost_of_examples(m)[name], [sample])
        for name in costs
    }
