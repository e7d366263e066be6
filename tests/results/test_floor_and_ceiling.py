"""From floor to ceiling: shares of the way by hand, and both swaps from a table whose entries are known."""

import itertools
from dataclasses import replace

import pandas as pd
import pytest
from toy_tables import assert_student, crossed

from explainer.explorables import Ladder
from explainer.results import agreement, intervention_effects, verdict_scale
from explainer.results.published import results
from explainer.theory import statistics

LESSONS = ("own", "reordered", "other", "shuffled", "plurals", "nonsense")


def side(name, kind, lesson):
    return {f"{name}_kind": kind, f"{name}_lesson": lesson, f"{name}_epochs": 10.0, f"{name}_rate": 5e-4}


def known(a, b):
    """A measure that tells both lessons and both kinds."""
    (kind, lesson), (other_kind, other_lesson) = a, b
    place = LESSONS.index(lesson) + 10 * LESSONS.index(other_lesson)
    return place + (100 if kind == other_kind == "FT" else 200 if kind == other_kind else 0)


@pytest.fixture
def pairs():
    changes = list(itertools.product(("ICL", "FT"), LESSONS))
    rows = [
        {"task": "capitals", "seed": seed, "lr": 5e-4, "measure": known(a, b) + noise, **side("a", *a), **side("b", *b)}
        for seed, noise in ((0, -0.5), (1, 0.5))
        for a, b in itertools.combinations(changes, 2)
    ]
    return pd.DataFrame(rows)


def test_both_swaps_take_the_lesson_of_the_side_that_is_swapped(pairs):
    found = verdict_scale.lesson_swaps(pairs, "measure")
    training, context = (found[f"context and training, {side} swapped"] for side in ("training", "context"))
    assert training["the same"].estimate == context["the same"].estimate == 0
    for i, name in enumerate(verdict_scale._LESSONS):
        assert training[name].estimate == 10 * i
        assert context[name].estimate == i
    assert "the same" not in found["two trainings"]
    assert found["two trainings"]["made-up words"].estimate == 150
    assert found["two contexts"]["another task"].estimate == 240


def test_a_draw_counts_where_no_training_diverged(pairs):
    past = pairs.assign(task="past")
    diverged = (past["seed"] == 1) & ((past["a_lesson"] == "other") | (past["b_lesson"] == "other"))
    found = verdict_scale.n_complete_seeds(pd.concat([pairs, past[~diverged]]).rename(columns={"measure": "sim_aou"}))
    assert found == dict.fromkeys(verdict_scale._LESSONS, 2) | {"other examples of the task": 1}
    assert verdict_scale.n_draws(*(pd.Series(0.0, index=seeds) for seeds in ((0, 1, 2), (1, 2), (0, 1, 3)))) == 1


def of_examples(values):
    rows = [
        {"task": task, "seed": seed, "lr": 5e-4, "measure": value + noise, **side("a", *a), **side("b", *b)}
        for task, seed, noise in (("capitals", 0, 0.01), ("capitals", 1, -0.01), ("past", 0, 0.0), ("past", 1, 0.0))
        for (a, b), value in values.items()
    ]
    return pd.DataFrame(rows)


def within(kind, lesson):
    return (kind, "own"), (kind, lesson)


SIDES = {("own", "own"): 0.4, ("own", "other"): 0.35, ("other", "own"): 0.38, ("other", "other"): 0.41}
EXAMPLES = {(("ICL", c), ("FT", f)): value for (c, f), value in SIDES.items()}
EXAMPLES |= {within("ICL", "other"): 0.9, within("FT", "other"): 0.6}


def test_what_the_examples_cost_and_should_cost():
    rows = of_examples(EXAMPLES)
    found = verdict_scale.cost_of_other_examples(rows, "measure")
    assert found["training swapped"].estimate == pytest.approx(0.05)
    assert found["context swapped"].estimate == pytest.approx(0.02)
    assert found["both swapped"].estimate == pytest.approx((0.4 + 0.41 - 0.35 - 0.38) / 2)
    assert found["yardstick"].estimate == pytest.approx(0.4 * (0.1 * 0.4) ** 0.5, abs=1e-3)
    lacking = rows[(rows["a_lesson"] != "other") | (rows["b_lesson"] != "other")]
    assert "both swapped" not in verdict_scale.cost_of_other_examples(lacking, "measure")


def test_both_swapped_takes_the_draws_that_have_all_four_corners():
    """Without its training on other examples a draw has one swap left, the context's, which is another question."""
    lacking = of_examples(EXAMPLES)
    of_draw = (lacking["task"] == "past") & (lacking["seed"] == 1)
    diverged = of_draw & (lacking["b_kind"] == "FT") & (lacking["b_lesson"] == "other")
    found = verdict_scale.cost_of_other_examples(lacking[~diverged], "measure")
    assert found["both swapped"].estimate == pytest.approx((0.4 + 0.41 - 0.35 - 0.38) / 2)


@pytest.mark.parametrize(("of_contexts", "expected"), [(0.95, 0.4 * (0.05 * 0.2) ** 0.5), (0.85, 0.0)])
def test_with_order_aside_only_what_is_special_to_the_examples_counts(of_contexts, expected):
    """Two orders of one lesson may differ by more than two lessons do: then nothing is special to the examples."""
    reordered = {within("ICL", "reordered"): of_contexts, within("FT", "reordered"): 0.8}
    found = verdict_scale.cost_of_other_examples(of_examples(EXAMPLES | reordered), "measure")["order aside"]
    assert found.estimate == pytest.approx(expected)
    for one in reordered:
        assert "order aside" not in verdict_scale.cost_of_other_examples(of_examples(EXAMPLES | {one: 0.9}), "measure")


def test_the_share_of_the_way():
    floor, value, ceiling = (pd.Series(of, index=[0, 1]) for of in ([0.0, 0.2], [0.5, 0.4], [1.0, 1.2]))
    way = verdict_scale.normalised_position(floor, value, ceiling)
    assert way["share of the way"].estimate == pytest.approx((0.5 + 0.2) / 2)
    assert way["floor"].estimate == pytest.approx(0.1)


COLUMNS = ("own", "trainings", "contexts", *(f"{side}_{name}" for side in ("training", "context")
           for name in ("nonsense", "foreign", "shuffled")))  # fmt: skip


@pytest.fixture
def layers():
    """Two tasks, three seeds, six layers: a column is its number, a tenth of the layer, and noise of its seed."""
    columns = {
        name: lambda layer, seed, task, i=i: i + layer / 10 + seed * (layer + 1) / 100 + (task == "past")
        for i, name in enumerate(COLUMNS)
    }
    return crossed(layer=(3, 0, 5, 1, 4, 2), seed=range(3), task=("capitals", "past"), **columns)


def test_similarity_by_layer_is_a_mean_over_tasks(layers):
    found = verdict_scale.by_layer(layers)
    said = {
        "the same lesson": "own", "two trainings": "trainings", "two contexts": "contexts",
        "made-up words in the training": "training_nonsense", "made-up words in the context": "context_nonsense",
        "another task in the training": "training_foreign", "another task in the context": "context_foreign",
    }  # fmt: skip
    assert set(found) == set(said)
    for name, column in said.items():
        i = COLUMNS.index(column)
        for layer in range(6):
            expected = statistics.student([i + 0.5 + layer / 10 + seed * (layer + 1) / 100 for seed in range(3)])
            one = [getattr(found[name], end)[layer] for end in ("estimate", "low", "high")]
            assert one == pytest.approx([expected.estimate, expected.low, expected.high])


@pytest.mark.parametrize(
    ("side", "floor", "column"),
    [
        ("training", "made-up words", "training_nonsense"),
        ("context", "another task", "context_foreign"),
        ("context", "shuffled answers", "context_shuffled"),
    ],
)
def test_the_share_of_the_way_in_each_third_of_the_layers(layers, side, floor, column):
    """A ratio of means over tasks, seeds and layers, whose interval is that of the jackknife over seeds."""
    values = {"lower third": (0.1, 0.4, 0.5), "middle third": (0.2, 0.3, 0.7), "upper third": (0.0, 0.6, 0.8)}
    of_layer = dict(zip(range(6), [v for v in values.values() for _ in range(2)], strict=True))
    for i, name in enumerate((column, "own", "trainings")):
        of = layers["layer"].map(lambda layer, i=i: of_layer[layer][i])
        layers[name] = of + layers["layer"] % 2 * 0.01 + (layers["task"] == "past") * 0.02 + layers["seed"] * 0.03 * i
    found = verdict_scale.normalised_position_by_thirds(layers, side, floor)
    assert list(found) == list(values)
    for name, (low, own, high) in values.items():

        def share(seeds, low=low, own=own, high=high):
            seed = sum(seeds) / len(seeds)
            return (own + 0.03 * seed - low) / (high + 0.06 * seed - low)

        left = [share([seed for seed in range(3) if seed != out]) for out in range(3)]
        assert_student(found[name], [3 * share([0, 1, 2]) - 2 * each for each in left])
    assert verdict_scale.normalised_position_by_thirds(layers, side) == verdict_scale.normalised_position_by_thirds(
        layers, side, "made-up words"
    )


def test_right_answers_are_means_over_tasks_of_each_seed():
    rows = [("icl", 0, "a", 1), ("icl", 0, "a", 0), ("icl", 0, "b", 1), ("ft", 0, "a", 0), ("icl", 1, "a", 0)]
    answered = pd.DataFrame(rows, columns=["intervention", "seed", "task", "correct"])
    assert verdict_scale._right(answered, "icl").to_dict() == {0: 0.75, 1: 0.0}


def test_what_the_story_says_of_the_stored_pairs():
    """Its numbers stand in sentences: similarity, floors, ceilings, and what other examples cost and should cost."""
    stored = agreement.pairs("agreement")
    training, context, trainings, contexts = verdict_scale.lesson_swaps(stored, "sim_aou").values()
    cost = verdict_scale.cost_of_other_examples(stored, "sim_aou")
    said = {
        "0.38": training["the same"], "0.20": training["made-up words"], "0.28": context["made-up words"],
        "0.22": training["shuffled answers"], "0.33": context["shuffled answers"],
        "0.29": training["another task"], "0.31": context["another task"],
        "0.89": trainings["the same, in another order"], "0.71": trainings["other examples of the task"],
        "0.98": contexts["the same, in another order"], "0.94": contexts["other examples of the task"],
        "0.05": cost["yardstick"],
    }  # fmt: skip
    assert [f"{of.estimate:.2f}" for of in said.values()] == list(said)
    for swapped in ("training swapped", "context swapped"):
        assert -0.02 < cost[swapped].low < 0 < cost[swapped].high < 0.02


def test_what_floors_and_ceilings_says_of_capitals():
    """The weights tell the very examples from others when the training is swapped, and not when the context is."""
    stored = agreement.pairs("agreement").query("task == 'capitals'")
    own = agreement.pairs_between(stored, verdict_scale.ICL, verdict_scale.FT)
    cost = verdict_scale.cost_of_other_examples(stored, "update_cosine")
    said = {name: [round(end, 3) for end in cost[f"{name} swapped"]] for name in ("training", "context")}
    assert said == {"training": [0.014, 0.008, 0.020], "context": [0.003, -0.005, 0.010]}
    assert round(own.groupby("seed")["update_cosine"].mean().mean(), 2) == 0.13 and own["seed"].nunique() == 20
    comparisons = 4 * 5  # word-pair tasks, measures; the smallest p of all is multiplied by their number
    assert round(comparisons * cost["training swapped"].p_value, 3) == 0.003


def test_what_the_story_says_of_the_causal_tests():
    shared = results("shared-part", "queries")
    said = {
        "icl": 0.67, "ft": 0.32, "along_ft": 0.21, "along_near": 0.08, "across_ft": 0.46, "across_near": 0.58,
        "along_ft_factor_of_next": 0.2, "ft_across_icl": 0.13, "ft_across_near": 0.22,
    }  # fmt: skip
    assert {name: round(verdict_scale._right(shared, name).mean(), 2) for name in said} == said
    assert round(verdict_scale._explained(results("causal-tests"), "r2_icl_own").mean(), 2) == 0.05


def test_what_between_floor_and_ceiling_says_of_noise():
    own = agreement.pairs_between(agreement.pairs("agreement"), verdict_scale.ICL, verdict_scale.FT)
    said = {"sim_aou_noise": 0.14, "sim_aou_tangent_uncentred": 0.29}
    assert {name: round(agreement.over_tasks(own, name).estimate, 2) for name in said} == said


def test_what_the_chapter_says_of_the_shared_part():
    """Task by task, beside another query of the task, and out of the context; counted from the table of queries."""
    shared = results("shared-part", "queries")
    right = shared.groupby(["intervention", "task"])["correct"].mean().unstack()
    assert round(right["past"]["along_ft"] / right["past"]["ft"], 2) == 0.45
    who = intervention_effects.who_answers(shared, "along_ft").set_index(["ft", "icl"])
    hits = who["n"] * who["right"].map(lambda of: of.estimate)
    assert round(hits[True].sum() / hits.sum(), 2) == 0.95
    assert round(who["right"][False, True].estimate, 2) == 0.02
    gain = intervention_effects.difference(shared, "along_ft_shuffled", "along_near_shuffled")
    assert f"{gain:.3f}" == "0.027 [0.015, 0.039]".replace(" ", "\N{NO-BREAK SPACE}")
    assert round(verdict_scale._right(shared, "along_ft_of_next").mean(), 2) == 0.06
    costs_more = intervention_effects.difference(shared, "across_ft", "across_ft_other")
    assert f"{costs_more:.3f}" == "0.025 [0.004, 0.046]".replace(" ", "\N{NO-BREAK SPACE}")


def test_what_the_pages_say_of_single_steps():
    """A third of what steps explain is in the first layer; fine-tuning stands at 0.04 and answers 9 in a hundred."""
    layers = results("causal-tests", "layers").groupby("layer")["r2_icl_own"].mean()
    assert 0.3 < layers[0] / layers.sum() < 0.4
    columns = ("r2_ft_foreign", "r2_ft_own", "r2_descent_own")
    itself = verdict_scale.normalised_position(
        *(verdict_scale._explained(results("causal-tests"), of) for of in columns)
    )
    assert round(itself["share of the way"].estimate, 2) == 0.04
    assert round(verdict_scale._right(results("causal-tests", "queries"), "ft").mean(), 2) == 0.09


def test_what_the_story_says_of_the_ladder():
    rungs = Ladder.stored()
    assert all(rung == [0.0, 0.0, 0.0] for rung in rungs["here"][:4])
    assert rungs["here"][4][1] > 0.5
    assert round(rungs["here"][5][1], 2) == 0.83 and rungs["heads"] == 270


def test_what_the_note_on_update_matrices_says_in_words():
    """A tenth, about the same with other examples on either side, less with another task; one settled difference."""
    stored = agreement.pairs("agreement")
    training, context, *_ = verdict_scale.lesson_swaps(stored, "update_cosine").values()
    assert training["the same"].estimate == pytest.approx(0.1, abs=0.01)
    for swapped in (training, context):
        other, foreign = (swapped[name].estimate for name in ("other examples of the task", agreement.FOREIGN))
        assert abs(training["the same"].estimate - other) < 0.01 and foreign < 0.8 * other
    icl, ft = verdict_scale.ICL, verdict_scale.FT
    own = agreement.pairs_between(stored, icl, ft)
    for swapped, wanted in (
        ((icl, replace(ft, lesson="other")), ["capitals"]),
        ((replace(icl, lesson="other"), ft), []),
    ):
        less = agreement.differences(own, agreement.pairs_between(stored, *swapped), "update_cosine")
        assert [task for task, each in less.items() if each.p_value < 0.05] == wanted


def test_what_the_pages_say_of_the_thirds():
    """From another task 0.02 or 0.01 (in the context), 0.08 and 0.42 of the way; from made-up words in the context."""
    layers = results("shared-part", "layers")
    said = {("training", "another task"): [0.02, 0.08, 0.42], ("context", "made-up words"): [0.04, 0.08, 0.5]}
    said |= {("training", "made-up words"): [0.26, 0.29, 0.53], ("context", "another task"): [0.01, 0.08, 0.42]}
    for (side, floor), wanted in said.items():
        found = verdict_scale.normalised_position_by_thirds(layers, side, floor)
        assert [round(of.estimate, 2) for of in found.values()] == wanted
