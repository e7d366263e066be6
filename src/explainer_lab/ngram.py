"""Language models that count: which token follows the last one, two, ... tokens in a text."""

import numpy as np
from jaxtyping import Int
from torch import Tensor


def nll(stream: Int[Tensor, " n"], rows: Int[Tensor, "m T"], last: int, vocabulary: int) -> float:
    """Nats per token of counting what follows the `last` tokens before it in a stream, on rows of held-out tokens.

    p(w | h) = (c(h w) + n(h) p(w | h')) / (c(h) + n(h)) with c the counts, n(h) the number of different tokens after
    h, and h' the history h without its oldest token; without history, uniform (Witten and Bell 1991, interpolated).
    The first `last` tokens of a row are only read.
    """
    seen, asked = (part.numpy().reshape(-1, part.shape[-1]) for part in (stream, rows))
    p = np.full(asked[:, last:].shape, 1 / vocabulary)
    for n in range(last + 1):
        grams, counts = np.unique(_grams(seen, n, vocabulary), return_counts=True)
        wanted = _grams(asked, n, vocabulary)[:, last - n :]
        histories, index = np.unique(grams // vocabulary, return_inverse=True)
        c_h = _looked_up(histories, np.bincount(index, counts), wanted // vocabulary)
        n_h = _looked_up(histories, np.bincount(index), wanted // vocabulary)
        known = c_h > 0
        estimate = (_looked_up(grams, counts, wanted) + n_h * p) / np.where(known, c_h + n_h, 1)
        p = np.where(known, estimate, p)
    return float(-np.log(p).mean())


def _grams(rows: np.ndarray, n: int, vocabulary: int) -> np.ndarray:
    """Each token with the n before it, as one number."""
    width = rows.shape[1] - n
    digits = (rows[:, i : i + width].astype(np.int64) * vocabulary ** (n - i) for i in range(n + 1))
    return sum(digits, np.zeros((len(rows), width), np.int64))


def _looked_up(keys: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The values of sorted keys, 0 for one that is not there."""
    place = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], 0)
