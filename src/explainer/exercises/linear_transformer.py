"""Exercises on layers of linear attention that were trained on prompts, and on their training."""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from explainer.exercises.checks import Exercise
from explainer.theory import linear_transformer, regression

# One layer.


_C = torch.tensor([[1.5, 0.3, 0.0], [0.3, 0.8, 0.2], [0.0, 0.2, 0.5]], dtype=torch.float64)


def _ridge_layer(covariance: Tensor, penalty: float, n: int) -> tuple[Tensor, Tensor]:
    d = len(covariance)
    W_PV, W_KQ = torch.zeros(2, d + 1, d + 1, dtype=covariance.dtype)
    W_PV[d, d] = 1
    W_KQ[:d, :d] = torch.linalg.inv(covariance + penalty / n * torch.eye(d, dtype=covariance.dtype))
    return W_PV, W_KQ


def _predictions(layer: Callable, covariance: Tensor, penalty: float, n: int) -> Tensor:
    matrices = linear_transformer.LinearAttention(*layer(covariance, penalty, n))
    prompts = regression.draw_prompts(4, n, covariance, generator=torch.Generator().manual_seed(0))
    return linear_transformer.layer_prediction(matrices, prompts)


def _noisy_gamma(covariance: Tensor, n: int, noise: float) -> Tensor:
    return linear_transformer.gamma(covariance, n) + noise**2 / n * torch.eye(len(covariance), dtype=covariance.dtype)


def _landing_point(covariance: Tensor, n: int, k: float) -> Tensor:
    return linear_transformer.closed_form(covariance, n, imbalance=k).W_PV[-1, -1]


def _half_life(covariance: Tensor, n: int, which: int = 0) -> float:
    return math.log(2) / linear_transformer.final_rates(covariance, n)[which].item()


def _half_life_at_fixed_u(covariance: Tensor, n: int) -> float:
    u = linear_transformer.closed_form(covariance, n).W_PV[-1, -1]
    lambda_k, gamma_k = covariance.diagonal(), linear_transformer.gamma(covariance, n).diagonal()
    return math.log(2) / (u**2 * gamma_k * lambda_k**2).min().item()


isotropic_gamma = Exercise(
    hint="with one variance for all directions Gamma is a multiple of the identity.",
    passed="g I is Gamma for isotropic inputs, in every setting.",
    right=lambda d, n, variance: variance * (1 + (d + 1) / n),
    cases={
        "for endless prompts of unit variance Gamma should be the covariance, g = 1.": (5, 10**12, 1.0),
        "count the terms that are divided by n; the trace of the identity is d.": [(1, 1, 1.0), (5, 20, 1.0)],
        "three times the variance should give three times g.": [(5, 20, 3.0), (3, 7, 0.4)],
    },
    mistakes={"Lambda itself has a share of 1/n, beside its trace.": lambda d, n, variance: variance * (1 + d / n)},
)
ridge_attention = Exercise(
    hint="with X^T X = N Lambda and X^T y = N h, what stands between x_q and h?",
    passed="where the inputs have exactly the covariance, the layer is ridge regression.",
    right=_ridge_layer,
    counts=_predictions,
    cases={
        "with almost no penalty the layer does not predict like least squares; look at what undoes the covariance, "
        "and at which entries of W_PV and W_KQ read inputs and targets.": (_C, 1e-9, 12),
        "with penalty = n = 12 the layer does not predict like ridge regression; the attention divides by n, and "
        "X^T X does not: see what that does to the penalty.": (_C, 12.0, 12),
        "look for a number that should depend on d, n or the penalty.": [(_C, 2.5, 30), (_C[:1, :1], 0.3, 5)],
    },
    mistakes={"this is least squares: where is the penalty?": lambda C, penalty, n: _ridge_layer(C, 0.0, n)},
)
noisy_gamma = Exercise(
    hint="only E h h^T changes; the noise of different examples is independent, so it enters divided by n.",
    passed="the inverse of your matrix is the best preconditioner for noisy targets.",
    right=_noisy_gamma,
    cases={
        "without noise it should be Gamma, (1 + 1/n) Lambda + tr(Lambda)/n I.": (_C, 12, 0.0),
        "in endless prompts the noise averages out and Gamma is the covariance.": (_C, 10**12, 2.0),
        "E h h^T has one new term: noise^2 E x x^T, divided once by n.": [(_C, 12, 1.5), (_C, 5, 0.3)],
    },
    mistakes={
        "the variance of the noise is noise^2.": lambda C, n, noise: _noisy_gamma(C, n, noise**0.5),
        "noise^2/n Lambda joins Lambda Gamma; what joins Gamma?": lambda C, n, noise: (
            _noisy_gamma(C, n, 0.0) + noise**2 / n * C
        ),
    },
)
landing_point = Exercise(
    hint="at the end U = Gamma^-1 / u; put this into the imbalance and solve for u^2.",
    passed="the flow lands where you said, from starts of both signs of the imbalance.",
    right=_landing_point,
    tolerance=1e-4,
    cases={
        "with imbalance 0 the end should be the theorem's, u = tr(Gamma^-2)^(1/4).": (_C, 10, 0.0),
        "the product is Gamma^-1 and the imbalance is what it was.": [(_C, 10, 1.67), (_C, 10, -1.91)],
    },
    mistakes={"look at the sign of the imbalance.": lambda C, n, k: _landing_point(C, n, -k)},
)
step_factor = Exercise(
    hint="write the new squares out: (u + eta U F)^2 - (U + eta u F)^2; the terms with one eta cancel.",
    passed="your factor is that of the step.",
    right=lambda u, U, gamma, eta: 1 - eta**2 * (1 - gamma * u * U) ** 2,
    cases={
        "where u U = 1/gamma nothing moves, and the factor should be 1.": (2.0, 0.25, 2.0, 0.7),
        "write both squares out, and divide by u^2 - U^2.": [(1.8, 0.1, 1.5, 0.45), (0.3, -1.2, 1.1, 0.2)],
    },
    mistakes={"the terms with one eta cancel.": lambda u, U, gamma, eta: 1 - eta * (1 - gamma * u * U) ** 2},
)
slowest_half_life = Exercise(
    hint="linearise both equations at the optimum: u moves too, and it couples the directions.",
    passed="your half-lives are those of the flow.",
    right=_half_life,
    cases=[(torch.tensor(variances).double().diag(), n) for variances, n in (([0.7], 5), ([1, 0.3, 0.6], 20))],
    mistakes={
        "your time would be right if u stood still; u moves too.": _half_life_at_fixed_u,
        "this is the fastest direction; look for the smallest rate.": lambda C, n: _half_life(C, n, which=-1),
    },
)
scaled_prediction = Exercise(
    hint="follow one factor: the covariance of the prompt is multiplied by it, Gamma is not.",
    passed="your factors are right, for inputs made larger, smaller and mirrored.",
    right=lambda c: c**2,
    cases={
        "inputs as in training are predicted rightly: c = 1 should give 1.": (1.0,),
        "c = -1 mirrors prediction and right answer alike; count how often c enters.": (-1.0,),
        "c enters through x_q, x_i and y_i, and the right answer has its share of it.": [(2.0,), (0.5,), (3.0,)],
    },
    mistakes={"this is the prediction alone; divide by the right answer, which has a c, too.": lambda c: c**3},
)
paying_length = Exercise(
    hint="set the two terms of the law equal; with equal eigenvalues gamma cancels.",
    passed="at your length half of the risk is what no longer prompt removes, in all four settings.",
    right=lambda d, n: n**2 / (d + 1),
    cases=[(5, 20), (1, 10), (5, 80), (12, 40)],
    mistakes={
        "the scatter has the variance of the input itself, too: d + 1.": lambda d, n: n**2 / d,
        "both parts depend on d.": lambda d, n: n**2,
    },
)

# The map of the theory.

plain_rates = Exercise(
    hint="compare the coefficients of h and of S h in the two predictors.",
    passed="two plain steps with your rates are two steps with momentum, on every prompt.",
    right=lambda eta, mu: np.array(regression.rates_of_momentum(eta, mu, 2)),
    counts=lambda rates, eta, mu: rates(eta, mu).sort().values,
    cases={"the sum should be (2 + mu) eta, the product eta^2.": [(0.2, 0.0), (0.2, 0.5), (0.4, 0.9)]},
    mistakes={
        "the rates should add up to (2 + mu) eta.": lambda eta, mu: (eta, eta),
        "the product should be that of two plain steps.": lambda eta, mu: (eta, (1 + mu) * eta),
    },
)
