"""Figures and cells of measurements with intervals: lines across, where it is cut, and what stands in a table."""

import numpy as np
import pytest

from explainer.figures import figure_base, measurement_figures
from explainer.theory.statistics import Interval

A, B, ROUNDING = Interval(0.2, 0.1, 0.4), Interval(3.0, 2.5, 3.5), Interval(1e-29, 0.0, 1e-28)


def test_lines_across_and_cut_points():
    figure = measurement_figures.points_on_curves(
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


def test_ticks_of_a_log_axis_are_few_own_values_or_round_ones():
    assert figure_base.log_axis([1, 2, 3, 4, 8])["ticktext"] == ["1", "2", "4", "8"]
    assert figure_base.log_axis([0.03, 0.4], own=False)["tickvals"][:4] == [0.01, 0.02, 0.05, 0.1]
    assert figure_base.log_axis([2e-4, 0, 7], own=False)["ticktext"] == ["10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "1", "10"]


def test_count_and_range_are_those_of_numbers_and_of_estimates():
    assert measurement_figures.count_and_range([B, 0.5, A, 7]) == (4, 0.2, 7)
