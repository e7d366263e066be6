"""Checks for the linear transformer."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from explainer.exercises import checks
from explainer.theory import linear_transformer, regression


@checks.check("with one variance for all directions Gamma is a multiple of the identity.")
def isotropic_gamma(reader_fn: Callable[[int, int, float], float]) -> None:
    """Check a function (d, n, variance) -> g with Gamma = g I, for inputs of covariance variance * I.

    Properties: no correction for endless prompts; proportional to the variance; the share of tr(Lambda) and that of
    Lambda itself; the matrix of the package in several settings.
    Raises: AssertionError with a hint.
    """

    def answer(d: int, n: int, variance: float) -> float:
        return checks.run(lambda *sizes: float(reader_fn(*sizes)), d, n, variance)

    checks.require(
        np.isclose(answer(5, 10**12, 1.0), 1),
        "for endless prompts of unit variance Gamma should be the covariance, g = 1; look at what is divided by n.",
    )
    checks.require(
        np.isclose(answer(5, 20, 3.0), 3 * answer(5, 20, 1.0)),
        "three times the variance does not give three times g; both parts of Gamma are proportional to it.",
    )
    checks.require(
        np.isclose(20 * (answer(9, 20, 1.0) - answer(5, 20, 1.0)), 4),
        "four dimensions more should add 4/n to g; look at the trace of the identity.",
    )
    for d, n, variance in [(1, 1, 1.0), (5, 20, 1.0), (3, 7, 0.4)]:
        covariance = variance * torch.eye(d, dtype=torch.float64)
        checks.require(
            np.isclose(answer(d, n, variance), linear_transformer.gamma(covariance, n)[0, 0].item()),
            f"with d = {d}, n = {n} and variance = {variance} g is not the diagonal of Gamma; count the two terms that "
            "are divided by n.",
        )
    print("Passed: g I is Gamma for isotropic inputs, in every setting.")


@checks.check("with X^T X = N Lambda and X^T y = N h, what stands between x_q and h?")
def ridge_attention(reader_fn: Callable[[Tensor, float, int], tuple[Tensor, Tensor]]) -> None:
    """Check a function (covariance (d, d), penalty, n) -> (W_PV, W_KQ), each (d+1, d+1), of one linear layer.

    The layer must predict like ridge regression, (X^T X + penalty I)^-1 X^T y, on every prompt of n examples whose
    X^T X is n times the covariance. (On other prompts no fixed layer can.) All scales (c W_PV, W_KQ / c) are accepted.
    Raises: AssertionError with a hint.
    """

    def agrees(d: int, n: int, penalty: float, seed: int) -> bool:
        prompts, covariance = _whitened_prompts(d, n, seed)
        layer = _call_ridge_attention(reader_fn, covariance, penalty, n)
        predictions = linear_transformer.layer_prediction(layer, prompts)
        return checks.close(predictions, regression.ridge(prompts, penalty), tolerance=1e-6)

    checks.require(
        agrees(3, 12, 1e-9, seed=0),
        "with almost no penalty the layer does not predict like least squares; look at what undoes the covariance, and "
        "at which entries of W_PV and W_KQ read inputs and targets.",
    )
    checks.require(
        agrees(3, 12, 12.0, seed=1),
        "with penalty = n = 12 the layer does not predict like ridge regression; the attention divides by n, and X^T X "
        "does not: see what that does to the penalty.",
    )
    checks.require(
        agrees(4, 30, 2.5, seed=2) and agrees(2, 5, 0.3, seed=3),
        "one setting is right, others are not; look for a number that should depend on d, n or the penalty.",
    )
    print("Passed: where the inputs have exactly the covariance, the layer is ridge regression.")


@checks.check("only E h h^T changes; the noise of different examples is independent, so it enters divided by n.")
def noisy_gamma(reader_fn: Callable[[Tensor, int, float], Tensor]) -> None:
    """Check a function (covariance (d, d), n, noise) -> Gamma, for targets y_i = w^T x_i + noise * N(0, 1).

    Properties: without noise it is Gamma; endless prompts do not feel the noise; at the inverse of the answer the risk
    with noise has no slope, R(A) + noise^2/n tr(A Lambda A^T Lambda).
    Raises: AssertionError with a hint.
    """

    def answer(covariance: Tensor, n: int, noise: float) -> Tensor:
        return checks.call(lambda C: reader_fn(C, n, noise), covariance, shape=tuple(covariance.shape))

    _, covariance = _whitened_prompts(3, 12, seed=0)
    checks.require(
        checks.close(answer(covariance, 12, 0.0), linear_transformer.gamma(covariance, 12)),
        "without noise it should be Gamma, (1 + 1/n) Lambda + tr(Lambda)/n I.",
    )
    checks.require(
        checks.close(answer(covariance, 10**12, 2.0), covariance, tolerance=1e-6),
        "in endless prompts the noise averages out and Gamma is the covariance; look at what is divided by n.",
    )
    for n, noise in ((12, 1.5), (5, 0.3)):
        A = torch.linalg.inv(answer(covariance, n, noise)).requires_grad_()
        extra = noise**2 / n * (A @ covariance @ A.T @ covariance).trace()
        (linear_transformer.population_risk(A, covariance, n) + extra).backward()
        checks.require(
            A.grad.abs().max().item() < 1e-8,
            f"with n = {n} and noise = {noise} the risk still has a slope at the inverse of your matrix; E h h^T has "
            "one new term: noise^2 E x x^T, divided once by n.",
        )
    print("Passed: the inverse of your matrix is the best preconditioner for noisy targets.")


@checks.check("at the end U = Gamma^-1 / u; put this into the imbalance and solve for u^2.")
def landing_point(reader_fn: Callable[[Tensor, int, float], float]) -> None:
    """Check a function (covariance (d, d), n, imbalance) -> u at the end of the flow, for starts with u > 0.

    Raises: AssertionError with a hint.
    """
    covariance = torch.diag(torch.tensor([1.5, 0.8], dtype=torch.float64))
    n = 10
    answer = lambda k: checks.run(lambda C: float(reader_fn(C, n, k)), covariance)  # noqa: E731
    balanced = linear_transformer.closed_form(covariance, n).W_PV[-1, -1].item()
    checks.require(
        np.isclose(answer(0.0), balanced), "with imbalance 0 the end should be the theorem's, u = tr(Gamma^-2)^(1/4)."
    )
    for u, size in ((1.3, 0.1), (0.3, 1.0)):
        start = linear_transformer.initialisation(covariance, n, sigma=0.1)
        U = size * torch.eye(2, dtype=torch.float64)
        start = linear_transformer.LinearAttention(u / 0.1 * start.W_PV, torch.nn.functional.pad(U, (0, 1, 0, 1)))
        end = (
            linear_transformer.gradient_flow(covariance, n, start, duration=60, dt=0.05, record_every=100).u[-1].item()
        )
        k = u**2 - 2 * size**2
        checks.require(
            np.isclose(answer(k), end, atol=1e-4),
            f"with imbalance {k:.2f} the flow ends at u = {end:.4f}, your formula says {answer(k):.4f}; the product is "
            "Gamma^-1 and the imbalance is what it was.",
        )
    print("Passed: the flow lands where you said, from starts of both signs of the imbalance.")


@checks.check("write the new squares out: (u + eta U F)^2 - (U + eta u F)^2; the terms with one eta cancel.")
def step_factor(reader_fn: Callable[[float, float, float, float], float]) -> None:
    """Check a function (u, U, gamma, eta) -> what one step of length eta multiplies u^2 - U^2 with (d = 1).

    Raises: AssertionError with a hint.
    """

    def answer(*point: float) -> float:
        return checks.run(lambda *numbers: float(reader_fn(*numbers)), *point)

    checks.require(
        np.isclose(answer(2.0, 0.25, 2.0, 0.7), 1), "where u U = 1/gamma nothing moves, and the factor should be 1."
    )
    for u, U, g, eta in ((1.8, 0.1, 1.5, 0.45), (0.3, -1.2, 1.1, 0.2), (2.0, 1.5, 1.5, 0.3)):
        F = 1 - g * u * U
        factor = ((u + eta * U * F) ** 2 - (U + eta * u * F) ** 2) / (u**2 - U**2)
        checks.require(
            np.isclose(answer(u, U, g, eta), factor),
            f"at u = {u}, U = {U}, gamma = {g} a step of {eta} multiplies the imbalance by {factor:.4f}, not by "
            f"{answer(u, U, g, eta):.4f}.",
        )
    print("Passed: your factor is that of the step, at three points.")


@checks.check("linearise both equations at the optimum: u moves too, and it couples the directions.")
def slowest_half_life(reader_fn: Callable[[Tensor, int], float]) -> None:
    """Check a function (covariance (d, d), n) -> time in which, at the end, half of what is missing is learned.

    It is log 2 over the smallest of `linear_transformer.final_rates`, from a balanced start.
    Raises: AssertionError with a hint.
    """
    for variances, n in (((0.7,), 5), ((2.0, 0.5), 10), ((1.0, 0.3, 0.6), 20)):
        covariance = torch.diag(torch.tensor(variances, dtype=torch.float64))
        found = checks.run(lambda C, n=n: float(reader_fn(C, n)), covariance)
        u = linear_transformer.closed_form(covariance, n).W_PV[-1, -1].item()
        frozen = u**2 * linear_transformer.gamma(covariance, n).diagonal() * covariance.diagonal() ** 2
        checks.require(
            not np.isclose(found, np.log(2) / frozen.min().item()),
            f"with the variances {variances} and n = {n} your time would be right if u stood still; u moves too, and "
            "brings every direction to its optimum sooner.",
        )
        right = np.log(2) / linear_transformer.final_rates(covariance, n)[0].item()
        checks.require(
            np.isclose(found, right),
            f"with the variances {variances} and n = {n} your time is {found:.4g} and the flow's is {right:.4g}; look "
            "for the smallest eigenvalue of u^2 diag(a) + (sqrt(a) U)(sqrt(a) U)^T, a = gamma lambda^2.",
        )
    print("Passed: your half-lives are those of the flow.")


@checks.check("follow one factor: the covariance of the prompt is multiplied by it, Gamma is not.")
def scaled_prediction(reader_fn: Callable[[float], float]) -> None:
    """Check a function c -> prediction over right answer when every input is multiplied by c, at endless lengths.

    The layer was trained on the inputs as they were; the right answer is <w, c x_q>. The factors to compare with are
    measured on prompts whose inputs have exactly their covariance.
    Raises: AssertionError with a hint.
    """

    def answer(c: float) -> float:
        return checks.run(lambda scale: float(reader_fn(scale)), c)

    checks.require(np.isclose(answer(1.0), 1), "inputs as in training are predicted rightly: c = 1 should give 1.")
    checks.require(
        np.isclose(answer(-1.0), 1),
        "c = -1 mirrors prediction and right answer alike, so the factor should be 1; count how often c enters.",
    )
    prompts, covariance = _whitened_prompts(3, 12, seed=0)
    for c in (2.0, 0.5, 3.0):
        scaled = regression.covariate_shift(prompts, c * prompts.inputs)
        measured = (linear_transformer.prediction(torch.linalg.inv(covariance), scaled) / scaled.y_q)[0].item()
        checks.require(
            np.isclose(answer(c), measured),
            f"for c = {c} your factor is {'larger' if answer(c) > measured else 'smaller'} than the measured one; c "
            "enters through x_q, through x_i and through y_i, and the right answer has its share of it.",
        )
    print("Passed: your factors are the measured ones, for inputs made larger, smaller and mirrored.")


@checks.check("set the two terms of the law equal; with equal eigenvalues gamma cancels.")
def paying_length(reader_fn: Callable[[int, int], float]) -> None:
    """Check a function (d, n) -> M at which longer prompts stop paying, for isotropic inputs and training length n.

    Stopping is meant sharply: the part of the risk that falls as 1/M equals the part that no prompt length removes.
    Raises: AssertionError with a hint.
    """
    for d, n in [(5, 20), (1, 10), (5, 80), (12, 40)]:
        identity = torch.eye(d, dtype=torch.float64)
        A = torch.linalg.inv(linear_transformer.gamma(identity, n))
        length = checks.run(lambda *sizes: float(reader_fn(*sizes)), d, n)
        checks.require(length > 0, f"with d = {d} and n = {n} your length is {length}; it should be above zero.")
        floor = linear_transformer.population_risk(A, identity, float("inf")).item()
        falling = linear_transformer.population_risk(A, identity, length).item() - floor
        checks.require(
            np.isclose(falling, floor),
            f"with d = {d} and n = {n}, at your M = {length:.4g} the part that falls with M is {falling / floor:.3g} "
            "times the part that stays; set the two terms of the isotropic risk equal and solve for M.",
        )
    print("Passed: at your length half of the risk is what no longer prompt removes, in all four settings.")


def _whitened_prompts(d: int, n: int, seed: int) -> tuple[regression.Prompts, Tensor]:
    """Draw prompts with X^T X = n covariance exactly; the query is free. Return them and the covariance."""
    generator = torch.Generator().manual_seed(seed)
    covariance = torch.randn(d, d, generator=generator, dtype=torch.float64)
    covariance = covariance @ covariance.T + 0.5 * torch.eye(d, dtype=torch.float64)
    prompts = regression.draw_prompts(4, n, covariance, generator=generator)
    X = torch.linalg.qr(prompts.X).Q * n**0.5 @ torch.linalg.cholesky(covariance).mT
    inputs = torch.cat([X, prompts.x_q[:, None]], dim=1)
    return regression.covariate_shift(prompts, inputs), covariance


def _call_ridge_attention(
    reader_fn: Callable, covariance: Tensor, penalty: float, n: int
) -> linear_transformer.LinearAttention:
    result, side = checks.run(reader_fn, covariance, penalty, n), len(covariance) + 1
    checks.require(
        isinstance(result, tuple) and len(result) == 2 and all(isinstance(part, Tensor) for part in result),
        "your function should return two tensors, W_PV and W_KQ.",
    )
    for name, matrix in zip(("W_PV", "W_KQ"), result, strict=True):
        checks.require(
            tuple(matrix.shape) == (side, side), f"{name} has shape {tuple(matrix.shape)}; it should be {(side, side)}."
        )
        checks.require(matrix.dtype == torch.float64, f"{name} turned float64 into {matrix.dtype}; keep the dtype.")
    return linear_transformer.LinearAttention(*result)
