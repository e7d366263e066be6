"""What the experiments on a checkpoint have in common: the checkpoint and the data, their digests, the settings."""

import hashlib
import math
import os
import re
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from explainer.compare.comparison import in_split
from explainer.data import tasks
from explainer.data.files import PUBLISHED
from explainer.data.tasks import Example, Task, TaskData
from explainer.errors import require
from explainer.models import finetuning, loading, memory
from explainer.models.loading import Checkpoint
from explainer.results import published
from explainer_lab.experiment import AnySetting, Experiment
from explainer_lab.lab_store import Identity


@dataclass(frozen=True, kw_only=True)
class CheckpointSetting:
    """What a seed draws for a checkpoint: demonstrations, queries, and whatever else is random.

    Of the fields that they name, `least` has the smallest values, `known` all that there are, `rates` are above 0, and
    `fours` are multiples of 4.
    Raises ExperimentError where a value is impossible.
    """

    checkpoint: str
    seed: int
    least: ClassVar[Mapping[str, int]] = {}
    known: ClassVar[Mapping[str, Collection[str]]] = {}
    rates: ClassVar[tuple[str, ...]] = ()
    fours: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self):
        """Refuse what cannot be computed before anything is."""
        require(self.seed >= 0, f"seed {self.seed} is negative; use 0, 1, 2, ...")
        for name, least in self.least.items():
            require(getattr(self, name) >= least, f"{name} = {getattr(self, name)} is too small; use at least {least}.")
        for name in self.fours:
            value = getattr(self, name)
            require(value % 4 == 0, f"{name} = {value}: each of four labels needs as many; use a multiple of 4.")
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


class OnCheckpoint(Experiment[AnySetting]):
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
    def of(cls, **values: Any) -> AnySetting:
        """The setting with these values, those of `usual` where none is given, and the starter checkpoint."""
        return super().of(**{"checkpoint": loading.STARTER, **cls.usual, **values})

    def key(self, setting: AnySetting) -> Identity:
        """What is asked for, with the number format if it is not float32 or `names_float32`."""
        key, dtype = super().key(setting), self._dtype or torch.float32
        if dtype == torch.float32 and not self.names_float32:
            return key
        return Identity(key.slug, {**key.parts, "dtype": str(dtype).removeprefix("torch.")})

    def parts(self, setting: AnySetting) -> Mapping[str, Any]:
        """Weights; what is drawn is named by the setting, if nothing else is said."""
        return {"weights": self._weights(setting.checkpoint)}

    def holds(self, setting: AnySetting) -> tuple[int, int]:
        """How many models a setting holds at once, and how many updates of all keys and values."""
        return 1, 1

    def needs(self, setting: AnySetting, dtype: torch.dtype | None = None) -> int:
        """Bytes of memory that a setting takes; raises CheckpointError."""
        model, n_shown = self.skeleton(setting.checkpoint), getattr(setting, "k", 0)
        return memory.required_bytes(model, dtype or self._dtype or torch.float32, n_shown, *self.holds(setting))

    def estimates(self, settings: Sequence[AnySetting], at_once: int = 1) -> Iterator[str]:
        """For each checkpoint how many settings there are, about how long they take, and how much memory.

        The time is that of the book's checkpoint, as `published.seconds_on` scales it. Raises CheckpointError where
        so many processes do not fit the memory.
        """
        for name in dict.fromkeys(setting.checkpoint for setting in settings):
            its = [setting for setting in settings if setting.checkpoint == name]
            needed = max(map(self.needs, its))
            if at_once:
                memory.require_memory(name, self._device, at_once * needed)
            if not (PUBLISHED / self.name / "runs.parquet").is_file():
                yield f"{name}: {len(its)} to compute, the first of their kind; about {needed / 1e9:.1f} GB of memory."
                continue
            runs = published.rows_of_experiment(PUBLISHED / self.name, "runs")
            of_book = runs.loc[runs["checkpoint"] == loading.STARTER, "seconds"].mean()
            each = published.seconds_on(self.skeleton(name), of_book)
            one, every = published.in_words(each), published.in_words(len(its) * each)
            yield (
                f"{name}: {len(its)} to compute, {one} each and {every} in all in one process (the book's mean, "
                f"scaled by the numbers of weights and layers); about {needed / 1e9:.1f} GB of memory."
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


def by_head(scores: Mapping[str, Float[Tensor, "layers heads"]]) -> list[dict[str, Any]]:
    """A row for each head, layer after layer."""
    n_layers, n_heads = next(iter(scores.values())).shape
    return [
        {"layer": layer, "head": head} | {name: of[layer, head].item() for name, of in scores.items()}
        for layer in range(n_layers)
        for head in range(n_heads)
    ]


def one_label_accuracy(data: TaskData, queries: Sequence[Example], zero_shot: float, split: str = "all") -> float:
    """What the most frequent label of a split would get of queries from it; `zero_shot` where answers are free."""
    labels = data.task.labels_of(queries)
    if labels is None:
        return zero_shot
    pool = [example for example in data.test if in_split(example, split)]
    return labels.count(statistics.mode(data.task.labels_of(pool) or labels)) / len(labels)
