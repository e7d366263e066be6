"""The figures of the study on training with momentum draw what they are given."""

import pandas as pd
import pytest

from explainer.figures import language_models as figures
from explainer.theory.statistics import Interval, student

LOSSES = pd.DataFrame([[5.0, 5.0, 5.0], [4.0, 4.0, 4.0], [3.0, 4.0, 5.0]], [10, 20, 30])


def test_gap_curves_have_an_interval_only_over_several_seeds():
    figure = figures.gap_curves({"many": LOSSES, "one": LOSSES[[0]]})
    traces = {trace.name: trace for trace in figure.data}
    assert set(traces) == {"many", "many, pair 1", "many, pair 2", "many, pair 3", "one"}
    assert traces["many"].y[2] == 4
    assert traces["one"].error_y.array is None


def test_gap_curves_have_a_bar_at_every_fourth_point():
    values = pd.DataFrame([[0.0, 1.0]] * 8)
    bars = figures.gap_curves({"a": values}).data[-1].error_y.array
    interval = student(values.loc[0])
    expected = pytest.approx(interval.high - interval.estimate, rel=1e-3)
    assert [place for place, bar in enumerate(bars) if bar is not None] == [3, 7] and bars[3] == expected


def test_effects_draw_each_seed_and_the_mean():
    nan = float("nan")
    rows = {"a, early": ([-40.0, -30.0, -26.0], Interval(-33.0, -50.0, -10.0)), "b": ([10.0], Interval(10.0, nan, nan))}
    figure = figures.effect_sizes(rows, "nats")
    seeds, mean, other, alone = figure.data
    assert seeds.x == (-40, -30, -26) and mean.x == (-33,)
    assert (mean.error_x.array, mean.error_x.arrayminus) == ((23,), (17,))
    assert alone.error_x.array is None and not alone.showlegend and not other.showlegend
    assert figure.layout.xaxis.title.text == "nats"
    assert figure.layout.yaxis.ticktext == ("a,<br>early", "b")
