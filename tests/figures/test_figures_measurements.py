"""What figures of measurements say of many numbers and of names; how they look is in `looks.json`."""

from explainer.figures import measurements
from explainer.theory.statistics import Interval

A, B = Interval(0.2, 0.1, 0.4), Interval(3.0, 2.5, 3.5)


def test_count_and_range_are_those_of_numbers_and_of_estimates():
    assert measurements.count_and_range([B, 0.5, A, 7]) == (4, 0.2, 7)


def test_names_are_escaped():
    figure = measurements.log_dot_plot({"a": {"<b>": A}}, "error", smallest=1e-3)
    assert figure.layout.xaxis.ticktext == ("&lt;b&gt;",)
