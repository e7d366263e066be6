"""The one reducer of tables, by hand; and the thirds of the layers."""

import numpy as np
import pandas as pd
import pytest
from toy_tables import assert_student, crossed

from explainer.results import table_intervals
from explainer.results.table_intervals import Signs
from explainer.results.thirds import THIRDS, layer_thirds
from explainer.theory import statistics
from explainer.theory.statistics import Interval

TASKS, SEEDS = ("a", "b"), (0, 1, 2)


@pytest.mark.parametrize(
    ("n", "letters"),
    [(1, "u"), (2, "lu"), (3, "lmu"), (4, "lmmu"), (6, "llmmuu"), (28, 9 * "l" + 10 * "m" + 9 * "u"),
     (30, 10 * "l" + 10 * "m" + 10 * "u")],
)  # fmt: skip
def test_every_model_has_an_upper_third(n, letters):
    found = layer_thirds(n)
    assert "".join(name[0] * len(range(n)[found[name]]) for name in THIRDS) == letters


def rows(**columns):
    """Two queries of each seed of two tasks, in an order in which task b comes first."""
    return crossed(task=TASKS[::-1], seed=SEEDS, query=(0, 1), **columns)


def test_rows_are_told_apart_by_task_in_their_order_and_by_number_along_it():
    table = rows(x=lambda task, seed: seed + (task == "b"))
    assert table_intervals.by_group(table, "task", lambda its: its["x"].max()) == {"b": 3, "a": 2}
    along = table_intervals.by_group(table[::-1], "seed", lambda its: its["x"].mean())
    assert list(along.items()) == [(0, 0.5), (1, 1.5), (2, 2.5)] and all(type(step) is int for step in along)


def test_tasks_count_alike_however_many_rows_they_have():
    table = rows(x=lambda task, seed, query: seed + 10 * (task == "b") + query)
    fewer = table[(table["task"] == "a") | (table["query"] == 0)]
    assert table_intervals.seed_means(fewer, "x").to_dict() == {seed: seed + 5.25 for seed in SEEDS}
    by_query = table_intervals.seed_means(table, ["x"], "task", "query")["x"]
    assert by_query.unstack().to_numpy().tolist() == [[5 + seed, 6 + seed] for seed in SEEDS]


def test_a_mean_over_seeds_is_of_those_that_have_every_task():
    values = {("a", 0): 0.1, ("b", 0): 0.3, ("a", 1): 0.2, ("b", 1): 0.6, ("a", 2): 0.9}
    table = pd.DataFrame([{"task": task, "seed": seed, "x": x} for (task, seed), x in values.items()])
    assert table_intervals.seed_means(table, "x").to_dict() == pytest.approx({0: 0.2, 1: 0.4})
    assert_student(table_intervals.over_seeds(table, "x"), [0.2, 0.4])
    assert_student(table_intervals.by_task(table, "x")["a"], [0.1, 0.2, 0.9])


def test_layers_are_columns_of_an_interval_of_means_over_tasks():
    x = lambda layer, seed, task: layer + seed + (task == "b")  # noqa: E731
    table = crossed(layer=(3, 0, 1, 2), seed=SEEDS, task=TASKS, x=x)
    found = table_intervals.by_layer(table, "x")
    for layer in range(4):
        assert_student([of[layer] for of in found], [0.5 + layer + seed for seed in SEEDS])


def test_draws_are_the_unit_of_complete_tables():
    assert_student(
        table_intervals.of_means(rows(x=lambda task, seed: 10 * (task == "b") + seed**2), "x", ["seed", "task"]),
        [5, 6, 9],
    )


def test_a_draw_that_lacks_a_task_counts_for_the_others():
    table = rows(x=lambda task, seed: 10 * (task == "b") + seed)
    T, left = (1 + 11) / 2, [(1.5 + 12) / 2, (1 + 11) / 2, (0.5 + 10) / 2]
    missing = (table["task"] == "b") & (table["seed"] == 1)
    for lacking in (table[~missing], table.assign(x=table["x"].mask(missing))):
        assert_student(table_intervals.of_means(lacking, "x", ["seed", "task"]), [3 * T - 2 * each for each in left])


def test_functions_are_of_means_or_of_sums():
    table = rows(hit=lambda seed, query: seed < 2 and query == 0, x=lambda seed: 1.0 + seed)
    assert_student(table_intervals.of_means(table, lambda means: means.x), [1, 2, 3])
    assert_student(
        table_intervals.of_means(table, lambda means: means.x**2), [3 * 2**2 - 2 * of**2 for of in (2.5, 2, 1.5)]
    )
    hits, n = np.array([2, 2, 0]), 4
    left = (hits.sum() - hits) / (2 * n)
    found = table_intervals.of_sums(table, lambda sums: sums.hit / sums.n, ["seed", "task"])
    assert_student(found, hits.sum() / n - 2 * left)


def test_one_draw_has_no_interval():
    found = table_intervals.of_means(rows(x=2.0).query("seed == 0"), "x", ["seed", "task"])
    assert found.estimate == 2 and np.isnan(found.low) and np.isnan(found.high)


def of_seeds(values):
    """A table with a measure x, from values of seeds (rows) and tasks (columns)."""
    table = pd.DataFrame(values).rename_axis("seed").rename_axis(columns="task")
    return table.stack().rename("x").reset_index()


def test_differences_of_complete_seeds_are_students_over_them():
    a, b = np.random.default_rng(0).normal(size=(2, 7, 3))
    found = table_intervals.mean_difference(of_seeds(a), of_seeds(b), "x")
    np.testing.assert_allclose(found, statistics.student((a - b).mean(axis=1)), atol=1e-12)
    by_task = table_intervals.by_task(of_seeds(a), "x", minus=of_seeds(b))
    expected = [statistics.student(of) for of in (a - b).T]
    np.testing.assert_allclose(list(map(tuple, by_task.values())), list(map(tuple, expected)))
    p_values = statistics.holm(np.array([each.p_value for each in expected]))
    assert [one.p_value for one in by_task.values()] == pytest.approx(p_values.tolist()), "corrected for three tasks"


def test_a_seed_that_lacks_one_task_counts_for_the_others():
    a, b = np.random.default_rng(1).normal(size=(2, 6, 3))
    b[2, 1] = np.nan
    found = table_intervals.mean_difference(of_seeds(a), of_seeds(b).dropna(), "x")
    assert found.estimate == pytest.approx(np.nanmean(a - b, axis=0).mean())
    # Seeds are independent: over many draws the interval holds the true mean, 0, in about 95 of 100.
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(100):
        draw = rng.normal(size=(8, 3)) + rng.normal(size=(8, 1))
        draw[rng.integers(8), rng.integers(3)] = np.nan
        interval = table_intervals.mean_difference(of_seeds(draw).dropna(), of_seeds(np.zeros((8, 3))), "x")
        held += interval.low <= 0 <= interval.high
    assert 0.9 < held / 100 < 0.99


def test_signs_are_counted_after_correction():
    up, down, open_ = (Interval(m, 0, 0, p) for m, p in ((0.5, 1e-4), (-0.5, 1e-3), (0.3, 0.02)))
    each = {"a": up, "b": down, "c": open_, "d": open_, "e": open_}
    assert Signs.among(table_intervals.holm_corrected(each)) == Signs(rises=1, falls=1, undecided=3), (
        "3 x 0.02 is above 0.05"
    )
    assert Signs.among(table_intervals.holm_corrected({"c": open_})) == (1, 0, 0)
    assert Signs.among({"c": open_, "d": Interval(0, 0, 0)}) == (1, 0, 1), "what has no p-value is undecided"
