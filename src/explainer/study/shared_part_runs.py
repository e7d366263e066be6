"""What in-context learning and fine-tuning share: on which lessons it depends, and what it does to the answers.

A *change* is what a lesson does to the attention outputs at the last token of a query, c in context and f by training.
*Both swaps*: contexts of six lessons beside trainings on own and other demonstrations. *Both directions*: parts of c
are put into the zero-shot pass or taken out of the in-context pass, parts of f likewise after fine-tuning. The plan and
the predictions, from before the runs, are in published/PLANS.md.
Source: Dai et al. (2023), section 3; Deutch et al. (2024), section 4 (layer-causal descent).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from explainer.compare import comparison, controls
from explainer.compare.comparison import Cell, Observed, require
from explainer.data import tasks
from explainer.data.files import Tables
from explainer.data.tasks import Example, Task, TaskData
from explainer.models import finetuning, interventions, lockstep, scoring
from explainer.models.checkpoints import Checkpoint
from explainer.models.finetuning import FineTuned
from explainer.study import on_checkpoint
from explainer.study.experiment import Computed
from explainer.study.minimal_pair_runs import agreement, contrast
from explainer.study.on_checkpoint import N_RANDOM, Asked, OnCheckpoint, columns, held, near
from explainer.theory import changes, directions

CONTEXTS: Mapping[str, controls.Demonstrations] = {
    "own": controls.own,
    "reordered": controls.reordered,
    "other": controls.other,
    "shuffled": controls.shuffled,
    "nonsense": controls.nonsense,
}
"""Lessons that a task gives for its contexts; "foreign" are the demonstrations of `tasks.foreign`."""

TRAININGS = ("own", "other")  # lessons of trainings
INTERVENTIONS: Mapping[str, str] = {
    "zsl": "no context",
    "icl": "with the context",
    "ft": "no context, fine-tuned keys and values",
    "ft_other": "the same, fine-tuned on other demonstrations",
    "along_ft": "ZSL, plus the component of the in-context change along the change of FT",
    "across_ft": "ICL, less that component",
    "across_ft_running": "ICL, less that component of the running pass",
    "along_ft_other": "ZSL, plus the component along the change of FT on other demonstrations",
    "across_ft_other": "ICL, less that component",
    "along_ft_of_next": "ZSL, plus the component along the change of FT of another query",
    "across_ft_of_next": "ICL, less that component",
    "along_near": "ZSL, plus the component along a random direction with the cosine that FT has",
    "across_near": "ICL, less that component",
    "along_random": "ZSL, plus a random vector as large as the component along FT",
    "across_random": "ICL, less that vector",
    "ft_along_icl": "ZSL, plus the component of the change of FT along the in-context change",
    "ft_across_icl": "FT, less that component",
    "ft_along_icl_other": "ZSL, plus the component along the in-context change by other demonstrations",
    "ft_across_icl_other": "FT, less that component",
    "ft_along_near": "ZSL, plus the component along a random direction with the cosine that ICL has",
    "ft_across_near": "FT, less that component",
    "ft_along_random": "ZSL, plus a random vector as large as the component along ICL",
    "ft_across_random": "FT, less that vector",
}
"""What is asked of the model; changes are those of the attention outputs of all layers, unless it says otherwise."""

Load = Callable[[str], TaskData]


@dataclass(frozen=True, kw_only=True)
class Setting(on_checkpoint.Setting):
    """The demonstrations and queries that a seed draws for each of some tasks, given as "capitals/plurals".

    FT takes its passes over k demonstrations. With `layer_causal_lr` above 0 it is layer-causal descent at that rate,
    on own demonstrations only, and its update is brought to the length of that of FT. Raises StudyError where a value
    is impossible.
    """

    tasks: str
    k: int
    n_queries: int
    layer_causal_lr: float = 0.0
    least: ClassVar = {"k": 1, "epochs": 1, "n_queries": 2}

    def __post_init__(self):
        """Refuse what cannot be computed before anything is."""
        super().__post_init__()
        rate = float(self.layer_causal_lr)
        object.__setattr__(self, "layer_causal_lr", rate)
        require(0 <= rate < float("inf"), f"layer_causal_lr = {rate:g}: use a positive number, or 0 for descent.")
        require(len(set(self.names)) == len(self.names), f"tasks = {self.tasks!r} names a task twice.")

    @property
    def names(self) -> tuple[str, ...]:
        """The tasks."""
        return tuple(self.tasks.split("/"))

    @property
    def trainings(self) -> tuple[str, ...]:
        """The lessons that are trained on."""
        return TRAININGS[:1] if self.layer_causal_lr else TRAININGS

    @property
    def slug(self) -> str:
        """A readable name."""
        descent = [f"layer-causal{self.layer_causal_lr:g}"] if self.layer_causal_lr else []
        return "-".join(["shared", self.name, *self.names, self.numbers, *descent])


@dataclass(frozen=True, eq=False)
class _Task:
    """One task of a setting: its data, its queries, and the zero-shot pass of these."""

    setting: Setting
    checkpoint: Checkpoint
    data: TaskData
    foreign: TaskData
    queries: list[Example]

    def lesson(self, name: str) -> tuple[Task, list[Example]]:
        if name == "foreign":
            return controls.own(self.foreign, self.setting.k, self.setting.seed)
        return CONTEXTS[name](self.data, self.setting.k, self.setting.seed)

    def context(self, name: str) -> scoring.Prefix:
        return on_checkpoint.context(self.checkpoint, *self.lesson(name))

    def observed(self, checkpoint: Checkpoint, prefix: scoring.Prefix) -> Observed:
        return comparison.observe(checkpoint, prefix, self.data.task, self.queries)

    def prompts(self) -> list[str]:
        return [self.data.task.prompt(query) for query in self.queries]


def run_tasks(checkpoint: Checkpoint, load: Load, setting: Setting, *, progress: bool = False) -> Tables:
    """The tables of one setting, as the laboratory stores them.

    - "cells": means over tasks of the shares of right answers and of SimAOU of ICL and FT, and what is missing;
    - "changes": each context and training of each task, with its share of right answers;
    - "pairs": the similarities of contexts and trainings, and of two of a kind, as means over queries and layers;
    - "layers": SimAOU of the corners of own and other, and of what is special to the demonstrations, by layer;
    - "queries": what each intervention gives for each query, whose id is that of `comparison.query_id`.

    Raises TaskError, CheckpointError or StudyError.
    """
    of_tasks = [_task(checkpoint, load, setting, name) for name in setting.names]
    trained = _train(checkpoint, of_tasks, setting, progress)
    tables: dict[str, list[dict[str, Any]]] = {"changes": [], "pairs": [], "layers": [], "queries": []}
    for task, states in zip(of_tasks, trained, strict=True):
        for table, rows in _of_task(task, states).items():
            tables[table] += [{"task": task.data.task.name} | row for row in rows]
    return {"cells": _cells(tables, trained, setting)} | {name: columns(rows) for name, rows in tables.items() if rows}


def _task(checkpoint: Checkpoint, load: Load, setting: Setting, name: str) -> _Task:
    data = load(name)
    scoring.require_distinct(checkpoint, data.task)
    cell = Cell(checkpoint=setting.checkpoint, task=name, seed=setting.seed, k=setting.k, lr=setting.lr,
                n_queries=setting.n_queries, split="report")  # fmt: skip
    return _Task(setting, checkpoint, data, load(tasks.foreign(data.task)), comparison.draw_queries(data, cell))


def _train(
    checkpoint: Checkpoint, of_tasks: Sequence[_Task], setting: Setting, progress: bool
) -> list[dict[str, FineTuned]]:
    """For each task its trainings that did not diverge, by lesson; descent on all tasks side by side."""
    sequences = [[setting.sequences(checkpoint, *task.lesson(name)) for name in setting.trainings] for task in of_tasks]
    runs = [lockstep.Run(each, setting.lr) for of in sequences for each in of]
    last = len(runs[0].sequences)
    ends = [states[last] for states in lockstep.fine_tune(checkpoint, runs, [last], progress=progress)]
    if setting.layer_causal_lr:
        own = (each for (each,) in sequences)
        ends = [_layer_causal(checkpoint, each, setting, end, progress) for each, end in zip(own, ends, strict=True)]
    per_task = len(setting.trainings)
    of_each = [ends[i : i + per_task] for i in range(0, len(ends), per_task)]
    return [
        {name: end for name, end in zip(setting.trainings, ends, strict=True) if end.diverged_at is None}
        for ends in of_each
    ]


def _layer_causal(
    checkpoint: Checkpoint, sequences: Sequence[Sequence[int]], setting: Setting, descent: FineTuned, progress: bool
) -> FineTuned:
    """Layer-causal descent whose update is as long as that of descent."""
    found = finetuning.fine_tune_layer_causal(checkpoint, sequences, setting.layer_causal_lr, progress=progress)
    if descent.diverged_at is not None or found.diverged_at is not None:
        return descent if found.diverged_at is None else found
    return finetuning.scaled(found, descent.norm / found.norm)


def _of_task(task: _Task, trained: Mapping[str, FineTuned]) -> dict[str, list[dict[str, Any]]]:
    zsl = task.observed(task.checkpoint, scoring.encode(task.checkpoint, ""))
    contexts = {name: task.observed(task.checkpoint, task.context(name)) for name in (*CONTEXTS, "foreign")}
    trainings = {}
    for name, state in trained.items():
        with state.applied() as tuned:
            trainings[name] = task.observed(tuned, scoring.encode(tuned, ""))
    found = {("ICL", name): seen for name, seen in contexts.items()}
    found |= {("FT", name): seen for name, seen in trainings.items()}
    accuracies = {("ZSL", "none"): zsl} | found
    return {
        "changes": [
            {"kind": kind, "lesson": name, "accuracy": seen.correct.mean()} for (kind, name), seen in accuracies.items()
        ],
        "pairs": list(_pairs(zsl, found)),
        "layers": list(_layers(zsl, found)),
        "queries": list(_answers(task, trained)),
    }


# Both swaps.


def _are_compared(a: tuple[str, str], b: tuple[str, str]) -> bool:
    """Every context with every training, the own one with every other of its kind."""
    return a[0] != b[0] or "own" in (a[1], b[1])


def _pairs(zsl: Observed, found: Mapping[tuple[str, str], Observed]) -> Iterator[dict[str, Any]]:
    measures = changes.of_outputs(zsl.outputs, [seen.outputs for seen in found.values()])
    names = list(found)
    for i, a in enumerate(names):
        for j, b in enumerate(names[i + 1 :], i + 1):
            if _are_compared(a, b):
                told = {"a_kind": a[0], "a_lesson": a[1], "b_kind": b[0], "b_lesson": b[1]}
                yield told | {name: values[i, j].nanmean().item() for name, values in measures.items()}


CORNERS = {
    "own": (("ICL", "own"), ("FT", "own")),
    "training_other": (("ICL", "own"), ("FT", "other")),
    "context_other": (("ICL", "other"), ("FT", "own")),
    "both_other": (("ICL", "other"), ("FT", "other")),
    "contexts": (("ICL", "own"), ("ICL", "other")),
    "trainings": (("FT", "own"), ("FT", "other")),
}
"""SimAOU of which two changes a column of "layers" holds."""


def _layers(zsl: Observed, found: Mapping[tuple[str, str], Observed]) -> Iterator[dict[str, Any]]:
    names = list(found)
    sim_aou = changes.of_outputs(zsl.outputs, [seen.outputs for seen in found.values()])["sim_aou"].nanmean(2)
    unknown = torch.full(sim_aou.shape[-1:], torch.nan)
    columns = {
        name: sim_aou[names.index(a), names.index(b)] if a in names and b in names else unknown
        for name, (a, b) in CORNERS.items()
    }
    special = {kind: _special(found, kind, ("own", "other")) for kind in ("ICL", "FT")}
    columns["examples"] = unknown if special["FT"] is None else agreement(special["ICL"], special["FT"])[0]
    again = contrast(found["ICL", "reordered"].outputs, found["ICL", "other"].outputs)
    columns["reordered"] = agreement(special["ICL"], again)[0]
    for layer in range(len(unknown)):
        yield {"layer": layer} | {name: of[layer].item() for name, of in columns.items()}


def _special(found: Mapping[tuple[str, str], Observed], kind: str, lessons: tuple[str, str]) -> Tensor | None:
    """What two lessons of one task do differently."""
    of = [found[kind, name].outputs for name in lessons if (kind, name) in found]
    return contrast(*of) if len(of) == 2 else None


# Both directions.


def _answers(task: _Task, trained: Mapping[str, FineTuned]) -> Iterator[dict[str, Any]]:
    nothing = scoring.encode(task.checkpoint, "")
    asked = Asked.of(task.checkpoint, task.context("own"), task.data.task, task.queries, at=nothing)
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
        yield from rows("ft" if name == "own" else "ft_other", tuned[name].logits)
    if "own" not in f:
        return
    labels = task.data.task.labels or ()
    other = interventions.after_context(task.checkpoint, task.context("other"), task.prompts(), labels).run().attention
    c = {"own": icl - zsl, "other": other - zsl}
    generator = task.setting.generator(5, task.data.task.name)
    for prefix, base, change, towards in (("", icl, c["own"], f), ("ft_", tuned["own"].attention, f["own"], c)):
        for name, parts in _parts(change, towards, generator, "icl" if prefix else "ft"):
            yield from rows(f"{prefix}along_{name}", held(last, *(zsl + part for part in parts)))
            yield from rows(f"{prefix}across_{name}", held(last, *(base - part for part in parts)))
    edits = interventions.attention_without(asked.after.layers, zsl, f["own"])
    yield from rows("across_ft_running", asked.after.run(edits).logits)


def _parts(
    change: Tensor, towards: Mapping[str, Tensor], generator: Generator, of: str
) -> Iterator[tuple[str, list[Tensor]]]:
    """Components of a change along the other change, and what they are compared with, by the names they have."""
    along = directions.component(change, towards["own"])
    yield of, [along]
    if "other" in towards:
        yield f"{of}_other", [directions.component(change, towards["other"])]
    if of == "ft":
        yield "ft_of_next", [directions.component(change, towards["own"].roll(1, 0))]
    yield "near", near(change, towards["own"], generator)
    yield "random", [directions.random_like(along, generator) for _ in range(N_RANDOM)]


def _cells(
    tables: Mapping[str, list[dict[str, Any]]], trained: Sequence[Mapping[str, FineTuned]], setting: Setting
) -> Tables:
    def accuracy(kind: str, lesson: str) -> float:
        of = [row["accuracy"] for row in tables["changes"] if (row["kind"], row["lesson"]) == (kind, lesson)]
        return float(np.mean(of)) if of else float("nan")

    own = [row["sim_aou"] for row in tables["pairs"] if (row["a_lesson"], row["b_lesson"]) == ("own", "own")]
    lost = [
        f"{name} on {lesson}"
        for name, states in zip(setting.names, trained, strict=True)
        for lesson in setting.trainings
        if lesson not in states
    ]
    return {
        "zsl_accuracy": accuracy("ZSL", "none"),
        "icl_accuracy": accuracy("ICL", "own"),
        "ft_accuracy": accuracy("FT", "own"),
        "sim_aou": float(np.mean(own)) if own else float("nan"),
        "note": f"fine-tuning diverged: {', '.join(lost)}" if lost else "",
    }


# The experiment.


class SharedPart(OnCheckpoint[Setting]):
    """Computes what the tasks of each setting give."""

    name = "shared_part"
    setting = Setting
    protocol = 1
    slowest_first = ("checkpoint", "layer_causal_lr", "tasks", "epochs", "k", "n_queries", "lr", "seed")
    shown = ("zsl_accuracy", "icl_accuracy", "ft_accuracy", "sim_aou", "note")

    usual: ClassVar = {"k": 16, "n_queries": 24, "lr": 5e-4, "epochs": 10}

    def holds(self, setting: Setting) -> tuple[int, int]:
        """One model, and the trainings of all tasks."""
        return 1, len(setting.names) * len(setting.trainings)

    def parts(self, setting: Setting) -> dict[str, Any]:
        """Weights and data."""
        names = {*setting.names, *(tasks.foreign(self._load_data(name).task) for name in setting.names)}
        return {"weights": self._weights(setting.checkpoint), "data": self._data_digests(sorted(names))}

    def compute(self, setting: Setting, *, progress: bool) -> Computed:
        """One setting."""
        checkpoint = self._load(setting.checkpoint)
        tables = run_tasks(checkpoint, self._load_data, setting, progress=progress)
        return Computed(tables, self._provenance(checkpoint))
