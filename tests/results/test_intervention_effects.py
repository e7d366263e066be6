"""explainer.results.intervention_effects: the seed is the unit, pairs are of the same queries, shares stay shares."""

import numpy as np
import pandas as pd
import pytest

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
    rows = [
        {
            "setting": f"{task}-{seed}",
            "task": task,
            "seed": seed,
            "intervention": intervention,
            "query": query,
            "query_id": f"{task}-{query}" if shared else f"{task}-{seed}-{query}",
            "correct": float(query < counts[seed]),
        }
        for intervention, counts in right.items()
        for seed in SEEDS
        for query in range(N)
    ]
    return pd.DataFrame(rows)


def test_a_setting_may_hold_several_tasks():
    apart = pd.concat([table(), table("past", right=RIGHT | {"icl": [1, 2, 1, 2]})])
    together = apart.assign(setting=apart["seed"].map("draw-{}".format))
    for said in (intervention_effects.differences, intervention_effects.difference):
        assert said(together, "icl", "patch_mean") == said(apart, "icl", "patch_mean")
    assert intervention_effects.over_tasks(together, "icl") == intervention_effects.over_tasks(apart, "icl")


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


def test_differences_are_paired_and_corrected_for_the_number_of_tasks():
    both = pd.concat([table(), table("past", right=RIGHT | {"icl": [1, 2, 1, 2]})])
    found = intervention_effects.differences(both, "icl", "patch_mean")
    of_seeds = {"plurals": np.array([2, 1, 2, 2]) / N, "past": np.array([0, 0, 1, 1]) / N}
    alone = {task: statistics.student(values) for task, values in of_seeds.items()}
    for task, each in alone.items():
        assert tuple(found[task]) == pytest.approx(tuple(each))
    p_values = statistics.holm(np.array([each.p_value for each in alone.values()]))
    assert [found[task].p_value for task in alone] == pytest.approx(list(p_values))
    mean = intervention_effects.difference(both, "icl", "patch_mean")
    assert tuple(mean) == pytest.approx(tuple(statistics.student(np.mean([*of_seeds.values()], axis=0))))


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
    found = intervention_effects.differences(known, "icl", "patch_mean")["plurals"]
    assert tuple(found) == pytest.approx(tuple(statistics.student(np.array([2, 1, 2]) / N)))


def test_right_answers_by_who_else_is_right_on_the_same_query():
    """With queries of two seeds in which fine-tuning, the context and an intervention are right or not."""
    of = {  # (seed, query): right with FT, with the context, and after the intervention
        (0, 0): (0, 1, 1), (0, 1): (0, 1, 0), (0, 2): (1, 1, 1), (0, 3): (0, 0, 0),
        (1, 0): (0, 1, 0), (1, 1): (1, 1, 1), (1, 2): (1, 1, 0), (1, 3): (0, 0, 0),
    }  # fmt: skip
    asked = [
        {
            "setting": f"c{seed}",
            "task": "past",
            "seed": seed,
            "intervention": name,
            "query": query,
            "correct": float(right),
        }
        for i, name in enumerate(("ft", "icl", "along_ft"))
        for (seed, query), answers in of.items()
        for right in answers[i : i + 1]
    ]
    found = intervention_effects.who_answers(pd.DataFrame(asked[::-1]), "along_ft")
    assert found[["ft", "icl", "n"]].to_numpy().tolist() == [[False, False, 2], [False, True, 3], [True, True, 3]]
    neither, context_only, both = found["right"]
    assert neither.estimate == 0
    for share, hits, n in ((context_only, (1, 0), (2, 1)), (both, (1, 1), (1, 2))):
        whole, left = sum(hits) / sum(n), [hits[1 - i] / n[1 - i] for i in (0, 1)]
        expected = statistics.student([2 * whole - each for each in left])
        assert tuple(share) == pytest.approx((expected.estimate, max(expected.low, 0), min(expected.high, 1)))
    assert intervention_effects.who_answers(pd.DataFrame(asked), "icl")["right"].map(
        lambda one: one.estimate
    ).tolist() == [0, 1, 1]


def test_columns_of_settings_are_compared_seed_by_seed():
    settings = pd.DataFrame({"task": "past", "seed": SEEDS, "a": [0.2, 0.3, 0.1, 0.4], "b": [0.1, 0.3, 0.2, 0.1]})
    assert tuple(intervention_effects.column_differences(settings, "a", "b")["past"]) == pytest.approx(
        tuple(statistics.student([0.1, 0.0, -0.1, 0.3]))
    )


def test_columns_are_means_over_tasks_of_the_seeds_that_have_them():
    settings = pd.DataFrame({"task": 3 * ["past"] + 3 * ["agents"], "seed": [0, 1, 2, 0, 1, 2]})
    settings["a"], settings["b"] = [0.2, 0.4, 0.3, 0.1, 0.3, 0.5], [0.5, 0.7, 0.1, 0.9, 0.8, np.nan]
    found = intervention_effects.columns(settings, {"a": "first", "b": "second"})
    assert tuple(found["first"]) == pytest.approx(tuple(statistics.student([0.15, 0.35, 0.4])))
    assert tuple(found["second"]) == pytest.approx(tuple(statistics.student([0.7, 0.75])))


def test_layers_are_in_their_order_and_shares_stay_shares():
    rows = [
        {"task": "past", "seed": seed, "layer": layer, "x": layer / 2 * seed / 2}
        for layer in (1, 0, 2)
        for seed in range(3)
    ]
    found = intervention_effects.accuracy_by_layer(pd.DataFrame(rows), "x")["past"]
    assert found.estimate.tolist() == [0, 0.25, 0.5]
    assert found.low.tolist() == [0, 0, 0] and found.high[2] == 1
    assert found.high[1] == pytest.approx(statistics.student([0, 0.25, 0.5]).high)


def test_what_cannot_be_found_or_is_there_twice_is_refused():
    with pytest.raises(ExperimentError, match=r"no intervention 'patch' in this table; it has zsl, icl, patch_mean"):
        intervention_effects.over_tasks(table(), "patch")
    twice = pd.concat([table(), table().assign(setting=lambda frame: frame["setting"] + "-untrained")])
    with pytest.raises(ExperimentError, match="seed 0 of plurals is there twice"):
        intervention_effects.over_tasks(twice, "icl")
