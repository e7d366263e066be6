"""Yardstick: its default and what is stored are what the published tables say."""

import pytest

from explainer.explorables import Yardstick
from explainer.explorables.base import rounded
from explainer.results import agreement, verdict_scale


def yardstick_fixture() -> dict:
    measured = verdict_scale.cost_of_other_examples(agreement.pairs("agreement"), "sim_aou")["yardstick"].estimate
    ends = [Yardstick(contexts=c, trainings=f, own=s).state() for c in (0, 1) for f in (0, 0.5) for s in (0, 1)]
    return {"states": [Yardstick().state(), *ends], "measured": measured}


def test_stored_falls_are_those_of_the_tables():
    assert Yardstick.stored() == rounded(Yardstick.measured(), Yardstick.digits)


def test_the_measured_fall_is_less_than_a_tenth_of_the_yardstick():
    fall = yardstick_fixture()["measured"]
    assert fall == pytest.approx(0.38 * (0.06 * 0.29) ** 0.5, abs=2e-3)
    assert Yardstick.stored()["context"][2] < fall / 10
