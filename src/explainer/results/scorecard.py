"""The claims of Dai et al. (2023), one by one: what they print, and what the stored results say of it.

A claim is asked twice. Under the paper's own protocol, on its six tasks, but at one rate for all tasks and without a
choice of the best seed; and beside a control, on word pairs after ten epochs where the stored results allow it, so that
both ways of learning learn (τ after one epoch; SimAM with depth on the six tasks; momentum on language models). Asked
task by task, it is *reproduced* if the interval, after Holm's correction, is above 0 on most tasks and below 0 on none;
and *seen, for another reason* if so much is true, but the control, which lacks the claimed cause, does as well. Else it
is *not reproduced*. Where the results cannot tell, it *cannot be asked here*, and the entry says why.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from explainer.results import (
    agreement_results,
    comparison_results,
    language_model_results,
    papers,
    published,
    reporting,
    verdict,
)
from explainer.results.agreement_results import FT, ICL
from explainer.results.published import GRIDS, results
from explainer.results.table_intervals import Signs, by_task, holm_corrected, over_seeds, seed_means
from explainer.theory.statistics import Interval

REPRODUCED, _NOT_REPRODUCED, _CANNOT_BE_ASKED = "reproduced", "not reproduced", "cannot be asked here"
_FOR_ANOTHER_REASON = "seen, for another reason"

_PROTOCOL = {"control": "none", "position": "prompt"}
_RESAMPLES = 500  # the interval's ends are known to about a tenth of its width


class _Entry(NamedTuple):
    """A verdict, and the numbers or the reason behind it."""

    verdict: str
    because: str


class _Claim(NamedTuple):
    """A claim, what the paper prints, and what is found under its protocol and beside a control."""

    claim: str
    paper: str
    protocol: _Entry
    between: _Entry


class _Question(NamedTuple):
    """A number of the paper and one of the checkpoint, what each is read against, and the verdict on its claim."""

    paper: float
    paper_floor: float | None
    here: Interval
    floor: Interval
    verdict: str


def beside_paper(model: str = "2.7B", queries: pd.DataFrame | None = None) -> dict[str, _Question]:
    """Two accuracies and the four measures under the paper's protocol, beside what the paper prints for one model.

    Of the book's checkpoint, or of the `queries` of another one. Means over its six tasks; only Rec2FTP is the
    share of all queries of the six together. An accuracy is read against the state that the claim says it exceeds,
    Rec2FTP against chance within each label, SimAOU against its noise value, SimAM against the model before FT, and
    τ against 0. The paper prints no chance value of Rec2FTP.
    """
    if queries is None:
        (queries,) = queries_by_checkpoint().values()
    queries = queries.assign(zero=0.0 * queries["kendall_tau_b"])
    pooled = comparison_results.repairs(queries)
    means = {state: float(np.mean(list(of.values()))) for state, of in papers.quoted("accuracy")[model].items()}

    def mean(column: str) -> Interval:
        return reporting.similarity_interval(queries, column, n_resamples=_RESAMPLES)

    def against(paper: float, paper_floor: float, *columns: str) -> _Question:
        ours, floor = map(mean, columns)
        return _Question(paper, paper_floor, ours, floor, _compared(queries, *columns).verdict)

    aou, am, tau = (
        of[model]
        for of in (papers.quoted("sim_aou_average"), papers.quoted("sim_am_average"), papers.quoted("kendall_average"))
    )
    return {
        "FT": against(means["ft"], means["zsl"], "ft_correct", "zsl_correct"),
        "ICL": against(means["icl"], means["ft"], "icl_correct", "ft_correct"),
        "Rec2FTP": _Question(
            papers.quoted("rec2ftp_average")[model], None, pooled.recall, pooled.within_label, _repairs(queries).verdict
        ),
        "SimAOU": against(aou["ft"], aou["random"], "sim_aou", "sim_aou_noise"),
        "SimAM": against(am["after"], am["before"], "sim_am", "sim_am_zsl"),
        "τ": against(tau["ft"], tau["random"], "kendall_tau_b", "zero"),
    }


def scorecard() -> list[_Claim]:
    """All claims, from the published tables."""
    (of_paper,) = queries_by_checkpoint().values()
    pairs, word_pairs = agreement_results.pairs("agreement"), results("agreement")
    of_layers, momentum, few_shot = (
        _by_task(results(GRIDS["comparison"], "layers", control="none")),
        _momentum(),
        _few_shot(),
    )
    protocol = _claims_under_protocol(of_paper, of_layers) | dict(zip(_MOMENTUM, (momentum[0], few_shot), strict=True))
    between = [
        _answers(word_pairs, "ft", "zsl"),
        _answers(word_pairs, "icl", "ft"),
        _recall(pairs),
        _above_both_floors(pairs, "sim_aou"),
        _depth(_by_task(results("shared-part", "layers")), "own", "own_noise", of="word pairs, less the noise value:"),
        _above_both_floors(pairs, "sim_am"),
        _depth(of_layers, "sim_am", "sim_am_zsl", of="its rise by FT:"),
        _tau_of_right_answers(),
        momentum[1],
        few_shot,
    ]
    rows = zip(protocol.items(), between, strict=True)
    return [_Claim(claim, quoted_values(claim), entry, control) for (claim, entry), control in rows]


def _claims_under_protocol(queries: pd.DataFrame, of_layers: Mapping[str, pd.DataFrame]) -> dict[str, _Entry]:
    """The eight claims about one model, from the tables "queries" and, by task, "layers" of the comparison."""
    outputs, maps, tau = ("sim_aou",), ("sim_am",), ("kendall_tau_b",)
    queries = queries.assign(zero=0.0 * queries["kendall_tau_b"])
    claims: dict[str, tuple[tuple[str, ...], Callable[[], _Entry]]] = {
        "FT answers more than ZSL": ((), lambda: _compared(queries, "ft_correct", "zsl_correct")),
        "ICL answers more than FT": ((), lambda: _compared(queries, "icl_correct", "ft_correct")),
        "ICL repairs what FT repairs: Rec2FTP": ((), lambda: _repairs(queries)),
        "SimAOU is above that of a random update": (outputs, lambda: _compared(queries, "sim_aou", "sim_aou_noise")),
        "SimAOU rises with depth": (outputs, lambda: _depth(of_layers, "sim_aou")),
        "SimAM is higher after FT than before": (maps, lambda: _compared(queries, "sim_am", "sim_am_zsl")),
        "SimAM rises with depth": (maps, lambda: _depth(of_layers, "sim_am")),
        "ICL and FT attend to the same training tokens: τ": (tau, lambda: _compared(queries, *tau, "zero")),
    }  # fmt: skip
    return {
        claim: entry() if all(queries[name].notna().any() for name in needs) else _Entry(_CANNOT_BE_ASKED, _REFUSED)
        for claim, (needs, entry) in claims.items()
    }


_MOMENTUM = ("Momentum lowers the perplexity", "Momentum raises the accuracy of ICL")
_REFUSED = "not measured on this model; `explainer models` says why"
_TRAINED = "asks for models trained with momentum attention (`explainer-lab language-models`), not for a finished one"


class _Card(NamedTuple):
    """The tasks that a model was asked, an entry for each claim, and what demonstrations add to its right answers."""

    tasks: list[str]
    claims: dict[str, _Entry]
    gain: Interval

    @property
    def note(self) -> str:
        """On what the claims were asked, and whether the model is seen to learn this in context."""
        others = "" if set(self.tasks) <= set(papers.TASKS) else ", not tasks of the paper"
        unseen = "; that includes 0, and until it does not, the claims say nothing about learning"
        asked = (
            f"on {', '.join(self.tasks)}{others}; demonstrations add {self.gain:.2f} to its right answers, "
            "or to those of the most frequent label if these are more"
        )
        return asked + unseen * (not self.gain.low > 0)


Cards = dict[str, _Card]
"""By checkpoint."""


def cards(directory: str | Path | None = None) -> Cards:
    """The paper's ten claims under its protocol, by checkpoint, from the comparison of a directory, or of the book.

    The tasks are the paper's six where there are any of them, else all. Empty if nothing of the comparison is there.
    Raises ExperimentError as `published.reported`.
    """
    layers, found = published.reported(directory, "comparison", "layers", **_PROTOCOL), {}
    for checkpoint, queries in queries_by_checkpoint(directory).items():
        tasks = list(queries["task"].unique())
        of_layers = {task: its for task, its in _by_task(layers[checkpoint]).items() if task in tasks}
        claims = _claims_under_protocol(queries, of_layers)
        claims |= dict.fromkeys(_MOMENTUM, _Entry(_CANNOT_BE_ASKED, _TRAINED))
        most_asked = queries.groupby("task")["label"].transform(lambda labels: labels.mode().get(0))
        accuracies = queries.assign(
            icl_accuracy=queries["icl_correct"].astype(float),
            zsl_accuracy=queries["zsl_correct"].astype(float),
            one_label_accuracy=(queries["label"] == most_asked).where(queries["label"].notna()).astype(float),
        )
        name = checkpoint if directory else verdict.BOOK.format(checkpoint)
        found[name] = _Card(tasks, claims, verdict.gain_in_context(accuracies))
    return found


def queries_by_checkpoint(directory: str | Path | None = None) -> dict[str, pd.DataFrame]:
    """The queries under the paper's protocol of a directory, or of the book; of the paper's tasks, if it has any."""
    found = {}
    for checkpoint, queries in published.reported(directory, "comparison", "queries", **_PROTOCOL).items():
        known = queries[queries["ft_correct"].notna()]
        of_paper = known[known["task"].isin(papers.TASKS)]
        found[checkpoint] = of_paper if len(of_paper) else known
    return found


def _by_task(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {str(task): of_task for task, of_task in rows.groupby("task", sort=False)}


def _entry(signs: Signs, numbers: str) -> _Entry:
    """Differences above zero support a claim: on most tasks, with none below."""
    verdict = REPRODUCED if signs.rises > sum(signs) / 2 and not signs.falls else _NOT_REPRODUCED
    opposite = f", below 0 on {signs.falls}" if signs.falls else ""
    return _Entry(verdict, f"{numbers}; above 0 on {signs.rises} of {sum(signs)} tasks{opposite}")


# What the paper prints.


def quoted_values(claim: str) -> str:
    """What the paper prints of a claim, of models with 1.3 and 2.7 billion weights."""
    states = {"FT answers more than ZSL": ("ft", "zsl"), "ICL answers more than FT": ("icl", "ft")}
    averages = {
        "ICL repairs what FT repairs: Rec2FTP": ("rec2ftp",),
        "SimAOU is above that of a random update": ("sim_aou", "ft", "random"),
        "SimAM is higher after FT than before": ("sim_am", "after", "before"),
        "ICL and FT attend to the same training tokens: τ": ("kendall", "ft", "random"),
        "Momentum raises the accuracy of ICL": ("momentum_accuracy",),
    }
    if claim in states:
        higher, lower = states[claim]
        of_models = papers.quoted("accuracy")
        means = {m: [np.mean(list(of[s].values())) for s in (higher, lower)] for m, of in of_models.items()}
        ahead = sum(of[higher][t] > of[lower][t] for of in of_models.values() for t in papers.TASKS)
        printed = ", ".join(f"{model} {a:.3f} against {b:.3f}" for model, (a, b) in means.items())
        return f"{printed}; on {ahead} of {len(papers.MODELS) * len(papers.TASKS)}"
    if claim in averages:
        name, *conditions = averages[claim]
        printed = {
            model: [values[condition] for condition in conditions] or [values]
            for model, values in papers.quoted(f"{name}_average").items()
        }
        return ", ".join(f"{m} {' against '.join(f'{x:.3f}' for x in numbers)}" for m, numbers in printed.items())
    if claim == "Momentum lowers the perplexity":
        plain, momentum = (papers.quoted("momentum_perplexity")[name] for name in ("plain", "momentum"))
        return ", ".join(f"{momentum[n]:.2f} against {plain[n]:.2f} ({n})" for n in ("256", "512", "1024"))
    return "box plots of its first version"


# Under the paper's protocol: its six tasks, one epoch, a floor of noise.


def _compared(queries: pd.DataFrame, a: str, b: str) -> _Entry:
    """A - B of two columns for each task, query by query, corrected for the number of tasks."""
    numbers = (queries.groupby("task")[name].mean().mean() for name in (a, b))
    differences = reporting.column_differences(queries, a, b)
    lacking = [task for task in queries["task"].unique() if task not in differences]
    entry = _entry(Signs.among(differences), "{:.3f} against {:.3f}".format(*numbers))
    return entry._replace(because=f"{entry.because}; not measured on {', '.join(lacking)}") if lacking else entry


def _repairs(queries: pd.DataFrame) -> _Entry:
    """Rec2FTP beside its chance value within each label."""
    found = [comparison_results.repairs(of_task) for of_task in _by_task(queries).values()]
    n_repaired, n_errors = sum(one.n_repaired for one in found), sum(one.n_errors for one in found)
    if not n_repaired:
        return _Entry(_CANNOT_BE_ASKED, f"FT repairs none of {n_errors} errors")
    above, below = sum(one.excess.low > 0 for one in found), sum(one.excess.high < 0 for one in found)
    recall, chance = (np.mean([getattr(one, name).estimate for one in found]) for name in ("recall", "within_label"))
    share = n_repaired / n_errors
    signs = Signs(above, below, len(found) - above - below)
    return _entry(signs, f"{recall:.2f}, by chance {chance:.2f}, of the {share:.0%} of errors that FT repairs")


def _depth(of_layers: Mapping[str, pd.DataFrame], measure: str, less: str | None = None, of: str = "") -> _Entry:
    """Spearman's correlation of layer and value: where is its sign certain?"""
    trends = comparison_results.rank_trends(of_layers, measure, less)
    mean = np.mean([each.estimate for each in trends.values()])
    return _entry(Signs.among(holm_corrected(trends)), f"{of} rank correlation {mean:+.2f}".lstrip())


# Beside a control.


def _beside_control(verdict: str, caused: bool) -> str:
    """What is reproduced has another reason where a control that lacks the claimed cause does as well."""
    return _FOR_ANOTHER_REASON if verdict == REPRODUCED and not caused else verdict


def _answers(settings: pd.DataFrame, higher: str, lower: str) -> _Entry:
    """Whole answers to word pairs after ten epochs."""
    a, b = (settings.assign(accuracy=settings[f"{state}_accuracy"]) for state in (higher, lower))
    numbers = (over_seeds(each, "accuracy").estimate for each in (a, b))
    signs = Signs.among(by_task(a, "accuracy", minus=b))
    return _entry(signs, "word pairs, ten epochs: {:.2f} against {:.2f}".format(*numbers))


def _recall(pairs: pd.DataFrame) -> _Entry:
    """Is the recall of FT by a context above chance, and above that by a context with shuffled answers?"""
    counts = agreement_results.common_repairs(pairs, FT, ICL).reset_index()
    shuffled = agreement_results.common_repairs(pairs, FT, replace(ICL, lesson="shuffled")).reset_index()
    # Errors that FT and a context both repair, less what chance would give them in common.
    counts, shuffled = (each.assign(beyond=each["both"] - each["chance"]) for each in (counts, shuffled))
    signs = Signs.among(holm_corrected(by_task(counts, "beyond")))
    sums = counts.groupby("task")[["both", "chance", "of"]].sum()
    recall, chance = ((sums[name] / sums["of"]).mean() for name in ("both", "chance"))
    entry = _entry(signs, f"recall {recall:.2f}, by chance {chance:.2f}")
    beyond, by_shuffled = (each.groupby("task")["beyond"].mean().mean() for each in (counts, shuffled))
    extra = f"beyond chance {beyond:.1f} repairs a draw, with shuffled answers {by_shuffled:.1f}"
    over_shuffled = Signs.among(holm_corrected(by_task(counts, "beyond", minus=shuffled)))
    verdict = _beside_control(entry.verdict, caused=_entry(over_shuffled, "").verdict == REPRODUCED)
    return _Entry(verdict, f"{entry.because}; {extra}")


def _above_both_floors(pairs: pd.DataFrame, measure: str) -> _Entry:
    """Own demonstrations against made-up words on either side, with the shares of the way to two trainings."""
    own = agreement_results.pairs_between(pairs, ICL, FT)
    ceiling = agreement_results.pairs_between(pairs, FT, replace(FT, lesson="other"))
    signs, shares = [], []
    for two in ((ICL, replace(FT, lesson="nonsense")), (replace(ICL, lesson="nonsense"), FT)):
        floor = agreement_results.pairs_between(pairs, *two)
        signs.append(Signs.among(by_task(own, measure, minus=floor)))
        row = verdict.Row.over_seeds(*(seed_means(each, measure) for each in (floor, own, ceiling)))
        shares.append(row.share.estimate)
    text = "{:.2f} of the way from made-up words to two training runs, {:.2f} if the context has them".format(*shares)
    entries = [_entry(each, text) for each in signs]
    supported = all(entry.verdict == REPRODUCED for entry in entries)
    least = min(signs, key=lambda each: each.rises)
    return _Entry(
        REPRODUCED if supported else _NOT_REPRODUCED, f"{text}; above 0 on {least.rises} of {sum(least)} tasks"
    )


def _tau_of_right_answers() -> _Entry:
    """Is τ higher with right answers in the context than with shuffled ones?"""
    queries = results("word-pairs-controls", "queries")
    own, shuffled = (queries[queries["control"] == control] for control in ("none", "shuffled-context"))
    numbers = (its.groupby("task")["kendall_tau_b"].mean().mean() for its in (own, shuffled))
    differences = comparison_results.changes_under_controls(
        _by_task(queries), ["none"], ["kendall_tau_b"], than="shuffled-context"
    )
    return _entry(Signs.among(differences), "word pairs: {:.3f} against {:.3f} with shuffled answers".format(*numbers))


# Momentum.


def _momentum() -> tuple[_Entry, _Entry]:
    """The loss of momentum below that of plain attention, and of the previous value, at the largest budget.

    Beside the control stands the gain over plain attention on text of another kind.
    """
    changes = {of: language_model_results.change_at_budgets(of, "momentum") for of in ("plain", "previous")}
    tokens = max(changes["plain"])
    plain, previous = (of[tokens] for of in changes.values())
    verdict = REPRODUCED if plain.low > 0 else _NOT_REPRODUCED
    beside_control = _beside_control(verdict, caused=previous.low > 0)
    lower = f"lower than plain attention by {plain:.3f} nats a token after {tokens / 1e6:.1f} million tokens"
    control = f"against the previous value alone {previous:.3f}"
    elsewhere = language_model_results.change_at_budgets("plain", "momentum", other_genre=True)[tokens]
    return _Entry(verdict, lower), _Entry(beside_control, f"{lower}, on news articles by {elsewhere:.3f}; {control}")


def _few_shot() -> _Entry:
    """An entry that cannot be asked, for neither arm answers few-shot prompts."""
    budgets = (results(f"{arm}-longer", "budgets") for arm in ("momentum", "plain"))
    last = [its.loc[its["tokens"] == its["tokens"].max(), ["is_right", "copied"]].mean() for its in budgets]
    right, copied = (max(its[name] for its in last) for name in ("is_right", "copied"))
    why = f"no model here copies ({copied:.1%} of repeated tokens) or answers few-shot prompts ({right:.1%} right)"
    return _Entry(_CANNOT_BE_ASKED, why)
