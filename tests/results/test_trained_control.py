"""What the tables of the positive control are folded into, and what other examples cost in small models."""

import numpy as np
import pandas as pd
import pytest
from toy_tables import crossed

from explainer.results import agreement, trained_control

SETTING = {"checkpoint": "two-layers", "k": 16, "n_queries": 2, "split": "report"}


def frame(rows):
    return pd.DataFrame([SETTING | {"step": 0, "seed": 0, "lr": 0.1, "control": "none"} | r for r in rows])


def test_models_weigh_alike_however_many_tasks_they_have():
    rows = [{"model": 0, "sim_aou": v} for v in (0.1, 0.3)] + [{"model": 1, "sim_aou": 0.6}, {"model": 1, "x": 1}]
    found = trained_control.over_training(frame(rows), "sim_aou")[0]
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
    found = trained_control.own_minus_control(frame(rows), "foreign-context", "sim_aou")
    assert found["sim_aou"].tolist() == pytest.approx([0.4]) and found["model"].tolist() == [0]


def test_the_best_rate_that_never_diverges_is_chosen():
    tried = [(0.01, 0.6, np.nan), (0.1, 0.8, np.nan), (0.2, 0.8, np.nan), (0.3, 1.0, np.nan), (0.3, np.nan, 3)]
    rows = [{"lr": lr, "ft_accuracy": accuracy, "diverged_at": diverged} for lr, accuracy, diverged in tried]
    assert trained_control.chosen_rate(frame(rows)) == 0.1


CORNERS = dict(zip(agreement.CORNERS, (0.5, 0.4, 0.3, 0.35, 0.81, 0.64), strict=True))


def swaps(**columns):
    """Two models with two draws each, all alike but for the given columns."""
    return crossed(**{"model": (0, 1), "seed": (0, 1)} | CORNERS | columns)


def test_falls_and_yardstick_are_those_of_the_corners():
    found = trained_control.other_examples(swaps())
    wanted = {"own": 0.5, "training swapped": 0.1, "context swapped": 0.2, "both swapped": 0.075}
    wanted["yardstick"] = 0.5 * (0.19 * 0.36) ** 0.5
    assert {name: each.estimate for name, each in found.items()} == pytest.approx(wanted)


def test_a_draw_whose_training_diverged_is_left_out_of_both_sides():
    """Its own similarity is .9; in the mean over the other draws own is .5 and the corner .4."""
    diverged = {"training_other": None, "both_other": None, "trainings": None, "own": 0.9}
    found = trained_control.other_examples(pd.concat([swaps(), swaps(model=[0], seed=[2], **diverged)]))
    assert found["training swapped"].estimate == pytest.approx(0.1) and found["own"].estimate == pytest.approx(0.5)


@pytest.mark.parametrize(("unit", "other"), [("model", "seed"), ("seed", "model")])
def test_models_or_draws_are_the_unit(unit, other):
    """Two that differ give the interval of two numbers, whatever the number of the others."""
    own = {"model": lambda model: (0.2, 0.4)[model], "seed": lambda seed: (0.2, 0.4)[seed]}[unit]
    found = trained_control.other_examples(swaps(**{other: range(5), "own": own, "training_other": 0.0}), unit)
    assert found["training swapped"].estimate == pytest.approx(0.3)
    assert found["training swapped"].high - 0.3 == pytest.approx(12.706 * 0.1, rel=1e-3)
