"""The explorables that ask the checkpoint about a text: what it expects next, with any demonstration hidden."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import traitlets

from explainer.data import tasks
from explainer.explorables.explorable_base import Stored
from explainer.models import recording, scoring
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Prefix
from explainer.page.live_base import MADE, MORE_TASKS, LiveExplorable, Pair, book_checkpoint, context, lines
from explainer.results.thirds import layer_thirds

_INDUCTION = ((18, 6), (17, 4), (17, 5), (17, 3), (20, 6), (23, 2), (23, 7), (18, 7), (24, 4), (23, 1))
"""The ten strongest induction heads, as the study `rival` finds them: (layer, head) from 0."""


class _LiveText(LiveExplorable):
    """What explorables share in which a reader writes demonstrations and a query.

    Traits: `demonstrations` (x, y), up to sixteen; `query`; `pattern`, what is written before and after x; `hidden`,
    the demonstrations that the query does not see; `found`, the answers, which belong to the texts in `found["of"]`;
    `presets`, tasks with stored answers, by name, each with a button.
    """

    digits = 6

    pattern = traitlets.List(traitlets.Unicode(), minlen=2, maxlen=2)
    demonstrations = traitlets.List(traitlets.List(traitlets.Unicode(), minlen=2, maxlen=2), maxlen=16)
    query = traitlets.Unicode()
    hidden = traitlets.List(traitlets.Int(min=0))
    found = traitlets.Dict()
    presets = Stored()

    def __init__(self, checkpoint: Checkpoint | None = None, **traits: Any):
        """Take the traits, or else those of the first task."""
        first, *_ = self.stored().values()
        super().__init__(checkpoint, **{name: its for name, its in first.items() if self.has_trait(name)} | traits)

    def replies(self, checkpoint: Checkpoint, message: dict) -> Iterator[dict]:
        """The answers, once."""
        asked = (message[name] for name in ("pattern", "demonstrations", "query", "hidden"))
        yield {"id": message["ask"], "found": answers(checkpoint, *asked)}


_PART = re.compile("[0-9A-F]{2}·+$")  # of a text of `Checkpoint.text` that ends within a character


class LiveGPT(_LiveText):
    """The checkpoint's next token with and without demonstrations, any of which is hidden from the query.

    Traits of its own: `head`, counted from 1, whose attention is drawn, 0 for the mean over heads; `induction`, heads
    that are marked.
    """

    name = "live_gpt"
    question = "What does a real GPT expect next, and which of your demonstrations does it need?"
    height = 1330

    head = traitlets.Int(0, min=0, max=9)
    induction = traitlets.List([list(head) for head in _INDUCTION])

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """The tasks, with four demonstrations each, a query, and what the checkpoint answers."""
        texts = {name: _texts(name) for name in MORE_TASKS}
        return {name: its | {"hidden": [], "found": answers(book_checkpoint(), **its)} for name, its in texts.items()}


class LiveAttention(_LiveText):
    """Arrows from each demonstration to the query, as wide as its last token's attention, and what is expected next.

    It is the mean over the heads of the upper third of the layers. The answers with every choice of hidden
    demonstrations are stored, so that an arrow is dimmed, and the others change, without the model.
    """

    name = "live_attention"
    question = "Where does a real GPT look before it answers, and what does it expect next?"
    height = 390

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """The presets of `LiveGPT` without `looks`, and in `hiding` what is found when demonstrations are hidden.

        An entry of `hiding` has the hidden ones, `with`, `alone` and `attention`, as `answers` names them.
        """
        measured = {}
        for name in MORE_TASKS:
            texts = _texts(name)
            n, found = len(texts["demonstrations"]), answers(book_checkpoint(), **texts)
            choices = (list(hidden) for size in range(1, n + 1) for hidden in combinations(range(n), size))
            hiding = [
                [hidden, *_seen(answers(book_checkpoint(), **texts, hidden=hidden)).values()] for hidden in choices
            ]
            whole = {part: found[part] for part in ("of", "made", "without")} | _seen(found)
            measured[name] = texts | {"hidden": [], "found": whole, "hiding": hiding}
        return measured


def _seen(found: dict[str, Any]) -> dict[str, Any]:
    """What LiveAttention keeps of `answers`, and `attention`: first and last layer of the upper third, from 1, and the
    attention to each demonstration there, in thousandths, mean over layers and heads.
    """
    looks = found["looks"]
    first = layer_thirds(len(looks))["upper third"].start
    shares = np.mean(looks[first:], axis=(0, 1)).round(1).tolist()
    return {"with": found["with"], "alone": found["alone"], "attention": [first + 1, len(looks), shares]}


def _texts(name: str) -> dict[str, Any]:
    """Four demonstrations of a task and a query."""
    data = tasks.load(name)
    if name == "capitals":
        *shown, asked = data.examples_of("France", "Italy", "Egypt", "China", "Japan")
    else:
        shown, (asked,) = tasks.demonstrations(data, 4, seed=0), tasks.queries(data, 1, seed=0)
    demonstrations = [[one.fields["word"], one.answer] for one in shown]
    return {"pattern": ["", " ->"], "demonstrations": demonstrations, "query": asked.fields["word"]}


def answers(
    checkpoint: Checkpoint,
    pattern: Pair,
    demonstrations: Sequence[Pair],
    query: str,
    hidden: Sequence[int] = (),
) -> dict[str, Any]:
    """What LiveGPT finds, by the checkpoint in Python.

    `without` and `with` are the most probable next tokens without demonstrations and with those that are not hidden; if
    the first of them is but the beginning of a character, greedy decoding completes it, in brackets;
    `alone[i]` is the probability of the answer `with[0]` when demonstration i is hidden, too (None where it is);
    `looks` has the shares of attention of each layer and head, in thousandths.
    """
    prompt, n = pattern[0] + query + pattern[1], len(demonstrations)
    seen, owner = _seen_context(checkpoint, pattern, demonstrations, hidden)
    answer = scoring.next_token_log_probs(checkpoint, seen, prompt).argmax()
    alone: list[float | None] = [None] * n
    for i in set(range(n)) - set(hidden):
        less, _ = _seen_context(checkpoint, pattern, demonstrations, [*hidden, i])
        alone[i] = float(np.exp(scoring.next_token_log_probs(checkpoint, less, prompt)[answer]))
    return {
        "of": [list(pattern), [list(pair) for pair in demonstrations], query, list(hidden)],
        "made": MADE,
        "without": _next(checkpoint, scoring.encode(checkpoint, ""), prompt),
        "with": _next(checkpoint, seen, prompt),
        "alone": alone,
        "looks": np.rint(1000 * _shares_of_attention(checkpoint, seen, owner, n, prompt)).astype(int).tolist(),
    }


def _next(checkpoint: Checkpoint, prefix: Prefix, prompt: str) -> list[list]:
    """The five most probable next tokens; the first with its whole character, if it is but the beginning of one."""
    best = [list(pair) for pair in scoring.top_tokens(checkpoint, prefix, prompt, 5)]
    (before,) = scoring.prompt_token_ids(checkpoint, prefix, [prompt])
    ids = [int(scoring.next_token_log_probs(checkpoint, prefix, prompt).argmax())]
    while _PART.search(text := checkpoint.text(ids)) and len(ids) < 4:
        ((_, logits),) = scoring.row_logits(checkpoint, prefix, [(before, ids)])
        ids.append(int(logits[-1].argmax()))
    if len(ids) > 1 and not _PART.search(text):
        best[0][0] += f" ({text.strip()})"
    return best


def _seen_context(
    checkpoint: Checkpoint, pattern: Pair, demonstrations: Sequence[Pair], hidden: Sequence[int]
) -> tuple[Prefix, np.ndarray]:
    """Keys and values of the demonstrations but the hidden ones, and the demonstration of each position, -1 for none.

    No position moves.
    """
    prefix = context(checkpoint, pattern, demonstrations)
    owner = [-1, *(i for i, line in enumerate(lines(checkpoint, pattern, demonstrations)) for _ in line)]
    kept = [t for t, i in enumerate(owner) if i not in hidden]
    keys, values = (tuple(x[:, :, kept] for x in layers) for layers in (prefix.keys, prefix.values))
    return replace(prefix, keys=keys, values=values), np.array(owner)[kept]


def _shares_of_attention(checkpoint: Checkpoint, seen: Prefix, owner: np.ndarray, n: int, prompt: str) -> np.ndarray:
    """The share of the last token's attention that goes to each of n demonstrations, (layers, heads, n)."""
    (record,) = recording.iter_records(checkpoint, seen, [prompt])
    weights = record.weights.numpy()
    sums = [weights[..., : len(owner)][..., owner == i].sum(-1) for i in range(n)]
    return np.stack(sums, axis=-1) if sums else np.zeros((*weights.shape[:2], 0))
