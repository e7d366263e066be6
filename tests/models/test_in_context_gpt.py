"""The small GPT that learns regression in context: its prompts, its errors and its files."""

import json
import shutil
from functools import partial

import hypothesis.strategies as st
import numpy as np
import pytest
import tiny_models
import torch
from conftest import ROOT
from hypothesis import given, settings
from torch import Generator

from explainer.errors import CheckpointError
from explainer.models import in_context_gpt as gpt
from explainer.models.in_context_gpt import InContextGPT, InContextGPTSetting
from explainer.theory.regression import ridge

SMALL = InContextGPTSetting(dimension=3, n_examples=4, layers=2, width=8, heads=2, inner=12, steps=40, batch=16)
WEIGHTS = ROOT / "src" / "explainer" / "published" / "weights"


def seeded(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


def of_kind(distribution: str, n_examples: int, d: int = 2) -> InContextGPTSetting:
    return InContextGPTSetting(distribution, dimension=d, n_examples=n_examples)


def test_line_prompts_are_noisy_lines_of_unit_scale():
    prompts = of_kind("line", 3).prompts(20_000, seeded())
    z, one = prompts.inputs.unbind(-1)
    noise = prompts.targets - (prompts.inputs * prompts.tasks[:, None]).sum(-1)
    assert (one == 1).all()
    assert z.var().item() == pytest.approx(1, abs=0.02)
    assert noise.std().item() == pytest.approx(gpt.LINE_NOISE, abs=0.003)
    torch.testing.assert_close(prompts.tasks.T.cov(), torch.eye(2), atol=0.04, rtol=0)
    assert abs(torch.corrcoef(torch.stack([noise.flatten(), z.flatten()]))[0, 1]) < 0.02


@pytest.mark.parametrize("kind", ["isotropic", "noisy", "half length", "pool of 4", "random covariance", "line"])
def test_prompts_are_those_of_their_generator(kind):
    one, again, other = (of_kind(kind, 5).prompts(4, seeded(seed)) for seed in (1, 1, 2))
    assert one.n_examples == (2 if kind == "half length" else 5)
    for name in ("inputs", "targets"):
        assert torch.equal(getattr(one, name), getattr(again, name))
        assert not torch.equal(getattr(one, name), getattr(other, name))


def test_random_covariance_prompts_have_a_covariance_each():
    prompts = of_kind("random covariance", 400, 3).prompts(300, seeded())
    variances = prompts.inputs.var(1)
    assert variances.mean().item() == pytest.approx(1, abs=0.1)  # Exp(1): mean 1, standard deviation 1
    assert variances.std().item() == pytest.approx(1, abs=0.15)
    assert of_kind("isotropic", 400, 3).prompts(300, seeded()).inputs.var(1).std() < 0.1


def test_prediction_is_gpt2_on_the_prompt_up_to_its_input():
    """One pass over the whole prompt equals a pass for every k over k examples and an input, token by token."""
    model, prompts = tiny_models.with_large_weights(InContextGPT(SMALL).double()), SMALL.prompts(3, seeded())
    predicted = model(prompts.inputs.double(), prompts.targets.double())
    for b in range(3):
        for k in range(SMALL.n_examples + 1):
            rows = []
            for i in range(k):
                rows += [prompts.inputs[b, i].tolist(), [prompts.targets[b, i].item(), 0, 0]]
            rows.append(prompts.inputs[b, k].tolist())
            x = torch.tensor([rows], dtype=torch.float64)
            embedded = x @ model.read_in.weight.T + model.read_in.bias
            hidden = model.gpt(inputs_embeds=embedded).last_hidden_state[0, -1]
            expected = hidden @ model.read_out.weight[0] + model.read_out.bias[0]
            torch.testing.assert_close(predicted[b, k], expected, atol=1e-12, rtol=1e-12)


@settings(max_examples=20)
@given(k=st.integers(0, SMALL.n_examples), factor=st.floats(-5, 5))
def test_no_prediction_sees_its_own_target_or_what_follows(k, factor):
    model, prompts = tiny_models.with_large_weights(InContextGPT(SMALL).double()), SMALL.prompts(2, seeded())
    inputs, targets = prompts.inputs.clone(), prompts.targets.clone()
    targets[:, k:] *= factor
    inputs[:, k + 1 :] *= factor
    changed, before = model(inputs.double(), targets.double()), model(prompts.inputs.double(), prompts.targets.double())
    assert torch.equal(changed[:, : k + 1], before[:, : k + 1])


def test_relative_errors_are_ratios_of_sums():
    prompts = of_kind("line", 6).prompts(200, seeded())
    errors = gpt.relative_errors(partial(ridge, penalty=0.1), prompts, (2, 6))
    for k, error in errors.items():
        yhat = []
        for x, y in zip(prompts.inputs.double(), prompts.targets.double(), strict=True):
            X = x[:k]
            yhat.append(x[-1] @ torch.linalg.solve(X.T @ X + 0.1 * torch.eye(2).double(), X.T @ y[:k]))
        y_q = prompts.y_q.double()
        expected = ((torch.stack(yhat) - y_q) ** 2).sum() / (y_q**2).sum()
        assert error.estimate == pytest.approx(expected.item(), rel=1e-4)
        assert error.low < error.estimate < error.high


@pytest.fixture
def stored_in(tmp_path, monkeypatch):
    """The path of a copy of one of the book's models, without suffix."""
    for suffix in ("json", "safetensors"):
        shutil.copy(WEIGHTS / f"gpt_line.{suffix}", tmp_path)
    monkeypatch.setenv("EXPLAINER_WEIGHTS", str(tmp_path))
    return tmp_path / "gpt_line"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.with_suffix(".json").unlink(), r"cannot be loaded.*No such file"),
        (lambda path: path.with_suffix(".json").write_text("{}"), r"cannot be loaded.*provenance"),
        (lambda path: path.with_suffix(".safetensors").unlink(), r"cannot be loaded.*No such file"),
        (lambda path: path.with_suffix(".safetensors").write_bytes(b"short"), r"is not the file that.*describes"),
        (lambda path: edit(path, "width", 4), r"cannot be loaded.*size mismatch"),
    ],
)
def test_damaged_files_are_refused(stored_in, damage, message):
    damage(stored_in)
    with pytest.raises(CheckpointError, match=f"(?s){message}"):
        gpt.stored("gpt_line")


def edit(path, key, value):
    path = path.with_suffix(".json")
    description = json.loads(path.read_text("utf-8"))
    description["setting"][key] = value
    path.write_text(json.dumps(description), "utf-8")


def test_page_weights_are_the_model_in_whole_numbers():
    model = InContextGPT(SMALL)
    page = gpt.page_weights(model)
    numbers = np.array(page["data"])
    assert page["config"] == dict(layers=2, heads=2, examples=4, epsilon=1e-5)
    state = model.state_dict()
    assert page["index"].keys() == {name.removeprefix("gpt.") for name in state} - {"wte.weight"}
    for name, (offset, rows, columns) in page["index"].items():
        weights = state[name if name.startswith("read_") else f"gpt.{name}"]
        weights = weights.T if name in ("read_in.weight", "read_out.weight") else weights
        own = numbers[offset : offset + rows * columns].reshape(rows, columns)
        np.testing.assert_array_equal(own, np.atleast_2d((gpt.PAGE_GRID * weights).round().numpy()))
    assert sum(rows * columns for _, rows, columns in page["index"].values()) == len(numbers)
    json.dumps(page)
