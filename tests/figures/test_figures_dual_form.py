"""The figure of the heads that learn."""

import numpy as np
import pytest

from explainer.figures import dual_form


@pytest.fixture
def panels():
    """Two panels of (tasks, lengths), different at every place, descent half of the heads."""
    draw = np.random.default_rng(0).random
    return {panel: {layers: (losses := draw((5, 4)), losses / 2) for layers in (1, 4)} for panel in ("even", "uneven")}


def test_lines_are_the_heads_and_markers_are_descent_in_their_panel(panels):
    drawn = dual_form.falling_loss([1, 2, 8, 32], panels)
    of = {(trace.name, trace.xaxis): np.array(trace.y) for trace in drawn.data}
    assert len(of) == 8
    for panel, axis in (("even", "x"), ("uneven", "x2")):
        for layers, name in ((1, "1 layer"), (4, "4 layers")):
            heads, descent = panels[panel][layers]
            np.testing.assert_allclose(of[name, axis], heads.mean(0), rtol=0.01)
            np.testing.assert_allclose(of[f"descent, {name}", axis], descent.mean(0), rtol=0.01)
    assert sum(trace.showlegend is not False for trace in drawn.data) == 2


def test_bars_end_above_zero_on_a_logarithmic_axis(panels):
    for trace in dual_form.falling_loss([1, 2, 8, 32], panels).data:
        if trace.error_y.arrayminus is not None:
            assert (np.array(trace.y) > np.array(trace.error_y.arrayminus)).all()
