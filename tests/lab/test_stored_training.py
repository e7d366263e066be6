"""The published language models of the book: what the code of today begins to train."""

from dataclasses import fields

import numpy as np
import pytest
from published_grids import grids
from tqdm import tqdm

from explainer.data.files import published_directory
from explainer.models import in_context_gpt
from explainer.results.published import results
from explainer_lab import corpora, training
from explainer_lab.language_models import LanguageModels
from explainer_lab.publication import Published
from explainer_lab.regression import Regression

GRIDS = grids(LanguageModels)
LINES = grids(Regression)


@pytest.mark.parametrize("grid", GRIDS)
def test_losses_are_numbers_and_sizes_are_those_of_today(grid):
    curve, blocks = results(grid, "curve"), results(grid, "blocks")
    assert np.isfinite(curve[["train", "held_out"]].to_numpy()).all()
    assert set(blocks.groupby(["setting", "tokens"]).size()) == {training.FINAL_BLOCKS}
    assert set(results(grid)["weight_decay"]) == {training.WEIGHT_DECAY}


@pytest.mark.weekly
@pytest.mark.slow
@pytest.mark.parametrize("grid", ["plain", "momentum", "learned"])
def test_a_run_begins_again_as_it_did(grid):
    """Up to the first point of its curve, within the rounding of another processor."""
    setting, experiment = GRIDS[grid][0], LanguageModels()
    assert Published(published_directory() / experiment.name).has(experiment.identity(setting))
    tokens = corpora.tokens(setting.corpus, setting.vocabulary)
    model = training._initial_model(setting)
    optimiser = training._optimiser(model, setting)
    first = results(grid, "curve", **{f.name: getattr(setting, f.name) for f in fields(setting)}).iloc[0]
    evaluate = training._Evaluation(setting, tokens, tokens.held_out)
    descent = training._Descent(setting, tokens.train, training._State(), evaluate)
    for _ in range(first["step"]):
        descent.step(model, optimiser, tqdm(disable=True))
    assert descent.state.curve["train"][0] == pytest.approx(first["train"], abs=5e-3)
    assert descent.state.curve["held_out"][0] == pytest.approx(first["held_out"], abs=5e-3)


@pytest.mark.parametrize("grid", ["lines-plain", "lines-momentum", "lines-previous", "lines-permuted"])
def test_a_model_of_lines_begins_again_as_it_did(grid):
    """The first losses, within the rounding of another processor."""
    run = LINES[grid][0]
    assert Published(published_directory() / Regression.name).has(Regression().identity(run))
    again = in_context_gpt.train(run.plain, prepare=run.prepare, steps=40, progress=False).losses
    stored = results(grid, seed=run.seed)["losses"].iloc[0]
    np.testing.assert_allclose(again, stored[: len(again)], rtol=2e-3)
    plain = results("lines-plain", seed=run.seed)["losses"].iloc[0]
    assert (run.average == "none") == np.array_equal(stored, plain)
