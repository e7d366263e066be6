"""The figure with demonstrations and the cells of the tables of the chapter on controls."""

import numpy as np

from explainer.figures import controls
from explainer.theory.statistics import Interval


def test_tasks_stand_side_by_side_with_their_k():
    at = {1: Interval(0.1, 0, 0.2), 4: Interval(0.4, 0.3, 0.5)}
    panel = {"right": {"capitals": at, "past": at}, "shuffled": {"capitals": at, "past": {4: at[4]}}}
    figure = controls.with_k({"accuracy": panel, "SimAOU": panel})
    right = [t for t in figure.data if t.name == "right"]
    assert [round(x) for x in right[0].x] == [*range(5)]
    assert [np.isnan(trace.y).nonzero()[0].tolist() for trace in right] == [[2]] * 2, "a gap between tasks"
    assert right[0].customdata[3] == "past, k = 1"
    assert figure.layout.xaxis.tickvals == (0, 1, 3, 4) and figure.layout.xaxis.ticktext == ("1", "4", "1", "4")
    assert {"<b>capitals</b>", "<b>past</b>", "accuracy", "SimAOU"} <= {a.text for a in figure.layout.annotations}
    assert sum(bool(t.showlegend) for t in figure.data) == 2


def test_table_has_a_row_for_each_control_and_says_where_a_measure_is_missing():
    difference = Interval(-0.3, -0.4, 0.1, 0.02)
    rows = controls.table_rows({("pairs", "ascent", "x"): difference, ("pairs", "untrained", "y"): difference})
    assert [row[:2] for row in rows] == [["FT: ascent", "pairs"], ["untrained model", "pairs"]]
    assert [row[2:].index("-") for row in rows] == [1, 0]
    assert rows[0][2] == (
        "\N{MINUS SIGN}0.300<br><small>[\N{MINUS SIGN}0.400,\N{NO-BREAK SPACE}+0.100]<br>p&nbsp;=&nbsp;0.020</small>"
    )
    assert "p&nbsp;&lt;&nbsp;0.001" in controls.difference_text(Interval(1, 1, 1, 0.0001))
