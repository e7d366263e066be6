"""The explorable of the laboratory that compares: zero-shot, in context, and fine-tuned or in another context."""

import json
import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import traitlets

from explainer.explorables import live_sweep
from explainer.explorables.base import FOLDER, Number
from explainer.explorables.kernel import Asking

if TYPE_CHECKING:
    from explainer.compare.comparison import Observed
    from explainer.models.checkpoints import Checkpoint
    from explainer.models.finetuning import FineTuned

STORED = FOLDER / "live_experiment.json"
"""For each task an order of the demonstrations, floors and ceilings of the study, and what the checkpoint answers."""
UPDATES = FOLDER / "updates"
"""For each task the update dW by fine-tuning, in factors of low rank, and `updates.json`, which names the files."""
SECONDS = ("fine-tuned", "reordered", "shuffled", "foreign")
"""The second lesson: fine-tuning on the demonstrations, or a context in another order, with wrong answers, foreign."""
RANK, EPOCHS, LR, SEED, TOP = 4, 10, 5e-4, 0, 3
_MADE = "computed with Python and stored with the book"


def stored() -> dict[str, dict]:
    """What is stored, by task: `order`, and `bounds` and `found` by second lesson."""
    return json.loads(STORED.read_text("utf-8"))


class LiveExperiment(Asking):
    """The paper's comparison: what the demonstrations change in context, and what a second lesson changes.

    Traits: `task`; `second`, one of SECONDS; `scale`, what the update of fine-tuning is multiplied with; `query`, the
    reader's own; `found`, the answers, which belong to the task, the second lesson, the scale and the query in it;
    `study`, what is stored; `lessons`, the texts.
    """

    name = "live_experiment"
    question = "Do the demonstrations change the model as fine-tuning on them does?"
    height = 1000
    made = "Stored: computed with Python beforehand; live where you start the model in the page."

    task = traitlets.Unicode("capitals").tag(sync=True, explorable=True)
    second = traitlets.Enum(SECONDS, SECONDS[0]).tag(sync=True, explorable=True)
    scale = Number(1.0, min=0, max=2).tag(sync=True, explorable=True)
    query = traitlets.Unicode().tag(sync=True, explorable=True)
    found = traitlets.Dict().tag(sync=True, explorable=True)
    study = traitlets.Dict().tag(sync=True, explorable=True)
    lessons = traitlets.Dict().tag(sync=True, explorable=True)

    @traitlets.default("lessons")
    def _lessons(self) -> dict[str, dict]:
        return {name: {part: its[part] for part in ("pattern", "curves", "queries")} for name, its in _texts().items()}

    @traitlets.default("study")
    def _study(self) -> dict[str, dict]:
        return stored()

    @traitlets.default("found")
    def _found(self) -> dict[str, Any]:
        return self.study[self.task]["found"][self.second]

    @traitlets.default("query")
    def _query(self) -> str:
        return self.found["query"]

    @traitlets.validate("task")
    def _known(self, proposal: dict) -> str:
        if proposal["value"] not in self.study:
            raise traitlets.TraitError(f"task = {proposal['value']!r}; it must be one of {', '.join(self.study)}.")
        return proposal["value"]

    def replies(self, checkpoint: "Checkpoint", message: dict) -> Iterator[dict]:
        """The comparison, once."""
        asked = (message[name] for name in ("task", "lesson", "scale", "query"))
        yield {"experiment": message["experiment"], "found": measured(checkpoint, *asked)}


def _texts() -> dict[str, dict]:
    return live_sweep.lessons()


def own_query(name: str) -> str:
    """The query of a task that is shown first: one of no demonstration and of none of the thirty queries."""
    return {"capitals": "Japan", "plurals": "bus", "past": "sing", "antonyms": "cold"}[name]


def measured(checkpoint: "Checkpoint", name: str, second: str, scale: float = 1, query: str | None = None) -> dict:
    """What LiveExperiment finds, by the checkpoint in Python, in float32.

    `right` counts exact matches without demonstrations, in context, and after the second lesson; `repaired` those that
    are wrong without demonstrations; `sim_aou` is SimAOU of the two changes in each layer, mean over queries;
    `sim_am_delta` is SimAM of the changes of attention maps, mean over queries, layers and heads; `answers` are the
    most probable next tokens after the reader's own query. What is not defined, because nothing changes, is None.
    """
    from explainer.compare import controls  # noqa: PLC0415
    from explainer.data import tasks  # noqa: PLC0415 - a page that shows stored answers needs no data
    from explainer.models import scoring  # noqa: PLC0415
    from explainer.theory import changes, metrics  # noqa: PLC0415

    data, draw = tasks.load(name), (live_sweep.MOST, SEED)
    asked = tasks.queries(data, live_sweep.QUERIES, SEED)
    query = own_query(name) if query is None else query
    context = lambda its: scoring.context_ids(checkpoint, *its)[0]  # noqa: E731
    own = context(controls.own(data, *draw))
    observe = partial(_observed, task=data.task, asked=asked, query=query)
    zsl, icl = observe(checkpoint, ""), observe(checkpoint, own)
    tokens = [len(own), 0]
    if second == "fine-tuned":
        with update(checkpoint, name, scale).applied() as tuned:
            other = observe(tuned, "")
    else:
        again = context(_contexts(controls)[second](data, *draw))
        other, tokens[1] = observe(checkpoint, again), len(again)
    (h_zsl, h_icl, h_other), (m_zsl, m_icl, m_other) = (
        [getattr(seen, field) for seen, _ in (zsl, icl, other)] for field in ("outputs", "own_scores")
    )
    maps = changes.of_scores(m_zsl, [m_icl, m_other], tokens)["sim_am_delta"]
    correct = [seen.correct for seen, _ in (zsl, icl, other)]
    repaired = [int((~correct[0] & its).sum()) for its in (*correct[1:], correct[1] & correct[2])]
    return {
        "task": name,
        "second": second,
        "scale": scale,
        "n": len(asked),
        "right": [int(its.sum()) for its in correct],
        "repaired": repaired,
        "sim_aou": [_known(x) for x in metrics.sim_aou(h_zsl, h_icl, h_other).nanmean(0).tolist()],
        "sim_am_delta": _known(maps[0, 1].nanmean().item()),
        "query": query,
        "answers": [top for _, top in (zsl, icl, other)],
        "made": _MADE,
    }


def _known(x: float) -> float | None:
    """None for what is not defined: JSON has no NaN."""
    return x if math.isfinite(x) else None


def _contexts(controls: Any) -> dict:
    return {name: getattr(controls, name) for name in SECONDS[1:]}


def _observed(model: "Checkpoint", context: Any, *, task: Any, asked: list, query: str) -> tuple["Observed", list]:
    """What is seen at thirty queries after a context, and the next tokens after the reader's own."""
    from explainer.compare import comparison  # noqa: PLC0415 - as above
    from explainer.models import scoring  # noqa: PLC0415

    prefix = scoring.encode(model, context)
    prompt = task.template.replace("{word}", query)
    top = [list(pair) for pair in scoring.top_tokens(model, prefix, prompt, TOP)]
    return comparison.observe(model, prefix, task, asked), top


# The updates


def update(checkpoint: "Checkpoint", name: str, scale: float = 1) -> "FineTuned":
    """The stored update of a task, times a scale."""
    from safetensors.torch import load_file  # noqa: PLC0415 - as above

    from explainer.models import architectures  # noqa: PLC0415
    from explainer.models.finetuning import FineTuned, KeysValues, keys_values  # noqa: PLC0415

    factors = {part: its.float() for part, its in load_file(UPDATES / f"{name}.safetensors").items()}
    dW = scale * (factors["in"] @ factors["out"]).mT  # 2 L matrices, keys and values by turns
    layers = [keys_values(layer) for layer in architectures.architecture(checkpoint.model).layers]
    put = lambda matrix, like: matrix.view_as(like).to(like.device)  # noqa: E731
    its = tuple(
        KeysValues(put(K, W.key_weight), None, put(V, W.value_weight), None)
        for K, V, W in zip(dW[::2], dW[1::2], layers, strict=True)
    )
    return FineTuned(checkpoint, its, LR, (), (), float("nan"), None)


def trained(checkpoint: "Checkpoint", name: str) -> "FineTuned":
    """Ten epochs on the sixteen demonstrations, as in the chapter `floors_and_ceilings`, for its first seed."""
    from explainer.data import tasks  # noqa: PLC0415 - as above
    from explainer.models import finetuning, lockstep  # noqa: PLC0415

    data = tasks.load(name)
    shown = tasks.demonstrations(data, live_sweep.MOST, SEED)
    once = finetuning.training_ids(checkpoint, data.task, shown)
    return finetuning.fine_tune(checkpoint, lockstep.epochs(once, EPOCHS, SEED), LR, progress=True)


def factors(finetuned: "FineTuned", rank: int) -> dict:
    """`in`, (2 L, d, rank), and `out`, (2 L, rank, keys), in float16; their product is `finetuning.truncated`."""
    import torch  # noqa: PLC0415 - as above

    stacked = [W.flatten(0, 1) for layer in finetuned.update for W in (layer.key_weight, layer.value_weight)]
    U, s, Vh = torch.linalg.svd(torch.stack(stacked), full_matrices=False)
    root = s[:, :rank].sqrt()
    into, out = Vh[:, :rank].mT * root[:, None], (U[..., :rank] * root[:, None]).mT
    return {"in": into.half().contiguous(), "out": out.half().contiguous()}


def store_updates() -> None:
    """Write UPDATES with the starter checkpoint in float32."""
    from safetensors.torch import save  # noqa: PLC0415 - as above

    from explainer.data.package_index import sha256_of  # noqa: PLC0415
    from explainer.models import checkpoints  # noqa: PLC0415

    checkpoint, entries = checkpoints.load(device="cpu"), {}
    UPDATES.mkdir(exist_ok=True)
    for name in _texts():
        path = UPDATES / f"{name}.safetensors"
        path.write_bytes(save(factors(trained(checkpoint, name), RANK)))
        entries[name] = {"name": path.name, "size": path.stat().st_size, "sha256": sha256_of(path)}
    (UPDATES / "updates.json").write_text(json.dumps(entries, indent=1) + "\n", "utf-8")


# The study


def bounds(name: str) -> dict[str, dict[str, float]]:
    """Floor and ceiling of SimAOU by second lesson, from the published study of a task.

    Of fine-tuning: with training on another task; and of two trainings, the second on other examples of the task. Of a
    context: with a context of made-up words; and in another order.
    """
    from explainer.results import agreement  # noqa: PLC0415 - as above
    from explainer.results.agreement import Which  # noqa: PLC0415

    pairs = agreement.pairs("alike", task=name)
    ICL, FT = Which("ICL"), Which("FT", epochs=EPOCHS)

    def mean(one: Which, other: Which) -> float:
        return round(agreement.by_task(agreement.between(pairs, one, other), "sim_aou")[name].estimate, 3)

    foreign = mean(ICL, Which("FT", agreement.FOREIGN, EPOCHS))
    trainings = {"floor": foreign, "ceiling": mean(FT, Which("FT", "other", EPOCHS))}
    contexts = {
        "floor": mean(ICL, Which("ICL", "nonsense")),
        "ceiling": mean(ICL, Which("ICL", "reordered")),
    }
    return {second: trainings if second == "fine-tuned" else contexts for second in SECONDS}


def order(name: str) -> list[int]:
    """The order of the demonstrations in the second lesson `reordered`."""
    from explainer.compare import controls  # noqa: PLC0415
    from explainer.data import tasks  # noqa: PLC0415 - as above

    data, draw = tasks.load(name), (live_sweep.MOST, SEED)
    (_, own), (_, again) = controls.own(data, *draw), controls.reordered(data, *draw)
    return [own.index(example) for example in again]


def store() -> None:
    """Write STORED: the word pairs of the book, answered by the starter checkpoint in float32."""
    from explainer.models import checkpoints  # noqa: PLC0415 - as above

    checkpoint, lines = checkpoints.load(device="cpu"), []
    for name in _texts():
        found = {second: _rounded(measured(checkpoint, name, second)) for second in SECONDS}
        its = {"order": order(name), "bounds": bounds(name), "found": found}
        kept = json.dumps(its, ensure_ascii=False, separators=(",", ":"))
        lines.append(f"{json.dumps(name)}: {kept}")
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def _rounded(found: dict[str, Any]) -> dict[str, Any]:
    """What is below these digits depends on the processor."""
    return found | {
        "sim_aou": [round(x, 3) for x in found["sim_aou"]],
        "sim_am_delta": round(found["sim_am_delta"], 3),
        "answers": [[[token, round(p, 4)] for token, p in top] for top in found["answers"]],
    }
