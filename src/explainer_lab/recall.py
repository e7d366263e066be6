"""Does momentum help a memory that corrects its errors? Associative recall with revision, trained in matched sets.

The plan, as it was fixed before the runs, is in published/PLANS.md.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from explainer.data import associative_recall
from explainer.data.associative_recall import Sequences
from explainer.models import fast_weight_model
from explainer.models.fast_weight_model import GATES, FastWeightModel, FastWeightSetting
from explainer_lab.experiment import Computed, Experiment

RATES = (5e-3, 1.5e-2, 4.5e-2)  # learning rates to choose from
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
"""The learning rate of each rule: that of RATES with most right answers in the grid "recall-rates"."""


class Recall(Experiment[FastWeightSetting]):
    """Trains one model for each setting and looks at it along the way."""

    name = "recall"
    shown = ("accuracy",)
    setting = FastWeightSetting
    protocol = 1
    slowest_first = (
        "seed",
        *(f.name for f in fields(FastWeightSetting) if f.name not in ("seed", "rule")),
        "rule",
    )

    @classmethod
    def of(cls, **values: Any) -> FastWeightSetting:
        """The rate is that which was chosen for the rule, unless another is given."""
        rate = CHOSEN.get(values.get("rule", ""))
        return super().of(**({} if rate is None else {"learning_rate": rate}) | values)

    def parts(self, setting: FastWeightSetting) -> dict[str, Any]:
        """The sizes of the task; the sequences are drawn from the seeds."""
        return {
            "task": {
                "keys": associative_recall.KEYS,
                "values": associative_recall.VALUES,
                "n_keys": list(associative_recall.N_KEYS),
                "tested": associative_recall.N_TEST,
            }
        }

    def compute(self, setting: FastWeightSetting, *, progress: bool) -> Computed:
        """Train the model, and test it along the way."""
        asked = {n: associative_recall.test_sequences(n) for n in associative_recall.N_KEYS}
        curve, losses, parameters = [], [], 0
        for step, model, since in fast_weight_model.train(setting, associative_recall.N_KEYS, progress=progress):
            parameters = sum(each.numel() for each in model.parameters())
            curve += [{"step": step} | _outcomes(model, sequences) for sequences in asked.values()]
            losses += [sum(since) / len(since)] if since else []
        last = curve[-len(associative_recall.N_KEYS) :]
        right = sum(row["right"] for row in last) / sum(row["n_keys"] for row in last) / associative_recall.N_TEST
        settings = {"parameters": parameters, "losses": losses, "accuracy": right}
        columns = {name: [row[name] for row in curve] for name in curve[0] if name != "right"}
        return Computed({"settings": settings, "curve": columns}, {})


@torch.inference_mode()
def _outcomes(model: FastWeightModel, sequences: Sequences) -> dict[str, Any]:
    """Shares of right answers for kept and revised keys and of stale answers, and the mean of each learned gate.

    `right` counts the right answers to all queries. The gates are means over writes and heads, None if not learned.
    """
    n = sequences.answers.shape[1]
    said = model(sequences).argmax(-1)
    right, kept = said == sequences.answers, sequences.stale == associative_recall.NO_STALE
    its = model.memory.tokens(model.embedded(sequences.keys, sequences.values))
    learned = GATES[model.setting.rule]
    gates = {name: _mean(getattr(its, name)[..., :-n]) if name in learned else None for name in its._fields[3:]}
    shares = {"kept": right[kept], "revised": right[~kept], "stale": (said == sequences.stale)[~kept]}
    return {"n_keys": n, "right": int(right.sum())} | {name: _mean(each) for name, each in shares.items()} | gates


def _mean(values: Tensor) -> float:
    return values.double().mean().item()
