"""Figures of measurements with intervals: what they draw, and where it is cut."""

import numpy as np
import pytest

from explainer.figures import measurements
from explainer.theory.statistics import Interval

A, B, ROUNDING = Interval(0.2, 0.1, 0.4), Interval(3.0, 2.5, 3.5), Interval(1e-29, 0.0, 1e-28)


def test_dots_stand_beside_each_other_in_their_category():
    figure = measurements.log_dot_plot(
        {"layer": {"no shift": A, "inputs x <2>": B}, "OLS": {"no shift": ROUNDING}}, "error", smallest=1e-3
    )
    layer, ols = figure.data
    assert list(layer.y) == [0.2, 3.0] and list(ols.y) == [1e-3]
    assert layer.x[1] - layer.x[0] == pytest.approx(1) and round(layer.x[0]) == round(ols.x[0]) == 0
    assert layer.x[0] < ols.x[0]
    assert layer.marker.symbol != ols.marker.symbol
    np.testing.assert_allclose(layer.error_y.array, [0.2, 0.5])
    np.testing.assert_allclose(layer.error_y.arrayminus, [0.1, 0.5])
    assert list(ols.error_y.array) == [0]
    assert list(figure.layout.xaxis.ticktext) == ["no<br>shift", "inputs<br>x<br>&lt;2&gt;"]


def test_a_line_and_its_points_look_alike_and_are_named_once():
    figure = measurements.points_on_curves(
        {"N = 5": ([1, 10], [1.0, 0.1]), "N = 20": ([1, 10], [2.0, 0.123456])},
        {"N = 20": {10: A}, "GPT": {5: B}},
        "M",
        "error",
    )
    first, line, points, gpt = figure.data
    assert (first.mode, line.mode, points.mode, gpt.mode) == ("lines", "lines", "markers", "markers")
    assert [trace.showlegend for trace in (first, line, points, gpt)] == [True, False, None, None]
    assert line.line.color == points.marker.color != gpt.marker.color
    assert line.x == first.x == (1, 10) and line.y[1] == 0.1235 and points.x == (10,)
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"


def test_lines_across_and_cut_points():
    figure = measurements.points_on_curves(
        {}, {"OLS": {5: ROUNDING}}, "M", "error", levels={"1/3": 1 / 3}, marks={"here": 18.0}, smallest=1e-3, log="y"
    )
    assert list(figure.data[0].y) == [1e-3]
    across, upright = figure.layout.shapes
    assert across.y0 == pytest.approx(1 / 3) and upright.x0 == 18
    level, mark = figure.layout.annotations
    assert (level.text, mark.text) == ("1/3", "here")
    assert level.y == pytest.approx(np.log10(1 / 3)), "texts on a log axis are placed by powers of ten"
    assert mark.x == 18
    assert figure.layout.xaxis.type is None


def test_count_and_range_are_those_of_numbers_and_of_estimates():
    assert measurements.count_and_range([B, 0.5, A, 7]) == (4, 0.2, 7)
