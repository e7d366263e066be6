"""The figures of the chapter on layers."""

import numpy as np
import pytest

from explainer.figures import layers
from explainer.theory import statistics


def rising(n_seeds=5, n_layers=30):
    rng = np.random.default_rng(0)
    return np.linspace(0, 1, n_layers) + 0.05 * rng.normal(size=(n_seeds, n_layers))


def test_boxes_are_the_quantiles_of_queries():
    rows = np.arange(101.0)[:, None] + np.array([0, 1000])
    box = layers.boxes({"SimAOU": rows, "noise": rows}, "y").data[0]
    ends = (box.lowerfence, box.q1, box.median, box.q3, box.upperfence)
    np.testing.assert_allclose(np.array(ends).T, [[5, 25, 50, 75, 95], [1005, 1025, 1050, 1075, 1095]])


def test_curves_show_every_seed_and_their_mean():
    rows = rising(n_seeds=3)
    figure = layers.seed_curves({"a": rows, "b": -rows}, "y")
    assert len(figure.data) == 8
    np.testing.assert_allclose(figure.data[3].y, rows.mean(0))
    assert {trace.line.dash for trace in figure.data[:4]} != {trace.line.dash for trace in figure.data[4:]}
    assert [trace.showlegend for trace in figure.data[:4]] == [False] * 3 + [None]


def test_published_layers_are_open_and_placed_by_depth():
    figure = layers.depth_profile({"ours": rising()})
    ours, quoted = figure.data
    assert quoted.marker.symbol.endswith("-open") and "quoted" in quoted.name
    np.testing.assert_allclose(quoted.x, [0, 1 / 23, 13 / 23, 19 / 23, 1])
    assert list(quoted.y) == [0.166, 0.012, 0.297, 0.069, 0.294]
    assert ours.x[0] == 0 and ours.x[-1] == 1 and len(ours.x) == 30
    _, low, high = statistics.student(rising()[:, 3])
    assert ours.y[3] - ours.error_y.arrayminus[3] == pytest.approx(low)
    assert ours.y[3] + ours.error_y.array[3] == pytest.approx(high)


def test_map_marks_layers():
    figure = layers.layer_map(
        {"x": {"sst2": [True, False, True], "mr": [False] * 3}, "y": {"mr": [False, True, False]}}
    )
    x, y = figure.data
    assert list(zip(x.x, x.y, strict=True)) == [(0, "sst2"), (2, "sst2")]
    assert list(zip(y.x, y.y, strict=True)) == [(1, "mr")]
    assert x.marker.symbol != y.marker.symbol and figure.layout.xaxis.range == (-0.5, 2.5)
