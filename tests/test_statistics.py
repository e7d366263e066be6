"""explainer.statistics against hand-computed cases, pair counting, invariances and a simulated coin."""

import importlib

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explainer import statistics
from explainer.errors import ShapeError


@pytest.fixture(scope="module", autouse=True)
def checked_shapes():
    """Run the module with its shape annotations checked at every call."""
    with jaxtyping.install_import_hook("explainer.statistics", "beartype.beartype"):
        importlib.reload(statistics)
    yield
    importlib.reload(statistics)


def scores(*rows):
    return np.array(rows, dtype=np.float64)


BIASED = scores([-1, -3], [-1, -2], [-1, -1.9], [-1, -1.8])  # prefers class 0 everywhere; order still right
BIASED_LABELS = np.array([0, 0, 1, 1])


@st.composite
def two_class(draw, n_classes=2):
    n = draw(st.integers(4, 30))
    # multiples of 1/8, so that sums and differences are exact and ties stay ties
    values = st.integers(-40, 40).map(lambda i: i / 8)
    log_probs = np.array(
        draw(st.lists(st.lists(values, min_size=n_classes, max_size=n_classes), min_size=n, max_size=n))
    )
    labels = np.array([i % n_classes for i in range(n)])
    return log_probs, labels


def test_accuracy_counts_arg_max():
    assert statistics.accuracy(scores([0, -1], [-1, 0], [-1, 0]), np.array([0, 1, 0])) == 2 / 3


def test_label_bias_halves_accuracy_and_calibration_restores_it():
    assert statistics.accuracy(BIASED, BIASED_LABELS) == 0.5
    assert statistics.calibrated_accuracy(BIASED, BIASED_LABELS) == 0.75  # mean -2.175: the third query stays below
    assert statistics.calibrated_accuracy(BIASED, BIASED_LABELS, np.array([-1.0, -1.95])) == 1.0
    assert statistics.macro_auc(BIASED, BIASED_LABELS) == 1.0


def test_batch_prior_is_the_mean_over_queries():
    np.testing.assert_allclose(statistics.batch_prior(BIASED), [-1, -2.175], rtol=1e-12)


@settings(deadline=None)
@given(two_class(3), st.lists(st.integers(-20, 20), min_size=3, max_size=3))
def test_calibration_ignores_any_label_bias(data, bias):
    log_probs, labels = data
    exact = log_probs * len(labels)  # makes the mean, and so the comparison, exact
    assert statistics.calibrated_accuracy(exact, labels) == statistics.calibrated_accuracy(
        exact + np.array(bias), labels
    )


def pairs_auc(score, positive):
    """Area by counting every pair."""
    wins = [(a > b) + (a == b) / 2 for a in score[positive] for b in score[~positive]]
    return sum(wins) / len(wins)


@settings(deadline=None)
@given(two_class())
def test_auc_counts_pairs_with_ties(data):
    log_probs, labels = data
    expected = pairs_auc(log_probs[:, 1] - log_probs[:, 0], labels == 1)
    assert statistics.macro_auc(log_probs, labels) == pytest.approx(expected, abs=1e-12)


@settings(deadline=None)
@given(two_class(3))
def test_auc_of_three_classes_is_the_mean_of_one_against_the_rest(data):
    log_probs, labels = data
    shares = np.exp(log_probs) / np.exp(log_probs).sum(1, keepdims=True)
    odds = np.round(np.log(shares / (1 - shares)), 9)  # equal rows must tie in both computations
    expected = np.mean([pairs_auc(odds[:, c], labels == c) for c in range(3)])
    assert statistics.macro_auc(np.round(log_probs, 9), labels) == pytest.approx(expected, abs=0.02)


@settings(deadline=None)
@given(two_class())
def test_auc_is_invariant_to_monotone_transforms_and_bias(data):
    log_probs, labels = data
    margin = log_probs[:, 1] - log_probs[:, 0]
    for transformed in (8 * margin, margin**3, np.tanh(margin / 16), margin + 3):
        columns = np.column_stack([np.zeros_like(margin), transformed])
        assert statistics.macro_auc(columns, labels) == pytest.approx(
            statistics.macro_auc(log_probs, labels), abs=1e-12
        )


@settings(deadline=None)
@given(two_class())
def test_auc_is_symmetric_under_swapping_labels_and_flips_with_the_scores(data):
    log_probs, labels = data
    value = statistics.macro_auc(log_probs, labels)
    assert statistics.macro_auc(log_probs[:, ::-1], 1 - labels) == pytest.approx(value, abs=1e-12)
    assert statistics.macro_auc(log_probs[:, ::-1], labels) == pytest.approx(1 - value, abs=1e-12)


def test_auc_hand_cases():
    column = np.array([0.1, 0.4, 0.35, 0.8])
    assert statistics.macro_auc(np.column_stack([0 * column, column]), np.array([0, 0, 1, 1])) == 0.75
    assert statistics.macro_auc(scores([0, 0], [0, 0]), np.array([0, 1])) == 0.5
    assert np.isnan(statistics.macro_auc(scores([0, 1], [1, 0]), np.array([1, 1])))


def test_auc_keeps_apart_scores_that_probabilities_round_to_one():
    log_probs = scores([-200, 0], [-100, 0], [-300, 0])
    assert statistics.macro_auc(log_probs, np.array([1, 0, 1])) == 1.0


def test_macro_f1_hand_case():
    predicted = np.array([0, 0, 0, 1, 1, 2])
    labels = np.array([0, 0, 1, 1, 2, 2])
    # F1: class 0 4/5, class 1 2/4, class 2 2/3
    assert statistics.macro_f1(np.eye(3)[predicted], labels) == pytest.approx((4 / 5 + 1 / 2 + 2 / 3) / 3, abs=1e-12)


def test_macro_f1_leaves_out_classes_that_never_occur():
    assert statistics.macro_f1(np.eye(5)[[0, 1]], np.array([0, 1])) == 1.0


def test_interval_is_reproducible_and_holds_the_estimate():
    values = np.arange(10.0)
    first, again = (statistics.bootstrap_interval([(values,)], seed=3) for _ in range(2))
    assert first == again
    assert first.estimate == 4.5
    assert first.low < 4.5 < first.high
    assert first != statistics.bootstrap_interval([(values,)], seed=4)


def test_interval_of_a_constant_is_a_point():
    assert statistics.bootstrap_interval([(np.ones(5),), (np.ones(7),)], n_resamples=50) == (1, 1, 1)


def test_width_follows_the_normal_approximation():
    values = np.random.default_rng(0).normal(size=400)
    _, low, high = statistics.bootstrap_interval([(values,)])
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.08)
    _, low, high = statistics.bootstrap_interval([(values,)], level=0.5)
    assert high - low == pytest.approx(2 * 0.674 * values.std() / 20, rel=0.08)


def test_groups_that_differ_widen_the_interval():
    alike = [(np.tile([0.0, 1.0], 50),)] * 4
    apart = [(np.full(100, value),) for value in (0.0, 0.0, 1.0, 1.0)]
    width = [high - low for _, low, high in (statistics.bootstrap_interval(g, n_resamples=500) for g in (alike, apart))]
    assert width[0] < 0.15
    assert width[1] > 0.7


def test_estimate_is_the_mean_over_groups_of_any_statistic():
    groups = [(BIASED, BIASED_LABELS), (BIASED[:, ::-1].copy(), BIASED_LABELS)]
    interval = statistics.bootstrap_interval(groups, statistics.macro_auc, n_resamples=200)
    assert interval.estimate == 0.5
    assert (interval.low, interval.high) == (0, 1)


def test_resamples_without_a_value_are_left_out():
    interval = statistics.bootstrap_interval([(scores([-1, 0], [0, -1]), np.array([1, 0]))], statistics.macro_auc)
    assert interval == (1, 1, 1)


@pytest.mark.parametrize("groups", [[], [(np.array([]),)], [(np.ones(3),), (np.array([]),)]])
def test_no_examples_is_an_error(groups):
    with pytest.raises(ShapeError, match="at least one example"):
        statistics.bootstrap_interval(groups)


def test_a_wrong_shape_is_refused():
    with pytest.raises(Exception, match="labels"):
        statistics.accuracy(BIASED, BIASED_LABELS[:3])


def test_interval_covers_the_mean_of_a_coin():
    generator = np.random.default_rng(1)
    coins = generator.random((300, 60)) < 0.3
    intervals = [statistics.bootstrap_interval([(c,)], seed=i, n_resamples=300) for i, c in enumerate(coins)]
    covered = np.mean([low <= 0.3 <= high for _, low, high in intervals])
    assert 0.90 <= covered <= 0.985  # 0.95 less the percentile bootstrap's known shortfall, three standard errors wide


def test_nested_interval_covers_where_the_flat_one_does_not():
    """Seeds differ by 0.15: pooling all examples ignores that and misses the truth far more often."""
    generator = np.random.default_rng(2)
    rates = np.clip(0.5 + 0.15 * generator.normal(size=(150, 8)), 0, 1)
    groups = [[(generator.random(40) < rate,) for rate in run] for run in rates]
    flat = [[(np.concatenate([g[0] for g in run]),)] for run in groups]
    covered = [
        np.mean(
            [low <= 0.5 <= high for _, low, high in (statistics.bootstrap_interval(r, n_resamples=200) for r in runs)]
        )
        for runs in (groups, flat)
    ]
    assert covered[0] > 0.85
    assert covered[1] < 0.75
