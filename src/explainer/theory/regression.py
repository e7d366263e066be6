"""Prompts of regression tasks, shifts of their distribution, and what classical estimators predict from them.

Letters: B prompts of N examples and a query, d inputs per example, w the task, X the inputs of the examples and y their
targets, x_q the query. Every estimator maps prompts to B predictions of the query's target.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from explainer.errors import ShapeError

Label = Callable[[Tensor], Tensor]
_Estimator = Callable[["Prompts"], Tensor]

NONLINEARITIES: MappingProxyType[str, Label] = MappingProxyType(
    {
        "relu": torch.relu,
        "sign": torch.sign,
        "tanh": lambda z: torch.tanh(3 * z),
        "sin": lambda z: torch.sin(2 * z),
        "cubic": lambda z: z**3 / 3,
        "square": torch.square,
    }
)
"""Functions f of tasks y = f(<w, x>) that are not linear: max(z, 0), sign z, tanh 3z, sin 2z, z^3/3 and z^2."""


@dataclass(frozen=True)
class Prompts:
    """B regression prompts of N examples, and the query in the last row."""

    inputs: Float[Tensor, "B rows d"]
    targets: Float[Tensor, "B rows"]
    tasks: Float[Tensor, "B d"]

    def __post_init__(self) -> None:
        """Refuse inputs, targets and tasks that do not belong together."""
        shapes = [tuple(tensor.shape) for tensor in (self.inputs, self.targets, self.tasks)]
        if len(shapes[0]) != 3 or shapes[1] != shapes[0][:2] or shapes[2] != shapes[0][::2]:
            raise ShapeError(
                f"inputs, targets and tasks have shapes {shapes}; they should be (B, N+1, d), (B, N+1) and (B, d)."
            )

    @property
    def n_examples(self) -> int:
        """N, the number of examples before the query."""
        return self.inputs.shape[1] - 1

    @property
    def X(self) -> Float[Tensor, "B N d"]:  # noqa: N802 - the equation's letter
        """Inputs of the examples."""
        return self.inputs[:, :-1]

    @property
    def y(self) -> Float[Tensor, "B N"]:
        """Targets of the examples."""
        return self.targets[:, :-1]

    @property
    def x_q(self) -> Float[Tensor, "B d"]:
        """Inputs of the queries."""
        return self.inputs[:, -1]

    @property
    def y_q(self) -> Float[Tensor, " B"]:
        """Targets of the queries, which no estimator may look at."""
        return self.targets[:, -1]

    def shortened(self, n_examples: int) -> "Prompts":
        """Keep the first n_examples and the query of each prompt."""
        rows = [*range(n_examples), -1]
        return replace(self, inputs=self.inputs[:, rows], targets=self.targets[:, rows])


# Part 1. Drawing prompts.


def turned_covariance(eigenvalues: Sequence[float], *, seed: int) -> Float[Tensor, "d d"]:
    """Return Q diag(eigenvalues) Q^T, symmetric to the last digit, whose eigenvectors are drawn at random."""
    values, generator = torch.tensor(eigenvalues, dtype=torch.float64), torch.Generator().manual_seed(seed)
    Q = torch.linalg.qr(torch.randn(len(values), len(values), generator=generator, dtype=torch.float64)).Q
    covariance = Q @ values.diag() @ Q.mT
    return (covariance + covariance.mT) / 2


def draw_prompts(
    n_prompts: int,
    n_examples: int,
    covariance: Float[Tensor, "*B d d"],
    *,
    generator: torch.Generator,
    tasks: Float[Tensor, "*B d"] | None = None,
    label: Label | None = None,
    noise: float = 0.0,
    dtype: torch.dtype = torch.float64,
) -> Prompts:
    """Draw prompts with x_i, x_q ~ N(0, covariance), w ~ N(0, I) and y = f(<w, x>) + noise * N(0, 1).

    Without a label function, f(z) = z. A covariance (B, d, d) is one for each prompt; tasks replace the drawn w.
    Raises: ValueError if a covariance is not positive definite.
    Source: Zhang, Frei and Bartlett 2024 (arXiv 2306.09927), Definition 3.1 and section 4.
    """
    d = covariance.shape[-1]
    root = _cholesky(covariance.to(dtype))

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=dtype)

    # w, x and the noise are drawn in this order, so that equal seeds give equal w and equal standard normals under
    # another covariance, label or noise.
    w = normal(n_prompts, d)
    if tasks is not None:
        w = tasks.to(dtype).expand(n_prompts, d)
    inputs = normal(n_prompts, n_examples + 1, d) @ root.mT
    z = _inner(w, inputs)
    targets = z if label is None else label(z)
    if noise:
        targets = targets + noise * normal(n_prompts, n_examples + 1)
    return Prompts(inputs, targets, w)


def random_covariances(
    n: int, d: int, generator: torch.Generator, dtype: torch.dtype = torch.float64
) -> Float[Tensor, "n d d"]:
    """Draw n diagonal covariances with independent eigenvalues lambda_i ~ Exp(1).

    Source: Zhang, Frei and Bartlett 2024, section 4.3.
    """
    return torch.empty(n, d, dtype=dtype).exponential_(generator=generator).diag_embed()


def _cholesky(covariance: Tensor) -> Tensor:
    root, failed = torch.linalg.cholesky_ex(covariance)
    if failed.any():
        smallest = torch.linalg.eigvalsh(covariance).min().item()
        raise ValueError(f"the smallest eigenvalue of the covariance is {smallest:.3g}; it should be above zero.")
    return root


def _inner(w: Tensor, inputs: Tensor) -> Tensor:
    """<w, x> for every row x."""
    return (inputs @ w[..., None]).squeeze(-1)


# Part 2. Shifts of the distribution, for linear tasks.


def task_shift(prompts: Prompts, tasks: Float[Tensor, "*B d"]) -> Prompts:
    """Replace the tasks, which must be linear, and keep inputs and noise: y + <w' - w, x>.

    Source: Zhang, Frei and Bartlett 2024, section 4.2.
    """
    w = tasks.expand_as(prompts.tasks)
    return Prompts(prompts.inputs, prompts.targets + _inner(w - prompts.tasks, prompts.inputs), w)


def covariate_shift(prompts: Prompts, inputs: Float[Tensor, "B rows d"]) -> Prompts:
    """Replace all inputs, those of the query included, and keep noise and tasks, which must be linear: y + <w, x' - x>.

    Source: Zhang, Frei and Bartlett 2024, section 4.2.
    """
    if inputs.shape != prompts.inputs.shape:
        raise ShapeError(f"inputs have shape {tuple(inputs.shape)}; it should be {tuple(prompts.inputs.shape)}.")
    return replace(prompts, inputs=inputs, targets=prompts.targets + _inner(prompts.tasks, inputs - prompts.inputs))


def query_shift(prompts: Prompts, queries: Float[Tensor, "*B d"]) -> Prompts:
    """Replace the inputs of the queries alone and keep noise and tasks, which must be linear: y_q + <w, x_q' - x_q>.

    Source: Zhang, Frei and Bartlett 2024, section 4.2.
    """
    return covariate_shift(prompts, torch.cat([prompts.X, queries.expand_as(prompts.x_q)[:, None]], dim=1))


# Part 3. Estimators.


def squared_errors(predictions: Float[Tensor, " B"], prompts: Prompts) -> Float[Tensor, " B"]:
    """Squared error of each prediction of the query's target, (yhat - y_q)^2; its mean estimates the risk."""
    return (predictions - prompts.y_q) ** 2


def weight_vectors(estimator: _Estimator, prompts: Prompts) -> Float[Tensor, "B d"]:
    """The v of an estimator that is linear in the query, yhat = <v, x_q>: its answers to the d unit vectors."""
    units = torch.eye(prompts.x_q.shape[-1]).to(prompts.x_q)
    return torch.stack([estimator(query_shift(prompts, e)) for e in units], dim=1)


def ordinary_least_squares(prompts: Prompts) -> Float[Tensor, " B"]:
    """Predict with the shortest w that minimises ||X w - y||^2: x_q^T X^+ y (unique once N >= d)."""
    return _predict(prompts, _apply(torch.linalg.pinv(prompts.X), prompts.y))


def ridge(prompts: Prompts, penalty: float) -> Float[Tensor, " B"]:
    """Predict with the w that minimises ||X w - y||^2 + penalty ||w||^2: x_q^T (X^T X + penalty I)^-1 X^T y.

    Raises: ValueError unless the penalty is positive; noise^2 gives the posterior mean for w ~ N(0, I).
    """
    if penalty <= 0:
        raise ValueError(f"penalty = {penalty} should be above zero; without one use ordinary_least_squares.")
    S = prompts.X.mT @ prompts.X + penalty * torch.eye(prompts.X.shape[-1]).to(prompts.X)
    return _predict(prompts, torch.linalg.solve(S, _apply(prompts.X.mT, prompts.y)))


def gradient_steps(prompts: Prompts, rates: Sequence[float]) -> Float[Tensor, " B"]:
    """Predict after gradient descent from w = 0 on L(w) = 1/(2N) ||X w - y||^2, one step for each rate.

    w_{t+1} = w_t - rate_t X^T (X w_t - y) / N.
    """
    w = torch.zeros_like(prompts.x_q)
    for rate in rates:
        w = w - rate * _apply(prompts.X.mT, _apply(prompts.X, w) - prompts.y) / prompts.n_examples
    return _predict(prompts, w)


def heavy_ball_steps(prompts: Prompts, rate: float, momentum: float, steps: int) -> Float[Tensor, " B"]:
    """Predict after gradient descent with momentum, from w_0 = w_{-1} = 0 on the same loss as `gradient_steps`.

    w_{t+1} = w_t - rate X^T (X w_t - y) / N + momentum (w_t - w_{t-1}).
    Source: Polyak 1964.
    """
    w = before = torch.zeros_like(prompts.x_q)
    for _ in range(steps):
        gradient = _apply(prompts.X.mT, _apply(prompts.X, w) - prompts.y) / prompts.n_examples
        w, before = w - rate * gradient + momentum * (w - before), w
    return _predict(prompts, w)


def rates_of_momentum(rate: float, momentum: float, steps: int) -> list[float]:
    """The rates with which plain gradient descent from 0 ends where as many steps with momentum do, shortest first.

    They are the inverses of the roots of p_{t+1}(s) = (1 + momentum - rate s) p_t(s) - momentum p_{t-1}(s), p_0 = 1 and
    p_1 = 1 - rate s.
    Raises: ValueError unless the rate is positive and 0 <= momentum < 1.
    Source: derived here from the recursion of heavy ball.
    """
    if not (rate > 0 and 0 <= momentum < 1):
        raise ValueError(f"rate = {rate} should be above zero, momentum = {momentum} in [0, 1).")
    # The roots as eigenvalues of the recursion's own tridiagonal matrix: those of a polynomial lose digits.
    ones = torch.ones(steps, dtype=torch.float64)
    diagonal = (1 + momentum) * ones
    diagonal[:1] = 1.0
    beside = momentum**0.5 * ones[1:]
    matrix = (diagonal.diag() - beside.diag(1) - beside.diag(-1)) / rate
    return sorted((1 / torch.linalg.eigvalsh(matrix)).tolist())


def gradient_plus_plus(prompts: Prompts, rates: Sequence[float], dampings: Sequence[float]) -> Float[Tensor, " B"]:
    """Predict with GD++: gradient descent whose inputs, the query's included, are flattened at every step.

    r_j <- r_j - rate X^T r X_j / N and at once x_j <- (I - damping X^T X / N) x_j, from r_j = y_j, r_q = 0; it is -r_q.
    Source: von Oswald et al. 2023 (arXiv 2212.07677), GD++.
    """
    X, r, x_q, r_q = prompts.X, prompts.y, prompts.x_q, torch.zeros_like(prompts.y_q)
    for rate, damping in zip(rates, dampings, strict=True):
        gradient = _apply(X.mT, r) / prompts.n_examples
        S = X.mT @ X / prompts.n_examples
        r, r_q = r - rate * _apply(X, gradient), r_q - rate * (x_q * gradient).sum(-1)
        X, x_q = X - damping * X @ S, x_q - damping * _apply(S, x_q)
    return -r_q


def newton_iterations(
    prompts: Prompts, iterations: int, start: Literal["fu", "identity"] = "fu"
) -> Float[Tensor, " B"]:
    """Predict with w_k = M_k X^T y / N, M_{k+1} = 2 M_k - M_k S M_k, where M_k approaches the inverse of S = X^T X / N.

    `start` "fu" is M_0 = S / ||S||^2; "identity" is M_0 = I / ||S||.
    Source: Fu et al. 2024 (arXiv 2310.17086).
    """
    S = prompts.X.mT @ prompts.X / prompts.n_examples
    norm = torch.linalg.matrix_norm(S, ord=2)[:, None, None]
    M = S / norm**2 if start == "fu" else torch.eye(S.shape[-1], dtype=S.dtype) / norm
    for _ in range(iterations):
        M = 2 * M - M @ S @ M
    return _predict(prompts, _apply(M, _apply(prompts.X.mT, prompts.y)) / prompts.n_examples)


def _apply(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector[..., None]).squeeze(-1)


def _predict(prompts: Prompts, w: Tensor) -> Tensor:
    return (prompts.x_q * w).sum(-1)
