"""The explorable of the laboratory: the checkpoint in the page, asked with and without demonstrations."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from explainer.explorables.base import FOLDER
from explainer.explorables.kernel import Asking

if TYPE_CHECKING:
    from explainer.models.checkpoints import Checkpoint
    from explainer.models.scoring import Prefix

STORED = FOLDER / "live_gpt.json"
"""Tasks of the book with four demonstrations each, a query, and what the checkpoint answers."""
TOP = 5
INDUCTION = ((18, 6), (17, 4), (17, 5), (17, 3), (20, 6), (23, 2), (23, 7), (18, 7), (24, 4), (23, 1))
"""The ten strongest induction heads, as the study `head_circuits` finds them: (layer, head) from 0."""


class Pairs(traitlets.List):
    """At most sixteen pairs of texts."""

    def validate(self, obj: traitlets.HasTraits, value: Any) -> list[list[str]]:
        """Return the value as lists, or raise TraitError."""
        rows = [list(row) for row in super().validate(obj, value)]
        if len(rows) > 16 or not all(len(row) == 2 and all(isinstance(text, str) for text in row) for row in rows):
            raise traitlets.TraitError(f"{self.name} = {value!r}; it must be at most 16 pairs of texts.")
        return rows


def _presets() -> dict[str, dict]:
    return json.loads(STORED.read_text("utf-8"))


def _of_first(name: str) -> Any:
    return lambda self: next(iter(_presets().values()))[name]


class LiveGPT(Asking):
    """The checkpoint's next token with and without demonstrations, any of which is hidden from the query.

    Traits: `demonstrations` (x, y), up to sixteen; `query`; `pattern`, what is written before and after x; `hidden`,
    the demonstrations that the query does not see; `found`, the answers, which belong to the texts in `found["of"]`;
    `head`, counted from 1, whose attention is drawn, 0 for the mean over heads; `induction`, heads that are marked;
    `presets`, tasks with stored answers, by name, each with a button; `brief`, whether only the two answers are drawn,
    right below the text, and nothing about attention.
    """

    name = "live_gpt"
    question = "What does a real GPT expect next, and which of your demonstrations does it need?"
    height = 1330
    made = "Stored: computed with Python beforehand; live where you start the model in the page."

    pattern = traitlets.List(traitlets.Unicode(), minlen=2, maxlen=2).tag(sync=True, explorable=True)
    demonstrations = Pairs().tag(sync=True, explorable=True)
    query = traitlets.Unicode().tag(sync=True, explorable=True)
    hidden = traitlets.List(traitlets.Int(min=0)).tag(sync=True, explorable=True)
    found = traitlets.Dict().tag(sync=True, explorable=True)
    presets = traitlets.Dict().tag(sync=True, explorable=True)
    head = traitlets.Int(0, min=0, max=9).tag(sync=True, explorable=True)
    induction = traitlets.List([list(head) for head in INDUCTION]).tag(sync=True, explorable=True)

    brief = traitlets.Bool(False).tag(sync=True, explorable=True)

    _pattern = traitlets.default("pattern")(_of_first("pattern"))
    _demonstrations = traitlets.default("demonstrations")(_of_first("demonstrations"))
    _query = traitlets.default("query")(_of_first("query"))
    _found = traitlets.default("found")(_of_first("found"))

    @traitlets.default("presets")
    def _all(self) -> dict[str, dict]:
        return _presets()

    def __init__(self, checkpoint: "Checkpoint | None" = None, **traits: Any):
        """Take the traits; with `brief` it needs less room."""
        super().__init__(checkpoint, **traits)
        if self.brief:
            self.height = 650

    def replies(self, checkpoint: Any, message: dict) -> Iterator[dict]:
        """The answers, once."""
        asked = (message[name] for name in ("pattern", "demonstrations", "query", "hidden"))
        yield {"id": message["ask"], "found": answers(checkpoint, *asked)}


def answers(
    checkpoint: Any,
    pattern: Sequence[str],
    demonstrations: Sequence[Sequence[str]],
    query: str,
    hidden: Sequence[int] = (),
) -> dict[str, Any]:
    """What LiveGPT finds, by the checkpoint in Python.

    `without` and `with` are the most probable next tokens without demonstrations and with those that are not hidden;
    `alone[i]` is the probability of the answer `with[0]` when demonstration i is hidden, too (None where it is);
    `looks` has the shares of attention of each layer and head, in thousandths.
    """
    from explainer.models import scoring  # noqa: PLC0415 - a page that shows stored answers needs no model

    prompt, asked = pattern[0] + query + pattern[1], (pattern, demonstrations, query)
    best = scoring.top_tokens(checkpoint, seen(checkpoint, pattern, demonstrations, hidden), prompt, TOP)
    log_p = lambda out: log_probabilities(checkpoint, *asked, out)  # noqa: E731
    answer = log_p(hidden).argmax()
    alone = [None if i in hidden else float(np.exp(log_p([*hidden, i])[answer])) for i in range(len(demonstrations))]
    return {
        "of": [list(pattern), [list(pair) for pair in demonstrations], query, list(hidden)],
        "made": "computed with Python and stored with the book",
        "without": [list(pair) for pair in scoring.top_tokens(checkpoint, scoring.encode(checkpoint, ""), prompt, TOP)],
        "with": [list(pair) for pair in best],
        "alone": alone,
        "looks": np.rint(1000 * shares_of_attention(checkpoint, *asked, hidden)).astype(int).tolist(),
    }


def shares_of_attention(
    checkpoint: Any, pattern: Sequence[str], demonstrations: Sequence[Sequence[str]], query: str, hidden: Sequence[int]
) -> np.ndarray:
    """The share of the query's last token's attention that goes to each demonstration, in every head.

    The rest goes to the first token and to the query itself, so that the sum over demonstrations is the gate g of
    `duality.split_attention`, with the first token among the own ones.

    Shapes: (L, heads, demonstrations).
    """
    import torch  # noqa: PLC0415 - a page that shows stored answers needs no model
    from transformers.cache_utils import DynamicCache  # noqa: PLC0415

    from explainer.models.architectures import CACHE  # noqa: PLC0415

    prefix, model = seen(checkpoint, pattern, demonstrations, hidden), checkpoint.model
    cache = DynamicCache()
    for layer, (keys, values) in enumerate(zip(prefix.keys, prefix.values, strict=True)):
        cache.update(keys, values, layer)
    ids = torch.tensor([checkpoint.tokenize(pattern[0] + query + pattern[1])], device=checkpoint.device)
    positions = torch.arange(len(prefix), len(prefix) + ids.shape[1], device=checkpoint.device)[None]
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")  # the only one that returns its weights
    try:
        with torch.inference_mode():
            done = model(ids, position_ids=positions, output_attentions=True, **{CACHE: cache})
    finally:
        model.set_attn_implementation(before)
    weights = torch.stack(done.attentions)[:, 0, :, -1].cpu().numpy()
    owner = np.array([i for i in _owners(checkpoint, pattern, demonstrations) if i not in hidden])
    sums = [weights[..., : len(owner)][..., owner == i].sum(-1) for i in range(len(demonstrations))]
    return np.stack(sums, axis=-1) if sums else np.zeros((*weights.shape[:2], 0))


def _owners(checkpoint: Any, pattern: Sequence[str], demonstrations: Sequence[Sequence[str]]) -> list[int]:
    """The demonstration of each position of the context; the first token is nobody's, which is -1."""
    pieces = [checkpoint.tokenize(_written(pattern, pair)) for pair in demonstrations]
    return [-1, *(i for i, piece in enumerate(pieces) for _ in piece)]


def _written(pattern: Sequence[str], pair: Sequence[str]) -> str:
    return f"{pattern[0]}{pair[0]}{pattern[1]} {pair[1]}\n"


def log_probabilities(
    checkpoint: Any, pattern: Sequence[str], demonstrations: Sequence[Sequence[str]], query: str, hidden: Sequence[int]
) -> np.ndarray:
    """log p of every next token, shape (vocabulary,), when the query does not see the demonstrations `hidden`."""
    from explainer.models import scoring  # noqa: PLC0415 - as above

    kept = seen(checkpoint, pattern, demonstrations, hidden)
    return scoring.next_token_log_probs(checkpoint, kept, pattern[0] + query + pattern[1])


def seen(
    checkpoint: Any, pattern: Sequence[str], demonstrations: Sequence[Sequence[str]], hidden: Sequence[int]
) -> "Prefix":
    """The demonstrations' keys and values without those of the hidden ones; no position moves."""
    from explainer.models import scoring  # noqa: PLC0415 - as above

    ids = [token for pair in demonstrations for token in checkpoint.tokenize(_written(pattern, pair))]
    prefix = scoring.encode(checkpoint, [checkpoint.first_token_id, *ids])
    kept = [t for t, i in enumerate(_owners(checkpoint, pattern, demonstrations)) if i not in hidden]
    keys, values = (tuple(x[:, :, kept] for x in layers) for layers in (prefix.keys, prefix.values))
    return replace(prefix, keys=keys, values=values)


def store() -> None:
    """Write STORED: the word pairs of the book, answered by the starter checkpoint in float32."""
    from explainer.data import tasks  # noqa: PLC0415
    from explainer.models import checkpoints  # noqa: PLC0415

    checkpoint, presets = checkpoints.load(device="cpu"), {}
    for name in ("capitals", "plurals", "past", "antonyms"):
        data = tasks.load(name)
        if name == "capitals":
            *shown, query = tasks.named(data, "France", "Italy", "Egypt", "China", "Japan")
        else:
            shown, (query,) = tasks.demonstrations(data, 4, seed=0), tasks.queries(data, 1, seed=0)
        demonstrations = [[one.fields["word"], one.answer] for one in shown]
        pattern, asked = ["", " ->"], query.fields["word"]
        found = answers(checkpoint, pattern, demonstrations, asked)
        presets[name] = {
            "pattern": pattern,
            "demonstrations": demonstrations,
            "query": asked,
            "hidden": [],
            "found": _rounded(found),
        }
    STORED.write_text(
        "{\n" + ",\n".join(f"{json.dumps(k)}: {_compact(v)}" for k, v in presets.items()) + "\n}\n",
        "utf-8",
    )


def _compact(preset: dict[str, Any]) -> str:
    return json.dumps(preset, ensure_ascii=False, separators=(",", ":"))


def _rounded(found: dict[str, Any]) -> dict[str, Any]:
    """Probabilities with six digits: what is below them depends on the processor."""
    tops = {name: [[token, round(p, 6)] for token, p in found[name]] for name in ("without", "with")}
    return found | tops | {"alone": [round(p, 6) for p in found["alone"]]}
