"""explainer.theory.regression: the drawn moments, the shifts, and each estimator against a second way."""

import math

import pytest
import torch
from draws import close, randn, seeded

from explainer.theory.regression import (
    NONLINEARITIES,
    covariate_shift,
    draw_prompts,
    gradient_plus_plus,
    gradient_steps,
    heavy_ball_steps,
    newton_iterations,
    ordinary_least_squares,
    query_shift,
    random_covariances,
    rates_of_momentum,
    ridge,
    task_shift,
    turned_covariance,
    weight_vectors,
)

D, N = 4, 9


ROOT_COVARIANCE = randn(D, D)
COVARIANCE = ROOT_COVARIANCE @ ROOT_COVARIANCE.T + 0.1 * torch.eye(D)


def draw(n_prompts=6, n_examples=N, covariance=COVARIANCE, seed=0, **options):
    return draw_prompts(n_prompts, n_examples, covariance, generator=seeded(seed), **options)


# Drawing


def test_inputs_have_the_covariance_tasks_are_standard_normal_and_targets_inner_products():
    prompts = draw(8000)
    x, w = prompts.inputs.flatten(0, 1), prompts.tasks
    close(x.T @ x / len(x), COVARIANCE, tolerance=0.06 * COVARIANCE.max().item())
    close(w.T @ w / len(w), torch.eye(D, dtype=torch.float64), tolerance=0.06)
    close(prompts.targets, torch.einsum("bnd,bd->bn", prompts.inputs, w))
    close(torch.cat([prompts.X, prompts.x_q[:, None]], dim=1), prompts.inputs)
    close(torch.cat([prompts.y, prompts.y_q[:, None]], dim=1), prompts.targets)


def test_a_turned_covariance_has_its_eigenvalues_in_directions_of_its_own():
    covariance = turned_covariance([2, 1, 0.3], seed=1)
    assert torch.equal(covariance, covariance.mT)
    close(torch.linalg.eigvalsh(covariance), torch.tensor([0.3, 1, 2], dtype=torch.float64))
    assert not torch.allclose(covariance, turned_covariance([2, 1, 0.3], seed=2))


def test_each_prompt_may_have_its_own_covariance():
    covariances = random_covariances(6, D, seeded())
    prompts = draw(covariance=covariances)
    for b in range(6):
        alone = draw(covariance=covariances[b])
        close(prompts.inputs[b], alone.inputs[b])


def test_a_given_task_replaces_the_drawn_one_and_leaves_the_inputs():
    w = randn(D, seed=5)
    prompts = draw(tasks=w)
    close(prompts.tasks, w.expand(6, D))
    close(prompts.inputs, draw().inputs)
    close(prompts.targets, prompts.inputs @ w)


def test_a_covariance_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"smallest eigenvalue of the covariance is -1"):
        draw(covariance=torch.tensor([1.0, -1.0]).diag())


def test_labels_that_are_no_inner_products_by_hand():
    half = torch.tensor(0.5, dtype=torch.float64)
    found = {name: f(half).item() for name, f in NONLINEARITIES.items()}
    for f in NONLINEARITIES.values():
        close(draw(label=f).targets, f(draw().targets))
    expected = {"relu": 0.5, "sign": 1, "tanh": math.tanh(1.5), "sin": math.sin(1), "cubic": 1 / 24, "square": 0.25}
    assert found == pytest.approx(expected)


def test_noise_has_its_standard_deviation_and_reaches_the_query():
    clean, noisy = draw(3000), draw(3000, noise=0.5)
    close(noisy.inputs, clean.inputs)
    noise = noisy.targets - clean.targets
    assert noise.std().item() == pytest.approx(0.5, rel=0.03)
    assert noise[:, -1].std().item() == pytest.approx(0.5, rel=0.06)


# Shifts


def test_task_shift_relabels_and_keeps_the_noise():
    clean, noisy, w = draw(), draw(noise=0.3), randn(D, seed=3)
    shifted = task_shift(noisy, w)
    close(shifted.targets - shifted.inputs @ w, noisy.targets - clean.targets)
    close(task_shift(clean, 3 * clean.tasks).targets, 3 * clean.targets)
    close(shifted.tasks, w.expand(6, D))


def test_covariate_shift_moves_every_input_and_keeps_tasks_and_noise():
    clean, noisy = draw(), draw(noise=0.3)
    rotation = torch.linalg.qr(randn(D, D, seed=4)).Q
    shifted = covariate_shift(noisy, noisy.inputs @ rotation.T + 1)
    expected = torch.stack([x @ w for x, w in zip(clean.inputs @ rotation.T + 1, clean.tasks, strict=True)])
    close(shifted.targets, expected + noisy.targets - clean.targets)
    close(shifted.tasks, noisy.tasks)


def test_query_shift_leaves_the_examples():
    prompts = draw()
    shifted = query_shift(prompts, prompts.X[:, 0])
    close(shifted.X, prompts.X)
    close(shifted.y, prompts.y)
    close(shifted.y_q, prompts.y[:, 0])
    close(query_shift(prompts, torch.ones(D)).y_q, prompts.tasks.sum(1))


# Estimators


def test_least_squares_takes_the_shortest_solution():
    prompts = draw(n_examples=2)
    for b in range(6):
        w = torch.linalg.lstsq(prompts.X[b], prompts.y[b], driver="gelsd").solution
        assert ordinary_least_squares(prompts)[b].item() == pytest.approx((prompts.x_q[b] @ w).item())


def test_ridge_minimises_its_objective():
    prompts, penalty = draw(noise=0.5), 0.7
    w = weight_vectors(lambda prompts: ridge(prompts, penalty), prompts).requires_grad_()
    residuals = torch.einsum("bnd,bd->bn", prompts.X, w) - prompts.y
    (gradient,) = torch.autograd.grad((residuals**2).sum() + penalty * (w**2).sum(), w)
    close(gradient, torch.zeros_like(gradient), tolerance=1e-10)


def test_heavy_ball_is_torch_sgd_with_momentum():
    prompts = draw(noise=0.2)
    w = torch.zeros(6, D, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.SGD([w], lr=0.1, momentum=0.7)
    for _ in range(5):
        optimiser.zero_grad()
        ((torch.einsum("bnd,bd->bn", prompts.X, w) - prompts.y).square().sum() / (2 * N)).backward()
        optimiser.step()
    close(heavy_ball_steps(prompts, 0.1, 0.7, 5), (prompts.x_q * w.detach()).sum(1))


@pytest.mark.parametrize(("momentum", "steps"), [(0.0, 5), (0.5, 1), (0.5, 2), (0.9, 12)])
def test_momentum_is_plain_steps_with_other_rates(momentum, steps):
    prompts = draw_prompts(5, N, torch.eye(D).double(), generator=seeded())
    rates = rates_of_momentum(0.3, momentum, steps)
    assert len(rates) == steps and all(rate > 0 for rate in rates)
    close(gradient_steps(prompts, rates), heavy_ball_steps(prompts, 0.3, momentum, steps), 1e-9)


@pytest.mark.parametrize(
    "estimator",
    [
        ordinary_least_squares,
        lambda prompts: ridge(prompts, 0.3),
        lambda prompts: gradient_plus_plus(prompts, [0.3, 0.2], [0.1, 0.0]),
        lambda prompts: newton_iterations(prompts, 3),
    ],
)
def test_weight_vectors_answer_every_query(estimator):
    prompts = draw_prompts(5, N, torch.eye(D), generator=seeded(3), noise=0.2)
    v = weight_vectors(estimator, prompts)
    assert v.shape == (5, D)
    close((v * prompts.x_q).sum(1), estimator(prompts))


def test_newton_from_the_scaled_identity_is_gradient_descent_with_two_to_the_k_steps():
    """I - M_k S = (I - S / ||S||)^(2^k); from S / ||S||^2 it is (I - S^2 / ||S||^2)^(2^k)."""
    prompts = draw_prompts(
        3, 9, torch.diag(torch.tensor([2.0, 1.0, 0.2], dtype=torch.float64)), generator=torch.Generator().manual_seed(0)
    )
    S = prompts.X.mT @ prompts.X / 9
    eye, ols = torch.eye(3, dtype=torch.float64), torch.linalg.solve(S, (prompts.X.mT @ prompts.y[..., None]) / 9)
    norm = torch.linalg.matrix_norm(S, ord=2)[:, None, None]
    for start, left in (("identity", eye - S / norm), ("fu", eye - S @ S / norm**2)):
        w = ols - torch.linalg.matrix_power(left, 8) @ ols
        expected = (prompts.x_q[:, None] @ w)[:, 0, 0]
        assert torch.allclose(newton_iterations(prompts, 3, start), expected, atol=1e-10)
