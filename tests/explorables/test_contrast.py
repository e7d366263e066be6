"""Contrast: what is stored is what the published tables say, and the default state is drawn to it."""

import numpy as np
import pytest

from explainer.explorables import Contrast
from explainer.explorables.base import rounded


def _cosine(a, b) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def _expected(widget: Contrast) -> dict[str, float]:
    c_A, c_B, f_A, f_B = np.add(widget.points, [widget.shared, 0])
    if widget.exchanged:
        f_A, f_B = f_B, f_A
    similarity = (_cosine(c_A, f_A) + _cosine(c_B, f_B)) / 2
    return {"similarity": similarity, "contrast": _cosine(c_A - c_B, f_A - f_B)}


def contrast_fixture() -> list[dict]:
    rng = np.random.default_rng(0)
    rows = [Contrast().points, *(rng.uniform(-2, 2, (4, 2)) for _ in range(10))]
    widgets = [
        Contrast(points=points, shared=shared, exchanged=exchanged)
        for points in rows
        for shared in (0, 1.1, 1.6)
        for exchanged in (False, True)
    ]
    return [{"state": widget.state(), **_expected(widget)} for widget in [Contrast(), *widgets]]


def test_stored_cosines_are_those_of_the_tables():
    assert Contrast.stored() == rounded(Contrast.measured(), Contrast.digits)


def test_the_default_is_drawn_as_measured():
    drawn, found = _expected(Contrast()), Contrast.stored()
    for name, value in drawn.items():
        assert value == pytest.approx(found[name][0], abs=5e-3)
    assert found["similarity"][1] > found["foreign"][2] > found["contrast"][2] > 0
