"""Figures and the table of the chapter `comparison_protocol`."""

from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest

from explainer.analysis import reporting
from explainer.figures import base, protocol
from explainer.lab.store import Stored
from explainer.theory.statistics import Interval


def stored(task="a", *, seed=0, lr=1e-3, labels=(0, 1), diverged=False, sim=(0.1, 0.3)):
    result = {
        "predictions": {"ft": None if diverged else {"correct": [1, 0], "log_probs": [[-2.0, -1.0], [-1.0, -2.0]]}},
        "setting": {"labels": None if labels is None else list(labels)},
        "similarity": None
        if diverged
        else {"sim_aou": {"queries": list(sim)}, "update_norm_ratio": {"queries": [2.0]}},
        "reasons": {},
    }
    return Stored(Path("x"), {"cell": {"task": task, "seed": seed, "lr": lr}}, {}, result)


def test_groups_keep_the_order():
    finished = [stored("b"), stored("a"), stored("b", seed=1)]
    groups = reporting.by(finished, "task")
    assert list(groups) == ["b", "a"] and groups["b"] == [finished[0], finished[2]]


def test_first_queries_of_each_seed():
    values = [(np.arange(5),), (np.arange(3),)]
    assert [v.tolist() for (v,) in protocol.first(values, 2)] == [[0, 1], [0, 1]]
    assert [len(v) for (v,) in protocol.first(values, None)] == [5, 3]


def test_same_queries_compares_seeds_and_shared_labels():
    long = [stored(seed=s, labels=(0, 1, 1)) for s in (0, 1)]
    assert protocol.same_queries(long, [stored(seed=s, labels=(0, 1)) for s in (0, 1)])
    assert protocol.same_queries([stored(labels=None)], [stored(labels=None)])
    assert not protocol.same_queries(long, [stored(seed=s, labels=(0, 0)) for s in (0, 1)])
    assert not protocol.same_queries(long, [stored(seed=s) for s in (0, 2)])
    assert not protocol.same_queries(long, [stored()])


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((0.12345, 0.1, 0.2), "0.123 [0.100, 0.200]"),
        ((-0.5, -1, 0), "−0.500 [−1.000, 0.000]"),
        ((-0.0001, -0.0001, 0.0001, 0.9), "0.000 [0.000, 0.000]"),
    ],
)
def test_shown(numbers, text):
    assert protocol.shown(*numbers) == text


def test_rates_leave_out_what_diverged():
    finished = [
        stored(lr=1e-2, seed=0, diverged=True),
        stored(lr=1e-2, seed=1, sim=(0.4, 0.4)),
        stored(lr=1e-3, seed=0, sim=(0.1, 0.1)),
        stored(lr=1e-3, seed=1, sim=(0.3, 0.3)),
        stored("b", lr=1e-1, diverged=True),
    ]
    curve = protocol.against_rate(finished, protocol.READINGS["SimAOU"])
    assert list(curve["a"]) == [1e-3, 1e-2] and curve["b"] == {}
    assert curve["a"][1e-3].estimate == pytest.approx(0.2) and curve["a"][1e-2].estimate == pytest.approx(0.4)
    assert protocol.diverged(finished) == "a at 0.01: 1 of 2 seeds; b at 0.1: 1 of 1 seeds"
    assert protocol.diverged(finished[1:4]) == "nowhere"
    assert protocol.against_rate(finished, protocol.READINGS["FT accuracy"])["a"][1e-2].estimate == 0.5
    assert protocol.against_rate(finished[1:4], protocol.READINGS["FT AUC"])["a"][1e-2].estimate == 0
    assert protocol.against_rate(finished, protocol.READINGS["size of the update"])["a"][1e-2].estimate == 2


def test_rates_draw_a_panel_for_each_reading_and_floors_in_the_first():
    of_task = {"a": {1e-3: Interval(0.2, 0.1, 0.4), 1e-2: Interval(0.3, 0.2, 0.5)}}
    figure = protocol.rates({"SimAOU": of_task, "size": of_task}, {"a": {1e-3: Interval(0.05, 0.0, 0.1)}})
    assert [t.name for t in figure.data] == ["a", "a, isotropic floor", "a"]
    assert [t.yaxis for t in figure.data] == ["y", "y", "y2"]
    assert figure.data[0].error_y.array == pytest.approx((0.2, 0.2))
    assert figure.data[0].error_y.arrayminus == pytest.approx((0.1, 0.1))
    assert figure.layout.yaxis2.type == "log" and figure.layout.yaxis.type != "log"
    assert "open" in figure.data[1].marker.symbol


def test_a_task_that_always_diverged_has_an_empty_curve():
    figure = protocol.rates({"SimAOU": {"a": {}}}, {"a": {}})
    assert [len(t.x) for t in figure.data] == [0, 0]


def test_readings_put_each_name_in_its_row_and_leave_quoted_markers_open():
    measured = {"x": {"a": Interval(0.2, 0.1, 0.4), "b": Interval(0.0, -0.1, 0.1)}, "y": {"b": Interval(1, 0, 2)}}
    figure = protocol.readings(measured, "cosine", {"paper": {"b": 0.7, "c": 0.9}})
    x, y, paper = figure.data
    assert list(x.x) == [0.2, 0.0] and list(y.x) == [1.0] and list(paper.x) == [0.7]
    assert [round(v) for v in (*x.y, *y.y, *paper.y)] == [1, 0, 0, 0]
    assert x.error_x.array == pytest.approx((0.2, 0.1)) and x.error_x.arrayminus == pytest.approx((0.1, 0.1))
    assert "open" in paper.marker.symbol and "open" not in x.marker.symbol and paper.error_x.array is None
    assert figure.layout.yaxis.ticktext == ("a", "b") and figure.layout.yaxis.tickvals == (1, 0)
    assert len(figure.layout.shapes) == 1 and len(protocol.readings(measured, "x", zero=False).layout.shapes) == 0
    assert isinstance(go.Figure(protocol.readings({"x": measured["x"]}, "one series")), go.Figure)


def test_the_table_has_every_setting_and_its_effects():
    html = protocol.traps({"separator": ["one", "two"]}, "caption", "Stored: x")._repr_mimebundle_()[base.STATIC_MIME]
    for what, columns in protocol.SETTINGS.items():
        assert what in html["html"] and all(text in html["html"] for text in columns)
    lines = '<span style="white-space: nowrap">one</span><br><span style="white-space: nowrap">two</span>'
    assert lines in html["html"]
    assert html["html"].count("not measured") == len(protocol.SETTINGS) - 1
