"""explainer.theory.wrong_labels: the closed forms against Monte Carlo, and against the trained layer."""

import math

import pytest
import torch
from draws import randn, seeded
from hypothesis import given
from hypothesis import strategies as st

from explainer.theory import linear_transformer, wrong_labels


def learned(X, y, w_0, rate):
    """One gradient step at the prior: w_0 + (eta / N) sum_i x_i (y_i - w_0 . x_i)."""
    return w_0 + rate * (X * (y - X @ w_0)[..., None]).mean(-2)


def risk(w, w_0, p, rate, n, noise=0.0):  # noqa: PLR0917
    """E |w_hat - w|^2 = |E w_hat - w|^2 + (eta^2 / N) [(d+2) E |s w - w_0|^2 + d sigma^2 - |m|^2].

    The sign s is -1 with probability p, m = E s w - w_0, and E |x|^2 x x^T = (d + 2) I for x ~ N(0, I).
    """
    d, m = len(w), (1 - 2 * p) * w - w_0
    spread = (1 - p) * (w - w_0).square().sum() + p * (w + w_0).square().sum()
    scatter = rate**2 / n * ((d + 2) * spread + d * noise**2 - m @ m)
    return (w_0 + rate * m - w).square().sum() + scatter


@pytest.mark.parametrize(
    ("p", "rate", "prior", "noise"),
    [(0.0, 0.5, 0.0, 0.0), (0.3, 0.4, 1.0, 0.0), (0.5, 0.9, 0.5, 0.7), (1.0, 0.6, 1.0, 0.3)],
)
def test_mean_and_risk_of_a_step_are_within_three_standard_errors(p, rate, prior, noise):
    """The mean is (1 - eta) w_0 + eta (1 - 2 p) w, and the risk is that from which the best rates below follow."""
    w, runs, n = randn(3, seed=9), 40_000, 6
    w_0, X = prior * w + 0.1, randn(runs, n, 3, seed=1)
    y = wrong_labels.flipped(X @ w + noise * randn(runs, n, seed=2), p, seeded(3))
    found = learned(X, y, w_0, rate)
    assert ((found.mean(0) - (1 - rate) * w_0 - rate * (1 - 2 * p) * w).abs() < 3 * found.std(0) / runs**0.5).all()
    squares = ((found - w) ** 2).sum(-1)
    assert abs(squares.mean() - risk(w, w_0, p, rate, n, noise)) < 3 * squares.std() / runs**0.5


@given(st.integers(1, 50), st.integers(1, 6))
def test_without_noise_the_rate_and_the_risk_are_those_of_the_trained_layer(n, d):
    identity, w, rate = torch.eye(d, dtype=torch.float64), randn(d), wrong_labels.effective_rate(n, d)
    torch.testing.assert_close(torch.linalg.inv(linear_transformer.gamma(identity, n)), rate * identity)
    of_layer = linear_transformer.population_risk(rate * identity, identity, n) / d * (w @ w)
    torch.testing.assert_close(risk(w, torch.zeros_like(w), 0.0, rate, n), of_layer)


@given(st.integers(1, 300), st.floats(0, 3), st.integers(0, 99))
def test_the_rate_for_a_known_prior_is_the_best_for_the_noise_that_is_drawn(n, noise, seed):
    w, w_0 = randn(4, seed=seed), 0.5 * randn(4, seed=seed + 100)
    best = wrong_labels.effective_rate(n, 4, wrong_labels.prior_penalty(w, w_0, noise))
    risks = [risk(w, w_0, 0.0, best + step, n, noise).item() for step in (0, 0.01, -0.01)]
    assert risks[0] < min(risks[1:])
    assert risks[0] / ((w - w_0) @ (w - w_0)).item() == pytest.approx(1 - best)


def test_flipped_labels_win_when_examples_outnumber_the_prior():
    d, strength = 3, 12.0
    m = d + 1 + strength
    assert wrong_labels.critical_share(wrong_labels.effective_rate(int(m), d, strength)) == pytest.approx(1)
    assert wrong_labels.critical_share(wrong_labels.effective_rate(int(m) - 1, d, strength)) > 1
    assert wrong_labels.critical_share(0.0) == math.inf


def test_agreement_is_the_share_of_equal_signs():
    w, v, X = randn(3), randn(3, seed=1), randn(200_000, 3, seed=2)
    same = (torch.sign(X @ w) == torch.sign(X @ v)).double().mean()
    assert wrong_labels.sign_agreement(v, w).item() == pytest.approx(same.item(), abs=0.005)
    assert wrong_labels.sign_agreement(3 * w, w).item() == pytest.approx(1, abs=1e-6)
    assert wrong_labels.sign_agreement(-w, w).item() == pytest.approx(0, abs=1e-6)
