"""The explorable of the laboratory: the checkpoint in the page, asked with and without demonstrations."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import traitlets

from explainer.data import tasks
from explainer.explorables.base import Stored
from explainer.models import recording, scoring
from explainer.models.byte_tokens import is_part
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Prefix
from explainer.page.asking import MADE, MORE_TASKS, Asking, Pair, book_checkpoint, context, lines

_INDUCTION = ((18, 6), (17, 4), (17, 5), (17, 3), (20, 6), (23, 2), (23, 7), (18, 7), (24, 4), (23, 1))
"""The ten strongest induction heads, as the study `head_circuits` finds them: (layer, head) from 0."""


class _Pairs(traitlets.List):
    """At most sixteen pairs of texts."""

    def validate(self, obj: traitlets.HasTraits, value: Any) -> list[list[str]]:
        """Return the value as lists, or raise TraitError."""
        rows = [list(row) for row in super().validate(obj, value)]
        if len(rows) > 16 or not all(len(row) == 2 and all(isinstance(text, str) for text in row) for row in rows):
            raise traitlets.TraitError(f"{self.name} = {value!r}; it must be at most 16 pairs of texts.")
        return rows


class AskedText(Asking):
    """What explorables share in which a reader writes demonstrations and a query.

    Traits: `demonstrations` (x, y), up to sixteen; `query`; `pattern`, what is written before and after x; `hidden`,
    the demonstrations that the query does not see; `found`, the answers, which belong to the texts in `found["of"]`;
    `presets`, tasks with stored answers, by name, each with a button.
    """

    digits = 6

    pattern = traitlets.List(traitlets.Unicode(), minlen=2, maxlen=2)
    demonstrations = _Pairs()
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


class LiveGPT(AskedText):
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
        return {name: preset(name) for name in MORE_TASKS}


def preset(name: str) -> dict[str, Any]:
    """Four demonstrations of a task and a query, with what the checkpoint of the book answers."""
    data = tasks.load(name)
    if name == "capitals":
        *shown, asked = tasks.examples_of_words(data, "France", "Italy", "Egypt", "China", "Japan")
    else:
        shown, (asked,) = tasks.demonstrations(data, 4, seed=0), tasks.queries(data, 1, seed=0)
    demonstrations = [[one.fields["word"], one.answer] for one in shown]
    texts = {"pattern": ["", " ->"], "demonstrations": demonstrations, "query": asked.fields["word"]}
    return texts | {"hidden": [], "found": answers(book_checkpoint(), **texts)}


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
    prompt, asked = pattern[0] + query + pattern[1], (pattern, demonstrations, query)
    log_p = lambda out: _log_probabilities(checkpoint, *asked, out)  # noqa: E731
    answer = log_p(hidden).argmax()
    alone = [None if i in hidden else float(np.exp(log_p([*hidden, i])[answer])) for i in range(len(demonstrations))]
    return {
        "of": [list(pattern), [list(pair) for pair in demonstrations], query, list(hidden)],
        "made": MADE,
        "without": _next(checkpoint, scoring.encode(checkpoint, ""), prompt),
        "with": _next(checkpoint, _seen(checkpoint, pattern, demonstrations, hidden), prompt),
        "alone": alone,
        "looks": np.rint(1000 * _shares_of_attention(checkpoint, *asked, hidden)).astype(int).tolist(),
    }


def _next(checkpoint: Checkpoint, prefix: Prefix, prompt: str) -> list[list]:
    """The five most probable next tokens; the first with its whole character, if it is but the beginning of one."""
    best = [list(pair) for pair in scoring.top_tokens(checkpoint, prefix, prompt, 5)]
    (before,) = scoring.prompt_token_ids(checkpoint, prefix, [prompt])
    ids = [int(scoring.next_token_log_probs(checkpoint, prefix, prompt).argmax())]
    while is_part(text := checkpoint.text(ids)) and len(ids) < 4:
        ((_, logits),) = scoring.row_logits(checkpoint, prefix, [(before, ids)])
        ids.append(int(logits[-1].argmax()))
    if len(ids) > 1 and not is_part(text):
        best[0][0] += f" ({text.strip()})"
    return best


def _shares_of_attention(
    checkpoint: Checkpoint, pattern: Pair, demonstrations: Sequence[Pair], query: str, hidden: Sequence[int]
) -> np.ndarray:
    """The share of the query's last token's attention that goes to each demonstration, in every head."""
    prefix = _seen(checkpoint, pattern, demonstrations, hidden)
    (record,) = recording.iter_records(checkpoint, prefix, [pattern[0] + query + pattern[1]])
    weights = record.weights.numpy()
    owner = np.array([i for i in _owners(checkpoint, pattern, demonstrations) if i not in hidden])
    sums = [weights[..., : len(owner)][..., owner == i].sum(-1) for i in range(len(demonstrations))]
    return np.stack(sums, axis=-1) if sums else np.zeros((*weights.shape[:2], 0))


def _owners(checkpoint: Checkpoint, pattern: Pair, demonstrations: Sequence[Pair]) -> list[int]:
    """The demonstration of each position of the context; the first token is nobody's, which is -1."""
    return [-1, *(i for i, line in enumerate(lines(checkpoint, pattern, demonstrations)) for _ in line)]


def _log_probabilities(
    checkpoint: Checkpoint, pattern: Pair, demonstrations: Sequence[Pair], query: str, hidden: Sequence[int]
) -> np.ndarray:
    """log p of every next token, shape (vocabulary,), when the query does not see the demonstrations `hidden`."""
    kept = _seen(checkpoint, pattern, demonstrations, hidden)
    return scoring.next_token_log_probs(checkpoint, kept, pattern[0] + query + pattern[1])


def _seen(checkpoint: Checkpoint, pattern: Pair, demonstrations: Sequence[Pair], hidden: Sequence[int]) -> Prefix:
    """The demonstrations' keys and values without those of the hidden ones; no position moves."""
    prefix = context(checkpoint, pattern, demonstrations)
    kept = [t for t, i in enumerate(_owners(checkpoint, pattern, demonstrations)) if i not in hidden]
    keys, values = (tuple(x[:, :, kept] for x in layers) for layers in (prefix.keys, prefix.values))
    return replace(prefix, keys=keys, values=values)
