"""explainer.results.intervention_effects: the seed is the unit, pairs are of the same queries, shares stay shares."""

import numpy as np
import pandas as pd
import pytest
from toy_tables import assert_student, crossed

from explainer.errors import ExperimentError
from explainer.results import intervention_effects
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
    difference, over_tasks = intervention_effects.difference, intervention_effects.over_tasks
    assert difference(together, "icl", "patch_mean") == difference(apart, "icl", "patch_mean")
    assert over_tasks(together, "icl") == over_tasks(apart, "icl")


def test_intervals_are_students_over_seeds():
    expected = statistics.student(np.array(RIGHT["patch_mean"]) / N)
    found = intervention_effects.over_tasks(table(), "patch_mean")
    assert found.estimate == pytest.approx(expected.estimate) and found.high == pytest.approx(expected.high)
    assert expected.low < 0 == found.low


def test_a_share_of_none_has_wilsons_interval_over_the_different_queries():
    assert tuple(intervention_effects.over_tasks(table(), "zsl")) == tuple(statistics.binomial_interval(0, 12))
    assert tuple(intervention_effects.over_tasks(table(shared=True), "zsl")) == tuple(
        statistics.binomial_interval(0, 3)
    )


def test_differences_are_paired_and_means_over_tasks():
    one, other = table(), table("past", right=RIGHT | {"icl": [1, 2, 1, 2]})
    of_seeds = [np.array([2, 1, 2, 2]) / N, np.array([0, 0, 1, 1]) / N]
    asked = zip((one, other, pd.concat([one, other])), (*of_seeds, np.mean(of_seeds, axis=0)), strict=True)
    for queries, values in asked:
        found, expected = intervention_effects.difference(queries, "icl", "patch_mean"), statistics.student(values)
        assert (*found, found.p_value) == pytest.approx((*expected, expected.p_value))


def test_the_mean_over_tasks_counts_tasks_alike():
    both = pd.concat([table(), table("past", right=RIGHT | {"icl": [0, 1, 0, 1]})])
    of_task = intervention_effects.accuracies(both, {"icl": "ICL"})
    mean = intervention_effects.over_tasks(both, "icl")
    assert mean.estimate == pytest.approx(np.mean([each["ICL"].estimate for each in of_task.values()]))


def test_rows_have_their_names_and_no_task_that_lacks_them():
    both = pd.concat([table(), table("past", right={"zsl": [0, 1, 0, 0]})])
    found = intervention_effects.accuracies(both, {"zsl": "nothing", "patch_mean": "mean patch"})
    assert {task: list(each) for task, each in found.items()} == {
        "plurals": ["nothing", "mean patch"],
        "past": ["nothing"],
    }
    assert found["past"]["nothing"] == intervention_effects.over_tasks(both[both["task"] == "past"], "zsl")


def test_a_seed_without_one_of_two_interventions_is_left_out():
    frame = table()
    known = frame[~((frame["intervention"] == "patch_mean") & (frame["seed"] == 3))]
    found = intervention_effects.difference(known, "icl", "patch_mean")
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
    found = intervention_effects.who_answers(asked[::-1], "along_ft")
    assert found[["ft", "icl", "n"]].to_numpy().tolist() == [[False, False, 2], [False, True, 3], [True, True, 3]]
    neither, context_only, both = found["right"]
    assert neither.estimate == 0
    for share, hits, n in ((context_only, (1, 0), (2, 1)), (both, (1, 1), (1, 2))):
        whole, left = sum(hits) / sum(n), [hits[1 - i] / n[1 - i] for i in (0, 1)]
        expected = statistics.student([2 * whole - each for each in left])
        assert tuple(share) == pytest.approx((expected.estimate, max(expected.low, 0), min(expected.high, 1)))
    given = intervention_effects.who_answers(asked, "icl")["right"]
    assert [one.estimate for one in given] == [0, 1, 1]


def test_columns_of_settings_are_compared_seed_by_seed():
    past = pd.DataFrame({"task": "past", "seed": SEEDS, "a": [0.2, 0.3, 0.1, 0.4], "b": [0.1, 0.3, 0.2, 0.1]})
    settings = pd.concat([past, past.assign(task="agents", b=past["a"] + [0.1, 0.2, 0.1, 0.2])])
    found = intervention_effects.column_differences(settings, "a", "b")
    expected = [statistics.student(values) for values in ([0.1, 0.0, -0.1, 0.3], [-0.1, -0.2, -0.1, -0.2])]
    for one, each in zip(found.values(), expected, strict=True):
        assert tuple(one) == pytest.approx(tuple(each))
    p_values = statistics.holm(np.array([each.p_value for each in expected]))
    assert [one.p_value for one in found.values()] == pytest.approx(p_values.tolist()), "corrected for two tasks"


def test_columns_are_means_over_tasks_of_the_seeds_that_have_them():
    settings = pd.DataFrame({"task": 3 * ["past"] + 3 * ["agents"], "seed": [0, 1, 2, 0, 1, 2]})
    settings["a"], settings["b"] = [0.2, 0.4, 0.3, 0.1, 0.3, 0.5], [0.5, 0.7, 0.1, 0.9, 0.8, np.nan]
    found = intervention_effects.column_means(settings, {"a": "first", "b": "second"})
    assert_student(found["first"], [0.15, 0.35, 0.4])
    assert_student(found["second"], [0.7, 0.75])


def test_layers_are_in_their_order_and_shares_stay_shares():
    rows = crossed(layer=(1, 0, 2), seed=range(3), task="past", x=lambda layer, seed: layer / 2 * seed / 2)
    found = intervention_effects.accuracy_by_layer(rows, "x")["past"]
    assert found.estimate.tolist() == [0, 0.25, 0.5]
    assert found.low.tolist() == [0, 0, 0] and found.high[2] == 1
    assert found.high[1] == pytest.approx(statistics.student([0, 0.25, 0.5]).high)


def test_what_cannot_be_found_or_is_there_twice_is_refused():
    with pytest.raises(ExperimentError, match=r"no intervention 'patch' in this table; it has zsl, icl, patch_mean"):
        intervention_effects.over_tasks(table(), "patch")
    twice = pd.concat([table(), table().assign(setting=lambda frame: frame["setting"] + "-untrained")])
    with pytest.raises(ExperimentError, match="seed 0 of plurals is there twice"):
        intervention_effects.over_tasks(twice, "icl")
