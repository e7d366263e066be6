"""Memory or ridge: what is best where the tasks of training are finitely many, and where they are not.

Letters: a pool of T tasks w_1, ..., w_T, from which every prompt of training takes one; s the standard deviation of the
noise, y = <w, x> + s e with e ~ N(0, 1); p_j the posterior probability of task j after the examples of a prompt.
"""

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from explainer.theory.regression import Prompts, draw_prompts


def draw_pool(n_tasks: int, d: int, *, seed: int = 0, dtype: torch.dtype = torch.float64) -> Float[Tensor, "T d"]:
    """Draw w_1, ..., w_T ~ N(0, I); with the same seed, a smaller pool is the beginning of a larger one.

    Source: Raventós et al. 2023 (arXiv 2306.15063), section 2.
    """
    # torch draws 16 numbers at a time, and others where fewer are left, so that the beginning would depend on the size.
    rounded_up = -(-n_tasks // 16) * 16
    return torch.randn(rounded_up, d, generator=Generator().manual_seed(seed), dtype=torch.float64)[:n_tasks].to(dtype)


def pool_prompts(
    pool: Float[Tensor, "T d"], n_prompts: int, n_examples: int, noise: float, generator: Generator
) -> Prompts:
    """Draw prompts with x ~ N(0, I) whose tasks come from the pool, each with probability 1/T; y = <w, x> + s e."""
    d = pool.shape[-1]
    chosen = torch.randint(len(pool), (n_prompts,), generator=generator)
    identity = torch.eye(d, dtype=pool.dtype)
    return draw_prompts(
        n_prompts, n_examples, identity, generator=generator, tasks=pool[chosen], noise=noise, dtype=pool.dtype
    )


def _posterior(prompts: Prompts, pool: Float[Tensor, "T d"], noise: float) -> Float[Tensor, "B T"]:
    """Bayes' rule with the prior 1/T over the tasks of the pool: p_j ~ exp(-sum_i (y_i - <w_j, x_i>)^2 / (2 s^2)).

    Raises: ValueError unless the noise is positive.
    """
    if not noise > 0:
        raise ValueError(f"noise = {noise} should be above zero; without it one example can rule out a whole pool.")
    residuals = prompts.y[..., None] - prompts.X @ pool.to(prompts.X).T
    return (-(residuals**2).sum(1) / (2 * noise**2)).softmax(-1)


def discrete_mmse(prompts: Prompts, pool: Float[Tensor, "T d"], noise: float) -> Float[Tensor, " B"]:
    """Predict with the posterior mean over the pool, yhat = <sum_j p_j w_j, x_q>.

    Raises: ValueError unless the noise is positive.

    Source: Raventós et al. 2023, section 2, the estimator dMMSE.
    """
    return (prompts.x_q * (_posterior(prompts, pool, noise) @ pool.to(prompts.X))).sum(-1)
