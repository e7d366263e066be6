"""The explorable that takes the task vector of demonstrations, and puts it into a prompt without any."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import traitlets
from jaxtyping import Float
from torch import Tensor

from explainer.data import tasks
from explainer.explorables.base import Stored
from explainer.models import interventions
from explainer.models.loading import Checkpoint
from explainer.page.asking import MADE, QUERY, TASKS, Asking, Pair, book_checkpoint, context, shares_of_study, top_three
from explainer.page.live_sweep import SEED

_DEMONSTRATIONS = 8
_LAYER = 21  # the layer where the vector answers most on most draws of the study
_STUDIED = {"icl": "icl", "vector": "vector", "shuffled": "vector_shuffled"}


class LiveVector(Asking):
    """What demonstrations change in the residual stream, added to a query that has none, after a layer of choice.

    Traits: `task`, whose demonstrations are shown first; `lesson`, the demonstrations as lines "x -> y"; `query`;
    `layer`, counted from 1; `found`, the answers, which belong to the demonstrations and the query in it; `study`, what
    is stored of each task: demonstrations, a query, the answers and the shares of the study.
    """

    name = "live_vector"
    question = "Does one vector carry your demonstrations to a prompt without any?"
    height = 930

    task = traitlets.Enum(TASKS, "plurals")
    lesson = traitlets.Unicode()
    query = traitlets.Unicode()
    layer = traitlets.Int(_LAYER, min=1, max=30)
    found = traitlets.Dict()
    study = Stored()

    @traitlets.default("lesson")
    def _lesson(self) -> str:
        return self.study[self.task]["lesson"]

    @traitlets.default("query")
    def _query(self) -> str:
        return self.study[self.task]["query"]

    @traitlets.default("found")
    def _found(self) -> dict[str, Any]:
        return self.study[self.task]["found"]

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """The demonstrations, a query, the checkpoint's answers and the shares of the study, by task."""
        return {name: _stored(name) for name in TASKS}

    def replies(self, checkpoint: Checkpoint, message: dict) -> Iterator[dict]:
        """The answers, once."""
        asked = (message[name] for name in ("pattern", "demonstrations", "query"))
        yield {"vector": message["vector"], "found": _answers(checkpoint, *asked)}


def _answers(checkpoint: Checkpoint, pattern: Pair, demonstrations: Sequence[Pair], query: str) -> dict[str, Any]:
    """What LiveVector finds, by the checkpoint in Python.

    `without` and `with` are the three most probable next tokens without demonstrations and with them, `layers` those
    without them when the vector of a layer is added after it. `p` has the probability of the answer `with[0]` without,
    with, and by layer with the vector, and with that of the same inputs after answers that moved on by one.
    """
    prompt = [_written(pattern, query)]
    prefix = context(checkpoint, pattern, demonstrations)
    empty = interventions.without_context(checkpoint, prefix, prompt)
    zsl, icl = (
        its.run().logits[0].softmax(-1) for its in (empty, interventions.after_context(checkpoint, prefix, prompt))
    )
    answers = [answer for _, answer in demonstrations]
    moved = [(x, y) for (x, _), y in zip(demonstrations, answers[1:] + answers[:1], strict=True)]
    own, other = (
        _plus_each(empty, _vectors(checkpoint, pattern, lesson)).softmax(-1) for lesson in (demonstrations, moved)
    )
    best = int(icl.argmax())
    return {
        "demonstrations": [list(pair) for pair in demonstrations],
        "query": query,
        "without": top_three(checkpoint, zsl),
        "with": top_three(checkpoint, icl),
        "layers": [top_three(checkpoint, p) for p in own],
        "p": [zsl[best].item(), icl[best].item(), own[:, best].tolist(), other[:, best].tolist()],
        "made": MADE,
    }


def _vectors(checkpoint: Checkpoint, pattern: Pair, demonstrations: Sequence[Pair]) -> Float[Tensor, "layers d"]:
    """The mean over demonstrations of what all the others change, where each is asked as a query."""
    changes = []
    for i, (x, _) in enumerate(demonstrations):
        prefix = context(checkpoint, pattern, [*demonstrations[:i], *demonstrations[i + 1 :]])
        after, without = (
            of(checkpoint, prefix, [_written(pattern, x)]).run().stream[0]
            for of in (interventions.after_context, interventions.without_context)
        )
        changes.append(after - without)
    return torch.stack(changes).mean(0)


def _plus_each(empty: interventions.Pass, vectors: Float[Tensor, "layers d"]) -> Float[Tensor, "layers vocab"]:
    """Logits after one query when the vector of a layer is added after it, for each layer."""
    times = empty.at_last().repeated(len(vectors))
    edits = []
    for number, layer in enumerate(times.layers):
        added = torch.zeros_like(vectors)
        added[number] = vectors[number]
        edits += interventions.with_added_to_stream(layer, added)
    return times.run(edits).logits


def _written(pattern: Pair, x: str) -> str:
    return f"{pattern[0]}{x}{pattern[1]}"


def _stored(name: str) -> dict[str, Any]:
    shown = tasks.demonstrations(tasks.load(name), _DEMONSTRATIONS, SEED)
    pairs = [(one.fields["word"], one.answer) for one in shown]
    found = _answers(book_checkpoint(), ("", " ->"), pairs, QUERY[name])
    return {
        "lesson": "\n".join(f"{x} -> {y}" for x, y in pairs),
        "query": QUERY[name],
        "study": shares_of_study("rival", name, _STUDIED),
        "found": found,
    }
