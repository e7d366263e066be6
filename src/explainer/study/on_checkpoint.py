"""What the experiments on a checkpoint have in common: the checkpoint and the data, their digests, the settings."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch

from explainer.compare.comparison import require
from explainer.data import tasks
from explainer.data.tasks import TaskData
from explainer.models import checkpoints
from explainer.models.checkpoints import Checkpoint
from explainer.study.experiment import Experiment
from explainer.study.store import Identity

N_RANDOM = 5
"""Random directions beside a change; what is stored of them is the mean."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Fine-tuning of a checkpoint: `epochs` passes at the rate `lr`, each after the first in another order.

    The seed draws demonstrations, queries, and whatever else is random. Raises StudyError where a value is impossible.
    """

    checkpoint: str
    seed: int
    lr: float
    epochs: int
    least: ClassVar[Mapping[str, int]] = {"epochs": 1}

    def __post_init__(self):
        """Refuse what cannot be computed before anything is."""
        self._require_rate("lr")
        require(self.seed >= 0, f"seed {self.seed} is negative; use 0, 1, 2, ...")
        for name, least in self.least.items():
            require(getattr(self, name) >= least, f"{name} = {getattr(self, name)} is too small; use at least {least}.")

    def _require_rate(self, name: str) -> None:
        value = float(getattr(self, name))  # 1 and 1.0 are one setting, not two
        object.__setattr__(self, name, value)
        require(0 < value < float("inf"), f"{name} = {value:g} is not a positive number.")

    @property
    def name(self) -> str:
        """The checkpoint without its directory or owner."""
        return Path(self.checkpoint.partition("@")[0]).name

    @property
    def numbers(self) -> str:
        """The sizes and the seed, as they stand in names."""
        return f"k{self.k}-n{self.n_queries}-lr{self.lr:g}-e{self.epochs}-seed{self.seed}"

    @property
    def stages(self) -> list[int]:
        """The numbers of epochs after which a training is compared: 1, 2, 5, 10, as far as it goes, and its last."""
        return [n for n in (1, 2, 5, 10) if n < self.epochs] + [self.epochs]


Its = TypeVar("Its")


class OnCheckpoint(Experiment[Its]):
    """Loads checkpoints, one at a time, with `checkpoints.load`, and data by name from `data`, else with `tasks.load`.

    `usual` are the values of a setting that is given without them.
    """

    usual: ClassVar[Mapping[str, Any]] = {}

    def __init__(
        self,
        *,
        data: Mapping[str, TaskData] | None = None,
        data_dir: str | None = None,
        dtype: torch.dtype | None = None,
        device: str | None = None,
    ):
        """Nothing is loaded before it is asked for."""
        self._given = {"data": data, "data_dir": data_dir, "dtype": dtype, "device": device}
        self._data, self._data_dir, self._dtype, self._device = dict(data or {}), data_dir, dtype, device
        self._digests: dict[str, str] = {}
        self._checkpoint: tuple[str, Checkpoint] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Another process loads for itself."""
        return self._given

    def __setstate__(self, given: dict[str, Any]) -> None:
        """See `__getstate__`."""
        self.__init__(**given)

    @classmethod
    def of(cls, **values: Any) -> Its:
        """The setting with these values, those of `usual` where none is given, and the starter checkpoint."""
        return super().of(**{"checkpoint": checkpoints.STARTER} | cls.usual | values)

    def key(self, setting: Its) -> Identity:
        """What is asked for, with the number format if it is not float32, in which what is published was computed."""
        key = super().key(setting)
        if self._dtype in (None, torch.float32):
            return key
        return Identity(key.slug, {**key.parts, "dtype": str(self._dtype).removeprefix("torch.")})

    def _weights(self, name: str) -> str:
        if name not in self._digests:
            self._digests[name] = checkpoints.digest(name)
        return self._digests[name]

    def _load(self, name: str) -> Checkpoint:
        if self._checkpoint is None or self._checkpoint[0] != name:
            self._checkpoint = None  # frees the memory of the last one before the next one needs it
            self._checkpoint = name, checkpoints.load(name, dtype=self._dtype, device=self._device)
        return self._checkpoint[1]

    def _load_data(self, task: str) -> TaskData:
        if task not in self._data:
            self._data[task] = tasks.load(task, data_dir=self._data_dir)
        return self._data[task]

    def _data_digests(self, names: Iterable[str]) -> dict[str, str]:
        return {name: data_digest(self._load_data(name)) for name in names}


def data_digest(data: TaskData) -> str:
    """SHA-256 of a task and all its examples."""
    task, digest = data.task, hashlib.sha256()
    digest.update(repr((task.name, task.template, task.labels, task.separator, data.train is data.test)).encode())
    for example in (*data.train, None, *data.test):
        digest.update(repr(example and (sorted(example.fields.items()), example.answer, example.label)).encode())
    return digest.hexdigest()


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list]:
    """Rows with the same names as columns."""
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
