"""Wrong labels in linear regression in context: what a layer with a prior learns when labels are flipped.

Letters: N examples x_i ~ N(0, I) in d dimensions with targets y_i = w . x_i + noise e_i, of standard deviation sigma;
each target is turned to -y_i with probability p, independently. The prior is w ~ N(w_0, tau^2 I): w_0 is the answer
without examples. One gradient step at w_0 with the rate eta learns

    w_hat = w_0 + (eta / N) sum_i x_i (y~_i - w_0 . x_i).
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from explainer.errors import ShapeError


def effective_rate(n_examples: int, d: int, prior_strength: float = 0.0) -> float:
    """The best rate of the step, eta = N / (N + m), with m = d + 1 + sigma^2 / tau^2.

    It minimises the risk over tasks of the prior with right labels: the scatter of the mean of N examples counts as
    (d + 1) / N of the signal, their noise as sigma^2 / (tau^2 N). `prior_strength` = sigma^2 / tau^2 is what the prior
    is worth in examples; d + 1 is the price of a single step, which is due without noise and with a prior that says
    nothing, where least squares would leave no error at all.
    Raises: ValueError if the number of examples or the strength is negative.
    Source: Zhang, Frei & Bartlett 2024, Gamma^-1 for Lambda = I; with noise and w_0 by the same square.
    """
    if n_examples < 0 or prior_strength < 0:
        raise ValueError(f"n_examples = {n_examples} and prior_strength = {prior_strength}; neither may be negative.")
    return n_examples / (n_examples + d + 1 + prior_strength)


def left_over(n_examples: int, d: int, prior_strength: float = 0.0) -> float:
    """What the best step leaves of the prior's expected squared error: 1 - eta = m / (N + m), m as in `effective_rate`.

    Raises: ValueError as `effective_rate`.
    Source: `risk` over w ~ N(w_0, tau^2 I) at p = 0, which is tau^2 d [(1 - eta)^2 + eta^2 m / N].
    """
    return 1 - effective_rate(n_examples, d, prior_strength)


def prior_strength(w: Float[Tensor, " d"], w_0: Float[Tensor, " d"], noise: float) -> float:
    """What a prior is worth where its distance from the task is known: sigma^2 / tau^2 with tau^2 = ||w - w_0||^2 / d.

    `effective_rate` with it is the best rate for this task: it minimises `risk` at p = 0.
    Raises: ZeroDivisionError for a prior that is exact.
    """
    return noise**2 * len(w) / ((w - w_0) @ (w - w_0)).item()


def flipped(targets: Float[Tensor, "*batch N"], p: float, generator: torch.Generator) -> Float[Tensor, "*batch N"]:
    """Turn each target to its negative with probability p, independently.

    Raises: ValueError if p is not a probability.
    """
    wrong = torch.rand(targets.shape, generator=generator, dtype=targets.dtype) < _probability(p)
    return torch.where(wrong, -targets, targets)


def learned_weights(
    inputs: Float[Tensor, "*batch N d"], targets: Float[Tensor, "*batch N"], w_0: Float[Tensor, " d"], rate: float
) -> Float[Tensor, "*batch d"]:
    """One gradient step at the prior: w_hat = w_0 + (eta / N) sum_i x_i (y_i - w_0 . x_i).

    With w_0 = 0 it is a trained layer of linear attention, w_hat = A h with A = eta I.
    Source: Zhang, Frei & Bartlett 2024, Theorem 4.1, with the errors at w_0 in the place of the targets.
    """
    if inputs.shape[:-1] != targets.shape or inputs.shape[-1:] != w_0.shape:
        raise ShapeError(
            f"inputs {tuple(inputs.shape)}, targets {tuple(targets.shape)} and w_0 {tuple(w_0.shape)}; they should be "
            "(..., N, d), (..., N) and (d,)."
        )
    errors = targets - inputs @ w_0
    return w_0 + rate * (inputs * errors[..., None]).mean(-2)


def expected_weights(w: Float[Tensor, " d"], w_0: Float[Tensor, " d"], p: float, rate: float) -> Float[Tensor, " d"]:
    """Expect, over inputs, flips and noise, E w_hat = (1 - eta) w_0 + eta (1 - 2 p) w.

    A prior that is right, w_0 = w, gives w (1 - 2 p eta); no prior, w_0 = 0, gives eta (1 - 2 p) w.
    Raises: ValueError if p is not a probability.
    Source: ours, from E x x^T = I and E s = 1 - 2 p for a sign s that is -1 with probability p.
    """
    return (1 - rate) * w_0 + rate * (1 - 2 * _probability(p)) * w


class Risk(NamedTuple):
    """The two parts of E ||w_hat - w||^2: the squared distance of the mean, and the scatter around it."""

    bias: float
    scatter: float

    @property
    def total(self) -> float:
        """Their sum, the expected squared error on a new input x ~ N(0, I)."""
        return self.bias + self.scatter


def risk(  # noqa: PLR0917
    w: Float[Tensor, " d"], w_0: Float[Tensor, " d"], p: float, rate: float, n_examples: int, noise: float = 0.0
) -> Risk:
    """Split E ||w_hat - w||^2 into ||E w_hat - w||^2 and (eta^2 / N) [(d+2) E ||s w - w_0||^2 + d sigma^2 - ||m||^2].

    E ||s w - w_0||^2 = ||w||^2 + ||w_0||^2 - 2 (1 - 2 p) w . w_0 is the mean over right and wrong labels, and
    m = (1 - 2 p) w - w_0.
    Raises: ValueError if p is not a probability or there is no example.
    Source: ours, from E ||x||^2 x x^T = (d + 2) I for x ~ N(0, I). At p = 0 and w_0 = 0 it is the risk of the trained
    layer of Zhang, Frei & Bartlett 2024.
    """
    if n_examples < 1:
        raise ValueError(f"n_examples = {n_examples}; without examples the layer answers with w_0 and has no scatter.")
    d, kept = len(w), 1 - 2 * _probability(p)
    mean = kept * w - w_0
    spread = w @ w + w_0 @ w_0 - 2 * kept * (w @ w_0)
    scatter = rate**2 / n_examples * ((d + 2) * spread + d * noise**2 - mean @ mean)
    bias = ((expected_weights(w, w_0, p, rate) - w) ** 2).sum()
    return Risk(bias.item(), scatter.item())


def overriding_share(rate: float) -> float:
    """Share of wrong labels beyond which the mean turns against a right prior: p = 1 / (2 eta), infinite for eta = 0.

    It is at most 1, so that flipped labels can win at all, if eta >= 1/2: if N >= m.
    Source: 1 - 2 p eta = 0.
    """
    return 1 / (2 * rate) if rate else float("inf")


def agreement(learned: Float[Tensor, "*batch d"], w: Float[Tensor, " d"]) -> Float[Tensor, "*batch"]:
    """Share of new inputs x ~ N(0, I) on which both give the same sign: 1 - angle(w_hat, w) / pi.

    Source: the signs differ where x falls between the two hyperplanes, which is an angle out of pi.
    """
    cosine = torch.nn.functional.cosine_similarity(learned, w, dim=-1)
    return 1 - cosine.clamp(-1, 1).arccos() / torch.pi


def _probability(p: float) -> float:
    if not 0 <= p <= 1:
        raise ValueError(f"p = {p} is not a probability; choose a share of wrong labels between 0 and 1.")
    return p
