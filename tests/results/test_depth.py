"""explainer.results.depth: trends with depth, and layers in which something is settled."""

import numpy as np
import pandas as pd
import pytest

from explainer.errors import ExperimentError
from explainer.results import depth, reporting
from explainer.theory.statistics import Interval


def table(task: str, curves: dict[int, list[float]]) -> pd.DataFrame:
    """A table "layers" with one curve for each seed; NaN is an FT that diverged."""
    return pd.DataFrame(
        {"setting": f"{task}{seed}", "task": task, "seed": seed, "layer": layer, "sim_aou": value}
        for seed, curve in curves.items()
        for layer, value in enumerate(curve)
    )


def rising(n_seeds=5, n_layers=30, slope=1.0, noise=0.05):
    rng = np.random.default_rng(0)
    return slope * np.linspace(0, 1, n_layers) + noise * rng.normal(size=(n_seeds, n_layers))


def test_trend_is_the_mean_of_rank_correlations():
    rows = np.array([[0, 1, 2, 3], [3, 2, 1, 0], [0, 1, 3, 2]])
    assert depth.rank_trend(rows).estimate == pytest.approx((1 - 1 + 0.8) / 3)
    assert depth.rank_trend(rising()).low > 0.9
    assert depth.rank_trend(rising(slope=-1)).high < -0.9
    gap = rising()
    gap[0, 5] = np.nan
    assert depth.rank_trend(gap).estimate > 0.9


def test_verdict_counts_after_correction():
    up, down, open_ = (Interval(m, 0, 0, p) for m, p in ((0.5, 1e-4), (-0.5, 1e-3), (0.3, 0.02)))
    each = {"a": up, "b": down, "c": open_, "d": open_, "e": open_}
    assert depth.settled_signs(each) == depth.Signs(rises=1, falls=1, undecided=3), "3 x 0.02 is above 0.05"
    assert depth.settled_signs({"c": open_}) == (1, 0, 0)
    assert depth.settled_signs({"c": open_, "d": Interval(0, 0, 0)}) == (1, 0, 1), "what has no p-value is undecided"


def test_settled_layers_are_above_zero_after_correction():
    rows = np.zeros((5, 3)) + 1e-3 * np.random.default_rng(0).normal(size=(5, 3))
    rows[:, 1] += 1
    rows[:, 2] -= 1
    assert depth.settled(rows).tolist() == [False, True, False]


def test_tasks_of_several_grids_are_told_apart(monkeypatch):
    grids = {"classification": ["sst2", "mr"], "cb": ["cb"]}

    def read(grid, name, *, control, **where):
        if control == "ascent":
            raise ExperimentError("no setting of the grid has it")
        assert name == "layers" and where == {"position": "prompt"}
        return pd.concat([table(task, {0: [0.1, 0.2]}) for task in grids[grid]])

    monkeypatch.setattr(depth, "results", read)
    found = depth.by_task("none", list(grids), position="prompt")
    assert list(found) == ["sst2", "mr", "cb"] and found["mr"]["task"].tolist() == ["mr", "mr"]
    with pytest.raises(ExperimentError):
        depth.by_task("ascent", ["cb"])


def test_two_positions_or_two_grids_of_a_task_are_no_more_seeds():
    """The published grid [position] has both positions: read as one, rank_trend printed -.18 (-.34, -.02), n = 10."""
    with pytest.raises(ExperimentError, match=r"settings of sst2 differ in position: prompt, first-label"):
        depth.by_task("none", ["position"])
    one = depth.by_task("none", ["position"], position="first-label")
    assert {len(reporting.settings_by_layer(each, "sim_aou")) for each in one.values()} == {5}
    with pytest.raises(ExperimentError, match="settings of sst2 differ in n_queries: 150, 60"):
        depth.by_task("none", ["classification", "controls"])
