"""Does momentum help a memory that corrects its errors? Associative recall with revision, trained in matched sets.

The plan, as it was fixed before the runs, is in published/PLANS.md.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn.functional import cross_entropy

from explainer.data import recall_data
from explainer.data.recall_data import Sequences
from explainer.models.fast_weight_model import GATES, FastWeightModel, FastWeightSetting
from explainer_lab.experiment import Computed, Experiment
from explainer_lab.small_model_training import descent

_BETA_2 = 0.98  # of AdamW
_SNAPSHOTS = 10  # how often a model is looked at during its training
CHOSEN: Mapping[str, float] = {
    "linear": 0.015,
    "delta": 0.045,
    "delta-momentum": 0.015,
    "delta-half": 0.015,
    "gated": 0.015,
    "gated-momentum": 0.015,
    "ascent": 0.015,
    "softmax": 0.045,
    "momentum-attention": 0.045,
}
"""The learning rate of each rule: the one of .005, .015 and .045 with most right answers in the grid "recall-rates"."""


class Recall(Experiment[FastWeightSetting]):
    """Trains one model for each setting and looks at it along the way."""

    name = "recall"
    shown = ("accuracy",)
    setting = FastWeightSetting
    protocol = 1
    slowest_first = ("seed", *(f.name for f in fields(FastWeightSetting) if f.name not in ("seed", "rule")), "rule")

    @classmethod
    def of(cls, **values: Any) -> FastWeightSetting:
        """The rate is that which was chosen for the rule, unless another is given."""
        rate = CHOSEN.get(values.get("rule", ""))
        return super().of(**({} if rate is None else {"learning_rate": rate}) | values)

    def parts(self, setting: FastWeightSetting) -> dict[str, Any]:
        """The sizes of the task; the sequences are drawn from the seeds."""
        return {
            "task": {
                "keys": recall_data.KEYS,
                "values": recall_data.VALUES,
                "n_keys": list(recall_data.N_KEYS),
                "tested": recall_data.N_TEST,
            }
        }

    def compute(self, setting: FastWeightSetting, *, progress: bool) -> Computed:
        """Train the model, and test it along the way."""
        asked = {n: recall_data.test_sequences(n) for n in recall_data.N_KEYS}
        curve, losses, parameters = [], [], 0
        for step, model, since in train(setting, progress=progress):
            parameters = sum(each.numel() for each in model.parameters())
            curve += [{"step": step} | _outcomes(model, sequences) for sequences in asked.values()]
            losses += [sum(since) / len(since)] if since else []
        last = curve[-len(recall_data.N_KEYS) :]
        right = sum(row["right"] for row in last) / sum(row["n_keys"] for row in last) / recall_data.N_TEST
        settings = {"parameters": parameters, "losses": losses, "accuracy": right}
        columns = {name: [row[name] for row in curve] for name in curve[0] if name != "right"}
        return Computed({"settings": settings, "curve": columns}, {})


def train(setting: FastWeightSetting, *, progress: bool = True) -> Iterator[tuple[int, FastWeightModel, list[float]]]:
    """Train on fresh sequences, of N_KEYS[0] keys in the first step, N_KEYS[1] in the second, and so on in turns.

    By `small_model_training.descent` on the mean over queries of -log p(answer). Yields before the first step and ten
    times after it the number of steps, the model, which changes when the next is asked for, and the losses of the steps
    since the last time. Raises DivergenceError when the loss is no longer finite.
    """
    model, n_keys = FastWeightModel(setting), recall_data.N_KEYS

    def loss(step: int, generator: Generator) -> Tensor:
        sequences = recall_data.draw(setting.batch, n_keys[step % len(n_keys)], generator)
        return cross_entropy(model(sequences).flatten(0, 1), sequences.answers.flatten())

    yield 0, model, []
    losses: list[float] = []
    looked_at = {round(setting.steps * i / _SNAPSHOTS) for i in range(1, _SNAPSHOTS + 1)}
    for step, its in enumerate(descent(model, setting, loss, beta_2=_BETA_2, progress=progress), 1):
        losses.append(its)
        if step in looked_at:
            yield step, model, losses
            losses = []


@torch.inference_mode()
def _outcomes(model: FastWeightModel, sequences: Sequences) -> dict[str, Any]:
    """Shares of right answers for kept and revised keys and of stale answers, and the mean of each learned gate.

    `right` counts the right answers to all queries. The gates are means over writes and heads, None if not learned.
    """
    n = sequences.answers.shape[1]
    said = model(sequences).argmax(-1)
    right, kept = said == sequences.answers, sequences.stale == recall_data.NO_STALE
    its = model.tokens(model.embedded(sequences.keys, sequences.values))
    learned = GATES[model.setting.rule]
    gates = {name: _mean(getattr(its, name)[..., :-n]) if name in learned else None for name in GATES["gated-momentum"]}
    shares = {"kept": right[kept], "revised": right[~kept], "stale": (said == sequences.stale)[~kept]}
    return {"n_keys": n, "right": int(right.sum())} | {name: _mean(each) for name, each in shares.items()} | gates


def _mean(values: Tensor) -> float:
    return values.double().mean().item()
