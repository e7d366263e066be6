"""The small GPT that learns regression in context: its prompts, its training, its errors and its files."""

import base64
import json
import math
from dataclasses import asdict, replace
from functools import partial

import hypothesis.strategies as st
import numpy as np
import pytest
import tiny_models
import torch
from conftest import ROOT
from hypothesis import given, settings
from torch import Generator

from explainer.errors import CheckpointError, DivergenceError, ExplainerError, ShapeError
from explainer.models import in_context_gpt as gpt
from explainer.models import stored_weights as files
from explainer.models.in_context_gpt import InContextGPT, InContextGPTSetting
from explainer.theory.optimisation import warmed_up_cosine
from explainer.theory.regression import Prompts, ridge

SMALL = InContextGPTSetting(dimension=3, n_examples=4, layers=2, width=8, heads=2, inner=12, steps=40, batch=16)
WEIGHTS = ROOT / "src" / "explainer" / "published" / "weights"
MAX_BYTES = 1_000_000


def seeded(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def trained() -> gpt.TrainedGPT:
    return gpt.train(SMALL, progress=False)


# Prompts


def test_tokens_are_inputs_and_padded_targets_in_turn():
    inputs, targets = torch.tensor([[[1.0, 2], [3, 4], [5, 6]]]), torch.tensor([[7.0, 8, 9]])
    assert gpt._tokens(inputs, targets).tolist() == [[[1, 2], [7, 0], [3, 4], [8, 0], [5, 6]]]


def test_line_prompts_are_noisy_lines_of_unit_scale():
    prompts = gpt._line_prompts(20_000, 3, 2, seeded())
    z, one = prompts.inputs.unbind(-1)
    noise = prompts.targets - (prompts.inputs * prompts.tasks[:, None]).sum(-1)
    assert (one == 1).all()
    assert z.var().item() == pytest.approx(1, abs=0.02)
    assert noise.std().item() == pytest.approx(gpt.LINE_NOISE, abs=0.003)
    torch.testing.assert_close(prompts.tasks.T.cov(), torch.eye(2), atol=0.04, rtol=0)
    assert abs(torch.corrcoef(torch.stack([noise.flatten(), z.flatten()]))[0, 1]) < 0.02
    with pytest.raises(ShapeError, match="d = 3"):
        gpt._line_prompts(1, 1, 3, seeded())


def test_random_covariance_prompts_have_a_covariance_each():
    prompts = gpt._random_covariance(300, 400, 3, seeded())
    variances = prompts.inputs.var(1)
    assert variances.mean().item() == pytest.approx(1, abs=0.1)  # Exp(1): mean 1, standard deviation 1
    assert variances.std().item() == pytest.approx(1, abs=0.15)
    assert gpt._isotropic(300, 400, 3, seeded()).inputs.var(1).std() < 0.1


# The model


def test_prediction_is_gpt2_on_the_prompt_up_to_its_input():
    """One pass over the whole prompt equals a pass for every k over k examples and an input, token by token."""
    model, prompts = tiny_models.with_large_weights(InContextGPT(SMALL).double()), SMALL.prompts(3, seeded())
    predicted = gpt.predictions(model, prompts)
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
    changed = gpt.predictions(model, Prompts(inputs, targets, prompts.tasks))
    before = gpt.predictions(model, prompts)
    assert torch.equal(changed[:, : k + 1], before[:, : k + 1])


def test_predictions_refuse_prompts_of_another_size():
    model = InContextGPT(SMALL)
    with pytest.raises(ShapeError, match=r"5 examples of 3 inputs; this model reads at most 4 of 3"):
        gpt.predictions(model, gpt._isotropic(2, 5, 3, seeded()))
    with pytest.raises(ShapeError, match=r"of 2 inputs"):
        gpt.predictions(model, gpt._isotropic(2, 4, 2, seeded()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(distribution="cauchy"), r"distribution = 'cauchy'; known are isotropic, random covariance, line"),
        (dict(steps=0), r"steps = 0"),
        (dict(width=9), r"width = 9 cannot be shared by 2 heads"),
        (dict(learning_rate=math.nan), r"learning_rate = nan"),
    ],
)
def test_settings_refuse(change, message):
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **change)


# Training


def test_learning_rate_rises_and_falls():
    rates = [warmed_up_cosine(step, 200) for step in range(201)]
    assert rates[:10] == pytest.approx([i / 10 for i in range(1, 11)], abs=0.01)
    assert max(rates) == pytest.approx(1, abs=0.01)
    assert rates[100] == pytest.approx(0.5)
    assert rates[200] == pytest.approx(0, abs=1e-12)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert [warmed_up_cosine(0, steps) for steps in (1, 27, 33, 50)] == [1, 1, 1 / 2, 1 / 2]  # of so many: 1, 1, 2, 2


def test_training_is_repeated_to_the_bit_and_leaves_the_global_generator(trained):
    torch.manual_seed(7)
    state = torch.get_rng_state()
    again = gpt.train(SMALL, progress=False)
    assert torch.equal(torch.get_rng_state(), state)
    assert again.losses == trained.losses != gpt.train(replace(SMALL, seed=1), progress=False).losses
    for name, weights in trained.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], weights), name


def test_short_run_begins_the_same_run(trained):
    short = gpt.train(SMALL, steps=20, progress=False)
    assert short.losses == trained.losses[:2]
    assert len(trained.losses) == SMALL.steps // gpt.LOSS_WINDOW


def test_first_loss_is_that_of_the_drawn_weights():
    """The mean over the prompts and all N + 1 inputs of (yhat - y)^2, by hand."""
    one = replace(SMALL, steps=gpt.LOSS_WINDOW, learning_rate=1e-12)  # too small for a step to matter
    model, generator, losses = InContextGPT(one), seeded(one.seed), []
    for _ in range(gpt.LOSS_WINDOW):
        prompts = one.prompts(one.batch, generator)
        errors = gpt.predictions(model, prompts) - prompts.targets
        losses.append(sum(e.item() ** 2 for e in errors.flatten()) / errors.numel())
    assert gpt.train(one, progress=False).losses == pytest.approx([np.mean(losses)], rel=1e-4)


def test_preparation_sees_the_same_weights_and_changes_the_model():
    seen = []

    def prepare(model):
        seen.append({name: weights.clone() for name, weights in model.state_dict().items()})
        model.ln_f.weight.requires_grad_(False)
        model.ln_f.weight.fill_(2)
        return model

    prepared = gpt.train(SMALL, prepare=prepare, steps=10, progress=False)
    for name, weights in InContextGPT(SMALL).gpt.state_dict().items():
        assert torch.equal(seen[0][name], weights)
    assert (prepared.model.gpt.ln_f.weight == 2).all()


def test_training_learns():
    """The height of the line is learned within a hundred steps; the slope takes thousands."""
    line = InContextGPTSetting(
        "line", dimension=2, n_examples=6, layers=1, width=16, heads=2, inner=32, steps=120, batch=32
    )
    losses = gpt.train(replace(line, learning_rate=1e-2), progress=False).losses
    assert np.mean(losses[-3:]) < 0.8 * losses[0]


def test_divergence_is_named():
    with pytest.raises(DivergenceError, match="lower the learning rate"):
        gpt.train(replace(SMALL, learning_rate=1e30), progress=False)


# Errors


def test_relative_errors_are_ratios_of_sums():
    prompts = gpt._line_prompts(200, 6, 2, seeded())
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


@pytest.mark.parametrize(("distribution", "d"), [("isotropic", 3), ("random covariance", 3), ("line", 2)])
def test_linear_preconditioner_is_the_least_squares_fit(distribution, d):
    """yhat = <A, x_q h^T> is linear in A: regression on many prompts finds the same A."""
    setting = InContextGPTSetting(distribution, dimension=d, n_examples=6)
    prompts = setting.prompts(200_000, seeded())
    h = (prompts.y[..., None] * prompts.X).mean(1).double()
    features = (prompts.x_q.double()[:, :, None] * h[:, None]).flatten(1)
    fit = torch.linalg.lstsq(features, prompts.y_q.double()[:, None]).solution.reshape(d, d)
    torch.testing.assert_close(gpt.linear_preconditioner(setting).double(), fit, atol=0.02, rtol=0)


# Files


def test_files_return_the_same_model(trained, tmp_path):
    gpt._save(trained, tmp_path / "new" / "model", {4: (0.5, 0.4, 0.6)})
    again = gpt._load(tmp_path / "new" / "model")
    assert again.model.setting == SMALL
    assert not again.model.training
    for name, weights in trained.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], weights), name
    assert again.losses == pytest.approx(trained.losses, rel=1e-3)
    description = files.describe(tmp_path / "new" / "model")
    assert description["setting"] == asdict(SMALL)
    assert description["errors"] == {"4": [0.5, 0.4, 0.6]}
    assert description["parameters"] == sum(p.numel() for p in trained.model.parameters())
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["model.json", "model.safetensors"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.with_suffix(".json").unlink(), r"model\.json cannot be read"),
        (lambda path: path.with_suffix(".json").write_text("{"), r"model\.json cannot be read"),
        (lambda path: path.with_suffix(".json").write_text("{}"), r"cannot be loaded.*provenance"),
        (lambda path: path.with_suffix(".safetensors").unlink(), r"cannot be loaded.*No such file"),
        (lambda path: path.with_suffix(".safetensors").write_bytes(b"short"), r"is not the file that.*describes"),
        (lambda path: edit(path, "setting", "width", 4), r"cannot be loaded.*size mismatch"),
        (lambda path: edit(path, "setting", "breadth", 4), r"cannot be loaded.*breadth"),
        (lambda path: edit(path, "setting", "distribution", "x"), r"cannot be loaded.*distribution = 'x'"),
    ],
)
def test_damaged_files_are_refused(trained, tmp_path, damage, message):
    gpt._save(trained, tmp_path / "model")
    damage(tmp_path / "model")
    with pytest.raises(CheckpointError, match=f"(?s){message}"):
        gpt._load(tmp_path / "model")


def edit(path, part, key, value):
    path = path.with_suffix(".json")
    description = json.loads(path.read_text("utf-8"))
    description[part][key] = value
    path.write_text(json.dumps(description), "utf-8")


def test_disk_that_refuses_is_named(trained, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"cannot be written"):
        gpt._save(trained, tmp_path / "file" / "model")


def test_failed_write_leaves_the_old_file(trained, tmp_path, monkeypatch):
    gpt._save(trained, tmp_path / "model")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    monkeypatch.setattr(files.os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(CheckpointError, match="disk full"):
        gpt._save(trained, tmp_path / "model")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_directory_can_be_given_and_its_absence_is_named(tmp_path, monkeypatch):
    assert files.directory() == WEIGHTS
    monkeypatch.setenv("EXPLAINER_WEIGHTS", str(tmp_path))
    assert files.directory() == tmp_path
    monkeypatch.setenv("EXPLAINER_WEIGHTS", str(tmp_path / "none"))
    with pytest.raises(CheckpointError, match=r"EXPLAINER_WEIGHTS = .* is no directory"):
        files.directory()


def test_command_trains_measures_and_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(gpt, "STORED", {"tiny": SMALL})
    monkeypatch.setattr("sys.argv", ["in_context_gpt", "tiny", "--directory", str(tmp_path)])
    gpt._main()
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr("sys.argv", ["in_context_gpt", "huge", "--directory", str(tmp_path)])
        gpt._main()
    assert files.describe(tmp_path / "tiny")["errors"].keys() == {"1", "2", "4"}
    monkeypatch.setenv("EXPLAINER_WEIGHTS", str(tmp_path))
    assert gpt.stored("tiny").model.setting == SMALL
    prepared = []
    gpt.stored("tiny", prepare=lambda transformer: prepared.append(transformer) or transformer)
    assert len(prepared) == 1
    with pytest.raises(ExplainerError, match=r"no model 'huge'; the book has tiny"):
        gpt.stored("huge")


# The book's models


@pytest.mark.parametrize("name", gpt.STORED)
def test_stored_model_is_small_and_of_its_setting(name):
    assert (WEIGHTS / f"{name}.safetensors").stat().st_size < MAX_BYTES
    model = gpt.stored(name).model
    assert model.setting == gpt.STORED[name]
    assert {weights.dtype for weights in model.state_dict().values()} == {torch.float32}


def often(*names):
    """All stored models; those that are not named are for weekly runs."""
    return [name if name in names else pytest.param(name, marks=pytest.mark.weekly) for name in gpt.STORED]


@pytest.mark.parametrize("name", often("gpt_line", "gpt_noisy", "gpt_pool_4"))
def test_stored_errors_are_measured_again(name):
    errors = files.describe(WEIGHTS / name)["errors"]
    for k, error in gpt._final_errors(gpt.stored(name).model).items():
        assert errors[str(k)] == pytest.approx([*error, error.undefined], rel=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", often("gpt_line"))
def test_stored_run_begins_again_as_it_did(name):
    n = 50 // gpt.LOSS_WINDOW
    losses = gpt.train(gpt.STORED[name], steps=50, progress=False).losses
    assert losses == pytest.approx(files.describe(WEIGHTS / name)["losses"][:n], rel=2e-3)


# The page


def test_page_weights_are_the_model_in_float16(trained):
    page = gpt.page_weights(trained.model)
    numbers = np.frombuffer(base64.b64decode(page["data"]), "<f2")
    assert page["config"] == dict(layers=2, heads=2, examples=4, epsilon=1e-5)
    state = trained.model.state_dict()
    assert page["index"].keys() == {name.removeprefix("gpt.") for name in state} - {"wte.weight"}
    for name, (offset, rows, columns) in page["index"].items():
        weights = state[name if name.startswith("read_") else f"gpt.{name}"]
        weights = weights.T if name in ("read_in.weight", "read_out.weight") else weights
        own = numbers[offset : offset + rows * columns].reshape(rows, columns)
        np.testing.assert_array_equal(own, np.atleast_2d(weights.half().numpy()))
    assert sum(rows * columns for _, rows, columns in page["index"].values()) == len(numbers)
    json.dumps(page)


def test_page_weights_refuse_what_float16_cannot_hold():
    model = InContextGPT(SMALL)
    model.read_in.weight.data[0, 0] = 1e5
    with pytest.raises(CheckpointError, match=r"read_in\.weight does not fit"):
        gpt.page_weights(model)
