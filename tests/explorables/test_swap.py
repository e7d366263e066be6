"""Swap: what is stored is what the published tables say, and what JavaScript shows of it."""

import pytest
from scipy import stats

from explainer.explorables import Swap
from explainer.explorables.base import rounded
from explainer.explorables.swap import LESSONS, SIDES
from explainer.results.published import results


def swap_fixture() -> dict:
    layers = results("shared-part", "layers")
    columns = ["own", *(f"{side}_{lesson}" for side in SIDES for lesson in LESSONS[1:])]
    upper = layers[layers["layer"] >= 20][columns].mean().to_dict()
    return {"states": [Swap(side=side, lesson=lesson).state() for side in SIDES for lesson in LESSONS], "upper": upper}


def test_stored_similarities_are_those_of_the_tables():
    stored, found = Swap.stored(), rounded(Swap.measured(), Swap.digits)
    exact, again = stored.pop("true"), found.pop("true")
    assert stored == found
    for side in SIDES:
        assert again[side] == pytest.approx(exact[side], abs=2e-3)


def test_the_bar_of_the_upper_third_is_students_over_draws():
    layers = results("shared-part", "layers").query("layer >= 20")
    of_seeds = layers.groupby("seed")["context_other"].mean()
    half = stats.t.ppf(0.975, len(of_seeds) - 1) * of_seeds.std() / len(of_seeds) ** 0.5
    assert Swap.stored()["upper"]["context_other"] == pytest.approx(half, abs=6e-4)


def test_other_examples_cost_the_true_layer_much_and_the_gpt_nothing_that_is_seen():
    upper, exact = swap_fixture()["upper"], Swap.stored()["true"]
    for side in SIDES:
        assert exact[side]["other"] < 0.5 * exact[side]["own"]
        assert abs(upper[f"{side}_other"] - upper["own"]) < 0.02
        assert upper[f"{side}_foreign"] < upper["own"] - 0.1
