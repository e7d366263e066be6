"""Pairs of changes are found by what they are; both swaps and what examples cost, of tables whose entries are known."""

import itertools

import numpy as np
import pandas as pd
import pytest
from toy_tables import assert_student

from explainer.results import agreement_results, table_intervals
from explainer.results.agreement_results import UpdateFilter

LR = 1e-3


def row(task, seed, a, b, sim_aou):
    """`a` and `b` are (kind, lesson, epochs, rate)."""
    sides = {
        f"{s}_{n}": v
        for s, of in zip("ab", (a, b), strict=True)
        for n, v in zip(agreement_results.DESCRIBED, of, strict=True)
    }
    return {"task": task, "seed": seed, "lr": LR, "sim_aou": sim_aou} | sides


ICL, OTHER = ("ICL", "own", None, None), ("ICL", "other", None, None)


def ft(lesson, epochs=10, rate=LR):
    return ("FT", lesson, epochs, rate)


@pytest.fixture(scope="module")
def frame():
    rows = []
    for seed in range(4):
        rows += [
            row("plurals", seed, ICL, ft("own", 1), 0.2 + 0.01 * seed),
            row("plurals", seed, ICL, ft("own"), 0.4 + 0.02 * seed),
            row("plurals", seed, ICL, ft("own", 10, LR / 10), 0.1),
            row("plurals", seed, ICL, ft("past"), 0.5 if seed else 0.4),
            row("plurals", seed, ICL, ft("capitals"), 0.1),
            row("plurals", seed, ICL, ft("nonsense"), 0.9),
            row("plurals", seed, ICL, OTHER, 0.9),
            row("plurals", seed, ft("own"), ft("past"), 0.6),
            row("plurals", seed, ft("nonsense"), ft("own"), 0.3),
        ]
    return pd.DataFrame(rows)


def test_a_pair_is_found_whichever_change_comes_first(frame):
    own, nonsense = UpdateFilter("FT", "own", 10), UpdateFilter("FT", "nonsense", 10)
    found = [agreement_results.pairs_between(frame, *both) for both in ((own, nonsense), (nonsense, own))]
    assert [len(pairs) for pairs in found] == [4, 4]
    assert set(agreement_results.pairs_between(frame, own, UpdateFilter("FT", "past"))["sim_aou"]) == {0.6}


def test_a_training_is_told_by_its_epochs_and_its_relative_rate(frame):
    def values(which):
        return sorted(set(agreement_results.pairs_between(frame, UpdateFilter("ICL"), which)["sim_aou"].round(6)))

    assert values(UpdateFilter("FT", "own", 1)) == [0.2, 0.21, 0.22, 0.23]
    assert values(UpdateFilter("FT", "own", 10)) == [0.4, 0.42, 0.44, 0.46]
    assert values(UpdateFilter("FT", "own", 10, 0.1)) == [0.1]
    assert len(values(UpdateFilter("FT", "own", None, None))) == 9
    assert values(UpdateFilter("FT", agreement_results.FOREIGN, 10)) == [0.1, 0.4, 0.5], "any other task"
    assert values(UpdateFilter("ICL", "other")) == [0.9]


def test_intervals_are_students_over_seeds(frame):
    own = agreement_results.pairs_between(frame, UpdateFilter("ICL"), UpdateFilter("FT", "own", 10))
    assert_student(table_intervals.by_task(own, "sim_aou")["plurals"], [0.4, 0.42, 0.44, 0.46])
    once = agreement_results.pairs_between(frame, UpdateFilter("ICL"), UpdateFilter("FT", "own", 1))
    assert_student(table_intervals.by_task(own, "sim_aou", minus=once)["plurals"], [0.2, 0.21, 0.22, 0.23])


def test_the_rank_counts_other_tasks_and_no_other_lesson(frame):
    found = agreement_results.rank_of_own_task(frame, UpdateFilter("ICL"), 10, "sim_aou")
    assert found["n"].tolist() == [2] * 4
    assert found["above"].tolist() == [0, 1, 1, 1]


def test_the_rank_of_a_context_that_knows_no_task_is_any(frame):
    generator = np.random.default_rng(0)
    rows = [
        row("plurals", seed, ICL, ft(lesson), generator.normal())
        for seed in range(400)
        for lesson in ("own", "past", "capitals", "agents")
    ]
    above = agreement_results.rank_of_own_task(pd.DataFrame(rows), UpdateFilter("ICL"), 10, "sim_aou")["above"]
    np.testing.assert_allclose(above.value_counts(normalize=True).sort_index(), 0.25, atol=0.06)


def test_repairs_are_counted_on_the_side_of_the_change_whichever_comes_first():
    counts = {"zsl_errors": 20, "both_fix": 4}
    rows = [
        row("plurals", 0, ICL, ft("own"), 0.0) | counts | {"a_fixes": 10, "b_fixes": 5},
        row("plurals", 1, ft("own"), ICL, 0.0) | counts | {"a_fixes": 5, "b_fixes": 10},
    ]
    found = agreement_results.common_repairs(pd.DataFrame(rows), UpdateFilter("FT", epochs=10), UpdateFilter("ICL"))
    assert found[["errors", "of", "by", "both", "chance"]].to_numpy().tolist() == [[20, 5, 10, 4, 2.5]] * 2


def test_the_recall_of_one_training_by_another_is_in_the_tables():
    found = agreement_results.common_repairs(
        agreement_results.pairs("agreement"), UpdateFilter("FT", epochs=10), UpdateFilter("FT", "other", 10)
    )
    sums = found.groupby("task").sum()
    recall = (sums["both"] / sums["of"]).round(2).to_dict()
    assert recall == {"antonyms": 0.82, "capitals": 0.62, "past": 0.65, "plurals": 0.52}


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
    found = agreement_results.lesson_swaps(pairs, "measure")
    training, context = (found[f"context and training, {side} swapped"] for side in ("training", "context"))
    assert training["the same"].estimate == context["the same"].estimate == 0
    for i, name in enumerate(agreement_results.LESSONS):
        assert training[name].estimate == 10 * i
        assert context[name].estimate == i
    assert "the same" not in found["two training runs"]
    assert found["two training runs"]["made-up words"].estimate == 150
    assert found["two contexts"]["another task"].estimate == 240


def test_a_draw_counts_where_no_training_diverged(pairs):
    past = pairs.assign(task="past")
    diverged = (past["seed"] == 1) & ((past["a_lesson"] == "other") | (past["b_lesson"] == "other"))
    found = agreement_results.n_complete_seeds(
        pd.concat([pairs, past[~diverged]]).rename(columns={"measure": "sim_aou"})
    )
    assert found == dict.fromkeys(agreement_results.LESSONS, 2) | {"other examples of the task": 1}


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
    """Without its training on other examples a draw has one swap left, the context's, which is another question."""
    rows = of_examples(EXAMPLES)
    found = agreement_results.cost_of_other_examples(rows, "measure")
    assert found["training swapped"].estimate == pytest.approx(0.05)
    assert found["context swapped"].estimate == pytest.approx(0.02)
    assert found["both swapped"].estimate == pytest.approx((0.4 + 0.41 - 0.35 - 0.38) / 2)
    assert found["yardstick"].estimate == pytest.approx(0.4 * (0.1 * 0.4) ** 0.5, abs=1e-3)
    lacking = rows[(rows["a_lesson"] != "other") | (rows["b_lesson"] != "other")]
    assert "both swapped" not in agreement_results.cost_of_other_examples(lacking, "measure")
    of_draw = (rows["task"] == "past") & (rows["seed"] == 1)
    diverged = of_draw & (rows["b_kind"] == "FT") & (rows["b_lesson"] == "other")
    found = agreement_results.cost_of_other_examples(rows[~diverged], "measure")
    assert found["both swapped"].estimate == pytest.approx((0.4 + 0.41 - 0.35 - 0.38) / 2)


@pytest.mark.parametrize(("of_contexts", "expected"), [(0.95, 0.4 * (0.05 * 0.2) ** 0.5), (0.85, 0.0)])
def test_with_order_aside_only_what_is_special_to_the_examples_counts(of_contexts, expected):
    """Two orders of one lesson may differ by more than two lessons do: then nothing is special to the examples."""
    reordered = {within("ICL", "reordered"): of_contexts, within("FT", "reordered"): 0.8}
    found = agreement_results.cost_of_other_examples(of_examples(EXAMPLES | reordered), "measure")["order aside"]
    assert found.estimate == pytest.approx(expected)
    for one in reordered:
        assert "order aside" not in agreement_results.cost_of_other_examples(
            of_examples(EXAMPLES | {one: 0.9}), "measure"
        )
