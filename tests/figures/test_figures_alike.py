"""The cloud of random directions: every value in its row, and what is marked beside it."""

from explainer.figures.alike import scattered


def test_every_value_stands_in_its_row():
    values = {"capitals": [0.1, -0.1, 0.05], "plurals": [0.2, -0.2]}
    figure = scattered(values, {"FT": {"capitals": 0.4, "plurals": 0.3}}, "SimAOU")
    clouds, marked = figure.data[:2], figure.data[2]
    assert [list(cloud.x) for cloud in clouds] == list(values.values())
    assert all(abs(y - i) <= 0.25 for i, cloud in enumerate(clouds) for y in cloud.y)
    assert (marked.name, list(marked.x), list(marked.y)) == ("FT", [0.4, 0.3], [0, 1])
    assert [bool(trace.showlegend) for trace in clouds] == [True, False]
