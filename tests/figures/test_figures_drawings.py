"""explainer.figures.drawings: the drawings beside the measures."""

import pytest

from explainer.figures import drawings


@pytest.mark.parametrize("name", ["repairs", "update_angle", "two_maps", "pair_order"])
def test_drawings_are_readable_on_a_phone_and_in_the_dark(name):
    drawing = drawings.drawing(name)
    assert 'viewBox="0 0 520 ' in drawing.svg
    assert "currentColor" in drawing.svg
    assert "#000" not in drawing.svg
