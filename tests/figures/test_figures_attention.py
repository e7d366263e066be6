"""explainer.figures.attention: what is drawn is what was measured, in the places where it belongs."""

import numpy as np
import pytest
import torch

from explainer.figures import attention


def test_every_token_has_its_bar_at_its_place():
    tokens, weights = ["a", " ->", "b", "\n"], torch.tensor([0.1, 0.2, 0.65, 0.05])
    figure = attention.bar_per_token(tokens, weights, [2], "after an arrow")
    bars = {place: share for trace in figure.data for place, share in zip(trace.y, trace.x, strict=True)}
    assert [round(bars[i], 2) for i in range(4)] == [0.1, 0.2, 0.65, 0.05]
    marked, others = figure.data
    assert (marked.name, list(marked.y)) == ("after an arrow", [2])
    assert marked.marker.pattern.shape != others.marker.pattern.shape
    assert figure.layout.yaxis.ticktext == ("a", " ->", "b", "\\n")
    assert figure.layout.yaxis.autorange == "reversed"


def test_scores_stand_in_their_layer_and_head_and_the_marked_are_ringed():
    scores = {"one": np.arange(6).reshape(3, 2) / 10, "two": np.zeros((3, 2))}
    figure = attention.head_scores(scores, {"one": [(2, 1)], "two": [(0, 0), (1, 0)]})
    shades, rings, other, _ = figure.data
    assert list(shades.y) == [1, 2, 3] and list(shades.x) == [1, 2] and shades.z[2][1] == 0.5
    assert (shades.zmin, shades.zmax) == (other.zmin, other.zmax) == (0, 1)
    assert (list(rings.x), list(rings.y)) == ([2], [3])
    assert (shades.showscale, other.showscale, other.colorbar.orientation) == (False, True, "h")  # one bar, above both
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("head", "layer")
    assert figure.layout.xaxis.showgrid is figure.layout.yaxis.showgrid is False


@pytest.fixture
def panels():
    """Two panels of (tasks, lengths), different at every place, descent half of the heads."""
    draw = np.random.default_rng(0).random
    return {panel: {layers: (losses := draw((5, 4)), losses / 2) for layers in (1, 4)} for panel in ("even", "uneven")}


def test_lines_are_the_heads_and_markers_are_descent_in_their_panel(panels):
    drawn = attention.falling_loss([1, 2, 8, 32], panels)
    of = {(trace.name, trace.xaxis): np.array(trace.y) for trace in drawn.data}
    assert len(of) == 8
    for panel, axis in (("even", "x"), ("uneven", "x2")):
        for layers, name in ((1, "1 layer"), (4, "4 layers")):
            heads, descent = panels[panel][layers]
            np.testing.assert_allclose(of[name, axis], heads.mean(0), rtol=0.01)
            np.testing.assert_allclose(of[f"descent, {name}", axis], descent.mean(0), rtol=0.01)
    assert sum(trace.showlegend is not False for trace in drawn.data) == 2
