"""The study of the book: many comparisons of ZSL, ICL and FT, for the laboratory (`explainer_lab.experiment`)."""

import os
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import torch

from explainer.compare import comparison, controls
from explainer.compare.comparison import Baseline, ComparisonSetting
from explainer.data import tasks
from explainer.models.loading import Checkpoint
from explainer_lab.experiment import Computed
from explainer_lab.on_checkpoint import OfCheckpoint, OnCheckpoint, data_digest
from explainer_lab.store import Identity

_Its = TypeVar("_Its", bound=OfCheckpoint)


class OnTask(OnCheckpoint[_Its]):
    """What an experiment on a checkpoint and the data of one task is made of; its settings say their number format."""

    def __init__(self, **options: Any):
        """Nothing is loaded before it is asked for."""
        super().__init__(**options)
        self._data_parts: dict[tuple[str, bool], dict[str, Any]] = {}

    def key(self, setting: _Its) -> Identity:
        """The setting, in its number format."""
        dtype = str(self._dtype or torch.float32).removeprefix("torch.")
        return Identity(setting.slug, {**super().key(setting).parts, "dtype": dtype})

    def parts_of(self, setting: ComparisonSetting) -> dict[str, Any]:
        """Weights and data; without the data if the hub would have to be asked for them."""
        data = self._data_part(setting) if self._at_hand(setting.task) else None
        return {"weights": self._weights(setting.checkpoint), "data": data}

    def _at_hand(self, task: str) -> bool:
        given = self._data_dir or os.environ.get("EXPLAINER_DATA")
        return task in self._data or bool(given) or tasks.find(task).hub is None

    def _data_part(self, setting: ComparisonSetting) -> dict[str, Any]:
        key = setting.task, setting.changes.needs_foreign
        if key not in self._data_parts:
            data = self._load_data(setting.task)
            own = {"sha256": data_digest(data), "train": len(data.train), "test": len(data.test)}
            foreign = (
                {"foreign": data_digest(tasks.load(tasks.foreign(data.task)))} if setting.changes.needs_foreign else {}
            )
            self._data_parts[key] = own | foreign
        return self._data_parts[key]


class Comparison(OnTask[ComparisonSetting]):
    """Computes settings; those that differ in fine-tuning only share ZSL and ICL."""

    name = "comparison"
    setting = ComparisonSetting
    protocol = comparison.PROTOCOL
    slowest_first = ("checkpoint", "task", "k", "n_queries", "seed", "position", "split", "control", "lr")
    shown = ("zsl_accuracy", "icl_accuracy", "icl_per_token_accuracy", "ft_accuracy", "rec2ftp", "sim_aou",
             "sim_aou_isotropic", "note")  # fmt: skip

    usual: ClassVar = {"k": 32, "lr": 1e-3, "n_queries": 150}

    def __init__(self, **options: Any):
        """Nothing is loaded before it is asked for."""
        super().__init__(**options)
        self._baseline: Baseline | None = None

    def holds(self, setting: ComparisonSetting) -> tuple[int, int]:
        """A second model under a control that has one, and one update."""
        return 1 + (setting.changes.model is not controls.as_loaded), 1

    def parts(self, setting: ComparisonSetting) -> dict[str, Any]:
        """Weights and data."""
        return self.parts_of(setting)

    def prepare(self, settings: Sequence[ComparisonSetting]) -> None:
        """Load the data of every task; TaskError if that is not possible."""
        for setting in settings:
            self._load_data(setting.task)

    def groups(self, settings: Sequence[ComparisonSetting]) -> list[tuple[ComparisonSetting, ...]]:
        """Cells that share ZSL and ICL, those of a checkpoint one after the other."""
        order = list(dict.fromkeys(setting.checkpoint for setting in settings))
        groups: list[list[ComparisonSetting]] = []
        for setting in sorted(settings, key=lambda setting: order.index(setting.checkpoint)):
            if group := next((g for g in groups if comparison.share_icl(g[0], setting)), None):
                group.append(setting)
            else:
                groups.append([setting])
        return list(map(tuple, groups))

    def compute(self, setting: ComparisonSetting, *, progress: bool) -> Computed:
        """One setting; ZSL and ICL are those of the last one if both have the same."""
        checkpoint, data = self._load(setting.checkpoint), self._load_data(setting.task)
        baseline, shared = self._baseline, True
        if baseline is None or not baseline.serves(checkpoint, setting):
            baseline = self._baseline = None  # frees its memory before the next one needs it
            baseline, shared = comparison.prepare(checkpoint, data, setting, progress=progress), False
            self._baseline = baseline
        tables = comparison.run_comparison(baseline, setting, progress=progress)
        on_gpu = checkpoint.device.type == "cuda"
        provenance = {
            "revision": checkpoint.revision,
            "source": data.task.source,
            "licence": data.task.licence,
            **({"device": torch.cuda.get_device_name(checkpoint.device)} if on_gpu else {}),
        }
        return Computed(tables, provenance, {"shared_zsl_and_icl": shared})

    def _load(self, name: str) -> Checkpoint:
        if self._checkpoint and self._checkpoint[0] != name:
            self._baseline = None  # it holds the last checkpoint
        return super()._load(name)
