"""Exercises on what descent would predict."""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from explainer.exercises.checks import Exercise
from explainer.theory import fast_weights

# Order, wrong labels, reversal: the chapter `three_predictions` and its studies.


def _weights(rates: Callable, n: int) -> Tensor:
    """What the delta rule weighs n pairs of one unit key with, over the mean weight."""
    key = torch.ones(n, 1, dtype=torch.float64)
    weights = fast_weights.recurrent(key, key, torch.eye(n, dtype=torch.float64), rates(n))[-1]
    return weights / weights.mean()


fair_rates = Exercise(
    hint="after pair t the answer should be the mean of the first t values.",
    passed="with these rates one pass over the pairs has no order.",
    right=lambda n: 1 / np.arange(1, n + 1),
    counts=_weights,
    cases={"the weights of the pairs should be equal, and not zero.": [(1,), (4,), (7,)]},
    mistakes={"with one rate for all, the last pair weighs most.": lambda n: np.full(n, 1 / n)},
)
examples_to_override = Exercise(
    hint="solve 1 - 2 p N / (N + m) < 0 for N.",
    passed="flipped labels win as soon as there are that many.",
    right=lambda p, m: math.floor(m / (2 * p - 1) + 1e-9) + 1,
    cases=[(1.0, 10.0), (0.75, 10.0), (0.6, 33.0), (1.0, 10.5)],
    mistakes={
        "the mean has to turn, not to vanish.": lambda p, m: math.ceil(m / (2 * p - 1) - 1e-9),
        "right labels pull back: it is 2 p - 1 that counts.": lambda p, m: math.floor(m / p) + 1,
    },
)
