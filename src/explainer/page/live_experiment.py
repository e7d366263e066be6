"""The explorable of the laboratory that compares: zero-shot, in context, and fine-tuned or in another context."""

import hashlib
import json
import math
from collections.abc import Iterator
from typing import Any

import torch
import traitlets
from safetensors.torch import load_file, save
from torch import Tensor

from explainer.compare import controls
from explainer.compare.observations import Observed, observe
from explainer.data import tasks
from explainer.data.files import fresh_folder
from explainer.explorables.explorable_base import rounded_to
from explainer.models import architectures, finetuning, scoring
from explainer.models.finetuning import FineTuned, KeysValues
from explainer.models.loading import Checkpoint
from explainer.page.live_base import MADE, QUERY, TASKS, LiveTask, book_checkpoint
from explainer.page.live_tasks import MOST, QUERIES, SEED, LiveSweep
from explainer.results import agreement_results, table_intervals
from explainer.results.agreement_results import UpdateFilter
from explainer.theory import metrics

UPDATES = LiveTask.folder / "updates"
"""For each task the update dW by fine-tuning, in factors of low rank, and `updates.json`, which names the files."""
_CONTEXTS = {name: controls.LESSONS[name] for name in ("reordered", "shuffled", "foreign")}
_SECONDS = ("fine-tuned", *_CONTEXTS)
"""The second lesson: fine-tuning on the demonstrations, or a context in another order, with wrong answers, foreign."""
_RANK, _EPOCHS, _LR = 4, 10, 5e-4


class LiveExperiment(LiveTask):
    """The paper's comparison: what the demonstrations change in context, and what a second lesson changes.

    Traits of its own: `second`, the second lesson; `scale`, what the update of fine-tuning is multiplied with;
    `lessons`, the texts. In `study` each task has an order of the demonstrations, floors and ceilings of the study, and
    what the checkpoint answers.
    """

    name = "live_experiment"
    question = "Do the demonstrations change the model as fine-tuning on them does?"
    height = 1000
    chosen = "second"

    task = traitlets.Enum(TASKS, TASKS[0])
    second = traitlets.Enum(_SECONDS, _SECONDS[0])
    scale = traitlets.Float(1.0, min=0, max=2)
    lessons = traitlets.Dict()

    @traitlets.default("lessons")
    def _lessons(self) -> dict[str, dict]:
        parts = ("pattern", "curves", "queries")
        return {name: {part: its[part] for part in parts} for name, its in LiveSweep.stored().items() if name in TASKS}

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """For each task `order`, and `bounds` and `found` by second lesson."""

        def kept(name: str, second: str) -> dict[str, Any]:
            found = _answers(book_checkpoint(), name, second)
            return found | {part: rounded_to(found[part], 3) for part in ("sim_aou", "sim_am_delta")}

        found = {name: {second: kept(name, second) for second in _SECONDS} for name in TASKS}
        return {name: {"order": _order(name), "bounds": _bounds(name), "found": found[name]} for name in TASKS}

    def replies(self, checkpoint: Checkpoint, message: dict) -> Iterator[dict]:
        """The comparison, once."""
        asked = (message[name] for name in ("task", "lesson", "scale", "query"))
        yield {"experiment": message["experiment"], "found": _answers(checkpoint, *asked)}


def _answers(
    checkpoint: Checkpoint, name: str, second: str, scale: float = 1, query: str | None = None
) -> dict[str, Any]:
    """What LiveExperiment finds, by the checkpoint in Python, in float32.

    `right` counts exact matches without demonstrations, in context, and after the second lesson; `repaired` those that
    are wrong without demonstrations; `sim_aou` is SimAOU of the two changes in each layer, mean over queries;
    `sim_am_delta` is SimAM of the changes of attention maps, mean over queries, layers and heads; `answers` are the
    most probable next tokens after the reader's own query. What is not defined, because nothing changes, is None.
    """
    data, draw = tasks.load(name), (MOST, SEED)
    asked = tasks.queries(data, QUERIES, SEED)
    query = QUERY[name] if query is None else query
    context = lambda its: scoring.context_ids(checkpoint, *its)[0]  # noqa: E731
    own = context(controls.own(data, *draw))

    def asked_after(model: Checkpoint, context: list[int] | str) -> tuple[Observed, list]:
        prefix = scoring.encode(model, context)
        top = scoring.top_tokens(model, prefix, data.task.template.replace("{word}", query), 3)
        return observe(model, prefix, data.task, asked), [list(pair) for pair in top]

    zsl, icl, tokens = asked_after(checkpoint, ""), asked_after(checkpoint, own), [len(own), 0]
    if second == "fine-tuned":
        with update(checkpoint, name, scale).applied() as tuned:
            other = asked_after(tuned, "")
    else:
        again = context(_CONTEXTS[second](data, *draw))
        other, tokens[1] = asked_after(checkpoint, again), len(again)
    (h_zsl, h_icl, h_other), (m_zsl, m_icl, m_other) = (
        [getattr(seen, field) for seen, _ in (zsl, icl, other)] for field in ("outputs", "own_scores")
    )
    maps = metrics.pairwise_scores(m_zsl, [m_icl, m_other], tokens)["sim_am_delta"]
    correct = [seen.correct for seen, _ in (zsl, icl, other)]
    repaired = [int((~correct[0] & its).sum()) for its in (*correct[1:], correct[1] & correct[2])]
    known = lambda x: x if math.isfinite(x) else None  # noqa: E731 - JSON has no NaN
    return {
        "task": name,
        "second": second,
        "scale": scale,
        "n": len(asked),
        "right": [int(its.sum()) for its in correct],
        "repaired": repaired,
        "sim_aou": [known(x) for x in metrics.sim_aou(h_zsl, h_icl, h_other).nanmean(0).tolist()],
        "sim_am_delta": known(maps[0, 1].nanmean().item()),
        "query": query,
        "answers": [top for _, top in (zsl, icl, other)],
        "made": MADE,
    }


# The updates


def update(checkpoint: Checkpoint, name: str, scale: float = 1) -> FineTuned:
    """The stored update of a task, times a scale."""
    factors = {part: its.float() for part, its in load_file(UPDATES / f"{name}.safetensors").items()}
    dW = scale * (factors["in"] @ factors["out"]).mT  # 2 L matrices, keys and values by turns
    layers = [KeysValues.of(layer) for layer in architectures.architecture(checkpoint.model).layers]
    put = lambda matrix, like: matrix.view_as(like).to(like.device)  # noqa: E731
    pairs = zip(dW[::2], dW[1::2], layers, strict=True)
    its = tuple(KeysValues(put(K, W.key_weight), None, put(V, W.value_weight), None) for K, V, W in pairs)
    return FineTuned(checkpoint, its, _LR, (), (), float("nan"), None)


def _trained(checkpoint: Checkpoint, name: str) -> FineTuned:
    """Ten epochs on the sixteen demonstrations, as in the chapter `floors_and_ceilings`, for its first seed."""
    data = tasks.load(name)
    shown = tasks.demonstrations(data, MOST, SEED)
    once = finetuning.training_ids(checkpoint, data.task, shown)
    return finetuning.fine_tune(checkpoint, finetuning.repeat_epochs(once, _EPOCHS, SEED), _LR, progress=True)


def _factors(finetuned: FineTuned, rank: int) -> dict[str, Tensor]:
    """`in`, (2 L, d, rank), and `out`, (2 L, rank, keys), in float16; their product is `FineTuned.truncated`."""
    stacked = [W.flatten(0, 1) for layer in finetuned.update for W in (layer.key_weight, layer.value_weight)]
    U, s, Vh = torch.linalg.svd(torch.stack(stacked), full_matrices=False)
    root = s[:, :rank].sqrt()
    into, out = Vh[:, :rank].mT * root[:, None], (U[..., :rank] * root[:, None]).mT
    return {"in": into.half().contiguous(), "out": out.half().contiguous()}


def store_updates() -> None:
    """Write UPDATES with the starter checkpoint in float32."""
    entries = {}
    with fresh_folder(UPDATES) as fresh:
        for name in TASKS:
            content = save(_factors(_trained(book_checkpoint(), name), _RANK))
            (fresh / f"{name}.safetensors").write_bytes(content)
            digest = hashlib.sha256(content).hexdigest()
            entries[name] = {"name": f"{name}.safetensors", "size": len(content), "sha256": digest}
        (fresh / "updates.json").write_text(json.dumps(entries, indent=1) + "\n", "utf-8")


# The study


def _bounds(name: str) -> dict[str, dict[str, float]]:
    """Floor and ceiling of SimAOU by second lesson, from the published study of a task.

    Of fine-tuning: with training on another task; and of two trainings, the second on other examples of the task. Of a
    context: with a context of made-up words; and in another order.
    """
    pairs = agreement_results.pairs("agreement", task=name)
    ICL, FT = UpdateFilter("ICL"), UpdateFilter("FT", epochs=_EPOCHS)

    def mean(one: UpdateFilter, other: UpdateFilter) -> float:
        return round(
            table_intervals.by_task(agreement_results.pairs_between(pairs, one, other), "sim_aou")[name].estimate, 3
        )

    foreign, other = (UpdateFilter("FT", lesson, _EPOCHS) for lesson in (agreement_results.FOREIGN, "other"))
    nonsense, reordered = (UpdateFilter("ICL", lesson) for lesson in ("nonsense", "reordered"))
    trainings = {"floor": mean(ICL, foreign), "ceiling": mean(FT, other)}
    contexts = {"floor": mean(ICL, nonsense), "ceiling": mean(ICL, reordered)}
    return {second: trainings if second == "fine-tuned" else contexts for second in _SECONDS}


def _order(name: str) -> list[int]:
    """The order of the demonstrations in the second lesson `reordered`."""
    (_, own), (_, again) = (
        draw(tasks.load(name), MOST, SEED) for draw in (controls.own, controls.LESSONS["reordered"])
    )
    return [own.index(example) for example in again]
