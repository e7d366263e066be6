"""What the explorables of the laboratory share: a notebook's kernel answers their views as a page's worker does."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import traitlets

from explainer.errors import ExplainerError
from explainer.explorables import Explorable
from explainer.explorables.explorable_base import Stored
from explainer.models import loading, scoring
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Prefix

TASKS = ("capitals", "plurals", "past", "antonyms")
"""The tasks of word pairs that a reader can choose everywhere: they have studies."""
MORE_TASKS = (*TASKS, "chinese")
"""The tasks that need no study."""
QUERY = {"capitals": "Japan", "plurals": "bus", "past": "sing", "antonyms": "cold"}
"""The query of a task that is shown first: one of no demonstration and of none of the thirty queries."""
MADE = "computed with Python and stored with the book"
Pair = Sequence[str]
"""A demonstration's x and y; or what is written before and after x."""
_PAUSE = 0.01  # seconds between two answers, in which the kernel hears what came meanwhile
_QUESTIONS = {"ask": "id", "sweep": "sweep", "experiment": "experiment", "patch": "patch", "vector": "vector"}
"""By question, where its number stands in the answer."""


class LiveExplorable(Explorable):
    """An explorable whose view sends `{"load": true}` and then questions; a newer message stops an older one.

    Without a `checkpoint` that is in memory already, that of the book is loaded at the first message.
    """

    folder = Path(__file__).parent
    provenance = "Stored: computed with Python beforehand; live where you start the model in the page."
    replies: Callable[[Checkpoint, dict], Iterator[dict]]
    """What the worker of a page, live_model_worker.js, would answer to a question."""

    def __init__(self, checkpoint: Checkpoint | None = None, **traits: Any):
        """Take the traits, and hear the view."""
        super().__init__(**traits)
        self._given = checkpoint
        self._answering: asyncio.Future | None = None
        self.on_msg(lambda _widget, message, _buffers: self._hear(message))

    def _hear(self, message: dict) -> None:
        if self._answering is not None:
            self._answering.cancel()
        self._answering = asyncio.ensure_future(self._answer(message))

    async def _answer(self, message: dict) -> None:
        numbers = {name: message[key] for key, name in _QUESTIONS.items() if message.get(key)}  # 0 is none: it stops
        try:
            checkpoint = self._given or book_checkpoint()
            replies = [{"ready": True}] if message.get("load") else self.replies(checkpoint, message) if numbers else ()
            for reply in replies:
                self.send(reply)
                await asyncio.sleep(_PAUSE)
        except Exception as error:  # whatever is not sent is lost: nobody awaits this
            text = str(error) if isinstance(error, ExplainerError) else f"{type(error).__name__}: {error}"
            self.send({"failed": text} | numbers)


class LiveTask(LiveExplorable):
    """What explorables share that ask about a task of word pairs.

    Traits: `task`; `query`, the reader's own; `found`, the answers, which belong to what was asked in it; `study`, what
    is stored, by task.
    """

    task = traitlets.Enum(TASKS, "plurals")
    query = traitlets.Unicode()
    found = traitlets.Dict()
    study = Stored()

    chosen: ClassVar[str] = ""
    """The trait whose value tells the stored answers of a task apart, if there are several."""

    @traitlets.default("found")
    def _found(self) -> dict[str, Any]:
        found = self.study[self.task]["found"]
        return found[str(getattr(self, self.chosen))] if self.chosen else found

    @traitlets.default("query")
    def _query(self) -> str:
        return self.found["query"]


@cache
def book_checkpoint() -> Checkpoint:
    """The starter checkpoint in float32, loaded once."""
    return loading.load(device="cpu")


def lines(checkpoint: Checkpoint, pattern: Pair, demonstrations: Sequence[Pair]) -> list[list[int]]:
    """The tokens of each demonstration, which is a line and tokenized by itself."""
    before, after = pattern
    return [checkpoint.tokenize(f"{before}{x}{after} {y}\n") for x, y in demonstrations]


def context(checkpoint: Checkpoint, pattern: Pair, demonstrations: Sequence[Pair]) -> Prefix:
    """The first token and the demonstrations, as queries see them."""
    ids = chain.from_iterable(lines(checkpoint, pattern, demonstrations))
    return scoring.encode(checkpoint, [checkpoint.first_token_id, *ids])
