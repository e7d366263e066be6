"""The published language models of the book: what the code of today begins to train."""

from dataclasses import fields

import numpy as np
import pytest

from explainer.analysis.published import grids, results
from explainer.data import corpora, hidden_markov
from explainer.experiments.language_models import LanguageModels
from explainer.lab.store import published_directory
from explainer.lab.tables import Published
from explainer.models import training

GRIDS = grids(LanguageModels)


@pytest.mark.parametrize("grid", GRIDS)
def test_losses_are_numbers(grid):
    curve = results(grid, "curve")
    assert np.isfinite(curve[["train", "held_out"]].to_numpy()).all()


@pytest.mark.slow
@pytest.mark.parametrize("grid", ["mixture", "etas-half"])
@pytest.mark.parametrize("average", ["none", "momentum"])
def test_a_run_begins_again_as_it_did(grid, average):
    """Up to the first point of its curve, within the rounding of another processor."""
    setting = next(one for one in GRIDS[grid] if one.average == average)
    experiment = LanguageModels()
    assert Published(published_directory() / experiment.name).has(experiment.identity(setting))
    mixture = setting.corpus == hidden_markov.NAME
    tokens = hidden_markov.tokens() if mixture else corpora.tokens(setting.corpus, setting.vocabulary)
    model = training.initial_model(setting)
    optimiser = training._optimiser(model, setting)
    first = results(grid, "curve", **{f.name: getattr(setting, f.name) for f in fields(setting)}).iloc[0]
    losses = [training._update(model, optimiser, setting, tokens.train, step) for step in range(first["step"])]
    assert np.mean(losses) == pytest.approx(first["train"], abs=5e-3)
