"""The explorable of the laboratory that counts: exact match after k demonstrations, right, shuffled and foreign."""

import json
from itertools import chain
from typing import Any

import traitlets

from explainer.explorables.base import FOLDER, Explorable

STORED = FOLDER / "live_sweep.json"
"""For each task of word pairs the demonstrations of the three curves, the queries, and the checkpoint's counts."""
KINDS = ("right", "shuffled", "foreign")
MOST, QUERIES, SEED = 16, 30, 0


def lessons() -> dict[str, dict]:
    """What is stored, by task."""
    return json.loads(STORED.read_text("utf-8"))


class LiveSweep(Explorable):
    """Exact match after 0 ... 16 demonstrations: right ones, with shuffled answers, and of another task.

    Traits: `task`; `found`, the counts of right answers of each curve among n queries; `lessons`, the texts.
    """

    name = "live_sweep"
    question = "How many demonstrations does the model need, and must their answers be right?"
    height = 620

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


def lesson(name: str) -> dict[str, Any]:
    """The texts of a task of word pairs: the book's controls, and queries that are no demonstrations."""
    from explainer.data import tasks  # noqa: PLC0415 - a page that shows stored counts needs no data
    from explainer.experiments import controls  # noqa: PLC0415

    data = tasks.load(name)
    drawn = {kind: draw(data, MOST, SEED)[1] for kind, draw in zip(KINDS, _draws(controls), strict=True)}
    pairs = lambda examples: [[one.fields["word"], one.answer] for one in examples]  # noqa: E731
    curves = {kind: pairs(examples) for kind, examples in drawn.items()}
    return {"pattern": ["", " ->"], "curves": curves, "queries": pairs(tasks.queries(data, QUERIES, SEED))}


def _draws(controls: Any) -> tuple:
    return controls.own, controls.shuffled, controls.foreign


def counts(checkpoint: Any, its: dict[str, Any], kind: str, ks: range = range(MOST + 1)) -> list[int]:
    """How many queries greedy decoding answers word for word after the first k demonstrations of a curve."""
    from explainer.models import scoring  # noqa: PLC0415 - as above

    before, after = its["pattern"]
    pieces = [checkpoint.tokenize(f"{before}{x}{after} {y}\n") for x, y in its["curves"][kind]]
    prompts, answers = [before + x + after for x, _ in its["queries"]], [y for _, y in its["queries"]]
    contexts = ([checkpoint.first_token_id, *chain.from_iterable(pieces[:k])] for k in ks)
    prefixes = (scoring.encode(checkpoint, context) for context in contexts)
    return [int(scoring.exact_match(checkpoint, prefix, prompts, answers).sum()) for prefix in prefixes]


def store() -> None:
    """Write STORED: the word pairs of the book, answered by the starter checkpoint in float32."""
    from explainer.models import checkpoints  # noqa: PLC0415

    checkpoint, found = checkpoints.load(device="cpu"), {}
    for name in ("capitals", "plurals", "past", "antonyms"):
        its = lesson(name)
        found[name] = its | {"counts": {kind: counts(checkpoint, its, kind) for kind in KINDS}}
    lines = [f"{json.dumps(name)}: {json.dumps(its, ensure_ascii=False)}" for name, its in found.items()]
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
