"""Minimal pairs of lessons: means over pairs and intervals over seeds, of tables whose entries are known."""

import numpy as np
import pytest
from toy_tables import crossed

from explainer.results import minimal_pairs
from explainer.results.published import results


def table(**columns):
    """Rows for two pairs and three seeds."""
    return crossed(pair=(0, 1), seed=(0, 1, 2), **columns)


def test_similarities_with_floor_ceilings_and_yardstick():
    values = {"own": 0.2, "other": 0.18, "contexts": 0.64, "trainings": 0.25, "examples": 0.01, "reordered": 0.5}
    frame = table(**{name: lambda seed, of=of: of + 0.001 * (seed - 1) for name, of in values.items()})
    found = minimal_pairs.similarities(frame)
    assert found["own"].estimate == pytest.approx(0.2)
    assert found["own - other"].estimate == pytest.approx(0.02)
    assert found["yardstick"].estimate == pytest.approx(0.2 * (0.36 * 0.75) ** 0.5, abs=1e-4)
    assert found["own / sqrt(C F)"].estimate == pytest.approx(0.2 / (0.64 * 0.25) ** 0.5, abs=1e-3)


def test_two_trainings_that_disagree_have_no_corrected_value():
    others = dict.fromkeys(("own", "other", "contexts", "examples", "reordered"), 0.5)
    frame = table(**others, trainings=-0.1)
    assert np.isnan(minimal_pairs.similarities(frame)["own / sqrt(C F)"].estimate)


def test_layers_are_columns_of_an_interval():
    frame = table(layer=(0, 1, 2), own=lambda pair, layer: layer + pair)
    assert minimal_pairs.by_layer(frame, "own").estimate.tolist() == [0.5, 1.5, 2.5]


@pytest.fixture
def put_in():
    """Log odds from -4 with one lesson to 4 with the other, and parts in between."""
    odds = {"context": -4, "context_whole": 4, "ft": -2, "ft_whole": 2, "context_along_ft": -2, "ft_along_icl": 0}
    names = results("minimal-pairs", "interventions")["intervention"].unique().tolist()
    log_odds = lambda pair, intervention: odds.get(intervention, -3 + pair)  # noqa: E731
    return table(intervention=names, towards=["A", "B"], right=0.5, log_odds=log_odds)


def test_the_share_of_the_whole_change(put_in):
    found = minimal_pairs.share_of_the_whole(put_in)
    assert found["context_along_ft"].estimate == pytest.approx(2 / 8)
    assert found["ft_along_icl"].estimate == pytest.approx(2 / 4)
    assert found["context_along_near"].estimate == pytest.approx(1.5 / 8)
    assert minimal_pairs.mean_by_intervention(put_in)["context"].estimate == 0.5
