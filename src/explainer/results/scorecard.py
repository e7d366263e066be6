"""The claims of Dai et al. (2023), one by one: what they print, and what the stored results say of it.

A claim is asked twice. Under the paper's own protocol, on its six tasks, but at one rate for all tasks and without a
choice of the best seed; and beside a control, on word pairs after ten epochs where the stored results allow it, so that
both ways of learning learn (τ after one epoch; depth on the six tasks; momentum on language models). Where it is asked
task by task, it is *reproduced* if it is settled on most tasks after Holm's correction, and if the opposite is settled
on none. Else it is *not reproduced*. Where the results cannot tell, it *cannot be asked here*, and the entry says why.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from explainer.results import (
    agreement,
    depth,
    intervention_effects,
    language_models,
    papers,
    rec2ftp,
    reporting,
    verdict_scale,
)
from explainer.results.agreement import UpdateFilter
from explainer.results.depth import Signs
from explainer.results.published import results
from explainer.results.verdict_scale import FT, ICL
from explainer.theory import statistics
from explainer.theory.statistics import Interval

REPRODUCED, _NOT_REPRODUCED, _CANNOT_BE_ASKED = "reproduced", "not reproduced", "cannot be asked here"

_PAPER = ("classification", "agnews", "cb")
"""The grids with the paper's six tasks under its protocol."""


class _Entry(NamedTuple):
    """A verdict, and the numbers or the reason behind it."""

    verdict: str
    because: str


class _Row(NamedTuple):
    """A claim, what the paper prints, and what is found under its protocol and beside a control."""

    claim: str
    paper: str
    protocol: _Entry
    between: _Entry


def scorecard() -> list[_Row]:
    """All claims, from the published tables."""
    queries, pairs = rec2ftp.queries(), agreement.pairs("agreement")
    of_paper, word_pairs = queries[queries["task"].isin(papers.TASKS)], results("agreement")
    return [
        _Row("FT answers more than ZSL", _quoted_accuracy("ft", "zsl"), _accuracy(of_paper, "ft", "zsl"),
            _answers(word_pairs, "ft", "zsl")),
        _Row("ICL answers more than FT", _quoted_accuracy("icl", "ft"), _accuracy(of_paper, "icl", "ft"),
            _answers(word_pairs, "icl", "ft")),
        _Row("ICL repairs what FT repairs: Rec2FTP", _quoted(papers.REC2FTP_AVERAGE), _repairs(of_paper),
            _recall(pairs)),
        _Row("SimAOU is above that of a random update", _quoted(papers.SIM_AOU_AVERAGE, "ft", "random"),
            _compared(of_paper, "sim_aou", "sim_aou_noise"), _above_both_floors(pairs, "sim_aou")),
        _Row("SimAOU rises with depth", "box plots of its first version", _depth("sim_aou"),
            _depth("sim_aou_tangent_uncentred", "without its noise value")),
        _Row("SimAM is higher after FT than before", _quoted(papers.SIM_AM_AVERAGE, "after", "before"),
            _compared(of_paper, "sim_am", "sim_am_zsl"), _above_both_floors(pairs, "sim_am")),
        _Row("SimAM rises with depth", "box plots of its first version", _depth("sim_am"), _gain_with_depth()),
        _Row("ICL and FT attend to the same training tokens: τ", _quoted(papers.KENDALL_AVERAGE, "ft", "random"),
            _tau(of_paper), _tau_of_right_answers()),
        _Row("Momentum lowers the perplexity", _quoted_perplexity(), *_momentum()),
        _Row("Momentum raises the accuracy of ICL", _quoted(papers.MOMENTUM_ACCURACY_AVERAGE), *_few_shot()),
    ]  # fmt: skip


def _judged(*each: Signs) -> str:
    """The verdict on a claim that differences above zero support, on most tasks of every comparison."""
    supported = all(of.rises > sum(of) / 2 and not of.falls for of in each)
    return REPRODUCED if supported else _NOT_REPRODUCED


def _entry(signs: Signs, numbers: str) -> _Entry:
    return _Entry(_judged(signs), f"{numbers}; settled on {signs.rises} of {sum(signs)} tasks{_opposite(signs)}")


def _opposite(signs: Signs) -> str:
    return f", the opposite on {signs.falls}" if signs.falls else ""


# What the paper prints.


def _quoted(averages: Mapping[str, Mapping[str, float] | float], *conditions: str) -> str:
    def of(values: Mapping[str, float] | float) -> str:
        return " against ".join(f"{values[c]:.3f}" for c in conditions) if conditions else f"{values:.3f}"

    return ", ".join(f"{model} {of(values)}" for model, values in averages.items())


def _quoted_accuracy(higher: str, lower: str) -> str:
    means = {m: [np.mean(list(of[state].values())) for state in (higher, lower)] for m, of in papers.ACCURACY.items()}
    ahead = sum(of[higher][t] > of[lower][t] for of in papers.ACCURACY.values() for t in papers.TASKS)
    of_models = ", ".join(f"{model} {a:.3f} against {b:.3f}" for model, (a, b) in means.items())
    return f"{of_models}; on {ahead} of {len(papers.MODELS) * len(papers.TASKS)}"


def _quoted_perplexity() -> str:
    plain, momentum = (papers.MOMENTUM_PERPLEXITY[name] for name in ("plain", "momentum"))
    return ", ".join(f"{momentum[n]:.2f} against {plain[n]:.2f} ({n})" for n in ("256", "512", "1024"))


# Under the paper's protocol: its six tasks, one epoch, a floor of noise.


def _differences(queries: pd.DataFrame, a: str, b: str) -> dict[str, Interval]:
    """A - B of two columns for each task, query by query, corrected for the number of tasks."""
    known = reporting.with_measure(reporting.with_measure(queries, a), b)
    of_task = known.groupby("task", sort=False)
    return reporting.comparisons({task: (reporting.sample(its, a), reporting.sample(its, b)) for task, its in of_task})


def _compared(queries: pd.DataFrame, a: str, b: str) -> _Entry:
    numbers = (queries.groupby("task")[name].mean().mean() for name in (a, b))
    return _entry(depth.signs(_differences(queries, a, b)), "{:.3f} against {:.3f}".format(*numbers))


def _accuracy(queries: pd.DataFrame, higher: str, lower: str) -> _Entry:
    return _compared(queries, f"{higher}_correct", f"{lower}_correct")


def _repairs(queries: pd.DataFrame) -> _Entry:
    """Rec2FTP beside its chance value within each label."""
    found = [rec2ftp.repairs(its) for _, its in queries.groupby("task", sort=False)]
    above, below = (sum(of(r.excess) for r in found) for of in (lambda e: e.low > 0, lambda e: e.high < 0))
    recall, chance = (np.mean([getattr(r, name).estimate for r in found]) for name in ("recall", "within_label"))
    share = sum(r.n_repaired for r in found) / sum(r.n_errors for r in found)
    signs = Signs(above, below, len(found) - above - below)
    return _entry(signs, f"{recall:.2f}, by chance {chance:.2f}, of the {share:.0%} of errors that FT repairs")


def _depth(measure: str, of: str = "") -> _Entry:
    """Spearman's correlation of layer and value: where is its sign settled?"""
    rises = {
        task: depth.rank_trend(reporting.layer_rows(its, measure))
        for task, its in depth.by_task("none", _PAPER).items()
    }
    mean = np.mean([each.estimate for each in rises.values()])
    return _entry(depth.verdict(rises), f"{of}{', ' * bool(of)}rank correlation {mean:+.2f}")


def _tau(queries: pd.DataFrame) -> _Entry:
    zero = queries.assign(zero=0.0 * queries["kendall_tau_b"])
    return _compared(zero, "kendall_tau_b", "zero")


# Beside a control.


def _answers(settings: pd.DataFrame, higher: str, lower: str) -> _Entry:
    """Whole answers to word pairs after ten epochs."""
    columns = f"{higher}_accuracy", f"{lower}_accuracy"
    numbers = (agreement.over_tasks(settings, name).estimate for name in columns)
    signs = depth.signs(intervention_effects.gaps(settings, *columns))
    return _entry(signs, "word pairs, ten epochs: {:.2f} against {:.2f}".format(*numbers))


def _recall(pairs: pd.DataFrame) -> _Entry:
    """Is the recall of FT by a context above chance? Beside it, that by the context with shuffled answers."""
    own, shuffled = (_beyond_chance(pairs, by) for by in (ICL, replace(ICL, lesson="shuffled")))
    above = depth.signs(reporting.corrected({task: statistics.student(own[task].dropna()) for task in own}))
    counts = agreement.common_repairs(pairs, FT, ICL).groupby("task").sum()
    recall, chance = ((counts[name] / counts["of"]).mean() for name in ("both", "chance"))
    entry = _entry(above, f"recall {recall:.2f}, by chance {chance:.2f}")
    extra = f"beyond chance {own.mean().mean():.1f} repairs a draw, with shuffled answers {shuffled.mean().mean():.1f}"
    return _Entry(entry.verdict, f"{entry.because}; {extra}")


def _beyond_chance(pairs: pd.DataFrame, by: UpdateFilter) -> pd.DataFrame:
    """Errors that FT and another change both repair, less what chance would give them in common: seeds by tasks."""
    found = agreement.common_repairs(pairs, FT, by)
    return (found["both"] - found["chance"]).unstack("task")


def _above_both_floors(pairs: pd.DataFrame, measure: str) -> _Entry:
    """Own demonstrations against made-up words on either side, with the shares of the way to two trainings."""
    own, ceiling = (agreement.between(pairs, ICL, FT), agreement.between(pairs, FT, replace(FT, lesson="other")))
    made_up = (agreement.between(pairs, *two) for two in ((ICL, replace(FT, lesson="nonsense")),
                                                     (replace(ICL, lesson="nonsense"), FT)))  # fmt: skip
    signs, shares = [], []
    for floor in made_up:
        signs.append(depth.signs(agreement.differences(own, floor, measure)))
        of_seeds = (agreement.by_seed(each, measure) for each in (floor, own, ceiling))
        shares.append(verdict_scale.normalised_position(*of_seeds)["share of the way"].estimate)
    least = min(signs, key=lambda of: of.rises)
    text = "{:.2f} of the way from made-up words to two trainings, {:.2f} if the context has them"
    return _Entry(_judged(*signs), f"{text.format(*shares)}; settled on {least.rises} of {sum(least)} tasks")


def _gain_with_depth() -> _Entry:
    """Does what FT adds to SimAM rise with depth?"""
    tables = {t: its.assign(gain=its["sim_am"] - its["sim_am_zsl"]) for t, its in depth.by_task("none", _PAPER).items()}
    rises = {task: depth.rank_trend(reporting.layer_rows(its, "gain")) for task, its in tables.items()}
    mean = np.mean([each.estimate for each in rises.values()])
    return _entry(depth.verdict(rises), f"its rise by FT: rank correlation {mean:+.2f}")


def _tau_of_right_answers() -> _Entry:
    """Is τ higher with right answers in the context than with shuffled ones?"""
    queries = results("word-pairs-controls", "queries")
    of = {control: queries[queries["control"] == control] for control in ("none", "shuffled-context")}
    samples = {
        task: tuple(reporting.sample(its[its["task"] == task], "kendall_tau_b") for its in of.values())
        for task in of["none"]["task"].unique()
    }
    numbers = (its.groupby("task")["kendall_tau_b"].mean().mean() for its in of.values())
    signs = depth.signs(reporting.comparisons(samples))
    return _entry(signs, "word pairs: {:.3f} against {:.3f} with shuffled answers".format(*numbers))


# Momentum.


def _momentum() -> tuple[_Entry, _Entry]:
    """The loss of momentum below that of plain attention, and of the previous value, at the largest budget.

    Beside the control stands the gain over plain attention on text of another kind.
    """
    blocks = {name: results(f"{name}-longer", "blocks") for name in ("plain", "momentum", "previous")}
    tokens = blocks["momentum"]["tokens"].max()
    plain, previous = (language_models.change(blocks[of], blocks["momentum"], tokens) for of in ("plain", "previous"))
    verdict = REPRODUCED if plain.low > 0 else _NOT_REPRODUCED
    lower = f"lower than plain attention by {plain:.3f} nats a token after {tokens / 1e6:.1f} million tokens"
    control = f"against the previous value alone {previous:.3f}"
    elsewhere = language_models.change_on_other_genre("plain", "momentum")[int(tokens)]
    return _Entry(verdict, lower), _Entry(verdict, f"{lower}, on news articles by {elsewhere:.3f}; {control}")


def _few_shot() -> tuple[_Entry, _Entry]:
    """An entry that cannot be asked, twice, for neither arm answers few-shot prompts."""
    budgets = results("momentum-longer", "budgets"), results("plain-longer", "budgets")
    right = max(its.loc[its["tokens"] == its["tokens"].max(), "is_right"].mean() for its in budgets)
    copied = max(its.loc[its["tokens"] == its["tokens"].max(), "copied"].mean() for its in budgets)
    why = f"no model here copies ({copied:.1%} of repeated tokens) or answers few-shot prompts ({right:.1%} right)"
    return _Entry(_CANNOT_BE_ASKED, why), _Entry(_CANNOT_BE_ASKED, why)
