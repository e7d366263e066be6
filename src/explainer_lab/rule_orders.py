"""A rule that nobody could know, in contexts and trainings of many orders: does their contrast agree on average?

Two trainings on the same lines in another order hardly agree, so one of them says little. The mean over orders o of
u(h) = h / |h|, for the attention outputs where a query is decided, keeps what they share: c = mean_o u_ICL(A, o) -
mean_o u_ICL(B, o) for contexts with the rules A and B of `new_rule`, f alike for keys and values trained on the same
lines. *Installed*: the trainings of one half of the orders stand in place of the contexts, those of the other half are
what they are compared with. That is what a context would give if it were this training, up to the order. A training of
the context's cache starts at the context, as the second half of a training starts at its first: f is then what is
added, mean_o u_FT - mean_o u_ICL of both rules. The plan and the predictions are in published/PLANS.md.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from explainer.compare import cued_words
from explainer.compare.cued_words import CUES, LABELS, TASK
from explainer.data.tasks import Example
from explainer.errors import CheckpointError
from explainer.models import architectures, finetuning, hooks, interventions, scoring
from explainer.models.finetuning import FineTuned, KeysValues
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Prefix
from explainer.theory import projections
from explainer_lab import lab_lessons, minimal_pairs, on_checkpoint
from explainer_lab.experiment import Computed
from explainer_lab.lab_lessons import matched_random
from explainer_lab.minimal_pairs import LESSONS, SETS, Lesson, contrast_agreement
from explainer_lab.on_checkpoint import OnCheckpoint, as_columns

LOSSES: Mapping[str, str] = {
    "text": "the loss of the whole text, as in the paper",
    "answers": "that of the answers",
    "activations": "the distance from the attention outputs in the context, for other words without labels, by Adam",
    "cache": "that of the answers, in the context's own keys and values with each line left out in turn, by Adam",
    "second half": "that of the answers; the training after half of its epochs stands in place of the context",
}

_FURTHER = 10_000
"""Added to a seed, it draws the words without labels."""


@dataclass(frozen=True, kw_only=True)
class _RuleOrdersSetting(on_checkpoint.FineTuningSetting):
    """A rule as in `new_rule`, k lines in so many orders, a loss of LOSSES; ExperimentError for other values."""

    cue: str
    k: int
    n_queries: int
    loss: str
    orders: int
    least: ClassVar = {"k": 4, "n_queries": 4, "epochs": 1, "orders": 1}
    known: ClassVar = {"cue": CUES, "loss": LOSSES}
    fours: ClassVar = ("k", "n_queries")

    @property
    def slug(self) -> str:
        """A readable name."""
        sizes = f"{self.orders}orders-{self.numbers(self.k, self.n_queries)}"
        return "-".join(["orders", self.name, self.cue.replace(" ", "-"), self.loss, sizes])


_Outputs = Mapping[Lesson, Float[Tensor, "orders n layers d"]]
"""Attention outputs where the queries are decided, by lesson, in every order."""


HALVES = slice(0, None, 2), slice(1, None, 2)
"""Every second order."""


def _ordered(setting: _RuleOrdersSetting, examples: Sequence[Example]) -> list[tuple[list[Example], int]]:
    """The examples in every order, and a seed for the later epochs of each; the same in all lessons of a draw."""
    drawn = [np.random.default_rng([setting.seed, 3, o]) for o in range(setting.orders)]
    return [([examples[i] for i in rng.permutation(len(examples))], int(rng.integers(2**31))) for rng in drawn]


def _contrast(of: _Outputs, words: int, orders: slice = slice(None)) -> Float[Tensor, "n layers d"]:
    """mean_o u(A, o) - mean_o u(B, o)."""
    a, b = (normalize(of[Lesson(rule, words)][orders].double(), dim=-1).mean(0) for rule in "AB")
    return a - b


def _similarities(icl: _Outputs, ft: _Outputs, *, added: bool = False) -> dict[str, Float[Tensor, " layers"]]:
    """Agreements of contrasts by layer, means over queries, and words; of trainings what they have, or have `added`."""

    def trained(words: int, orders: slice = slice(None)) -> Tensor:
        return _contrast(ft, words, orders) - (_contrast(icl, words, orders) if added else 0)

    c, f = [_contrast(icl, i) for i in SETS], [trained(i) for i in SETS]
    pairs = {
        "own": [(c[i], f[i]) for i in SETS],
        "other": [(c[i], f[1 - i]) for i in SETS],
        "contexts": [(c[0], c[1])],
        "trainings": [(f[0], f[1])],
    }
    if min(map(len, ft.values())) > 1:
        first, second = ([trained(i, half) for i in SETS] for half in HALVES)
        pairs["halves"] = [(first[i], second[i]) for i in SETS]
        pairs["halves_other"] = [(first[i], second[1 - i]) for i in SETS]
    return {name: torch.stack([contrast_agreement(*p)[0] for p in its]).mean(0) for name, its in pairs.items()}


def _exchanged(
    icl: _Outputs,
    ft: _Outputs,
    right: Mapping[str, Int[Tensor, " n"]],
    to: str,
    generator: torch.Generator,
    *,
    added: bool = False,
) -> Iterator[tuple[str, list[Tensor]]]:
    """Attention outputs with one rule, with the other, and with a part of the contrast that leads from that to this.

    Parts are along the training on the same words, on other words, along what the same training does to queries with
    the two other labels, which is another rule, and along random directions with the cosine of the first. Of what is
    `added` to contexts there is no pass by itself.
    """
    if added:
        ft = {one: its - icl[one] for one, its in ft.items()}
    away = "AB".replace(to, "")

    def means(of: _Outputs, words: int = 0, orders: slice = slice(None)) -> tuple[Tensor, Tensor]:
        this, that = (of[Lesson(rule, words)][orders].mean(0) for rule in (to, away))
        return this, that

    def difference(pair: tuple[Tensor, Tensor]) -> Tensor:
        return pair[0] - pair[1]

    def rows(name: str, pair: tuple[Tensor, Tensor], along: Mapping[str, Tensor]) -> Iterator[tuple[str, list[Tensor]]]:
        this, that = pair
        yield name, [this]
        yield f"{name}_other_rule", [that]
        for part, direction in along.items():
            yield f"{name}_along_{part}", [that + projections.component(this - that, direction)]
        first = next(iter(along.values()))
        yield f"{name}_along_near", [that + part for part in matched_random(this - that, first, generator)]

    c, f = difference(means(icl)), difference(means(ft))
    asked = torch.stack([right[to], right[away]], 1)
    others = (asked[:, None, :, None] != asked[None, :, None, :]).all((2, 3)).to(f.dtype)  # queries with no such label
    of_others = torch.einsum("nm,mld->nld", others / others.sum(1, keepdim=True), f)
    yield from rows("context", means(icl), {"ft": f, "other_ft": difference(means(ft, 1)), "other_rule": of_others})
    if added:
        return
    yield from rows("ft", means(ft), {"icl": c, "other_icl": difference(means(icl, 1))})
    if min(map(len, ft.values())) == 1:
        return
    half, rest = HALVES
    this, that = means(ft, 0, half)
    step, middle = difference((this, that)), (this + that) / 2
    step = step * (c.norm(dim=-1, keepdim=True) / step.norm(dim=-1, keepdim=True))  # as long as the context's
    along = {"ft": difference(means(ft, 0, rest)), "other_ft": difference(means(ft, 1, rest))}
    yield from rows("installed", (middle + step / 2, middle - step / 2), along)


@torch.inference_mode(False)
def _matched(checkpoint: Checkpoint, context: Prefix, prompts: Sequence[str], setting: _RuleOrdersSetting) -> FineTuned:
    """Keys and values with which words without a context have the attention outputs t that they have after it.

    Each step of Adam takes k other words, and lessens the mean over layers and words of |h - t|^2 / |t|^2; no label of
    these words is read. Raises CheckpointError for a family whose queries, keys and values are one module.
    """
    layers, empty = architectures.architecture(checkpoint.model).layers, scoring.encode(checkpoint, "")
    if any(layer.key.module is layer.query.module for layer in layers):
        raise CheckpointError(f"{checkpoint.name}: its keys and values cannot be trained without its queries.")
    steps = [prompts[i : i + setting.k] for i in range(0, len(prompts), setting.k)]
    targets = [interventions.after_context(checkpoint, context, its, LABELS).run().attention for its in steps]
    own = [KeysValues.of(layer).map(Tensor.clone) for layer in layers]
    weights = [W for layer in layers for part in (layer.key, layer.value) for W in part.module.parameters()]
    losses, adam = [], torch.optim.Adam(weights, setting.lr)
    with finetuning.restored(weights), torch.enable_grad():
        for W in weights:
            W.requires_grad_(True)
        for its, t in zip(steps, targets, strict=True):
            asked, kept = interventions.without_context(checkpoint, empty, its, LABELS), []
            rows = torch.arange(len(its))
            at_last = partial(lambda kept, last, rows, _x, y: kept.append(y[rows, last]), kept, asked.last, rows)
            with hooks.outputs((layer.output, at_last) for layer in layers):
                checkpoint.hidden(input_ids=asked.ids, use_cache=False)
            h = torch.stack(kept, 1)
            loss = ((h - t).square().sum(-1) / t.square().sum(-1)).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
            losses.append(loss.item())
        update = tuple(
            KeysValues._make(W - W_0 if W is not None and W_0 is not None else None for W, W_0 in pairs)
            for pairs in (zip(KeysValues.of(layer), its, strict=True) for layer, its in zip(layers, own, strict=True))
        )
    return FineTuned(checkpoint, update, setting.lr, tuple(losses), (), losses[-1], None)


@torch.inference_mode(False)
def _tuned(checkpoint: Checkpoint, context: Prefix, examples: Sequence[Example], setting: _RuleOrdersSetting) -> Prefix:
    """The context's keys and values after `epochs` steps of Adam on the mean of -log p(answer) of its own lines.

    Each line is asked with its own keys and values hidden. Source: Lu et al. (2025), Context Tuning, arXiv 2507.04221.
    """
    asked = interventions.after_context(checkpoint, context, [*map(TASK.prompt, examples)], LABELS)
    for i, line in enumerate(itertools.pairwise(scoring.context_ids(checkpoint, TASK, examples)[1])):
        asked.mask[i, slice(*line)] = 0
    answers = torch.tensor(scoring.distinguishing_tokens(checkpoint, TASK, examples))
    both = [[x.clone().requires_grad_() for x in its] for its in (context.keys, context.values)]
    adam = torch.optim.Adam([x for its in both for x in its], setting.lr)
    for _ in range(setting.epochs):
        keys, values = (tuple(x.expand(len(asked), -1, -1, -1) for x in its) for its in both)
        (logits,) = replace(asked, keys=keys, values=values).record([])
        loss = cross_entropy(logits.float(), answers)
        adam.zero_grad()
        loss.backward()
        adam.step()
    return replace(context, keys=tuple(x.detach() for x in both[0]), values=tuple(x.detach() for x in both[1]))


class RuleOrders(OnCheckpoint[_RuleOrdersSetting]):
    """Computes the contexts and trainings of each setting."""

    name = "rule_orders"
    setting = _RuleOrdersSetting
    protocol = 1
    slowest_first = ("checkpoint", "cue", "loss", "orders", "epochs", "k", "n_queries", "lr", "seed")
    shown = ("icl_accuracy", "ft_accuracy", "own", "other", "contexts", "trainings", "note")
    usual: ClassVar = {"k": 16, "n_queries": 24, "lr": 2e-3, "epochs": 10, "loss": "answers", "orders": 8}

    def holds(self, setting: _RuleOrdersSetting) -> tuple[int, int]:
        """One model, and all trainings."""
        return 1, len(LESSONS) * setting.orders

    def compute(self, setting: _RuleOrdersSetting, *, progress: bool) -> Computed:
        """One setting; published/README.md says what the tables have."""
        checkpoint, k = self._load(setting.checkpoint), setting.k
        data = {rule: cued_words.data(setting.cue, setting.seed, rule, 2 * k, setting.n_queries) for rule in "AB"}
        shown = {one: data[one.task].train[one.words * k : (one.words + 1) * k] for one in LESSONS}
        queries = data["A"].test
        asked = {query.fields["word"] for query in queries}
        unlabelled: list[str] = []
        if setting.loss == "activations":
            further = cued_words.data(setting.cue, setting.seed + _FURTHER, "A", 4, k * (setting.epochs + 1)).test
            unlabelled = [TASK.prompt(one) for one in further if one.fields["word"] not in asked]
        right = {rule: torch.tensor([query.label for query in its.test]) for rule, its in data.items()}
        prompts, tokens = [*map(TASK.prompt, queries)], torch.tensor(scoring.label_tokens(checkpoint, TASK, queries))
        without = interventions.without_context(checkpoint, scoring.encode(checkpoint, ""), prompts, LABELS)
        last = without.at_last()  # before a training: the other tokens pass with the model's own weights

        def of_labels(logits: Tensor) -> Tensor:
            return logits.float().gather(1, tokens.repeat(len(logits) // len(tokens), 1))

        found: dict[str, dict[Lesson, list[Tensor]]] = {kind: {one: [] for one in LESSONS} for kind in ("icl", "ft")}
        is_right: dict[str, list[float]] = {"icl": [], "ft": []}

        def keep(kind: str, lesson: Lesson, states: interventions.States) -> None:
            found[kind][lesson].append(states.attention)
            is_right[kind].append((of_labels(states.logits).argmax(-1) == right[lesson.task]).float().mean().item())

        n, runs, lost, halved = k * setting.epochs, [], 0, setting.loss == "second half"
        stages = {n // 2: "icl", n: "ft"} if halved else {n: "ft"}
        for lesson, examples in shown.items():
            answers = None if setting.loss == "text" else finetuning.answer_lengths(checkpoint, TASK, examples)
            for its, seed in _ordered(setting, examples):
                context = lab_lessons.context(checkpoint, TASK, its)
                if not halved:
                    keep("icl", lesson, interventions.after_context(checkpoint, context, prompts, LABELS).run())
                if setting.loss == "cache":
                    tuned = _tuned(checkpoint, context, its, setting)
                    keep("ft", lesson, interventions.after_context(checkpoint, tuned, prompts, LABELS).run())
                    continue
                if setting.loss == "activations":
                    with _matched(checkpoint, context, unlabelled[:n], setting).applied():
                        keep("ft", lesson, without.run())
                    continue
                ids = finetuning.training_ids(checkpoint, TASK, its)
                steps = finetuning.repeat_epochs(ids, setting.epochs, seed)
                runs.append((lesson, finetuning.Run(steps, setting.lr, answers)))
        after = runs and finetuning.fine_tune_runs(checkpoint, [run for _, run in runs], stages, progress=progress)
        for (lesson, _), its in zip(runs, after, strict=True):
            if its[n].diverged_at is not None:
                lost += 1
                continue
            for step, kind in stages.items():
                with its[step].applied():
                    keep(kind, lesson, without.run())
        icl, ft = ({one: torch.stack(its) for one, its in found[kind].items()} for kind in ("icl", "ft"))
        added = halved or setting.loss == "cache"
        by_layer = _similarities(icl, ft, added=added)
        generator = setting.generator(7, setting.cue)
        rows = [
            {"intervention": name, "towards": to}
            | minimal_pairs.answered(of_labels(last.logits_with_outputs(*outputs)), right[to], right[away])
            for to, away in ("AB", "BA")
            for name, outputs in _exchanged(icl, ft, right, to, generator, added=added)
        ]
        zsl = of_labels(last.run().logits).argmax(-1)
        summary = {
            "zsl_accuracy": torch.stack([(zsl == its).float().mean() for its in right.values()]).mean().item(),
            "icl_accuracy": float(np.mean(is_right["icl"])),
            "ft_accuracy": float(np.mean(is_right["ft"])),
            "note": f"{lost} of {len(runs)} trainings diverged" if lost else "",
        }
        return Computed(
            {
                "settings": summary | minimal_pairs.means(by_layer),
                "layers": {"layer": list(range(last.checkpoint.model.config.num_hidden_layers))}
                | {name: its.tolist() for name, its in by_layer.items()},
                "interventions": as_columns(rows),
            },
            self._provenance(checkpoint, TASK),
        )
