"""The stored training runs of the book: complete, undamaged, and what the code of today begins to train."""

from dataclasses import asdict

import numpy as np
import pytest

from explainer.data import corpora, hidden_markov
from explainer.experiments import language_models
from explainer.lab import store
from explainer.lab.store import read
from explainer.models import training

PLACE = store.published_directory() / "training"
GRIDS = language_models.read_grids(PLACE / store.GRIDS)


@pytest.mark.parametrize("grid", GRIDS)
def test_every_run_is_stored(grid):
    finished = language_models.stored(grid)
    assert [one.identity["cell"] for one in finished] == [asdict(setting) for setting in GRIDS[grid]]
    for one in finished:
        curve = one.result["curve"]
        assert np.isfinite(curve["train"] + curve["held_out"]).all() and one.path.with_suffix(".run").is_file()


def test_no_run_is_stored_that_no_grid_has():
    known = [asdict(setting) for settings in GRIDS.values() for setting in settings]
    everything = [one for path in sorted(PLACE.glob("*.json")) for one in [read(path)]]
    assert [one.path.name for one in everything if one.identity["cell"] not in known] == []


@pytest.mark.slow
@pytest.mark.parametrize("grid", ["mixture", "etas-half"])
@pytest.mark.parametrize("average", ["none", "momentum"])
def test_a_run_begins_again_as_it_did(grid, average):
    """Up to the first point of its curve, within the rounding of another processor."""
    setting = next(one for one in GRIDS[grid] if one.average == average)
    (stored,) = language_models.stored(grid, average=average, seed=setting.seed)
    tokens = (
        hidden_markov.tokens()
        if setting.corpus == hidden_markov.NAME
        else corpora.tokens(setting.corpus, setting.vocabulary)
    )
    assert language_models.identity(setting, tokens).differences(stored.identity) == []
    model = training.initial_model(setting)
    optimiser = training._optimiser(model, setting)
    steps = stored.result["curve"]["step"][0]
    losses = [training._update(model, optimiser, setting, tokens.train, step) for step in range(steps)]
    assert np.mean(losses) == pytest.approx(stored.result["curve"]["train"][0], abs=5e-3)
