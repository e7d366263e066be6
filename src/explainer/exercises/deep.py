"""Checks for the study `several_layers` and for `map_of_the_theory`."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from explainer.exercises import checks
from explainer.theory import regression, task_diversity


@checks.check("each layer needs one gradient, of the residuals that are left.")
def two_layers(reader_fn: Callable[[Tensor, Tensor, Tensor, Sequence[float]], Tensor]) -> None:
    """Check a function (X (N, d), y (N,), x_q (d,), two rates) -> prediction after two gradient steps from 0.

    Properties: with a second rate of 0 it is one step; linear in y; two steps of the package.
    Raises: AssertionError with a hint.
    """
    prompts = _prompts(3, 7)
    X, y, x_q = prompts.X[0], prompts.y[0], prompts.x_q[0]

    def answer(y: Tensor, rates: Sequence[float]) -> float:
        return checks.run(lambda *given: float(reader_fn(*given)), X, y, x_q, rates)

    def steps(rates: Sequence[float]) -> float:
        return regression.gradient_steps(prompts, rates)[0].item()

    checks.require(
        np.isclose(answer(y, (0.3, 0.0)), steps([0.3])),
        "with a second rate of 0 it is not one gradient step; look at the sign of what the query collects, and at what "
        "the gradient is divided by.",
    )
    checks.require(np.isclose(answer(2 * y, (0.3, 0.2)), 2 * answer(y, (0.3, 0.2))), "it should be linear in y.")
    checks.require(
        np.isclose(answer(y, (0.3, 0.2)), steps([0.3, 0.2])),
        "the second step is not right; it takes the residuals after the first step in the place of the targets.",
    )
    print("Passed: two layers that change their targets are two gradient steps.")


@checks.check("the error is squared at every iteration: e, e^2, e^4, ...")
def newton_count(reader_fn: Callable[[float, float], int]) -> None:
    """Check a function (e_0, bound) -> the smallest k with e_k < bound, for the Newton iteration in one dimension.

    Raises: AssertionError with a hint.
    """
    for e_0, bound in [(0.5, 0.3), (0.9, 1e-3), (0.2, 0.5), (0.99, 1e-8)]:
        k = checks.run(lambda *given: int(reader_fn(*given)), e_0, bound)
        M, expected = 1 - e_0, 0  # S = 1
        while bound <= 1 - M:
            M, expected = 2 * M - M * M, expected + 1
        checks.require(
            k == expected,
            f"from an error of {e_0}, below {bound} is reached after {expected} iterations, not {k}; square the error.",
        )
    print("Passed: you count the iterations as the iteration itself does.")


@checks.check("compare the coefficients of h and of S h in the two predictors.")
def plain_rates(reader_fn: Callable[[float, float], tuple[float, float]]) -> None:
    """Check a function (eta, mu) -> two rates whose plain gradient steps are two heavy-ball steps from 0.

    Raises: AssertionError with a hint.
    """
    prompts = _prompts(3, 9)
    for eta, mu in [(0.2, 0.0), (0.2, 0.5), (0.4, 0.9)]:
        rates = checks.run(lambda *given: tuple(map(float, reader_fn(*given))), eta, mu)
        checks.require(len(rates) == 2, f"there should be two rates, not {len(rates)}.")
        found = regression.gradient_steps(prompts, rates)
        checks.require(
            checks.close(found, regression.heavy_ball_steps(prompts, eta, mu, 2), 1e-8),
            f"with eta = {eta} and mu = {mu} the predictions differ; the rates should add up to (2 + mu) eta, and "
            "their product should be that of two plain steps.",
        )
    print("Passed: two plain steps with your rates are two steps with momentum, on every prompt.")


@checks.check("Bayes' rule: likelihood times prior, divided by its sum.")
def pool_posterior(reader_fn: Callable[[Tensor, Tensor, Tensor, float], Tensor]) -> None:
    """Check a function (X (N, d), y (N,), pool (T, d), noise) -> posterior probabilities (T,) of the tasks of the pool.

    Raises: AssertionError with a hint.
    """
    prompts, pool = _prompts(2, 5), checks.random_tensors()(4, 2)
    X, y = prompts.X[0], prompts.y[0]

    def answer(y: Tensor, noise: float) -> Tensor:
        return checks.call(reader_fn, X, y, pool, noise, shape=(4,))

    checks.require(
        checks.close(answer(y, 0.7).sum(), torch.tensor(1.0).double()), "the probabilities should add up to 1."
    )
    checks.require(
        answer(X @ pool[2], 0.1).argmax() == 2,
        "targets of the third task do not make it the most probable one; look at the sign of the exponent.",
    )
    for noise in (0.7, 2.0):
        expected = task_diversity.posterior(prompts, pool, noise)[0]
        checks.require(
            checks.close(answer(y, noise), expected),
            f"with noise = {noise} it is not the posterior; the exponent is the sum of squares over 2 noise^2.",
        )
    print("Passed: your weights are those of Bayes' rule.")


def _prompts(d: int, n: int) -> regression.Prompts:
    identity = torch.eye(d, dtype=torch.float64)
    return regression.draw_prompts(1, n, identity, generator=torch.Generator().manual_seed(0))
