"""How alike are the changes of one model: what contexts do to it, what trainings do to it, and each with each.

A *change* is what a lesson, some demonstrations, does to the zero-shot model: as a context (ICL) or as a training (FT).
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from tqdm import tqdm

from explainer.compare import comparison, controls
from explainer.compare.comparison import ComparisonSetting
from explainer.compare.observations import Observed, observe, observe_linear_maps
from explainer.data import tasks
from explainer.data.files import Tables
from explainer.data.tasks import Example, Task, TaskData
from explainer.errors import require
from explainer.models import scoring
from explainer.models.finetuning import FineTuned
from explainer.models.loading import Checkpoint
from explainer.models.recording import LinearMaps
from explainer.models.scoring import Prefix
from explainer.theory import metrics
from explainer_lab import on_checkpoint
from explainer_lab.experiment import Computed
from explainer_lab.lab_lessons import Lesson, context, trained
from explainer_lab.on_checkpoint import OnCheckpoint, as_columns

_WORD_TASKS = ("capitals", "plurals", "past", "antonyms", "comparatives", "participles", "agents", "nationalities")
_WORD_TASKS += ("categories", "uppercase")
_LABEL_TASKS = ("sst2", "sst5", "mr", "subj", "agnews", "cb", "reviews", "reviews5", "news")
"""The tasks that are foreign to each other; a task is compared with those of its own kind of answers."""

_N_MAPS = 4  # queries whose linear maps are compared, those of every change held at once

_N_FOREIGN_CONTEXTS = 3

_SLOW = 0.1  # the factor of the training at a smaller rate
_BY_LAYER = ("sim_aou", "sim_aou_tangent_uncentred", "sim_aou_residual")


# Lessons.


def _half(data: TaskData, k: int, seed: int, *, second: bool) -> tuple[Task, list[Example]]:
    """One half of the own demonstrations."""
    task, examples = controls.own(data, k, seed)
    return task, examples[k // 2 :] if second else examples[: k // 2]


OF_A_TASK: Mapping[str, controls.Demonstrations] = {
    **{name: controls.LESSONS[name] for name in ("own", "reordered", "other")},
    "first half": partial(_half, second=False),
    "second half": partial(_half, second=True),
    **{name: controls.LESSONS[name] for name in ("shuffled", "nonsense")},
}
"""Lessons that a task gives: its demonstrations, others that teach the same, and some that teach less."""

_LESSONS: Mapping[str, tuple[str, ...]] = {
    "all": tuple(OF_A_TASK),
    "few": ("own", "other", "shuffled"),
    "bounds": ("own", "other", "nonsense"),
    "own": ("own",),
}
"""Which of a task's lessons a setting has."""

_STAGED = ("own", "shuffled", "nonsense")
"""Lessons whose trainings are compared after several numbers of epochs, and not after the last one only."""


# Settings.


@dataclass(frozen=True, kw_only=True)
class _AgreementSetting(on_checkpoint.FineTuningSetting):
    """What the k demonstrations of a seed do as context and as training, beside what other demonstrations do.

    `n_directions` random updates stand beside them. `lessons` says which others: "all"; "few", one floor and one
    ceiling of each kind; "bounds", those of the verdict; "own", none, enough to choose a rate. The `loss` of FT is that
    of the "text" of a demonstration, as in the paper, or that of its "answers" only. Raises ExperimentError where a
    value is none.
    """

    task: str
    k: int
    n_queries: int
    lessons: str = "all"
    n_directions: int = 0
    split: str = "all"
    loss: str = "text"
    known: ClassVar = {"lessons": _LESSONS, "loss": ("text", "answers")}

    def __post_init__(self):
        """Refuse what cannot be computed before anything is."""
        super().__post_init__()
        require(self.k >= 2, f"k = {self.k}: two halves need at least 2 demonstrations.")
        self.comparison  # noqa: B018 - which refuses what a comparison cannot use
        require(self.n_directions >= 0, f"n_directions = {self.n_directions} is negative; use 0 for none.")

    @property
    def comparison(self) -> ComparisonSetting:
        """The comparison of ZSL, ICL and FT with the same demonstrations and queries."""
        shared = ("checkpoint", "task", "seed", "k", "lr", "n_queries", "split")
        return ComparisonSetting(**{name: getattr(self, name) for name in shared})

    @property
    def slug(self) -> str:
        """A readable name, not quite unique."""
        directions = [f"{self.n_directions}directions"] * (self.n_directions > 0)
        loss = ["answers"] * (self.loss == "answers")
        return "-".join([self.comparison.slug, f"{self.epochs}epochs", self.lessons, *directions, *loss])

    @property
    def kin(self) -> tuple[str, ...]:
        """The tasks whose own demonstrations are lessons: with all lessons, every one with the same kind of answers.

        Beside a task of one's own those are the word pairs, which need no data from elsewhere.
        """
        task = tasks.TASKS.get(self.task)
        if self.lessons == "own":
            return (self.task,)
        if self.lessons in ("few", "bounds"):
            return self.task, tasks.unrelated_task(task) if task else _WORD_TASKS[0]
        known = _LABEL_TASKS if task and task.labels else _WORD_TASKS
        return known if self.task in known else (self.task, *known)

    @property
    def foreign(self) -> tuple[str, ...]:
        """Those of them that are not the own task."""
        return tuple(name for name in self.kin if name != self.task)


def _lessons_of(setting: _AgreementSetting, load: Callable[[str], TaskData]) -> dict[str, Lesson]:
    """The lessons of a setting by name; a foreign task gives its own demonstrations under its name."""
    drawn = load(setting.task), setting.k, setting.seed
    of_the_task = {name: OF_A_TASK[name](*drawn) for name in _LESSONS[setting.lessons]}
    return of_the_task | {name: controls.own(load(name), *drawn[1:]) for name in setting.foreign}


# Changes.


@dataclass(frozen=True, eq=False)
class _Change:
    """What a lesson does to the model, by context (`kind` ICL) or training (FT) for some epochs at a rate.

    `observed` is what the changed model does with the queries. `maps` are the changes of the linear maps of the first
    queries. `context_tokens` stand before them, and `training` are the numbers that only FT has.
    """

    kind: str
    lesson: str
    observed: Observed
    maps: Float[Tensor, "n layers key_heads d_v d"]
    epochs: int | None = None
    lr: float | None = None
    training: Mapping[str, float] | None = None
    context_tokens: int = 0

    @property
    def name(self) -> str:
        """Unique among the changes of a setting."""
        return f"ICL {self.lesson}" if self.kind == "ICL" else f"FT {self.lesson} {self.epochs} {self.lr:g}"


@dataclass(frozen=True, eq=False)
class _Queries:
    """The queries of a setting, and what is done with them after any prefix and under any weights."""

    task: Task
    examples: list[Example]

    def observed(self, checkpoint: Checkpoint, prefix: Prefix) -> Observed:
        return observe(checkpoint, prefix, self.task, self.examples)

    def maps(self, checkpoint: Checkpoint, prefix: Prefix) -> list[LinearMaps]:
        return observe_linear_maps(checkpoint, prefix, self.task, self.examples[:_N_MAPS])


def _every_change(
    checkpoint: Checkpoint,
    setting: _AgreementSetting,
    queries: _Queries,
    given: Mapping[str, Lesson],
    trained: Mapping[tuple[str, float], Mapping[int, FineTuned]],
) -> Iterator[_Change]:
    """Every context and every training of a setting, one after the other; trainings that diverged are left out."""
    contexts = [name for name in given if name not in setting.foreign[_N_FOREIGN_CONTEXTS:]]
    for name in contexts:
        prefix = context(checkpoint, *given[name])
        maps = torch.stack([maps.context for maps in queries.maps(checkpoint, prefix)])
        yield _Change("ICL", name, queries.observed(checkpoint, prefix), maps, context_tokens=len(prefix))
    empty = torch.stack([maps.own for maps in queries.maps(checkpoint, scoring.encode(checkpoint, ""))])
    for (name, lr), states in trained.items():
        for n in setting.stages if name in _STAGED else (setting.epochs,):
            if states[n].diverged_at is None:
                with states[n].applied() as tuned:
                    prefix = scoring.encode(tuned, "")
                    observed = queries.observed(tuned, prefix)
                    maps = torch.stack([maps.own for maps in queries.maps(tuned, prefix)])
                changed = metrics.nan_within_rounding(maps - empty, empty, metrics.machine_epsilon(empty), axes=2)
                matrices = torch.stack(
                    [W.flatten(0, 1) for layer in states[n].update for W in (layer.key_weight, layer.value_weight)]
                )
                numbers = {
                    "loss_after": states[n].loss_after,
                    "update_rank": metrics.participation_ratio(matrices).nanmean().item(),
                }
                yield _Change("FT", name, observed, changed, n, lr, numbers)


# Agreement.


def _tables(setting: _AgreementSetting, zsl: Observed, found: Sequence[_Change], labels: list[int] | None) -> Tables:
    """`changes`, `pairs` and `layers` of a setting; columns as in the README beside the published tables."""
    observed, tokens = [change.observed for change in found], [change.context_tokens for change in found]
    measures = metrics.pairwise_outputs(zsl.outputs, [one.outputs for one in observed])
    measures |= metrics.pairwise_scores(zsl.own_scores, [one.own_scores for one in observed], tokens)
    measures["update_cosine"] = metrics.pairwise_maps([change.maps for change in found])
    by_layer_of = {"own", "other", *setting.foreign[:1]}  # of contexts and whole trainings
    pairs, layers = [], []
    for (i, a), (j, b) in combinations(enumerate(found), 2):
        halves = {a.lesson, b.lesson} == {"first half", "second half"} and a.kind == b.kind
        if not halves and "own" not in (a.lesson, b.lesson):
            continue
        names = {"a": a.name, "b": b.name}
        means = {name: values[i, j].nanmean().item() for name, values in measures.items()}
        right = (torch.from_numpy(np.asarray(one.correct)) for one in (zsl, a.observed, b.observed))
        counts = zip(("zsl_errors", "b_fixes", "a_fixes", "both_fix"), metrics.rec2ftp_counts(*right), strict=True)
        pairs.append(names | means | dict(counts))
        if {a.lesson, b.lesson} <= by_layer_of and {a.epochs, b.epochs} <= {None, setting.epochs}:
            by_layer = torch.stack([measures[name][i, j].nanmean(0) for name in _BY_LAYER], 1).tolist()
            layers += [names | {"layer": n} | dict(zip(_BY_LAYER, row, strict=True)) for n, row in enumerate(by_layer)]
    rows = [_row(change, labels) for change in found]
    return {"changes": as_columns(rows), "pairs": as_columns(pairs), "layers": as_columns(layers)}


def _row(change: _Change, labels: list[int] | None) -> dict[str, Any]:
    return {
        "change": change.name,
        "kind": change.kind,
        "lesson": change.lesson,
        "epochs": change.epochs,
        "rate": change.lr,
        **change.observed.accuracy_measures(labels),
        "map_rank": metrics.participation_ratio(change.maps).nanmean().item(),
        **(change.training or dict.fromkeys(("loss_after", "update_rank"))),
    }


# The experiment.


class Agreement(OnCheckpoint[_AgreementSetting]):
    """Computes settings; what is trained on a task's own demonstrations serves all settings of a seed."""

    name = "agreement"
    setting = _AgreementSetting
    protocol = 2
    slowest_first = (
        "checkpoint", "split", "loss", "lessons", "n_directions", "n_queries", "k", "epochs", "seed", "lr", "task",
    )  # fmt: skip
    shown = ("zsl_accuracy", "icl_accuracy", "ft_accuracy", "sim_aou", "note")
    names_float32: ClassVar = True
    usual: ClassVar = {"k": 16, "n_queries": 24, "lr": 5e-4, "epochs": 10}

    def __init__(self, **options: Any):
        """Options as of a study; nothing is loaded before it is asked for."""
        super().__init__(**options)
        self._shared: Hashable = None
        self._trainings: dict[tuple[str, float], dict[int, FineTuned]] = {}

    def holds(self, setting: _AgreementSetting) -> tuple[int, int]:
        """One model, and every training after each number of epochs."""
        others = len(_LESSONS[setting.lessons]) - 1 + (setting.lessons == "all")
        return 1, (len(setting.kin) + others) * len(setting.stages)

    def parts(self, setting: _AgreementSetting) -> dict[str, Any]:
        """Weights and data, those of the foreign tasks with them."""
        data = self._data_part(setting.task)
        if data and setting.foreign:
            data |= {"foreign": self._data_digests(setting.foreign)}
        return {"weights": self._weights(setting.checkpoint), "data": data}

    def shares(self, setting: _AgreementSetting) -> Hashable:
        """What trainings on the tasks' own demonstrations depend on."""
        return setting.checkpoint, setting.seed, setting.k, setting.lr, setting.epochs, setting.loss, setting.kin

    def compute(self, setting: _AgreementSetting, *, progress: bool) -> Computed:
        """All changes of a setting, and how alike they are; trainings that diverged are missing, and noted."""
        checkpoint, data = self._load(setting.checkpoint), self._load_data(setting.task)
        scoring.require_distinct(checkpoint, data.task)
        queries = _Queries(data.task, comparison.draw_queries(data, setting.comparison))
        given = _lessons_of(setting, self._load_data)
        trained = self._train(checkpoint, setting, given, progress)
        zsl = queries.observed(checkpoint, scoring.encode(checkpoint, ""))
        stream = _every_change(checkpoint, setting, queries, given, trained)
        found = list(tqdm(stream, desc="changes", unit="change", leave=False, disable=not progress))
        labels = data.task.labels_of(queries.examples)
        tables = _tables(setting, zsl, found, labels)
        own = trained["own", setting.lr][setting.epochs]
        if setting.n_directions and own.diverged_at is None:
            tables["directions"] = _directions(zsl, found, setting, own, queries)
        right = zsl.correct.mean()
        one_label = on_checkpoint.one_label_accuracy(data, queries.examples, right, setting.split)
        settings = {"zsl_accuracy": right, "one_label_accuracy": one_label, **_main(tables, setting)}
        ends = {f"{name} at {lr:g}": states[setting.epochs].diverged_at for (name, lr), states in trained.items()}
        lost = "; ".join(f"{name}: step {step}" for name, step in ends.items() if step is not None)
        settings["note"] = f"fine-tuning diverged: {lost}" if lost else ""
        arrays = {"ZSL": zsl.outputs} | {change.name: change.observed.outputs for change in found}
        return Computed({"settings": settings} | tables, self._provenance(checkpoint, data.task), arrays=arrays)

    def _train(
        self, checkpoint: Checkpoint, setting: _AgreementSetting, given: Mapping[str, Lesson], progress: bool
    ) -> dict[tuple[str, float], dict[int, FineTuned]]:
        """Every training of a setting by lesson and rate, and after each number of epochs that is compared.

        Those that settings share are trained in one batch and the others in another: the last digits depend on the
        setting alone, and not on what was computed before it.
        """
        train = partial(trained, checkpoint, setting, answers_only=setting.loss == "answers", progress=progress)
        if self._shared != self.shares(setting):
            of_tasks = {name: controls.own(self._load_data(name), setting.k, setting.seed) for name in setting.kin}
            self._shared, self._trainings = self.shares(setting), {}
            own = {(name, setting.lr): (lesson, setting.lr) for name, lesson in of_tasks.items()}
            self._trainings = train(own)
        source = {"own": setting.task} | {name: name for name in setting.foreign}
        shared = {(name, setting.lr): self._trainings[source[name], setting.lr] for name in given if name in source}
        others = {(name, setting.lr): (given[name], setting.lr) for name in given if name not in source}
        if setting.lessons == "all":
            others["own", _SLOW * setting.lr] = given["own"], _SLOW * setting.lr
        return shared | train(others)


def _directions(
    zsl: Observed, found: Sequence[_Change], setting: _AgreementSetting, own: FineTuned, queries: _Queries
) -> dict[str, list]:
    """How alike random updates, as long as that of the own training weight by weight, are to the own lesson.

    Each direction comes with its opposite.
    """
    changes = [change for change in found if change.lesson == "own"]
    compared = changes[0], max(changes[1:], key=lambda change: (change.lr, change.epochs))
    rows = []
    for i in range(setting.n_directions):
        drawn = own.randomised(1000 * setting.seed + i)
        for sign in (1, -1):
            with drawn.scaled(sign).applied() as moved:
                outputs = queries.observed(moved, scoring.encode(moved, "")).outputs
            for change in compared:
                given = zsl.outputs, change.observed.outputs, outputs
                similarities = {name: getattr(metrics, name)(*given).nanmean().item() for name in _BY_LAYER}
                rows.append({"direction": i, "sign": sign, "a": change.name} | similarities)
    return as_columns(rows)


def _main(tables: Tables, setting: _AgreementSetting) -> dict[str, Any]:
    """Accuracies of ICL and FT and their similarity, as far as FT did not diverge."""
    icl, ft = "ICL own", f"FT own {setting.epochs} {setting.lr:g}"
    accuracy = dict(zip(tables["changes"]["change"], tables["changes"]["accuracy"], strict=True))
    pairs = tables["pairs"] or {name: [] for name in ("a", "b", "sim_aou")}  # none where FT diverged at once
    sim_aou = dict(zip(zip(pairs["a"], pairs["b"], strict=True), pairs["sim_aou"], strict=True))
    return {"icl_accuracy": accuracy[icl], "ft_accuracy": accuracy.get(ft), "sim_aou": sim_aou.get((icl, ft))}
