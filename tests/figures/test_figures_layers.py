"""The statistics and figures of the chapter on layers."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from explainer.analysis import reporting
from explainer.experiments import study
from explainer.experiments.comparison import Cell, StudyError
from explainer.figures import layers
from explainer.lab.store import Stored


def stored(seed, values, task="sst2", measure="sim_aou"):
    """A result with one curve; None is an FT that diverged."""
    one = Cell("m", task, seed, 32, 1e-3, 10)
    similarity = None if values is None else {measure: {"layers": list(values)}}
    return Stored(Path(one.slug), {"cell": asdict(one)}, {}, {"similarity": similarity})


def rising(n_seeds=5, n_layers=30, slope=1.0, noise=0.05):
    rng = np.random.default_rng(0)
    return slope * np.linspace(0, 1, n_layers) + noise * rng.normal(size=(n_seeds, n_layers))


# Statistics


def test_mean_over_seeds_is_students():
    values = [0.1, 0.4, 0.35, 0.2]
    estimate = layers.over_seeds(values)
    expected = stats.ttest_1samp(values, 0)
    low, high = expected.confidence_interval(0.95)
    assert estimate == pytest.approx((expected.statistic * stats.sem(values), low, high, expected.pvalue))
    assert layers.over_seeds([1.0, 1.0]).p_value == 0
    with pytest.raises(ValueError, match="at least 2"):
        layers.over_seeds([0.1])


def test_trend_is_the_mean_of_rank_correlations():
    rows = np.array([[0, 1, 2, 3], [3, 2, 1, 0], [0, 1, 3, 2]])
    assert layers.rank_trend(rows).mean == pytest.approx((1 - 1 + 0.8) / 3)
    assert layers.rank_trend(rising()).low > 0.9
    assert layers.rank_trend(rising(slope=-1)).high < -0.9
    gap = rising()
    gap[0, 5] = np.nan
    assert layers.rank_trend(gap).mean > 0.9


def test_rise_is_top_third_less_bottom_third():
    rows = np.array([[1, 1, 9, 9, 5, 5], [0, 2, 7, 7, 4, 4]], dtype=float)
    assert layers.rise(rows).mean == pytest.approx((4 + 3) / 2)
    rows[0, 0] = np.nan
    assert layers.rise(rows).mean == pytest.approx((4 + 3) / 2)


def test_verdict_counts_after_correction():
    up, down, open_ = (layers.Estimate(m, 0, 0, p) for m, p in ((0.5, 1e-4), (-0.5, 1e-3), (0.3, 0.02)))
    each = {"a": up, "b": down, "c": open_, "d": open_, "e": open_}
    assert layers.verdict(each) == "rises in 1, falls in 1, undecided in 3 of 5 tasks", "3 x 0.02 is above 0.05"
    assert layers.verdict({"c": open_}) == "rises in 1, falls in 0, undecided in 0 of 1 tasks"
    assert layers.adjusted(each)["a"] == pytest.approx(5e-4)


def test_settled_layers_are_above_zero_after_correction():
    rows = np.zeros((5, 3)) + 1e-3 * np.random.default_rng(0).normal(size=(5, 3))
    rows[:, 1] += 1
    rows[:, 2] -= 1
    assert layers.settled(rows) == [False, True, False]


# Results


def test_rows_leave_out_what_diverged():
    found = [stored(0, [0.1, None]), stored(1, None), stored(2, [0.3, 0.4])]
    np.testing.assert_array_equal(layers.layer_rows(found, "sim_aou"), [[0.1, np.nan], [0.3, 0.4]])


def test_mean_over_tasks_uses_common_seeds():
    a = [stored(seed, [seed, seed]) for seed in (0, 1, 2)]
    b = [stored(0, None, "mr"), stored(2, [4, 6], "mr"), stored(1, [10, 20], "mr")]
    np.testing.assert_allclose(layers.mean_over_tasks({"sst2": a, "mr": b}, "sim_aou"), [[5.5, 10.5], [3, 4]])


def test_only_whole_conditions_are_read(monkeypatch):
    cells = [Cell("m", task, seed, 32, 1e-3, 10) for task in ("sst2", "mr", "cb") for seed in (0, 1)]

    def read(grid, task, control):
        if task == "mr":
            raise StudyError("not stored")
        return [stored(seed, None if task == "cb" else [0.1, 0.2], task) for seed in (0, 1)]

    monkeypatch.setattr(layers, "published_directory", Path)
    monkeypatch.setattr(study, "read_grids", lambda _: {"classification": cells})
    monkeypatch.setattr(reporting, "stored", read)
    assert list(layers.by_task("none")) == ["sst2"]
    assert layers.by_task("ascent") == {}
    assert layers.by_task("none", ["position"]) == {}


# Figures


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
    low, high = layers.over_seeds(rising()[:, 3])[1:3]
    assert ours.y[3] - ours.error_y.arrayminus[3] == pytest.approx(low)
    assert ours.y[3] + ours.error_y.array[3] == pytest.approx(high)


def test_trends_have_a_row_for_each_task():
    e = layers.Estimate(0.2, 0.1, 0.4, 0.01)
    figure = layers.trends({"a": {"sst2": e, "mr": e}, "b": {"mr": e}}, "rho")
    assert figure.layout.yaxis.ticktext == ("sst2", "mr")
    first, second = figure.data
    assert round(second.y[0]) == 1 and second.y[0] != first.y[1], "the marks do not hide one another"
    assert first.error_x.array[0] == pytest.approx(0.2) and first.error_x.arrayminus[0] == pytest.approx(0.1)
    assert first.marker.symbol != second.marker.symbol


def test_map_marks_layers():
    figure = layers.layer_map(
        {"x": {"sst2": [True, False, True], "mr": [False] * 3}, "y": {"mr": [False, True, False]}}
    )
    x, y = figure.data
    assert list(zip(x.x, x.y, strict=True)) == [(0, "sst2"), (2, "sst2")]
    assert list(zip(y.x, y.y, strict=True)) == [(1, "mr")]
    assert x.marker.symbol != y.marker.symbol and figure.layout.xaxis.range == (-0.5, 2.5)
