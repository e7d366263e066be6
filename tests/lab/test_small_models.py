"""Trainings of the small models: repeated to the bit, learning, as stored; Gauss-Newton against autograd."""

from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Generator

from explainer.data.files import reading_weights, rounded
from explainer.models import deep_linear_model
from explainer.models import in_context_gpt as gpt
from explainer.models.in_context_gpt import InContextGPT, InContextGPTSetting
from explainer.theory.optimisation import warmed_up_cosine
from explainer_lab import small_model_training as lab
from explainer_lab.small_model_training import train_gpt

SMALL = InContextGPTSetting(dimension=3, n_examples=4, layers=2, width=8, heads=2, inner=12, steps=40, batch=16)


@pytest.fixture(scope="module")
def trained() -> gpt.TrainedGPT:
    return train_gpt(SMALL, progress=False)


def described(name: str) -> dict:
    with reading_weights(name) as (_, description):
        return description


# Small GPTs


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
    again = train_gpt(SMALL, progress=False)
    assert torch.equal(torch.get_rng_state(), state)
    assert again.losses == trained.losses != train_gpt(replace(SMALL, seed=1), progress=False).losses
    for name, weights in trained.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], weights), name


def test_first_loss_is_that_of_the_drawn_weights():
    """The mean over the prompts and all N + 1 inputs of (yhat - y)^2, by hand."""
    one = replace(SMALL, steps=gpt.LOSS_WINDOW, learning_rate=1e-12)  # too small for a step to matter
    model, generator, losses = InContextGPT(one), Generator().manual_seed(one.seed), []
    for _ in range(gpt.LOSS_WINDOW):
        prompts = one.prompts(one.batch, generator)
        errors = model(prompts.inputs, prompts.targets) - prompts.targets
        losses.append(sum(e.item() ** 2 for e in errors.flatten()) / errors.numel())
    assert train_gpt(one, progress=False).losses == pytest.approx([np.mean(losses)], rel=1e-4)


def test_files_return_the_same_model(trained, tmp_path, monkeypatch):
    monkeypatch.setattr(gpt, "STORED", {"tiny": SMALL})
    monkeypatch.setattr(lab, "train_gpt", lambda setting: trained)
    monkeypatch.setenv("EXPLAINER_WEIGHTS", str(tmp_path))
    lab.main(["tiny"])
    again = gpt.stored("tiny")
    assert again.model.setting == SMALL and not again.model.training
    for name, weights in trained.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], weights), name
    assert again.losses == pytest.approx(trained.losses, rel=1e-3)
    description = described("tiny")
    assert description["setting"] == asdict(SMALL) and description["errors"].keys() == {"1", "2", "4"}


def often(*names):
    """All stored models; those that are not named are for weekly runs."""
    return [name if name in names else pytest.param(name, marks=pytest.mark.weekly) for name in gpt.STORED]


@pytest.mark.parametrize("name", often("gpt_line", "gpt_noisy", "gpt_pool_4"))
def test_stored_errors_are_measured_again(name):
    errors = described(name)["errors"]
    for k, error in lab._final_errors(gpt.stored(name).model).items():
        assert errors[str(k)] == pytest.approx(list(error), rel=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", often("gpt_line"))
def test_stored_run_begins_again_as_it_did(name):
    n = 50 // gpt.LOSS_WINDOW
    losses = train_gpt(gpt.STORED[name], steps=50, progress=False).losses
    assert losses == pytest.approx(described(name)["losses"][:n], rel=2e-3)


# Linear transformers


TINY = lab._Schedule(
    dimension=2,
    n_examples=6,
    steps=lab._LOSS_WINDOW,
    batch=8,
    samples=(64, 128),
    iterations=(4, 2),
    test_prompts=100,
)
TWO = (("transformer", 2, 0), ("GD++", 2, 1))


def sample(n=5):
    prompts = TINY.draw(Generator().manual_seed(1), n, torch.float64)
    return lab._Sample(deep_linear_model.moments(prompts), prompts.tasks)


def layers(family="transformer", n_layers=3):
    parameters = lab._initial(family, n_layers, TINY.dimension, Generator().manual_seed(2))
    return lab._layers(family, parameters, TINY.dimension)


@pytest.fixture(scope="module")
def runs():
    return [lab._train_layers(*start, TINY) for start in TWO]


@pytest.mark.parametrize("family", ["gradient descent", "GD++", "transformer"])
def test_parameters_are_read_off_the_layers(family):
    stack, G = layers(family), sample().G
    again = lab._layers(family, lab._parameters(family, lab._balanced(stack)), TINY.dimension)
    torch.testing.assert_close(deep_linear_model.learned_tasks(again, G), deep_linear_model.learned_tasks(stack, G))


def test_fitted_gradient_descent_finds_two_unequal_rates():
    run, losses = lab._descended("gradient descent", 2, 0, lab._Schedule(steps=300))
    rates = -run.W_PV[:, -1, -1].sort().values
    torch.testing.assert_close(rates, torch.tensor([1.25, 0.515]).double(), atol=0.12, rtol=0)
    assert run.W_PV.dtype == torch.float64 and losses.shape == (301,)


def layers_of(family):
    return lambda parameters: lab._layers(family, parameters, TINY.dimension)


def test_normal_equations_are_those_of_the_error(monkeypatch):
    monkeypatch.setattr(lab, "_CHUNK", 3)
    of, made, parameters = sample(), layers_of("transformer"), torch.stack(layers(), 1)
    gradient, curvature = lab._normal_equations(made, of, parameters)
    free = parameters.clone().requires_grad_()
    (whole,) = torch.autograd.grad(lab._error(made(free), of), free)
    torch.testing.assert_close(2 * gradient, whole.flatten())

    def missed(parameters):
        return (deep_linear_model.learned_tasks(made(parameters), of.G) - of.tasks).flatten()

    J = torch.autograd.functional.jacobian(missed, parameters).flatten(1)
    torch.testing.assert_close(curvature, J.T @ J / len(J))


def test_gauss_newton_solves_what_is_linear():
    """One gradient step: the best rate is a quotient of sums."""
    of = sample(40)
    h = of.G[:, :-1, -1]
    best = (h * of.tasks).sum() / (h * h).sum()
    start = torch.tensor([[5.0]], dtype=torch.float64)
    rate, errors = lab._gauss_newton(layers_of("gradient descent"), of, start, 50, 1e-12)
    torch.testing.assert_close(rate.squeeze(), best)
    assert all(after < before for before, after in pairwise(errors))


def test_training_lowers_the_error_and_repeats(runs):
    for start, run in zip(TWO, runs, strict=True):
        first, second = run.record["samples"]
        assert first[-1] <= first[0] and second[-1] <= second[0] != first[-1], "of another sample, which is larger"
        assert len(run.record["adam"]) == 1 and len(run.record["gradients"]) == len(run.record["test"]) == 2
        assert run.layers.W_PV.dtype == torch.float64 and run.layers.W_PV.shape == (2, 3, 3)
        again = lab._train_layers(*start, TINY)
        torch.testing.assert_close(again.layers, run.layers, atol=1e-9, rtol=1e-9)


def test_book_has_every_start_of_this_schedule():
    description = described("deep_linear")
    assert [(run["family"], run["n_layers"], run["seed"]) for run in description["runs"]] == list(lab._STARTS)
    assert description["schedule"] == rounded(asdict(lab._Schedule()))


def test_stored_errors_of_layers_are_measured_again():
    test = lab._Schedule().sample(20_000, lab._Schedule().test_seed)
    for family, n_layers in {start[:2] for start in lab._STARTS}:
        for run in deep_linear_model.stored(family, n_layers):
            if run.at_rest:  # the others err so rarely that few prompts decide
                assert lab._error(run.layers, test).item() == pytest.approx(run.record["test"][1], rel=0.3)
