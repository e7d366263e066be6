"""explainer.results.agreement: pairs of changes are found by what they are, and the seed is the unit."""

import numpy as np
import pandas as pd
import pytest
from toy_tables import assert_student

from explainer.results import agreement
from explainer.results.agreement import UpdateFilter
from explainer.theory import statistics

LR = 1e-3


def row(task, seed, a, b, sim_aou):
    """`a` and `b` are (kind, lesson, epochs, rate)."""
    sides = {
        f"{s}_{n}": v for s, of in zip("ab", (a, b), strict=True) for n, v in zip(agreement.DESCRIBED, of, strict=True)
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
    assert len(agreement.pairs_between(frame, own, nonsense)) == len(agreement.pairs_between(frame, nonsense, own)) == 4
    assert set(agreement.pairs_between(frame, own, UpdateFilter("FT", "past"))["sim_aou"]) == {0.6}


def test_a_training_is_told_by_its_epochs_and_its_relative_rate(frame):
    def values(which):
        return sorted(set(agreement.pairs_between(frame, UpdateFilter("ICL"), which)["sim_aou"].round(6)))

    assert values(UpdateFilter("FT", "own", 1)) == [0.2, 0.21, 0.22, 0.23]
    assert values(UpdateFilter("FT", "own", 10)) == [0.4, 0.42, 0.44, 0.46]
    assert values(UpdateFilter("FT", "own", 10, 0.1)) == [0.1]
    assert len(values(UpdateFilter("FT", "own", None, None))) == 9
    assert values(UpdateFilter("ICL", "other")) == [0.9]


def test_intervals_are_students_over_seeds(frame):
    own = agreement.pairs_between(frame, UpdateFilter("ICL"), UpdateFilter("FT", "own", 10))
    assert_student(agreement.by_task(own, "sim_aou")["plurals"], [0.4, 0.42, 0.44, 0.46])
    once = agreement.pairs_between(frame, UpdateFilter("ICL"), UpdateFilter("FT", "own", 1))
    assert_student(agreement.differences(own, once, "sim_aou")["plurals"], [0.2, 0.21, 0.22, 0.23])


def test_the_rank_counts_other_tasks_and_no_other_lesson(frame):
    found = agreement.rank_of_own_task(frame, UpdateFilter("ICL"), 10, "sim_aou")
    assert found["n"].tolist() == [2] * 4
    assert found["above"].tolist() == [0, 1, 1, 1]


def test_the_rank_of_a_context_that_knows_no_task_is_any(frame):
    generator = np.random.default_rng(0)
    rows = [
        row("plurals", seed, ICL, ft(lesson), generator.normal())
        for seed in range(400)
        for lesson in ("own", "past", "capitals", "agents")
    ]
    above = agreement.rank_of_own_task(pd.DataFrame(rows), UpdateFilter("ICL"), 10, "sim_aou")["above"]
    np.testing.assert_allclose(above.value_counts(normalize=True).sort_index(), 0.25, atol=0.06)


def test_another_task_is_any_other(frame):
    foreign = agreement.pairs_between(frame, UpdateFilter("ICL"), UpdateFilter("FT", agreement.FOREIGN, 10))
    assert set(foreign["b_lesson"]) == {"past", "capitals"}


def test_repairs_are_counted_on_the_side_of_the_change_whichever_comes_first():
    counts = {"zsl_errors": 20, "both_fix": 4}
    rows = [
        row("plurals", 0, ICL, ft("own"), 0.0) | counts | {"a_fixes": 10, "b_fixes": 5},
        row("plurals", 1, ft("own"), ICL, 0.0) | counts | {"a_fixes": 5, "b_fixes": 10},
    ]
    found = agreement.common_repairs(pd.DataFrame(rows), UpdateFilter("FT", epochs=10), UpdateFilter("ICL"))
    assert found[["errors", "of", "by", "both", "chance"]].to_numpy().tolist() == [[20, 5, 10, 4, 2.5]] * 2


def test_the_recall_of_one_training_by_another_is_in_the_tables():
    found = agreement.common_repairs(
        agreement.pairs("agreement"), UpdateFilter("FT", epochs=10), UpdateFilter("FT", "other", 10)
    )
    sums = found.groupby("task").sum()
    recall = (sums["both"] / sums["of"]).round(2).to_dict()
    assert recall == {"antonyms": 0.82, "capitals": 0.62, "past": 0.65, "plurals": 0.52}


def test_means_over_tasks_are_of_seeds_that_have_every_task():
    values = {("plurals", 0): 0.1, ("past", 0): 0.3, ("plurals", 1): 0.2, ("past", 1): 0.6, ("plurals", 2): 0.9}
    rows = [row(task, seed, ICL, ft("own"), value) for (task, seed), value in values.items()]
    of_seed = agreement.by_seed(pd.DataFrame(rows), "sim_aou")
    assert of_seed.to_dict() == pytest.approx({0: 0.2, 1: 0.4})
    assert agreement.over_tasks(pd.DataFrame(rows), "sim_aou").estimate == pytest.approx(0.3)


def of_seeds(values):
    """A table with a measure x, from values of seeds (rows) and tasks (columns)."""
    table = pd.DataFrame(values).rename_axis("seed").rename_axis(columns="task")
    return table.stack().rename("x").reset_index()


def test_the_mean_difference_of_complete_seeds_is_students_over_their_means():
    a, b = np.random.default_rng(0).normal(size=(2, 7, 3))
    found = agreement.mean_difference(of_seeds(a), of_seeds(b), "x")
    np.testing.assert_allclose(found, statistics.student((a - b).mean(axis=1)), atol=1e-12)


def test_a_seed_that_lacks_one_task_counts_for_the_others():
    a, b = np.random.default_rng(1).normal(size=(2, 6, 3))
    b[2, 1] = np.nan
    found = agreement.mean_difference(of_seeds(a), of_seeds(b).dropna(), "x")
    assert found.estimate == pytest.approx(np.nanmean(a - b, axis=0).mean())
    # Seeds are independent: over many draws the interval holds the true mean, 0, in about 95 of 100.
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(300):
        draw = rng.normal(size=(8, 3)) + rng.normal(size=(8, 1))
        draw[rng.integers(8), rng.integers(3)] = np.nan
        interval = agreement.mean_difference(of_seeds(draw).dropna(), of_seeds(np.zeros((8, 3))), "x")
        held += interval.low <= 0 <= interval.high
    assert 0.9 < held / 300 < 0.99
