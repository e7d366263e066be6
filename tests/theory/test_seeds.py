"""What is drawn in theory is decided by its seed, and by nothing else."""

import pytest
import torch

from explainer.theory import duality, regression, task_diversity, wrong_labels
from explainer.theory import linear_transformer as lt

POOL = torch.eye(3)
DRAWN = {
    "layers": lambda seed: duality.random_layer(3, 4, 2, seed),
    "trainings": lambda seed: lt.train_on_tasks(torch.eye(2), 5, torch.optim.SGD, rate=0.1, steps=10, seed=seed).W_PV,
    "a covariance": lambda seed: regression.turned_covariance([1.0, 2.0, 3.0], seed=seed),
    "covariances": lambda seed: regression.random_covariances(5, 3, torch.Generator().manual_seed(seed)),
    "pools of tasks": lambda seed: task_diversity.draw_pool(8, 3, seed=seed),
    "tasks of a pool": lambda seed: (
        task_diversity.pool_prompts(POOL, 9, 2, 0.0, torch.Generator().manual_seed(seed)).tasks
    ),
    "labels": lambda seed: wrong_labels.flipped(torch.ones(40), 0.5, torch.Generator().manual_seed(seed)),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_seed_decides_what_is_drawn(name):
    one, again, other = (torch.cat([torch.as_tensor(x).flatten() for x in DRAWN[name](seed)]) for seed in (1, 1, 2))
    assert torch.equal(one, again) and not torch.equal(one, other)
