"""explainer.theory.statistics.Interval: its text, its units, and the intervals of single shares."""

import numpy as np
import pytest

from explainer.theory import statistics


@pytest.mark.parametrize(
    ("interval", "spec", "text"),
    [
        ((0.12345, 0.1, 0.2), ".3f", "0.123 [0.100, 0.200]"),
        ((-0.5, -1, 0), ".3f", "−0.500 [−1.000, 0.000]"),
        ((-0.0001, -0.0001, 0.0001), ".3f", "0.000 [−0.000, 0.000]"),
        ((0.25, float("nan"), float("nan")), "", "0.25 [-, -]"),
        ((-0.0179, -0.195, 0.161), "+.1%", "−1.8% [−19.5%, +16.1%]"),
    ],
)
def test_text_of_an_interval(interval, spec, text):
    assert format(statistics.Interval(*interval), spec).replace("\N{NO-BREAK SPACE}", " ") == text


def test_an_interval_in_another_unit_and_a_negative_factor_swaps_the_ends():
    percent = 100 * statistics.Interval(0.5, 0.25, 0.75)
    assert tuple(percent) == (50, 25, 75) and percent[1:] == (25, 75) and percent.undefined == 0
    assert percent.excludes_zero and (-1 * percent).excludes_zero
    assert not statistics.Interval(0.1, -0.1, 0.3).excludes_zero
    of_gain = -2 * statistics.Interval(1.0, 0.5, 2.0, p_value=0.01)
    assert (*of_gain, of_gain.p_value) == (-2, -4, -1, 0.01)
    of_layers = -1 * statistics.student(np.array([[1.0, 2.0], [3.0, 5.0]]))
    assert (of_layers.low < of_layers.high).all()


def test_wilson_solves_its_quadratic():
    """At both ends, the share that was seen lies 1.96 standard errors away."""
    share, low, high = statistics.binomial_interval(0.37, 100)
    z = 1.959963984540054
    for p in (low, high):
        assert abs(share - p) == pytest.approx(z * np.sqrt(p * (1 - p) / 100), rel=1e-9)
    assert statistics.binomial_interval(0.571, 56).estimate == 32 / 56, "a whole number of queries"


def test_newcombe_of_the_published_example():
    """56 of 70 against 48 of 80: [0.0524, 0.3339] (Newcombe 1998, Table II, method 10, example a)."""
    a, b = statistics.binomial_interval(0.8, 70), statistics.binomial_interval(0.6, 80)
    assert tuple(statistics.independent_difference(a, b)) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)


def test_a_share_of_all_or_none_has_wilsons_width():
    """58 repairs out of 58 had the interval [1, 1]; they are of 23 words, of which Wilson says at least 86 %."""
    all_right = statistics.widen_degenerate(statistics.Interval(1.0, 1.0, 1.0), 23)
    assert tuple(all_right) == pytest.approx((1, 0.857, 1), abs=1e-3)
    none = statistics.widen_degenerate(statistics.Interval(0.0, 0.0, 0.0), 64)
    assert none.low == 0 and none.high == pytest.approx(0.0566, abs=1e-3)
    for as_it_is in ((0.5, 0.5, 0.5), (1.0, 0.9, 1.0), (float("nan"),) * 3):
        interval = statistics.Interval(*as_it_is)
        assert statistics.widen_degenerate(interval, 23) is interval


def test_a_difference_that_all_seeds_share_is_not_certain():
    """Two seeds that gain as much as each other say little; where they differ, or are one, nothing is widened."""
    shares = [statistics.Interval(s, s - 0.1, s + 0.2) for s in (0.5, 0.25)]
    alike = statistics.student([0.25, 0.25])
    assert alike.low == alike.high
    wide = statistics.widen_degenerate_difference(alike, *shares)
    assert tuple(wide) == tuple(statistics.independent_difference(*shares))
    assert wide.low < 0.25 < wide.high
    for interval in (statistics.student([0.25, 0.3]), statistics.student([0.25])):
        assert statistics.widen_degenerate_difference(interval, *shares) is interval
