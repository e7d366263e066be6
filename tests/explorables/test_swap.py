"""Swap: what is stored is what the published tables say, and what JavaScript shows of it."""

import pytest
from javascript import close, computed
from scipy import stats

from explainer.explorables import Swap
from explainer.explorables.base import rounded_to
from explainer.explorables.measured import LESSONS, SIDES
from explainer.results.published import results


def upper_third() -> dict[str, float]:
    layers = results("shared-part", "layers")
    columns = ["own", *(f"{side}_{lesson}" for side in SIDES for lesson in LESSONS[1:])]
    return layers[layers["layer"] >= 20][columns].mean().to_dict()


def test_javascript_says_the_mean_of_the_upper_third_and_draws_all_lessons():
    states = [Swap(side=side, lesson=lesson).state() for side in SIDES for lesson in LESSONS]
    found = "{ mean: m.thirds(m.series(s)[0])[2], column: m.column(s.lesson, s.side) }"
    own, upper = computed("swap", states, found, "{ lessons: m.LESSONS.map(([key]) => key) }"), upper_third()
    assert own.lessons == list(LESSONS)
    for each in own.results:
        close(each["mean"], upper[each["column"]], 1e-3)
        assert f"{each['mean']:.2f}" in each["words"]
        assert all(f'data-lesson="{lesson}"' in each["still"] for lesson in LESSONS)


def test_stored_similarities_are_those_of_the_tables():
    stored, found = Swap.stored(), rounded_to(Swap.measured(), Swap.digits)
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
    upper, exact = upper_third(), Swap.stored()["true"]
    for side in SIDES:
        assert exact[side]["other"] < 0.5 * exact[side]["own"]
        assert abs(upper[f"{side}_other"] - upper["own"]) < 0.02
        assert upper[f"{side}_foreign"] < upper["own"] - 0.1
