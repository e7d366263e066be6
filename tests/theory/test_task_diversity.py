"""explainer.theory.task_diversity: the limits of memory, Bayes' rule by hand, and its optimality by Monte Carlo."""

import pytest
import torch
from draws import seeded

from explainer.theory.regression import draw_prompts, ridge
from explainer.theory.task_diversity import _posterior, discrete_mmse, draw_pool, pool_prompts

NOISE = 0.5


def new_prompts(n, d=2, n_examples=6):
    return draw_prompts(n, n_examples, torch.eye(d).double(), generator=seeded(3), noise=NOISE)


def test_smaller_pools_begin_larger_ones():
    assert torch.equal(draw_pool(4, 3), draw_pool(64, 3)[:4])
    assert torch.equal(draw_pool(37, 5), draw_pool(1000, 5)[:37])
    assert not torch.equal(draw_pool(4, 3), draw_pool(4, 3, seed=1))
    torch.testing.assert_close(draw_pool(20_000, 3).T.cov(), torch.eye(3).double(), atol=0.04, rtol=0)


def test_prompts_take_their_tasks_from_the_pool():
    pool = draw_pool(3, 2)
    prompts = pool_prompts(pool, 3000, 5, NOISE, seeded())
    found = (prompts.tasks[:, None] == pool).all(-1)
    assert (found.sum(1) == 1).all()
    assert found.double().mean(0).sub(1 / 3).abs().max() < 0.03
    e = prompts.targets - (prompts.inputs * prompts.tasks[:, None]).sum(-1)
    assert e.std().item() == pytest.approx(NOISE, rel=0.03)


def test_posterior_is_bayes_rule():
    pool, prompts = draw_pool(5, 2), new_prompts(4)
    found = _posterior(prompts, pool, NOISE)
    for b in range(4):
        normal = torch.distributions.Normal(prompts.X[b] @ pool.T, NOISE)
        likelihood = normal.log_prob(prompts.y[b][:, None]).sum(0).exp()
        torch.testing.assert_close(found[b], likelihood / likelihood.sum())


def test_endless_pool_tends_to_ridge():
    prompts = new_prompts(100)
    expected, gaps = ridge(prompts, NOISE**2), []
    for T in (100, 3000, 100_000):
        gaps.append(((discrete_mmse(prompts, draw_pool(T, 2), NOISE) - expected) ** 2).mean().item())
    assert gaps[0] > 3 * gaps[1] > 9 * gaps[2]
    assert gaps[2] < 1e-3
