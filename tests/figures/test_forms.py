"""explainer.figures.forms: dots and curves with intervals."""

import json

import numpy as np
import pytest

from explainer.figures import forms
from explainer.theory.statistics import Interval

PANELS = {
    "one": {"x": {"a": Interval(0.2, 0.1, 0.4), "b": 0.3}, "y": {"b": Interval(0.5, 0.4, 0.7)}},
    "two": {"y": {"a": 0.1}, "nothing": {}},
}


def drawn(**more):
    return forms.dot_plot(PANELS["one"], "cosine", **more)


def test_dots_have_a_row_for_each_name_of_any_series_and_a_lane_for_each_series():
    figure = drawn(floors={"floor": {"a": Interval(0.1, 0.1, 0.1)}, "none": {}}, quoted={"paper": {"c": 0.6}})
    rows = figure.layout.yaxis.ticktext
    assert rows == ("a", "b", "c") and figure.layout.yaxis.showgrid is False
    assert [trace.name for trace in figure.data] == ["x", "y", "paper", "floor"]
    for trace in figure.data:
        assert all(abs(y - rows.index(row)) < 0.5 for y, row in zip(trace.y, trace.customdata, strict=True))
    assert len({round(trace.y[0] % 1, 6) for trace in figure.data}) == 4
    json.dumps(figure.to_plotly_json()["data"][0]["x"])  # plain numbers


def test_dots_show_ends_of_intervals_where_there_are_any():
    x, y, floor, _ = drawn(floors={"f": {"a": Interval(0.1, 0.1, 0.1)}, "g": {"a": Interval(0.1, np.nan, np.nan)}}).data
    assert (x.error_x.array[1], x.error_x.arrayminus[1]) == (None, None)
    np.testing.assert_allclose((x.error_x.array[0], x.error_x.arrayminus[0]), [0.2, 0.1])
    np.testing.assert_allclose((y.error_x.array, y.error_x.arrayminus), [[0.2], [0.1]])
    assert floor.error_x.array is None


@pytest.mark.parametrize("columns", [1, 2])
def test_panels_have_the_same_rows_and_looks_and_one_legend(columns):
    figure = forms.dot_panels(PANELS, "x", columns=columns, line=None)
    assert [(t.name, t.xaxis, t.showlegend) for t in figure.data] == [
        ("x", "x", True),
        ("y", "x", True),
        ("y", "x2", False),
    ]
    assert figure.data[1].marker == figure.data[2].marker
    assert [title.text for title in figure.layout.annotations] == ["one", "two"]
    assert figure.layout.yaxis.ticktext == figure.layout.yaxis2.ticktext == ("a", "b")


def test_what_a_context_and_a_training_do_looks_the_same_in_every_figure():
    names = ("two contexts", "other", "two trainings", "more", "last")
    one = forms.dot_plot({name: {"a": 1} for name in names})
    two = forms.curves([0, 1], {"fine-tuned": 3 * ([0, 1],), "in context": 3 * ([1, 0],)}, "x", "y")
    drawn = (*one.data, *two.data)
    looks = {of.name: (of.marker.symbol, of.marker.color or of.line.color) for of in drawn}
    assert looks["two contexts"] == looks["in context"] != looks["two trainings"] == looks["fine-tuned"]
    assert len({looks[name] for name in names}) == len(names)


CURVES = {"one": {"s": {0: Interval(0.5, 0.4, 0.7), 16: Interval(0.9, 0.8, 1)}, "t": {16: Interval(1, 0, 2)}}}


def test_curves_by_rank_keep_their_names():
    figure = forms.curve_panels(CURVES | {"two": CURVES["one"]}, "k", by_rank=True)
    assert [t.name for t in figure.data] == ["s", "t"] * 2 and {t.xaxis for t in figure.data} == {"x", "x2"}
    assert figure.layout.xaxis2.ticktext == ("0", "16")
    assert [round(x) for x in figure.data[0].x] == [0, 1] and [round(x) for x in figure.data[1].x] == [1]
    bars = figure.data[0].error_y
    np.testing.assert_allclose((bars.array, bars.arrayminus), [[0.2, 0.1], [0.1, 0.1]])
    assert sum(t.showlegend for t in figure.data) == 2


def test_curves_take_means_and_ends_or_intervals_of_arrays():
    ends = np.array([0.5, 0.9]), np.array([0.4, 0.8]), np.array([0.7, 1.0])
    plain, interval = forms.curves([1, 2], {"a": ends, "b": Interval(*ends)}, "x", "y", log2=True).data
    assert plain.y == interval.y == (0.5, 0.9) and plain.error_y.array == interval.error_y.array


def test_matrices_share_one_scale_around_zero():
    figure = forms.matrices({"a": np.diag([1.0, -3.0]), "b": np.eye(2)})
    assert [trace.name for trace in figure.data] == ["a", "b"]
    assert [trace.coloraxis for trace in figure.data] == ["coloraxis", "coloraxis"]
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-3, 3)
    assert figure.layout.xaxis.showgrid is figure.layout.yaxis.showgrid is False
    np.testing.assert_array_equal(figure.data[0].z, [[1, 0], [0, -3]])
