"""Exercises on the study `several_layers` and on `map_of_the_theory`."""

import math
from collections.abc import Sequence

import numpy as np
from torch import Tensor

from explainer.exercises.checks import Exercise


def _two_layers(X: Tensor, y: Tensor, x_q: Tensor, rates: Sequence[float]) -> Tensor:
    w = 0 * x_q
    for rate in rates:
        w = w - rate * X.T @ (X @ w - y) / len(y)
    return x_q @ w


def _newton_count(e_0: float, bound: float) -> int:
    return next(k for k in range(100) if e_0 ** (2**k) < bound)


def _plain_rates(eta: float, mu: float) -> np.ndarray:
    half = (2 + mu) * eta / 2
    return half + (half**2 - eta**2) ** 0.5 * np.array([-1, 1])


def _scores(X: Tensor, y: Tensor, pool: Tensor, noise: float) -> Tensor:
    return -((y[:, None] - X @ pool.T) ** 2).sum(0) / (2 * noise**2)


EXERCISES = {
    "two_layers": Exercise(
        asks="(X (N, d), y (N,), x_q (d,), two rates) -> prediction of y_q after two gradient steps from 0",
        hint="each layer needs one gradient, of the residuals that are left.",
        passed="two layers that change their targets are two gradient steps.",
        right=_two_layers,
        shapes=((7, 3), (7,), (3,)),
        cases=lambda X, y, x_q: {
            "with a second rate of 0 it is not one gradient step; look at the sign of what the query collects, and at "
            "what the gradient is divided by.": (X, y, x_q, (0.3, 0.0)),
            "the second step is not right; it takes the residuals after the first.": (X, y, x_q, (0.3, 0.2)),
        },
        mistakes={
            "look at the sign of what the query collects.": lambda *given: -_two_layers(*given),
            "the second step takes what the first has left.": lambda X, y, x_q, rates: x_q @ (X.T @ y) * sum(rates) / 7,
        },
    ),
    "newton_count": Exercise(
        asks="(e_0, bound) -> the smallest k with e_k < bound, for the Newton iteration in one dimension",
        hint="the error is squared at every iteration: e, e^2, e^4, ...",
        passed="you count the iterations as the iteration itself does.",
        right=_newton_count,
        cases=[(0.5, 0.3), (0.9, 1e-3), (0.2, 0.5), (0.99, 1e-8)],
        mistakes={
            "square the error; you multiply it by e_0.": lambda e_0, bound: math.ceil(math.log(bound) / math.log(e_0)),
            "one iteration less will do.": lambda e_0, bound: _newton_count(e_0, bound) + 1,
        },
    ),
    "plain_rates": Exercise(
        asks="(eta, mu) -> two rates whose plain gradient steps are two heavy-ball steps from 0",
        hint="compare the coefficients of h and of S h in the two predictors.",
        passed="two plain steps with your rates are two steps with momentum, on every prompt.",
        right=_plain_rates,
        counts=lambda rates, eta, mu: rates(eta, mu).sort().values,
        cases={"the sum should be (2 + mu) eta, the product eta^2.": [(0.2, 0.0), (0.2, 0.5), (0.4, 0.9)]},
        mistakes={
            "the rates should add up to (2 + mu) eta.": lambda eta, mu: (eta, eta),
            "the product should be that of two plain steps.": lambda eta, mu: (eta, (1 + mu) * eta),
        },
    ),
    "pool_posterior": Exercise(
        asks="(X (N, d), y (N,), pool (T, d), noise) -> posterior probabilities (T,) of the tasks of the pool",
        hint="Bayes' rule: likelihood times prior, divided by its sum.",
        passed="your weights are those of Bayes' rule.",
        right=lambda X, y, pool, noise: _scores(X, y, pool, noise).softmax(0),
        shapes=((5, 2), (5,), (4, 2)),
        cases=lambda X, y, pool: {
            "targets of the third task do not make it the most probable one.": (X, X @ pool[2], pool, 0.1),
            "the exponent is the sum of squares over 2 noise^2.": [(X, y, pool, 0.7), (X, y, pool, 2.0)],
        },
        mistakes={
            "look at the sign of the exponent.": lambda *given: (-_scores(*given)).softmax(0),
            "the exponent is over 2 noise^2, not over noise^2.": lambda *given: (2 * _scores(*given)).softmax(0),
            "the probabilities should add up to 1.": lambda *given: _scores(*given).exp(),
        },
    ),
}
