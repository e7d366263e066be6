"""What the tables of the positive control are folded into."""

import numpy as np
import pandas as pd
import pytest

from explainer.results import trained_control

SETTING = {"checkpoint": "two-layers", "k": 16, "n_queries": 2, "split": "report"}


def frame(rows):
    return pd.DataFrame([SETTING | {"step": 0, "seed": 0, "lr": 0.1, "control": "none"} | r for r in rows])


def test_models_weigh_alike_however_many_tasks_they_have():
    rows = [{"model": 0, "sim_aou": v} for v in (0.1, 0.3)] + [{"model": 1, "sim_aou": 0.6}, {"model": 1}]
    found = trained_control._interval(frame(rows), "sim_aou")
    assert found.estimate == pytest.approx(0.4) and found.low < 0 < found.high


def test_over_training_leaves_out_steps_without_a_value():
    rows = [{"model": m, "step": s, "x": s + m} for m in (0, 1) for s in (0, 100)] + [{"model": 0, "step": 200}]
    found = trained_control.over_training(frame(rows), "x")
    assert {step: one.estimate for step, one in found.items()} == {0: 0.5, 100: 100.5}


def test_differences_are_between_settings_that_differ_in_the_control_only():
    rows = [
        {"model": 0, "sim_aou": 0.5},
        {"model": 0, "sim_aou": 0.1, "control": "foreign-context"},
        {"model": 0, "sim_aou": 0.9, "step": 10},
        {"model": 1, "sim_aou": 0.2, "control": "foreign-context"},
    ]
    found = trained_control.own_minus(frame(rows), "foreign-context", "sim_aou")
    assert found["sim_aou"].tolist() == pytest.approx([0.4]) and found["model"].tolist() == [0]


def test_the_best_rate_that_never_diverges_is_chosen():
    tried = [(0.01, 0.6, np.nan), (0.1, 0.8, np.nan), (0.2, 0.8, np.nan), (0.3, 1.0, np.nan), (0.3, np.nan, 3)]
    rows = [{"lr": lr, "ft_accuracy": accuracy, "diverged_at": diverged} for lr, accuracy, diverged in tried]
    assert trained_control.chosen_rate(frame(rows)) == 0.1
