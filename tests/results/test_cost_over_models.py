"""What other examples cost in small models."""

import pandas as pd
import pytest
from toy_tables import crossed

from explainer.results import agreement

CORNERS = dict(zip(agreement.CORNERS, (0.5, 0.4, 0.3, 0.35, 0.81, 0.64), strict=True))


def swaps(**columns):
    """Two models with two draws each, all alike but for the given columns."""
    return crossed(**{"model": (0, 1), "seed": (0, 1)} | CORNERS | columns)


def test_falls_and_yardstick_are_those_of_the_corners():
    found = agreement.cost_over_models(swaps())
    wanted = {"own": 0.5, "training swapped": 0.1, "context swapped": 0.2, "both swapped": 0.075}
    wanted["yardstick"] = 0.5 * (0.19 * 0.36) ** 0.5
    assert {name: each.estimate for name, each in found.items()} == pytest.approx(wanted)


def test_a_draw_whose_training_diverged_is_left_out_of_both_sides():
    """Its own similarity is .9; in the mean over the other draws own is .5 and the corner .4."""
    diverged = {"training_other": None, "both_other": None, "trainings": None, "own": 0.9}
    found = agreement.cost_over_models(pd.concat([swaps(), swaps(model=[0], seed=[2], **diverged)]))
    assert found["training swapped"].estimate == pytest.approx(0.1) and found["own"].estimate == pytest.approx(0.5)


@pytest.mark.parametrize(("unit", "other"), [("model", "seed"), ("seed", "model")])
def test_models_or_draws_are_the_unit(unit, other):
    """Two that differ give the interval of two numbers, whatever the number of the others."""
    own = {"model": lambda model: (0.2, 0.4)[model], "seed": lambda seed: (0.2, 0.4)[seed]}[unit]
    found = agreement.cost_over_models(swaps(**{other: range(5), "own": own, "training_other": 0.0}), unit)
    assert found["training swapped"].estimate == pytest.approx(0.3)
    assert found["training swapped"].high - 0.3 == pytest.approx(12.706 * 0.1, rel=1e-3)
