"""The explorables that ask the checkpoint about a task: how many demonstrations, and what carries what they do."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import traitlets
from jaxtyping import Float
from torch import Tensor

from explainer.compare import controls
from explainer.data import tasks
from explainer.explorables.explorable_base import Stored, rounded_to
from explainer.models import interventions, scoring
from explainer.models.loading import Checkpoint
from explainer.page import live_base
from explainer.page.live_base import MORE_TASKS, QUERY, TASKS, LiveExplorable, LiveTask, Pair, book_checkpoint
from explainer.results.published import results

MOST, QUERIES, SEED = 16, 30, 0
"""Demonstrations and queries of a task, and the seed that draws them."""
_CURVES = {"right": controls.own, "shuffled": controls.LESSONS["shuffled"], "foreign": controls.LESSONS["foreign"]}
_DONORS = (1, 2, 4, 8)
"""Of how many queries the mean patch can be; the first eight of a task are never asked with it."""
_OF_PATCH = {"foreign": "patch_foreign_mean", "mean": "patch_mean", "icl": "icl"}
_DEMONSTRATIONS = 8
_OF_VECTOR = {"icl": "icl", "vector": "vector", "shuffled": "vector_shuffled"}


class LiveSweep(LiveExplorable):
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
        return {"task": self.task, "n": len(lesson["queries"]), "counts": lesson["counts"], "made": live_base.MADE}

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """The texts of each task and the checkpoint's counts of each curve."""
        lessons = {name: _lesson(name) for name in MORE_TASKS}
        counts = lambda its: {kind: _counts(book_checkpoint(), its, kind) for kind in _CURVES}  # noqa: E731
        return {name: its | {"counts": counts(its)} for name, its in lessons.items()}

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
    return scoring.exact_match(checkpoint, live_base.context(checkpoint, pattern, demonstrations), prompts, answers)


class LivePatch(LiveTask):
    """A context as a change of weights: exact for the query that it was made from, and then given to other queries.

    Traits of its own: `donors`, of how many queries the mean patch is; `lessons`, the texts. In `study` each task has
    the shares of the study, and what the checkpoint answers, by the number of patches.
    """

    name = "live_patch"
    question = "Does the change of weights that replaces the context of one query serve another query?"
    height = 760
    chosen = "donors"
    digits = 6

    donors = traitlets.Enum(_DONORS, _DONORS[-1])
    lessons = traitlets.Dict()

    @traitlets.default("lessons")
    def _lessons(self) -> dict[str, dict]:
        return {
            name: {"pattern": its["pattern"], "right": its["curves"]["right"], "queries": its["queries"]}
            for name, its in LiveSweep.stored().items()
            if name in TASKS
        }

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """The shares of the study and the checkpoint's answers, by task."""

        def kept(name: str, n: int) -> dict[str, Any]:
            found = _patched(book_checkpoint(), name, n)
            return found | {"error": float(f"{found['error']:.0e}"), "answers": rounded_to(found["answers"], 4)}

        return {
            name: {
                "study": _shares_of_study("causal-tests", name, _OF_PATCH),
                "found": {n: kept(name, n) for n in _DONORS},
            }
            for name in TASKS
        }

    def replies(self, checkpoint: Checkpoint, message: dict) -> Iterator[dict]:
        """The answers, once."""
        asked = (message["task"], len(message["donors"]), message["query"])
        yield {"patch": message["patch"], "found": _patched(checkpoint, *asked)}


def _patched(checkpoint: Checkpoint, name: str, donors: int, query: str | None = None) -> dict[str, Any]:
    """What LivePatch finds, by the checkpoint in Python, in float32.

    `right` counts right first tokens of the queries that are no donors: without context, in context, and without it
    under the mean patch of the donors; `carried` those that are wrong under it and are what a donor answers in context;
    `error` is the largest difference of a logit between a donor under its own patch and in context; `answers` are the
    next tokens after the reader's query in the same three ways, and under its own patch.
    """
    data, query = tasks.load(name), QUERY[name] if query is None else query
    shown = tasks.demonstrations(data, MOST, SEED)
    prefix = scoring.encode(checkpoint, scoring.context_ids(checkpoint, data.task, shown)[0])
    queries = tasks.queries(data, QUERIES, SEED)
    asked, prompt = queries[_DONORS[-1] :], data.task.template.replace("{word}", query)
    own = [*map(data.task.prompt, queries[:donors]), prompt]
    others = [prompt, *map(data.task.prompt, asked)]
    passes = interventions.after_context, interventions.without_context
    after, without = (of(checkpoint, prefix, own) for of in passes)
    after_others, without_others = (of(checkpoint, prefix, others) for of in passes)
    patches = interventions.context_weight_patches(after, without)

    def under(asked: interventions.Pass, weights: Tensor) -> Tensor:
        return asked.run(interventions.with_weight_patches(asked.layers, patches, weights)).logits

    mean = torch.tensor([[1 / donors] * donors + [0.0]]).expand(len(others), -1)
    in_context, by_own = after.run().logits, under(without, torch.eye(len(own)))
    zsl, icl, moved = without_others.run().logits, after_others.run().logits, under(without_others, mean)
    wanted = scoring.continuation_ids(checkpoint, others[1:], [f" {one.answer}" for one in asked])
    first, best = torch.tensor([ids[0] for ids in wanted]), moved[1:].argmax(-1)
    given = in_context[:-1].argmax(-1)
    return {
        "task": name,
        "n": donors,
        "of": len(asked),
        "right": [int((logits[1:].argmax(-1) == first).sum()) for logits in (zsl, icl, moved)],
        "carried": int(((best != first) & torch.isin(best, given)).sum()),
        "error": (in_context - by_own).abs().max().item(),
        "query": query,
        "answers": [
            _top_three(checkpoint, each.softmax(-1)) for each in (zsl[0], in_context[-1], by_own[-1], moved[0])
        ],
        "made": live_base.MADE,
    }


class LiveVector(LiveTask):
    """What demonstrations change in the residual stream, added to a query that has none, after a layer of choice.

    Traits of its own: `lesson`, the demonstrations as lines "x -> y", at first those of the task; `layer`, counted from
    1. In `study` each task has demonstrations, a query, the answers and the shares of the study.
    """

    name = "live_vector"
    question = "Does one vector carry your demonstrations to a prompt without any?"
    height = 930

    lesson = traitlets.Unicode()
    layer = traitlets.Int(21, min=1, max=30)  # where the vector answers most on most draws of the study

    @traitlets.default("lesson")
    def _lesson(self) -> str:
        return self.study[self.task]["lesson"]

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """The demonstrations, a query, the checkpoint's answers and the shares of the study, by task."""
        measured = {}
        for name in TASKS:
            shown = tasks.demonstrations(tasks.load(name), _DEMONSTRATIONS, SEED)
            pairs = [(one.fields["word"], one.answer) for one in shown]
            measured[name] = {
                "lesson": "\n".join(f"{x} -> {y}" for x, y in pairs),
                "query": QUERY[name],
                "study": _shares_of_study("rival", name, _OF_VECTOR),
                "found": _with_vectors(book_checkpoint(), ("", " ->"), pairs, QUERY[name]),
            }
        return measured

    def replies(self, checkpoint: Checkpoint, message: dict) -> Iterator[dict]:
        """The answers, once."""
        asked = (message[name] for name in ("pattern", "demonstrations", "query"))
        yield {"vector": message["vector"], "found": _with_vectors(checkpoint, *asked)}


def _with_vectors(checkpoint: Checkpoint, pattern: Pair, demonstrations: Sequence[Pair], query: str) -> dict[str, Any]:
    """What LiveVector finds, by the checkpoint in Python.

    `without` and `with` are the three most probable next tokens without demonstrations and with them, `layers` those
    without them when the vector of a layer is added after it. `p` has the probability of the answer `with[0]` without,
    with, and by layer with the vector, and with that of the same inputs after answers that moved on by one.
    """
    prompt = [pattern[0] + query + pattern[1]]
    prefix = live_base.context(checkpoint, pattern, demonstrations)
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
        "without": _top_three(checkpoint, zsl),
        "with": _top_three(checkpoint, icl),
        "layers": [_top_three(checkpoint, p) for p in own],
        "p": [zsl[best].item(), icl[best].item(), own[:, best].tolist(), other[:, best].tolist()],
        "made": live_base.MADE,
    }


def _vectors(checkpoint: Checkpoint, pattern: Pair, demonstrations: Sequence[Pair]) -> Float[Tensor, "layers d"]:
    """The mean over demonstrations of what all the others change, where each is asked as a query."""
    changes = []
    for i, (x, _) in enumerate(demonstrations):
        prefix = live_base.context(checkpoint, pattern, [*demonstrations[:i], *demonstrations[i + 1 :]])
        after, without = (
            of(checkpoint, prefix, [pattern[0] + x + pattern[1]]).run().stream[0]
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
        edits.append(interventions.at_last(layer.block, added.add))
    return times.run(edits).logits


def _top_three(checkpoint: Checkpoint, p: Float[Tensor, " vocab"]) -> list[list]:
    """The three most probable next tokens, as texts, with their probabilities."""
    best = p.topk(3)
    return [[checkpoint.text([i]), share] for i, share in zip(best.indices.tolist(), best.values.tolist(), strict=True)]


def _shares_of_study(grid: str, name: str, changes: Mapping[str, str]) -> dict[str, float]:
    """From a published grid, a task's shares of right first tokens under interventions, by a short name for each."""
    answered = results(grid, "queries", task=name).groupby("intervention")["correct"].mean()
    return {short: round(float(answered[intervention]), 3) for short, intervention in changes.items()}
