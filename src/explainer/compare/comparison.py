"""Zero-shot, in-context and fine-tuned predictions compared, and what attention does in each.

ZSL, ICL and FT stand for zero-shot, in-context and fine-tuned, as in `theory.metrics`. A `ComparisonSetting` is one
comparison of the three: a checkpoint, a task, the demonstrations that one seed draws, and the queries.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from explainer.compare.controls import CONTROLS, Control
from explainer.compare.observations import Observed, observe, observe_linear_maps
from explainer.data import tasks
from explainer.data.files import Tables
from explainer.data.tasks import Example, Task, TaskData
from explainer.errors import ExperimentError, require
from explainer.models import finetuning, scoring
from explainer.models.finetuning import FineTuned
from explainer.models.loading import Checkpoint
from explainer.theory import metrics

POSITIONS: Mapping[str, str] = {
    "prompt": "the last token of the prompt, whose prediction is the answer (or of what all labels begin with)",
    "first-label": "the first label word, appended to every query, as in the code released by Dai et al.",
}
"""The token at which attention is recorded."""

SPLITS: Mapping[str, str] = {
    "all": "every query may be drawn",
    "selection": "the half to choose a learning rate or a seed on; predictions only",
    "report": "the other half, to report on what was chosen",
}
"""The queries a setting may draw from. Which half an example belongs to depends on its text only, not on the seed."""

PROTOCOL = 2
"""Number of the arithmetic of a setting; raised, with a line in published/PROTOCOLS.md, when it changes a result."""


@dataclass(frozen=True)
class ComparisonSetting:
    """One comparison. `lr` is the learning rate of FT, `k` the number of demonstrations, `n_queries` that of queries.

    The seed draws the demonstrations, the queries, and whatever else is random. `control`, `position` and `split` are
    names in CONTROLS, POSITIONS and SPLITS. Raises ExperimentError where a value is none.
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
        """A readable name, with the whole name of the checkpoint: two of one name stand in different folders."""
        name = re.sub(r"[^\w.-]+", "-", self.checkpoint).strip("-")
        numbers = f"k{self.k}-lr{self.lr:g}-n{self.n_queries}-seed{self.seed}"
        unusual = [v for v in (self.control, self.position, self.split) if v not in ("none", "prompt", "all")]
        return "-".join([name, self.task, numbers, *unusual])


@dataclass(frozen=True, eq=False)
class Baseline:
    """Everything but FT: what the settings that differ in fine-tuning only share.

    `setting` is the one it was prepared for, `source` the checkpoint as loaded and `checkpoint` the one that is
    studied, another one under some controls. `context` are the token ids of the demonstrations and where each ends.
    `dW_icl` and `W_zsl`, one for each of the first queries, have shape (layers, key heads, d_v, d).
    """

    setting: ComparisonSetting
    source: Checkpoint
    checkpoint: Checkpoint
    data: TaskData
    queries: list[Example]
    context: tuple[list[int], list[int]]
    zsl: Observed
    icl: Observed
    dW_icl: list[Tensor]
    W_zsl: list[Tensor]

    def serves(self, source: Checkpoint, setting: ComparisonSetting) -> bool:
        """Whether the setting differs from that of the baseline in fine-tuning only."""
        own, other = (replace(each, lr=1.0, control="none") for each in (self.setting, setting))
        of_icl, of_other = ((each.changes.model, each.changes.context) for each in (self.setting, setting))
        return source is self.source and own == other and of_icl == of_other


def prepare(checkpoint: Checkpoint, data: TaskData, setting: ComparisonSetting, *, progress: bool = False) -> Baseline:
    """Demonstrations and queries of a setting, ZSL and ICL; raises TaskError, CheckpointError or ExperimentError."""
    scoring.require_distinct(checkpoint, data.task)
    studied = setting.changes.model(checkpoint, setting.seed)
    context = scoring.context_ids(studied, *setting.changes.context(data, setting.k, setting.seed))
    asked = {"task": data.task, "queries": draw_queries(data, setting), "suffix": _suffix(data.task, setting)}
    nothing, demonstrations = (scoring.encode(studied, ids) for ids in ("", context[0]))
    return Baseline(
        setting=setting,
        source=checkpoint,
        checkpoint=studied,
        data=data,
        queries=asked["queries"],
        context=context,
        zsl=observe(studied, nothing, **asked, progress=progress),
        icl=observe(studied, demonstrations, **asked, progress=progress),
        dW_icl=[maps.context for maps in observe_linear_maps(studied, demonstrations, **asked)],
        W_zsl=[maps.own for maps in observe_linear_maps(studied, nothing, **asked)],
    )


def run_comparison(baseline: Baseline, setting: ComparisonSetting, *, progress: bool = False) -> Tables:
    """The tables of one setting, to which the baseline must belong; published/README.md says what they have.

    Where FT diverges, what needs it is missing. Raises TaskError, CheckpointError or ExperimentError.
    """
    if not baseline.serves(baseline.source, setting):
        raise ExperimentError(
            f"the baseline was prepared for {baseline.setting.slug}, not for {setting.slug}; prepare another."
        )
    ft, notes = _fine_tune(baseline, setting, progress), []
    observed = {"zsl": baseline.zsl, "icl": baseline.icl} | ({} if ft.observed is None else {"ft": ft.observed})
    labels = baseline.data.task.labels_of(baseline.queries)
    queries = {"query": list(range(len(baseline.queries))), "query_id": list(map(query_id, baseline.queries))}
    queries |= {} if labels is None else {"label": labels}
    settings: dict[str, Any] = {}
    for state, one in observed.items():
        settings |= {f"{state}_{name}": value for name, value in one.accuracy_measures(labels).items()}
        queries[f"{state}_correct"] = one.correct
        queries |= {} if labels is None else {f"{state}_log_probs": one.log_probs}
    measures: dict[str, Tensor] = {}
    if ft.observed is None:
        notes.append(f"fine-tuning with learning rate {setting.lr:g} diverged at step {ft.finetuned.diverged_at}")
    else:
        settings |= _rec2ftp(observed, notes)
    if setting.split == "selection":
        notes.append("the split 'selection' is for choosing settings; nothing is reported on it")
    else:
        measures = _similarities(baseline, ft, setting, notes)
    over_queries, over_layers = _summaries(measures, setting.n_queries)
    means = {name: values.nanmean() for name, values in measures.items()}
    sizes = {
        "n_layers": baseline.zsl.outputs.shape[1],
        "n_heads": baseline.zsl.own_scores[0].shape[1],
        "context_tokens": len(baseline.context[0]),
        "context_labels": _labels(*setting.changes.context(baseline.data, setting.k, setting.seed)),
        "training_labels": _labels(*setting.changes.training(baseline.data, setting.k, setting.seed)),
    }
    told = ("losses", "gradient_norms", "loss_after", "diverged_at")
    training = {name: getattr(ft.finetuned, name) for name in told}
    norms = {
        "layer": list(range(len(ft.finetuned.update))),
        "update_norm_keys": [dW.key_weight.norm().item() for dW in ft.finetuned.update],
        "update_norm_values": [dW.value_weight.norm().item() for dW in ft.finetuned.update],
    }
    return {
        "settings": sizes | training | settings | means | {"note": "; ".join(notes)},
        "queries": queries | over_layers,
        "layers": norms | over_queries,
    }


# Queries.


def draw_queries(data: TaskData, setting: ComparisonSetting) -> list[Example]:
    """The first n queries, in the order that the seed draws, of those in the setting's split.

    Raises TaskError when there are fewer.
    """
    return tasks.queries(data, setting.n_queries, setting.seed, lambda query: in_split(query, setting.split))


def in_split(query: Example, split: str) -> bool:
    """Whether a query may be drawn from a split: "all", or the half "selection" or "report".

    The half is the same for every seed: no query that a seed was chosen on is reported for another seed.
    """
    return split in ("all", "selection" if int(query_id(query)[:2], 16) % 2 else "report")


def query_id(query: Example) -> str:
    """A name that depends on the text only, whichever seed draws it, so that settings can be compared."""
    return hashlib.sha256("\n".join(query.fields.values()).encode()).hexdigest()[:12]


def _suffix(task: Task, setting: ComparisonSetting) -> str:
    if setting.position == "prompt":
        return ""
    if task.labels is None:
        raise ExperimentError(f"task {task.name!r} has no labels, so there is no position {setting.position!r}.")
    return f" {task.labels[0]}"


def _labels(task: Task, examples: Sequence[Example]) -> list[int | None] | None:
    """Those of demonstrations; made-up ones have none."""
    return None if task.labels is None else [example.label for example in examples]


# Fine-tuning.


@dataclass(frozen=True, eq=False)
class _FT:
    """FT; the attention queries of each training sequence, (layers, tokens, heads * head size); what FT then does.

    `observed` and `W`, the linear maps as in `Baseline`, are None if the training diverged.
    """

    finetuned: FineTuned
    training_queries: list[Tensor]
    observed: Observed | None = None
    W: list[Tensor] | None = None


def _fine_tune(baseline: Baseline, setting: ComparisonSetting, progress: bool) -> _FT:
    task = baseline.data.task
    asked = {"task": task, "queries": baseline.queries, "suffix": _suffix(task, setting)}
    examples = setting.changes.training(baseline.data, setting.k, setting.seed)
    sequences = finetuning.training_ids(baseline.checkpoint, *examples)
    training_queries = []
    with tqdm(total=len(sequences), desc="fine-tuning", unit="step", leave=False, disable=not progress) as bar:

        def keep(_: int, queries: Tensor) -> None:
            training_queries.append(queries.float().cpu())
            bar.update()

        finetuned = setting.changes.descend(baseline.checkpoint, sequences, setting.lr, on_queries=keep)
    if finetuned.diverged_at is not None:
        return _FT(finetuned, training_queries)
    if setting.changes.update:
        finetuned = setting.changes.update(finetuned, setting.seed)
    with finetuned.applied() as tuned:
        empty = scoring.encode(tuned, "")
        observed = observe(tuned, empty, **asked, progress=progress)
        W = [maps.own for maps in observe_linear_maps(tuned, empty, **asked)]
    return _FT(finetuned, training_queries, observed, W)


# What is compared.


def _rec2ftp(observed: Mapping[str, Observed], notes: list[str]) -> dict[str, Any]:
    zsl, icl, ft = (torch.from_numpy(observed[name].correct) for name in ("zsl", "icl", "ft"))
    counts = metrics.rec2ftp_counts(zsl, icl, ft)
    if not counts.ft_fixes:
        notes.append(f"FT repairs none of the {counts.zsl_errors} errors of ZSL")
    value = counts.both_fix / counts.ft_fixes if counts.ft_fixes else None
    return counts._asdict() | {"rec2ftp": value, "rec2ftp_chance": metrics.rec2ftp_chance(zsl, icl)}


def _similarities(baseline: Baseline, trained: _FT, setting: ComparisonSetting, notes: list[str]) -> dict[str, Tensor]:
    """Each similarity of each query (of the first ones, where maps are compared) in each layer, (n, layers).

    None of a training that diverged.
    """
    zsl, icl, ft, W_ft = baseline.zsl, baseline.icl, trained.observed, trained.W
    if ft is None or W_ft is None:
        return {}
    measures = _of_outputs(zsl.outputs, icl.outputs, ft.outputs, setting.seed)
    measures |= _of_update_matrices(baseline.dW_icl, baseline.W_zsl, W_ft)
    if all(a.shape == b.shape for a, b in zip(zsl.own_scores, icl.own_scores, strict=True)):
        own_scores = zsl.own_scores, icl.own_scores, ft.own_scores
        measures |= _of_scores(*own_scores, len(baseline.context[0]), setting.seed)
    else:
        notes.append("the tokenizer gives a query other tokens after demonstrations than without them")
    spans = demonstration_spans(baseline, setting)
    if spans is None:
        notes.append("FT was trained on other tokens than those of the context")
    else:
        measures |= _of_training_tokens(icl, ft, trained.training_queries, spans)
    return measures


def demonstration_spans(baseline: Baseline, setting: ComparisonSetting) -> list[tuple[int, int]] | None:
    """For each demonstration, where it starts in the context and how many tokens FT is trained on stand there.

    That is all of them, or those before the answer if the context has another one. The context has separators that FT
    does not see, and one first token for all. None where even a prompt has other tokens, or FT has other examples.
    """
    (ids, ends), checkpoint = baseline.context, baseline.checkpoint
    task, examples = setting.changes.training(baseline.data, setting.k, setting.seed)
    sequences = finetuning.training_ids(checkpoint, task, examples)
    prompts = checkpoint.tokenize_all([task.prompt(example) for example in examples])
    spans = []
    for start, (_, *tokens), prompt in zip(ends, sequences, prompts, strict=False):  # ends has one more
        differ = (i for i, (a, b) in enumerate(zip(tokens, ids[start:], strict=False)) if a != b)
        n = next(differ, min(len(tokens), len(ids) - start))
        if n < len(prompt):
            return None
        spans.append((start, n))
    return spans


# Similarities of what ICL and FT do to attention, with their floors: for each query in each layer, (n, layers).


def _of_outputs(zsl: Tensor, icl: Tensor, ft: Tensor, seed: int) -> dict[str, Tensor]:
    """SimAOU of attention outputs (n, layers, hidden) and what else compares their changes; the seed draws the floors.

    FT is replaced by a change in a random direction (isotropic) and by that of another query (permuted).
    """
    stand_ins = {
        "": ft,
        "_isotropic": metrics.ft_with_random_directions(zsl, ft, seed),
        "_permuted": metrics.ft_with_permuted_updates(zsl, ft, seed),
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
    """SimAM of the scores to a query's own tokens, (layers, heads, tokens) for each query; means over heads."""
    isotropic = metrics.ft_with_random_directions(zsl, ft, seed)
    by_head = {
        "sim_am": metrics.sim_am(icl, ft),
        "sim_am_isotropic": metrics.sim_am(icl, isotropic),
        "sim_am_zsl": metrics.sim_am(icl, zsl),
        "sim_am_delta": metrics.sim_am_delta(zsl, icl, ft, context_tokens),
        "sim_am_delta_isotropic": metrics.sim_am_delta(zsl, icl, isotropic, context_tokens),
    }
    return {name: values.nanmean(-1) for name, values in by_head.items()}


def _of_update_matrices(dW_icl: Sequence[Tensor], W_zsl: Sequence[Tensor], W_ft: Sequence[Tensor]) -> dict[str, Tensor]:
    """dW_ICL and dW_FT = W_FT - W_ZSL of Dai et al. (2023), eq. 11 to 13, as matrices; means over the key heads.

    One tensor (layers, key heads, d_v, d) for each query. Permuted: dW_FT of another query.
    """
    changed = [
        metrics.nan_within_rounding(ft - zsl, zsl, metrics.machine_epsilon(zsl), axes=2)
        for ft, zsl in zip(W_ft, W_zsl, strict=True)
    ]
    compared = {"update_cosine": changed, "update_cosine_permuted": [*changed[1:], *changed[:1]]}
    return {
        name: torch.stack([metrics.update_cosines(x, y).nanmean(-1) for x, y in zip(dW_icl, others, strict=True)])
        for name, others in compared.items()
    }


def _of_training_tokens(
    icl: Observed, ft: Observed, training_queries: Sequence[Tensor], spans: Sequence[tuple[int, int]]
) -> dict[str, Tensor]:
    """Dai et al. (2023, ACL version), table 5: m_ICL, the score to a token; m_FT, q'_token . q; summed over heads.

    `training_queries` are the q' of each training sequence, (layers, tokens, heads * head size), first token included;
    `spans` say where each stands in the context, and how many of its tokens are compared.
    """
    m_icl = torch.cat([icl.context_scores[..., start : start + n] for start, n in spans], dim=-1)
    queries = zip(training_queries, spans, strict=True)
    q_train = torch.cat([q[:, 1 : 1 + n] for q, (_, n) in queries], dim=1)
    m_ft = torch.einsum("ltd,nld->nlt", q_train, ft.queries.float())
    by_token = {
        "kendall_tau_b": metrics.kendall_training_tokens(m_icl, m_ft),
        "kendall_tau_a": metrics.kendall_tau_a(m_icl, m_ft),
    }
    return by_token | _of_examples(m_icl, m_ft, [n for _, n in spans])


def _of_examples(m_icl: Tensor, m_ft: Tensor, lengths: Sequence[int]) -> dict[str, Tensor]:
    """Agreement on whole demonstrations, with the same lengths on both sides: see `metrics.attention_by_example`."""
    ends = list(accumulate(lengths))
    parts = list(zip([0, *ends], ends, strict=False))
    measures = {}
    for name, mean in (("example", False), ("example_mean", True)):
        both = (metrics.attention_by_example(m, parts, mean=mean) for m in (m_icl, m_ft))
        measures[f"{name}_tau_b"] = metrics.kendall_tau_b(*both)
    return measures


def _summaries(measures: Mapping[str, Tensor], n: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Columns of the tables of layers and of queries; values that do not exist (NaN) are left out of the means."""
    layers = {name: values.nanmean(0) for name, values in measures.items()}
    queries = {
        name: torch.cat([values.nanmean(1), values.new_full((n - len(values),), torch.nan)])
        for name, values in measures.items()
    }
    return layers, queries
