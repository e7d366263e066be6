"""What other examples cost in small models, of tables made by hand."""

import pandas as pd
import pytest

from explainer.results import trained_control


def test_falls_and_yardstick_are_those_of_the_corners():
    """Own .5, corners .4, .3 and .35 on two models alike: falls .1, .2 and .075, yardstick .5 sqrt(.19 .36)."""
    one = {
        "own": 0.5,
        "training_other": 0.4,
        "context_other": 0.3,
        "both_other": 0.35,
        "contexts": 0.81,
        "trainings": 0.64,
    }
    found = trained_control.other_examples(
        pd.DataFrame([one | {"model": i, "seed": s} for i in (0, 1) for s in (0, 1)])
    )
    estimates = {name: each.estimate for name, each in found.items()}
    wanted = {"own": 0.5, "training swapped": 0.1, "context swapped": 0.2, "both swapped": 0.075}
    assert estimates == pytest.approx(wanted | {"yardstick": 0.5 * (0.19 * 0.36) ** 0.5})


def test_a_draw_whose_training_diverged_is_left_out_of_both_sides():
    """Its own similarity is .9; in the mean over the other draws own is .5 and the corner .4."""
    trained = {"training_other": 0.4, "both_other": 0.35, "trainings": 0.6}
    one = {"own": 0.5, "context_other": 0.3, "contexts": 0.8} | trained
    rows = [one | {"model": i, "seed": s} for i in (0, 1) for s in (0, 1)]
    rows.append(one | dict.fromkeys(trained) | {"model": 0, "seed": 2, "own": 0.9})
    found = trained_control.other_examples(pd.DataFrame(rows))
    assert found["training swapped"].estimate == pytest.approx(0.1) and found["own"].estimate == pytest.approx(0.5)


def test_models_are_the_unit():
    """Two models that differ give the interval of two numbers, whatever the number of their tasks."""
    base = {"training_other": 0.0, "context_other": 0.0, "both_other": 0.0, "contexts": 0.5, "trainings": 0.5}
    rows = [base | {"model": i, "seed": s, "own": own} for i, own in enumerate((0.2, 0.4)) for s in range(5)]
    found = trained_control.other_examples(pd.DataFrame(rows))["training swapped"]
    assert found.estimate == pytest.approx(0.3)
    assert found.high - found.estimate == pytest.approx(12.706 * 0.1, rel=1e-3)


def test_draws_are_the_unit_where_they_are_asked_for():
    """Two draws that differ on five models give the interval of two numbers."""
    base = {"training_other": 0.0, "context_other": 0.0, "both_other": 0.0, "contexts": 0.5, "trainings": 0.5}
    rows = [base | {"model": i, "seed": s, "own": own} for s, own in enumerate((0.2, 0.4)) for i in range(5)]
    found = trained_control.other_examples(pd.DataFrame(rows), sample="seed")["training swapped"]
    assert found.high - found.estimate == pytest.approx(12.706 * 0.1, rel=1e-3)
