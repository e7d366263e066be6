"""Yardstick: its default and what is stored are what the published tables say."""

import math

import pytest
from javascript import close, computed

from explainer.explorables import Yardstick
from explainer.explorables.base import rounded_to
from explainer.results import agreement


def measured() -> float:
    return agreement.cost_of_other_examples(agreement.pairs("agreement"), "sim_aou")["yardstick"].estimate


def test_javascript_has_the_yardstick_of_the_tables():
    """The parts of a change have length 1, and the shared one squared is the cosine of two changes."""
    ends = [Yardstick(contexts=c, trainings=f, own=s).state() for c in (0, 1) for f in (0, 0.5) for s in (0, 1)]
    states, alike = [Yardstick().state(), *ends], [0, 0.3, 0.71, 0.94, 1]
    found = "{ fall: m.yardstick(s), written: m.yardstick(s).toFixed(3) }"
    own = computed("yardstick", states, found, "{ parts: full[0].alike.map(m.parts) }", alike=alike)
    for cosine, (shared, special) in zip(alike, own.parts, strict=True):
        close([math.hypot(shared, special), shared**2], [1, cosine], 1e-12)
    close(own.results[0]["fall"], measured(), 2e-3)
    assert all(each["written"] in each["words"] for each in own.results)


def test_stored_falls_are_those_of_the_tables():
    assert Yardstick.stored() == rounded_to(Yardstick.measured(), Yardstick.digits)


def test_the_measured_fall_is_less_than_a_tenth_of_the_yardstick():
    fall = measured()
    assert fall == pytest.approx(0.38 * (0.06 * 0.29) ** 0.5, abs=2e-3)
    assert Yardstick.stored()["context"][2] < fall / 10
