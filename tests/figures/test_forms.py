"""explainer.figures.figure_forms: dots and curves with intervals."""

import json

from explainer.figures import figure_forms
from explainer.theory.statistics import Interval


def test_dots_have_a_row_for_each_name_of_any_series_and_a_lane_for_each_series():
    dots = {"x": {"a": Interval(0.2, 0.1, 0.4), "b": 0.3}, "y": {"b": Interval(0.5, 0.4, 0.7)}}
    floors = {"floor": {"a": Interval(0.1, 0.1, 0.1)}, "none": {}}
    figure = figure_forms.dot_plot(dots, "cosine", floors=floors, quoted={"paper": {"c": 0.6}})
    rows = figure.layout.yaxis.ticktext
    assert rows == ("a", "b", "c") and figure.layout.yaxis.showgrid is False
    assert [trace.name for trace in figure.data] == ["x", "y", "paper", "floor"]
    for trace in figure.data:
        assert all(abs(y - rows.index(row)) < 0.5 for y, row in zip(trace.y, trace.customdata, strict=True))
    assert len({round(trace.y[0] % 1, 6) for trace in figure.data}) == 4
    json.dumps(figure.to_plotly_json()["data"][0]["x"])  # plain numbers


def test_what_a_context_and_a_training_do_looks_the_same_in_every_figure():
    names = ("two contexts", "other", "two training runs", "more", "last")
    one = figure_forms.dot_plot({name: {"a": 1} for name in names})
    two = figure_forms.curves([0, 1], {"fine-tuned": 3 * ([0, 1],), "in context": 3 * ([1, 0],)}, "x", "y")
    drawn = (*one.data, *two.data)
    looks = {of.name: (of.marker.symbol, of.marker.color or of.line.color) for of in drawn}
    assert looks["two contexts"] == looks["in context"] != looks["two training runs"] == looks["fine-tuned"]
    assert len({looks[name] for name in names}) == len(names)
