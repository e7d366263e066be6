"""Associative recall with revision: matched runs, what is measured of them, storing and reading back."""

from dataclasses import replace

import pytest
import torch

from explainer.data import recall_data
from explainer.models.fast_weight_model import FastWeightModel, FastWeightSetting
from explainer_lab import recall
from explainer_lab.recall import Recall

TINY = FastWeightSetting(rule="delta", width=8, heads=1, head_width=4, inner=8, steps=10, batch=2, learning_rate=1e-2)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(recall_data, "N_KEYS", (2, 4))
    monkeypatch.setattr(recall_data, "N_TEST", 20)


class Oracle(FastWeightModel):
    """Gives an answer of its own, one row of logits for each value."""

    def __init__(self, answers):
        super().__init__(TINY)
        self._answers = answers

    def forward(self, sequences):
        return torch.nn.functional.one_hot(self._answers(sequences), recall_data.VALUES).double()


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (lambda asked: asked.answers, {"kept": 1.0, "revised": 1.0, "stale": 0.0}),
        (
            lambda asked: asked.answers.where(asked.stale == recall_data.NO_STALE, asked.stale),
            {"kept": 1.0, "revised": 0.0, "stale": 1.0},
        ),
    ],
)
def test_measured_counts_right_and_stale_answers(answers, expected):
    asked = recall_data.test_sequences(8)
    measured = recall._outcomes(Oracle(answers), asked)
    assert {name: measured[name] for name in expected} == expected
    assert measured["n_keys"] == 8
    assert measured["right"] == recall_data.N_TEST * 8 * (expected["kept"] + expected["revised"]) / 2
    assert measured["retention"] is None and measured["momentum"] is None
    assert measured["rate"] == pytest.approx(0.5, abs=0.2)


def test_a_run_has_a_row_for_each_look_and_number_of_keys(few):
    tables = Recall().compute(replace(TINY, rule="gated-momentum"), progress=False).tables
    curve = tables["curve"]
    assert curve["step"] == [step for step in range(11) for _ in range(2)] and curve["n_keys"] == [2, 4] * 11
    assert "right" not in curve and len(tables["settings"]["losses"]) == 10
    shares = [sum(curve[name][i] for name in ("kept", "revised")) / 2 for i in (-2, -1)]
    assert tables["settings"]["accuracy"] == pytest.approx((2 * shares[0] + 4 * shares[1]) / 6)
    assert all(0 < gate < 1 for name in ("rate", "retention", "momentum") for gate in curve[name])


def trained(rule="delta-momentum"):
    return list(recall.train(replace(TINY, steps=20, rule=rule), progress=False))


def test_training_is_looked_at_ten_times_and_repeats_to_the_bit(few):
    steps, _, losses = zip(*trained("delta"), strict=True)
    assert steps == tuple(range(0, 21, 2)) and [len(each) for each in losses] == [0] + [2] * 10
    a, b = (trained()[-1][1].state_dict() for _ in range(2))
    assert all(torch.equal(a[name], b[name]) for name in a)
