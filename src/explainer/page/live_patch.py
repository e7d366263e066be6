"""The explorable of the laboratory that puts a change of weights in place of the context, and asks other queries."""

from collections.abc import Iterator
from typing import Any

import torch
import traitlets
from torch import Tensor

from explainer.data import tasks
from explainer.explorables.base import Stored, rounded_to
from explainer.models import interventions, scoring
from explainer.models.loading import Checkpoint
from explainer.page.asking import MADE, QUERY, TASKS, Asking, book_checkpoint, shares_of_study, top_three
from explainer.page.live_sweep import MOST, QUERIES, SEED, LiveSweep

_DONORS = (1, 2, 4, 8)
"""Of how many queries the mean patch can be; the first eight of a task are never asked with it."""
_STUDIED = {"foreign": "patch_foreign_mean", "mean": "patch_mean", "icl": "icl"}


class LivePatch(Asking):
    """A context as a change of weights: exact for the query that it was made from, and then given to other queries.

    Traits: `task`; `donors`, of how many queries the mean patch is; `query`, the reader's own; `found`, the answers,
    which belong to the task, the donors and the query in it; `study`, what is stored: for each task the shares of the
    study, and what the checkpoint answers, by the number of patches; `lessons`, the texts.
    """

    name = "live_patch"
    question = "Does the change of weights that replaces the context of one query serve another query?"
    height = 760
    digits = 6

    task = traitlets.Enum(TASKS, "plurals")
    donors = traitlets.Enum(_DONORS, _DONORS[-1])
    query = traitlets.Unicode()
    found = traitlets.Dict()
    study = Stored()
    lessons = traitlets.Dict()

    @traitlets.default("lessons")
    def _lessons(self) -> dict[str, dict]:
        return {
            name: {"pattern": its["pattern"], "right": its["curves"]["right"], "queries": its["queries"]}
            for name, its in LiveSweep.stored().items()
            if name in TASKS
        }

    @traitlets.default("found")
    def _found(self) -> dict[str, Any]:
        return self.study[self.task]["found"][str(self.donors)]

    @traitlets.default("query")
    def _query(self) -> str:
        return self.found["query"]

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """The shares of the study and the checkpoint's answers, by task."""

        def kept(name: str, n: int) -> dict[str, Any]:
            found = _answers(book_checkpoint(), name, n)
            return found | {"error": float(f"{found['error']:.0e}"), "answers": rounded_to(found["answers"], 4)}

        found = {name: {n: kept(name, n) for n in _DONORS} for name in TASKS}
        return {
            name: {"study": shares_of_study("causal-tests", name, _STUDIED), "found": found[name]} for name in TASKS
        }

    def replies(self, checkpoint: Checkpoint, message: dict) -> Iterator[dict]:
        """The answers, once."""
        asked = (message["task"], len(message["donors"]), message["query"])
        yield {"patch": message["patch"], "found": _answers(checkpoint, *asked)}


def _answers(checkpoint: Checkpoint, name: str, donors: int, query: str | None = None) -> dict[str, Any]:
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
        "answers": [top_three(checkpoint, each.softmax(-1)) for each in (zsl[0], in_context[-1], by_own[-1], moved[0])],
        "made": MADE,
    }
