"""What in-context learning and fine-tuning share: on which lessons it depends, and what it does to the answers.

A *change* is what a lesson does to the attention outputs at the last token of a query, c in context and f by training.
*Both swaps*: contexts of six lessons beside trainings on own and other demonstrations. *Both directions*: parts of c
are put into the zero-shot pass or taken out of the in-context pass, parts of f likewise after fine-tuning. The part of
c along f is f with another length, so that parts that cannot carry the lesson stand beside it. The plan and the
predictions, from before the runs, are in published/PLANS.md.
Source: Dai et al. (2023), section 3; Deutch et al. (2024), section 4 (layer-causal descent).
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from explainer.compare import comparison, controls
from explainer.compare.comparison import ComparisonSetting
from explainer.compare.observations import Observed, observe
from explainer.data import tasks
from explainer.data.files import Tables
from explainer.data.tasks import Example, Task, TaskData
from explainer.errors import require
from explainer.models import finetuning, interventions, scoring
from explainer.models.finetuning import FineTuned
from explainer.models.loading import Checkpoint
from explainer.theory import metrics, projections
from explainer_lab import lab_lessons, on_checkpoint
from explainer_lab.experiment import Computed
from explainer_lab.lab_lessons import N_RANDOM, PairedPasses, matched_random
from explainer_lab.minimal_pairs import contrast, contrast_agreement
from explainer_lab.on_checkpoint import OnCheckpoint, as_columns

CONTEXTS: Mapping[str, controls.Demonstrations] = {
    name: controls.LESSONS[name] for name in ("own", "reordered", "other", "shuffled", "nonsense")
}
"""Lessons that a task gives; beside them stand the demonstrations of the other tasks of the setting, by name."""

_TRAININGS: Mapping[str, tuple[str, ...]] = {"all": tuple(CONTEXTS), "few": ("own", "other"), "own": ("own",)}

N_SELECTION = 16  # other queries, whose mean change is the direction that is taken out


@dataclass(frozen=True, kw_only=True)
class _SharedPartSetting(on_checkpoint.FineTuningSetting):
    """The demonstrations and queries that a seed draws for each of some tasks, given as "capitals/plurals".

    The other tasks of the setting stand for another task; beside a single one that is `tasks.unrelated_task`.
    FT takes its passes over k demonstrations. With `layer_causal_lr` above 0 it is layer-causal descent at that rate;
    with `as_long` 1 its update is brought to the length of that of FT. With `lessons` "few" trainings are on own and
    other demonstrations only, and with "own" on own ones, enough to choose a rate, and nothing is put in or taken out.
    Raises ExperimentError where a value is impossible.
    """

    tasks: str
    k: int
    n_queries: int
    layer_causal_lr: float = 0.0
    as_long: int = 1
    lessons: str = "all"
    least: ClassVar = {"k": 1, "epochs": 1, "n_queries": 2}
    known: ClassVar = {"lessons": _TRAININGS}

    def __post_init__(self):
        """Refuse what cannot be computed before anything is."""
        super().__post_init__()
        rate = self.layer_causal_lr
        require(0 <= rate < float("inf"), f"layer_causal_lr = {rate:g}: use a positive number, or 0 for descent.")
        require(len(set(self.names)) == len(self.names), f"tasks = {self.tasks!r} names a task twice.")
        require(self.as_long in (0, 1), f"as_long = {self.as_long}: use 1 for yes, or 0 for no.")

    @property
    def names(self) -> tuple[str, ...]:
        """The tasks."""
        return tuple(self.tasks.split("/"))

    @property
    def trainings(self) -> tuple[str, ...]:
        """The lessons of each task that are trained on."""
        return _TRAININGS[self.lessons]

    @property
    def slug(self) -> str:
        """A readable name."""
        descent = [f"layer-causal{self.layer_causal_lr:g}"] if self.layer_causal_lr else []
        descent += ["whole"] * (not self.as_long) + [self.lessons] * (self.lessons != "all")
        return "-".join(["shared", self.name, *self.names, self.numbers(self.k, self.n_queries), *descent])


@dataclass(frozen=True, eq=False)
class _Task:
    """One task of a setting: its data, those of the other tasks by name, and its queries."""

    setting: _SharedPartSetting
    checkpoint: Checkpoint
    data: TaskData
    foreign: Mapping[str, TaskData]
    comparison: ComparisonSetting
    queries: list[Example]

    def lesson(self, name: str) -> tuple[Task, list[Example]]:
        if name in self.foreign:
            return controls.own(self.foreign[name], self.setting.k, self.setting.seed)
        return CONTEXTS[name](self.data, self.setting.k, self.setting.seed)

    def context(self, name: str) -> scoring.Prefix:
        return lab_lessons.context(self.checkpoint, *self.lesson(name))

    def observed(self, checkpoint: Checkpoint, prefix: scoring.Prefix) -> Observed:
        return observe(checkpoint, prefix, self.data.task, self.queries)

    def prompts(self) -> list[str]:
        return [self.data.task.prompt(query) for query in self.queries]


def _task(checkpoint: Checkpoint, load: Callable[[str], TaskData], setting: _SharedPartSetting, name: str) -> _Task:
    data = load(name)
    scoring.require_distinct(checkpoint, data.task)
    compared = ComparisonSetting(
        checkpoint=setting.checkpoint, task=name, seed=setting.seed, k=setting.k, lr=setting.lr,
        n_queries=setting.n_queries, split="report",
    )  # fmt: skip
    foreign = {other: load(other) for other in _others(setting, data.task)}
    return _Task(setting, checkpoint, data, foreign, compared, comparison.draw_queries(data, compared))


def _others(setting: _SharedPartSetting, task: Task) -> list[str]:
    """The names of the tasks that stand for another one."""
    return [name for name in setting.names if name != task.name] or [tasks.unrelated_task(task, short=True)]


def _train(
    checkpoint: Checkpoint, of_tasks: Sequence[_Task], setting: _SharedPartSetting, progress: bool
) -> list[dict[str, FineTuned]]:
    """For each task its trainings that did not diverge, by lesson, and those of the other tasks; all side by side."""
    given = {(task.data.task.name, name): task.lesson(name) for task in of_tasks for name in setting.trainings}
    ends: dict[tuple[str, str], FineTuned] = {}
    if setting.as_long or not setting.layer_causal_lr:
        at_rate = {key: (lesson, setting.lr) for key, lesson in given.items()}
        states = lab_lessons.trained(checkpoint, setting, at_rate, stages=[setting.epochs], progress=progress)
        ends = {key: its[setting.epochs] for key, its in states.items()}
    if setting.layer_causal_lr:
        for key, lesson in given.items():
            sequences, lr = setting.sequences(checkpoint, *lesson), setting.layer_causal_lr
            found = finetuning.fine_tune(checkpoint, sequences, lr, layer_causal=True, progress=progress)
            if key not in ends:
                ends[key] = found
            elif ends[key].diverged_at is None:
                ends[key] = controls.as_long(found, ends[key])
    trained = []
    for task in of_tasks:
        its = {name: ends[task.data.task.name, name] for name in setting.trainings}
        its |= {name: ends[name, "own"] for name in task.foreign if (name, "own") in ends}
        trained.append({name: end for name, end in its.items() if end.diverged_at is None})
    return trained


def _of_task(task: _Task, trained: Mapping[str, FineTuned]) -> dict[str, list[dict[str, Any]]]:
    zsl = task.observed(task.checkpoint, scoring.encode(task.checkpoint, ""))
    lessons = (*CONTEXTS, *task.foreign)
    found = {("ICL", name): task.observed(task.checkpoint, task.context(name)) for name in lessons}
    for name, state in trained.items():
        with state.applied() as tuned:
            found["FT", name] = task.observed(tuned, scoring.encode(tuned, ""))
    accuracies = {("ZSL", "none"): zsl} | found
    return {
        "changes": [
            {"kind": kind, "lesson": name, "accuracy": seen.correct.mean()} for (kind, name), seen in accuracies.items()
        ],
        "pairs": list(_pairs(zsl, found)),
        "layers": list(by_layer(zsl, found, list(task.foreign))),
        "link": list(_link(task, zsl, found)),
        "queries": [] if task.setting.lessons == "own" else list(_answers(task, trained)),
    }


# Both swaps.


def _pairs(zsl: Observed, found: Mapping[tuple[str, str], Observed]) -> Iterator[dict[str, Any]]:
    """The similarities of every context with every training, and of the own one with every other of its kind."""
    measures = metrics.pairwise_outputs(zsl.outputs, [seen.outputs for seen in found.values()])
    names = list(found)
    for i, a in enumerate(names):
        for j, b in enumerate(names[i + 1 :], i + 1):
            if a[0] != b[0] or "own" in (a[1], b[1]):
                told = {"a_kind": a[0], "a_lesson": a[1], "b_kind": b[0], "b_lesson": b[1]}
                yield told | {name: values[i, j].nanmean().item() for name, values in measures.items()}


FOREIGN = "foreign"
"""Stands for every other task of the setting, of which the mean is taken."""

CORNERS = {
    "own": (("ICL", "own"), ("FT", "own")),
    "both_other": (("ICL", "other"), ("FT", "other")),
    "contexts": (("ICL", "own"), ("ICL", "other")),
    "trainings": (("FT", "own"), ("FT", "other")),
    "contexts_reordered": (("ICL", "own"), ("ICL", "reordered")),
    "trainings_reordered": (("FT", "own"), ("FT", "reordered")),
}
CORNERS |= {f"training_{name}": (("ICL", "own"), ("FT", name)) for name in (*CONTEXTS, FOREIGN) if name != "own"}
CORNERS |= {f"context_{name}": (("ICL", name), ("FT", "own")) for name in (*CONTEXTS, FOREIGN) if name != "own"}
"""SimAOU of which two changes a column of "layers" holds, and the noise value of these in that with _noise."""


def by_layer(
    zsl: Observed, found: Mapping[tuple[str, str], Observed], foreign: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """SimAOU of CORNERS in each layer, and what is special to the demonstrations, of changes by (kind, lesson)."""
    names = list(found)
    measured = metrics.pairwise_outputs(zsl.outputs, [seen.outputs for seen in found.values()])
    unknown = torch.full(zsl.outputs.shape[1:2], torch.nan)

    def mean(measure: str, corner: Sequence[tuple[str, str]]) -> Tensor:
        """Over queries, and over other tasks; NaN where a change is missing."""
        sides = [[(kind, name) for name in (foreign if lesson == FOREIGN else (lesson,))] for kind, lesson in corner]
        pairs = [(names.index(a), names.index(b)) for a, b in product(*sides) if a in names and b in names]
        return torch.stack([measured[measure][pair].nanmean(0) for pair in pairs]).mean(0) if pairs else unknown

    columns = {name: mean("sim_aou", corner) for name, corner in CORNERS.items()}
    columns |= {f"{name}_noise": mean("sim_aou_noise", corner) for name, corner in CORNERS.items()}
    special = contrast(found["ICL", "own"].outputs, found["ICL", "other"].outputs)
    columns["examples"] = unknown
    if ("FT", "own") in found and ("FT", "other") in found:
        of_training = contrast(found["FT", "own"].outputs, found["FT", "other"].outputs)
        columns["examples"] = contrast_agreement(special, of_training)[0]
    again = contrast(found["ICL", "reordered"].outputs, found["ICL", "other"].outputs)
    columns["reordered"] = contrast_agreement(special, again)[0]
    for layer in range(len(unknown)):
        yield {"layer": layer} | {name: of[layer].item() for name, of in columns.items()}


def _link(task: _Task, zsl: Observed, found: Mapping[tuple[str, str], Observed]) -> Iterator[dict[str, Any]]:
    """SimAOU of what is left of all changes without the direction of the context for other queries, and without others.

    The other directions are random, with the cosine that this one has with the change by the own context.
    """
    others = comparison.draw_queries(task.data, replace(task.comparison, split="selection", n_queries=N_SELECTION))
    passes = (
        observe(task.checkpoint, prefix, task.data.task, others).outputs
        for prefix in (task.context("own"), scoring.encode(task.checkpoint, ""))
    )
    vector = operator.sub(*passes).mean(0).expand_as(zsl.outputs)
    own, generator = found["ICL", "own"].outputs - zsl.outputs, task.setting.generator(6, task.data.task.name)
    random = [projections.matched_random_direction(own, vector, generator) for _ in range(N_RANDOM)]
    for without, chosen in {"vector": [vector], "random": random}.items():
        each = [list(by_layer(zsl, _without(zsl, found, one), list(task.foreign))) for one in chosen]
        for rows in zip(*each, strict=True):
            means = {name: float(np.mean([row[name] for row in rows])) for name in CORNERS}
            yield {"without": without, "layer": rows[0]["layer"]} | means


def _without(
    zsl: Observed, found: Mapping[tuple[str, str], Observed], direction: Float[Tensor, "n layers d"]
) -> dict[tuple[str, str], Observed]:
    """The changes less their components along a direction."""
    return {
        name: replace(seen, outputs=seen.outputs - projections.component(seen.outputs - zsl.outputs, direction))
        for name, seen in found.items()
    }


# Both directions.


def _answers(task: _Task, trained: Mapping[str, FineTuned]) -> Iterator[dict[str, Any]]:
    nothing = scoring.encode(task.checkpoint, "")
    asked = PairedPasses.of(task.checkpoint, task.context("own"), task.data.task, task.queries, at=nothing)
    zsl, icl = asked.zsl.attention, asked.icl.attention

    def rows(intervention: str, logits: Float[Tensor, "times*n vocab"]) -> list[dict[str, Any]]:
        return asked.rows(intervention, {name: its.mean(0) for name, its in asked.outcome(logits).items()})

    yield from rows("zsl", asked.zsl.logits)
    yield from rows("icl", asked.icl.logits)
    last = asked.last
    f, tuned = {}, {}
    for name, state in trained.items():
        with state.applied():
            tuned[name] = asked.without.run()
        f[name] = tuned[name].attention - zsl
        if name in ("own", "other"):
            yield from rows("ft" if name == "own" else "ft_other", tuned[name].logits)
    if "own" not in f:
        return
    labels = task.data.task.labels or ()
    other = interventions.after_context(task.checkpoint, task.context("other"), task.prompts(), labels).run().attention
    c = {"own": icl - zsl, "other": other - zsl}
    generator = task.setting.generator(5, task.data.task.name)
    for prefix, base, change, towards in (("", icl, c["own"], f), ("ft_", tuned["own"].attention, f["own"], c)):
        for name, parts in _parts(change, towards, generator, "icl" if prefix else "ft"):
            yield from rows(f"{prefix}along_{name}", last.logits_with_outputs(*(zsl + part for part in parts)))
            yield from rows(f"{prefix}across_{name}", last.logits_with_outputs(*(base - part for part in parts)))
    for name, parts in _that_cannot_carry(c["own"], f, list(task.foreign), generator):
        yield from rows(f"along_{name}", last.logits_with_outputs(*(zsl + part for part in parts)))
    edits = []
    for layer, z, u in zip(asked.after.layers, zsl.unbind(1), f["own"].unbind(1), strict=True):
        without = lambda output, z=z, u=u: output - projections.component(output - z, u)  # noqa: E731
        edits.append(interventions.at_last(layer.output, without))
    yield from rows("across_ft_running", asked.after.run(edits).logits)


def _that_cannot_carry(
    c: Tensor, f: Mapping[str, Tensor], foreign: Sequence[str], generator: Generator
) -> Iterator[tuple[str, list[Tensor]]]:
    """The own training at a length that is another query's, and components along trainings on another lesson."""
    yield "ft_factor_of_next", [projections.coefficient(c, f["own"]).roll(1, 0) * f["own"]]
    for lesson, names in {"shuffled": ["shuffled"], "nonsense": ["nonsense"], FOREIGN: foreign}.items():
        if of := [f[name] for name in names if name in f]:
            yield f"ft_{lesson}", [projections.component(c, one) for one in of]
            yield f"near_{lesson}", [part for one in of for part in matched_random(c, one, generator)]


def _parts(
    change: Tensor, towards: Mapping[str, Tensor], generator: Generator, of: str
) -> Iterator[tuple[str, list[Tensor]]]:
    """Components of a change along the other change, and what they are compared with, by the names they have."""
    along = projections.component(change, towards["own"])
    yield of, [along]
    if "other" in towards:
        yield f"{of}_other", [projections.component(change, towards["other"])]
    if of == "ft":
        yield "ft_of_next", [projections.component(change, towards["own"].roll(1, 0))]
    yield "near", matched_random(change, towards["own"], generator)
    yield "random", [projections.random_like(along, generator) for _ in range(N_RANDOM)]


def _summary(
    tables: Mapping[str, list[dict[str, Any]]], trained: Sequence[Mapping[str, FineTuned]], of_tasks: Sequence[_Task]
) -> dict[str, Any]:
    def accuracy(kind: str, lesson: str) -> float:
        of = [row["accuracy"] for row in tables["changes"] if (row["kind"], row["lesson"]) == (kind, lesson)]
        return float(np.mean(of)) if of else float("nan")

    own = [row["sim_aou"] for row in tables["pairs"] if (row["a_lesson"], row["b_lesson"]) == ("own", "own")]
    zsl = {row["task"]: row["accuracy"] for row in tables["changes"] if row["kind"] == "ZSL"}
    one_label = [
        on_checkpoint.one_label_accuracy(of.data, of.queries, zsl[of.data.task.name], of.comparison.split)
        for of in of_tasks
    ]
    lost = [
        f"{of.data.task.name} on {lesson}"
        for of, states in zip(of_tasks, trained, strict=True)
        for lesson in of.setting.trainings
        if lesson not in states
    ]
    return {
        "zsl_accuracy": accuracy("ZSL", "none"),
        "one_label_accuracy": float(np.mean(one_label)),
        "icl_accuracy": accuracy("ICL", "own"),
        "ft_accuracy": accuracy("FT", "own"),
        "sim_aou": float(np.mean(own)) if own else float("nan"),
        "note": f"fine-tuning diverged: {', '.join(lost)}" if lost else "",
    }


# The experiment.


class SharedPart(OnCheckpoint[_SharedPartSetting]):
    """Computes what the tasks of each setting give."""

    name = "shared_part"
    setting = _SharedPartSetting
    protocol = 2
    slowest_first = (
        "checkpoint", "layer_causal_lr", "as_long", "lessons", "tasks", "epochs", "k", "n_queries", "lr", "seed",
    )  # fmt: skip
    shown = ("zsl_accuracy", "icl_accuracy", "ft_accuracy", "sim_aou", "note")
    usual: ClassVar = {"k": 16, "n_queries": 24, "lr": 5e-4, "epochs": 10}

    def holds(self, setting: _SharedPartSetting) -> tuple[int, int]:
        """One model, and the trainings of all tasks."""
        return 1, len(setting.names) * len(setting.trainings)

    def parts(self, setting: _SharedPartSetting) -> dict[str, Any]:
        """Weights and data."""
        names = {*setting.names, *_others(setting, self._load_data(setting.names[0]).task)}
        return {"weights": self._weights(setting.checkpoint), "data": self._data_digests(sorted(names))}

    def compute(self, setting: _SharedPartSetting, *, progress: bool) -> Computed:
        """One setting; published/README.md says what the tables have."""
        checkpoint = self._load(setting.checkpoint)
        of_tasks = [_task(checkpoint, self._load_data, setting, name) for name in setting.names]
        trained = _train(checkpoint, of_tasks, setting, progress)
        tables: dict[str, list[dict[str, Any]]] = {}
        for task, states in zip(of_tasks, trained, strict=True):
            for table, rows in _of_task(task, states).items():
                tables.setdefault(table, []).extend({"task": task.data.task.name} | row for row in rows)
        found: Tables = {name: as_columns(rows) for name, rows in tables.items() if rows}
        return Computed({"settings": _summary(tables, trained, of_tasks)} | found, self._provenance(checkpoint))
