"""Contrast: what is stored is what the published tables say, and the default state is drawn to it."""

import numpy as np
import pytest
from javascript import close, computed

from explainer.explorables import Contrast
from explainer.explorables.base import rounded_to


def _cosine(a, b) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def _expected(widget: Contrast) -> dict[str, float]:
    c_A, c_B, f_A, f_B = np.add(widget.points, [widget.shared, 0])
    if widget.exchanged:
        f_A, f_B = f_B, f_A
    similarity = (_cosine(c_A, f_A) + _cosine(c_B, f_B)) / 2
    return {"similarity": similarity, "contrast": _cosine(c_A - c_B, f_A - f_B)}


def test_javascript_has_the_cosines_of_python():
    """What all four share falls out of the contrasts, and exchanging the trainings turns their cosine."""
    rng = np.random.default_rng(0)
    rows = [Contrast().points, *(rng.uniform(-2, 2, (4, 2)) for _ in range(10))]
    widgets = [Contrast()] + [
        Contrast(points=points, shared=shared, exchanged=exchanged)
        for points in rows
        for shared in (0, 1.1, 1.6)
        for exchanged in (False, True)
    ]
    alike = Contrast(points=[[0.5, 0.5]] * 4).state()
    found = """{
        ...m.cosines(s), changes: m.changes(s), swapped: m.changes({ ...s, exchanged: true }),
        same: m.cosines({ ...s, shared: 0.3 }).contrast, turned: m.cosines({ ...s, exchanged: !s.exchanged }).contrast,
        written: Object.values(m.cosines(s)).map((cosine) => Math.abs(cosine).toFixed(2)),
    }"""
    states = [*(widget.state() for widget in widgets), alike]
    own = computed("contrast", states, found, "{ without: m.cosine([0, 0], [1, 0]) }")
    assert own.without == 0, "points that coincide have no direction"
    for widget, each in zip(widgets, own.results, strict=False):
        close([each["similarity"], each["contrast"]], [*_expected(widget).values()], 1e-12)
        close([each["same"], each["turned"]], [each["contrast"], -each["contrast"]])
        c_A, c_B, f_A, f_B = each["changes"]
        assert each["swapped"] == ([c_A, c_B, f_A, f_B] if widget.exchanged else [c_A, c_B, f_B, f_A])
    assert all(cosine in each["words"] for each in own.results for cosine in each["written"])
    apart, together = (own.results[i]["similarity"] for i in (0, 5))
    assert together > apart + 0.1


def test_stored_cosines_are_those_of_the_tables():
    assert Contrast.stored() == rounded_to(Contrast.measured(), Contrast.digits)


def test_the_default_is_drawn_as_measured():
    drawn, found = _expected(Contrast()), Contrast.stored()
    for name, value in drawn.items():
        assert value == pytest.approx(found[name][0], abs=5e-3)
    assert found["similarity"][1] > found["foreign"][2] > found["contrast"][2] > 0
