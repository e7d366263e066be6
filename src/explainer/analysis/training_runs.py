"""What the published trainings say: runs in pairs, their losses along the way, perplexities, errors in context.

Everything takes tables of `explainer.results` for the grids of language models or of regression. Runs that are given
together should have one average and differ in their seeds; a variant is compared with plain attention in pairs.
"""

from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd

from explainer.errors import StudyError
from explainer.experiments.regression_runs import Run
from explainer.models.training import Setting
from explainer.theory import statistics
from explainer.theory.statistics import Interval, Sample

_OF_A_PAIR = sorted({f.name for setting in (Setting, Run) for f in fields(setting)} - {"average", "eta"})


def matched(variant: pd.DataFrame, plain: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The table of a variant, and that of the runs that differ from its own in average and eta alone, in its order.

    Raises StudyError for a run without its counterpart.
    """
    of_setting = {_shared(run): run for run in _runs(plain)}
    if missing := [run.iloc[0] for run in _runs(variant) if _shared(run) not in of_setting]:
        names = ", ".join(f"{one['average']}, seed {one['seed']}, cell {one['cell']}" for one in missing)
        raise StudyError(f"{names} has no plain run with the same seed and setting; train it too.")
    return variant, pd.concat(of_setting[_shared(run)] for run in _runs(variant))


def _runs(table: pd.DataFrame) -> list[pd.DataFrame]:
    return [rows for _, rows in table.groupby("cell", sort=False)]


def _shared(run: pd.DataFrame) -> tuple:
    return tuple(run.iloc[0].reindex(_OF_A_PAIR).dropna().items())


def _ratios(table: pd.DataFrame, sample: Sample) -> pd.Series:
    return pd.Series([statistics.ratio_of_sums(*group) for group in sample.groups], table["seed"].unique())


# Losses along the training, from tables "curve"


def gaps(variant: pd.DataFrame, plain: pd.DataFrame) -> pd.DataFrame:
    """How much lower the held-out loss of the variant is, in nats per token, (tokens seen) x (seeds).

    gap_s(t) = loss_s^plain(t) - loss_s^variant(t) for the pair of seed s.
    """
    of_variant, of_plain = (
        side.pivot(index="tokens", columns="seed", values="held_out") for side in matched(variant, plain)
    )
    return of_plain - of_variant


def tokens_to_reach(losses: pd.Series, loss: float) -> float:
    """Tokens, the index of a falling curve, after which it first is at `loss`, linear between its points; or NaN."""
    below = np.flatnonzero(losses <= loss)
    if not len(below):
        return float("nan")
    place = slice(max(0, below[0] - 1), below[0] + 1)
    return float(np.interp(-loss, -losses.iloc[place], losses.index[place]))


# Perplexity, from tables "blocks"


def documents(blocks: pd.DataFrame, context: int) -> Sample:
    """Of each run, by held-out document: sum of the nats per token of the blocks that begin in it, and their number."""
    groups, ids = [], []
    for run in _runs(blocks):
        names, index = np.unique(run["document"].to_numpy(), return_inverse=True)
        groups.append((np.bincount(index, run[f"nll_{context}"]), np.bincount(index).astype(float)))
        ids.append(names)
    return Sample(groups, ids)


def perplexity(total: np.ndarray, count: np.ndarray) -> float:
    """Exponential of the nats per token, exp(sum_i total_i / sum_i count_i), from `documents`."""
    return float(np.exp(statistics.ratio_of_sums(total, count)))


def perplexity_interval(blocks: pd.DataFrame, context: int) -> Interval:
    """Mean over seeds of the perplexity, bootstrap over seeds and documents, which are the same for all runs."""
    return statistics.bootstrap_interval(documents(blocks, context), perplexity)


def perplexity_change(variant: pd.DataFrame, plain: pd.DataFrame, context: int) -> Interval:
    """Paired difference of the nats per token, variant - plain: Student over pairs, whose documents are the same.

    Negative where the variant is better; `per_cent` turns it into a change of the perplexity. Of one pair, the
    interval is over documents.
    """
    sides = (documents(side, context) for side in matched(variant, plain))
    return statistics.paired_difference(*sides, statistics.ratio_of_sums)


def seed_changes(variant: pd.DataFrame, plain: pd.DataFrame, context: int) -> pd.Series:
    """Difference of the nats per token, variant - plain, of each pair; by seed."""
    of_variant, of_plain = (_ratios(side, documents(side, context)) for side in matched(variant, plain))
    return of_variant - of_plain


def per_cent(nats: float) -> float:
    """A difference of log-perplexities, or several, as a change of the perplexity, 100 (e^nats - 1)."""
    return 100 * np.expm1(nats)


def direction(change: Interval) -> str:
    """What an interval of a loss's change says: better, worse, or not decided."""
    return "better" if change.high < 0 else "worse" if change.low > 0 else "not decided"


# In context, from tables "prompts"


def in_context(prompts: pd.DataFrame, k: int) -> tuple[list[int], dict[str, Interval]]:
    """Numbers of examples of length k, and the accuracies of Bayes' rule and of each average, as arrays over them.

    Those of an average are means over seeds with Student's interval; the rule's ends are its value.
    """
    asked = prompts[prompts["example_length"] == k]
    best = _runs(asked)[0]
    curves = {"Bayes' rule": Interval(*[best["bayes"].to_numpy()] * 3)}
    for name, its in asked.groupby("average", sort=False):
        curves[name] = statistics.student([run["model"] for run in _runs(its)])
    return best["examples"].tolist(), curves


def squared_errors(prompts: pd.DataFrame, k: int) -> Sample:
    """Squared errors of each run of the regression after k examples, and squared targets; prompts are the same."""
    runs = _runs(prompts)
    groups = [(run[f"squared_error_{k}"].to_numpy(), run["squared_target"].to_numpy()) for run in runs]
    return Sample(groups, [np.arange(len(run)) for run in runs])


def relative_errors(prompts: pd.DataFrame, k: int) -> pd.Series:
    """Error of each run relative to that of predicting 0, sum (yhat - y)^2 / sum y^2, after k examples; by seed."""
    return _ratios(prompts, squared_errors(prompts, k))


def relative_error_interval(prompts: pd.DataFrame, k: int, **options: Any) -> Interval:
    """Mean over seeds of `relative_errors`, bootstrap over seeds and prompts; options as there."""
    return statistics.bootstrap_interval(squared_errors(prompts, k), statistics.ratio_of_sums, **options)


def relative_error_change(variant: pd.DataFrame, plain: pd.DataFrame, k: int) -> Interval:
    """Paired difference of `relative_errors`, variant - plain: Student over pairs, whose prompts are the same."""
    sides = (squared_errors(side, k) for side in matched(variant, plain))
    return statistics.paired_difference(*sides, statistics.ratio_of_sums)


def log_ratios(variant: pd.DataFrame, plain: pd.DataFrame, k: int) -> pd.Series:
    """Logarithm of the error of a variant over that of plain attention, ln(E_variant / E_plain), of each pair."""
    of_variant, of_plain = (relative_errors(side, k) for side in matched(variant, plain))
    return np.log(of_variant / of_plain)


# Text


def made(*runs: pd.DataFrame) -> str:
    """Where trainings come from, by their tables "runs": seeds, device, threads, version of torch, CPU seconds."""
    every = pd.concat(runs).drop_duplicates("cell")
    first, seeds = every.iloc[0], sorted(set(every["seed"]))
    return (
        f"Stored: {len(every)} runs, seeds {', '.join(map(str, seeds))}; {first['device']}, {first['threads']} thread, "
        f"torch {first['torch']}; {every['cpu_seconds'].sum():.0f} CPU seconds"
    )
