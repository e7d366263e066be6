"""explainer.theory.linear_transformer: its theorems against loops, autograd and Monte Carlo, in float64."""

import math

import pytest
import torch
from draws import close, randn, seeded
from hypothesis import given, settings
from hypothesis import strategies as st

from explainer.errors import DivergenceError
from explainer.theory import linear_transformer as lt
from explainer.theory.optimisation import clipped_step
from explainer.theory.regression import (
    NONLINEARITIES,
    draw_prompts,
    gradient_plus_plus,
    gradient_steps,
    random_covariances,
    squared_errors,
)

D, N = 5, 20
I = torch.eye(D, dtype=torch.float64)  # noqa: E741 - the identity


def relative_distance(actual, expected):
    return (torch.linalg.norm(actual - expected) / torch.linalg.norm(expected)).item()


EIGENVALUES = torch.tensor([2, 1.5, 1, 0.6, 0.3], dtype=torch.float64)
BASIS = torch.linalg.qr(randn(D, D, seed=1)).Q
COVARIANCE = BASIS @ EIGENVALUES.diag() @ BASIS.T
COVARIANCE = (COVARIANCE + COVARIANCE.T) / 2
GAMMA_INVERSE = torch.linalg.inv(lt.gamma(COVARIANCE, N))


def draw(n_prompts=7, n_examples=N, covariance=COVARIANCE, seed=0, **options):
    return draw_prompts(n_prompts, n_examples, covariance, generator=seeded(seed), **options)


# One layer


@pytest.mark.parametrize("mask_query", [False, True])
def test_layer_token_by_token(mask_query):
    layer, prompts = lt.LinearAttention(*0.3 * randn(2, D + 1, D + 1)), draw(2)
    E = lt.embedding(prompts)
    output = lt.linear_self_attention(E, layer, mask_query=mask_query)
    if not mask_query:
        close(lt.layer_prediction(layer, prompts), output[:, -1, -1])
    for b in range(2):
        for j in range(N + 1):
            token = E[b, :, j].clone()
            for i in range(N if mask_query else N + 1):
                token += layer.W_PV @ E[b, :, i] * (E[b, :, i] @ layer.W_KQ @ E[b, :, j]) / N
            close(output[b, :, j], token, tolerance=1e-10)


@given(st.floats(-3, 3), st.integers(0, 99))
@settings(max_examples=20)
def test_layer_is_one_preconditioned_gradient_step(u, seed):
    U, prompts = randn(D, D, seed=seed), draw(seed=seed)
    layer = lt.LinearAttention(torch.zeros(D + 1, D + 1).double(), torch.zeros(D + 1, D + 1).double())
    layer.W_PV[-1, -1] = u
    layer.W_KQ[:D, :D] = U
    close(lt.layer_prediction(layer, prompts), lt.prediction(u * U.T, prompts), tolerance=1e-9)
    by_loop = [
        sum(x_q @ (u * U.T) @ x * y / N for x, y in zip(prompts.X[b], prompts.y[b], strict=True))
        for b, x_q in enumerate(prompts.x_q)
    ]
    close(lt.prediction(u * U.T, prompts), torch.stack(by_loop), tolerance=1e-9)


def test_gamma_is_the_second_moment_it_stands_for():
    """E[h h^T] = Lambda Gamma for h = (1/N) sum_i y_i x_i, by the fourth moments of a Gaussian written out."""
    fourth = lambda i, j, k, l: (  # noqa: E731, E741 - Isserlis' theorem
        COVARIANCE[i, j] * COVARIANCE[k, l] + COVARIANCE[i, k] * COVARIANCE[j, l] + COVARIANCE[i, l] * COVARIANCE[j, k]
    )
    S = torch.zeros(D, D, dtype=torch.float64)
    for i in range(D):
        for j in range(D):
            same = sum(fourth(k, k, i, j) for k in range(D))
            other = sum(COVARIANCE[i, k] * COVARIANCE[k, j] for k in range(D))
            S[i, j] = same / N + (1 - 1 / N) * other
    close(COVARIANCE @ lt.gamma(COVARIANCE, N), S)


@pytest.mark.parametrize("imbalance", [0.0, -7.0, 3.0])
def test_closed_form_predicts_by_the_inverse_of_gamma_and_has_the_imbalance(imbalance):
    layer, prompts = lt.closed_form(COVARIANCE, N, imbalance=imbalance), draw()
    close(lt.layer_prediction(layer, prompts), lt.prediction(GAMMA_INVERSE, prompts))
    u, U = layer.W_PV[-1, -1], layer.W_KQ[:D, :D]
    close(u**2 - (U**2).sum(), torch.tensor(imbalance, dtype=torch.float64))
    assert layer.W_PV.count_nonzero() == 1 and not layer.W_KQ[-1].any() and not layer.W_KQ[:, -1].any()


def monte_carlo_risks(A, m, chunks, **options):
    """Mean squared error over chunks of 20,000 prompts, and its standard error."""
    drawn = (draw(20000, m, seed=seed, **options) for seed in chunks)
    errors = torch.cat([squared_errors(lt.prediction(A, prompts), prompts) for prompts in drawn])
    return errors.mean().item(), errors.std().item() / math.sqrt(len(errors))


def test_population_risk_of_any_matrix_and_of_another_covariance():
    A, shifted = randn(D, D, seed=3) / 3, COVARIANCE + 0.5 * I
    mean, standard_error = monte_carlo_risks(A, N, range(5), covariance=shifted)
    assert lt.population_risk(A, shifted, N).item() == pytest.approx(mean, abs=3 * standard_error)


@pytest.mark.parametrize("m", [1, 7, 400, math.inf])
def test_bias_and_scatter_make_the_population_risk(m):
    """For any matrix and any covariance; with unit tasks they add up to the mean over w ~ N(0, I)."""
    A, shifted = randn(D, D, seed=3) / 3, COVARIANCE + 0.5 * I
    for covariance in (COVARIANCE, shifted):
        parts = lt.error_parts(A, covariance, m)
        close(parts.total, lt.population_risk(A, covariance, m))
        close(parts.bias, lt.population_risk(A, covariance, math.inf))
        of_units = [lt.error_parts(A, covariance, m, task=unit) for unit in I]
        close(parts.bias, sum(part.bias for part in of_units))
        close(parts.scatter, sum(part.scatter for part in of_units))


@pytest.mark.parametrize(("n", "m"), [(1, 3), (20, 20), (300, 5), (math.inf, 50)])
def test_bias_and_scatter_at_the_trained_layer(n, m):
    """With s = lambda / gamma they are sums over directions, and for one task the terms of Theorem 4.2."""
    A = torch.linalg.inv(lt.gamma(COVARIANCE, n))
    eigenvalues, t = torch.linalg.eigvalsh(COVARIANCE), COVARIANCE.trace()
    s, parts = eigenvalues / torch.linalg.eigvalsh(lt.gamma(COVARIANCE, n)), lt.error_parts(A, COVARIANCE, m)
    close(parts.bias, (eigenvalues * (1 - s) ** 2).sum())
    close(parts.scatter, (s**2 * (eigenvalues + t)).sum() / m)
    of_task = lt.error_parts(A, COVARIANCE, m, task=TASK)
    terms = lt.risk_terms(lt.label_moments(TASK, COVARIANCE), COVARIANCE, n, m)
    assert of_task.bias.item() == pytest.approx(terms.training_length, rel=1e-7)
    assert of_task.scatter.item() == pytest.approx(terms.test_length, rel=1e-7)


# Random covariances


def test_the_preconditioners_minimise_the_mean_risk():
    covariances = torch.stack([COVARIANCE, COVARIANCE @ COVARIANCE, random_covariances(1, D, seeded())[0]])
    for best, over in ((GAMMA_INVERSE, COVARIANCE), (lt.optimal_preconditioner(covariances, N), covariances)):
        A = best.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(lt.population_risk(A, over, N).mean(), A)
        assert gradient.abs().max() < 1e-10


def test_exponential_formulas_are_the_means_over_drawn_covariances():
    assert lt.exponential_preconditioner(D, math.inf) == 1 / 3
    assert lt.exponential_relative_risk(1 / 3, D, math.inf) == pytest.approx(1 / 3, abs=1e-15)
    covariances = random_covariances(40000, D, seeded())
    a = lt.exponential_preconditioner(D, N)
    close(lt.optimal_preconditioner(covariances, N), a * I, tolerance=0.01)
    risks = lt.population_risk(a * I, covariances, N) / D
    standard_error = risks.std().item() / 200
    assert risks.mean().item() == pytest.approx(lt.exponential_relative_risk(a, D, N), abs=3 * standard_error)


# Theorem 4.2

TASK = randn(D, seed=2)


@pytest.mark.parametrize(
    ("name", "floor"),
    [("relu", 1 / 4), ("sign", 1 - 2 / math.pi), ("cubic", 6 / 9), ("square", 3.0)],
)
def test_best_linear_error_of_nonlinear_tasks(name, floor):
    """For z ~ N(0, 1): E f^2 - (E z f)^2, on paper."""
    w = torch.linalg.solve(torch.linalg.cholesky(COVARIANCE).mT, torch.eye(D, dtype=torch.float64)[0])
    assert lt.label_moments(w, COVARIANCE, label=NONLINEARITIES[name]).best_linear == pytest.approx(floor, abs=1e-6)


@pytest.mark.parametrize("label", [None, *NONLINEARITIES])
def test_moments_against_samples(label):
    f = label and NONLINEARITIES[label]
    moments = lt.label_moments(TASK, COVARIANCE, label=f, noise=0.5)
    prompts = draw(1, 400000, tasks=TASK, label=f, noise=0.5)
    xy = prompts.inputs[0] * prompts.targets[0, :, None]
    inverse = torch.linalg.inv(COVARIANCE)
    standard_errors = (inverse @ moments.Sigma @ inverse).diag().sqrt() / math.sqrt(len(xy))
    assert ((inverse @ xy.mean(0) - moments.a).abs() < 4 * standard_errors).all()
    assert relative_distance(xy.T.cov(), moments.Sigma) < 0.05
    best = ((prompts.inputs[0] @ moments.a - prompts.targets[0]) ** 2).mean().item()
    assert best == pytest.approx(moments.best_linear, rel=0.03)


def test_theorem_averaged_over_tasks_is_the_population_risk():
    """w = sqrt(d) v_i over the eigenvectors v_i has the second moment I, and the theorem is quadratic in w."""
    for n, m in [(5, 20), (20, 5), (80, 1000)]:
        terms = [lt.risk_terms(lt.label_moments(math.sqrt(D) * v, COVARIANCE), COVARIANCE, n, m).total for v in BASIS.T]
        A = torch.linalg.inv(lt.gamma(COVARIANCE, n))
        assert sum(terms) / D == pytest.approx(lt.population_risk(A, COVARIANCE, m).item(), rel=1e-7)


@pytest.mark.parametrize(("n", "m"), [(20, 40), (80, 5), (math.inf, 10)])
def test_the_theorem_of_a_bent_and_noisy_task_is_within_standard_errors(n, m):
    bent = {"label": NONLINEARITIES["relu"], "noise": 0.5}
    risk = lt.risk_terms(lt.label_moments(TASK, COVARIANCE, **bent), COVARIANCE, n, m).total
    mean, error = monte_carlo_risks(torch.linalg.inv(lt.gamma(COVARIANCE, n)), m, range(5), tasks=TASK, **bent)
    assert risk == pytest.approx(mean, abs=3.5 * error)


# Sample complexity, for linear tasks without noise

SPECTRA = st.lists(st.floats(0.1, 5), min_size=1, max_size=6)
LENGTHS = st.integers(1, 300)


@given(SPECTRA, LENGTHS, LENGTHS)
def test_excess_risk_is_the_population_risk_and_below_the_bound_of_the_corollary(eigenvalues, n, m):
    covariance = torch.tensor(eigenvalues, dtype=torch.float64).diag()
    excess = lt.excess_risk(covariance, n, m)
    A = torch.linalg.inv(lt.gamma(covariance, n))
    assert excess == pytest.approx(lt.population_risk(A, covariance, m).item(), rel=1e-9)
    d, trace, condition = len(eigenvalues), sum(eigenvalues), max(eigenvalues) / min(eigenvalues)
    bound = (d + 1) * trace / m + (1 + 2 * d + d**2 * condition) * trace / n**2
    assert excess <= bound * (1 + 1e-12)


def test_counts_of_the_corollary_are_those_of_its_formula():
    """d = 5, tr = 5.4, kappa = 20/3: 6 * 5.4 / 0.054 = 600, and (11 + 25 * 20/3) * 5.4 = 959.4 = 0.9594 * 1000."""
    assert lt.lengths_needed(COVARIANCE, 0.054).test_by_bound == 600
    assert lt.lengths_needed(COVARIANCE, 0.9594).training_by_bound in (32, 33)
    assert lt.lengths_needed(I, 1.8).training_by_bound == 10 and lt.lengths_needed(I, 0.3).test_by_bound == 100


@given(SPECTRA, st.floats(1e-3, 3))
@settings(max_examples=40)
def test_lengths_are_enough_and_one_less_than_the_least_is_not(eigenvalues, epsilon):
    covariance = torch.tensor(eigenvalues, dtype=torch.float64).diag()
    needed, enough = lt.lengths_needed(covariance, epsilon), epsilon * (1 + 1e-9)
    assert lt.excess_risk(covariance, math.inf, needed.test_by_bound) <= enough
    assert lt.excess_risk(covariance, needed.training_by_bound, math.inf) <= enough
    for length, m in ((needed.both, None), (needed.training, math.inf)):
        risks = [lt.excess_risk(covariance, n, m or n) for n in (length, length - 1) if n]
        assert risks[0] <= enough and all(risk > epsilon * (1 - 1e-9) for risk in risks[1:])
    assert needed.both <= needed.test_by_bound and needed.training <= needed.training_by_bound


# Gradient flow

INITIAL = lt.initialisation(COVARIANCE, N, sigma=0.3)


@pytest.fixture(scope="module")
def flow():
    return lt.train_by_gradient_flow(COVARIANCE, N, INITIAL, duration=200, dt=0.05, record_every=2)


def test_flow_reaches_the_closed_form_in_its_raw_parameters(flow):
    optimum = lt.closed_form(COVARIANCE, N)
    assert relative_distance(flow.final.W_PV, optimum.W_PV) < 1e-6
    assert relative_distance(flow.final.W_KQ, optimum.W_KQ) < 1e-6
    assert relative_distance(flow.preconditioners[-1], GAMMA_INVERSE) < 1e-12
    assert flow.risks[-1].item() == pytest.approx(lt.population_risk(GAMMA_INVERSE, COVARIANCE, N).item(), abs=1e-12)


def test_flow_conserves_the_balance_to_the_order_of_the_method():
    coarse, fine = (
        lt.train_by_gradient_flow(COVARIANCE, N, INITIAL, duration=20, dt=dt).imbalance.abs().max().item()
        for dt in (0.1, 0.05)
    )
    assert fine < 1e-5
    assert coarse / fine > 12  # fourth order: 16


def test_directions_are_learned_in_the_order_of_their_eigenvalues(flow):
    times = lt.learning_times(flow, COVARIANCE, N)
    assert times.isfinite().all() and (times.diff() < 0).all()
    v = torch.linalg.eigh(COVARIANCE).eigenvectors[:, 0]
    reached = [v @ A @ v >= 0.9 / (v @ lt.gamma(COVARIANCE, N) @ v) for A in flow.preconditioners]
    assert times[0].item() == pytest.approx(flow.times[reached.index(True)].item(), abs=0.1)


def test_stable_rate_is_two_over_the_largest_curvature():
    """That of the loss's second derivative in (u, diagonal of U), which is zero along the valley."""
    lambda_k = torch.tensor([2.0, 0.7, 0.3], dtype=torch.float64)
    optimum = lt.closed_form(lambda_k.diag(), N)
    point = torch.cat([optimum.W_PV[-1, -1:], optimum.W_KQ.diagonal()[:-1]])
    risk = lambda at: lt.population_risk(at[0] * at[1:].diag(), lambda_k.diag(), N) / 2  # noqa: E731
    curvatures = torch.linalg.eigvalsh(torch.autograd.functional.hessian(risk, point))
    close(curvatures[0], torch.zeros((), dtype=torch.float64))  # along the valley
    close(2 / curvatures[-1], torch.tensor(lt.stable_rate(optimum, lambda_k.diag(), N), dtype=torch.float64))


def test_initialisation_is_the_papers():
    theta = randn(D, 3, seed=4)
    layer = lt.initialisation(COVARIANCE, N, sigma=0.2, theta=theta)
    U = layer.W_KQ[:D, :D]
    assert layer.W_PV[-1, -1] == 0.2 and torch.linalg.norm(U).item() == pytest.approx(0.2)
    close(U / U[0, 0], theta @ theta.T / (theta @ theta.T)[0, 0])


# Steps of finite length, on the exact loss


def test_one_finite_step_is_the_gradient_of_the_loss():
    u, U = INITIAL.W_PV[-1, -1].clone().requires_grad_(), INITIAL.W_KQ[:D, :D].clone().requires_grad_()
    (lt.population_risk(u * U.T, COVARIANCE, N) / 2).backward()
    run = lt.train_by_gradient_descent(COVARIANCE, N, INITIAL, rate=0.1, steps=1)
    close(run.u[1], u.detach() - 0.1 * u.grad)
    close(run.U[1], U.detach() - 0.1 * U.grad)
    close(run.times, torch.tensor([0, 0.1], dtype=torch.float64))
    close(run.imbalance[1], run.u[1] ** 2 - (run.U[1] ** 2).sum())
    assert run.imbalance[1].abs() > 1e-3


def test_steps_as_sgd_takes_them_have_its_schedule_and_its_clipping():
    """Against PyTorch's SGD on the exact risk, by `clipped_step`: long gradients at first, then short."""
    W = [INITIAL.W_PV[-1, -1].clone().requires_grad_(), INITIAL.W_KQ[:D, :D].clone().requires_grad_()]
    optimiser, steps = torch.optim.SGD(W, lr=0.02), 60
    for step in range(steps):
        risk = lt.population_risk(W[0] * W[1].T, COVARIANCE, N)
        clipped_step(W, optimiser, risk, 0.02 * lt._rate_share(step / steps), step)
    run = lt.descend_as_sgd(COVARIANCE, N, INITIAL, rate=0.02, steps=steps)
    close(run.u[-1], W[0].detach(), 1e-4)  # PyTorch clips to 1 / (1 + 1e-6)
    close(run.U[-1], W[1].detach(), 1e-4)
    assert len(run.times) == steps + 1


# Training on drawn prompts


def test_training_records_on_the_way():
    one = lt.train_on_tasks(COVARIANCE, N, torch.optim.Adam, rate=0.01, steps=10, seed=0, batch=16)
    assert one.times.tolist() == [0, 10]
    close(one.W_PV[0], INITIAL.W_PV.float())
    prompts = draw(16, dtype=torch.float32)
    start = lt.LinearAttention(*(matrix.float() for matrix in INITIAL))
    assert one.risks[0].item() == squared_errors(lt.layer_prediction(start, prompts), prompts).mean().item()


# Several layers


def gradient_layers(rates, dampings=None):
    dampings = [0.0] * len(rates) if dampings is None else dampings
    return lt.stacked(lt.gradient_layer(D, rate, damping) for rate, damping in zip(rates, dampings, strict=True))


@pytest.mark.parametrize("n_layers", [1, 2, 5, 20])
def test_layers_are_gradient_steps(n_layers):
    prompts, rates = draw(), torch.linspace(0.1, 0.3, n_layers).tolist()
    close(lt.layerwise_prediction(gradient_layers(rates), prompts), gradient_steps(prompts, rates))
    tensors = lt.gradient_layer(D, torch.tensor(rates).double())
    assert all(torch.equal(*pair) for pair in zip(tensors, gradient_layers(rates), strict=True))


@given(st.lists(st.tuples(st.floats(-0.3, 0.3), st.floats(-0.3, 0.3)), min_size=1, max_size=4))
@settings(max_examples=20)
def test_layers_with_damping_are_gradient_plus_plus(steps):
    prompts, (rates, dampings) = draw(), zip(*steps, strict=True)
    expected = gradient_plus_plus(prompts, rates, dampings)
    close(lt.layerwise_prediction(gradient_layers(rates, dampings), prompts), expected, tolerance=1e-9)


def test_a_query_that_is_not_masked_shows_from_the_second_layer_on():
    prompts = draw()

    def error(n_layers):
        rates = [0.3] * n_layers
        unmasked = lt.layerwise_prediction(gradient_layers(rates), prompts, mask_query=False)
        return (unmasked - gradient_steps(prompts, rates)).abs().max().item()

    assert error(1) < 1e-12
    assert error(2) > 0.05


@pytest.mark.parametrize(("slope", "moved"), [(1000.0, 0.1), (0.5, 0.05)])
def test_a_step_of_training_has_a_gradient_of_at_most_one(slope, moved):
    weight = torch.zeros(1, requires_grad=True)
    assert clipped_step([weight], torch.optim.SGD([weight], lr=9.0), 3 - slope * weight.sum(), 0.1, 0) == 3
    assert weight.item() == pytest.approx(moved)


def test_the_rate_rises_over_a_tenth_of_the_steps():
    assert [lt._rate_share(done) for done in (0, 0.05, 0.1, 0.55, 1)] == pytest.approx([1e-3, 0.5, 1, 0.5, 0])


def test_what_diverges_says_so():
    with pytest.raises(DivergenceError, match="infinite with dt = 5; choose a shorter dt"):
        lt.train_by_gradient_flow(COVARIANCE, N, INITIAL, duration=500, dt=5)
    with pytest.raises(DivergenceError, match=r"loss at step \d+ is (inf|nan); lower the"):
        lt.train_on_tasks(COVARIANCE, N, torch.optim.SGD, rate=1e30, steps=50, seed=0, batch=8)
