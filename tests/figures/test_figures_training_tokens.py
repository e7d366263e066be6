"""explainer.figures.training_tokens: ranks against ranks, and the drawings of two chapters."""

import json

import numpy as np
import pytest

from explainer.figures import drawings, training_tokens


def test_scatter_draws_ranks_and_sizes():
    pair = np.array([0.5, -1.0, 7.0]), np.array([3.0, 2.0, 1.0])
    figure = training_tokens.scatter({"one": pair, "two": pair[::-1]}, np.array([10, 20, 40]), "x", "y")
    first, second = figure.data
    assert list(first.x) == [2, 1, 3]
    assert list(first.y) == [3, 2, 1]
    assert list(second.x) == [3, 2, 1]
    assert first.marker.size[0] < first.marker.size[1] < first.marker.size[2]
    json.dumps(figure.to_plotly_json()["data"][0]["x"])  # plain numbers


@pytest.mark.parametrize("name", ["repairs", "update_angle", "two_maps", "pair_order"])
def test_drawings_are_readable_on_a_phone_and_in_the_dark(name):
    drawing = drawings.drawing(name)
    assert 'viewBox="0 0 520 ' in drawing.svg
    assert "currentColor" in drawing.svg
    assert "#000" not in drawing.svg
