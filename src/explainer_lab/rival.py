"""The rival of gradient descent: what a context does instead, if it is a vector, or what some heads put out.

At the last token of a query, without a context: the *task vector* is the mean in-context change of the residual stream
for other queries; the *vector of heads* is the sum of the mean in-context changes of what some heads put out. Each is
added after one block, chosen on selection queries. With a context, heads are switched off at every token (mean
ablation). An answer is right if its first token, that where labels part, is the most probable one of all. The plan and
the predictions, from before the runs, are in published/PLANS.md.
Source: Hendel et al. (2023), task vectors; Todd et al. (2024), function vectors; Yin & Steinhardt (2025), ablation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from explainer.compare import controls, cued_words
from explainer.compare.cued_words import CUES
from explainer.data import tasks
from explainer.data.files import Tables
from explainer.data.tasks import TaskData
from explainer.models import architectures, circuits, interventions, scoring
from explainer.models.architectures import Layer
from explainer.models.circuits import HeadIndex
from explainer.models.loading import Checkpoint
from explainer.theory import projections
from explainer_lab import on_checkpoint
from explainer_lab.experiment import Computed
from explainer_lab.lab_lessons import N_RANDOM, Lesson, PairedPasses, best_layer, context, leave_one_out_mean
from explainer_lab.on_checkpoint import OnCheckpoint, as_columns, by_head, data_digest

N_HEADS = 10
"""Heads of each kind."""

_N_EFFECTS = 8
"""Selection queries on which the effect of each head is measured."""

_N_REPEATED = 50  # random tokens that are said twice, in four texts, to find induction heads


@dataclass(frozen=True, kw_only=True)
class _RivalSetting(on_checkpoint.CheckpointSetting):
    """The k demonstrations and the queries that a seed draws for a task, or for a kind of cue of `new_rule`.

    `n_queries` are reported; `n_selection` others make the vectors and choose heads and layers. Of a rule another task
    is the other rule, on the same words. Raises ExperimentError where a value is impossible.
    """

    task: str
    k: int
    n_queries: int
    n_selection: int
    least: ClassVar = {"k": 2, "n_queries": 4, "n_selection": 4}

    @property
    def slug(self) -> str:
        """A readable name."""
        sizes = f"k{self.k}-n{self.n_queries}-seed{self.seed}"
        return "-".join(["rival", self.name, self.task.replace(" ", "-"), sizes])


@dataclass(frozen=True, eq=False)
class _Rival:
    """The queries that are reported, and selection queries after each lesson: own, shuffled, and another task's.

    The queries after "foreign" and "foreign shuffled" are those of the other task.
    """

    setting: _RivalSetting
    checkpoint: Checkpoint
    lessons: Mapping[str, Lesson]
    asked: PairedPasses
    selected: Mapping[str, PairedPasses]

    @classmethod
    def of(cls, checkpoint: Checkpoint, own: TaskData, foreign: TaskData, setting: _RivalSetting) -> "_Rival":
        n, drawn = setting.n_queries, (setting.k, setting.seed)
        lessons, selected = {}, {}
        for data, name in ((own, ""), (foreign, "_foreign")):
            queries = tasks.queries(data, n + setting.n_selection, setting.seed)
            for kind, lesson in (("", controls.own), ("_shuffled", controls.LESSONS["shuffled"])):
                lessons[name + kind] = lesson(data, *drawn)
                prefix = context(checkpoint, *lessons[name + kind])
                selected[name + kind] = PairedPasses.of(checkpoint, prefix, data.task, queries[n:])
        prefix = context(checkpoint, *lessons[""])
        asked = PairedPasses.of(checkpoint, prefix, own.task, tasks.queries(own, n, setting.seed))
        return cls(setting, checkpoint, lessons, asked, selected)

    @property
    def layers(self) -> Sequence[Layer]:
        return self.asked.after.layers

    @cached_property
    def tokens(self) -> Int[Tensor, "n labels"] | None:
        """Those that tell the labels apart, where answers are a closed set."""
        task, queries = self.lessons[""][0], self.asked.queries
        return None if task.labels is None else torch.tensor(scoring.label_tokens(self.checkpoint, task, queries))

    def rows(self, intervention: str, logits: Float[Tensor, "times*n vocab"]) -> list[dict[str, Any]]:
        """A row for each query; `right_label`: whether of all labels, where there are some, the right one leads."""
        found = self.asked.outcome(logits)
        if self.tokens is not None:
            of_labels = logits.cpu().gather(1, self.tokens.repeat(len(found["correct"]), 1)).argmax(1)
            right = torch.tensor([query.label for query in self.asked.queries]).repeat(len(found["correct"]))
            found["right_label"] = (of_labels == right).float().view_as(found["correct"])
        return self.asked.rows(intervention, {name: its.mean(0) for name, its in found.items()})

    @cached_property
    def mean_outputs(self) -> Float[Tensor, "layers heads d_v"]:
        """Of each head, over all tokens of the lessons."""
        contexts = [scoring.context_ids(self.checkpoint, *lesson)[0] for lesson in self.lessons.values()]
        return circuits.mean_head_outputs(self.checkpoint, contexts)

    def without(self, heads: Sequence[HeadIndex]) -> Float[Tensor, "n vocab"]:
        """Logits after the own context when heads give their mean output at every token."""
        task, examples = self.lessons[""]
        prompts = [task.prompt(query) for query in self.asked.queries]
        with circuits.ablate_heads(self.checkpoint, heads, self.mean_outputs):
            prefix = context(self.checkpoint, task, examples)
            return interventions.after_context(self.checkpoint, prefix, prompts, task.labels or ()).run().logits


# Heads.


@dataclass(frozen=True, eq=False)
class _Heads:
    """Scores of all heads, (layers, heads), and the strongest by effect and as induction heads."""

    effects: Float[Tensor, "layers heads"]
    effects_foreign: Float[Tensor, "layers heads"]
    scores: Float[Tensor, "layers heads"]

    @property
    def m(self) -> int:
        """How many heads a kind has: N_HEADS, or an eighth of all where there are fewer."""
        return max(1, min(N_HEADS, self.effects.numel() // 8))

    @property
    def effective(self) -> list[HeadIndex]:
        return circuits.strongest_heads(self.effects, self.m)

    @property
    def induction(self) -> list[HeadIndex]:
        return circuits.strongest_heads(self.scores, self.m)

    def random(self, setting: _RivalSetting) -> list[list[HeadIndex]]:
        n_heads = self.effects.shape[1]
        return [
            _random_of_the_same_layers(self.effective, n_heads, N_RANDOM * setting.seed + i) for i in range(N_RANDOM)
        ]

    def off(self, setting: _RivalSetting) -> dict[str, list[list[HeadIndex]]]:
        """Which heads are switched off, of random ones several sets."""
        return {
            "off": [self.effective],
            "off_foreign": [circuits.strongest_heads(self.effects_foreign, self.m)],
            "off_induction": [self.induction],
            "off_no_induction": [[head for head in self.effective if head not in self.induction]],
            "off_induction_alone": [[head for head in self.induction if head not in self.effective]],
            "off_random": self.random(setting),
        }


def _effects(rival: _Rival, name: str) -> Float[Tensor, "layers heads"]:
    """What log p of the right answer gains after shuffled answers when a head gives its mean output after right ones.

    At the last token; the mean is over queries. Source: Todd et al. (2024), average indirect effect.
    """
    right, shuffled = rival.selected[name], rival.lessons[f"{name}_shuffled"]
    prefix = context(rival.checkpoint, *shuffled)
    asked = PairedPasses.of(rival.checkpoint, prefix, shuffled[0], right.queries[:_N_EFFECTS])
    outputs, before = right.after.heads().mean(0), asked.outcome(asked.icl.logits)["log_prob"].mean()
    n, (n_layers, n_heads, _) = len(asked.queries), outputs.shape
    times, which = asked.after.at_last().repeated(n_heads), torch.eye(n_heads, dtype=torch.bool)
    found = torch.empty(n_layers, n_heads)
    for number, layer in enumerate(times.layers):
        every = outputs[number].expand(n * n_heads, -1, -1)
        edits = interventions.with_head_outputs(layer, every, which.repeat_interleave(n, 0))
        found[number] = asked.outcome(times.run(edits).logits)["log_prob"].mean(1) - before
    return found


# Vectors.


_PutIn = dict[str, tuple[int, Sequence[Tensor]]]
"""By the name of an intervention, the layer after which vectors are added, and these: their answers are averaged."""


def _output_projection(layer: Layer, outputs: Float[Tensor, "*n heads d_v"]) -> Float[Tensor, "*n heads d"]:
    """What each head of a block adds to the residual stream: its part of the output projection."""
    alone = torch.diag_embed(outputs.movedim(-1, -2)).movedim(-3, -1)
    nothing = layer.output.forward(torch.zeros_like(outputs).flatten(-2))
    return layer.output.forward(alone.flatten(-2)) - nothing[..., None, :]


def _vectors(rival: _Rival, heads: _Heads) -> tuple[_PutIn, dict[str, dict[str, list[float]]]]:
    """Task vectors and, where no norm follows heads, theirs, with the layer that is best on selection queries."""
    selected = rival.selected
    changes = {name: asked.stream_change.mean(0) for name, asked in selected.items()}
    layers = {"vector": selected[""].by_layer(leave_one_out_mean(selected[""].stream_change))}
    at = best_layer(layers["vector"])
    put_in: _PutIn = {f"vector{name}": (at, [changes[name][at]]) for name in ("", "_shuffled", "_foreign")}
    generator = rival.setting.generator(8, rival.setting.task)
    put_in["vector_random"] = at, [projections.random_like(changes[""][at], generator) for _ in range(N_RANDOM)]
    if architectures.refusal(rival.checkpoint.model, architectures.HEAD_VECTORS):
        return put_in, layers
    added = {
        name: torch.stack([_output_projection(*each) for each in zip(rival.layers, change, strict=True)])
        for name, asked in selected.items()
        for change in [(asked.after.heads() - asked.without.heads()).mean(0)]
    }

    def summed(name: str, chosen: Sequence[HeadIndex]) -> Tensor:
        return torch.stack([added[name][head] for head in chosen]).sum(0)

    sets = {"heads": [heads.effective], "heads_induction": [heads.induction]}
    sets["heads_random"] = heads.random(rival.setting)
    for kind, each in sets.items():
        vectors = [summed("", chosen) for chosen in each]
        shape = selected[""].stream_change.shape
        found = [selected[""].by_layer(vector.expand(shape)) for vector in vectors]
        layers[kind] = {name: np.mean([one[name] for one in found], 0).tolist() for name in found[0]}
        put_in[kind] = best_layer(layers[kind]), vectors
    for name in ("_shuffled", "_foreign"):
        put_in[f"heads{name}"] = put_in["heads"][0], [summed(name, heads.effective)]
    return put_in, layers


def _singles(rival: _Rival, at: int) -> tuple[_PutIn, dict[str, list[float]]]:
    """The sums of the changes of the stream by each demonstration alone, own ones and those of another task.

    As vectors to add after block `at`, and by layer how near the change by all demonstrations is to them.
    """
    queries, change = rival.selected[""].queries, rival.selected[""].stream_change
    task, put_in, layers = rival.lessons[""][0], {}, {}
    for name, (of, examples) in {"": rival.lessons[""], "_foreign": rival.lessons["_foreign"]}.items():
        prefixes = [context(rival.checkpoint, of, [example]) for example in examples]
        each = [PairedPasses.of(rival.checkpoint, prefix, task, queries).stream_change for prefix in prefixes]
        effects = torch.stack(each, 1)
        total = effects.sum(1)
        for rates, its in (("one_rate", total[:, None]), ("rates", effects)):
            fitted = projections.cross_fitted(change, its)
            layers[f"r2_{rates}{name}"] = projections.sums_of_squares(change, fitted).explained.tolist()
        cosines = torch.nn.functional.cosine_similarity(total.mean(0), change.mean(0), dim=-1)
        layers[f"cosine_of_sum{name}"] = cosines.tolist()
        vector = total.mean(0)[at]
        put_in[f"vector_of_singles{name}"] = at, [vector * change.mean(0)[at].norm() / vector.norm()]
    return put_in, layers


# The experiment.


class Rival(OnCheckpoint[_RivalSetting]):
    """Computes the rival of each setting."""

    name = "rival"
    setting = _RivalSetting
    protocol = 1
    slowest_first = ("checkpoint", "task", "k", "n_queries", "n_selection", "seed")
    shown = ("zsl_accuracy", "icl_accuracy", "vector_layer", "heads_layer", "n_induction", "r2_one_rate")
    usual: ClassVar = {"k": 16, "n_queries": 24, "n_selection": 16}

    def parts(self, setting: _RivalSetting) -> dict[str, Any]:
        """Weights and data."""
        own, foreign = map(data_digest, self._both(setting))
        return {"weights": self._weights(setting.checkpoint), "data": {"own": own, "foreign": foreign}}

    def compute(self, setting: _RivalSetting, *, progress: bool) -> Computed:
        """One setting; published/README.md says what the tables have."""
        checkpoint, (own, foreign) = self._load(setting.checkpoint), self._both(setting)
        scoring.require_distinct(checkpoint, own.task)
        rival = _Rival.of(checkpoint, own, foreign, setting)
        texts = [circuits.repeated_random_tokens(checkpoint, _N_REPEATED, seed) for seed in range(4)]
        induction = [circuits.induction_score(circuits.attention_maps(checkpoint, ids)) for ids in texts]
        heads = _Heads(_effects(rival, ""), _effects(rival, "_foreign"), torch.stack(induction).mean(0))
        put_in, layers = _vectors(rival, heads)
        chosen = {f"{name}_layer": best_layer(found) for name, found in layers.items()}
        at = chosen["vector_layer"]
        singles, of_singles = _singles(rival, at)
        asked = rival.asked
        logits = {"zsl": asked.zsl.logits, "icl": asked.icl.logits}
        logits |= {name: asked.with_added(layer, *each) for name, (layer, each) in (put_in | singles).items()}
        logits |= {name: torch.cat([*map(rival.without, sets)]) for name, sets in heads.off(setting).items()}
        rows = [row for name, its in logits.items() for row in rival.rows(name, its)]
        right = {name: np.mean([r["correct"] for r in rows if r["intervention"] == name]) for name in ("zsl", "icl")}
        one_label = on_checkpoint.one_label_accuracy(own, asked.queries, float(right["zsl"]))
        scores = {"effect": heads.effects, "effect_foreign": heads.effects_foreign, "induction_score": heads.scores}
        both = len({*heads.effective} & {*heads.induction})
        tables: Tables = {
            "settings": {f"{name}_accuracy": value for name, value in right.items()}
            | {"one_label_accuracy": one_label, "n_heads": len(heads.effective), "n_induction": both}
            | chosen
            | {name: its[at] for name, its in of_singles.items()},
            "queries": as_columns(rows),
            "heads": as_columns(by_head(scores)),
            "layers": {f"{name}_accuracy": found["correct"] for name, found in layers.items()} | of_singles,
        }
        return Computed(tables, self._provenance(checkpoint, own.task))

    def _both(self, setting: _RivalSetting) -> tuple[TaskData, TaskData]:
        """The task and the one that stands for another; of a rule, the other rule."""
        if setting.task in CUES:
            n = setting.n_queries + setting.n_selection
            own, other = (cued_words.data(setting.task, setting.seed, rule, setting.k, n) for rule in "AB")
            return own, other
        return self._load_pair(setting.task)


def _random_of_the_same_layers(heads: Sequence[HeadIndex], n_heads: int, seed: int) -> list[HeadIndex]:
    """`circuits.random_heads_like`, of at most half of each layer's heads: of more there are not as many others."""
    kept: list[HeadIndex] = []
    for head in heads:
        if sum(layer == head[0] for layer, _ in kept) < n_heads // 2:
            kept.append(head)
    return circuits.random_heads_like(kept, n_heads, seed)
