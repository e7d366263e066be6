"""explainer.theory.wrong_labels: the closed forms against Monte Carlo, and against the trained layer."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explainer.errors import ShapeError
from explainer.theory import linear_transformer, regression, wrong_labels

P, RATE = st.floats(0, 1), st.floats(0, 1)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def sampled(w, w_0, p, rate, *, n=6, noise=0.0, runs=40_000):
    """w_hat of many prompts of one task."""
    X = draw(runs, n, len(w), seed=1)
    y = X @ w + noise * draw(runs, n, seed=2)
    return wrong_labels.learned_weights(X, wrong_labels.flipped(y, p, seeded(3)), w_0, rate)


CASES = [(0.0, 0.5, 0.0, 0.0), (0.3, 0.4, 1.0, 0.0), (0.5, 0.9, 0.5, 0.7), (1.0, 0.6, 1.0, 0.3)]


@pytest.mark.parametrize(("p", "rate", "prior", "noise"), CASES)
def test_the_mean_is_within_three_standard_errors(p, rate, prior, noise):
    w = draw(3, seed=9)
    found = sampled(w, prior * w, p, rate, noise=noise)
    errors = found.std(0) / math.sqrt(len(found))
    assert ((found.mean(0) - wrong_labels.expected_weights(w, prior * w, p, rate)).abs() < 3 * errors).all()


@pytest.mark.parametrize(("p", "rate", "prior", "noise"), CASES)
def test_the_risk_is_within_three_standard_errors(p, rate, prior, noise):
    w = draw(3, seed=9)
    w_0 = prior * w + 0.1
    squares = ((sampled(w, w_0, p, rate, noise=noise) - w) ** 2).sum(-1)
    expected = wrong_labels.risk(w, w_0, p, rate, 6, noise)
    assert abs(squares.mean() - expected.total) < 3 * squares.std() / math.sqrt(len(squares))


@given(P, RATE, st.integers(0, 99))
def test_a_right_prior_gives_the_formula_with_two_p_eta(p, rate, seed):
    w = draw(4, seed=seed)
    found = wrong_labels.expected_weights(w, w, p, rate)
    torch.testing.assert_close(found, w * (1 - 2 * p * rate), rtol=1e-12, atol=1e-12)
    none = wrong_labels.expected_weights(w, torch.zeros_like(w), p, rate)
    torch.testing.assert_close(none, w * rate * (1 - 2 * p), rtol=1e-12, atol=1e-12)


@given(st.integers(1, 50), st.integers(1, 6))
def test_without_noise_the_rate_is_that_of_the_trained_layer(n, d):
    identity = torch.eye(d, dtype=torch.float64)
    A = torch.linalg.inv(linear_transformer.gamma(identity, n))
    torch.testing.assert_close(A, wrong_labels.effective_rate(n, d) * identity)


@given(st.integers(1, 40), st.integers(1, 5))
def test_right_labels_give_the_risk_of_the_trained_layer(n, d):
    identity, w = torch.eye(d, dtype=torch.float64), draw(d)
    rate = wrong_labels.effective_rate(n, d)
    mean_risk = linear_transformer.population_risk(rate * identity, identity, n).item() / d
    found = wrong_labels.risk(w, torch.zeros_like(w), 0.0, rate, n).total
    assert found == pytest.approx(mean_risk * (w @ w).item(), rel=1e-9)


@pytest.mark.parametrize("strength", [0.0, 2.0, 30.0])
def test_the_rate_is_the_best_for_its_prior(strength):
    n, d, tau = 7, 3, 0.8
    sigma = math.sqrt(strength) * tau

    def risk(rate):
        """Over tasks w_0 + delta with E delta delta^T = tau^2 I; the risk is a quadratic form in delta."""
        zero = torch.zeros(d, dtype=torch.float64)
        ends = [wrong_labels.risk(tau * e, zero, 0.0, rate, n, sigma) for e in torch.eye(d, dtype=torch.float64)]
        scatter_of_noise = wrong_labels.risk(zero, zero, 0.0, rate, n, sigma).total
        return sum(end.total for end in ends) - (d - 1) * scatter_of_noise

    best = wrong_labels.effective_rate(n, d, strength)
    assert risk(best) < min(risk(best + 0.01), risk(best - 0.01))


def test_a_single_step_costs_d_plus_one_examples_that_no_prior_is_worth():
    """A prior that says nothing, labels without noise, N = 5, d = 4: one half is left, and nothing by least squares."""
    n, d = 5, 4
    assert wrong_labels.left_over(n, d) == 0.5
    tasks, X = draw(4000, d), draw(4000, n, d, seed=1)
    y = (X @ tasks[..., None])[..., 0]
    zero, rate = torch.zeros(d, dtype=torch.float64), wrong_labels.effective_rate(n, d)
    left = ((wrong_labels.learned_weights(X, y, zero, rate) - tasks) ** 2).sum(-1) / d
    assert abs(left.mean() - 0.5) < 3 * left.std() / math.sqrt(len(left))
    solved = torch.linalg.lstsq(X, y[..., None]).solution[..., 0]
    torch.testing.assert_close(solved, tasks, rtol=1e-6, atol=1e-6)


@given(st.integers(1, 300), st.floats(0, 3), st.integers(0, 99))
def test_the_rate_for_a_known_prior_is_the_best_for_the_noise_that_is_drawn(n, noise, seed):
    w, w_0 = draw(4, seed=seed), 0.5 * draw(4, seed=seed + 100)
    best = wrong_labels.effective_rate(n, 4, wrong_labels.prior_strength(w, w_0, noise))
    risks = [wrong_labels.risk(w, w_0, 0.0, best + step, n, noise).total for step in (0, 0.01, -0.01)]
    assert risks[0] < min(risks[1:])
    left = risks[0] / ((w - w_0) @ (w - w_0)).item()
    assert left == pytest.approx(wrong_labels.left_over(n, 4, wrong_labels.prior_strength(w, w_0, noise)))


def test_a_layer_without_a_prior_is_linear_attention():
    prompts = regression.draw_prompts(5, 8, torch.eye(3, dtype=torch.float64), generator=seeded())
    found = wrong_labels.learned_weights(prompts.X, prompts.y, torch.zeros(3, dtype=torch.float64), 0.6)
    torch.testing.assert_close((found * prompts.x_q).sum(-1), regression.gradient_steps(prompts, [0.6]))


def test_flips():
    y = torch.ones(20_000, dtype=torch.float64)
    assert torch.equal(wrong_labels.flipped(y, 0.0, seeded()), y)
    assert torch.equal(wrong_labels.flipped(y, 1.0, seeded()), -y)
    assert (wrong_labels.flipped(y, 0.3, seeded()) < 0).double().mean().item() == pytest.approx(0.3, abs=0.01)


def test_flipped_labels_win_when_examples_outnumber_the_prior():
    d, strength = 3, 12.0
    m = d + 1 + strength
    assert wrong_labels.overriding_share(wrong_labels.effective_rate(int(m), d, strength)) == pytest.approx(1)
    assert wrong_labels.overriding_share(wrong_labels.effective_rate(int(m) - 1, d, strength)) > 1
    assert wrong_labels.overriding_share(0.0) == math.inf


def test_agreement_is_the_share_of_equal_signs():
    w, v, X = draw(3), draw(3, seed=1), draw(200_000, 3, seed=2)
    same = (torch.sign(X @ w) == torch.sign(X @ v)).double().mean()
    assert wrong_labels.agreement(v, w).item() == pytest.approx(same.item(), abs=0.005)
    assert wrong_labels.agreement(3 * w, w).item() == pytest.approx(1, abs=1e-6)
    assert wrong_labels.agreement(-w, w).item() == pytest.approx(0, abs=1e-6)


def test_refusals():
    w = draw(3)
    with pytest.raises(ValueError, match=r"p = 1\.5"):
        wrong_labels.expected_weights(w, w, 1.5, 0.5)
    with pytest.raises(ValueError, match="n_examples = -1"):
        wrong_labels.effective_rate(-1, 3)
    with pytest.raises(ValueError, match="no scatter"):
        wrong_labels.risk(w, w, 0.5, 0.5, 0)
    with pytest.raises(ShapeError):
        wrong_labels.learned_weights(draw(5, 3), draw(4), w, 0.5)
