"""Linear transformers of several layers: what they take a task for, and the file of all starts."""

import shutil

import pytest
import torch
from conftest import ROOT
from torch import Generator

from explainer.errors import CheckpointError
from explainer.models import deep_linear_model as deep
from explainer.theory.linear_transformer import LinearAttention, layerwise_prediction
from explainer.theory.regression import draw_prompts

WEIGHTS = ROOT / "src" / "explainer" / "published" / "weights"
FAMILIES = [(family, n_layers) for family in ("gradient descent", "GD++", "transformer") for n_layers in (2, 3)]


@pytest.mark.parametrize("n_layers", [1, 2, 3, 4])
def test_prediction_is_linear_in_the_query_and_sees_second_moments_alone(n_layers):
    draw = Generator().manual_seed(2)
    stack = LinearAttention(*0.1 * torch.randn(2, n_layers, 3, 3, generator=draw, dtype=torch.float64))
    prompts = draw_prompts(5, 6, torch.eye(2), generator=draw, dtype=torch.float64)
    v = deep.learned_tasks(stack, deep.moments(prompts))
    torch.testing.assert_close((v * prompts.x_q).sum(1), layerwise_prediction(stack, prompts), atol=1e-12, rtol=1e-12)


def test_what_is_at_rest_has_stopped_and_holds_for_new_prompts():
    """The error has stopped falling, the gradient is small beside that after Adam, and new prompts give the error."""
    runs = [run for family in FAMILIES for run in deep.stored(*family)]
    resting = [run for run in runs if run.at_rest]
    assert all(run.at_rest for run in runs if run.n_layers == 2)
    assert sum(run.family == "transformer" and run.n_layers == 3 for run in resting) >= 5
    for run in resting:
        after_adam, at_the_end = run.record["gradients"]
        assert at_the_end < after_adam / 100
        last = run.record["samples"][-1]
        assert last[-1] > 0.999 * last[-2]
        assert run.record["test"][1] == pytest.approx(last[-1], rel=0.25)


def test_weights_that_are_not_those_that_were_stored_are_refused(tmp_path, monkeypatch):
    for suffix in ("safetensors", "json"):
        shutil.copy(WEIGHTS / f"deep_linear.{suffix}", tmp_path)
    monkeypatch.setenv("EXPLAINER_WEIGHTS", str(tmp_path))
    content = bytearray((tmp_path / "deep_linear.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "deep_linear.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match="is not what was stored"):
        deep.stored("transformer", 3)
