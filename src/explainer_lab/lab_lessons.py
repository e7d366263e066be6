"""What lessons do to the answers: queries after a context and without it, and with a part of the change put in."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from explainer.compare.comparison import query_id
from explainer.data.tasks import Example, Task
from explainer.models import finetuning, interventions, scoring
from explainer.models.finetuning import FineTuned
from explainer.models.interventions import Pass, States
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Prefix
from explainer.theory import projections
from explainer_lab.on_checkpoint import FineTuningSetting

N_RANDOM = 5  # random directions beside a change; what is stored of them is the mean


Lesson = tuple[Task, list[Example]]
"""Demonstrations, and the task in whose template they are written."""

Name = TypeVar("Name", bound=Hashable)


def context(checkpoint: Checkpoint, task: Task, examples: Sequence[Example]) -> Prefix:
    """The prefix of a task's demonstrations."""
    return scoring.encode(checkpoint, scoring.context_ids(checkpoint, task, examples)[0])


def trained(
    checkpoint: Checkpoint,
    setting: FineTuningSetting,
    lessons: Mapping[Name, tuple[Lesson, float]],
    *,
    stages: Sequence[int] | None = None,
    answers_only: bool = False,
    progress: bool = False,
) -> dict[Name, dict[int, FineTuned]]:
    """Train on lessons at their rates, those of one length side by side.

    Returns the states after each number of epochs in `stages`, those of the setting if none are given. The loss is that
    of the whole text, or of the answers only.
    """
    found, stages = {}, stages or setting.stages
    for k in sorted({len(examples) for (_, examples), _ in lessons.values()}):
        names, runs = [], []
        for name, (lesson, lr) in lessons.items():
            if len(lesson[1]) == k:
                answers = finetuning.answer_lengths(checkpoint, *lesson) if answers_only else None
                names.append(name)
                runs.append(finetuning.Run(setting.sequences(checkpoint, *lesson), lr, answers))
        after = finetuning.fine_tune_runs(checkpoint, runs, [k * n for n in stages], progress=progress)
        found |= {name: {n: its[k * n] for n in stages} for name, its in zip(names, after, strict=True)}
    return {name: found[name] for name in lessons}


@dataclass(frozen=True, eq=False)
class PairedPasses:
    """Queries of a task after a context and without it: both passes, what each computes, the answers' first tokens."""

    queries: Sequence[Example]
    context: Prefix
    after: Pass
    without: Pass
    icl: States
    zsl: States
    answers: Tensor

    @classmethod
    def of(
        cls, checkpoint: Checkpoint, context: Prefix, task: Task, queries: Sequence[Example], at: Prefix | None = None
    ) -> "PairedPasses":
        """Pass the queries after a context, and without it at the positions that they have after it, or after `at`."""
        prompts, labels = [task.prompt(query) for query in queries], task.labels or ()
        after = interventions.after_context(checkpoint, context, prompts, labels)
        without = interventions.without_context(checkpoint, context if at is None else at, prompts, labels)
        first = torch.tensor(scoring.distinguishing_tokens(checkpoint, task, queries), device=checkpoint.device)
        return cls(queries, context, after, without, after.run(), without.run(), first)

    @property
    def change(self) -> Float[Tensor, "n layers d"]:
        """What the context adds to the attention outputs."""
        return self.icl.attention - self.zsl.attention

    @property
    def stream_change(self) -> Float[Tensor, "n layers d"]:
        """What the context adds to the residual stream after every block."""
        return self.icl.stream - self.zsl.stream

    def with_added(self, layer: int, *vectors: Float[Tensor, " d"]) -> Float[Tensor, "times*n vocab"]:
        """Logits without context when a vector is added after a block, one after the other."""
        times = self.last.repeated(len(vectors))
        added = torch.stack(vectors).repeat_interleave(len(self.queries), 0)
        return times.run([interventions.at_last(times.layers[layer].block, added.add)]).logits

    def by_layer(self, vectors: Float[Tensor, "n layers d"]) -> dict[str, list[float]]:
        """Mean `outcome` without context when the vector of a layer is added after its block, for each layer."""
        last = self.last.repeated(vectors.shape[1])
        edits = []
        for number, layer in enumerate(last.layers):
            added = torch.zeros_like(vectors).transpose(0, 1)
            added[number] = vectors[:, number]
            edits.append(interventions.at_last(layer.block, added.flatten(0, 1).add))
        return {name: its.mean(1).tolist() for name, its in self.outcome(last.run(edits).logits).items()}

    @cached_property
    def last(self) -> Pass:
        """The pass of the last tokens without context, with the weights at its first use."""
        return self.without.at_last()

    def outcome(self, logits: Float[Tensor, "times*n vocab"]) -> dict[str, Float[Tensor, "times n"]]:
        """For each time and query whether the answer is right or that of ICL, and log p of the right one."""
        n = len(self.answers)
        times = len(logits) // n
        right, icl = self.answers.repeat(times), self.icl.logits.argmax(-1).repeat(times)
        best, log_p = logits.argmax(-1), logits.float().log_softmax(-1)
        found = {"correct": (best == right).float(), "agrees": (best == icl).float()}
        found["log_prob"] = log_p.gather(1, right[:, None])[:, 0]
        return {name: values.unflatten(0, (times, n)) for name, values in found.items()}

    def rows(self, intervention: str, means: Mapping[str, Float[Tensor, " n"]]) -> list[dict[str, Any]]:
        """A row of a table for each query, with its means of `outcome` over times."""
        return [
            {"intervention": intervention, "query": i, "query_id": query_id(query)}
            | {name: values[i].item() for name, values in means.items()}
            for i, query in enumerate(self.queries)
        ]


def leave_one_out_mean(change: Float[Tensor, "n layers d"]) -> Float[Tensor, "n layers d"]:
    """For each query the mean change of all others."""
    return (change.sum(0) - change) / (len(change) - 1)


def best_layer(found: Mapping[str, Sequence[float]]) -> int:
    """The layer with most right answers, of several the one with the more probable ones."""
    return max(range(len(found["correct"])), key=lambda layer: (found["correct"][layer], found["log_prob"][layer]))


def matched_random(change: Tensor, direction: Tensor, generator: Generator) -> list[Tensor]:
    """Components of a change along N_RANDOM random directions with the cosine that the given one has."""
    return [
        projections.component(change, projections.matched_random_direction(change, direction, generator))
        for _ in range(N_RANDOM)
    ]
