"""A transformer that can be solved: linear self-attention trained on prompts of linear regression tasks.

Letters: prompts, B, N, d, w, X, y, x_q as in `regression`; M the number of examples of a test prompt, where it
differs from the N of training; Lambda the covariance of the inputs, Gamma the matrix whose inverse the transformer
learns, h = (1/M) sum_i y_i x_i. Layers act on embeddings E (B, d+1, N+1) whose columns are the tokens (x_i, y_i).
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from explainer.errors import DivergenceError
from explainer.theory.optimisation import LARGEST_GRADIENT, clipped_step
from explainer.theory.regression import Label, Prompts, draw_prompts, squared_errors

_Draw = Callable[[torch.Generator], Prompts]

_WARM_UP = 0.1
_RECORD_EVERY = 10


# Part 1. One layer and its optimum.


class LinearAttention(NamedTuple):
    """The two matrices (d+1, d+1) of a layer: W_PV, projection times values, and W_KQ, keys times queries."""

    W_PV: Float[Tensor, "*L D D"]
    W_KQ: Float[Tensor, "*L D D"]


def embedding(prompts: Prompts) -> Float[Tensor, "B D columns"]:
    """Write prompts as E = [[x_1 ... x_N x_q], [y_1 ... y_N 0]]: one column per token, the query's target left out."""
    y = torch.cat([prompts.y, torch.zeros_like(prompts.y_q)[:, None]], dim=1)
    return torch.cat([prompts.inputs, y[..., None]], dim=2).mT


def linear_self_attention(
    E: Float[Tensor, "B D columns"], layer: LinearAttention, *, mask_query: bool = False
) -> Float[Tensor, "B D columns"]:
    """Apply one layer without softmax: f(E) = E + W_PV E (E^T W_KQ E) / N; a masked query is neither key nor value.

    Source: Zhang, Frei and Bartlett 2024, Eq. 3.2; the mask, Ahn et al. 2023 (arXiv 2306.00297).
    """
    n = E.shape[-1] - 1
    attended = E[..., :n] if mask_query else E
    return E + layer.W_PV @ attended @ (attended.mT @ layer.W_KQ @ E) / n


def layer_prediction(layer: LinearAttention, prompts: Prompts) -> Float[Tensor, " B"]:
    """Read one layer's prediction of y_q, the bottom right entry of f(E), without computing the others."""
    E = embedding(prompts)
    attended = E @ (E.mT @ (layer.W_KQ @ E[..., -1:])) / prompts.n_examples
    return (layer.W_PV[-1] @ attended).squeeze(-1)


def prediction(A: Float[Tensor, "d d"], prompts: Prompts) -> Float[Tensor, " B"]:
    """Predict with one preconditioned gradient step: yhat = x_q^T A h, h = (1/M) sum_i y_i x_i.

    It is the layer's prediction with A = u U^T, u the last entry of W_PV and U the (d, d) block of W_KQ.
    Source: Zhang, Frei and Bartlett 2024, section 4.1, for A = Gamma^-1.
    """
    h = (prompts.y[..., None] * prompts.X).mean(1)
    return (prompts.x_q * (h @ A.T)).sum(-1)


def gamma(covariance: Float[Tensor, "*n d d"], n: float) -> Float[Tensor, "*n d d"]:
    """Gamma = (1 + 1/N) Lambda + tr(Lambda)/N I, whose inverse is the preconditioner learned; n may be math.inf.

    Source: Zhang, Frei and Bartlett 2024, Theorem 4.1.
    """
    return (1 + 1 / n) * covariance + _trace(covariance)[..., None, None] / n * _eye(covariance)


def closed_form(covariance: Float[Tensor, "d d"], n: float, *, imbalance: float = 0.0) -> LinearAttention:
    """Return the limit of gradient flow: W_KQ = c^-1 [[Gamma^-1, 0], [0, 0]], W_PV = c [[0, 0], [0, 1]].

    With the imbalance k = u^2 - ||U||_F^2 of the start, c^2 = (k + sqrt(k^2 + 4 tr(Gamma^-2))) / 2.
    Source: Zhang, Frei and Bartlett 2024, Theorem 4.1 for k = 0; other k, own.
    """
    inverse = torch.linalg.inv(gamma(covariance, n))
    c = ((imbalance + (imbalance**2 + 4 * _trace(inverse @ inverse)) ** 0.5) / 2) ** 0.5
    return _layer(c, inverse / c)


def population_risk(A: Float[Tensor, "*n d d"], covariance: Float[Tensor, "*n d d"], m: float) -> Float[Tensor, "*n"]:
    """E (x_q^T A h - y_q)^2 over tasks w ~ N(0, I), for any A: tr(A S A^T Lambda) - 2 tr(A Lambda^2) + tr(Lambda).

    S = Lambda Gamma_M; the covariance is that of the test prompts. m may be math.inf.
    Source: moments of Gaussian prompts; with A = Gamma^-1, Zhang, Frei and Bartlett 2024, Theorem 4.2.
    """
    S = covariance @ gamma(covariance, m)
    return _trace(A @ S @ A.mT @ covariance) - 2 * _trace(A @ covariance @ covariance) + _trace(covariance)


class _ErrorParts(NamedTuple):
    """The mean squared error of the implied weights in two parts: that of their mean, and that of their spread."""

    bias: Float[Tensor, ""]
    scatter: Float[Tensor, ""]

    @property
    def total(self) -> Float[Tensor, ""]:
        """E (yhat - y_q)^2."""
        return self.bias + self.scatter


def error_parts(
    A: Float[Tensor, "d d"], covariance: Float[Tensor, "d d"], m: float, *, task: Float[Tensor, " d"] | None = None
) -> _ErrorParts:
    """Split E (x_q^T (w_hat - w))^2, w_hat = A h: bias |(A Lambda - I) w|^2_Lambda and scatter tr(Lambda Cov w_hat).

    Cov h = (1/m) [(w^T Lambda w) Lambda + Lambda w w^T Lambda]. Without `task` both are means over w ~ N(0, I), and
    their sum is `population_risk`. m may be math.inf.
    """
    identity = _eye(covariance)
    W = identity if task is None else torch.outer(task, task)
    off = A @ covariance - identity
    of_h = (_trace(covariance @ W) * covariance + covariance @ W @ covariance) / m
    return _ErrorParts(_trace(off @ W @ off.mT @ covariance), _trace(covariance @ A @ of_h @ A.mT))


def optimal_preconditioner(covariances: Float[Tensor, "n d d"], n: float) -> Float[Tensor, "d d"]:
    """Find the one A of least mean risk over covariances at N examples: mean(Lambda A Lambda Gamma) = mean(Lambda^2).

    Source: Zhang, Frei and Bartlett 2024, Theorem 4.5, for diagonal covariances.
    """
    d = covariances.shape[-1]
    S = covariances @ gamma(covariances, n)
    system = torch.einsum("nij,nlk->ikjl", covariances, S).reshape(d * d, d * d) / len(covariances)
    return torch.linalg.solve(system, (covariances @ covariances).mean(0).flatten()).reshape(d, d)


def exponential_preconditioner(d: int, n: float) -> float:
    """Return a of the best single A = a I when lambda_i ~ Exp(1) anew in every prompt: a = 1 / (3 + (d + 5)/N).

    Source: Zhang, Frei and Bartlett 2024, Theorem 4.5 and below, with E lambda^2 = 2 and E lambda^3 = 6.
    """
    return 1 / (3 + (d + 5) / n)


def exponential_relative_risk(a: float, d: int, m: float) -> float:
    """Risk of A = a I over that of predicting 0 when lambda_i ~ Exp(1): a^2 (6 + (2d + 10)/M) - 4a + 1."""
    return a**2 * (6 + (2 * d + 10) / m) - 4 * a + 1


# Part 2. Theorem 4.2: the risk on one task, linear or not.


class _LabelMoments(NamedTuple):
    """What Theorem 4.2 needs to know of a task: a = Lambda^-1 E[x y], Sigma = Cov(x y), and min_v E(<v, x> - y)^2."""

    a: Float[Tensor, " d"]
    Sigma: Float[Tensor, "d d"]
    best_linear: float


class _RiskTerms(NamedTuple):
    """The risk on one task in three parts: the best linear predictor's, that of the test length, of the training."""

    best_linear: float
    test_length: float
    training_length: float

    @property
    def total(self) -> float:
        """E (yhat - y_q)^2."""
        return sum(self)


def label_moments(
    task: Float[Tensor, " d"],
    covariance: Float[Tensor, "d d"],
    *,
    label: Label | None = None,
    noise: float = 0.0,
) -> _LabelMoments:
    """Compute the moments of y = f(<w, x>) + noise * N(0, 1) for x ~ N(0, covariance), from three of z = <w, x>.

    Raises: ValueError if w is zero.
    """
    b = covariance @ task
    variance = (task @ b).item()
    if not variance > 0:
        raise ValueError(f"the task {task.tolist()} has <w, x> = 0 for every x; choose another w.")
    # An even number of points has zero between two: at a jump there, rounding would choose the side.
    z = math.sqrt(variance) * torch.linspace(-9, 9, 18000, dtype=torch.float64)
    density = torch.exp(-(z**2) / (2 * variance))
    density /= density.sum()
    f = z if label is None else label(z)
    ff, zf, zzff = ((density * moment).sum().item() for moment in (f * f, z * f, z * z * f * f))
    direction = torch.outer(b, b) / variance
    second_moment = zzff / variance * direction + ff * (covariance - direction) + noise**2 * covariance
    return _LabelMoments(
        a=task * zf / variance,
        Sigma=second_moment - direction * zf**2 / variance,
        best_linear=ff - zf**2 / variance + noise**2,
    )


def risk_terms(moments: _LabelMoments, covariance: Float[Tensor, "d d"], n: float, m: float) -> _RiskTerms:
    """Split the risk on one task of the transformer trained at N and tested at M examples, as Theorem 4.2 does.

        min_v E(<v, x> - y)^2 + (1/M) tr[Sigma Gamma^-2 Lambda]
        + (1/N^2) [|a|^2_{Gamma^-2 Lambda^3} + 2 t |a|^2_{Gamma^-2 Lambda^2} + t^2 |a|^2_{Gamma^-2 Lambda}]
    with |a|^2_B = a^T B a, t = tr(Lambda).
    Source: Zhang, Frei and Bartlett 2024, Theorem 4.2.
    """
    inverse = torch.linalg.inv(gamma(covariance, n))
    Gamma_2, tr, a = inverse @ inverse, _trace(covariance), moments.a
    norms = [a @ Gamma_2 @ torch.linalg.matrix_power(covariance, power) @ a for power in (3, 2, 1)]
    return _RiskTerms(
        best_linear=moments.best_linear,
        test_length=(_trace(moments.Sigma @ Gamma_2 @ covariance) / m).item(),
        training_length=((norms[0] + 2 * tr * norms[1] + tr**2 * norms[2]) / n**2).item(),
    )


# How many examples are needed, for linear tasks without noise, whose best linear predictor makes no error.


def excess_risk(covariance: Float[Tensor, "d d"], n: float, m: float) -> float:
    """Risk above that of the best linear predictor of the transformer trained at N and tested at M, mean over w.

        R(N, M) = (1/M) sum_i l_i^2 (l_i + t) / g_i^2 + (1/N^2) sum_i l_i (l_i + t)^2 / g_i^2
    with the eigenvalues l_i of the covariance, t their sum and g_i = (1 + 1/N) l_i + t/N. Both lengths may be math.inf.
    Source: Zhang, Frei and Bartlett 2024, Theorem 4.2.
    """
    values = torch.linalg.eigvalsh(covariance)
    t = values.sum()
    share = values / ((1 + 1 / n) * values + t / n) ** 2
    return (share * values * (values + t)).sum().item() / m + (share * (values + t) ** 2).sum().item() / n**2


class _LengthsNeeded(NamedTuple):
    """Numbers of examples, by a bound or exactly, of test prompts, of training prompts, or of both alike."""

    test_by_bound: int
    both: int
    training_by_bound: int
    training: int


def lengths_needed(covariance: Float[Tensor, "d d"], epsilon: float) -> _LengthsNeeded:
    """Count the examples that bring R(N, M) down to epsilon, by Corollary 4.3 and exactly.

        test_by_bound: M >= (d + 1) t / epsilon,   training_by_bound: N^2 >= (1 + 2d + d^2 kappa) t / epsilon
    with t = tr(Lambda), kappa the largest eigenvalue over the smallest. `both` and `training` are the least N with
    R(N, N) <= epsilon and R(N, infinity) <= epsilon.
    Raises: ValueError unless epsilon is positive.
    Source: Zhang, Frei and Bartlett 2024, Corollary 4.3.
    """
    if not epsilon > 0:
        raise ValueError(f"epsilon = {epsilon} should be above zero: no finite length has no error.")
    values = torch.linalg.eigvalsh(covariance)
    d, t, kappa = len(values), values.sum().item(), (values[-1] / values[0]).item()
    bounds = (d + 1) * t / epsilon, math.sqrt((1 + 2 * d + d**2 * kappa) * t / epsilon)
    test, training = (math.ceil(bound * (1 - 1e-12)) for bound in bounds)  # a whole number but for rounding is whole
    return _LengthsNeeded(
        test,
        _least(lambda n: excess_risk(covariance, n, n), epsilon),
        training,
        _least(lambda n: excess_risk(covariance, n, math.inf), epsilon),
    )


def _least(risk: Callable[[int], float], epsilon: float) -> int:
    """The least whole n with risk(n) <= epsilon, by doubling and halving; the risk falls with n, to zero."""
    high = 1
    while risk(high) > epsilon:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if risk(middle) <= epsilon else (middle, high)
    return high


# Part 3. Training one layer.


@dataclass(frozen=True)
class _Trajectory:
    """A training run: T times (steps, or time of a flow), the matrices at each, and the risks E(yhat - y)^2.

    Risks are twice the paper's loss; exact for a flow, those of the batch at hand for an optimiser.
    """

    times: Float[Tensor, " T"]
    W_PV: Float[Tensor, "T D D"]
    W_KQ: Float[Tensor, "T D D"]
    risks: Float[Tensor, " T"]

    @property
    def u(self) -> Float[Tensor, " T"]:
        """The last entry of W_PV."""
        return self.W_PV[:, -1, -1]

    @property
    def U(self) -> Float[Tensor, "T d d"]:  # noqa: N802 - the equation's letter
        """The block of W_KQ that compares inputs with inputs."""
        return self.W_KQ[:, :-1, :-1]

    @property
    def preconditioners(self) -> Float[Tensor, "T d d"]:
        """A = u U^T, which alone decides the prediction: (c u, U / c) predicts alike for every c."""
        return self.u[:, None, None] * self.U.mT

    @property
    def imbalance(self) -> Float[Tensor, " T"]:
        """u^2 - ||U||_F^2, which gradient flow conserves and no optimiser with steps or noise does."""
        return self.u**2 - (self.U**2).sum((1, 2))

    @property
    def final(self) -> LinearAttention:
        """The layer at the end of the run."""
        return LinearAttention(self.W_PV[-1], self.W_KQ[-1])


def initialisation(
    covariance: Float[Tensor, "d d"], n: float, *, sigma: float, theta: Float[Tensor, "d k"] | None = None
) -> LinearAttention:
    """Return a start from which the theorem holds: u = sigma, U = sigma Theta Theta^T / ||Theta Theta^T||_F, else 0.

    Raises: ValueError unless 0 < sigma, sigma^2 ||Gamma||_op sqrt(d) < 2 and Theta^T Lambda is not zero.
    Source: Zhang, Frei and Bartlett 2024, Assumption 3.3 and Theorem 4.1.
    """
    root_d = math.sqrt(len(covariance))
    largest = math.sqrt(2 / (torch.linalg.matrix_norm(gamma(covariance, n), ord=2).item() * root_d))
    if not 0 < sigma < largest:
        raise ValueError(
            f"sigma = {sigma} is outside (0, {largest:.4g}), where convergence is proved; choose it there."
        )
    theta = _eye(covariance) if theta is None else theta
    if not (theta.mT @ covariance).any():
        raise ValueError("Theta^T Lambda is zero: gradient flow would stay where it is; choose another theta.")
    square = theta @ theta.mT
    U = sigma * square / torch.linalg.matrix_norm(square)
    return _layer(U.new_tensor(sigma), U)


def train_by_gradient_flow(
    covariance: Float[Tensor, "d d"],
    n: float,
    initial: LinearAttention,
    *,
    duration: float,
    dt: float = 0.025,
    record_every: int = 1,
) -> _Trajectory:
    """Follow gradient flow on the population loss 1/2 E(yhat - y_q)^2 by the classical Runge-Kutta method.

        du/dt = <U, F>,   dU/dt = u F,   F = Lambda^2 - u S U Lambda,   S = Lambda Gamma.
    Raises: DivergenceError if dt is too long for the flow.
    Source: Zhang, Frei and Bartlett 2024, section 5.
    """
    force, (u, U) = _force(covariance, n), _read(initial)

    def slope(u: Tensor, U: Tensor) -> tuple[Tensor, Tensor]:
        F = force(u, U)
        return (U * F).sum(), u * F

    steps, states = round(duration / dt), [(u, U)]
    for step in range(1, steps + 1):
        u, U = _runge_kutta_step(slope, u, U, dt)
        if step % record_every == 0:
            states.append((u, U))
    if not U.isfinite().all():
        raise DivergenceError(f"gradient flow became infinite with dt = {dt}; choose a shorter dt.")
    return _trajectory(states, dt * record_every * torch.arange(len(states), dtype=torch.float64), covariance, n)


def train_by_gradient_descent(
    covariance: Float[Tensor, "d d"], n: float, initial: LinearAttention, *, rate: float, steps: int
) -> _Trajectory:
    """Descend on the population loss 1/2 E(yhat - y_q)^2 with steps of finite length; times are rate times steps.

        u <- u + rate <U, F>,   U <- U + rate u F,   F as in `train_by_gradient_flow`
    Raises: DivergenceError if the rate is too long.
    """
    force, states = _force(covariance, n), [_read(initial)]
    for _ in range(steps):
        u, U = states[-1]
        F = force(u, U)
        states.append((u + rate * (U * F).sum(), U + rate * u * F))
    if not states[-1][1].isfinite().all():
        raise DivergenceError(f"gradient descent became infinite with rate = {rate}; choose a smaller rate.")
    return _trajectory(states, rate * torch.arange(steps + 1, dtype=torch.float64), covariance, n)


def descend_as_sgd(
    covariance: Float[Tensor, "d d"], n: float, initial: LinearAttention, *, rate: float, steps: int
) -> _Trajectory:
    """Descend on the exact risk as `train_on_tasks` does with plain SGD: its schedule, its clipping, but no noise.

        (u, U) <- (u, U) - rate_t min(1, 1/|g|) g,   g = -2 (<U, F>, u F),   F as in `train_by_gradient_flow`
    Times are steps.
    """
    force, states = _force(covariance, n), [_read(initial)]
    for step in range(steps):
        u, U = states[-1]
        F = force(u, U)
        g_u, g_U = -2 * (U * F).sum(), -2 * u * F
        length = torch.sqrt(g_u**2 + (g_U**2).sum())
        scale = rate * _rate_share(step / steps) * min(1.0, LARGEST_GRADIENT / length.item())
        states.append((u - scale * g_u, U - scale * g_U))
    return _trajectory(states, torch.arange(steps + 1, dtype=torch.float64), covariance, n)


def stable_rate(layer: LinearAttention, covariance: Float[Tensor, "d d"], n: float) -> float:
    """Return the largest rate at which `train_by_gradient_descent` stays at a minimum: 2 over the largest curvature."""
    d = len(covariance)
    point = torch.cat([layer.W_PV[-1, -1:], layer.W_KQ[:-1, :-1].flatten()])

    def loss(entries: Tensor) -> Tensor:
        return population_risk(entries[0] * entries[1:].reshape(d, d).mT, covariance, n) / 2

    return 2 / torch.linalg.eigvalsh(torch.autograd.functional.hessian(loss, point))[-1].item()


def _read(layer: LinearAttention) -> tuple[Tensor, Tensor]:
    """The entries u and U, which are all that the flow moves."""
    return layer.W_PV[-1, -1], layer.W_KQ[:-1, :-1]


def _force(covariance: Tensor, n: float) -> Callable[[Tensor, Tensor], Tensor]:
    """F(u, U) = Lambda^2 - u S U Lambda, S = Lambda Gamma: the loss falls along (<U, F>, u F)."""
    S, Lambda_2 = covariance @ gamma(covariance, n), covariance @ covariance
    return lambda u, U: Lambda_2 - u * S @ U @ covariance


def _trajectory(states: list[tuple[Tensor, Tensor]], times: Tensor, covariance: Tensor, n: float) -> _Trajectory:
    layers = [_layer(u, U) for u, U in states]
    risks = population_risk(torch.stack([u * U.mT for u, U in states]), covariance, n)
    W_PV, W_KQ = (torch.stack(matrices) for matrices in zip(*layers, strict=True))
    return _Trajectory(times, W_PV, W_KQ, risks)


def _runge_kutta_step(slope: Callable, u: Tensor, U: Tensor, dt: float) -> tuple[Tensor, Tensor]:
    k_1, K_1 = slope(u, U)
    k_2, K_2 = slope(u + dt / 2 * k_1, U + dt / 2 * K_1)
    k_3, K_3 = slope(u + dt / 2 * k_2, U + dt / 2 * K_2)
    k_4, K_4 = slope(u + dt * k_3, U + dt * K_3)
    return u + dt / 6 * (k_1 + 2 * k_2 + 2 * k_3 + k_4), U + dt / 6 * (K_1 + 2 * K_2 + 2 * K_3 + K_4)


def learning_times(
    trajectory: _Trajectory, covariance: Float[Tensor, "d d"], n: float, *, level: float = 0.9
) -> Float[Tensor, " d"]:
    """Time at which each eigen-direction v of the covariance is learned: v^T A v reaches level / (v^T Gamma v).

    In ascending order of eigenvalues, linear between the recorded times; infinite if the run does not get there.
    """
    _, V = torch.linalg.eigh(covariance)
    learned = torch.einsum("ik,tij,jk->tk", V, trajectory.preconditioners, V) * (V.mT @ gamma(covariance, n) @ V).diag()
    times = torch.full((len(covariance),), math.inf, dtype=torch.float64)
    for k, share in enumerate(learned.unbind(1)):
        reached = (share >= level).nonzero()
        if len(reached):
            after = int(reached[0])
            before = max(after - 1, 0)
            part = (level - share[before]) / (share[after] - share[before]) if after else 0.0
            times[k] = torch.lerp(trajectory.times[before], trajectory.times[after], part)
    return times


def train_on_tasks(
    covariance: Float[Tensor, "d d"],
    n: int,
    optimiser: Callable[..., torch.optim.Optimizer],
    *,
    rate: float,
    steps: int,
    seed: int,
    sigma: float = 0.3,
    batch: int = 512,
) -> _Trajectory:
    """Train all entries of one layer from `initialisation` on fresh prompts of linear tasks at every step, in float32.

    `train_on_tasks(Lambda, 20, torch.optim.Adam, rate=0.02, steps=1000, seed=0)`. The loss is the mean of (yhat -
    y_q)^2.  The rate rises over a tenth of the steps and falls to zero along half a cosine, gradients longer than 1 are
    shortened to 1, and every tenth state is recorded.
    Raises: DivergenceError when the loss is no longer finite.
    """
    parameters = [matrix.float().requires_grad_() for matrix in initialisation(covariance, n, sigma=sigma)]
    layer, states, risks = LinearAttention(*parameters), [], []

    def draw(generator: torch.Generator) -> Prompts:
        return draw_prompts(batch, n, covariance, generator=generator, dtype=torch.float32)

    losses = descend_on_prompts(
        optimiser(parameters, lr=rate), lambda prompts: layer_prediction(layer, prompts), draw, steps=steps, seed=seed
    )
    for step, loss in enumerate(losses):
        if step % _RECORD_EVERY == 0:
            risks.append(loss)
            states.append([matrix.detach().clone() for matrix in parameters])
    times = _RECORD_EVERY * torch.arange(len(states), dtype=torch.float64)
    W_PV, W_KQ = (torch.stack(matrices) for matrices in zip(*states, strict=True))
    return _Trajectory(times, W_PV, W_KQ, torch.tensor(risks, dtype=torch.float64))


def descend_on_prompts(
    optimiser: torch.optim.Optimizer, predict: Callable[[Prompts], Tensor], draw: _Draw, *, steps: int, seed: int
) -> Iterator[float]:
    """Descend on the squared error of fresh prompts; yield each step's loss before the step, and at last the loss left.

    The schedule is that of `train_on_tasks`. Raises: DivergenceError when the loss is no longer finite.
    """
    generator, largest_rate = torch.Generator().manual_seed(seed), optimiser.defaults["lr"]
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    for step in range(steps + 1):
        prompts = draw(generator)
        loss = squared_errors(predict(prompts), prompts).mean()
        if not loss.isfinite():
            raise DivergenceError(f"the loss at step {step} is {loss.item()}; lower the learning rate.")
        yield loss.item()
        if step < steps:
            # A polynomial of high degree in Gaussians: single batches have enormous gradients, which are clipped.
            clipped_step(parameters, optimiser, loss, largest_rate * _rate_share(step / steps), step)


def _rate_share(progress: float) -> float:
    """Share of the learning rate after a share of the steps: a rise from nearly zero, then half a cosine."""
    if progress < _WARM_UP:
        return max(progress / _WARM_UP, 1e-3)
    return (1 + math.cos(math.pi * (progress - _WARM_UP) / (1 - _WARM_UP))) / 2


# Part 4. Several layers: von Oswald's construction.


def gradient_layer(
    d: int, rate: float | Float[Tensor, "*L"], damping: float | Float[Tensor, "*L"] = 0.0
) -> LinearAttention:
    """Construct a layer that takes one step of gradient descent, or of GD++ if there is damping, in float64.

    W_KQ = [[I, 0], [0, 0]], W_PV = -[[damping I, 0], [0, rate]]; `layerwise_prediction` reads it. Tensors of rates and
    dampings give as many layers, stacked, in their number format.
    Source: von Oswald et al. 2023 (arXiv 2212.07677), Proposition 1 with W_0 = 0, and GD++.
    """
    rate = (rate if isinstance(rate, Tensor) else torch.tensor(rate, dtype=torch.float64))[..., None]
    ones = torch.ones_like(rate).expand(*rate.shape[:-1], d)
    dampings = torch.as_tensor(damping, dtype=rate.dtype)[..., None] * ones
    return LinearAttention(-torch.cat([dampings, rate], -1).diag_embed(), torch.cat([ones, 0 * rate], -1).diag_embed())


def stacked(layers: Iterable[LinearAttention]) -> LinearAttention:
    """Stack L layers into one pair of tensors (L, d+1, d+1), as the functions on deep transformers take them."""
    return LinearAttention(*map(torch.stack, zip(*layers, strict=True)))


def layerwise_prediction(layers: LinearAttention, prompts: Prompts, *, mask_query: bool = True) -> Float[Tensor, " B"]:
    """Apply L layers to the embedding and predict *minus* the bottom right entry, a residual 0 - <w, x_q>.

    Source: von Oswald et al. 2023, section 3.
    """
    E = embedding(prompts)
    for layer in zip(*layers, strict=True):
        E = linear_self_attention(E, LinearAttention(*layer), mask_query=mask_query)
    return -E[:, -1, -1]


def _layer(u: Tensor, U: Tensor) -> LinearAttention:
    """The layer whose only entries are u, last of W_PV, and U, which compares inputs with inputs in W_KQ."""
    pad = torch.nn.functional.pad
    return LinearAttention(W_PV=pad(u.reshape(1, 1), (len(U), 0, len(U), 0)), W_KQ=pad(U, (0, 1, 0, 1)))


def _eye(like: Tensor) -> Tensor:
    return torch.eye(like.shape[-1], dtype=like.dtype, device=like.device)


def _trace(matrix: Tensor) -> Tensor:
    return matrix.diagonal(dim1=-2, dim2=-1).sum(-1)
