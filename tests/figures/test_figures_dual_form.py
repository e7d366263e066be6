"""The figure of the heads that learn."""

import numpy as np
import pytest

from explainer.figures import dual_form


@pytest.fixture
def losses():
    """(tasks, lengths, layers), different at every place."""
    return np.random.default_rng(0).random((5, 4, 16))


def test_lines_are_the_heads_and_markers_are_descent(losses):
    descent = losses / 2
    drawn = dual_form.falling_loss([1, 2, 8, 32], losses, descent)
    of = {trace.name: np.array(trace.y) for trace in drawn.data}
    assert len(of) == 2 * (len(dual_form.LAYERS) + len(dual_form.LENGTHS))
    np.testing.assert_allclose(of["heads, 4 layers"], losses[:, :, 3].mean(0), atol=1e-4)
    np.testing.assert_allclose(of["descent, 4 layers"], descent[:, :, 3].mean(0), atol=1e-4)
    np.testing.assert_allclose(of["heads, 8 examples"], losses[:, 2].mean(0), atol=1e-4)
    np.testing.assert_allclose(of["descent, 32 examples"], descent[:, 3].mean(0), atol=1e-4)


def test_each_panel_has_its_own_axis(losses):
    drawn = dual_form.falling_loss([1, 2, 8, 32], losses, losses)
    axes = {trace.name: (trace.xaxis, list(trace.x)) for trace in drawn.data}
    assert axes["heads, 1 layer"] == ("x", [1, 2, 8, 32])
    assert axes["heads, 2 examples"] == ("x2", list(range(1, 17)))
