"""What is published of trainings from scratch: what the code of today computes, within the rounding of a processor."""

import numpy as np
import pytest
import torch
from published_grids import GRIDS, first, stored

from explainer.data import recall_data
from explainer.data.files import published_directory
from explainer.models.fast_weight_model import RULES
from explainer.results.published import results
from explainer_lab import (
    language_models,
    llama_training,
    recall,
    small_model_training,
    trained_control,
    training_corpora,
)
from explainer_lab.lab_store import Published
from explainer_lab.language_models import LanguageModels
from explainer_lab.regression import Regression

WEEKLY = pytest.mark.weekly
SHARES = ["kept", "revised", "stale"]


def run_of(rule):
    """A grid, the first run of a rule in it, and its snapshots."""
    grid = "recall-ascent" if rule == "ascent" else "recall"
    run = first(grid, rule=rule)
    return grid, run, recall.train(run, progress=False)


def require_shares(model, table, within):
    for n in recall_data.N_KEYS:
        again = recall._outcomes(model, recall_data.test_sequences(n))
        then = table[table["n_keys"] == n][SHARES].astype(float)
        np.testing.assert_allclose([[again[name] for name in SHARES]], then, atol=within)


@pytest.mark.parametrize("rule", RULES)
def test_a_run_begins_with_the_model_with_which_it_did(rule):
    """Before the training, to the digits that are kept."""
    grid, run, snapshots = run_of(rule)
    _, model, _ = next(snapshots)
    require_shares(model, stored(grid, run, "curve").query("step == 0"), 5e-3)


@pytest.mark.parametrize("rule", [r if r == "delta-momentum" else pytest.param(r, marks=WEEKLY) for r in RULES])
def test_the_first_steps_of_a_run_lower_the_loss_as_they_did(rule):
    grid, run, snapshots = run_of(rule)
    _, (_, _, losses) = next(snapshots), next(snapshots)
    assert np.mean(losses) == pytest.approx(stored(grid, run)["losses"].item()[0], abs=0.02)


@pytest.mark.slow
@pytest.mark.weekly
def test_a_training_of_a_memory_comes_out_as_it_did():
    """Another processor trains to other weights, and as good ones."""
    grid, run, snapshots = run_of("delta")
    *_, (_, model, _) = snapshots
    require_shares(model, stored(grid, run, "curve").query("step == steps"), 0.05)


def control_computed_again(setting, model):
    llama_training.save(model, trained_control._snapshot_directory(setting) / str(setting.step))
    return trained_control.TrainedControl().compute(setting, progress=False).tables


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path))


def test_a_control_with_random_weights_computed_again_gives_what_is_stored(cache):
    setting = first("trained-control", step=0)
    again = control_computed_again(setting, llama_training._initial_model(setting.trained))
    for state in ("zsl", "icl", "ft"):
        expected = np.stack(stored("trained-control", setting, "queries")[f"{state}_log_probs"])
        np.testing.assert_allclose(again["queries"][f"{state}_log_probs"], expected, atol=0.02)
    for measure in ("sim_aou", "sim_aou_permuted", "sim_aou_icl"):
        expected = stored("trained-control", setting)[measure].item()
        assert float(again["settings"][measure]) == pytest.approx(expected, abs=5e-3)


@pytest.mark.slow
@pytest.mark.weekly
def test_a_control_learns_in_context_again(cache):
    """Another processor trains to other weights, and as good ones."""
    torch.set_num_threads(1)
    setting = next(one for one in GRIDS["trained-control"][1] if one.step == one.trained.steps)
    *_, (_, model) = llama_training.train(setting.trained, progress=False)
    again = control_computed_again(setting, model)["settings"]
    assert again["icl_accuracy"] > 0.85 and again["sim_aou"] > again["sim_aou_permuted"]


@pytest.mark.weekly
@pytest.mark.slow
@pytest.mark.parametrize("grid", ["plain", "momentum", "learned"])
def test_a_language_model_begins_again_as_it_did(grid):
    """Up to the first point of its curve."""
    setting, experiment = first(grid), LanguageModels()
    assert experiment.identity(setting).key in Published(published_directory() / experiment.name).identities()
    tokens, model = training_corpora.tokens(setting.corpus, setting.vocabulary), language_models._initial_model(setting)
    evaluate = language_models._Evaluation(setting, tokens, tokens.held_out)
    optimiser, then = language_models._optimiser(model, setting), stored(grid, setting, "curve").iloc[0]
    losses = [
        language_models._descend(model, optimiser, setting, tokens.train, step, budget=setting.steps)
        for step in range(then["step"])
    ]
    assert np.mean(losses) == pytest.approx(then["train"], abs=5e-3)
    assert evaluate.on_curve(model) == pytest.approx(then["held_out"], abs=5e-3)


@pytest.mark.parametrize(
    "grid",
    ["lines-plain", "lines-momentum", *(pytest.param(f"lines-{of}", marks=WEEKLY) for of in ("previous", "permuted"))],
)
def test_a_model_of_lines_begins_again_as_it_did(grid):
    """The first losses."""
    run = first(grid)
    assert Regression().identity(run).key in Published(published_directory() / Regression.name).identities()
    again = small_model_training.train_gpt(run, prepare=run.prepare, steps=40, progress=False).losses
    then, plain = (results(name, seed=run.seed)["losses"].iloc[0] for name in (grid, "lines-plain"))
    np.testing.assert_allclose(again, then[: len(again)], rtol=2e-3)
    assert (run.average == "none") == np.array_equal(then, plain)
