"""Controls beside the comparison: every value in its row, and the cells of the tables."""

from explainer.figures import control_figures
from explainer.theory.statistics import Interval


def test_table_has_a_row_for_each_control_and_says_where_a_measure_is_missing():
    difference = Interval(-0.3, -0.4, 0.1, 0.02)
    rows = control_figures.table_rows({("pairs", "ascent", "x"): difference, ("pairs", "untrained", "y"): difference})
    assert [row[:2] for row in rows] == [["FT: ascent", "pairs"], ["untrained model", "pairs"]]
    assert [row[2:].index("-") for row in rows] == [1, 0]
    assert rows[0][2] == (
        "\N{MINUS SIGN}0.300<br><small>[\N{MINUS SIGN}0.400,\N{NO-BREAK SPACE}+0.100]<br>p&nbsp;=&nbsp;0.020</small>"
    )
    assert "p&nbsp;&lt;&nbsp;0.001" in control_figures._difference_text(Interval(1, 1, 1, 0.0001))
