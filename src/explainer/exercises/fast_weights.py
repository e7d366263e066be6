"""Checks for layers that train a matrix while they read."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import normalize

from explainer.exercises import checks
from explainer.theory import duality, fast_weights

T, D, D_V = 6, 4, 3


def _rows() -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys of length 1, values."""
    draw = checks.random_tensors()
    return draw(T, D), normalize(draw(T, D), dim=-1), draw(T, D_V)


def _all_at_once(reader_fn: Callable[[Tensor, Tensor, float], Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Keys, values and what a function writes for them at rate 0.3: first rate v, and nothing of a later token."""
    _, keys, values = _rows()
    found = checks.call(reader_fn, keys, values, 0.3, shape=(T, D_V))
    checks.require(checks.close(found[0], 0.3 * values[0]), "the first error is not rate * v; S is still 0 there.")
    changed = torch.cat([keys[:4], -keys[4:].flip(0)])
    checks.require(
        checks.close(checks.call(reader_fn, changed, values, 0.3, shape=(T, D_V))[:4], found[:4]),
        "an error changes with a later key; only earlier tokens may enter, so take the lower triangle.",
    )
    return keys, values, found


@checks.check("S = torch.zeros(d_v, d); at each token e = rate * (v - S @ k), then S = S + torch.outer(e, k).")
def delta_rule(reader_fn: Callable[[Tensor, Tensor, Tensor, float], Tensor]) -> None:
    """Check a function (queries (T, d), keys (T, d), values (T, d_v), rate) -> (T, d_v), the delta rule.

    Properties: the query reads after the update; a known value is left as it is; a value that comes again for the same
    key is revised; random inputs against `fast_weights.recurrent`.
    Raises: AssertionError with a hint.
    """
    queries, keys, values = _rows()
    one = checks.call(reader_fn, keys[:1], keys[:1], values[:1], 1.0, shape=(1, D_V))
    checks.require(
        not checks.close(one, torch.zeros_like(one)),
        "the first output is zero; the query of a token reads after its own pair is written.",
    )
    twice = checks.call(reader_fn, keys[[0, 0]], keys[[0, 0]], values[[0, 1]], 1.0, shape=(2, D_V))
    checks.require(
        not checks.close(twice[1], values[0] + values[1]),
        "a key that comes again gives the sum of both values; subtract what S answers already.",
    )
    checks.require(
        checks.close(twice[1], values[1]),
        "a unit key that comes again does not give its new value at rate 1; look at the error that is written.",
    )
    found = checks.call(reader_fn, queries, keys, values, 0.3, shape=(T, D_V))
    checks.require(
        checks.close(found, fast_weights.recurrent(queries, keys, values, 0.3)),
        "random inputs at rate 0.3 differ from the delta rule; look at the rate and at which vector reads.",
    )
    print("Passed: each token writes its error, and its query reads after that.")


@checks.check("L = (rate * keys @ keys.T).tril(-1), then torch.linalg.solve(I + L, ...).")
def delta_errors(reader_fn: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    """Check a function (keys (T, d), values (T, d_v), rate) -> errors (T, d_v) of the delta rule, from one solve.

    Properties: the first error is rate v; later tokens do not matter; random inputs against the recurrence.
    Raises: AssertionError with a hint.
    """
    keys, values, found = _all_at_once(reader_fn)
    checks.require(
        checks.close(found, fast_weights.errors(keys, values, 0.3)),
        "random inputs differ from the recurrence; look at the diagonal, at the sign and at the rate.",
    )
    print("Passed: all errors at once, without a loop over tokens.")


@checks.check("which step of linear algebra makes vectors orthogonal and keeps what they span?")
def keys_without_interference(reader_fn: Callable[[Tensor], Tensor]) -> None:
    """Check a function keys (T, d) -> keys (T, d), T <= d, for which the delta rule at rate 1 is linear attention.

    Properties: the new keys span what the old ones did; both layers give the same for random values and queries.
    Raises: AssertionError with a hint.
    """
    draw = checks.random_tensors()
    keys, values, queries = draw(3, 5), draw(3, 2), draw(4, 5)
    found = checks.call(reader_fn, keys, shape=(3, 5))
    both = torch.cat([keys, found])
    ranks = [int(torch.linalg.matrix_rank(rows)) for rows in (found, both)]
    checks.require(ranks == [3, 3], "the new keys do not span what the old ones did.")
    last = [fast_weights.recurrent(q.expand(3, 5), found, values, 1.0)[-1] for q in queries]
    checks.require(
        checks.close(torch.stack(last), duality.linear_attention(values, found, queries)),
        "the two layers differ; each key must be orthogonal to all others.",
    )
    print("Passed: with these keys no pair disturbs another, and there is no error to correct.")


@checks.check("as in descent, with the other sign below the diagonal: torch.linalg.solve(I - L, ...).")
def ascent_errors(reader_fn: Callable[[Tensor, Tensor, float], Tensor]) -> None:
    """Check a function (keys (T, d), values (T, d_v), rate) -> (T, d_v), e_t = rate (v_t + S_{t-1} k_t) at once.

    Properties: the first is rate v; later tokens do not matter; random inputs against the recurrence of ascent.
    Raises: AssertionError with a hint.
    """
    keys, values, found = _all_at_once(reader_fn)
    checks.require(
        not checks.close(found, fast_weights.errors(keys, values, 0.3)),
        "these are the errors of descent; ascent adds what S answers already.",
    )
    checks.require(
        checks.close(found, fast_weights.errors(keys, -values, -0.3)),
        "random inputs differ from the recurrence; look at the triangle, at the sign and at the rate.",
    )
    print("Passed: ascent with turned values, without a loop over tokens.")
