"""explainer.figures.induction: what is drawn is what was measured, in the places where it belongs."""

import numpy as np

from explainer.figures import induction


def test_scores_stand_in_their_layer_and_head_and_the_marked_are_ringed():
    scores = {"one": np.arange(6).reshape(3, 2) / 10, "two": np.zeros((3, 2))}
    figure = induction.head_scores(scores, {"one": [(2, 1)], "two": [(0, 0), (1, 0)]})
    shades, rings, other, _ = figure.data
    assert list(shades.y) == [1, 2, 3] and list(shades.x) == [1, 2] and shades.z[2][1] == 0.5
    assert (shades.zmin, shades.zmax) == (other.zmin, other.zmax) == (0, 1)
    assert (list(rings.x), list(rings.y)) == ([2], [3])
    assert (shades.showscale, other.showscale, other.colorbar.orientation) == (False, True, "h")  # one bar, above both
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("head", "layer")
    assert figure.layout.xaxis.showgrid is figure.layout.yaxis.showgrid is False


def test_effects_show_the_control_beside_each():
    measured, control = {"capitals": {"a": -2.0, "b": -1.0}}, {"capitals": {"a": -0.5, "b": -0.75}}
    own, beside = induction.log_prob_changes(measured, control).data
    assert list(own.x) == [-2, -1] and list(beside.x) == [-0.5, -0.75] and list(own.y) == list(beside.y)
    assert len(induction.log_prob_changes(measured).data) == 1
