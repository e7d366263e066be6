"""Zero-shot, in-context and fine-tuned predictions compared, and what attention does in each.

ZSL, ICL and FT stand for zero-shot, in-context and fine-tuned, as in `theory.metrics`. A `Cell` is one comparison
of the three: a checkpoint, a task, the demonstrations that one seed draws, and the queries.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from tqdm import tqdm

from explainer.compare.controls import CONTROLS, Control
from explainer.data import tasks
from explainer.data.files import Tables
from explainer.data.tasks import Example, Task, TaskData
from explainer.errors import StudyError
from explainer.models import finetuning, recording, scoring
from explainer.models.checkpoints import Checkpoint
from explainer.models.finetuning import FineTuned
from explainer.models.scoring import Prefix
from explainer.theory import metrics, statistics

POSITIONS: Mapping[str, str] = {
    "prompt": "the last token of the prompt, whose prediction is the answer",
    "first-label": "the first label word, appended to every query, as in the code released by Dai et al.",
}
"""The token at which attention is recorded."""

SPLITS: Mapping[str, str] = {
    "all": "every query may be drawn",
    "selection": "the half to choose a learning rate or a seed on; predictions only",
    "report": "the other half, to report on what was chosen",
}
"""The queries a cell may draw from. Which half an example belongs to depends on its text only, not on the seed."""

PROTOCOL = 2
"""Number of the arithmetic of a cell; raised, with a line in published/PROTOCOLS.md, when it changes a result."""

_TOP_K = 100
_TOP_EXAMPLES = 5
_N_MAPS = 16
"""Queries whose linear maps are compared: one map of a query is as large as a layer's keys and values."""


@dataclass(frozen=True)
class Cell:
    """One comparison. `lr` is the learning rate of FT, `k` the number of demonstrations, `n_queries` that of queries.

    The seed draws the demonstrations, the queries, and whatever else is random. `control`, `position` and `split` are
    names in CONTROLS, POSITIONS and SPLITS. Raises StudyError where a value is none.
    """

    checkpoint: str
    task: str
    seed: int
    k: int
    lr: float
    n_queries: int
    control: str = "none"
    position: str = "prompt"
    split: str = "all"

    def __post_init__(self):
        """Refuse what cannot be computed before anything is."""
        object.__setattr__(self, "lr", float(self.lr))  # 1 and 1.0 are one cell, not two
        require(self.seed >= 0, f"seed {self.seed} is negative; use 0, 1, 2, ...")
        require(self.k >= 1, f"k = {self.k}: fine-tuning needs at least 1 demonstration.")
        require(self.n_queries >= 2, f"{self.n_queries} queries: comparisons between queries need at least 2.")
        require(0 < self.lr < float("inf"), f"learning rate {self.lr:g} is not a positive number.")
        for name, known in (("control", CONTROLS), ("position", POSITIONS), ("split", SPLITS)):
            value = getattr(self, name)
            require(value in known, f"there is no {name} {value!r}; known: {', '.join(known)}.")

    @property
    def changes(self) -> Control:
        """What the control of this name changes."""
        return CONTROLS[self.control]

    @property
    def slug(self) -> str:
        """A readable name, not quite unique: the checkpoint without its directory or owner."""
        name = Path(self.checkpoint.partition("@")[0]).name
        numbers = f"k{self.k}-lr{self.lr:g}-n{self.n_queries}-seed{self.seed}"
        unusual = [v for v in (self.control, self.position, self.split) if v not in ("none", "prompt", "all")]
        return "-".join([name, self.task, numbers, *unusual])


def require(condition: bool, message: str) -> None:
    """Raise StudyError with the message unless the condition holds."""
    if not condition:
        raise StudyError(message)


@dataclass(frozen=True, eq=False)
class Observed:
    """What a model does with the n queries after a prefix, and what attention does at one token of each.

    `log_probs` (n, c) and `content_free` (c,), those of a query that says nothing, are None for free answers.
    `context_scores` are summed over heads.
    """

    correct: np.ndarray
    log_probs: np.ndarray | None
    content_free: np.ndarray | None
    outputs: Float[Tensor, "n layers hidden"]
    own_scores: list[Float[Tensor, "layers heads _"]]
    context_scores: Float[Tensor, "n layers P"]
    queries: Float[Tensor, "n layers heads_d"]


@dataclass(frozen=True, eq=False)
class Baseline:
    """Everything but FT: what the cells that differ in fine-tuning only share.

    `cell` is the one it was prepared for, `source` the checkpoint as loaded and `checkpoint` the one that is studied,
    another one under some controls. `context` are the token ids of the demonstrations and where each ends. `dW_icl`
    and `W_zsl`, one for each of the first queries, have shape (layers, key heads, d_v, d).
    """

    cell: Cell
    source: Checkpoint
    checkpoint: Checkpoint
    data: TaskData
    queries: list[Example]
    context: tuple[list[int], list[int]]
    zsl: Observed
    icl: Observed
    dW_icl: list[Tensor]
    W_zsl: list[Tensor]

    def serves(self, source: Checkpoint, cell: Cell) -> bool:
        """Whether the cell differs from that of the baseline in fine-tuning only."""
        return source is self.source and share_icl(self.cell, cell)


def share_icl(a: Cell, b: Cell) -> bool:
    """Whether two cells differ in fine-tuning only."""
    return replace(a, lr=1.0, control="none") == replace(b, lr=1.0, control="none") and a.changes.shares_icl(b.changes)


def prepare(checkpoint: Checkpoint, data: TaskData, cell: Cell, *, progress: bool = False) -> Baseline:
    """Demonstrations and queries of a cell, ZSL and ICL; raises TaskError, CheckpointError or StudyError."""
    scoring.require_distinct(checkpoint, data.task)
    studied = cell.changes.model(checkpoint, cell.seed)
    context = scoring.context_ids(studied, *cell.changes.context(data, cell.k, cell.seed))
    queries = draw_queries(data, cell)
    empty, demonstrations = (scoring.encode(studied, ids) for ids in ("", context[0]))
    asked = {"task": data.task, "queries": queries, "suffix": _suffix(data.task, cell)}
    observed, linear_maps = partial(observe, **asked, progress=progress), partial(_linear_maps, **asked)
    return Baseline(
        cell=cell,
        source=checkpoint,
        checkpoint=studied,
        data=data,
        queries=queries,
        context=context,
        zsl=observed(studied, empty),
        icl=observed(studied, demonstrations),
        dW_icl=[maps.context for maps in linear_maps(studied, demonstrations)],
        W_zsl=[maps.own for maps in linear_maps(studied, empty)],
    )


def run_cell(baseline: Baseline, cell: Cell, *, progress: bool = False) -> Tables:
    """The tables of one cell, to which the baseline must belong, as the laboratory stores them.

    - "cells": sizes and labels; for ZSL, ICL and FT accuracy raw and calibrated (by the batch and by a content-free
      query), macro F1 and AUC; losses and gradient norms of FT; Rec2FTP with its counts and its chance value; the mean
      of each similarity over queries and layers; and in the note, why something is missing;
    - "queries": for each query its id, its label, whether ZSL, ICL and FT are right, their log-probabilities, and each
      similarity as a mean over layers;
    - "layers": for each layer the norms of the update, and each similarity as a mean over queries with its standard
      deviation, `<similarity>_sd` (n - 1).

    Where FT diverges, what needs it is missing. Raises TaskError, CheckpointError or StudyError.
    """
    if not baseline.serves(baseline.source, cell):
        raise StudyError(f"the baseline was prepared for {baseline.cell.slug}, not for {cell.slug}; prepare another.")
    labels, notes = _labels(baseline.data.task, baseline.queries), []
    ft = _fine_tune(baseline, cell, progress)
    observed = {"zsl": baseline.zsl, "icl": baseline.icl, "ft": ft.observed}
    cells, rec2ftp, measures = _sizes(baseline, cell) | _training(ft.finetuned), {}, {}
    if ft.observed is None:
        del observed["ft"]
        notes.append(f"fine-tuning with learning rate {cell.lr:g} diverged at step {ft.finetuned.diverged_at}")
    else:
        rec2ftp = _rec2ftp(observed, notes)
        if cell.split == "selection":
            notes.append("the split 'selection' is for choosing settings; nothing is reported on it")
        else:
            measures = _similarities(baseline, ft, cell, notes)
    queries = {"query": list(range(cell.n_queries)), "query_id": list(map(query_id, baseline.queries))}
    queries |= {} if labels is None else {"label": labels}
    for state, one in observed.items():
        cells |= {f"{state}_{name}": value for name, value in scores(one, labels).items()}
        queries[f"{state}_correct"] = one.correct
        queries |= {} if labels is None else {f"{state}_log_probs": one.log_probs}
    over_queries, over_layers = _summaries(measures, cell.n_queries)
    return {
        "cells": cells | rec2ftp | {name: v.nanmean() for name, v in measures.items()} | {"note": "; ".join(notes)},
        "queries": queries | over_layers,
        "layers": _update_norms(ft.finetuned) | over_queries,
    }


def draw_queries(data: TaskData, cell: Cell) -> list[Example]:
    """The first n queries, in the order that the seed draws, of those in the cell's split.

    Raises TaskError when there are fewer.
    """
    return tasks.queries(data, cell.n_queries, cell.seed, lambda query: cell.split in ("all", _half(query)))


def _half(query: Example) -> str:
    """The half of a query, the same for every seed: no query that a seed was chosen on is reported for another seed."""
    return "selection" if _digest(query)[0] % 2 else "report"


def query_id(query: Example) -> str:
    """A name that depends on the text only, whichever seed draws it, so that queries can be told apart across cells."""
    return _digest(query).hex()[:12]


def _digest(query: Example) -> bytes:
    return hashlib.sha256("\n".join(query.fields.values()).encode()).digest()


def _sizes(baseline: Baseline, cell: Cell) -> dict[str, Any]:
    return {
        "n_layers": baseline.zsl.outputs.shape[1],
        "n_heads": baseline.zsl.own_scores[0].shape[1],
        "context_tokens": len(baseline.context[0]),
        "context_labels": _labels(*cell.changes.context(baseline.data, cell.k, cell.seed)),
        "training_labels": _labels(*cell.changes.training(baseline.data, cell.k, cell.seed)),
    }


def _linear_maps(
    checkpoint: Checkpoint, prefix: Prefix, task: Task, queries: Sequence[Example], suffix: str
) -> Iterator[recording.LinearMaps]:
    return recording.linear_maps(checkpoint, prefix, [task.prompt(query) for query in queries[:_N_MAPS]], suffix=suffix)


def observe(
    checkpoint: Checkpoint,
    prefix: Prefix,
    task: Task,
    queries: Sequence[Example],
    *,
    suffix: str = "",
    progress: bool = False,
) -> Observed:
    """Answer the queries after a prefix, and record attention at their last token, with a suffix if one is given."""
    prompts = [task.prompt(query) for query in queries]
    stream = recording.stream(checkpoint, prefix, prompts, task.labels or (), suffix=suffix)
    bar = tqdm(stream, total=len(prompts), desc="queries", unit="query", leave=False, disable=not progress)
    records = [(r.outputs, r.own_scores, r.context_scores.sum(1), r.queries, r.log_probs) for r in bar]
    outputs, own_scores, context_scores, attention_queries, log_probs = zip(*records, strict=True)
    if task.labels is None:
        correct = scoring.exact_match(checkpoint, prefix, prompts, [query.answer for query in queries])
        log_probs = content_free = None
    else:
        log_probs = np.stack(log_probs)
        correct = log_probs.argmax(1) == np.array([query.label for query in queries])
        nothing = task.prompt(Example(dict.fromkeys(task.fields, "N/A"), ""))
        content_free = scoring.candidate_log_probs(checkpoint, prefix, [nothing], task.labels)[0]
    return Observed(
        correct,
        log_probs,
        content_free,
        torch.stack(outputs),
        list(own_scores),
        torch.stack(context_scores),
        torch.stack(attention_queries),
    )


def _suffix(task: Task, cell: Cell) -> str:
    if cell.position == "prompt":
        return ""
    require(task.labels is not None, f"task {task.name!r} has no labels, so there is no position {cell.position!r}.")
    return f" {task.labels[0]}"


@dataclass(frozen=True, eq=False)
class _FT:
    """FT; the attention queries of each training sequence, (layers, tokens, heads * head size); what FT then does.

    `observed` and `W`, the linear maps as in `Baseline`, are None if the training diverged.
    """

    finetuned: FineTuned
    training_queries: list[Tensor]
    observed: Observed | None = None
    W: list[Tensor] | None = None


def _fine_tune(baseline: Baseline, cell: Cell, progress: bool) -> _FT:
    task = baseline.data.task
    asked = {"task": task, "queries": baseline.queries, "suffix": _suffix(task, cell)}
    examples = cell.changes.training(baseline.data, cell.k, cell.seed)
    sequences = finetuning.training_ids(baseline.checkpoint, *examples)
    training_queries = []
    with tqdm(total=len(sequences), desc="fine-tuning", unit="step", leave=False, disable=not progress) as bar:

        def keep(_: int, queries: Tensor) -> None:
            training_queries.append(queries.float().cpu())
            bar.update()

        finetuned = cell.changes.descend(baseline.checkpoint, sequences, cell.lr, on_queries=keep)
    if finetuned.diverged_at is not None:
        return _FT(finetuned, training_queries)
    finetuned = cell.changes.update(finetuned, cell.seed)
    with finetuned.applied() as tuned:
        empty = scoring.encode(tuned, "")
        observed = observe(tuned, empty, **asked, progress=progress)
        W = [maps.own for maps in _linear_maps(tuned, empty, **asked)]
    return _FT(finetuned, training_queries, observed, W)


def _labels(task: Task, examples: Sequence[Example]) -> list[int] | None:
    return None if task.labels is None else [example.label for example in examples]


def scores(observed: Observed, labels: list[int] | None) -> dict[str, Any]:
    """Accuracy raw and calibrated, macro F1 and AUC; the raw one only for free answers."""
    accuracy = {"accuracy": observed.correct.mean()}
    if labels is None:
        return accuracy
    log_probs, y = observed.log_probs.astype(np.float64), np.array(labels)
    return accuracy | {
        "content_free": observed.content_free,
        "calibrated_accuracy": statistics.calibrated_accuracy(log_probs, y),
        "content_free_accuracy": statistics.calibrated_accuracy(log_probs, y, observed.content_free),
        "macro_f1": statistics.macro_f1(log_probs, y),
        "auc": statistics.macro_auc(log_probs, y),
    }


def _training(finetuned: FineTuned) -> dict[str, Any]:
    names = ("losses", "gradient_norms", "loss_after", "diverged_at")
    return {name: getattr(finetuned, name) for name in names}


def _update_norms(finetuned: FineTuned) -> dict[str, list]:
    return {
        "layer": list(range(len(finetuned.update))),
        "update_norm_keys": [dW.key_weight.norm().item() for dW in finetuned.update],
        "update_norm_values": [dW.value_weight.norm().item() for dW in finetuned.update],
    }


def _rec2ftp(observed: Mapping[str, Observed], notes: list[str]) -> dict[str, Any]:
    zsl, icl, ft = (torch.from_numpy(observed[name].correct) for name in ("zsl", "icl", "ft"))
    counts = metrics.rec2ftp_counts(zsl, icl, ft)
    if not counts.ft_fixes:
        notes.append(f"FT repairs none of the {counts.zsl_errors} errors of ZSL")
    value = counts.both_fix / counts.ft_fixes if counts.ft_fixes else None
    return counts._asdict() | {"rec2ftp": value, "rec2ftp_chance": metrics.rec2ftp_chance(zsl, icl)}


# Similarity.


def _similarities(baseline: Baseline, trained: _FT, cell: Cell, notes: list[str]) -> dict[str, Tensor]:
    """Each similarity of each query (of the first ones, where maps are compared) in each layer, (n, layers)."""
    zsl, icl, ft = baseline.zsl, baseline.icl, trained.observed
    measures = _of_outputs(zsl.outputs, icl.outputs, ft.outputs, cell.seed) | _of_updates(baseline, trained.W)
    if all(a.shape == b.shape for a, b in zip(zsl.own_scores, icl.own_scores, strict=True)):
        own_scores = zsl.own_scores, icl.own_scores, ft.own_scores
        measures |= _of_scores(*own_scores, len(baseline.context[0]), cell.seed)
    else:
        notes.append("the tokenizer gives a query other tokens after demonstrations than without them")
    spans = common_tokens(baseline, cell)
    if spans is None:
        notes.append("FT was trained on other tokens than those of the context")
    else:
        measures |= _of_training_tokens(icl, trained, spans, cell.seed)
    return measures


def _summaries(measures: Mapping[str, Tensor], n: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Columns of the tables of layers and of queries; values that do not exist (NaN) are left out of the means."""
    layers, queries = {}, {}
    for name, values in measures.items():
        defined = ~values.isnan()
        deviation = (values - values.nanmean(0)).nan_to_num() * defined
        count = defined.sum(0)
        sd = (deviation.square().sum(0) / (count - 1).clamp(min=1)).sqrt().where(count > 1, torch.nan)
        layers |= {name: values.nanmean(0), f"{name}_sd": sd}
        queries[name] = torch.cat([values.nanmean(1), values.new_full((n - len(values),), torch.nan)])
    return layers, queries


def _of_outputs(zsl: Tensor, icl: Tensor, ft: Tensor, seed: int) -> dict[str, Tensor]:
    stand_ins = {
        "": ft,
        "_isotropic": metrics.isotropic_floor(zsl, ft, seed),
        "_permuted": metrics.permuted_pairing(zsl, ft, seed),
    }
    similarities: dict[str, Callable[..., Tensor]] = {
        "sim_aou": metrics.sim_aou,
        "sim_aou_raw": partial(metrics.sim_aou, normalize=False),
        "sim_aou_tangent": metrics.sim_aou_tangent,
        "sim_aou_tangent_uncentred": metrics.sim_aou_tangent_uncentred,
        "sim_aou_residual": metrics.sim_aou_residual,
    }
    measures = {
        name + floor: similarity(zsl, icl, h)
        for name, similarity in similarities.items()
        for floor, h in stand_ins.items()
    }
    return measures | {
        "sim_aou_noise": metrics.normalised_noise_value(zsl, icl, ft),
        "sim_aou_uniform": metrics.uniform_floor(zsl, icl, seed),
    }


def _of_scores(
    zsl: list[Tensor], icl: list[Tensor], ft: list[Tensor], context_tokens: int, seed: int
) -> dict[str, Tensor]:
    isotropic = metrics.isotropic_floor(zsl, ft, seed)
    by_head = {
        "sim_am": metrics.sim_am(icl, ft),
        "sim_am_isotropic": metrics.sim_am(icl, isotropic),
        "sim_am_zsl": metrics.sim_am(icl, zsl),
        "sim_am_delta": metrics.sim_am_delta(zsl, icl, ft, context_tokens),
        "sim_am_delta_isotropic": metrics.sim_am_delta(zsl, icl, isotropic, context_tokens),
    }
    return {name: values.nanmean(-1) for name, values in by_head.items()}


def _of_updates(baseline: Baseline, W_ft: Sequence[Tensor]) -> dict[str, Tensor]:
    """dW_ICL and dW_FT of Dai et al. (2023), eq. 11 to 13, as matrices; means over the key heads.

    Permuted: dW_FT of another query. The ratio is of norms, FT over ICL.
    """
    dW_icl = baseline.dW_icl
    dW_ft = [ft - zsl for ft, zsl in zip(W_ft, baseline.W_zsl, strict=True)]
    changed = [
        metrics.beyond_rounding(dW, zsl, metrics.spacing(zsl), axes=2)
        for dW, zsl in zip(dW_ft, baseline.W_zsl, strict=True)
    ]
    another = [*changed[1:], *changed[:1]]

    def mean_cosines(a: Sequence[Tensor], b: Sequence[Tensor]) -> Tensor:
        return torch.stack([metrics.update_cosines(x, y).nanmean(-1) for x, y in zip(a, b, strict=True)])

    def norms(dW: Sequence[Tensor]) -> Tensor:
        return torch.stack([torch.linalg.matrix_norm(x).mean(-1) for x in dW])

    return {
        "update_cosine": mean_cosines(dW_icl, changed),
        "update_cosine_permuted": mean_cosines(dW_icl, another),
        "update_cosine_zsl": mean_cosines(dW_icl, baseline.W_zsl),
        "update_norm_ratio": norms(dW_ft) / norms(dW_icl),
    }


def common_tokens(baseline: Baseline, cell: Cell) -> list[tuple[int, int]] | None:
    """For each demonstration, where it starts in the context and how many tokens FT is trained on stand there.

    That is all of them, or those before the answer if the context has another one. The context has separators that FT
    does not see, and one first token for all. None where even a prompt has other tokens, or FT has other examples.
    """
    (ids, ends), checkpoint = baseline.context, baseline.checkpoint
    task, examples = cell.changes.training(baseline.data, cell.k, cell.seed)
    sequences = finetuning.training_ids(checkpoint, task, examples)
    prompts = checkpoint.tokenize_all([task.prompt(example) for example in examples])
    spans = []
    for start, (_, *tokens), prompt in zip(ends, sequences, prompts, strict=False):  # ends has one more
        n = _n_equal(tokens, ids[start:])
        if n < len(prompt):
            return None
        spans.append((start, n))
    return spans


def _n_equal(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the beginning that both have in common."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _of_training_tokens(icl: Observed, trained: _FT, spans: Sequence[tuple[int, int]], seed: int) -> dict[str, Tensor]:
    """Dai et al. (2023, ACL version), table 5: m_ICL, the score to a token; m_FT, q'_token . q; summed over heads."""
    m_icl = torch.cat([icl.context_scores[..., start : start + n] for start, n in spans], dim=-1)
    queries = zip(trained.training_queries, spans, strict=True)
    q_train = torch.cat([q[:, 1 : 1 + n] for q, (_, n) in queries], dim=1)
    m_ft = torch.einsum("ltd,nld->nlt", q_train, trained.observed.queries.float())
    by_token = {
        "kendall_tau_b": metrics.kendall_training_tokens(m_icl, m_ft),
        "kendall_tau_a": metrics.kendall_tau_a(m_icl, m_ft),
    }
    return by_token | _recall("top_k_recall", m_icl, m_ft, _TOP_K) | _of_examples(m_icl, m_ft, spans, seed)


def _of_examples(m_icl: Tensor, m_ft: Tensor, spans: Sequence[tuple[int, int]], seed: int) -> dict[str, Tensor]:
    """Agreement on whole demonstrations, whose lengths are the same on both sides: see `metrics.by_example`."""
    ends = list(accumulate(n for _, n in spans))
    parts = list(zip([0, *ends], ends, strict=False))
    stand_ins = {"": m_ft, "_permuted": metrics.permuted_tokens(m_ft, seed)}
    measures = {}
    for name, mean in (("example", False), ("example_mean", True)):
        a_icl, *others = (metrics.by_example(m, parts, mean=mean) for m in (m_icl, *stand_ins.values()))
        for floor, a_ft in zip(stand_ins, others, strict=True):
            measures[f"{name}_tau_b{floor}"] = metrics.kendall_tau_b(a_icl, a_ft)
        measures |= _recall(f"{name}_recall", a_icl, others[0], _TOP_EXAMPLES)
    return measures


def _recall(name: str, m_icl: Tensor, m_ft: Tensor, k: int) -> dict[str, Tensor]:
    """Top-k recall and its value by chance."""
    T = m_icl.shape[-1]
    k = min(k, T)
    chance = torch.full(m_icl.shape[:-1], k / T, dtype=torch.float64)
    return {name: metrics.top_k_recall(m_icl, m_ft, k), f"{name}_chance": chance}
