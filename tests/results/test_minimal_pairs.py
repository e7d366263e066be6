"""Minimal pairs of lessons: means over pairs and intervals over seeds, of tables whose entries are known."""

import numpy as np
import pandas as pd
import pytest

from explainer.results import minimal_pairs
from explainer.results.published import results
from explainer.theory import statistics

PAIRS, SEEDS = ("a/b", "c/d"), (0, 1, 2)


def table(**columns):
    """Rows for each pair and seed; a column is a function of the number of the pair and the seed."""
    settings = [(i, pair, seed) for i, pair in enumerate(PAIRS) for seed in SEEDS]
    rows = [
        {"pair": pair, "seed": seed} | {name: of(i, seed) for name, of in columns.items()} for i, pair, seed in settings
    ]
    return pd.DataFrame(rows)


def test_seeds_are_the_unit_of_complete_tables():
    frame = table(x=lambda i, seed: 10 * i + seed**2)
    assert tuple(minimal_pairs._mean(frame, "x")) == pytest.approx(tuple(statistics.student([5, 6, 9])))


def test_a_seed_that_lacks_a_pair_counts_for_the_others():
    frame = table(x=lambda i, seed: 10 * i + seed)
    frame.loc[(frame["pair"] == "c/d") & (frame["seed"] == 1), "x"] = np.nan
    found = minimal_pairs._mean(frame, "x")
    T, left = (1 + 11) / 2, [(1.5 + 12) / 2, (1 + 11) / 2, (0.5 + 10) / 2]
    assert tuple(found) == pytest.approx(tuple(statistics.student([3 * T - 2 * each for each in left])))


def test_similarities_with_floor_ceilings_and_yardstick():
    values = {"own": 0.2, "other": 0.18, "contexts": 0.64, "trainings": 0.25, "examples": 0.01, "reordered": 0.5}
    frame = table(**{name: lambda i, seed, v=v: v + 0.001 * (seed - 1) for name, v in values.items()})
    found = minimal_pairs.similarities(frame)
    assert found["own"].estimate == pytest.approx(0.2)
    assert found["own - other"].estimate == pytest.approx(0.02)
    assert found["yardstick"].estimate == pytest.approx(0.2 * (0.36 * 0.75) ** 0.5, abs=1e-4)
    assert found["own / sqrt(C F)"].estimate == pytest.approx(0.2 / (0.64 * 0.25) ** 0.5, abs=1e-3)


def test_two_trainings_that_disagree_have_no_corrected_value():
    frame = table(
        **{name: lambda i, seed: 0.5 for name in ("own", "other", "contexts", "examples", "reordered")},
        trainings=lambda i, seed: -0.1,
    )
    assert np.isnan(minimal_pairs.similarities(frame)["own / sqrt(C F)"].estimate)


def test_layers_are_columns_of_an_interval():
    frame = pd.concat(table(own=lambda i, seed, n=n: n + i).assign(layer=n) for n in (0, 1, 2))
    assert minimal_pairs.by_layer(frame, "own").estimate.tolist() == [0.5, 1.5, 2.5]


@pytest.fixture
def put_in():
    """Log odds from -4 with one lesson to 4 with the other, and parts in between."""
    odds = {"context": -4, "context_whole": 4, "ft": -2, "ft_whole": 2, "context_along_ft": -2, "ft_along_icl": 0}
    rows = [
        table(right=lambda i, seed: 0.5, log_odds=lambda i, seed, name=name: odds.get(name, -3 + i)).assign(
            intervention=name, towards=towards
        )
        for name in results("minimal-pairs", "interventions")["intervention"].unique()
        for towards in "AB"
    ]
    return pd.concat(rows)


def test_the_share_of_the_whole_change(put_in):
    found = minimal_pairs.share_of_the_whole(put_in)
    assert found["context_along_ft"].estimate == pytest.approx(2 / 8)
    assert found["ft_along_icl"].estimate == pytest.approx(2 / 4)
    assert found["context_along_near"].estimate == pytest.approx(1.5 / 8)
    assert minimal_pairs.answers(put_in)["context"].estimate == 0.5
