"""The explorable of the laboratory that puts a change of weights in place of the context, and asks other queries."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import traitlets

from explainer.explorables import live_sweep
from explainer.explorables.base import FOLDER
from explainer.explorables.kernel import Asking
from explainer.explorables.live_experiment import own_query

if TYPE_CHECKING:
    from explainer.models.checkpoints import Checkpoint

STORED = FOLDER / "live_patch.json"
"""For each task the shares of the study, and what the checkpoint answers, by the number of patches."""
DONORS = (1, 2, 4, 8)
"""Of how many queries the mean patch can be; the first eight of a task are never asked with it."""
TOP, SEED = 3, 0
_STUDIED = {"foreign": "patch_foreign_mean", "mean": "patch_mean", "icl": "icl"}
_MADE = "computed with Python and stored with the book"


def stored() -> dict[str, dict]:
    """What is stored, by task: `study`, and `found` by number of patches."""
    return json.loads(STORED.read_text("utf-8"))


class LivePatch(Asking):
    """A context as a change of weights: exact for the query that it was made from, and then given to other queries.

    Traits: `task`; `donors`, of how many queries the mean patch is; `query`, the reader's own; `found`, the answers,
    which belong to the task, the donors and the query in it; `study`, what is stored; `lessons`, the texts.
    """

    name = "live_patch"
    question = "Does the change of weights that replaces the context of one query serve another query?"
    height = 760
    made = "Stored: computed with Python beforehand; live where you start the model in the page."

    task = traitlets.Unicode("plurals").tag(sync=True, explorable=True)
    donors = traitlets.Enum(DONORS, DONORS[-1]).tag(sync=True, explorable=True)
    query = traitlets.Unicode().tag(sync=True, explorable=True)
    found = traitlets.Dict().tag(sync=True, explorable=True)
    study = traitlets.Dict().tag(sync=True, explorable=True)
    lessons = traitlets.Dict().tag(sync=True, explorable=True)

    @traitlets.default("lessons")
    def _lessons(self) -> dict[str, dict]:
        return {
            name: {"pattern": its["pattern"], "right": its["curves"]["right"], "queries": its["queries"]}
            for name, its in live_sweep.lessons().items()
        }

    @traitlets.default("study")
    def _study(self) -> dict[str, dict]:
        return stored()

    @traitlets.default("found")
    def _found(self) -> dict[str, Any]:
        return self.study[self.task]["found"][str(self.donors)]

    @traitlets.default("query")
    def _query(self) -> str:
        return self.found["query"]

    @traitlets.validate("task")
    def _known(self, proposal: dict) -> str:
        if proposal["value"] not in self.study:
            raise traitlets.TraitError(f"task = {proposal['value']!r}; it must be one of {', '.join(self.study)}.")
        return proposal["value"]

    def replies(self, checkpoint: "Checkpoint", message: dict) -> Iterator[dict]:
        """The answers, once."""
        asked = (message["task"], len(message["donors"]), message["query"])
        yield {"patch": message["patch"], "found": measured(checkpoint, *asked)}


def measured(checkpoint: "Checkpoint", name: str, donors: int, query: str | None = None) -> dict:
    """What LivePatch finds, by the checkpoint in Python, in float32.

    `right` counts right first tokens of the queries that are no donors: without context, in context, and without it
    under the mean patch of the donors; `carried` those that are wrong under it and are what a donor answers in
    context; `error` is the largest difference of a logit between a donor under its own patch and in context;
    `answers` are the next tokens after the reader's query: without context, in context, under its own patch, and
    under the mean patch.

    Source: `interventions.context_patches`.
    """
    import torch  # noqa: PLC0415 - a page that shows stored answers needs no model

    from explainer.data import tasks  # noqa: PLC0415
    from explainer.models import interventions, scoring  # noqa: PLC0415

    data, query = tasks.load(name), own_query(name) if query is None else query
    shown = tasks.demonstrations(data, live_sweep.MOST, SEED)
    prefix = scoring.encode(checkpoint, scoring.context_ids(checkpoint, data.task, shown)[0])
    queries = tasks.queries(data, live_sweep.QUERIES, SEED)
    asked, prompt = queries[DONORS[-1] :], data.task.template.replace("{word}", query)
    own = [*map(data.task.prompt, queries[:donors]), prompt]
    others = [prompt, *map(data.task.prompt, asked)]
    passes = interventions.after_context, interventions.without_context
    after, without = (of(checkpoint, prefix, own) for of in passes)
    after_others, without_others = (of(checkpoint, prefix, others) for of in passes)
    patches = interventions.context_patches(after, without)

    def under(asked: interventions.Pass, weights: torch.Tensor) -> torch.Tensor:
        return asked.run(interventions.patched(asked.layers, patches, weights)).logits

    mean = torch.tensor([[1 / donors] * donors + [0.0]]).expand(len(others), -1)
    in_context, by_own = after.run().logits, under(without, torch.eye(len(own)))
    zsl, icl, moved = without_others.run().logits, after_others.run().logits, under(without_others, mean)
    answers = scoring.continuation_ids(checkpoint, others[1:], [f" {one.answer}" for one in asked])
    first, best = torch.tensor([ids[0] for ids in answers]), moved[1:].argmax(-1)
    given = in_context[:-1].argmax(-1)
    return {
        "task": name,
        "n": donors,
        "of": len(asked),
        "right": [int((logits[1:].argmax(-1) == first).sum()) for logits in (zsl, icl, moved)],
        "carried": int(((best != first) & torch.isin(best, given)).sum()),
        "error": (in_context - by_own).abs().max().item(),
        "query": query,
        "answers": [_top(checkpoint, logits) for logits in (zsl[0], in_context[-1], by_own[-1], moved[0])],
        "made": _MADE,
    }


def _top(checkpoint: "Checkpoint", logits: Any) -> list[list]:
    best = logits.softmax(-1).topk(TOP)
    tokens = map(checkpoint.tokenizer.decode, best.indices.tolist())
    return [list(each) for each in zip(tokens, best.values.tolist(), strict=True)]


def shares(name: str) -> dict[str, float]:
    """From the published causal study of a task, the shares of right first tokens that the figure compares with."""
    from explainer.results.published import results  # noqa: PLC0415 - as above

    answered = results("causal", "queries", task=name).groupby("intervention")["correct"].mean()
    return {short: round(float(answered[intervention]), 3) for short, intervention in _STUDIED.items()}


def store() -> None:
    """Write STORED: the word pairs of the book, answered by the starter checkpoint in float32."""
    from explainer.models import checkpoints  # noqa: PLC0415 - as above

    checkpoint, lines = checkpoints.load(device="cpu"), []
    for name in live_sweep.lessons():
        found = {n: _rounded(measured(checkpoint, name, n)) for n in DONORS}
        kept = json.dumps({"study": shares(name), "found": found}, ensure_ascii=False, separators=(",", ":"))
        lines.append(f"{json.dumps(name)}: {kept}")
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def _rounded(found: dict[str, Any]) -> dict[str, Any]:
    """What is below these digits depends on the processor."""
    answers = [[[token, round(p, 4)] for token, p in top] for top in found["answers"]]
    return found | {"error": float(f"{found['error']:.0e}"), "answers": answers}
