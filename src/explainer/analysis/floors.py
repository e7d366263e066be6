"""How far from floor to ceiling: each similarity and each causal test of a context and a training, on one scale.

The floor is the value where the lesson plays no part, the ceiling the value where the claim is as true as it can be.
"""

from dataclasses import replace

import pandas as pd

from explainer.analysis import alike
from explainer.analysis.alike import Which
from explainer.theory import statistics
from explainer.theory.statistics import Interval

SIMILARITIES = {
    "attention outputs (SimAOU)": "sim_aou",
    "the same, query by query (residual)": "sim_aou_residual",
    "weights (cos ΔW)": "update_cosine",
}
CAUSAL = {
    "the shared part alone answers": ("along_near", "along_ft", "icl"),
    "the mean patch answers": ("patch_foreign_mean", "patch_mean", "icl"),
}
"""Interventions whose shares of right answers are floor, measured value and ceiling."""
EXPLAINED = {
    "steps explain the change (R²)": (
        "r2_icl_foreign",
        "r2_icl_own",
        "r2_descent_own",
    )
}
LESSONS = {
    "the same": "own",
    "the same, in another order": "reordered",
    "other examples of the task": "other",
    "shuffled answers": "shuffled",
    "another task": alike.FOREIGN,
    "made-up words": "nonsense",
}
ICL, FT = Which("ICL"), Which("FT", epochs=10)


def both_swaps(pairs: pd.DataFrame, measure: str) -> dict[str, dict[str, Interval]]:
    """A measure of a context and a training when either learns another lesson, beside two trainings and two contexts.

    Means over tasks with Student's interval over seeds, by who is compared and then by the lesson of the swapped side.
    """
    kinds = {
        "context and training, training swapped": (ICL, FT),
        "context and training, context swapped": (FT, ICL),
        "two trainings": (FT, FT),
        "two contexts": (ICL, ICL),
    }
    return {
        kind: {
            name: alike.over_tasks(
                alike.between(pairs, kept, replace(swapped, lesson=lesson)),
                measure,
            )
            for name, lesson in LESSONS.items()
            if not (kept == swapped and lesson == "own")
        }
        for kind, (kept, swapped) in kinds.items()
    }


def of_seeds(
    pairs: pd.DataFrame, answered: pd.DataFrame, cells: pd.DataFrame
) -> dict[str, tuple[pd.Series, pd.Series, pd.Series]]:
    """Floor, measured value and ceiling of every row, by seed.

    `pairs` are those of the experiment "agreement", `answered` and `cells` the tables "queries" and "runs" of "causal".
    """

    def similar(first: Which, second: Which, measure: str) -> pd.Series:
        return alike.by_seed(alike.between(pairs, first, second), measure)

    made_up, others = (
        replace(FT, lesson="nonsense"),
        replace(FT, lesson="other"),
    )
    rows = {
        name: (
            similar(ICL, made_up, measure),
            similar(ICL, FT, measure),
            similar(FT, others, measure),
        )
        for name, measure in SIMILARITIES.items()
    }
    rows |= {name: tuple(right(answered, of) for of in three) for name, three in CAUSAL.items()}
    return rows | {name: tuple(explained(cells, of) for of in three) for name, three in EXPLAINED.items()}


def right(answered: pd.DataFrame, intervention: str) -> pd.Series:
    """The share of right answers under an intervention, by seed, mean over tasks."""
    chosen = answered[answered["intervention"] == intervention]
    return chosen.groupby(["seed", "task"])["correct"].mean().groupby("seed").mean()


def explained(cells: pd.DataFrame, column: str) -> pd.Series:
    """The share of a change that steps explain, by seed, mean over tasks."""
    return cells.groupby("seed")[column].mean()


def way(floor: pd.Series, value: pd.Series, ceiling: pd.Series) -> dict[str, Interval]:
    """Floor, value, ceiling and (value - floor) / (ceiling - floor), each with Student's interval over seeds."""
    each = {"floor": floor, "measured": value, "ceiling": ceiling}
    each["share of the way"] = (value - floor) / (ceiling - floor)
    return {name: statistics.student(of.dropna()) for name, of in each.items()}
