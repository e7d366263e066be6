"""The explorable of the laboratory that counts: exact match after k demonstrations, right, shuffled and foreign."""

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import traitlets

from explainer.explorables.base import FOLDER
from explainer.explorables.kernel import Asking

STORED = FOLDER / "live_sweep.json"
"""For each task of word pairs the demonstrations of the three curves, the queries, and the checkpoint's counts."""
KINDS = ("right", "shuffled", "foreign")
MOST, QUERIES, SEED = 16, 30, 0


def lessons() -> dict[str, dict]:
    """What is stored, by task."""
    return json.loads(STORED.read_text("utf-8"))


class LiveSweep(Asking):
    """Exact match after 0 ... 16 demonstrations: right ones, with shuffled answers, and of another task.

    Traits: `task`; `found`, the counts of right answers of each curve among n queries; `lessons`, the texts.
    """

    name = "live_sweep"
    question = "How many demonstrations does the model need, and must their answers be right?"
    height = 620
    made = "Stored: computed with Python beforehand; live where you start the model in the page."

    task = traitlets.Unicode("capitals").tag(sync=True, explorable=True)
    found = traitlets.Dict().tag(sync=True, explorable=True)
    lessons = traitlets.Dict().tag(sync=True, explorable=True)

    @traitlets.default("lessons")
    def _lessons(self) -> dict[str, dict]:
        return lessons()

    @traitlets.default("found")
    def _found(self) -> dict[str, Any]:
        lesson = self.lessons[self.task]
        made = "computed with Python and stored with the book"
        return {"task": self.task, "n": len(lesson["queries"]), "counts": lesson["counts"], "made": made}

    @traitlets.validate("task")
    def _known(self, proposal: dict) -> str:
        if proposal["value"] not in self.lessons:
            raise traitlets.TraitError(f"task = {proposal['value']!r}; it must be one of {', '.join(self.lessons)}.")
        return proposal["value"]

    def replies(self, checkpoint: Any, message: dict) -> Iterator[dict]:
        """Which queries are right after the first k demonstrations of each curve, k by k."""
        pattern, curves, queries = (message[name] for name in ("pattern", "curves", "queries"))
        for k in range(max(map(len, curves)) + 1):
            for curve, demonstrations in enumerate(curves):
                if k <= len(demonstrations):
                    right = exact(checkpoint, pattern, demonstrations[:k], queries)
                    yield {"sweep": message["sweep"], "curve": curve, "k": k, "exact": right.tolist()}
        yield {"sweep": message["sweep"], "done": True}


def lesson(name: str) -> dict[str, Any]:
    """The texts of a task of word pairs: the book's controls, and queries that are no demonstrations."""
    from explainer.compare import controls  # noqa: PLC0415
    from explainer.data import tasks  # noqa: PLC0415 - a page that shows stored counts needs no data

    data = tasks.load(name)
    drawn = {kind: draw(data, MOST, SEED)[1] for kind, draw in zip(KINDS, _draws(controls), strict=True)}
    pairs = lambda examples: [[one.fields["word"], one.answer] for one in examples]  # noqa: E731
    curves = {kind: pairs(examples) for kind, examples in drawn.items()}
    return {"pattern": ["", " ->"], "curves": curves, "queries": pairs(tasks.queries(data, QUERIES, SEED))}


def _draws(controls: Any) -> tuple:
    return controls.own, controls.shuffled, controls.foreign


def counts(checkpoint: Any, its: dict[str, Any], kind: str, ks: range = range(MOST + 1)) -> list[int]:
    """How many queries greedy decoding answers word for word after the first k demonstrations of a curve."""
    shown = its["curves"][kind]
    return [int(exact(checkpoint, its["pattern"], shown[:k], its["queries"]).sum()) for k in ks]


def exact(checkpoint: Any, pattern: Sequence[str], demonstrations: Sequence, queries: Sequence) -> np.ndarray:
    """Which queries [x, y] greedy decoding answers word for word after the demonstrations."""
    from explainer.models import scoring  # noqa: PLC0415 - as above

    before, after = pattern
    pieces = (checkpoint.tokenize(f"{before}{x}{after} {y}\n") for x, y in demonstrations)
    prefix = scoring.encode(checkpoint, [checkpoint.first_token_id, *chain.from_iterable(pieces)])
    prompts, answers = zip(*((before + x + after, y) for x, y in queries), strict=True)
    return scoring.exact_match(checkpoint, prefix, prompts, answers)


def store() -> None:
    """Write STORED: the word pairs of the book, answered by the starter checkpoint in float32."""
    from explainer.models import checkpoints  # noqa: PLC0415

    checkpoint, found = checkpoints.load(device="cpu"), {}
    for name in ("capitals", "plurals", "past", "antonyms"):
        its = lesson(name)
        found[name] = its | {"counts": {kind: counts(checkpoint, its, kind) for kind in KINDS}}
    lines = [f"{json.dumps(name)}: {json.dumps(its, ensure_ascii=False)}" for name, its in found.items()]
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
