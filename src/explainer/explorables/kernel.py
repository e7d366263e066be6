"""Explorables that the checkpoint answers: in a page its Web Worker, in a notebook the kernel, by the same messages."""

import asyncio
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from explainer.errors import ExplainerError
from explainer.explorables.base import Explorable

if TYPE_CHECKING:
    from explainer.models.checkpoints import Checkpoint

_PAUSE = 0.01
"""Seconds between two answers, in which the kernel hears what came meanwhile."""


class Asking(Explorable):
    """An explorable whose view sends `{"load": true}` and then questions; a newer message stops an older one.

    Without a `checkpoint` that is in memory already, that of the book is loaded at the first message.
    """

    def __init__(self, checkpoint: "Checkpoint | None" = None, **traits: Any):
        """Take the traits, and hear the view."""
        super().__init__(**traits)
        self._given = checkpoint
        self._answering: asyncio.Future | None = None
        self.on_msg(lambda _widget, message, _buffers: self._hear(message))

    def replies(self, checkpoint: "Checkpoint", message: dict) -> Iterator[dict]:
        """What the worker of a page, live_gpt_worker.js, would answer to a question."""
        raise NotImplementedError

    def _hear(self, message: dict) -> None:
        if self._answering is not None:
            self._answering.cancel()
        self._answering = asyncio.ensure_future(self._answer(message))

    async def _answer(self, message: dict) -> None:
        try:
            replies = [{"ready": True}] if message.get("load") and self._checkpoint() else self._replies(message)
            for reply in replies:
                self.send(reply)
                await asyncio.sleep(_PAUSE)
        except ExplainerError as error:
            names = {"ask": "id"} | {name: name for name in _QUESTIONS[1:]}
            self.send({"failed": str(error)} | {names[key]: message[key] for key in names if key in message})

    def _replies(self, message: dict) -> Iterator[dict]:
        return self.replies(self._checkpoint(), message) if any(message.get(key) for key in _QUESTIONS) else iter(())

    def _checkpoint(self) -> "Checkpoint":
        return self._given or _book_checkpoint()


_QUESTIONS = ("ask", "sweep", "experiment", "patch")


@cache
def _book_checkpoint() -> "Checkpoint":
    """The checkpoint of the book in float32, loaded once."""
    from explainer.models import checkpoints  # noqa: PLC0415 - a page that shows stored answers needs no model

    return checkpoints.load(device="cpu")
