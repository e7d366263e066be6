"""explainer.results.intervention_results: the seed is the unit, pairs are of the same queries, shares stay shares."""

import numpy as np
import pandas as pd
import pytest
from toy_tables import assert_student, crossed

from explainer.errors import ExperimentError
from explainer.results import intervention_results
from explainer.theory import statistics

SEEDS, N = range(4), 3
RIGHT = {  # intervention: right answers of each seed, out of three
    "zsl": [0, 0, 0, 0],
    "icl": [3, 3, 2, 3],
    "patch_mean": [1, 2, 0, 1],
}


def table(task="plurals", shared=False, right=RIGHT):
    return crossed(
        intervention=list(right), seed=SEEDS, query=range(N), task=task, setting=lambda seed: f"{task}-{seed}",
        query_id=lambda seed, query: f"{task}-{query}" if shared else f"{task}-{seed}-{query}",
        correct=lambda intervention, seed, query: float(query < right[intervention][seed]),
    )  # fmt: skip


def test_a_setting_may_hold_several_tasks():
    apart = pd.concat([table(), table("past", right=RIGHT | {"icl": [1, 2, 1, 2]})])
    together = apart.assign(setting=apart["seed"].map("draw-{}".format))
    difference, accuracy = intervention_results.difference, intervention_results.accuracy
    assert difference(together, "icl", "patch_mean") == difference(apart, "icl", "patch_mean")
    assert accuracy(together, "icl") == accuracy(apart, "icl")


def test_intervals_are_students_over_seeds():
    expected = statistics.student(np.array(RIGHT["patch_mean"]) / N)
    found = intervention_results.accuracy(table(), "patch_mean")
    assert found.estimate == pytest.approx(expected.estimate) and found.high == pytest.approx(expected.high)
    assert expected.low < 0 == found.low


def test_a_share_of_none_has_wilsons_interval_over_the_different_queries():
    assert tuple(intervention_results.accuracy(table(), "zsl")) == tuple(statistics.binomial_interval(0, 12))
    assert tuple(intervention_results.accuracy(table(shared=True), "zsl")) == tuple(statistics.binomial_interval(0, 3))


def test_differences_are_paired_and_means_over_tasks():
    one, other = table(), table("past", right=RIGHT | {"icl": [1, 2, 1, 2]})
    of_seeds = [np.array([2, 1, 2, 2]) / N, np.array([0, 0, 1, 1]) / N]
    asked = zip((one, other, pd.concat([one, other])), (*of_seeds, np.mean(of_seeds, axis=0)), strict=True)
    for queries, values in asked:
        found, expected = intervention_results.difference(queries, "icl", "patch_mean"), statistics.student(values)
        assert (*found, found.p_value) == pytest.approx((*expected, expected.p_value))


def test_a_seed_without_one_of_two_interventions_is_left_out():
    frame = table()
    known = frame[~((frame["intervention"] == "patch_mean") & (frame["seed"] == 3))]
    found = intervention_results.difference(known, "icl", "patch_mean")
    assert_student(found, np.array([2, 1, 2]) / N)


def test_right_answers_by_who_else_is_right_on_the_same_query():
    """With queries of two seeds in which fine-tuning, the context and an intervention are right or not."""
    of = {  # (seed, query): right with FT, with the context, and after the intervention
        (0, 0): (0, 1, 1), (0, 1): (0, 1, 0), (0, 2): (1, 1, 1), (0, 3): (0, 0, 0),
        (1, 0): (0, 1, 0), (1, 1): (1, 1, 1), (1, 2): (1, 1, 0), (1, 3): (0, 0, 0),
    }  # fmt: skip
    names = ["ft", "icl", "along_ft"]
    asked = crossed(
        intervention=names, seed=(0, 1), query=range(4), task="past", setting=lambda seed: f"c{seed}",
        correct=lambda intervention, seed, query: float(of[seed, query][names.index(intervention)]),
    )  # fmt: skip
    found = intervention_results.who_answers(asked[::-1], "along_ft")
    assert found[["ft", "icl", "n"]].to_numpy().tolist() == [[False, False, 2], [False, True, 3], [True, True, 3]]
    neither, context_only, both = found["right"]
    assert neither.estimate == 0
    for share, hits, n in ((context_only, (1, 0), (2, 1)), (both, (1, 1), (1, 2))):
        whole, left = sum(hits) / sum(n), [hits[1 - i] / n[1 - i] for i in (0, 1)]
        expected = statistics.student([2 * whole - each for each in left])
        assert tuple(share) == pytest.approx((expected.estimate, max(expected.low, 0), min(expected.high, 1)))
    given = intervention_results.who_answers(asked, "icl")["right"]
    assert [one.estimate for one in given] == [0, 1, 1]


def test_what_cannot_be_found_or_is_there_twice_is_refused():
    with pytest.raises(ExperimentError, match=r"no intervention 'patch' in this table; it has zsl, icl, patch_mean"):
        intervention_results.accuracy(table(), "patch")
    twice = pd.concat([table(), table().assign(setting=lambda frame: frame["setting"] + "-untrained")])
    with pytest.raises(ExperimentError, match="seed 0 of plurals is there twice"):
        intervention_results.accuracy(twice, "icl")
