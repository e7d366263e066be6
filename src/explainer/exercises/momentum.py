"""Exercises on momentum attention, and on layers that train a matrix while they read."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from explainer.exercises.checks import Cases, Exercise
from explainer.theory import duality, fast_weights


def _dual(values: Tensor, keys: Tensor, queries: Tensor, mu: float) -> Tensor:
    return (queries @ keys.T * duality.heavy_ball_weights(mu, len(keys))) @ values


def _newest(values: Tensor, keys: Tensor, queries: Tensor, mu: float) -> Tensor:
    return (queries @ keys.T * mu ** torch.arange(len(keys) - 1, -1, -1)) @ values


def _both_triangles(keys: Tensor, values: Tensor, rate: float) -> Tensor:
    one = torch.eye(len(keys), dtype=keys.dtype)
    return torch.linalg.solve(one - rate * (keys @ keys.T - one), rate * values)


def _one_token_then_all(keys: Tensor, values: Tensor) -> Cases:
    keys = normalize(keys, dim=-1)
    return {
        "the first error is not rate * v; S is still 0 there.": (keys[:1], values[:1], 0.3),
        "random inputs differ from the recurrence; look at the triangle, the sign and the rate.": (keys, values, 0.3),
    }


momentum_dual = Exercise(
    hint="start with T = 1 and T = 2 on paper: how often does each push appear?",
    passed="linear in the query, and the same as heavy ball taken step by step.",
    right=_dual,
    shapes=((5, 2), (5, 3), (4, 3)),
    cases=lambda v, k, q: {
        "without momentum it is not linear attention; every weight is 1 at eta = 0.": (v, k, q, 0.0),
        "it differs from heavy ball; the oldest pair weighs most.": [(v, k, q, 0.5), (v, k, q, 0.9)],
    },
    mistakes={
        "these are the weights of the last velocity; the oldest push is in all of them.": _newest,
        "the comparison k_i . q belongs into the sum.": lambda v, k, q, mu: _dual(v, 1 + 0 * k, 1 + 0 * q, mu),
    },
)
ascent_errors = Exercise(
    hint="L = (rate * keys @ keys.T).tril(-1), then torch.linalg.solve(I - L, ...).",
    passed="ascent with turned values, without a loop over tokens.",
    right=lambda keys, values, rate: fast_weights.errors(keys, -values, -rate),
    shapes=((6, 4), (6, 3)),
    cases=_one_token_then_all,
    mistakes={
        "an error changes with a later key; take the lower triangle.": _both_triangles,
        "these are the errors of descent; ascent adds what S answers already.": fast_weights.errors,
        "these are the values; add what S answers already.": lambda k, v, rate: rate * v,
    },
)
