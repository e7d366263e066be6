"""What the published trainings say: runs in pairs, their losses at each budget and along the way, errors in context.

Everything takes tables of `results` for the grids of language models or of regression. Runs that are given
together have one average and differ in their seeds; a variant is compared with another in pairs, seed by seed.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from explainer.errors import ExperimentError
from explainer.results.published import results
from explainer.theory import statistics
from explainer.theory.statistics import Interval, Sample

CURVE_WINDOWS = 16
"""Held-out windows whose mean loss is a point of the table "curve"."""

_LONGER = ("plain", "momentum", "previous")
"""Arms of the published language models that were trained again on four times the tokens."""

_OF_A_PAIR = (
    "batch", "corpus", "device", "dimension", "distribution", "dtype", "heads", "inner", "layers", "length",
    "n_examples", "seed", "vocabulary", "warmup", "weight_decay", "width",
)  # fmt: skip
"""What two runs of a pair have in common: each arm has its own rate, and the controls stop at a smaller budget."""


class Matched(NamedTuple):
    """Tables of runs of one average, and of those of another with the same seeds, sizes and text, in the same order."""

    variant: pd.DataFrame
    other: pd.DataFrame

    @classmethod
    def runs(cls, variant: pd.DataFrame, other: pd.DataFrame) -> "Matched":
        """Find the counterpart of each run of the variant; raises ExperimentError for a run without one."""

        def shared(run: pd.DataFrame) -> tuple:
            return tuple(run.iloc[0].reindex(_OF_A_PAIR).dropna().items())

        of_setting = {shared(run): run for run in _runs(other)}
        if missing := [run.iloc[0] for run in _runs(variant) if shared(run) not in of_setting]:
            names = ", ".join(f"{one['average']}, seed {one['seed']}, setting {one['setting']}" for one in missing)
            raise ExperimentError(f"{names} has no plain run with the same seed and setting; train it too.")
        return cls(variant, pd.concat(of_setting[shared(run)] for run in _runs(variant)))

    def loss_change(self) -> Interval:
        """Difference of the held-out loss, variant - other, in nats per token: Student over pairs.

        Of tables "blocks" at one budget. Both read the same documents, which adds to the variance.
        """
        a, b = map(_documents, self)
        return statistics.paired_difference(a, b, statistics.ratio_of_sums)

    def relative_error_change(self, k: int) -> Interval:
        """Difference of `relative_errors`, variant - other: Student over pairs, whose prompts are the same."""
        a, b = (_squared_errors(side, k) for side in self)
        return statistics.paired_difference(a, b, statistics.ratio_of_sums)

    def tokens_saved(self) -> pd.DataFrame:
        """How many tokens earlier the variant reaches its loss of the moment, (tokens) x (seeds), of tables "curve".

        lead_s(t) = t_s^other(loss_s^variant(t)) - t: NaN where the other never gets there on its trunk.
        """
        of_variant, of_other = (_by_seed(side, "held_out") for side in self)
        reached = {
            seed: [
                _tokens_to_reach(of_other[seed].dropna(), loss) - t
                for t, loss in zip(losses.index, losses, strict=True)
            ]
            for seed, losses in of_variant.items()
        }
        return pd.DataFrame(reached, of_variant.index)


def _runs(table: pd.DataFrame) -> list[pd.DataFrame]:
    return [rows for _, rows in table.groupby("setting", sort=False)]


def _by_seed(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """A column at each budget, (tokens) x (seeds)."""
    return table.pivot(index="tokens", columns="seed", values=column)


def _tokens_to_reach(losses: pd.Series, loss: float) -> float:
    """Tokens, the index of a falling curve, after which it first is at `loss`, linear between its points; or NaN."""
    below = np.flatnonzero(losses <= loss)
    if not len(below):
        return float("nan")
    place = slice(max(0, below[0] - 1), below[0] + 1)
    return float(np.interp(-loss, -losses.iloc[place], losses.index[place]))


def _documents(blocks: pd.DataFrame) -> Sample:
    """For each run and held-out document, the sum of the nats of the blocks that begin in it, and their number."""
    groups, ids = [], []
    for run in _runs(blocks):
        names, index = np.unique(run["document"].to_numpy(), return_inverse=True)
        groups.append((np.bincount(index, run["nll"]), np.bincount(index).astype(float)))
        ids.append(names)
    return Sample(groups, ids)


# Of the published language models.


def table_of_arm(arm: str, table: str) -> pd.DataFrame:
    """A table of one arm of the published language models, e.g. "momentum"; the longer runs of the arm are below."""
    longer = results(f"{arm}-longer", table) if arm in _LONGER else None
    return pd.concat([results(arm, table), longer], ignore_index=True)


def change_at_budgets(arm: str, other: str, *, other_genre: bool = False) -> dict[int, Interval]:
    """Difference of the loss of two published arms, arm - other, in nats per token, at each budget that both have.

    Of held-out text (`Matched.loss_change`), or of text of a kind that no run was trained on, one text: Student over
    pairs of seeds.
    """
    if other_genre:
        variant, partner = (_by_seed(table_of_arm(name, "budgets"), "other_genre") for name in (arm, other))
        gap = (variant - partner).dropna()
        return {int(n): statistics.student(seeds) for n, seeds in zip(gap.index, gap.to_numpy(), strict=True)}
    sides = [table_of_arm(name, "blocks") for name in (arm, other)]
    budgets = sorted(set(sides[0]["tokens"]) & set(sides[1]["tokens"]))
    at_budget = {int(tokens): [side[side["tokens"] == tokens] for side in sides] for tokens in budgets}
    return {tokens: Matched.runs(*both).loss_change() for tokens, both in at_budget.items()}


# Regression in context, from tables "prompts"


def _squared_errors(prompts: pd.DataFrame, k: int) -> Sample:
    """Squared errors of each run of the regression after k examples, and squared targets; prompts are the same."""
    runs = _runs(prompts)
    groups = [(run[f"squared_error_{k}"].to_numpy(), run["squared_target"].to_numpy()) for run in runs]
    return Sample(groups, [np.arange(len(run)) for run in runs])


def relative_errors(prompts: pd.DataFrame, k: int) -> pd.Series:
    """Error of each run relative to that of predicting 0, sum (yhat - y)^2 / sum y^2, after k examples; by seed."""
    ratios = [statistics.ratio_of_sums(*group) for group in _squared_errors(prompts, k).groups]
    return pd.Series(ratios, prompts["seed"].unique())
