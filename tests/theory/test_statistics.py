"""explainer.theory.statistics against hand-computed cases, pair counting, invariances and a simulated coin."""

import importlib
from functools import partial

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explainer.errors import ShapeError
from explainer.theory import statistics


@pytest.fixture(scope="module", autouse=True)
def checked_shapes():
    """Run the module with its shape annotations checked at every call."""
    with jaxtyping.install_import_hook("explainer.theory.statistics", "beartype.beartype"):
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
    assert tuple(statistics.bootstrap_interval([(np.ones(5),), (np.ones(7),)], n_resamples=50)) == (1, 1, 1)


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
    assert tuple(interval) == (1, 1, 1)


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


def one_by_one(groups, statistic, n_resamples=800):
    """The nested bootstrap as its docstring says it, one resample after another: the ends of the interval."""
    generator = np.random.default_rng(99)
    resampled = []
    for _ in range(n_resamples):
        drawn = [groups[g] for g in generator.integers(len(groups), size=len(groups))]
        rows = [generator.integers(len(group[0]), size=len(group[0])) for group in drawn]
        pairs = zip(drawn, rows, strict=True)
        resampled.append(statistic([tuple(array[row] for array in group) for group, row in pairs]))
    return np.quantile(resampled, (0.025, 0.975))


def random_groups(statistic, seed=7):
    """Three groups: log-probabilities of three labels with the right ones, or numbers, some missing for `nanmean`."""
    generator = np.random.default_rng(seed)
    for n in (20, 25, 30):
        labels = generator.integers(3, size=n)
        log_probs = generator.normal(size=(n, 3)) + np.eye(3)[labels] + generator.normal(size=3)
        missing = np.where((np.arange(n) % 5 == 0) & (statistic is np.nanmean), np.nan, 0)
        yield (log_probs[:, 0] + missing,) if statistic in (np.mean, np.nanmean) else (log_probs, labels)


def by_calls(statistic):
    """The same function as an object that is not known, so that it is called for each drawn group."""
    return partial(statistic)


FAST = ["mean", "nanmean", "accuracy", "calibrated_accuracy", "macro_f1", "macro_auc"]


@pytest.mark.parametrize("name", FAST)
def test_counts_give_what_calls_give(name):
    """The same draws, once as counts for all resamples together, once as examples for one call after another."""
    statistic = getattr(np, name, None) or getattr(statistics, name)
    assert statistic in statistics._WEIGHTED
    groups, others = list(random_groups(statistic)), list(random_groups(statistic, seed=8))
    two = statistic, by_calls(statistic)
    fast, slow = (statistics.bootstrap_interval(groups, each, n_resamples=150) for each in two)
    assert tuple(fast) == pytest.approx(tuple(slow), abs=1e-12)
    fast, slow = (statistics.paired_difference(groups, others, each, n_resamples=150) for each in two)
    assert tuple(fast) == pytest.approx(tuple(slow), abs=1e-12)


@pytest.mark.parametrize("name", FAST)
def test_interval_agrees_with_one_resample_after_another(name):
    statistic = getattr(np, name, None) or getattr(statistics, name)
    groups = list(random_groups(statistic))
    low, high = one_by_one(groups, lambda drawn: np.mean([statistic(*group) for group in drawn]))
    interval = statistics.bootstrap_interval(groups, statistic, n_resamples=4000)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=0.1 * (high - low))


def test_ratio_agrees_with_one_resample_after_another():
    groups = [fixes(50, 4, 6), fixes(40, 3, 10), fixes(30, 5, 8)]
    low, high = one_by_one(groups, lambda drawn: sum(a.sum() for a, _ in drawn) / sum(b.sum() for _, b in drawn))
    interval = statistics.ratio_interval(groups, n_resamples=4000)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=0.1 * (high - low))


def test_draws_do_not_depend_on_how_many_are_made_at_once(monkeypatch):
    groups = list(random_groups(np.mean))
    whole = statistics.bootstrap_interval(groups, n_resamples=300)
    monkeypatch.setattr(statistics, "_AT_ONCE", 100)
    parts = statistics.bootstrap_interval(groups, n_resamples=300)
    assert tuple(parts) == pytest.approx(tuple(whole), abs=1e-12)


@pytest.mark.parametrize("statistic", [np.mean, np.nanmean])
def test_mean_of_rows_is_the_mean_of_all_their_numbers(statistic):
    rows = np.random.default_rng(0).normal(size=(20, 3))
    groups = [(np.where((rows > 1) & (statistic is np.nanmean), np.nan, rows),)]
    fast, slow = (statistics.bootstrap_interval(groups, s, n_resamples=99) for s in (statistic, by_calls(statistic)))
    assert tuple(fast) == pytest.approx(tuple(slow), abs=1e-12)


# --- ratios ------------------------------------------------------------------------------------------------------


def fixes(n, both, ft):
    """n queries, of which FT repairs the first `ft` and ICL the first `both` of those."""
    return np.arange(n) < both, np.arange(n) < ft


def test_ratio_is_pooled_over_groups():
    interval = statistics.ratio_interval([fixes(50, 1, 1), fixes(50, 3, 10), fixes(50, 0, 0)], n_resamples=500)
    assert interval.estimate == 4 / 11
    assert interval.low < 4 / 11 < interval.high
    assert interval.low >= 0
    assert interval.high <= 1
    assert interval == statistics.ratio_interval([fixes(50, 1, 1), fixes(50, 3, 10), fixes(50, 0, 0)], n_resamples=500)


def test_ratio_of_all_examples_is_the_bootstrap_of_the_mean():
    values = np.random.default_rng(0).random(30)
    ours = statistics.ratio_interval([(values, np.ones(30))], n_resamples=200, seed=5)
    mean = statistics.bootstrap_interval([(values,)], n_resamples=200, seed=5)
    assert tuple(ours) == pytest.approx(tuple(mean), abs=1e-12)
    assert ours.undefined == 0


def test_resamples_without_a_denominator_are_left_out_and_counted():
    """One of n queries has a denominator: a resample misses it with probability (1 - 1/n)^n."""
    interval = statistics.ratio_interval([fixes(20, 1, 1)], n_resamples=4000)
    assert tuple(interval) == (1, 1, 1)
    assert interval.undefined == pytest.approx((1 - 1 / 20) ** 20, abs=0.03)


@pytest.mark.filterwarnings("error")
def test_ratio_without_any_denominator_is_nan_without_a_warning():
    interval = statistics.ratio_interval([fixes(20, 0, 0)] * 2, n_resamples=50)
    assert np.isnan(tuple(interval)).all()
    assert interval.undefined == 1
    one_class = statistics.bootstrap_interval([(scores([-1, 0]), np.array([1]))], statistics.macro_auc, n_resamples=50)
    assert np.isnan(tuple(one_class)).all()


def test_interval_covers_the_ratio():
    """FT repairs 20 % of 150 queries, ICL 60 % of those; seeds alike."""
    generator = np.random.default_rng(3)
    covered = []
    for i in range(150):
        ft = generator.random((4, 150)) < 0.2
        both = ft & (generator.random((4, 150)) < 0.6)
        _, low, high = statistics.ratio_interval(list(zip(both, ft, strict=True)), seed=i, n_resamples=200)
        covered.append(low <= 0.6 <= high)
    assert 0.88 <= np.mean(covered) <= 1


# --- comparisons -------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(st.lists(st.lists(st.integers(-50, 50), min_size=1, max_size=9), min_size=1, max_size=4), st.integers(1, 5))
def test_a_constant_difference_is_exact(rows, difference):
    groups_b = [(np.array(row, dtype=float),) for row in rows]
    groups_a = [(b + difference,) for (b,) in groups_b]
    result = statistics.paired_difference(groups_a, groups_b, n_resamples=40)
    assert (*result, result.p_value) == pytest.approx((difference, difference, difference, 2 / 41), abs=1e-12)
    assert statistics.paired_difference(groups_b, groups_a, n_resamples=40).estimate == pytest.approx(-difference)
    none = statistics.paired_difference(groups_b, groups_b, n_resamples=40)
    assert (*none, none.p_value) == (0, 0, 0, 1)


def test_pairing_cancels_what_both_conditions_share():
    """Hard and easy queries, good and bad seeds: the difference is known far better than either side."""
    generator = np.random.default_rng(4)
    shared = [5 * generator.normal() + 3 * generator.normal(size=60) for _ in range(6)]
    a = [(x + 0.5 + 0.2 * generator.normal(size=60),) for x in shared]
    b = [(x,) for x in shared]
    paired = statistics.paired_difference(a, b, n_resamples=500)
    alone = statistics.bootstrap_interval(a, n_resamples=500)
    assert paired.high - paired.low < 0.1
    assert alone.high - alone.low > 1
    assert paired.low < 0.5 < paired.high
    assert paired.p_value == 2 / 501
    swapped = statistics.paired_difference(b, a, n_resamples=500)
    assert tuple(swapped) == pytest.approx((-paired.estimate, -paired.high, -paired.low), abs=1e-12)
    assert swapped.p_value == paired.p_value


def test_paired_difference_of_any_statistic():
    a, b = [(BIASED, BIASED_LABELS)] * 2, [(BIASED[:, ::-1].copy(), BIASED_LABELS)] * 2
    result = statistics.paired_difference(a, b, statistics.macro_auc, n_resamples=400)
    assert result.estimate == 1
    assert result.low <= 1 == result.high
    one = [(scores([-1, 0], [0, -1]), np.array([1, 0]))]
    other = [(one[0][0][::-1].copy(), one[0][1])]
    # Half of the resamples have one class only; of the others all differ by 1.
    n = 400
    result = statistics.paired_difference(one, other, statistics.macro_auc, n_resamples=n)
    assert tuple(result) == (1, 1, 1)
    assert 2 / (1 + 0.6 * n) < result.p_value < 2 / (1 + 0.4 * n)


def test_p_value_agrees_with_the_interval_and_with_the_normal_approximation():
    generator = np.random.default_rng(5)
    noise = generator.normal(size=400)
    noise = (noise - noise.mean()) / noise.std()
    zero = [(np.zeros(400),)]
    for z, p in ((1.0, 0.317), (1.96, 0.05), (2.5, 0.0124)):
        result = statistics.paired_difference([(noise + z / 20,)], zero, n_resamples=4000)
        assert result.p_value == pytest.approx(p, rel=0.5)
        assert (result.low > 0) == (result.p_value < 0.05) or z == 1.96


def test_false_alarms_of_the_paired_difference():
    """No difference: one group is right in about 5 % of the cases, five that differ in about 16 %, as documented."""
    generator = np.random.default_rng(6)
    rates = []
    for spread, n_groups, n in ((0, 1, 50), (10, 5, 4)):
        small = []
        for i in range(150):
            d = spread * generator.normal(size=(n_groups, 1)) + generator.normal(size=(n_groups, n))
            pair = [(row,) for row in d], [(0 * row,) for row in d]
            small.append(statistics.paired_difference(*pair, seed=i, n_resamples=200).p_value < 0.05)
        rates.append(np.mean(small))
    assert 0.01 <= rates[0] <= 0.10
    assert 0.10 <= rates[1] <= 0.25


@pytest.mark.parametrize(
    ("a", "b"), [([np.ones(3)], [np.ones(4)]), ([np.ones(3)], [np.ones(3)] * 2), ([], []), ([np.ones(0)],) * 2]
)
def test_groups_that_are_no_pairs_are_refused(a, b):
    with pytest.raises(ShapeError, match=r"numbers of examples, got \[3\] and \[|at least one example"):
        statistics.paired_difference([(x,) for x in a], [(x,) for x in b])


def test_holm_by_hand():
    p = np.array([0.01, 0.04, 0.03, 0.005])
    # in order .005 x 4, .01 x 3, .03 x 2, .04 x 1 = .02, .03, .06, .04; each at least as large as the one before
    np.testing.assert_allclose(statistics.holm(p), [0.03, 0.06, 0.06, 0.02], rtol=1e-12)
    np.testing.assert_allclose(statistics.holm(np.array([0.5, 0.9])), [1, 1])
    np.testing.assert_allclose(statistics.holm(np.array([0.02, np.nan, 0.03])), [0.04, np.nan, 0.04], rtol=1e-12)
    assert statistics.holm(np.array([])).shape == (0,)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.001, 0.5))
def test_holm_rejects_what_the_stepwise_procedure_rejects(p_values, alpha):
    adjusted = statistics.holm(np.array(p_values))
    rejected = []
    for i, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if (len(p_values) - i) * p_values[index] > alpha:
            break
        rejected.append(index)
    assert np.flatnonzero(adjusted <= alpha).tolist() == sorted(rejected)
    assert (adjusted >= p_values).all() and (adjusted <= 1).all()
    assert (adjusted <= np.minimum(1, len(p_values) * np.array(p_values))).all()  # never worse than Bonferroni


@pytest.mark.parametrize("p", [-0.1, 1.1])
def test_holm_refuses_what_is_no_p_value(p):
    with pytest.raises(ValueError, match=r"should lie in \[0, 1\]"):
        statistics.holm(np.array([0.5, p]))
