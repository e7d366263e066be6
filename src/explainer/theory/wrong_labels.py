"""Wrong labels in linear regression in context: what a layer with a prior learns when labels are flipped.

Letters: N examples x_i ~ N(0, I) in d dimensions with targets y_i = w . x_i + noise e_i, of standard deviation sigma;
each target is turned to -y_i with probability p. The prior is w ~ N(w_0, tau^2 I). One gradient step at w_0 with the
rate eta learns

    w_hat = w_0 + (eta / N) sum_i x_i (y~_i - w_0 . x_i),  E w_hat = (1 - eta) w_0 + eta (1 - 2 p) w.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def effective_rate(n_examples: int, d: int, prior_penalty: float = 0.0) -> float:
    """The best rate of the step with right labels, eta = N / (N + m), m = d + 1 + `prior_penalty` (sigma^2 / tau^2).

    Source: Zhang, Frei & Bartlett 2024, Gamma^-1 for Lambda = I; with noise and w_0 by the same square.
    """
    return n_examples / (n_examples + d + 1 + prior_penalty)


def prior_penalty(w: Float[Tensor, " d"], w_0: Float[Tensor, " d"], noise: float) -> float:
    """What a prior is worth where its distance from the task is known: sigma^2 / tau^2 with tau^2 = ||w - w_0||^2 / d.

    Raises: ZeroDivisionError for a prior that is exact.
    """
    return noise**2 * len(w) / ((w - w_0) @ (w - w_0)).item()


def flipped(targets: Float[Tensor, "*batch N"], p: float, generator: torch.Generator) -> Float[Tensor, "*batch N"]:
    """Turn each target to its negative with probability p, independently.

    Raises: ValueError if p is not a probability.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"p = {p} is not a probability; choose a share of wrong labels between 0 and 1.")
    wrong = torch.rand(targets.shape, generator=generator, dtype=targets.dtype) < p
    return torch.where(wrong, -targets, targets)


def critical_share(rate: float) -> float:
    """Share of wrong labels beyond which the mean turns against a right prior: p = 1 / (2 eta), inf for eta = 0."""
    return 1 / (2 * rate) if rate else float("inf")


def sign_agreement(learned: Float[Tensor, "*batch d"], w: Float[Tensor, " d"]) -> Float[Tensor, "*batch"]:
    """Share of new inputs x ~ N(0, I) on which both give the same sign: 1 - angle(w_hat, w) / pi.

    Source: the signs differ where x falls between the two hyperplanes, which is an angle out of pi.
    """
    cosine = torch.nn.functional.cosine_similarity(learned, w, dim=-1)
    return 1 - cosine.clamp(-1, 1).arccos() / torch.pi
