"""Means of what is nested and intervals over draws, by hand."""

import numpy as np
import pandas as pd
from toy_tables import assert_student, crossed

from explainer.results import aggregate

TASKS, SEEDS = ("a", "b"), (0, 1, 2)


def rows(**columns):
    """Two queries of each seed of two tasks, in an order in which task b comes first."""
    return crossed(task=TASKS[::-1], seed=SEEDS, query=(0, 1), **columns)


def test_rows_are_told_apart_by_task_in_their_order_and_by_number_along_it():
    table = rows(x=lambda task, seed: seed + (task == "b"))
    assert aggregate.by_group(table, "task", lambda its: its["x"].max()) == {"b": 3, "a": 2}
    assert list(aggregate.split(table, "task")["a"]["x"]) == [0, 0, 1, 1, 2, 2]
    along = aggregate.by_number(table[::-1], "seed", lambda its: its["x"].mean())
    assert list(along.items()) == [(0, 0.5), (1, 1.5), (2, 2.5)] and all(type(step) is int for step in along)


def test_tasks_count_alike_however_many_rows_they_have():
    table = rows(x=lambda task, seed, query: seed + 10 * (task == "b") + query)
    fewer = table[(table["task"] == "a") | (table["query"] == 0)]
    assert aggregate.nested_means(fewer, "x", "task").to_dict() == {seed: seed + 5.25 for seed in SEEDS}
    by_query = aggregate.nested_means(table, ["x"], "task", "query")["x"]
    assert by_query.unstack().to_numpy().tolist() == [[5 + seed, 6 + seed] for seed in SEEDS]


def test_draws_are_the_unit_of_complete_tables():
    table = rows(x=lambda task, seed: 10 * (task == "b") + seed**2)
    assert_student(aggregate.mean(table, "x", ["seed", "task"]), [5, 6, 9])
    found = aggregate.over_draws(pd.DataFrame([[1, 2, 4], [0, 0, 3]], [10, 20], SEEDS))
    assert list(found) == [10, 20]
    assert_student(found[10], [1, 2, 4])


def test_a_draw_that_lacks_a_task_counts_for_the_others():
    table = rows(x=lambda task, seed: 10 * (task == "b") + seed)
    T, left = (1 + 11) / 2, [(1.5 + 12) / 2, (1 + 11) / 2, (0.5 + 10) / 2]
    missing = (table["task"] == "b") & (table["seed"] == 1)
    for lacking in (table[~missing], table.assign(x=table["x"].mask(missing))):
        assert_student(aggregate.mean(lacking, "x", ["seed", "task"]), [3 * T - 2 * each for each in left])


def test_functions_are_of_means_or_of_sums():
    table = rows(hit=lambda seed, query: seed < 2 and query == 0, x=lambda seed: 1.0 + seed)
    means = table.groupby("seed").mean(numeric_only=True)
    assert_student(aggregate.of_means(means, lambda means: means.x), [1, 2, 3])
    assert_student(aggregate.of_means(means, lambda means: means.x**2), [3 * 2**2 - 2 * of**2 for of in (2.5, 2, 1.5)])
    hits, n = np.array([2, 2, 0]), 4
    left = (hits.sum() - hits) / (2 * n)
    found = aggregate.of_sums(table, ["seed", "task"], lambda sums: sums.hit / sums.n)
    assert_student(found, hits.sum() / n - 2 * left)


def test_one_draw_has_no_interval():
    found = aggregate.mean(rows(x=2.0).query("seed == 0"), "x", ["seed", "task"])
    assert found.estimate == 2 and np.isnan(found.low) and np.isnan(found.high)
