"""explainer.figures.accuracy: intervals of shares, what stored answers say, and the figures of the chapter."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explainer.figures import accuracy
from explainer.lab.store import Stored
from explainer.theory import statistics
from explainer.theory.statistics import Interval


def stored(seed, answers, labels, n_labels=2, content_free=None):
    """A result in whose every state the labels `answers` have the largest log-probability."""
    log_probs = np.full((len(answers), n_labels), -2.0)
    log_probs[np.arange(len(answers)), answers] = -1
    row = {"log_probs": log_probs.tolist(), "content_free": content_free or [0.0] * n_labels}
    result = {"predictions": dict.fromkeys(("zsl", "icl", "ft"), row), "setting": {"labels": labels, "n": len(labels)}}
    return Stored(Path(f"seed{seed}"), {"cell": {"seed": seed}}, {}, result)


# Intervals.


def test_wilson_solves_its_quadratic():
    """At both ends, the share that was seen lies 1.96 standard errors away."""
    share, low, high = accuracy.binomial_interval(0.37, 100)
    z = 1.959963984540054
    for p in (low, high):
        assert abs(share - p) == pytest.approx(z * np.sqrt(p * (1 - p) / 100), rel=1e-9)


def test_a_quoted_share_becomes_a_whole_number_of_queries():
    assert accuracy.binomial_interval(0.571, 56).estimate == 32 / 56
    assert accuracy.difference_interval(0.571, 0.554, 56).estimate == pytest.approx(1 / 56, abs=1e-12)


def test_newcombe_of_the_published_example():
    """56 of 70 against 48 of 80: [0.0524, 0.3339] (Newcombe 1998, Table II, method 10, example a)."""
    (_, low_a, high_a), (_, low_b, high_b) = accuracy.binomial_interval(0.8, 70), accuracy.binomial_interval(0.6, 80)
    assert 0.2 - np.hypot(0.8 - low_a, high_b - 0.6) == pytest.approx(0.0524, abs=5e-5)
    assert 0.2 + np.hypot(high_a - 0.8, 0.6 - low_b) == pytest.approx(0.3339, abs=5e-5)
    same_n = accuracy.difference_interval(0.8, 0.6, 80)
    assert same_n.low < 0.2 < same_n.high and same_n.low == pytest.approx(0.0552, abs=5e-3)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(60, 200))
def test_difference_mirrors_when_its_terms_are_swapped(a, b, n):
    forth, back = accuracy.difference_interval(a / n, b / n, n), accuracy.difference_interval(b / n, a / n, n)
    assert forth == pytest.approx((-back.estimate, -back.high, -back.low), abs=1e-12)
    assert forth.low <= forth.estimate <= forth.high


NO_BREAK = "\N{NO-BREAK SPACE}"


def test_text_of_an_interval():
    assert accuracy.points((0.614, 0.58, 0.651)) == "61 [58, 65]".replace(" ", NO_BREAK)
    assert accuracy.points(Interval(-0.0179, -0.195, 0.161), 1) == "−1.8 [−19.5, 16.1]".replace(" ", NO_BREAK)
    assert accuracy.solid(Interval(0.2, 0.1, 0.3)) == f"<strong>{accuracy.points((0.2, 0.1, 0.3), 1)}</strong>"
    assert accuracy.solid(Interval(-0.2, -0.3, -0.1)).startswith("<strong>")
    assert "<" not in accuracy.solid(Interval(0.1, -0.1, 0.3))


# Stored answers.

FINISHED = [stored(0, [0, 0, 0, 1], [0, 1, 1, 1]), stored(3, [1, 1, 1, 1], [0, 1, 0, 1])]


def test_shares_of_answers_and_of_right_answers():
    np.testing.assert_allclose(accuracy.answer_shares(FINISHED, "icl"), [[0.75, 0.25], [0, 1]])
    np.testing.assert_allclose(accuracy.answer_shares(FINISHED), [[0.25, 0.75], [0.5, 0.5]])
    rows = accuracy.answer_rows(FINISHED)
    assert list(rows) == ["right", "ZSL", "FT", "ICL 0", "ICL 3"]
    np.testing.assert_allclose(rows["ZSL"], [0.375, 0.625])
    np.testing.assert_allclose(rows["ICL 3"], [0, 1])


def test_ceiling_is_reached_by_the_best_order_of_the_answers():
    np.testing.assert_allclose(accuracy.ceiling(FINISHED, "ft"), [0.5, 0.5])
    assert accuracy.ceiling([stored(0, [0, 1, 2, 2], [2, 1, 0, 2], 3)], "ft").tolist() == [1.0]


@given(st.data(), st.integers(1, 30))
def test_no_accuracy_is_above_its_ceiling(data, n):
    answers, labels = (data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)) for _ in range(2))
    right = np.mean(np.array(answers) == labels)
    (cap,) = accuracy.ceiling([stored(0, answers, labels, 4)], "zsl")
    assert right <= cap + 1e-12
    (best,) = accuracy.ceiling([stored(0, sorted(answers), sorted(labels), 4)], "zsl")
    assert best == cap  # the order of the answers does not enter


def test_content_free_interval_uses_the_prior_of_each_result():
    answers, labels = [0, 0, 0, 0], [1, 1, 1, 0]
    biased = [stored(s, answers, labels, content_free=[0.0, -1.5 * (s + 1)]) for s in (0, 1)]
    assert statistics.accuracy(*accuracy.label_groups(biased, "icl")[0]) == 0.25
    assert accuracy.content_free_interval(biased, "icl", n_resamples=20).estimate == 0.75
    neutral = [stored(0, answers, labels, content_free=[-7.0, -7.0])]
    assert accuracy.content_free_interval(neutral, "icl", n_resamples=20).estimate == 0.25


def test_first_queries_only():
    ((log_probs, labels),) = accuracy.label_groups(FINISHED[:1], "icl", 3)
    assert log_probs.shape == (3, 2) and labels.tolist() == [0, 1, 1]


def test_sizes():
    assert accuracy.sizes({"sst2": FINISHED, "cb": FINISHED[:1]}) == "2 × 4 (sst2), 1 × 4 (cb)"


# Figures.

HALF = Interval(0.5, 0.4, 0.7)


def test_overview_marks_what_is_quoted_and_keeps_tasks_in_their_rows():
    one = {state: {"sst2": HALF, "cb": Interval(0.2, 0.1, 0.3)} for state in accuracy.STATES}
    only = {state: {"cb": HALF} for state in accuracy.STATES}
    figure = accuracy.overview(
        {"theirs": one, "ours": only}, {"theirs": {"sst2": 0.6}, "ours": {"cb": 0.4}}, ["theirs"]
    )
    points = [trace for trace in figure.data if trace.name != "majority"]
    assert [trace.marker.symbol.endswith("-open") for trace in points] == [True] * 3 + [False] * 3
    assert [trace.name for trace in points] == ["ZSL", "FT", "ICL"] * 2
    assert {round(y) for y in points[3].y} == {0} == {round(points[0].y[1])}  # cb is the lower row in both panels
    assert points[0].error_x.array == (0.2, 0.1) and points[0].error_x.arrayminus == (0.1, 0.1)
    majority = [trace for trace in figure.data if trace.name == "majority"]
    assert [(trace.x, trace.y) for trace in majority] == [((0.6,), (1,)), ((0.4,), (0,))]
    assert sum(trace.showlegend for trace in figure.data) == 4


def test_answers_are_bars_that_fill_the_row():
    figure = accuracy.answers({"mr": (("Negative", "Positive"), accuracy.answer_rows(FINISHED))})
    assert [bar.name for bar in figure.data] == ["Negative", "Positive"]
    np.testing.assert_allclose(np.sum([bar.x for bar in figure.data], 0), 1, atol=2e-3)
    assert figure.data[1].x[-1] == 1 and figure.data[1].text[0] == "Positive"


def test_differences_share_a_row_for_each_task():
    figure = accuracy.differences({"raw": {"a": HALF, "b": HALF}, "calibrated": {"b": Interval(-0.1, -0.3, 0)}}, "d")
    first, second = figure.data
    assert [round(y) for y in first.y] == [1, 0] and [round(y) for y in second.y] == [0]
    assert second.x == (-0.1,) and second.error_x.arrayminus == (0.2,) and second.error_x.array == (0.1,)
    assert first.marker.symbol != second.marker.symbol


def test_accuracy_against_k_has_a_panel_for_each_task():
    row = [HALF, Interval(0.9, 0.8, 1.0)]
    figure = accuracy.against_k([0, 16], {"capitals": {"ICL": row, "FT": row}, "past": {"ICL": row, "FT": row}})
    assert len(figure.data) == 4 and {trace.xaxis for trace in figure.data} == {"x", "x2"}
    assert figure.data[0].y == (0.5, 0.9) and figure.data[0].error_y.array == (0.2, 0.1)
    assert figure.layout.xaxis2.ticktext == ("0", "16")
    assert [title.text for title in figure.layout.annotations] == ["capitals", "past"]
