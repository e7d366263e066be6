"""explainer.analysis.accuracy: what stored answers say beside how many are right."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explainer.analysis import accuracy, papers, reporting
from explainer.theory import statistics


def queries_of(seed, answers, labels, n_labels=2):
    """Queries of one cell in whose every state the labels `answers` have the largest log-probability."""
    log_probs = np.full((len(answers), n_labels), -2.0)
    log_probs[np.arange(len(answers)), answers] = -1
    frame = pd.DataFrame({"cell": f"c{seed}", "task": "toy", "seed": seed, "n_queries": len(labels), "label": labels})
    frame["query_id"] = [f"q{i}" for i in range(len(labels))]
    return frame.assign(**{f"{state}_log_probs": list(log_probs) for state in accuracy.STATES})


BOTH = pd.concat([queries_of(0, [0, 0, 0, 1], [0, 1, 1, 1]), queries_of(3, [1, 1, 1, 1], [0, 1, 0, 1])])


def test_shares_of_answers_and_of_right_answers():
    np.testing.assert_allclose(accuracy.answer_shares(BOTH, "icl"), [[0.75, 0.25], [0, 1]])
    np.testing.assert_allclose(accuracy.answer_shares(BOTH), [[0.25, 0.75], [0.5, 0.5]])
    rows = accuracy.answer_rows(BOTH)
    assert list(rows) == ["right", "ZSL", "FT", "ICL 0", "ICL 3"]
    np.testing.assert_allclose(rows["ZSL"], [0.375, 0.625])
    np.testing.assert_allclose(rows["ICL 3"], [0, 1])


def test_ceiling_is_reached_by_the_best_order_of_the_answers():
    np.testing.assert_allclose(accuracy.ceiling(BOTH, "ft"), [0.5, 0.5])
    assert accuracy.ceiling(queries_of(0, [0, 1, 2, 2], [2, 1, 0, 2], 3), "ft").tolist() == [1.0]


@given(st.data(), st.integers(1, 30))
def test_no_accuracy_is_above_its_ceiling(data, n):
    answers, labels = (data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)) for _ in range(2))
    right = np.mean(np.array(answers) == labels)
    (cap,) = accuracy.ceiling(queries_of(0, answers, labels, 4), "zsl")
    assert right <= cap + 1e-12
    (best,) = accuracy.ceiling(queries_of(0, sorted(answers), sorted(labels), 4), "zsl")
    assert best == pytest.approx(cap)  # the order of the answers does not enter


def test_content_free_interval_uses_the_prior_of_each_cell():
    answers, labels = [0, 0, 0, 0], [1, 1, 1, 0]
    biased = pd.concat([queries_of(seed, answers, labels) for seed in (0, 1)])
    cells = pd.DataFrame({"cell": ["c1", "c0"], "icl_content_free": [[0.0, -3.0], [0.0, -1.5]]})
    assert statistics.accuracy(*reporting.sample(biased, "icl_log_probs", "label").groups[0]) == 0.25
    assert accuracy.content_free_interval(biased, cells, "icl", n_resamples=20).estimate == 0.75
    neutral = cells.assign(icl_content_free=[[-7.0, -7.0]] * 2)
    assert accuracy.content_free_interval(biased, neutral, "icl", n_resamples=20).estimate == 0.25


def test_quoted_accuracies_are_whole_numbers_of_queries():
    quoted = accuracy.quoted("1.3B")
    assert list(quoted) == ["ZSL", "FT", "ICL"] and accuracy.N_QUOTED["agnews"] == papers.MOST_EVALUATED
    assert quoted["ICL"]["cb"].estimate == 32 / 56 and quoted["ICL"]["cb"].low < 0.5 < quoted["ICL"]["cb"].high
