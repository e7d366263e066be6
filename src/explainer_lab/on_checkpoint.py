"""What the experiments on a checkpoint have in common: the checkpoint and the data, their digests, the settings."""

import hashlib
import math
import os
import re
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor
from transformers import PreTrainedModel

from explainer.compare.comparison import in_split, query_id, require
from explainer.data import tasks
from explainer.data.tasks import Example, Task, TaskData
from explainer.errors import CheckpointError
from explainer.models import batched_finetuning, finetuning, interventions, loading, memory, precision, scoring
from explainer.models.interventions import Pass, States
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Prefix
from explainer.theory import projections
from explainer_lab import engines
from explainer_lab.experiment import Experiment, Setting
from explainer_lab.store import Identity

N_RANDOM = 5  # random directions beside a change; what is stored of them is the mean

_ROUNDED = "capitals"
"""The task whose scores show what a number format rounds, where a setting has none."""


def one_label_accuracy(data: TaskData, queries: Sequence[Example], zero_shot: float, split: str = "all") -> float:
    """What the most frequent label of a split would get of queries from it; `zero_shot` where answers are free."""
    labels = data.task.labels_of(queries)
    if labels is None:
        return zero_shot
    pool = [example for example in data.test if in_split(example, split)]
    return labels.count(statistics.mode(data.task.labels_of(pool) or labels)) / len(labels)


@dataclass(frozen=True, kw_only=True)
class CheckpointSetting:
    """What a seed draws for a checkpoint: demonstrations, queries, and whatever else is random.

    Of the fields that they name, `least` has the smallest values, `known` all that there are, and `rates` are above 0.
    Raises ExperimentError where a value is impossible.
    """

    checkpoint: str
    seed: int
    least: ClassVar[Mapping[str, int]] = {}
    known: ClassVar[Mapping[str, Collection[str]]] = {}
    rates: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self):
        """Refuse what cannot be computed before anything is."""
        object.__setattr__(self, "checkpoint", loading.canonical_checkpoint(self.checkpoint))
        require(self.seed >= 0, f"seed {self.seed} is negative; use 0, 1, 2, ...")
        for name, least in self.least.items():
            require(getattr(self, name) >= least, f"{name} = {getattr(self, name)} is too small; use at least {least}.")
        for name in self.rates:
            value = getattr(self, name)
            require(0 < value < math.inf, f"{name} = {value:g} is not a positive number.")
        for name, known in self.known.items():
            value, are = getattr(self, name), "are" if name.endswith("s") else "is"
            require(value in known, f"there {are} no {name} {value!r}; known: {', '.join(known)}.")

    @property
    def name(self) -> str:
        """The checkpoint as it stands in the names of files: its folder, owner and revision tell it from others."""
        return re.sub(r"[^\w.-]+", "-", self.checkpoint).strip("-")

    def generator(self, number: int, name: str = "") -> Generator:
        """Random numbers of one purpose, by its number, and of one task; no two of a seed share them."""
        seed = np.random.default_rng([self.seed, number, *name.encode()]).integers(2**62)
        return Generator().manual_seed(int(seed))


@dataclass(frozen=True, kw_only=True)
class FineTuningSetting(CheckpointSetting):
    """Fine-tuning on a draw: `epochs` passes at the rate `lr`, each after the first in another order."""

    lr: float
    epochs: int
    least: ClassVar = {"epochs": 1}
    rates: ClassVar = ("lr",)

    def numbers(self, k: int, n_queries: int) -> str:
        """The sizes and the seed, as they stand in names."""
        return f"k{k}-n{n_queries}-lr{self.lr:g}-e{self.epochs}-seed{self.seed}"

    @property
    def stages(self) -> list[int]:
        """The numbers of epochs after which a training is compared: 1, 2, 5, 10, as far as it goes, and its last."""
        return [n for n in (1, 2, 5, 10) if n < self.epochs] + [self.epochs]

    def sequences(self, checkpoint: Checkpoint, task: Task, examples: Sequence[Example]) -> list[Sequence[int]]:
        """What a training on demonstrations passes, in all its epochs."""
        return batched_finetuning.repeat_epochs(
            finetuning.training_ids(checkpoint, task, examples), self.epochs, self.seed
        )


class OfCheckpoint(Setting, Protocol):
    """What is asked of a checkpoint."""

    @property
    def checkpoint(self) -> str:
        """Its name."""
        ...


_Its = TypeVar("_Its", bound=OfCheckpoint)


class OnCheckpoint(Experiment[_Its]):
    """Loads checkpoints, one at a time, with `loading.load`, and data by name from `data`, else with `tasks.load`.

    `usual` are the values of a setting that is given without them; `names_float32` says whether an identity names the
    number format even where it is the one in which what is published was computed.
    """

    usual: ClassVar[Mapping[str, Any]] = {}
    names_float32: ClassVar[bool] = False

    def __init__(
        self,
        *,
        data: Mapping[str, TaskData] | None = None,
        data_dir: str | None = None,
        dtype: torch.dtype | None = None,
        device: str | None = None,
    ):
        """Nothing is loaded before it is asked for."""
        self.made_of = {"data": data, "data_dir": data_dir, "dtype": dtype, "device": device}
        self._data, self._data_dir, self._dtype, self._device = dict(data or {}), data_dir, dtype, device
        self._digests: dict[str, str] = {}
        self._of_data: dict[str, str] = {}
        self._skeletons: dict[str, PreTrainedModel] = {}
        self._checkpoint: tuple[str, Checkpoint] | None = None

    @classmethod
    def of(cls, **values: Any) -> _Its:
        """The setting with these values, those of `usual` where none is given, and the starter checkpoint."""
        return super().of(**{"checkpoint": loading.STARTER, **cls.usual, **values})

    def key(self, setting: _Its) -> Identity:
        """What is asked for, with the number format if it is not float32 or `names_float32`."""
        key, dtype = super().key(setting), self._dtype or torch.float32
        if dtype == torch.float32 and not self.names_float32:
            return key
        return Identity(key.slug, {**key.parts, "dtype": str(dtype).removeprefix("torch.")})

    def holds(self, setting: _Its) -> tuple[int, int]:
        """How many models a setting holds at once, and how many updates of all keys and values."""
        return 1, 1

    def needs(self, setting: _Its, dtype: torch.dtype | None = None) -> int:
        """Bytes of memory that a setting takes; raises CheckpointError."""
        model, n_shown = self.skeleton(setting.checkpoint), getattr(setting, "k", 0)
        return memory.required_bytes(model, dtype or self._dtype or torch.float32, n_shown, *self.holds(setting))

    def require_room(self, setting: _Its, at_once: int) -> None:
        """Raise CheckpointError where so many processes do not fit the free memory; they share out the GPUs."""
        try:
            self.needs(setting)
        except CheckpointError:
            return  # whoever loads it says why
        on_one = math.ceil(at_once / max(1, len(engines.gpus_of(self._device))))
        device, dtype = loading.device_of(self._device), self._dtype or torch.float32
        memory.require_memory(setting.checkpoint, device, dtype, partial(self.needs, setting), on_one)

    def rounding(self, setting: _Its) -> str:
        """What the number format does to the scores of labels, beside float32; empty for float32.

        Float32 is computed on the device, else on the processor, if it fits. Raises CheckpointError and TaskError.
        """
        if self._dtype in (None, torch.float32):
            return ""
        name, dtype = setting.checkpoint, str(self._dtype).removeprefix("torch.")
        weights = 4 * sum(p.numel() for p in self.skeleton(name).parameters())
        devices = loading.device_of(self._device), torch.device("cpu")
        wide = next((device for device in devices if memory.fits(weights, device)), None)
        if wide is None:
            return f"the error of {dtype} is not measured: float32 takes {weights / 1e9:.1f} GB, which are not free."
        data = self._load_data(getattr(setting, "task", _ROUNDED))
        self._checkpoint = None  # two models would take the memory of both
        exact = precision.label_scores(loading.load(name, dtype=torch.float32, device=wide), data)
        largest = abs(precision.label_scores(self._load(name), data) - exact).max()
        self._checkpoint = None  # the settings may be computed elsewhere
        torch.cuda.empty_cache()
        return (
            f"scores of labels in {dtype} differ from those in float32 by at most {largest:.2g} nats "
            f"({precision.N_QUERIES} queries of {data.task.name})."
        )

    def skeleton(self, name: str) -> PreTrainedModel:
        """The shapes of a checkpoint; raises CheckpointError."""
        if name not in self._skeletons:
            self._skeletons[name] = loading.skeleton(name)
        return self._skeletons[name]

    def _weights(self, name: str) -> str:
        if name not in self._digests:
            self._digests[name] = loading.digest(name)
        return self._digests[name]

    def _load(self, name: str) -> Checkpoint:
        if self._checkpoint is None or self._checkpoint[0] != name:
            self._checkpoint = None  # frees the memory of the last one before the next one needs it
            memory.release_freed_memory()
            self._checkpoint = name, loading.load(name, dtype=self._dtype, device=self._device)
        return self._checkpoint[1]

    def _load_data(self, task: str) -> TaskData:
        if task not in self._data:
            self._data[task] = tasks.load(task, data_dir=self._data_dir)
        return self._data[task]

    def _provenance(self, checkpoint: Checkpoint, task: Task | None = None) -> dict[str, Any]:
        its = {} if task is None else {"source": task.source, "licence": task.licence}
        return {"revision": checkpoint.revision} | its

    def _data_digests(self, names: Iterable[str]) -> dict[str, str]:
        for name in names:
            if name not in self._of_data:
                self._of_data[name] = data_digest(self._load_data(name))
        return {name: self._of_data[name] for name in names}

    def _data_part(self, task: str) -> dict[str, Any] | None:
        """Digest and sizes of the data of a task; None if the hub would have to be asked for them."""
        given = self._data_dir or os.environ.get("EXPLAINER_DATA")
        if not (given or task in self._data or tasks.find(task).hub is None):
            return None
        data = self._load_data(task)
        return {"sha256": self._data_digests([task])[task], "train": len(data.train), "test": len(data.test)}


def data_digest(data: TaskData) -> str:
    """SHA-256 of a task and all its examples."""
    task, digest = data.task, hashlib.sha256()
    digest.update(repr((task.name, task.template, task.labels, task.separator, data.train is data.test)).encode())
    for example in (*data.train, None, *data.test):
        digest.update(repr(example and (sorted(example.fields.items()), example.answer, example.label)).encode())
    return digest.hexdigest()


def as_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list]:
    """Rows with the same names as columns."""
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def by_head(scores: Mapping[str, Float[Tensor, "layers heads"]]) -> dict[str, list]:
    """Columns with a row for each head, layer after layer."""
    n_layers, n_heads = next(iter(scores.values())).shape
    places = {"layer": np.repeat(range(n_layers), n_heads), "head": np.tile(range(n_heads), n_layers)}
    return {name: of.flatten().tolist() for name, of in (*places.items(), *scores.items())}


# Passes.


@dataclass(frozen=True, eq=False)
class PairedPasses:
    """Queries of a task after a context and without it: both passes, what each computes, the answers' first tokens."""

    queries: Sequence[Example]
    context: Prefix
    after: Pass
    without: Pass
    icl: States
    zsl: States
    answers: Tensor

    @classmethod
    def of(
        cls, checkpoint: Checkpoint, context: Prefix, task: Task, queries: Sequence[Example], at: Prefix | None = None
    ) -> "PairedPasses":
        """Pass the queries after a context, and without it at the positions that they have after it, or after `at`."""
        prompts, labels = [task.prompt(query) for query in queries], task.labels or ()
        after = interventions.after_context(checkpoint, context, prompts, labels)
        without = interventions.without_context(checkpoint, context if at is None else at, prompts, labels)
        first = torch.tensor(scoring.distinguishing_tokens(checkpoint, task, queries), device=checkpoint.device)
        return cls(queries, context, after, without, after.run(), without.run(), first)

    @property
    def change(self) -> Float[Tensor, "n layers d"]:
        """What the context adds to the attention outputs."""
        return self.icl.attention - self.zsl.attention

    @property
    def stream_change(self) -> Float[Tensor, "n layers d"]:
        """What the context adds to the residual stream after every block."""
        return self.icl.stream - self.zsl.stream

    def with_added(self, layer: int, *vectors: Float[Tensor, " d"]) -> Float[Tensor, "times*n vocab"]:
        """Logits without context when a vector is added after a block, one after the other."""
        times = self.last.repeated(len(vectors))
        added = torch.stack(vectors).repeat_interleave(len(self.queries), 0)
        return times.run(interventions.with_added_to_stream(times.layers[layer], added)).logits

    def by_layer(self, vectors: Float[Tensor, "n layers d"]) -> dict[str, list[float]]:
        """Mean `outcome` without context when the vector of a layer is added after its block, for each layer."""
        last = self.last.repeated(vectors.shape[1])
        edits = []
        for number, layer in enumerate(last.layers):
            added = torch.zeros_like(vectors).transpose(0, 1)
            added[number] = vectors[:, number]
            edits += interventions.with_added_to_stream(layer, added.flatten(0, 1))
        return {name: its.mean(1).tolist() for name, its in self.outcome(last.run(edits).logits).items()}

    @cached_property
    def last(self) -> Pass:
        """The pass of the last tokens without context, with the weights at its first use."""
        return self.without.at_last()

    def outcome(self, logits: Float[Tensor, "times*n vocab"]) -> dict[str, Float[Tensor, "times n"]]:
        """For each time and query whether the answer is right or that of ICL, and log p of the right one."""
        n = len(self.answers)
        times = len(logits) // n
        right, icl = self.answers.repeat(times), self.icl.logits.argmax(-1).repeat(times)
        best, log_p = logits.argmax(-1), logits.float().log_softmax(-1)
        found = {"correct": (best == right).float(), "agrees": (best == icl).float()}
        found["log_prob"] = log_p.gather(1, right[:, None])[:, 0]
        return {name: values.unflatten(0, (times, n)) for name, values in found.items()}

    def rows(self, intervention: str, means: Mapping[str, Float[Tensor, " n"]]) -> list[dict[str, Any]]:
        """A row of a table for each query, with its means of `outcome` over times."""
        return [
            {"intervention": intervention, "query": i, "query_id": query_id(query)}
            | {name: values[i].item() for name, values in means.items()}
            for i, query in enumerate(self.queries)
        ]


def leave_one_out_mean(change: Float[Tensor, "n layers d"]) -> Float[Tensor, "n layers d"]:
    """For each query the mean change of all others."""
    return (change.sum(0) - change) / (len(change) - 1)


def best_layer(found: Mapping[str, Sequence[float]]) -> int:
    """The layer with most right answers, of several the one with the more probable ones."""
    return max(range(len(found["correct"])), key=lambda layer: (found["correct"][layer], found["log_prob"][layer]))


def context(checkpoint: Checkpoint, task: Task, examples: Sequence[Example]) -> Prefix:
    """The prefix of a task's demonstrations."""
    return scoring.encode(checkpoint, scoring.context_ids(checkpoint, task, examples)[0])


def logits_with_outputs(last: Pass, *attention: Float[Tensor, "n layers d"]) -> Float[Tensor, "times*n vocab"]:
    """Logits when the attention outputs at the last token are held at these values, one after the other."""
    times = last.repeated(len(attention))
    return times.run(interventions.with_attention_outputs(times.layers, torch.cat(attention))).logits


def matched_random(change: Tensor, direction: Tensor, generator: Generator) -> list[Tensor]:
    """Components of a change along N_RANDOM random directions with the cosine that the given one has."""
    return [
        projections.component(change, projections.matched_random_direction(change, direction, generator))
        for _ in range(N_RANDOM)
    ]
