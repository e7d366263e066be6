"""The figures of the chapter on the linear transformer."""

import numpy as np
import pytest

from explainer.figures import linear_transformer as figures

TIMES = 0.1 * np.arange(2001)
EIGENVALUES = (2.0, 1.0, 0.3)
SHARES = 1 - np.exp(-TIMES[:, None] * np.array(EIGENVALUES))
REACHED = -np.log(1 - figures._LEVEL) / np.array(EIGENVALUES)


def test_curves_pass_through_their_marks():
    figure = figures.learning_curves(TIMES, SHARES, REACHED, EIGENVALUES)
    for k in range(3):
        curve, mark = figure.data[2 * k : 2 * k + 2]
        assert mark.x[0] == pytest.approx(REACHED[k]) and mark.y[0] == figures._LEVEL
        assert np.interp(mark.x[0], curve.x, curve.y) == pytest.approx(figures._LEVEL, abs=0.02)
        assert curve.line.color == mark.marker.color and mark.showlegend is False
    assert len({figure.data[2 * k].line.dash for k in range(3)}) == 3
    assert sum(len(trace.x) for trace in figure.data) < 400, "the page's table of numbers holds them"


def test_a_cell_has_an_interval_over_seeds_and_none_for_one_run():
    assert figures.format_interval([3.2e-9]) == "3e-09"
    # Student's with 2 degrees: 4.303 sd / sqrt(3), sd = 0.1
    assert figures.format_interval([0.1, 0.2, 0.3]) == "0.20 (-0.05 to 0.45)"
