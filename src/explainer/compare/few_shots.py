"""How many answers are right after k demonstrations: the sweeps of the first chapter and of its study on label bias.

Measured once on the starter checkpoint (`explainer-lab few-shots`), read by the pages with `stored`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from explainer.data import tasks
from explainer.data.files import published_json
from explainer.models.scoring import Record


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


def stored(task: str) -> list[Record]:
    """The stored records of one of SWEEPS, by seed and k. Raises KeyError for another task."""
    rows = published_json("few_shots")[task]
    data = tasks.load(task)
    queries = {seed: tasks.queries(data, SWEEPS[task].queries, seed) for seed in SWEEPS[task].seeds}
    return [_record(data, queries[row["seed"]], row) for row in rows]


def _record(data: tasks.TaskData, queries: Sequence[tasks.Example], row: Mapping[str, Any]) -> Record:
    of = data.task.name, row["seed"], row["k"], [data.task.prompt(query) for query in queries]
    if "correct" in row:
        return Record(*of, np.array(row["correct"], dtype=bool))
    log_probs, labels = np.array(row["log_probs"]), np.array([query.label for query in queries])
    return Record(*of, log_probs.argmax(1) == labels, log_probs, labels)
