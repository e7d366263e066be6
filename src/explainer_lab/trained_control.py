"""A positive control of the whole comparison: a softmax transformer whose in-context learning certainly is learning.

Snapshots of the training of `explainer_lab.llama_training` go through the code that measures the real checkpoint,
`explainer.compare.comparison`, with its controls. A task is a direction w, and the seed of a setting draws w, the
demonstrations and the queries. Beside it stands the similarity of ICL with ICL from other demonstrations of w. Where
nothing is changed, other demonstrations of w are swapped in on either side, as in `shared_part`: would the measure see
that a context learns from its examples? The plan is in published/PLANS.md.
"""

import hashlib
from collections.abc import Hashable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from explainer.compare import comparison, controls
from explainer.compare.comparison import Baseline
from explainer.compare.controls import Control, Demonstrations
from explainer.compare.observations import observe
from explainer.data import assets
from explainer.data.tasks import Example, Task, TaskData
from explainer.errors import require
from explainer.models import finetuning, loading, scoring
from explainer.models.loading import Checkpoint
from explainer.theory import metrics
from explainer_lab import lab_lessons, language_models, llama_training, shared_part, training_words
from explainer_lab.experiment import Computed, Experiment
from explainer_lab.llama_training import EVERY, LlamaSetting
from explainer_lab.on_checkpoint import as_columns

_MODELS = {"in-context-llama": LlamaSetting()}
"""What is trained, by the name of the checkpoint, for each seed of a model."""


@dataclass(frozen=True)
class _TrainedControlSetting(comparison.ComparisonSetting):
    """One comparison as in `comparison.ComparisonSetting`, of the model of one seed after some steps of its training.

    `checkpoint` names what is trained, one of _MODELS. Another task, where a control asks for one, has the same words
    with the answers of a direction at a right angle to w. Raises ExperimentError where a value cannot be used.
    """

    model: int = 0
    step: int = 0

    def __post_init__(self):
        """Refuse what cannot be computed before anything is."""
        super().__post_init__()
        require(self.checkpoint in _MODELS, f"there is no model {self.checkpoint!r}; known: {', '.join(_MODELS)}.")
        n_examples, snapshots = self.trained.n_examples, range(0, self.trained.steps + 1, EVERY)
        require(self.task == training_words.TASK.name, f"there is no task {self.task!r} here; leave it out.")
        require(self.k <= n_examples, f"k = {self.k} demonstrations; {self.checkpoint} was trained on {n_examples}.")
        require(self.step in snapshots, f"step = {self.step}: there are snapshots of {', '.join(map(str, snapshots))}.")

    @property
    def trained(self) -> LlamaSetting:
        """What determines the training of the model."""
        return replace(_MODELS[self.checkpoint], seed=self.model)

    @property
    def changes(self) -> Control:
        """What the control changes, with another direction for another task."""
        its = super().changes

        def meant(given: Demonstrations) -> Demonstrations:
            return _foreign if given is controls.LESSONS["foreign"] else given

        return replace(its, context=meant(its.context), training=meant(its.training))

    @property
    def slug(self) -> str:
        """A readable name."""
        return f"{super().slug}-model{self.model}-step{self.step}"


def _foreign(_data: TaskData, k: int, seed: int) -> tuple[Task, list[Example]]:
    """The demonstrations that the seed draws, with the answers of a direction at a right angle to that of the seed."""
    return controls.own(training_words.data(training_words.directions(seed)[1]), k, seed)


class TrainedControl(Experiment[_TrainedControlSetting]):
    """Trains each model once, keeps its snapshots in the cache, and compares ZSL, ICL and FT on them."""

    name = "trained_control"
    setting = _TrainedControlSetting
    protocol = 3
    slowest_first = ("checkpoint", "task", "model", "step", "k", "n_queries", "seed")
    slowest_first += ("position", "split", "control", "lr")
    packages = ("numpy", "tokenizers", "torch", "transformers")
    shown = ("zsl_accuracy", "icl_accuracy", "ft_accuracy", "sim_aou", "sim_aou_permuted", "sim_aou_icl", "note")

    def __init__(self):
        """Nothing is trained or loaded before it is asked for."""
        self._checkpoint: tuple[Path, Checkpoint] | None = None
        self._baseline: Baseline | None = None

    @classmethod
    def of(cls, **values: Any) -> _TrainedControlSetting:
        """The model after its training, as many demonstrations as it was trained on, and 32 queries."""
        model = _MODELS.get(values.get("checkpoint", ""), LlamaSetting())
        default = {"checkpoint": "in-context-llama", "task": training_words.TASK.name, "k": model.n_examples}
        return super().of(**default | {"n_queries": 32, "step": model.steps} | values)

    def parts(self, setting: _TrainedControlSetting) -> dict[str, Any]:
        """The training; the texts are drawn from its seed, and the task from that of the setting."""
        return {"training": _of_training(setting)}

    def shares(self, setting: _TrainedControlSetting) -> Hashable:
        """The model, which is trained once."""
        return setting.trained

    def compute(self, setting: _TrainedControlSetting, *, progress: bool) -> Computed:
        """One setting."""
        checkpoint = self._load(setting, progress)
        data = training_words.data(training_words.directions(setting.seed)[0])
        baseline, shared = self._baseline, True
        if baseline is None or not baseline.serves(checkpoint, setting):
            baseline, shared = comparison.prepare(checkpoint, data, setting, progress=progress), False
            self._baseline = baseline
        tables = comparison.run_comparison(baseline, setting, progress=progress)
        other = lab_lessons.context(checkpoint, *controls.LESSONS["other"](data, setting.k, setting.seed))
        alike_icl = observe(checkpoint, other, data.task, baseline.queries)
        alike = metrics.sim_aou(baseline.zsl.outputs, baseline.icl.outputs, alike_icl.outputs).nanmean(0)
        weights = language_models.weights_digest(checkpoint.model)
        settings = tables["settings"] | {"weights": weights, "sim_aou_icl": alike.nanmean()}
        swaps = {} if setting.control != "none" else {"swaps": as_columns(list(_swaps(baseline, setting, progress)))}
        return Computed(
            {"settings": settings, "queries": tables["queries"], "layers": tables["layers"] | {"sim_aou_icl": alike}}
            | swaps,
            {"source": data.task.source, "licence": data.task.licence},
            {"shared_zsl_and_icl": shared},
        )

    def _load(self, setting: _TrainedControlSetting, progress: bool) -> Checkpoint:
        place = _snapshot_directory(setting) / str(setting.step)
        if self._checkpoint is None or self._checkpoint[0] != place:
            if not place.is_dir():
                for step, model in llama_training.train(setting.trained, progress=progress):
                    llama_training.save(model, _snapshot_directory(setting) / str(step))
            self._checkpoint, self._baseline = (place, loading.load(place, dtype=torch.float32, device="cpu")), None
        return self._checkpoint[1]


def _of_training(setting: _TrainedControlSetting) -> dict[str, Any]:
    """What determines the weights of all snapshots."""
    return asdict(setting.trained) | {"words": training_words.WORDS, "dimension": training_words.DIMENSION}


def _snapshot_directory(setting: _TrainedControlSetting) -> Path:
    """The directory in the cache with a directory for each snapshot of a training, named by its step."""
    digest = hashlib.sha256(repr(_of_training(setting)).encode()).hexdigest()[:16]
    return assets.cache_dir() / "training" / f"{setting.checkpoint}-model{setting.model}-{digest}"


def _swaps(baseline: Baseline, setting: _TrainedControlSetting, progress: bool) -> Iterator[dict[str, Any]]:
    """Contexts beside trainings, of own and other demonstrations and of the own in another order, by layer."""
    checkpoint, task, found = baseline.checkpoint, baseline.data.task, {}
    for name in ("own", "other", "reordered"):
        lesson = shared_part.CONTEXTS[name](baseline.data, setting.k, setting.seed)
        prefix = lab_lessons.context(checkpoint, *lesson)
        found["ICL", name] = observe(checkpoint, prefix, task, baseline.queries)
        sequences = finetuning.training_ids(checkpoint, *lesson)
        trained = finetuning.fine_tune(checkpoint, sequences, setting.lr, progress=progress)
        if trained.diverged_at is None:
            with trained.applied() as tuned:
                found["FT", name] = observe(tuned, scoring.encode(tuned, ""), task, baseline.queries)
    yield from shared_part.by_layer(baseline.zsl, found, [])
