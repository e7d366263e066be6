"""explainer.results.reporting and results: what many settings say together, and where they are found."""

import numpy as np
import pandas as pd
import pytest

from explainer.errors import ExperimentError
from explainer.results import reporting
from explainer.results.published import results
from explainer.theory import statistics

STATES = ("zsl", "icl", "ft")


def queries_of(seed, *, zsl=(0, 0), icl=(0, 1), ft=(1, 0), **columns):
    """Queries of one setting; None is an FT that diverged."""
    correct = {"zsl": zsl, "icl": icl, "ft": [None] * len(zsl) if ft is None else ft}
    states = {f"{s}_correct": [x if x is None else bool(x) for x in row] for s, row in correct.items()}
    setting = {"setting": f"c{seed}", "task": "toy", "seed": seed, "control": "none", "k": 3, "lr": 1e-3}
    names = {"n_queries": len(zsl), "query": range(len(zsl)), "query_id": [f"q{i}" for i in range(len(zsl))]}
    return pd.DataFrame(setting | names | states | columns)


# --- intervals --------------------------------------------------------------------------------------------------


def test_groups_are_the_settings_in_their_order():
    both = pd.concat([queries_of(7, x=[1.0, 2.0]), queries_of(3, x=[3.0, np.nan])])
    sample = reporting.as_sample(both, "x", "icl_correct")
    assert [group[0].tolist() for group in sample.groups] == [[1, 2], [3]]  # what has no value is left out
    assert [group[1].tolist() for group in sample.groups] == [[False, True], [False]]
    assert [ids.tolist() for ids in sample.ids] == [["q0", "q1"], ["q0"]]
    assert sample.strata == ["toy", "toy"] and sample.seeds == [7, 3]
    (of_one,) = reporting.as_sample(queries_of(0, example_tau_b=np.nan).assign(k=1), "example_tau_b").groups[0]
    assert np.isnan(of_one).tolist() == [True, True]  # one demonstration has no order


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"position": "first-label"}, "settings of toy differ in position: prompt, first-label; only seeds may differ"),
        ({"lr": 1e-2}, r"differ in lr: 0\.001, 0\.01"),
        ({"k": 8}, "differ in k: 3, 8"),
        ({"control": "ascent"}, "differ in control: none, ascent"),
        ({}, "seed 0 of toy is there twice"),
    ],
)
def test_settings_that_differ_in_more_than_the_seed_are_refused(other, message):
    """Two positions were once read as ten seeds of one: a trend of -.18, where each position had none that is settled.

    What a whole grid holds has to be asked for setting by setting.
    """
    one = queries_of(0, x=1.0, position="prompt")
    mixed = pd.concat([one, one.assign(setting="other", **other)])
    for read in (reporting.as_sample, reporting.similarity_interval, reporting.similarities_by_task):
        with pytest.raises(ExperimentError, match=message):
            read(mixed, "x")
    with pytest.raises(ExperimentError, match=message):
        reporting.prediction_interval(mixed, "icl")
    two_tasks = pd.concat([one, one.assign(setting="b", task="other", k=22)])
    assert reporting.similarity_interval(two_tasks, "x").estimate == 1, "tasks may have their own setting"


def test_intervals_over_seeds_and_queries():
    right = [[1] * 9 + [0], [1] * 5 + [0] * 5]
    two = pd.concat([queries_of(s, zsl=[0] * 10, icl=[0] * 10, ft=right[s], sim_aou=0.2) for s in (0, 1)])
    estimate, low, high = reporting.prediction_interval(two, "ft", n_resamples=200)
    assert estimate == 0.7 and 0.2 <= low < 0.6 and 0.8 < high <= 1
    assert tuple(reporting.similarity_interval(two, "sim_aou", n_resamples=50)) == pytest.approx((0.2, 0.2, 0.2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda q: reporting.prediction_interval(q, "ft"), "seed 0.* has no 'ft_correct'"),
        (lambda q: reporting.prediction_interval(q, "icl", "auc"), "has no 'icl_log_probs'"),
        (lambda q: reporting.similarity_interval(q, "sim_aou"), "has no 'sim_aou'"),
        (lambda q: reporting.as_sample(q.assign(example_tau_b=np.nan), "example_tau_b"), "has no 'example_tau_b'"),
    ],
)
def test_what_a_setting_does_not_have_is_an_error(call, message):
    with pytest.raises(ExperimentError, match=message):
        call(queries_of(0, ft=None, sim_aou=np.nan))


def test_intervals_of_words_that_come_back_are_those_of_words():
    """Forty words in each of ten seeds are forty words; as 400 the interval was a third as wide."""
    rng = np.random.default_rng(0)
    right = (rng.random(40) < 0.5).astype(int)
    same = pd.concat([queries_of(s, zsl=[0] * 40, icl=right, ft=[0] * 40) for s in range(10)])
    interval = reporting.prediction_interval(same, "icl")
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * right.std() / 40**0.5, rel=0.15)
    new = same.assign(query_id=same["setting"] + same["query_id"])
    interval = reporting.prediction_interval(new, "icl")
    assert interval.high - interval.low < 0.6 * 2 * 1.96 * right.std() / 40**0.5


def test_shares_of_all_or_none_have_a_width_by_their_words():
    """Ten seeds that ask the same two words have seen two words."""
    same = pd.concat([queries_of(s, icl=(1, 1), ft=(1, 1), zsl=(0, 0)) for s in range(10)])
    two = statistics.binomial_interval(1, 2)
    right = reporting.prediction_interval(same, "icl"), reporting.similarity_interval(same, "icl_correct")
    for interval in right:
        assert tuple(interval) == pytest.approx(tuple(two))
    assert reporting.prediction_interval(same, "zsl").high > 0.5
    assert tuple(reporting.similarity_interval(same.assign(x=1.0), "x")) == (1, 1, 1), "a similarity is no share"


# --- words and selection ----------------------------------------------------------------------------------------


def test_selection_on_other_queries_and_on_the_same():
    columns = ["split", "seed", "lr", "icl_accuracy", "ft_accuracy"]
    rows = [
        ("selection", 0, 1e-3, 0.5, 0.9),
        ("selection", 1, 3e-3, 0.8, 0.6),
        ("selection", 1, 2e-3, 0.8, 0.6),
        ("selection", 1, 1e-3, 0.8, 0.4),
        ("selection", 1, 9e-3, 0.8, None),
        ("report", 0, 1e-3, 0.9, 0.7),
        ("report", 1, 1e-3, 0.6, 0.9),
        ("report", 1, 2e-3, 0.6, 0.5),
        ("report", 1, 3e-3, 0.6, 0.7),
    ]
    settings = pd.DataFrame(rows, columns=columns)
    assert reporting.selected_setting(settings).name == 7
    assert reporting.selected_setting(settings, "report").name == 5


# --- the published tables of the book ---------------------------------------------------------------------------


def test_made_says_where_they_come_from():
    made = reporting.provenance(results("cb", "queries", control="none", seed=0), results("cb", control="none"))
    seconds = results("cb", "runs", control="none")["cpu_seconds"].sum()
    assert str(made) == (
        "Stored: 10 settings, seeds 0 to 9; 56 queries each; k = 19; SmolLM2-135M-Instruct, float32, x86_64, torch "
        f"2.13.0+cpu; {seconds:.0f} CPU seconds; computed by explainer-lab comparison, grid cb "
        "(see Reproduce)."
    )
    with pytest.raises(ExperimentError, match=r"no published table in .* has the given settings; publish them"):
        reporting.provenance(pd.DataFrame({"setting": ["of nobody"], "checkpoint": ["model"]}))


def test_a_setting_of_two_grids_counts_once():
    one, other, both = (results(of, "queries") for of in ("rates", "controls", ("rates", "controls")))
    assert set(both["setting"]) == set(one["setting"]) | set(other["setting"])
    assert not both.duplicated(["setting", "query"]).any() and len(both) < len(one) + len(other)
    assert list(both.index) == list(range(len(both))) and list(both.columns) == list(one.columns)


def test_intervals_of_label_tasks_agree_with_the_settings():
    settings, queries = (results("cb", table, control="none") for table in ("settings", "queries"))
    for measure in ("accuracy", "calibrated_accuracy", "auc"):
        interval = reporting.prediction_interval(queries, "icl", measure, n_resamples=20)
        assert interval.estimate == pytest.approx(settings[f"icl_{measure}"].mean(), abs=1e-2)


def test_similarities_by_task_leave_out_tasks_without_the_measure():
    a = pd.concat([queries_of(0, x=0.1, y=np.nan), queries_of(1, x=0.5, y=0.2)])
    both = pd.concat([a, a.assign(task="b", setting=a["setting"] + "b", y=0.3)])
    found = reporting.similarities_by_task(both, "x", n_resamples=200)
    assert list(found) == ["toy", "b"] and found["toy"].estimate == pytest.approx(0.3)
    assert found["toy"].low < 0.3 < found["toy"].high
    assert list(reporting.similarities_by_task(both, "y", n_resamples=20)) == ["b"]
    assert reporting.estimates({"x": found}) == {"x": {"toy": found["toy"].estimate, "b": found["b"].estimate}}


def over(task, seeds=3, shift=0.0, n=40):
    """Cells of a task whose seeds differ by 0.1, a floor 0.05 lower, and another that does not exist."""
    rng = np.random.default_rng(len(task))
    settings = []
    for seed in range(seeds):
        x = 0.2 + shift + 0.1 * rng.normal() + 0.05 * rng.normal(size=n)
        setting = queries_of(seed, zsl=[0] * n, icl=[0] * n, ft=[0] * n, label=0.0)
        settings.append(
            setting.assign(task=task, setting=f"{task}{seed}", x=x, floor=x - 0.05 - 0.01 * seed, none=np.nan)
        )
    return pd.concat(settings)


def test_tasks_are_no_replicates():
    """Three tasks far apart, each known well: their mean is known well. Student over tasks called it unknown."""
    three = pd.concat([over("a", shift=-1), over("bb"), over("ccc", shift=1)])
    interval = reporting.similarity_interval(three, "x", n_resamples=300)
    means = three.groupby("task")["x"].mean()
    assert interval.estimate == pytest.approx(means.mean())
    assert interval.high - interval.low < 0.3 < statistics.student(means).high - statistics.student(means).low


def test_one_task_given_three_times_is_not_known_better():
    """SST-2 and SST-5 ask about the same sentences: ids tell, so that a copy of a task adds nothing to its queries."""
    one = over("a", seeds=1)
    copies = pd.concat([one.assign(task=name, setting=name) for name in "abc"])
    alone, thrice = (reporting.similarity_interval(each, "x", n_resamples=1000) for each in (one, copies))
    assert thrice.estimate == pytest.approx(alone.estimate)
    assert thrice.high - thrice.low == pytest.approx(alone.high - alone.low, rel=0.05)
    apart = copies.assign(query_id=copies["task"] + copies["query_id"])
    narrow = reporting.similarity_interval(apart, "x", n_resamples=1000)
    assert narrow.high - narrow.low < 0.7 * (alone.high - alone.low)
