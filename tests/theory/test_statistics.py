"""explainer.theory.statistics against hand-computed cases, pair counting, invariances and a simulated coin."""

from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import t as student_t

from explainer.errors import ShapeError
from explainer.theory import statistics


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


def test_label_bias_halves_accuracy_and_calibration_restores_half_of_it():
    assert statistics.accuracy(BIASED, BIASED_LABELS) == 0.5
    assert statistics.calibrated_accuracy(BIASED, BIASED_LABELS) == 0.75  # mean -2.175: the third query stays below
    assert statistics.macro_auc(BIASED, BIASED_LABELS) == 1.0


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


def test_auc_hand_cases():
    column = np.array([0.1, 0.4, 0.35, 0.8])
    assert statistics.macro_auc(np.column_stack([0 * column, column]), np.array([0, 0, 1, 1])) == 0.75
    assert statistics.macro_auc(scores([0, 0], [0, 0]), np.array([0, 1])) == 0.5
    assert np.isnan(statistics.macro_auc(scores([0, 1], [1, 0]), np.array([1, 1])))
    saturated = scores([-200, 0], [-100, 0], [-300, 0])  # probabilities would all round to one
    assert statistics.macro_auc(saturated, np.array([1, 0, 1])) == 1.0


def test_width_follows_the_normal_approximation():
    values = np.random.default_rng(0).normal(size=400)
    _, low, high = statistics.bootstrap_interval([(values,)])
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.08)
    _, low, high = statistics.bootstrap_interval([(values,)], level=0.5)
    assert high - low == pytest.approx(2 * 0.674 * values.std() / 20, rel=0.08)


# --- seeds and queries crossed -----------------------------------------------------------------------------------


def crossed(seed=0, sizes=(20, 25, 30), pool=40, effect=1.0):
    """Numbers of three groups that draw their queries from one pool; a query has its effect wherever it stands."""
    generator = np.random.default_rng(seed)
    effects = effect * generator.normal(size=pool)
    ids = [generator.permutation(pool)[:n] for n in sizes]
    return statistics.Sample([(effects[each] + generator.normal(size=len(each)),) for each in ids], ids)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6))
def test_the_order_of_rows_does_not_matter(seed):
    """Query ids, not places, decide what is drawn together, and which contributions belong to one query."""
    sample, generator = crossed(seed), np.random.default_rng(seed)
    orders = [generator.permutation(n) for n in sample.sizes]
    moved = statistics.Sample(
        [(values[order],) for (values,), order in zip(sample.groups, orders, strict=True)],
        [ids[order] for ids, order in zip(sample.ids, orders, strict=True)],
    )
    one, other = (statistics.bootstrap_interval(each, n_resamples=50) for each in (sample, moved))
    assert tuple(one) == pytest.approx(tuple(other), abs=1e-12)
    one, other = (difference_from_zero(each) for each in (sample, moved))
    assert (*one, one.p_value) == pytest.approx((*other, other.p_value), abs=1e-12)


@pytest.mark.parametrize(("part", "times"), [("seed", 1), ("query", 1), ("noise", 3)])
def test_variance_of_the_crossed_bootstrap(part, times):
    """Owen (2007): the variance due to seeds and to queries counts once, that of noise about three times."""
    generator, (R, C) = np.random.default_rng(3), (30, 40)
    shape, n = {"seed": ((R, 1), R), "query": ((1, C), C), "noise": ((R, C), R * C)}[part]
    ratios = []
    for _ in range(12):
        effects = generator.normal(size=shape)
        groups = [(row.copy(),) for row in np.broadcast_to(effects, (R, C))]
        interval = statistics.bootstrap_interval(
            statistics.Sample(groups, [np.arange(C)] * R), n_resamples=500, level=0.68268949
        )
        ratios.append(((interval.high - interval.low) / 2) ** 2 / (effects.var(ddof=1) / n))
    assert np.mean(ratios) == pytest.approx(times, rel=0.2)


def test_tasks_are_fixed_and_count_alike():
    """Ten groups of a task at 0 and two of a task at 1, each known exactly: the mean over tasks is known, too."""
    groups = [(np.zeros(5),)] * 10 + [(np.ones(5),)] * 2
    tasks = ["many"] * 10 + ["few"] * 2
    assert tuple(statistics.bootstrap_interval(statistics.Sample(groups, None, tasks))) == (0.5, 0.5, 0.5)
    mixed = statistics.bootstrap_interval(groups)
    assert mixed.estimate == pytest.approx(1 / 6) and mixed.high > mixed.low
    alone = difference_from_zero(statistics.Sample(groups[::2], None, tasks[::2]))
    assert np.isnan(alone.low), "one group of a task says nothing about its spread"


def test_tasks_that_share_the_draws_of_a_seed_are_not_four_studies():
    """A random direction that is the same in all tasks: five draws in each of four tasks are five draws.

    Seeds 0 to 4 happened to score below zero in every task, which an interval over tasks took for settled.
    """
    draws = [-0.09, -0.05, -0.04, -0.02, 0.01]
    one = [(np.full(8, draw),) for draw in draws]
    tasks, seeds = [task for task in "abcd" for _ in draws], list(range(5)) * 4
    shared, apart = (statistics.Sample(one * 4, None, tasks, each) for each in (seeds, None))
    alone = difference_from_zero(statistics.Sample(one))
    assert tuple(difference_from_zero(shared)) == pytest.approx(tuple(alone))
    assert difference_from_zero(apart).p_value < 0.05 < difference_from_zero(shared).p_value
    widths = [
        interval.high - interval.low
        for interval in (statistics.bootstrap_interval(each) for each in (one, shared, apart))
    ]
    assert widths[1] == pytest.approx(widths[0], rel=0.1) and widths[2] < 0.65 * widths[0]


def random_groups(statistic, seed=7):
    """Three groups: log-probabilities of three labels with the right ones, numbers, some missing, or two counts."""
    generator = np.random.default_rng(seed)
    for n in (20, 25, 30):
        labels = generator.integers(3, size=n)
        log_probs = generator.normal(size=(n, 3)) + np.eye(3)[labels] + generator.normal(size=3)
        if statistic is statistics.ratio_of_sums:
            yield np.arange(n) < n / 5, np.arange(n) < n / 3
            continue
        missing = np.where((np.arange(n) % 5 == 0) & (statistic is np.nanmean), np.nan, 0)
        yield (log_probs[:, 0] + missing,) if statistic in (np.mean, np.nanmean) else (log_probs, labels)


def by_calls(statistic):
    """The same function as an object that is not known, so that it is called for each drawn group."""
    return partial(statistic)


FAST = ["mean", "nanmean", "accuracy", "calibrated_accuracy", "macro_auc", "ratio_of_sums"]


@pytest.mark.parametrize("name", FAST)
def test_counts_give_what_calls_give(name):
    """The same draws, once as counts for all resamples together, once as examples for one call after another."""
    statistic = getattr(np, name, None) or getattr(statistics, name)
    assert statistic in statistics._WEIGHTED
    groups, others = list(random_groups(statistic)), list(random_groups(statistic, seed=8))
    ids, two = [np.arange(len(group[0])) for group in groups], (statistic, by_calls(statistic))
    fast, slow = (statistics.bootstrap_interval(groups, each, n_resamples=150) for each in two)
    assert tuple(fast) == pytest.approx(tuple(slow), abs=1e-12)
    sides = statistics.Sample(groups, ids), statistics.Sample(others, ids)
    fast, slow = (statistics.paired_difference(*sides, each) for each in two)
    assert (*fast, fast.p_value) == pytest.approx((*slow, slow.p_value), abs=1e-12)


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
    assert 0 <= interval.low < 4 / 11 < interval.high <= 1


def test_a_ratio_is_that_of_its_draws():
    groups = [fixes(50, 4, 6), fixes(40, 3, 10), fixes(30, 5, 8)]
    sample = statistics.Sample(groups)
    times, drawn = statistics.crossed_draws(sample)
    repaired, all_of_them = (
        sum(times[:, g] * (drawn[:, sample.queries[g]] @ groups[g][side]) for g in range(3)) for side in (0, 1)
    )
    interval = statistics.ratio_interval(groups)
    assert interval[1:] == pytest.approx(np.quantile(repaired / all_of_them, (0.025, 0.975)))


def test_resamples_without_a_denominator_are_left_out_and_counted():
    """One of n queries has a denominator: a resample misses it with probability (1 - 1/n)^n."""
    interval = statistics.ratio_interval([fixes(20, 1, 1)], n_resamples=4000)
    assert tuple(interval) == (1, 1, 1)
    assert interval.undefined == pytest.approx((1 - 1 / 20) ** 20, abs=0.03)


@pytest.mark.filterwarnings("error")
def test_numbers_that_are_all_equal_have_a_p_value_without_a_warning():
    assert [statistics.student(np.full(3, value)).p_value for value in (0.0, 2.0)] == [1, 0]


@pytest.mark.filterwarnings("error")
def test_ratio_without_any_denominator_is_nan_without_a_warning():
    interval = statistics.ratio_interval([fixes(20, 0, 0)] * 2, n_resamples=50)
    assert np.isnan(tuple(interval)).all()
    assert interval.undefined == 1
    one_class = statistics.bootstrap_interval([(scores([-1, 0]), np.array([1]))], statistics.macro_auc, n_resamples=50)
    assert np.isnan(tuple(one_class)).all()


# --- comparisons -------------------------------------------------------------------------------------------------


def difference_from_zero(sample, statistic=np.mean):
    """As a paired difference from a condition in which everything is 0."""
    zeros = [(0.0 * values,) for (values,) in sample.groups]
    return statistics.paired_difference(sample, statistics.Sample(zeros, sample.ids, sample.strata))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.lists(st.integers(-50, 50), min_size=2, max_size=9), min_size=1, max_size=4), st.integers(1, 5))
def test_a_constant_difference_is_exact(rows, difference):
    groups_b = [(np.array(row, dtype=float),) for row in rows]
    groups_a = [(b + difference,) for (b,) in groups_b]
    result = statistics.paired_difference(groups_a, groups_b)
    assert (*result, result.p_value) == pytest.approx((difference, difference, difference, 0), abs=1e-9)
    assert statistics.paired_difference(groups_b, groups_a).estimate == pytest.approx(-difference)
    none = statistics.paired_difference(groups_b, groups_b)
    assert (*none, none.p_value) == (0, 0, 0, 1)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.lists(st.integers(-40, 40).map(lambda i: i / 8), min_size=2, max_size=9), min_size=2, max_size=6))
def test_without_common_queries_it_is_student_over_seeds(rows):
    groups = [(np.array(row),) for row in rows]
    means = np.array([values.mean() for (values,) in groups])
    assume(np.ptp(means) > 1e-9)  # else a standard error of rounding size; what is constant has a test of its own
    expected = statistics.student(means)
    apart = [np.arange(len(row)) + 100 * g for g, row in enumerate(rows)]
    for sample in (statistics.Sample(groups), statistics.Sample(groups, apart)):
        found = difference_from_zero(sample)
        assert (*found, found.p_value) == pytest.approx((*expected, expected.p_value), abs=1e-9, nan_ok=True)


def test_difference_by_hand():
    """Two seeds, both ask x and y: differences (1, 2) and (3, 6), means 1.5 and 4.5.

    s^2 = 4.5. Contributions d = (x - mean) / (n - 1): (-.5, .5) and (-1.5, 1.5); c = .75 + .75 = 1.5.
    The standard error is sqrt(4.5 / 2 + 1.5) = sqrt(3.75), and t_1 at .975 is 12.7062.
    """
    a, ids = [(np.array([1.0, 2.0]),), (np.array([6.0, 3.0]),)], [np.array(["x", "y"]), np.array(["y", "x"])]
    result = difference_from_zero(statistics.Sample(a, ids))
    half = 12.706204736432095 * 3.75**0.5
    assert tuple(result) == pytest.approx((3, 3 - half, 3 + half))
    assert result.p_value == pytest.approx(1 - 2 / np.pi * np.arctan(3 / 3.75**0.5))  # Cauchy


def test_queries_that_repel_do_not_narrow_the_interval():
    """A negative covariance is an estimate below what can be: it counts as none."""
    a, ids = [(np.array([1.0, 2.0]),), (np.array([6.0, 3.0]),)], [np.array(["x", "y"])] * 2
    expected = statistics.student(np.array([1.5, 4.5]))
    assert tuple(difference_from_zero(statistics.Sample(a, ids))) == pytest.approx(tuple(expected))


def test_mean_over_tasks_is_students_over_seeds():
    """Two tasks with the same seeds: the mean over tasks of each seed is one number."""
    means = np.array([[1.0, 2.0, 4.0], [0.0, 0.5, -1.0]])
    groups = [(np.array([m, m]),) for m in means.ravel()]
    sample = statistics.Sample(groups, None, ["a"] * 3 + ["b"] * 3, [0, 1, 2] * 2)
    found, expected = difference_from_zero(sample), statistics.student(means.mean(0))
    assert (*found, found.p_value) == pytest.approx((*expected, expected.p_value))


def test_mean_over_tasks_with_other_seeds():
    """Independent seeds, 3 and 4: variance (s_1^2 / 3 + s_2^2 / 4) / 4 and the freedom of the smaller task."""
    means = ([1.0, 2.0, 4.0], [0.0, 0.5, 1.0, 0.7])
    groups = [(np.array([m, m]),) for m in (*means[0], *means[1])]
    result = difference_from_zero(statistics.Sample(groups, None, ["a"] * 3 + ["b"] * 4))
    half = student_t.ppf(0.975, 2) * sum(np.var(m, ddof=1) / len(m) / 4 for m in means) ** 0.5
    middle = np.mean([np.mean(m) for m in means])
    assert tuple(result) == pytest.approx((middle, middle - half, middle + half))


def test_one_group_has_students_interval_over_its_examples():
    values = np.random.default_rng(0).normal(size=12)
    expected = statistics.student(values)
    found = statistics.paired_difference([(values,)], [(0 * values,)])
    assert (*found, found.p_value) == pytest.approx((*expected, expected.p_value))
    assert np.isnan(statistics.paired_difference([(values[:1],)], [(values[:1],)]).low)


@pytest.mark.parametrize(
    ("ids", "tasks", "message"),
    [
        (["x", "z"], ["a", "a"], "same queries, example 1 of group 0 is y in A and z in B"),
        (["x", "y"], ["a", "b"], r"same tasks, got \['a', 'a'\] and \['a', 'b'\]"),
    ],
)
def test_pairs_of_other_queries_or_tasks_are_refused(ids, tasks, message):
    """What the sizes alone cannot tell: the same number of queries, but not the same ones."""
    groups = [(np.ones(2),)] * 2
    real = statistics.Sample(groups, [np.array(["x", "y"])] * 2, ["a", "a"])
    with pytest.raises(ShapeError, match=message):
        statistics.paired_difference(real, statistics.Sample(groups, [np.array(ids)] * 2, tasks))


# --- variances of seeds and queries --------------------------------------------------------------------------------


def test_components_are_found_again():
    generator, truth = np.random.default_rng(0), (0.5, 2.0, 1.0)
    found = []
    for _ in range(60):
        a, b = truth[0] ** 0.5 * generator.normal(size=12), truth[1] ** 0.5 * generator.normal(size=60)
        ids = [generator.permutation(60)[: 20 + g] for g in range(12)]
        groups = [(a[g] + b[i] + generator.normal(size=len(i)),) for g, i in enumerate(ids)]
        found.append(statistics.variance_components(statistics.Sample(groups, ids)))
    means, errors = np.mean(found, axis=0), np.std(found, axis=0) / 60**0.5
    assert (abs(means - truth) < 4 * errors).all()
    assert sum(found[0].shares) == pytest.approx(1)


# --- many comparisons ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 8], 2 / 256),
        ([-1, 2, 3, 4, 5, 6, 7, 8], 2 * 9 / 256),
        ([-1, -2, 3, 4], 1.0),
        ([0, 0, 1, 2, 3], 2 / 8),
        ([0, 0], 1.0),
    ],
)
def test_sign_test_by_hand(differences, p):
    differences = np.array(differences, dtype=float)
    assert statistics.sign_test(differences) == pytest.approx(p)
    assert statistics.sign_test(-1e-9 * differences) == pytest.approx(p), "neither direction nor size matters"


def test_holm_by_hand():
    p = np.array([0.01, 0.04, 0.03, 0.005])
    # in order .005 x 4, .01 x 3, .03 x 2, .04 x 1 = .02, .03, .06, .04; each at least as large as the one before
    np.testing.assert_allclose(statistics.holm(p), [0.03, 0.06, 0.06, 0.02], rtol=1e-12)
    np.testing.assert_allclose(statistics.holm(np.array([0.02, np.nan, 0.03])), [0.04, np.nan, 0.04], rtol=1e-12)
    assert statistics.holm(np.array([])).shape == (0,)


def test_what_does_not_belong_together_is_refused():
    one, two = [(np.ones(3),)], [(np.arange(2.0),)] * 2
    for ids, strata, seeds in (([np.arange(2)], None, None), (None, ["a", "b"], None), (None, None, [1, 2])):
        with pytest.raises(ShapeError, match="there should be"):
            statistics.Sample(one, ids, strata, seeds)
    with pytest.raises(ShapeError, match="no two seeds share a query"):
        statistics.variance_components(statistics.Sample(two))
