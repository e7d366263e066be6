"""Linear transformers of several layers: what they take a task for, and the file of all starts."""

import json
import shutil

import pytest
import torch
from conftest import ROOT
from torch import Generator

from explainer.errors import CheckpointError
from explainer.models import deep_linear as deep
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


def flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def edit(path, change):
    description = json.loads(path.read_text("utf-8"))
    change(description)
    path.write_text(json.dumps(description), "utf-8")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda weights, text: text.unlink(), r"cannot be loaded.*No such file"),
        (lambda weights, text: text.write_text("{}"), r"cannot be loaded.*runs"),
        (lambda weights, text: weights.unlink(), r"cannot be loaded.*No such file"),
        (lambda weights, text: flip(weights), r"is not what was stored"),
        (lambda weights, text: edit(text, lambda d: d["runs"][-1].update(test=[0.1, 0.1])), r"start 9 is not what was"),
        (lambda weights, text: edit(text, lambda d: d["runs"][-1].update(seed=77)), r"cannot be loaded.*start 77"),
        (lambda weights, text: edit(text, lambda d: d["schedule"].update(steps=7)), r"is not what was stored"),
    ],
)
def test_damaged_files_are_refused(tmp_path, monkeypatch, damage, message):
    places = [tmp_path / f"deep_linear.{suffix}" for suffix in ("safetensors", "json")]
    for place in places:
        shutil.copy(WEIGHTS / place.name, place)
    monkeypatch.setenv("EXPLAINER_WEIGHTS", str(tmp_path))
    damage(*places)
    with pytest.raises(CheckpointError, match=f"(?s){message}"):
        deep.stored("transformer", 3)
