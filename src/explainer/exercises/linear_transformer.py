"""Exercises on layers of linear attention that were trained on prompts, and on their training."""

import numpy as np
import torch
from torch import Tensor

from explainer.exercises.checks import Exercise
from explainer.theory import linear_transformer, regression

# One layer.


_C = torch.tensor([[1.5, 0.3, 0.0], [0.3, 0.8, 0.2], [0.0, 0.2, 0.5]], dtype=torch.float64)


def _noisy_gamma(covariance: Tensor, n: int, noise: float) -> Tensor:
    return linear_transformer.gamma(covariance, n) + noise**2 / n * torch.eye(len(covariance), dtype=covariance.dtype)


def _landing_point(covariance: Tensor, n: int, k: float) -> Tensor:
    return linear_transformer.closed_form(covariance, n, imbalance=k).W_PV[-1, -1]


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
