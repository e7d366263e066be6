"""Checks for layers that train a matrix while they read."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import normalize

from explainer.exercises import checks
from explainer.theory import fast_weights

T, D, D_V = 6, 4, 3


def _all_at_once(reader_fn: Callable[[Tensor, Tensor, float], Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Keys, values and what a function writes for them at rate 0.3: first rate v, and nothing of a later token."""
    draw = checks.random_tensors()
    keys, values = normalize(draw(T, D), dim=-1), draw(T, D_V)
    found = checks.call(reader_fn, keys, values, 0.3, shape=(T, D_V))
    checks.require(checks.close(found[0], 0.3 * values[0]), "the first error is not rate * v; S is still 0 there.")
    changed = torch.cat([keys[:4], -keys[4:].flip(0)])
    checks.require(
        checks.close(checks.call(reader_fn, changed, values, 0.3, shape=(T, D_V))[:4], found[:4]),
        "an error changes with a later key; only earlier tokens may enter, so take the lower triangle.",
    )
    return keys, values, found


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
