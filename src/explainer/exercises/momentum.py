"""Exercises on momentum attention, and on layers that train a matrix while they read."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import normalize

from explainer.exercises.checks import Cases, Exercise
from explainer.theory import duality, fast_weights, momentum

_FIRST = torch.tensor([1, 0, 0, 0, 0, 0, 0])[:, None]


def _longer(keys: Tensor, queries: Tensor, eta: float) -> tuple[Tensor, Tensor]:
    t = torch.arange(len(keys), dtype=keys.dtype)[:, None]
    return torch.cat([keys, eta**-t], 1), torch.cat([queries, eta**t], 1)


def _given_and_product(longer: Callable, keys: Tensor, queries: Tensor, eta: float) -> tuple[Tensor, Tensor, Tensor]:
    """The given entries, and the products of the new entries of query t and key i < t."""
    keys, queries = longer(keys, queries, eta)
    return keys[:, :-1], queries[:, :-1], torch.outer(queries[:, -1], keys[:, -1]).tril(-1)


def _dual(values: Tensor, keys: Tensor, queries: Tensor, mu: float) -> Tensor:
    return (queries @ keys.T * duality.heavy_ball_weights(mu, len(keys))) @ values


def _newest(values: Tensor, keys: Tensor, queries: Tensor, mu: float) -> Tensor:
    return (queries @ keys.T * mu ** torch.arange(len(keys) - 1, -1, -1)) @ values


def _both_triangles(keys: Tensor, values: Tensor, rate: float) -> Tensor:
    one = torch.eye(len(keys), dtype=keys.dtype)
    return torch.linalg.solve(one + rate * (keys @ keys.T - one), rate * values)


def _one_token_then_all(keys: Tensor, values: Tensor) -> Cases:
    keys = normalize(keys, dim=-1)
    return {
        "the first error is not rate * v; S is still 0 there.": (keys[:1], values[:1], 0.3),
        "random inputs differ from the recurrence; look at the triangle, the sign and the rate.": (keys, values, 0.3),
    }


momentum_average = Exercise(
    hint="row t is eta times the sum of row t - 1 of the average and row t - 1 of the values.",
    passed="causal, zero at the start, and a decay of eta with every position.",
    right=momentum.ema,
    shapes=((7, 3),),
    cases=lambda v: {
        "v_0 alone does not come back as eta v_0, eta^2 v_0, ...; look at the exponent t - i.": (v * _FIRST, 0.5),
        "random values do not give the sum over all i < t.": [(v, 0.5), (v, 0.9)],
    },
    mistakes={
        "row t contains v_t, and row 0 has no past; only i < t may enter.": lambda v, eta: momentum.ema(v, eta) + v,
        "the sum is not divided by the sum of the weights.": momentum.normalised_ema,
    },
)
momentum_dual = Exercise(
    hint="start with T = 1 and T = 2 on paper: how often does each push appear?",
    passed="linear in the query, and the same as heavy ball taken step by step.",
    right=_dual,
    shapes=((5, 2), (5, 3), (4, 3)),
    cases=lambda v, k, q: {
        "without momentum it is not linear attention; every weight is 1 at mu = 0.": (v, k, q, 0.0),
        "it differs from heavy ball; the oldest pair weighs most.": [(v, k, q, 0.5), (v, k, q, 0.9)],
    },
    mistakes={
        "these are the weights of the last velocity; the oldest push is in all of them.": _newest,
        "the comparison k_i . q belongs into the sum.": lambda v, k, q, mu: _dual(v, 1 + 0 * k, 1 + 0 * q, mu),
    },
)
momentum_keys = Exercise(
    hint="a factor that depends on t and one that depends on i have the product eta^(t-i).",
    passed="linear attention with one more entry in keys and queries is momentum attention without softmax.",
    right=_longer,
    counts=_given_and_product,
    shapes=((6, 3), (6, 3)),
    cases=lambda k, q: {
        "the first entries should be the given ones, and the new entries of query t and key i should have the "
        "product eta^(t-i) for i < t.": [(k, q, 0.5), (k, q, 0.9)]
    },
    mistakes={
        "return the keys first, and then the queries.": lambda k, q, eta: _longer(k, q, eta)[::-1],
        "the product is eta^(i-t); exchange the factors.": lambda k, q, eta: _longer(k, q, 1 / eta),
    },
)
joined_pairs = Exercise(
    hint="inputs stand at the even places, targets at the odd ones; the query at the end has no target.",
    passed="every target has its own input beside it.",
    right=lambda row: torch.cat([row[:-1:2], row[1::2]], 1),
    shapes=((7, 2), (3, 4)),
    cases=lambda *rows: {"the first half of a row should be x_i, the second y_i.": [(row,) for row in rows]},
    mistakes={
        "each target stands beside the next input.": lambda row: torch.cat([row[2::2], row[1::2]], 1),
        "the first half of a row should be x_i.": lambda row: torch.cat([row[1::2], row[:-1:2]], 1),
        "the second half of a row should be y_i.": lambda row: torch.cat([row[:-1:2], row[:-1:2]], 1),
    },
)
delta_errors = Exercise(
    hint="L = (rate * keys @ keys.T).tril(-1), then torch.linalg.solve(I + L, ...).",
    passed="all errors at once, without a loop over tokens.",
    right=fast_weights.errors,
    shapes=((6, 4), (6, 3)),
    cases=_one_token_then_all,
    mistakes={
        "an error changes with a later key; take the lower triangle.": _both_triangles,
        "look at the sign below the diagonal.": lambda keys, values, rate: fast_weights.errors(keys, -values, -rate),
        "these are the values; take off what S answers already.": lambda k, v, rate: rate * v,
    },
)
ascent_errors = Exercise(
    hint="as in descent, with the other sign below the diagonal: torch.linalg.solve(I - L, ...).",
    passed="ascent with turned values, without a loop over tokens.",
    right=lambda keys, values, rate: fast_weights.errors(keys, -values, -rate),
    shapes=((6, 4), (6, 3)),
    cases=_one_token_then_all,
    mistakes={
        "these are the errors of descent; ascent adds what S answers already.": fast_weights.errors,
        "these are the values; add what S answers already.": lambda k, v, rate: rate * v,
    },
)
