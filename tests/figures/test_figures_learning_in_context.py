"""Curves against the number of demonstrations, from what was measured."""

import numpy as np
import pytest

from explainer.errors import TaskError
from explainer.figures import learning_in_context
from explainer.models.scoring import Record

# Two seeds of three queries after 4 demonstrations, then after none: label 1 is chosen by log-odds above 0.
ODDS = {4: ([-1.0, 2.0, 3.0], [-2.0, 1.0, -3.0]), 0: ([1.0, 2.0, 3.0], [1.0, 1.0, 2.0])}
LABELS = np.array([0, 1, 1])
RECORDS = [
    Record("t", seed, k, list("abc"), (odds > 0) == LABELS, np.stack([0 * odds, odds], 1), LABELS)
    for k, seeds in ODDS.items()
    for seed, odds in enumerate(map(np.array, seeds))
]


def test_measures_are_those_of_all_queries_of_each_k_from_none_on():
    exact, low, high = learning_in_context.exact_match(RECORDS)
    assert exact == pytest.approx([4 / 6, 5 / 6]) and (low <= exact).all() and (high >= exact).all()
    measures = learning_in_context.classification_measures(RECORDS)
    assert measures["accuracy"][0] == pytest.approx(exact)
    # Seed by seed: of two pairs one is equal without examples and one wrong with 4; the mean odds are taken off.
    assert measures["AUC"][0] == pytest.approx([(1 + 0.75) / 2, (1 + 0.5) / 2])
    assert measures["calibrated"][0] == pytest.approx([4 / 6, 5 / 6])
    assert learning_in_context.predicted_share(RECORDS, label=1)[0] == pytest.approx([1, 0.5])


def test_free_answers_choose_no_label():
    with pytest.raises(TaskError, match="'t' are free"):
        learning_in_context.predicted_share([Record("t", 0, 4, ["a"], np.array([True]))], label=1)
