"""Associative recall with revision: pairs of a key and a value are written, some again with a new value, then asked.

A sequence has T positions, each a pair (key, value). The first n + r are *writes*: n keys, of which r = n // 2 are
revised, written a second time with a new value. The order of the writes is random, and no value is written twice. The
last n positions are *queries*: every key once, in a random order, with the value BLANK. The answer to a query is the
newest value of its key; for a revised key, the value before it is *stale*. By chance 1 of VALUES answers is right; who
knows which values were written and when, but not for which keys, is right in 1 of n, and who knows all pairs, but not
their order, on every kept key and in 1 of 2 queries for a revised one.
"""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Generator, Tensor

from explainer.errors import ShapeError

KEYS = 64
VALUES = 64
N_KEYS = (8, 16, 24, 32)
"""Numbers of keys in the sequences of training, in turns, and of the test."""
N_TEST = 256
"""Test sequences for each number of keys."""
_TEST_SEED = 1_000_003  # far from the seeds of training
_BLANK = VALUES  # stands at a query in place of a value
NO_STALE = -1
"""Stands in place of the stale value of a key that was written once."""


class Sequences(NamedTuple):
    """B sequences of T = 2 n + n // 2 pairs, the newest values of the n keys that their last n positions ask for, and
    the stale ones, NO_STALE for kept keys.
    """

    keys: Int[Tensor, "B T"]
    values: Int[Tensor, "B T"]
    answers: Int[Tensor, "B n"]
    stale: Int[Tensor, "B n"]


def _n_revised(n_keys: int) -> int:
    """Number r of the n keys of a sequence that are written twice."""
    return n_keys // 2


def n_writes(n_keys: int) -> int:
    """Number of writes before the queries, n + r."""
    return n_keys + _n_revised(n_keys)


def draw(n_sequences: int, n_keys: int, generator: Generator) -> Sequences:
    """Draw sequences with n keys each; keys, values and orders are uniform and without replacement.

    Raises: ShapeError if there are not as many keys, or values for all writes, or nothing to revise.
    """
    if not (2 <= n_keys <= KEYS and n_writes(n_keys) <= VALUES):
        raise ShapeError(
            f"n_keys = {n_keys} needs {n_writes(n_keys)} values; there are {KEYS} keys and {VALUES} values, and a "
            "sequence needs at least 2 keys for one to be revised."
        )
    r, w = _n_revised(n_keys), n_writes(n_keys)

    def orders(n: int) -> Int[Tensor, "B n"]:
        return torch.rand(n_sequences, n, generator=generator).argsort(-1)

    keys, values = orders(KEYS)[:, :n_keys], orders(VALUES)[:, :w]
    place = orders(w)  # of write m: of key m for m < n, for m >= n again of key m - n
    written = torch.cat([keys, keys[:, :r]], 1)
    first, again = place[:, :n_keys], torch.cat([place[:, n_keys:], place[:, r:n_keys]], 1)
    newest = values.gather(1, torch.maximum(first, again))
    before = values.gather(1, torch.minimum(first, again)).where(first != again, NO_STALE)
    asked = orders(n_keys)
    blank = torch.full_like(asked, _BLANK)
    return Sequences(
        torch.cat([torch.empty_like(written).scatter_(1, place, written), keys.gather(1, asked)], 1),
        torch.cat([values, blank], 1),
        newest.gather(1, asked),
        before.gather(1, asked),
    )


def test_sequences(n_keys: int) -> Sequences:
    """The test sequences with so many keys, the same for all models."""
    return draw(N_TEST, n_keys, Generator().manual_seed(_TEST_SEED + n_keys))
