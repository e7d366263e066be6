"""What is drawn in theory is decided by its seed, and by nothing else."""

import pytest
import torch
from draws import randn

from explainer.theory import duality, learning_head, metrics, regression, task_diversity, wrong_labels
from explainer.theory import linear_transformer as lt

H = randn(6, 3, 4, seed=0)
DRAWN = {
    "mini batches": lambda seed: duality.mini_batches(9, 2, 2, seed),
    "layers": lambda seed: duality.random_layer(3, 4, 2, seed),
    "lessons": lambda seed: learning_head.lessons(4, [1.0, 2.0], seed, tasks=3),
    "trainings": lambda seed: lt.train_on_tasks(torch.eye(2), 5, torch.optim.SGD, rate=0.1, steps=10, seed=seed).W_PV,
    "random directions": lambda seed: metrics.ft_with_random_directions(H, H.flip(0), seed),
    "permuted updates": lambda seed: metrics.ft_with_permuted_updates(H, H.flip(0), seed),
    "floors": lambda seed: metrics.uniform_floor(H, H.flip(0), seed),
    "permuted tokens": lambda seed: metrics.permuted_tokens(H, seed),
    "covariances": lambda seed: regression.turned_covariance([1.0, 2.0, 3.0], seed=seed),
    "pools of tasks": lambda seed: task_diversity.draw_pool(8, 3, seed=seed),
    "labels": lambda seed: wrong_labels.flipped(torch.ones(40), 0.5, torch.Generator().manual_seed(seed)),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_seed_decides_what_is_drawn(name):
    one, again, other = (torch.cat([torch.as_tensor(x).flatten() for x in DRAWN[name](seed)]) for seed in (1, 1, 2))
    assert torch.equal(one, again) and not torch.equal(one, other)
