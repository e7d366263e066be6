"""Curves against the number of demonstrations, from what was measured."""

import numpy as np
import pytest

from explainer.figures.learning_in_context_figures import measured
from explainer.models.scoring import Record
from explainer.theory import statistics

# Two seeds of three queries after 4 demonstrations, then after none: label 1 is chosen by log-odds above 0.
ODDS = {4: ([-1.0, 2.0, 3.0], [-2.0, 1.0, -3.0]), 0: ([1.0, 2.0, 3.0], [1.0, 1.0, 2.0])}
LABELS = np.array([0, 1, 1])
RECORDS = [
    Record("t", seed, k, list("abc"), (odds > 0) == LABELS, np.stack([0 * odds, odds], 1), LABELS)
    for k, seeds in ODDS.items()
    for seed, odds in enumerate(map(np.array, seeds))
]


def scored(record):
    return record.log_probs, record.labels


def test_measures_are_those_of_all_queries_of_each_k_from_none_on():
    exact, low, high = measured(RECORDS, np.mean, lambda record: (record.correct,))
    assert exact == pytest.approx([4 / 6, 5 / 6]) and (low <= exact).all() and (high >= exact).all()
    assert measured(RECORDS, statistics.accuracy, scored)[0] == pytest.approx(exact)
    # Seed by seed: of two pairs one is equal without examples and one wrong with 4; the mean odds are taken off.
    assert measured(RECORDS, statistics.macro_auc, scored)[0] == pytest.approx([(1 + 0.75) / 2, (1 + 0.5) / 2])
    assert measured(RECORDS, statistics.calibrated_accuracy, scored)[0] == pytest.approx([4 / 6, 5 / 6])
