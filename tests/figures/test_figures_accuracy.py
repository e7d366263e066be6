"""explainer.figures.accuracy: the bars of answers and the bold differences."""

import numpy as np

from explainer.figures import accuracy
from explainer.theory.statistics import Interval


def test_answers_are_bars_that_fill_the_row():
    figure = accuracy.answers({"mr": (("Negative", "Positive"), {"right": [0.375, 0.625], "ICL 3": [0, 1]})})
    assert [bar.name for bar in figure.data] == ["Negative", "Positive"]
    np.testing.assert_allclose(np.sum([bar.x for bar in figure.data], 0), 1, atol=2e-3)
    assert figure.data[1].x[-1] == 1 and figure.data[1].text[0] == "Positive"


def test_bold_is_what_excludes_zero():
    assert (
        accuracy.solid(Interval(0.2, 0.1, 0.3))
        == "<strong>20.0\N{NO-BREAK SPACE}[10.0,\N{NO-BREAK SPACE}30.0]</strong>"
    )
    assert accuracy.solid(Interval(-0.2, -0.3, -0.1)).startswith("<strong>")
    assert "<" not in accuracy.solid(Interval(0.1, -0.1, 0.3))
