"""The published positive control: what the code of today computes, and what its trainings must have learned."""

import numpy as np
import pytest
import torch
from published_grids import grids

from explainer.results.published import results
from explainer_lab import in_context_llama, trained_control
from explainer_lab.trained_control import TrainedControl

CELLS = grids(TrainedControl)["trained-control"]


def published(setting, table="settings"):
    where = {name: getattr(setting, name) for name in ("model", "step", "seed", "control", "lr")}
    return results("trained-control", table, **where)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path))


def computed_again(setting, model):
    in_context_llama.save(model, trained_control.snapshots(setting) / str(setting.step))
    return TrainedControl().compute(setting, progress=False).tables


def test_a_setting_of_the_random_weights_computed_again_gives_what_is_stored(cache):
    """To the rounding of another processor."""
    setting = next(one for one in CELLS if one.step == 0)
    again, stored = computed_again(setting, in_context_llama.initial_model(setting.trained)), published(setting)
    for state in ("zsl", "icl", "ft"):
        expected = np.stack(published(setting, "queries")[f"{state}_log_probs"])
        np.testing.assert_allclose(again["queries"][f"{state}_log_probs"], expected, atol=0.02)
    for measure in ("sim_aou", "sim_aou_permuted", "sim_aou_icl"):
        assert float(again["settings"][measure]) == pytest.approx(stored[measure].item(), abs=5e-3)


@pytest.mark.slow
@pytest.mark.weekly
def test_a_training_learns_in_context_again(cache):
    """Another processor trains to other weights, and as good ones."""
    setting = next(one for one in CELLS if one.step == one.trained.steps)
    torch.set_num_threads(1)
    *_, (_, model) = in_context_llama.train(setting.trained, progress=False)
    again = computed_again(setting, model)["settings"]
    assert again["icl_accuracy"] > 0.85 and again["sim_aou"] > again["sim_aou_permuted"]
