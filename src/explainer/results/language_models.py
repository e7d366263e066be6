"""What the published trainings say: runs in pairs, their losses at each budget and along the way, errors in context.

Everything takes tables of `results` for the grids of language models or of regression. Runs that are given
together have one average and differ in their seeds; a variant is compared with another in pairs, seed by seed.
"""

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


def _matched(variant: pd.DataFrame, plain: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The table of a variant, and that of the runs with the same seed, sizes and text, in its order.

    Raises ExperimentError for a run without its counterpart.
    """
    of_setting = {_shared(run): run for run in _runs(plain)}
    if missing := [run.iloc[0] for run in _runs(variant) if _shared(run) not in of_setting]:
        names = ", ".join(f"{one['average']}, seed {one['seed']}, setting {one['setting']}" for one in missing)
        raise ExperimentError(f"{names} has no plain run with the same seed and setting; train it too.")
    return variant, pd.concat(of_setting[_shared(run)] for run in _runs(variant))


def _runs(table: pd.DataFrame) -> list[pd.DataFrame]:
    return [rows for _, rows in table.groupby("setting", sort=False)]


def _shared(run: pd.DataFrame) -> tuple:
    return tuple(run.iloc[0].reindex(_OF_A_PAIR).dropna().items())


def table_of_arm(arm: str, table: str) -> pd.DataFrame:
    """A table of one arm of the published language models, e.g. "momentum"; the longer runs of the arm are below.

    Raises what `results` raises for an arm or a table that is not published.
    """
    longer = results(f"{arm}-longer", table) if arm in _LONGER else None
    return pd.concat([results(arm, table), longer], ignore_index=True)


# At each budget, from tables "budgets" and "blocks"


def loss_change(variant: pd.DataFrame, other: pd.DataFrame, tokens: int) -> Interval:
    """Paired difference of the held-out loss at a budget, variant - other, in nats per token: Student over seeds.

    Both read the same documents, which adds to the variance. Takes tables "blocks".
    """
    at_budget = (side[side["tokens"] == tokens] for side in (variant, other))
    a, b = (_documents(side, tokens) for side in _matched(*at_budget))
    return statistics.paired_difference(a, b, statistics.ratio_of_sums)


def change_at_budgets(arm: str, other: str) -> dict[int, Interval]:
    """`loss_change` of one published arm against another, arm - other, at each budget in tokens that both have."""
    variant, partner = table_of_arm(arm, "blocks"), table_of_arm(other, "blocks")
    budgets = sorted(set(variant["tokens"]) & set(partner["tokens"]))
    return {int(tokens): loss_change(variant, partner, tokens) for tokens in budgets}


def change_on_other_genre(arm: str, other: str) -> dict[int, Interval]:
    """Paired difference of the loss on text of a kind that no run was trained on, arm - other, at each budget of both.

    In nats per token; Student over seeds, for one held-out text.
    """
    variant, partner = (_by_seed(table_of_arm(name, "budgets"), "other_genre") for name in (arm, other))
    gap = (variant - partner).dropna()
    return {int(n): statistics.student(seeds) for n, seeds in zip(gap.index, gap.to_numpy(), strict=True)}


def _by_seed(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """A column at each budget, (tokens) x (seeds)."""
    return table.pivot(index="tokens", columns="seed", values=column)


def _documents(blocks: pd.DataFrame, tokens: int) -> Sample:
    """For each run and held-out document, the sum of the nats of the blocks that begin in it, and their number."""
    groups, ids = [], []
    for run in _runs(blocks[blocks["tokens"] == tokens]):
        names, index = np.unique(run["document"].to_numpy(), return_inverse=True)
        groups.append((np.bincount(index, run["nll"]), np.bincount(index).astype(float)))
        ids.append(names)
    return Sample(groups, ids)


# Losses along the training, from tables "curve"


def loss_reduction(variant: pd.DataFrame, plain: pd.DataFrame) -> pd.DataFrame:
    """How much lower the held-out loss of the variant is along the trunk than its pair's, (tokens) x (seeds), nats."""
    of_variant, of_plain = (_by_seed(side, "held_out") for side in _matched(variant, plain))
    return (of_plain - of_variant).dropna()


def tokens_saved(variant: pd.DataFrame, plain: pd.DataFrame) -> pd.DataFrame:
    """How many tokens earlier the variant reaches its loss of the moment, (tokens) x (seeds).

    lead_s(t) = t_s^plain(loss_s^variant(t)) - t: NaN where plain attention never gets there on its trunk.
    """
    of_variant, of_plain = (_by_seed(side, "held_out") for side in _matched(variant, plain))
    reached = {
        seed: [
            _tokens_to_reach(of_plain[seed].dropna(), loss) - t for t, loss in zip(losses.index, losses, strict=True)
        ]
        for seed, losses in of_variant.items()
    }
    return pd.DataFrame(reached, of_variant.index)


def _tokens_to_reach(losses: pd.Series, loss: float) -> float:
    """Tokens, the index of a falling curve, after which it first is at `loss`, linear between its points; or NaN."""
    below = np.flatnonzero(losses <= loss)
    if not len(below):
        return float("nan")
    place = slice(max(0, below[0] - 1), below[0] + 1)
    return float(np.interp(-loss, -losses.iloc[place], losses.index[place]))


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


def relative_error_change(variant: pd.DataFrame, plain: pd.DataFrame, k: int) -> Interval:
    """Paired difference of `relative_errors`, variant - plain: Student over pairs, whose prompts are the same."""
    a, b = (_squared_errors(side, k) for side in _matched(variant, plain))
    return statistics.paired_difference(a, b, statistics.ratio_of_sums)


def training_losses(settings: pd.DataFrame, every: int) -> pd.DataFrame:
    """Mean loss of the training over stretches of `every` steps, (steps at their end) x (seeds), from table "settings".

    Raises ExperimentError unless `every` is a multiple of the steps of a stored loss that divides the training.
    """
    stored = np.stack(list(settings["losses"]))
    (steps,) = settings["steps"].unique()
    window = steps // stored.shape[1]  # a stored loss is the mean over so many steps
    width, rest = divmod(every, window)
    if rest or not width or stored.shape[1] % width:
        raise ExperimentError(f"every = {every}; take a multiple of {window} that divides the {steps} steps.")
    means = stored.reshape(len(stored), -1, width).mean(-1)
    return pd.DataFrame(means.T, every * np.arange(1, means.shape[1] + 1), settings["seed"].to_numpy())
