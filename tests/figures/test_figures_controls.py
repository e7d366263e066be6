"""Figures and table of the chapter on controls, and the resampling that makes hundreds of comparisons quick."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from explainer.analysis import reporting
from explainer.experiments.comparison import Cell
from explainer.experiments.controls import CONTROLS
from explainer.figures import controls
from explainer.lab.store import Stored
from explainer.theory import statistics
from explainer.theory.statistics import Interval

N = 30


def stored(task="capitals", seed=0, control="none", k=4, *, shift=0.0, lr=1e-3, **result):
    """A result with N queries whose similarities are the same for every control but for `shift`."""
    cell = Cell("m", task, seed, k, lr, N, control)
    values = np.random.default_rng([seed, len(task)]).normal(0.2, 0.1, N) + shift
    parts = {
        "predictions": {state: {"correct": (values > 0.2).astype(int).tolist()} for state in ("zsl", "icl", "ft")},
        "similarity": {"sim_aou": {"queries": [None, *values[1:]]}, "update_cosine": {"queries": values[:8].tolist()}},
        "reasons": {},
    }
    return Stored(Path(cell.slug), {"cell": asdict(cell)}, {}, parts | result)


def groups(seed, sizes=(20, 30, 25), mean=0.0):
    generator = np.random.default_rng(seed)
    return [generator.normal(mean, 1, n) for n in sizes]


# Means


def test_intervals_are_those_of_the_nested_bootstrap():
    values = groups(0)
    values[1][3] = np.nan
    own = controls.mean_interval(values)
    reference = statistics.bootstrap_interval([(one,) for one in values], np.nanmean)
    assert own.estimate == pytest.approx(reference.estimate, abs=1e-12)
    assert own.low == pytest.approx(reference.low, abs=0.03)
    assert own.high == pytest.approx(reference.high, abs=0.03)


def test_differences_are_those_of_reporting():
    pairs = {name: (groups(i, mean=mean), groups(i + 9)) for i, (name, mean) in enumerate({"no": 0, "yes": 2}.items())}
    own = controls.mean_differences(pairs)
    wrapped = {name: tuple([(one,) for one in side] for side in both) for name, both in pairs.items()}
    for name, reference in reporting.comparisons(wrapped).items():
        assert own[name].difference.estimate == pytest.approx(reference.difference.estimate, abs=1e-12)
        assert own[name].difference.low == pytest.approx(reference.difference.low, abs=0.06)
        assert own[name].difference.high == pytest.approx(reference.difference.high, abs=0.06)
        assert own[name].p_adjusted == pytest.approx(reference.p_adjusted, abs=0.1)
    assert own["yes"].p_adjusted < 0.01 < own["no"].p_adjusted


def test_what_both_conditions_share_cancels():
    a = groups(1)
    exact = controls.mean_differences({"shifted": ([one + 0.5 for one in a], a)})["shifted"].difference
    assert (exact.low, exact.high) == pytest.approx((0.5, 0.5), abs=1e-5)


def test_draws_are_of_groups_first():
    """Groups that differ and queries that do not: only the choice of groups can spread the mean."""
    draws = controls.Resamples((4, 4), n_resamples=4000)
    assert sorted(set(draws.means([np.zeros(4), np.ones(4)]))) == [0, 0.5, 1]
    np.testing.assert_allclose(draws.means([np.full(4, 3.0)] * 2), 3)


# From results to values


def test_matched_results_saw_the_same_queries():
    real = [stored(seed=s) for s in (0, 1, 2)]
    control = [stored(seed=s, control="ascent", shift=-1) for s in (2, 0)]
    a, b = controls.matched(control, real, "sim_aou")
    assert [one[1:].tolist() for one in a] == [(one[1:] - 1).tolist() for one in b] and len(a) == 2
    assert np.isnan(a[0][0])
    assert controls.matched([stored(k=8)], [stored(k=4)], "icl", over="k")[0][0].shape == (N,)
    assert controls.matched([stored(k=8, control="ascent")], [stored(k=4)], "sim_aou") == ([], [])


def test_what_diverged_is_left_out():
    diverged = stored(seed=1, similarity=None)
    assert len(controls.measured([stored(), diverged], "sim_aou")) == 1
    assert controls.measured([stored()], "sim_am_delta") == []
    kept = controls.interval_of([stored(), diverged], "sim_aou")
    assert kept.estimate == pytest.approx(np.nanmean(controls.values_of([stored()], "sim_aou")[0]))


def test_results_are_grouped_by_their_cells():
    results = [stored(), stored(control="ascent"), stored("plurals")]
    assert list(reporting.by(results, "task")) == ["capitals", "plurals"]
    assert reporting.by(results, "control", "task")["none", "plurals"] == [results[2]]


def test_every_control_is_compared_with_the_real_one():
    family = [stored(seed=s, control=c, shift=x) for c, x in (("ascent", -0.3), ("none", 0)) for s in range(3)]
    compared = controls.against_real({"pairs": family}, ("sim_aou", "sim_am_delta", "update_cosine"))
    assert set(compared) == {("pairs", "ascent", "sim_aou"), ("pairs", "ascent", "update_cosine")}
    assert all(each.difference.estimate == pytest.approx(-0.3) for each in compared.values())
    (row,) = controls.table_rows(compared)
    assert row[:2] == ["FT: ascent", "pairs"] and all("−0.300" in cell and "[−0.300" in cell for cell in row[2:])
    assert "p&nbsp;=&nbsp;" in row[2]


def test_every_control_has_a_name():
    assert controls.NAMES.keys() == CONTROLS.keys() and len(set(controls.NAMES.values())) == len(CONTROLS)


def test_table_says_where_a_measure_is_missing():
    compared = controls.mean_differences(
        {("f", "ascent", "x"): (groups(0), groups(1)), ("f", "untrained", "y"): (groups(0), groups(1))}
    )
    assert [row[2:].count("-") for row in controls.table_rows(compared)] == [1, 1]


# Figures

LEVEL = {
    "trained": {"sst2": Interval(0.2, 0.1, 0.4), "mr": Interval(0.3, 0.2, 0.35)},
    "not": {"sst2": Interval(0.1, 0, 0.2)},
}


def test_levels_show_what_they_are_given():
    figure = controls.levels({"A": LEVEL, "B": LEVEL}, {"A": {"not": {"sst2": 0.05}}}, {"B": {"trained": {"mr": 0.7}}})
    first = figure.data[0]
    assert list(first.x) == [0.2, 0.3] and np.allclose(first.error_x.array, [0.2, 0.05])
    assert np.allclose(first.error_x.arrayminus, [0.1, 0.1])
    assert list(figure.layout.yaxis.ticktext) == ["sst2", "mr"]
    assert [round(y) for y in first.y] == [0, 1], "a marker stands in its row"
    floor, quoted = (next(t for t in figure.data if start in t.name) for start in ("noise", "quoted"))
    assert list(floor.x) == [0.05] and list(quoted.x) == [0.7] and "open" in quoted.marker.symbol
    assert quoted.y[0] == first.y[1], "a quoted marker stands beside the one it belongs to"
    assert len({t.marker.symbol for t in figure.data[:2]}) == 2
    assert sum(t.showlegend for t in figure.data) == 2


def test_rates_are_in_order_and_on_a_logarithm():
    at = {1e-2: Interval(0.3, 0.2, 0.4), 1e-4: Interval(0.1, 0, 0.2)}
    figure = controls.rates({"A": {"sst2": at}, "B": {"sst2": at, "mr": at}})
    assert list(figure.data[0].x) == [1e-4, 1e-2] and list(figure.data[0].y) == [0.1, 0.3]
    assert figure.layout.xaxis.type == figure.layout.xaxis2.type == "log"
    assert figure.data[0].line.color == figure.data[1].line.color != figure.data[2].line.color


def test_tasks_stand_side_by_side_with_their_k():
    at = {1: Interval(0.1, 0, 0.2), 4: Interval(0.4, 0.3, 0.5)}
    panel = {"right": {"capitals": at, "past": at}, "shuffled": {"capitals": at, "past": {4: at[4]}}}
    figure = controls.with_k({"accuracy": panel, "SimAOU": panel})
    right = [t for t in figure.data if t.name == "right"]
    assert [list(t.x) for t in right] == [[0, 1], [3, 4]] * 2
    assert [list(t.x) for t in figure.data if t.name == "shuffled"] == [[0, 1], [4]] * 2
    assert list(figure.layout.xaxis.ticktext) == ["1", "4", "1", "4"]
    assert {"<b>capitals</b>", "<b>past</b>", "accuracy", "SimAOU"} <= {a.text for a in figure.layout.annotations}
    assert sum(t.showlegend for t in figure.data) == 2
