"""The study of the book: many comparisons of ZSL, ICL and FT, for the laboratory (`explainer_lab.experiment`)."""

import os
from collections.abc import Sequence
from typing import Any, ClassVar

import torch

from explainer.compare import comparison, controls
from explainer.compare.comparison import Baseline, ComparisonSetting
from explainer.data import tasks
from explainer.models.loading import Checkpoint
from explainer_lab.experiment import Computed
from explainer_lab.on_checkpoint import OnCheckpoint, data_digest
from explainer_lab.store import Identity


class Comparison(OnCheckpoint[ComparisonSetting]):
    """Computes cells; those that differ in fine-tuning only share ZSL and ICL."""

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
        self._data_parts: dict[tuple[str, bool], dict[str, Any]] = {}
        self._baseline: Baseline | None = None

    def key(self, cell: ComparisonSetting) -> Identity:
        """The cell, in its number format."""
        dtype = str(self._dtype or torch.float32).removeprefix("torch.")
        return Identity(cell.slug, {**super().key(cell).parts, "dtype": dtype})

    def holds(self, cell: ComparisonSetting) -> tuple[int, int]:
        """A second model under a control that has one, and one update."""
        return 1 + (cell.changes.model is not controls.as_loaded), 1

    def parts(self, cell: ComparisonSetting) -> dict[str, Any]:
        """Weights and data; without the data if the hub would have to be asked for them."""
        data = self._data_part(cell) if self._at_hand(cell.task) else None
        return {"weights": self._weights(cell.checkpoint), "data": data}

    def prepare(self, cells: Sequence[ComparisonSetting]) -> None:
        """Load the data of every task; TaskError if that is not possible."""
        for cell in cells:
            self._load_data(cell.task)

    def groups(self, cells: Sequence[ComparisonSetting]) -> list[tuple[ComparisonSetting, ...]]:
        """Cells that share ZSL and ICL, those of a checkpoint one after the other."""
        order = list(dict.fromkeys(cell.checkpoint for cell in cells))
        groups: list[list[ComparisonSetting]] = []
        for cell in sorted(cells, key=lambda cell: order.index(cell.checkpoint)):
            if group := next((g for g in groups if comparison.share_icl(g[0], cell)), None):
                group.append(cell)
            else:
                groups.append([cell])
        return list(map(tuple, groups))

    def compute(self, cell: ComparisonSetting, *, progress: bool) -> Computed:
        """One cell; ZSL and ICL are those of the last one if both have the same."""
        checkpoint, data = self._load(cell.checkpoint), self._load_data(cell.task)
        shared = self._baseline is not None and self._baseline.serves(checkpoint, cell)
        if not shared:
            self._baseline = None  # frees its memory before the next one needs it
            self._baseline = comparison.prepare(checkpoint, data, cell, progress=progress)
        tables = comparison.run_comparison(self._baseline, cell, progress=progress)
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

    def _at_hand(self, task: str) -> bool:
        given = self._data_dir or os.environ.get("EXPLAINER_DATA")
        return task in self._data or bool(given) or tasks.find(task).hub is None

    def _data_part(self, cell: ComparisonSetting) -> dict[str, Any]:
        key = cell.task, cell.changes.needs_foreign
        if key not in self._data_parts:
            data = self._load_data(cell.task)
            own = {"sha256": data_digest(data), "train": len(data.train), "test": len(data.test)}
            foreign = (
                {"foreign": data_digest(tasks.load(tasks.foreign(data.task)))} if cell.changes.needs_foreign else {}
            )
            self._data_parts[key] = own | foreign
        return self._data_parts[key]
