"""How many answers are right after k demonstrations: the sweeps of the first chapter and of its study on label bias.

Stored once for the starter checkpoint (`store`), read by the pages with `stored`. One prefix of the largest k serves
every smaller k of a seed, and all k are asked the same queries (`explainer.models.scoring.sweep`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from explainer.compare import starter
from explainer.data import tasks
from explainer.models import scoring
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Record

_FILE = "few_shots.json"


@dataclass(frozen=True)
class _Sweep:
    """The numbers of demonstrations, the seeds, and how many queries each seed draws."""

    ks: tuple[int, ...]
    seeds: tuple[int, ...]
    queries: int


_WORDS = _Sweep((0, 1, 2, 4, 8, 16), tuple(range(5)), 20)
SWEEPS: Mapping[str, _Sweep] = {
    "capitals": _WORDS,
    "plurals": _WORDS,
    "past": _WORDS,
    "antonyms": _WORDS,
    "reviews": _Sweep((0, 2, 8, 32), tuple(range(3)), 60),
}
"""What is stored, by task."""


def _records(checkpoint: Checkpoint, task: str, seeds: Iterable[int] | None = None, most: int | None = None) -> list:
    """The records of one of SWEEPS, of some seeds and of k up to `most` if they are given."""
    sweep = SWEEPS[task]
    ks = [k for k in sweep.ks if most is None or k <= most]
    seeds = sweep.seeds if seeds is None else tuple(seeds)
    return scoring.sweep(checkpoint, tasks.load(task), ks, seeds, sweep.queries, progress=False)


def store() -> None:
    """Write what `stored` reads: all sweeps on the starter checkpoint, in float32 on the CPU, in five minutes."""

    def measure(checkpoint: Checkpoint) -> dict[str, list]:
        return {task: [_plain(record) for record in _records(checkpoint, task)] for task in SWEEPS}

    starter.write(_FILE, measure, end_of_line="},")


def _plain(record: Record) -> dict[str, list | int]:
    """The log-probabilities of the labels, or what is right where answers are free."""
    what = {"seed": record.seed, "k": record.k}
    if record.log_probs is None:
        return what | {"correct": record.correct.astype(int).tolist()}
    return what | {"log_probs": [[round(p, 4) for p in row] for row in record.log_probs.tolist()]}


def stored(task: str) -> list[Record]:
    """The stored records of one of SWEEPS, by seed and k. Raises KeyError for another task."""
    rows = starter.read(_FILE)[task]
    data = tasks.load(task)
    queries = {seed: tasks.queries(data, SWEEPS[task].queries, seed) for seed in SWEEPS[task].seeds}
    return [_record(data, queries[row["seed"]], row) for row in rows]


def _record(data: tasks.TaskData, queries: Sequence[tasks.Example], row: Mapping[str, Any]) -> Record:
    of = data.task.name, row["seed"], row["k"], [data.task.prompt(query) for query in queries]
    if "correct" in row:
        return Record(*of, np.array(row["correct"], dtype=bool))
    log_probs, labels = np.array(row["log_probs"]), np.array([query.label for query in queries])
    return Record(*of, log_probs.argmax(1) == labels, log_probs, labels)
