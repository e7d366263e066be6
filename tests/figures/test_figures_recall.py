"""The figure of paired differences draws what it is given."""

from explainer.figures import recall as figures
from explainer.theory.statistics import Interval

ROWS = {"a − b": ([0.1, -0.2, 0.4], Interval(0.1, -0.3, 0.6)), "c − d": ([0.0, 0.1, 0.2], Interval(0.1, 0.0, 0.2))}


def test_each_panel_has_ticks_for_seeds_and_a_point_with_its_interval():
    figure = figures.paired_differences({"kept": ROWS, "revised": {"c − d": ROWS["c − d"]}}, "difference")
    seeds, mean, *_ = figure.data
    assert seeds.x == (0.1, -0.2, 0.4) and len(set(seeds.y)) == 1 and seeds.y[0] != mean.y[0]
    assert mean.x == (0.1,) and (mean.error_x.array, mean.error_x.arrayminus) == ((0.5,), (0.4,))
    assert [trace.showlegend for trace in figure.data] == [True, True] + 4 * [False]
    assert figure.layout.yaxis.ticktext == ("a<br>− b", "c<br>− d")
    assert [note.text for note in figure.layout.annotations] == ["kept", "revised"]
    assert len([shape for shape in figure.layout.shapes if shape.x0 == 0 == shape.x1]) == 2


def test_a_row_has_its_place_in_every_panel():
    """Also where a panel lacks a row before it."""
    figure = figures.paired_differences({"kept": ROWS, "revised": {"c − d": ROWS["c − d"]}}, "difference")
    assert figure.data[-1].y == (1,)
