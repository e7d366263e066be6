"""explainer.results.label_bias: what stored answers say beside how many are right."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explainer.results import label_bias, papers


def queries_of(seed, answers, labels, n_labels=2):
    """Queries of one setting in whose every state the labels `answers` have the largest log-probability."""
    log_probs = np.full((len(answers), n_labels), -2.0)
    log_probs[np.arange(len(answers)), answers] = -1
    frame = pd.DataFrame(
        {"setting": f"c{seed}", "task": "toy", "seed": seed, "n_queries": len(labels), "label": labels}
    )
    frame["query_id"] = [f"q{i}" for i in range(len(labels))]
    return frame.assign(**{f"{state}_log_probs": list(log_probs) for state in label_bias.STATES})


BOTH = pd.concat([queries_of(0, [0, 0, 0, 1], [0, 1, 1, 1]), queries_of(3, [1, 1, 1, 1], [0, 1, 0, 1])])


def test_shares_of_answers_and_of_right_answers():
    np.testing.assert_allclose(label_bias.answer_shares(BOTH, "icl"), [[0.75, 0.25], [0, 1]])
    np.testing.assert_allclose(label_bias.answer_shares(BOTH), [[0.25, 0.75], [0.5, 0.5]])


def test_ceiling_is_reached_by_the_best_order_of_the_answers():
    np.testing.assert_allclose(label_bias.ceiling(BOTH, "ft"), [0.5, 0.5])
    assert label_bias.ceiling(queries_of(0, [0, 1, 2, 2], [2, 1, 0, 2], 3), "ft").tolist() == [1.0]


@given(st.data(), st.integers(1, 30))
def test_no_accuracy_is_above_its_ceiling(data, n):
    answers, labels = (data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)) for _ in range(2))
    right = np.mean(np.array(answers) == labels)
    (cap,) = label_bias.ceiling(queries_of(0, answers, labels, 4), "zsl")
    assert right <= cap + 1e-12
    (best,) = label_bias.ceiling(queries_of(0, sorted(answers), sorted(labels), 4), "zsl")
    assert best == pytest.approx(cap)  # the order of the answers does not enter


def test_quoted_accuracies_are_whole_numbers_of_queries():
    quoted = label_bias.quoted("1.3B")
    assert list(quoted) == ["ZSL", "FT", "ICL"] and label_bias.N_QUOTED["agnews"] == papers.MOST_EVALUATED
    assert quoted["ICL"]["cb"].estimate == 32 / 56 and quoted["ICL"]["cb"].low < 0.5 < quoted["ICL"]["cb"].high
