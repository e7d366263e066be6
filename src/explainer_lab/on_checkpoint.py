"""What the experiments on a checkpoint have in common: the checkpoint and the data, their digests, the settings."""

import hashlib
import math
import os
import re
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from explainer.compare.comparison import in_split, require
from explainer.data import tasks
from explainer.data.files import PUBLISHED
from explainer.data.tasks import Example, Task, TaskData
from explainer.models import finetuning, loading, memory, scoring
from explainer.models.loading import Checkpoint
from explainer.results import published
from explainer_lab.experiment import Experiment, Setting
from explainer_lab.store import Identity, Store


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
        return finetuning.repeat_epochs(finetuning.training_ids(checkpoint, task, examples), self.epochs, self.seed)


class _OfCheckpoint(Setting, Protocol):
    @property
    def checkpoint(self) -> str: ...


_Its = TypeVar("_Its", bound=_OfCheckpoint)


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
        self._checkpoint: tuple[str, Checkpoint] | None = None
        self.skeleton = cache(loading.skeleton)
        self._weights = cache(loading.digest)
        self._data_digest = cache(lambda task: data_digest(self._load_data(task)))

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

    @classmethod
    def tasks_of(cls, setting: _Its) -> Sequence[str]:
        """The tasks whose data a setting reads."""
        values: Any = setting
        return values.names if hasattr(values, "names") else (values.task,) if hasattr(values, "task") else ()

    def estimates(self, planned: Sequence[tuple[_Its, Identity, str]], store: Store, at_once: int = 1) -> Iterator[str]:
        """For each checkpoint what is left, how long it takes, how much memory, and what its number format rounds.

        The time of a setting is the median of those of the checkpoint that are stored, else that of the book's
        checkpoint as `published.seconds_on` scales it. Raises CheckpointError where so many processes do not fit the
        memory.
        """
        waiting: dict[str, list[_Its]] = {}
        took: dict[str, list[float]] = {}
        for setting, identity, state in planned:
            if state == "waiting":
                waiting.setdefault(setting.checkpoint, []).append(setting)
            elif state == "stored" and (stored := store.load(identity)):
                took.setdefault(setting.checkpoint, []).append(stored.run["seconds"])
        for name, settings in waiting.items():
            largest = max(settings, key=self.needs)
            if at_once:
                memory.require_memory(name, self._device, at_once * self.needs(largest))
            if name in took:
                each, basis = statistics.median(took[name]), f"the median of {len(took[name])} stored"
            else:
                runs = published.rows_of_experiment(PUBLISHED / self.name, "runs")
                of_book = runs.loc[runs["checkpoint"] == loading.STARTER, "seconds"].median()
                each = published.seconds_on(self.skeleton(name), of_book)
                basis = "the book's, scaled by the numbers of weights and layers; longer prompts take longer"
            one, every = published.in_words(each), published.in_words(len(settings) * each)
            time = f"{one} each and {every} in all in one process ({basis})"
            gigabytes = self.needs(largest) / 1e9
            yield f"{name}: {len(settings)} to compute, {time}; about {gigabytes:.1f} GB of memory."
            if self._dtype not in (None, torch.float32):
                yield f"{name}: {self._rounding(settings[0])}"

    def _rounding(self, setting: _Its) -> str:
        """What the number format does to the scores of labels, beside float32 on the processor."""
        dtype, name = str(self._dtype).removeprefix("torch."), setting.checkpoint
        if 4 * sum(p.numel() for p in self.skeleton(name).parameters()) > memory.free_bytes(torch.device("cpu")):
            return f"the error of {dtype} is not measured: there is no memory for float32."
        data = self._load_data(next(iter(self.tasks_of(setting)), "capitals"))
        scores = _label_scores(self._load(name), data)
        self._checkpoint = None  # the settings may be computed elsewhere
        exact = _label_scores(loading.load(name, dtype=torch.float32, device="cpu"), data)
        return (
            f"scores of labels in {dtype} differ from those in float32 by at most {abs(scores - exact).max():.2g} nats "
            f"({_N_ROUNDED} queries of {data.task.name})."
        )

    def _load(self, name: str) -> Checkpoint:
        if self._checkpoint is None or self._checkpoint[0] != name:
            self._checkpoint = None  # frees the memory of the last one before the next one needs it
            self._checkpoint = name, loading.load(name, dtype=self._dtype, device=self._device)
        return self._checkpoint[1]

    def _load_data(self, task: str) -> TaskData:
        if task not in self._data:
            self._data[task] = tasks.load(task, data_dir=self._data_dir)
        return self._data[task]

    def _load_pair(self, task: str) -> tuple[TaskData, TaskData]:
        """The data of a task and of the one that stands for another."""
        own = self._load_data(task)
        return own, self._load_data(tasks.unrelated_task(own.task, short=True))

    def _provenance(self, checkpoint: Checkpoint, task: Task | None = None) -> dict[str, Any]:
        its = {} if task is None else {"source": task.source, "licence": task.licence}
        return {"revision": checkpoint.revision} | its

    def _data_digests(self, names: Iterable[str]) -> dict[str, str]:
        return {name: self._data_digest(name) for name in names}

    def _data_part(self, task: str) -> dict[str, Any] | None:
        """Digest and sizes of the data of a task; None if the hub would have to be asked for them."""
        given = self._data_dir or os.environ.get("EXPLAINER_DATA")
        if not (given or task in self._data or tasks.find(task).hub is None):
            return None
        data = self._load_data(task)
        return {"sha256": self._data_digest(task), "train": len(data.train), "test": len(data.test)}


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


def one_label_accuracy(data: TaskData, queries: Sequence[Example], zero_shot: float, split: str = "all") -> float:
    """What the most frequent label of a split would get of queries from it; `zero_shot` where answers are free."""
    labels = data.task.labels_of(queries)
    if labels is None:
        return zero_shot
    pool = [example for example in data.test if in_split(example, split)]
    return labels.count(statistics.mode(data.task.labels_of(pool) or labels)) / len(labels)


_N_ROUNDED, _N_SHOWN = 4, 4
"""Queries and demonstrations on which it is measured what a number format rounds."""


def _label_scores(checkpoint: Checkpoint, data: TaskData) -> np.ndarray:
    """log p of every label, or of the answers of these queries, for the first queries of seed 0: shape (n, c)."""
    asked = tasks.queries(data, _N_ROUNDED, 0)
    ids, _ = scoring.context_ids(checkpoint, data.task, tasks.demonstrations(data, _N_SHOWN, 0))
    answers = data.task.labels or tuple(dict.fromkeys(query.answer for query in asked))
    prompts = [data.task.prompt(query) for query in asked]
    return scoring.candidate_log_probs(checkpoint, scoring.encode(checkpoint, ids), prompts, answers)
