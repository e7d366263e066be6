"""The study of the book: many comparisons of ZSL, ICL and FT, for the laboratory (`explainer_lab.experiment`)."""

from collections.abc import Hashable
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import torch

from explainer.compare import comparison, controls
from explainer.compare.comparison import Baseline, ComparisonSetting
from explainer.data import tasks
from explainer.data.tasks import Example, Task
from explainer.models.loading import Checkpoint
from explainer_lab import harness
from explainer_lab.experiment import Computed
from explainer_lab.on_checkpoint import OnCheckpoint, data_digest


class Comparison(OnCheckpoint[ComparisonSetting]):
    """Computes settings; those that differ in fine-tuning only share ZSL and ICL."""

    name = "comparison"
    setting = ComparisonSetting
    protocol = comparison.PROTOCOL
    slowest_first = ("checkpoint", "task", "k", "n_queries", "seed", "position", "split", "control", "lr")
    shown = ("zsl_accuracy", "icl_accuracy", "icl_per_token_accuracy", "ft_accuracy", "rec2ftp", "sim_aou",
             "sim_aou_isotropic", "note")  # fmt: skip
    names_float32: ClassVar = True
    usual: ClassVar = {"k": 32, "lr": 1e-3, "n_queries": 150}

    def __init__(self, **options: Any):
        """Nothing is loaded before it is asked for."""
        super().__init__(**options)
        self._baseline: Baseline | None = None
        self._foreign_digest = cache(
            lambda task: data_digest(tasks.load(tasks.unrelated_task(self._load_data(task).task)))
        )

    def holds(self, setting: ComparisonSetting) -> tuple[int, int]:
        """A second model under a control that has one, and one update."""
        return 1 + (setting.changes.model is not controls.CONTROLS["none"].model), 1

    def parts(self, setting: ComparisonSetting) -> dict[str, Any]:
        """Weights and data; without the data if the hub would have to be asked for them."""
        data = self._data_part(setting.task)
        if data and controls.LESSONS["foreign"] in (setting.changes.context, setting.changes.training):
            data |= {"foreign": self._foreign_digest(setting.task)}
        return {"weights": self._weights(setting.checkpoint), "data": data}

    def shares(self, setting: ComparisonSetting) -> Hashable:
        """All but what fine-tuning alone reads: settings with the same ZSL and ICL."""
        its = setting.changes
        return replace(setting, lr=1.0, control="none"), its.model, its.context

    def asked(self, setting: ComparisonSetting) -> tuple[str, Task, list[Example], harness.Shown]:
        """A name, the task, its queries, and demonstrations: its own, with shuffled answers, and of another task."""
        data = self._load_data(setting.task)
        changed = {"right": "own", "shuffled": "shuffled", "other": "foreign"}
        shown = {name: controls.LESSONS[of](data, setting.k, setting.seed) for name, of in changed.items()}
        return setting.task, data.task, comparison.draw_queries(data, setting), shown

    def compute(self, setting: ComparisonSetting, *, progress: bool) -> Computed:
        """One setting; ZSL and ICL are those of the last one if both have the same."""
        checkpoint, data = self._load(setting.checkpoint), self._load_data(setting.task)
        baseline, shared = self._baseline, True
        if baseline is None or not baseline.serves(checkpoint, setting):
            baseline = self._baseline = None  # frees its memory before the next one needs it
            baseline, shared = comparison.prepare(checkpoint, data, setting, progress=progress), False
            self._baseline = baseline
        tables = comparison.run_comparison(baseline, setting, progress=progress)
        device = {} if checkpoint.device.type == "cpu" else {"device": torch.cuda.get_device_name(checkpoint.device)}
        provenance = self._provenance(checkpoint, data.task) | device
        return Computed(tables, provenance, {"shared_zsl_and_icl": shared})

    def _load(self, name: str) -> Checkpoint:
        if self._checkpoint and self._checkpoint[0] != name:
            self._baseline = None  # it holds the last checkpoint
        return super()._load(name)
