"""Causal tests: does what a context changes give its answers, when it is put in as a patch, a vector, or a step?

All changes are those at the last token of a query, between passes at the same positions (`models.interventions`). An
answer is right if its first token, that where labels part, is the most probable one of all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from explainer.compare import controls
from explainer.compare.controls import CONTROLS
from explainer.data import tasks
from explainer.data.files import Tables
from explainer.data.tasks import Example, Task, TaskData
from explainer.errors import TaskError
from explainer.models import finetuning, interventions, scoring
from explainer.models.finetuning import FineTuned
from explainer.models.loading import Checkpoint
from explainer.theory import projections
from explainer_lab import lab_lessons, on_checkpoint
from explainer_lab.experiment import Computed
from explainer_lab.lab_lessons import N_RANDOM, PairedPasses
from explainer_lab.on_checkpoint import OnCheckpoint, as_columns, data_digest

MODELS: Mapping[str, controls.Model] = {
    "trained": CONTROLS["none"].model,
    "untrained": CONTROLS["untrained"].model,
    "untrained-layers": CONTROLS["untrained-layers"].model,
}
"""The model that is studied: the checkpoint, or one of the untrained models of `controls`."""


@dataclass(frozen=True, kw_only=True)
class _CausalTestsSetting(on_checkpoint.FineTuningSetting):
    """One checkpoint and task, and a seed; FT takes its passes over `k` demonstrations.

    `n_queries` are reported; `n_selection` others make the task vector and choose its layer. `rate` is that of the
    single steps of gradient descent whose effects are taken for linear. `model` is a name in MODELS. Raises
    ExperimentError where a value is impossible.
    """

    task: str
    k: int
    n_queries: int
    n_selection: int
    rate: float
    model: str = "trained"
    least: ClassVar = {"k": 1, "epochs": 1, "n_queries": 4, "n_selection": 2}
    known: ClassVar = {"model": MODELS}
    rates: ClassVar = ("lr", "rate")

    @property
    def slug(self) -> str:
        """A readable name."""
        unusual = [] if self.model == "trained" else [self.model]
        return "-".join(["causal", self.name, self.task, self.numbers(self.k, self.n_queries), *unusual])


@dataclass(frozen=True, eq=False)
class _Shared:
    """What all tests of a setting share, and what they have found.

    `changes` are those of the attention outputs, (n, layers, d), in context ("icl") and, once they are known, by
    fine-tuning ("ft") and by one small step on all demonstrations.
    """

    setting: _CausalTestsSetting
    checkpoint: Checkpoint
    own: TaskData
    foreign: TaskData
    asked: PairedPasses
    changes: dict[str, Tensor]
    outcomes: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    layers: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def note(self, intervention: str, logits: Float[Tensor, "times*n vocab"]) -> None:
        """Keep what came out, as a mean over the times where the queries were passed several times."""
        self.outcomes[intervention] = {name: its.mean(0) for name, its in self.asked.outcome(logits).items()}


def _ask(
    checkpoint: Checkpoint, context: TaskData, task: TaskData, queries: Sequence[Example], setting: _CausalTestsSetting
) -> PairedPasses:
    """Queries of a task after the setting's demonstrations of another, or of the same."""
    prefix = lab_lessons.context(checkpoint, *controls.own(context, setting.k, setting.seed))
    return PairedPasses.of(checkpoint, prefix, task.task, queries)


# Fine-tuning.


def _test_finetuning(shared: _Shared, progress: bool) -> None:
    """The answers and the change of FT, which the steps below are to explain, too."""
    asked, setting = shared.asked, shared.setting
    sequences = setting.sequences(shared.checkpoint, *controls.own(shared.own, setting.k, setting.seed))
    finetuned = finetuning.fine_tune(shared.checkpoint, sequences, setting.lr, progress=progress)
    shared.summary.update(losses=finetuned.losses, loss_after=finetuned.loss_after, diverged_at=finetuned.diverged_at)
    if finetuned.diverged_at is not None:
        shared.notes.append(f"fine-tuning diverged at step {finetuned.diverged_at}")
        return
    with finetuned.applied():
        tuned = asked.without.run()
    shared.note("ft", tuned.logits)
    shared.changes["ft"] = tuned.attention - asked.zsl.attention
    shared.layers.update(icl_norm=asked.change.norm(dim=-1).mean(0), ft_norm=shared.changes["ft"].norm(dim=-1).mean(0))


# The context as a change of weights.


def _test_patches(shared: _Shared) -> None:
    """Patches of the queries' own context, and of another task's, each for the query itself and for others."""
    asked, setting = shared.asked, shared.setting
    own = interventions.context_weight_patches(asked.after, asked.without)
    away = _ask(shared.checkpoint, shared.foreign, shared.own, asked.queries, setting)
    foreign = interventions.context_weight_patches(away.after, away.without)
    n = len(asked.queries)
    itself = torch.eye(n, dtype=asked.icl.logits.dtype, device=asked.icl.logits.device)
    another, mean = itself.roll(1, 1), (1 - itself) / (n - 1)

    def logits(patches: list, weights: Tensor) -> Tensor:
        return asked.without.run(interventions.with_weight_patches(asked.without.layers, patches, weights)).logits

    exact, moved = logits(own, itself), logits(own, another)
    shared.note("patch_own", exact)
    shared.note("patch_other", moved)
    shared.note("patch_mean", logits(own, mean))
    shared.note("patch_foreign", logits(foreign, another))
    shared.note("patch_foreign_mean", logits(foreign, mean))
    shared.summary.update(
        patch_error=(exact - asked.icl.logits).abs().max(),
        patch_other_copied=(moved.argmax(-1) == asked.answers.roll(-1)).float().mean(),
    )


# Task vectors.


def _test_task_vectors(shared: _Shared, selection: list[Example]) -> None:
    """The mean change of the residual stream over the selection, at the layer that is best there."""
    setting = shared.setting
    own = _ask(shared.checkpoint, shared.own, shared.own, selection, setting)
    queries = tasks.queries(shared.foreign, setting.n_selection, setting.seed)
    foreign = _ask(shared.checkpoint, shared.foreign, shared.foreign, queries, setting)
    found = own.by_layer(lab_lessons.leave_one_out_mean(own.stream_change))
    best = lab_lessons.best_layer(found)
    vectors = {"": own.stream_change.mean(0)[best], "_foreign": foreign.stream_change.mean(0)[best]}
    generator = setting.generator(2, setting.task)
    random = [projections.random_like(vectors[""], generator) for _ in range(N_RANDOM)]
    added = {name: [vector] for name, vector in vectors.items()} | {"_random": random}
    for name, each in added.items():
        shared.note(f"task_vector{name}", shared.asked.with_added(best, *each))
    shared.summary["task_vector_layer"] = best
    shared.layers.update(task_vector_accuracy=found["correct"], task_vector_log_prob=found["log_prob"])


# The best-matched step.


def _test_steps(shared: _Shared) -> None:
    """Each change as a combination of the effects of single steps, one for each demonstration.

    The rates are found on one half of the queries and used on the other, and the other way round.
    """
    setting = shared.setting
    demonstrations = {"own": controls.own(shared.own, setting.k, setting.seed)}
    try:
        demonstrations["other"] = controls.LESSONS["other"](shared.own, setting.k, setting.seed)
    except TaskError as error:
        shared.notes.append(f"no other demonstrations: {error}")
    demonstrations["foreign"] = controls.own(shared.foreign, setting.k, setting.seed)
    effects = _effects(shared, demonstrations)
    sequences = finetuning.training_ids(shared.checkpoint, *demonstrations["own"])
    descended = finetuning.fine_tune(shared.checkpoint, sequences, setting.rate)
    shared.changes["descent"] = _effect(shared, descended) * setting.rate
    for of, change in shared.changes.items():
        fits = {kind: projections.cross_fitted(change, effect) for kind, effect in effects.items()}
        fits["mean"] = _mean_of_other_half(change)
        for kind, fitted in fits.items():
            shared.layers[f"r2_{of}_{kind}"] = projections.sums_of_squares(change, fitted).explained
            if of == "icl":
                logits = shared.asked.last.logits_with_outputs(shared.asked.zsl.attention + fitted)
                shared.note(f"step_{kind}", logits)
    shared.layers["rate"] = projections.least_squares_rates(effects["equal"], shared.changes["icl"])[:, 0]
    shared.summary.update({name: v.mean() for name, v in shared.layers.items() if name.startswith("r2_")})


def _effects(
    shared: _Shared, demonstrations: Mapping[str, tuple[Task, list[Example]]]
) -> dict[str, Float[Tensor, "n k layers d"]]:
    """What single steps do, one for each demonstration; "random": steps of the own sizes; "equal": the sum of own."""
    effects = {kind: [] for kind in (*demonstrations, "random")}
    generator = shared.setting.generator(3, shared.setting.task)
    seeds = torch.randint(2**31, (shared.setting.k,), generator=generator).tolist()
    for kind, (task, examples) in demonstrations.items():
        sequences = finetuning.training_ids(shared.checkpoint, task, examples)
        runs = [finetuning.Run([sequence], shared.setting.rate) for sequence in sequences]  # one step on each by itself
        steps = finetuning.fine_tune_runs(shared.checkpoint, runs, after=[1])
        for after, seed in zip(steps, seeds, strict=True):
            effects[kind].append(_effect(shared, after[1]))
            if kind == "own":
                effects["random"].append(_effect(shared, after[1].randomised(seed)))
    stacked = {kind: torch.stack(each, 1) for kind, each in effects.items()}
    return stacked | {"equal": stacked["own"].sum(1, keepdim=True)}


def _effect(shared: _Shared, step: FineTuned) -> Float[Tensor, "n layers d"]:
    """What a step does to the attention outputs, for a rate of 1: (a(W + dW) - a(W)) / rate."""
    with step.applied():
        return (shared.asked.without.run().attention - shared.asked.zsl.attention) / step.lr


def _mean_of_other_half(change: Float[Tensor, "n layers d"]) -> Tensor:
    fitted = torch.empty_like(change)
    for fit, look in projections.cross_fitting_halves(len(change)):
        fitted[look] = change[fit].mean(0)
    return fitted


# The experiment.


class CausalTests(OnCheckpoint[_CausalTestsSetting]):
    """Computes the tests of each setting."""

    name = "causal_tests"
    setting = _CausalTestsSetting
    protocol = 2
    slowest_first = (
        "checkpoint", "model", "task", "k", "n_queries", "n_selection", "lr", "epochs", "rate", "seed",
    )  # fmt: skip
    shown = ("zsl_accuracy", "icl_accuracy", "ft_accuracy", "patch_error", "task_vector_layer", "r2_icl_own", "note")
    usual: ClassVar = {"k": 8, "n_queries": 24, "n_selection": 16, "lr": 3e-4, "epochs": 10, "rate": 1e-6}

    def holds(self, setting: _CausalTestsSetting) -> tuple[int, int]:
        """A second model where it is not the trained one, and a step for each demonstration."""
        return 1 + (setting.model != "trained"), setting.k

    def parts(self, setting: _CausalTestsSetting) -> dict[str, Any]:
        """Weights and data."""
        own, foreign = map(data_digest, self._load_pair(setting.task))
        return {"weights": self._weights(setting.checkpoint), "data": {"own": own, "foreign": foreign}}

    def compute(self, setting: _CausalTestsSetting, *, progress: bool) -> Computed:
        """One setting; published/README.md says what the tables have."""
        checkpoint, (own, foreign) = self._load(setting.checkpoint), self._load_pair(setting.task)
        scoring.require_distinct(checkpoint, own.task)
        studied = MODELS[setting.model](checkpoint, setting.seed)
        drawn = tasks.queries(own, setting.n_queries + setting.n_selection, setting.seed)
        reported, selection = drawn[: setting.n_queries], drawn[setting.n_queries :]
        asked = _ask(studied, own, own, reported, setting)
        shared = _Shared(setting, studied, own, foreign, asked, {"icl": asked.change})
        shared.note("zsl", asked.zsl.logits)
        shared.note("icl", asked.icl.logits)
        _test_finetuning(shared, progress)
        _test_patches(shared)
        _test_task_vectors(shared, selection)
        _test_steps(shared)
        outcomes, n_layers = shared.outcomes, len(asked.after.layers)
        right = {name: outcomes[name]["correct"].mean() for name in ("zsl", "icl", "ft") if name in outcomes}
        tables: Tables = {
            "settings": {"n_layers": n_layers, "context_tokens": len(asked.context)}
            | {f"{name}_accuracy": share for name, share in right.items()}
            | shared.summary
            | {"note": "; ".join(shared.notes)},
            "queries": as_columns([row for name, means in outcomes.items() for row in asked.rows(name, means)]),
            "layers": {"layer": list(range(n_layers)), **shared.layers},
        }
        return Computed(tables, self._provenance(checkpoint, own.task))
