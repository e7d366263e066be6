"""The explorable of the laboratory that counts: exact match after k demonstrations, right, shuffled and foreign."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import traitlets

from explainer.compare import controls
from explainer.data import tasks
from explainer.explorables.base import Stored
from explainer.models import scoring
from explainer.models.loading import Checkpoint
from explainer.page.asking import MADE, MORE_TASKS, Asking, book_checkpoint, context

MOST, QUERIES, SEED = 16, 30, 0
"""Demonstrations and queries of a task, and the seed that draws them."""
_CURVES = {"right": controls.own, "shuffled": controls.shuffled, "foreign": controls.foreign}


class LiveSweep(Asking):
    """Exact match after 0 ... 16 demonstrations: right ones, with shuffled answers, and of another task.

    Traits: `task`; `found`, the counts of right answers of each curve among n queries; `lessons`, the texts: for each
    task the demonstrations of the three curves and the queries, with the checkpoint's counts.
    """

    name = "live_sweep"
    question = "How many demonstrations does the model need, and must their answers be right?"
    height = 620

    task = traitlets.Enum(MORE_TASKS, MORE_TASKS[0])
    found = traitlets.Dict()
    lessons = Stored()

    @traitlets.default("found")
    def _found(self) -> dict[str, Any]:
        lesson = self.lessons[self.task]
        return {"task": self.task, "n": len(lesson["queries"]), "counts": lesson["counts"], "made": MADE}

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """The texts of each task and the checkpoint's counts of each curve."""
        checkpoint, lessons = book_checkpoint(), {name: _lesson(name) for name in MORE_TASKS}
        kinds = {name: {kind: _counts(checkpoint, its, kind) for kind in _CURVES} for name, its in lessons.items()}
        return {name: its | {"counts": kinds[name]} for name, its in lessons.items()}

    def replies(self, checkpoint: Checkpoint, message: dict) -> Iterator[dict]:
        """Which queries are right after the first k demonstrations of each curve, k by k."""
        pattern, curves, queries = (message[name] for name in ("pattern", "curves", "queries"))
        for k in range(max(map(len, curves)) + 1):
            for curve, demonstrations in enumerate(curves):
                if k <= len(demonstrations):
                    right = _exact(checkpoint, pattern, demonstrations[:k], queries)
                    yield {"sweep": message["sweep"], "curve": curve, "k": k, "exact": right.tolist()}
        yield {"sweep": message["sweep"], "done": True}


def _lesson(name: str) -> dict[str, Any]:
    """The texts of a task of word pairs: the book's controls, and queries that are no demonstrations."""
    data = tasks.load(name)
    pairs = lambda examples: [[one.fields["word"], one.answer] for one in examples]  # noqa: E731
    curves = {kind: pairs(draw(data, MOST, SEED)[1]) for kind, draw in _CURVES.items()}
    return {"pattern": ["", " ->"], "curves": curves, "queries": pairs(tasks.queries(data, QUERIES, SEED))}


def _counts(checkpoint: Checkpoint, its: dict[str, Any], kind: str, ks: Sequence[int] = range(MOST + 1)) -> list[int]:
    """How many queries greedy decoding answers word for word after the first k demonstrations of a curve."""
    shown = its["curves"][kind]
    return [int(_exact(checkpoint, its["pattern"], shown[:k], its["queries"]).sum()) for k in ks]


def _exact(checkpoint: Checkpoint, pattern: Sequence[str], demonstrations: Sequence, queries: Sequence) -> np.ndarray:
    """Which queries [x, y] greedy decoding answers word for word after the demonstrations."""
    before, after = pattern
    prompts, answers = zip(*((before + x + after, y) for x, y in queries), strict=True)
    return scoring.exact_match(checkpoint, context(checkpoint, pattern, demonstrations), prompts, answers)
