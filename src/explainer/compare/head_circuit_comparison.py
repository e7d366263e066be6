"""Few-shot prompts cut and heads switched off: what the real model's answers need, and the controls of each loss.

Measured once on the starter checkpoint (`explainer-lab head-circuits`), read by the pages with `stored`. All sets of
demonstrations are shown in every condition and all conditions ask the same queries, so that each loss is a difference
within queries.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from explainer.data import tasks
from explainer.data.files import published_json
from explainer.data.tasks import Example, TaskData
from explainer.models import circuits, scoring
from explainer.models.circuits import Answers, HeadIndex, TokenSpans
from explainer.models.loading import Checkpoint
from explainer.theory import statistics
from explainer.theory.statistics import Interval

TASKS = ("capitals", "plurals")
DEMONSTRATIONS, QUERIES, SETS = 8, 12, range(8)
HEADS, DRAWS = 10, 4
"""How many heads of each kind are switched off, and how often as many random ones of their layers."""
KINDS = ("previous token", "induction", "answer")
_Cut = Callable[[TokenSpans], list[tuple[int, int]]]  # the pairs (t, s) of tokens that are kept apart
CUTS: Mapping[str, _Cut] = {
    "input": lambda columns: columns.between("input", arrow=True),
    "input, one before": lambda columns: columns.between("input", back=1, arrow=True),
    "answer from input": lambda columns: columns.between("input"),
    "answer from arrow": lambda columns: columns.between("arrow"),
    "answer from both": lambda columns: columns.between("both"),
}


@dataclass(frozen=True)
class Bench:
    """Sets of demonstrations of one task, with the queries that are asked after each."""

    data: TaskData
    demonstrations: tuple[tuple[Example, ...], ...]
    queries: tuple[tuple[Example, ...], ...]

    @classmethod
    def draw(
        cls, task: str, sets: Iterable[int] = SETS, demonstrations: int = DEMONSTRATIONS, queries: int = QUERIES
    ) -> "Bench":
        """The sets with these seeds, of so many demonstrations each, and so many queries after each."""
        data, seeds = tasks.load(task), list(sets)
        shown = tuple(tuple(tasks.demonstrations(data, demonstrations, seed)) for seed in seeds)
        return cls(data, shown, tuple(tuple(tasks.queries(data, queries, seed)) for seed in seeds))

    def columns(self, checkpoint: Checkpoint) -> list[TokenSpans]:
        """The token ids of each set and where their parts stand."""
        return [circuits.TokenSpans.of(checkpoint, self.data.task, each) for each in self.demonstrations]


def answer_queries(
    checkpoint: Checkpoint,
    bench: Bench,
    cut: _Cut | None = None,
    off: Iterable[HeadIndex] = (),
    means: torch.Tensor | None = None,
) -> list[Answers]:
    """The answers after each set, with tokens kept apart and heads that give their mean output."""
    with circuits.ablate_heads(checkpoint, off, means):
        return [
            circuits.Answers.of(
                checkpoint,
                bench.data.task,
                scoring.encode(checkpoint, columns.ids, cut(columns) if cut else ()),
                queries,
            )
            for columns, queries in zip(bench.columns(checkpoint), bench.queries, strict=True)
        ]


@dataclass(frozen=True)
class _StoredAnswers:
    """The stored answers of one task, by condition; see `explainer_lab.head_circuits`."""

    queries: tuple[tuple[Example, ...], ...]
    answers: Mapping[str, Sequence[Answers]]

    def change(self, after: str, before: str = "whole") -> Interval:
        """Mean change of log p(right answer) in nats from one condition to another; crossed bootstrap."""
        pairs = zip(self.answers[after], self.answers[before], strict=True)
        return _mean([a.log_probs - b.log_probs for a, b in pairs], self.queries)

    def gain(self, off: str | None = None) -> Interval:
        """What the demonstrations add to log p(right answer), with all heads or some switched off: after all - none."""
        return self.change(off or "whole", f"{off}, alone" if off else "alone")

    def exact(self, condition: str) -> Interval:
        """Share of queries that are answered exactly; crossed bootstrap."""
        share = _mean([one.correct for one in self.answers[condition]], self.queries)
        return statistics.widen_degenerate(share, len({str(query.fields) for each in self.queries for query in each}))


def stored(task: str) -> _StoredAnswers:
    """The stored answers of one of TASKS. Raises KeyError for another one."""
    table = published_json("head_circuits")[task]
    answers = {
        name: [
            Answers(np.array(correct, dtype=bool), np.array(log_probs))
            for correct, log_probs in zip(each["correct"], each["log_probs"], strict=True)
        ]
        for name, each in table.items()
    }
    return _StoredAnswers(Bench.draw(task).queries, answers)


def _mean(values: Sequence[np.ndarray], queries: Sequence[Sequence[Example]]) -> Interval:
    ids = [np.array([str(query.fields) for query in each]) for each in queries]
    return statistics.bootstrap_interval(statistics.Sample([(each,) for each in values], ids), np.mean)
