"""Few-shot prompts cut and heads switched off: what the real model's answers need, and the controls of each loss.

Stored once for the starter checkpoint (`store`), read by the pages with `stored`. All sets of demonstrations are shown
in every condition and all conditions ask the same queries, so that each loss is a difference within queries.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from explainer.compare import starter
from explainer.data import tasks
from explainer.data.tasks import Example, TaskData
from explainer.errors import TaskError
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
_FILE = "head_circuits.json"

_Cut = Callable[[TokenSpans], list[tuple[int, int]]]  # the pairs (t, s) of tokens that are kept apart
CUTS: Mapping[str, _Cut] = {
    "input": lambda columns: columns.input_hidden(),
    "input, one before": lambda columns: columns.input_hidden(back=1),
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

    def shuffled(self) -> "Bench":
        """The same inputs, answers and queries, with no answer left at its own input."""
        mixed = tuple(_shuffled_answers(each, seed) for seed, each in enumerate(self.demonstrations))
        return replace(self, demonstrations=mixed)

    def columns(self, checkpoint: Checkpoint) -> list[TokenSpans]:
        """The token ids of each set and where their parts stand."""
        return [circuits.token_spans(checkpoint, self.data.task, each) for each in self.demonstrations]


def draw_prompts(
    task: str, sets: Iterable[int] = SETS, demonstrations: int = DEMONSTRATIONS, queries: int = QUERIES
) -> Bench:
    """The sets with these seeds, of so many demonstrations each, and so many queries after each."""
    data, seeds = tasks.load(task), list(sets)
    shown = tuple(tuple(tasks.demonstrations(data, demonstrations, seed)) for seed in seeds)
    return Bench(data, shown, tuple(tuple(tasks.queries(data, queries, seed)) for seed in seeds))


def _shuffled_answers(examples: Sequence[Example], seed: int) -> tuple[Example, ...]:
    """The examples with their answers in a random order in which none keeps its own.

    Raises TaskError where there is no such order: fewer than two examples, or one answer more often than half.
    """
    answers = [one.answer for one in examples]
    if len(answers) < 2 or max(map(answers.count, answers)) > len(answers) / 2:
        raise TaskError(f"the answers {answers} cannot be exchanged so that none stays; give others.")
    generator = np.random.default_rng(seed)
    while True:
        mixed = [answers[i] for i in generator.permutation(len(answers))]
        if all(a != b for a, b in zip(mixed, answers, strict=True)):
            return tuple(replace(one, answer=other) for one, other in zip(examples, mixed, strict=True))


def ask(
    checkpoint: Checkpoint,
    bench: Bench,
    cut: _Cut | None = None,
    off: Iterable[HeadIndex] = (),
    means: torch.Tensor | None = None,
) -> list[Answers]:
    """The answers after each set, with tokens kept apart and heads that give their mean output."""
    with circuits.heads_off(checkpoint, off, means):
        prefixes = [
            circuits.encode_cut(checkpoint, columns.ids, cut(columns) if cut else ())
            for columns in bench.columns(checkpoint)
        ]
        return _after(checkpoint, bench, prefixes)


def _ask_alone(
    checkpoint: Checkpoint, bench: Bench, off: Iterable[HeadIndex] = (), means: torch.Tensor | None = None
) -> list[Answers]:
    """The answers to the same queries after no demonstration."""
    with circuits.heads_off(checkpoint, off, means):
        prefix = circuits.encode_cut(checkpoint, [checkpoint.first_token_id], ())
        return _after(checkpoint, bench, [prefix] * len(bench.queries))


def _after(checkpoint: Checkpoint, bench: Bench, prefixes: Sequence[scoring.Prefix]) -> list[Answers]:
    return [
        circuits.answers(checkpoint, bench.data.task, prefix, queries)
        for prefix, queries in zip(prefixes, bench.queries, strict=True)
    ]


def _kinds_of_heads(checkpoint: Checkpoint, m: int = HEADS, n: int = 50) -> dict[str, list[HeadIndex]]:
    """The m strongest heads of each of KINDS: on 4 sequences of n random tokens said twice, and on 4 prompts of "past".

    The answer heads are found on a task that no page asks about, so that they are chosen on one and judged on others.
    """
    found: dict[str, list[torch.Tensor]] = {kind: [] for kind in KINDS}
    asked = draw_prompts("past", range(4), queries=1)
    for seed, columns in enumerate(asked.columns(checkpoint)):
        maps = circuits.attention_maps(checkpoint, circuits.repeated_random_tokens(checkpoint, n, seed))
        found["previous token"].append(circuits.previous_token_score(maps))
        found["induction"].append(circuits.induction_score(maps))
        prompt = checkpoint.tokenize(asked.data.task.prompt(asked.queries[seed][0]))
        maps = circuits.attention_maps(checkpoint, [*columns.ids, *prompt])
        found["answer"].append(maps[..., -1, list(columns.answers)].sum(-1))
    return {kind: circuits.strongest(torch.stack(each).mean(0), m) for kind, each in found.items()}


# What is stored: the answers of one task in every condition.


def _answers(checkpoint: Checkpoint, task: str, sets: Iterable[int] = SETS) -> dict[str, list[Answers]]:
    """The answers of one task in all conditions.

    "whole" and "alone" with all heads and nothing cut, after all demonstrations and after none; "shuffled";
    "cut: ..." for each of CUTS and "cut, shuffled"; "off: <kind>" and "off: <kind>, alone" for each of KINDS, and
    "random: <kind>, <draw>" with its "alone" for as many other heads of the same layers.
    """
    normal, heads = draw_prompts(task, sets), _kinds_of_heads(checkpoint)
    mixed = normal.shuffled()
    means = circuits.mean_outputs(checkpoint, [columns.ids for columns in normal.columns(checkpoint)])
    found = {
        "whole": ask(checkpoint, normal),
        "alone": _ask_alone(checkpoint, normal),
        "shuffled": ask(checkpoint, mixed),
        **{f"cut: {name}": ask(checkpoint, normal, cut) for name, cut in CUTS.items()},
        "cut, shuffled": ask(checkpoint, mixed, CUTS["input"]),
    }
    n_heads = checkpoint.model.config.num_attention_heads
    off = {f"off: {kind}": its for kind, its in heads.items()} | {
        f"random: {kind}, {draw}": circuits.random_heads_like(its, n_heads, draw)
        for kind, its in heads.items()
        for draw in range(DRAWS)
    }
    for name, each in off.items():
        found[name] = ask(checkpoint, normal, off=each, means=means)
        found[f"{name}, alone"] = _ask_alone(checkpoint, normal, each, means)
    return found


def store() -> None:
    """Write what `stored` reads: all conditions on the starter checkpoint, in float32 on the CPU, in five minutes."""

    def measure(checkpoint: Checkpoint) -> dict[str, dict]:
        return {task: {name: _plain(each) for name, each in _answers(checkpoint, task).items()} for task in TASKS}

    starter.write(_FILE, measure, end_of_line="},")


def _plain(answers: Sequence[Answers]) -> dict[str, list]:
    return {
        "correct": [one.correct.astype(int).tolist() for one in answers],
        "log_probs": [[round(p, 4) for p in one.log_probs.tolist()] for one in answers],
    }


@dataclass(frozen=True)
class StoredAnswers:
    """The stored answers of one task, by condition; see `_answers`."""

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


def stored(task: str) -> StoredAnswers:
    """The stored answers of one of TASKS. Raises KeyError for another one."""
    table = starter.read(_FILE)[task]
    answers = {
        name: [
            Answers(np.array(correct, dtype=bool), np.array(log_probs))
            for correct, log_probs in zip(each["correct"], each["log_probs"], strict=True)
        ]
        for name, each in table.items()
    }
    return StoredAnswers(draw_prompts(task).queries, answers)


def _mean(values: Sequence[np.ndarray], queries: Sequence[Sequence[Example]]) -> Interval:
    ids = [np.array([str(query.fields) for query in each]) for each in queries]
    return statistics.bootstrap_interval(statistics.Sample([(each,) for each in values], ids), np.mean)
