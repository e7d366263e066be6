"""Five forms without softmax against the softmax heads of a real model: what each misses, and where it points."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from explainer.models.recording import Head, PromptHeads
from explainer.theory import duality, statistics
from explainer.theory.statistics import Interval

_EXACT, _GOOD = 1e-10, 0.2
"""Relative errors up to which a form is exact, and up to which it is an approximation; beyond, it is a poor one."""


def _forms(
    query: Float[Tensor, " d"], keys: Float[Tensor, "T d"], values: Float[Tensor, "T d_v"], generator: Generator
) -> Float[Tensor, "forms d_v"]:
    """The update V^T K q, the same with shuffled values, the mean value, and the repaired update without and with.

    The repaired one is `duality.centred_linear_attention`; the others are floors. Raises ShapeError.
    """
    shuffled = values[torch.randperm(len(values), generator=generator)]
    update, repaired = (
        [form(query, keys, each) for each in (values, shuffled)]
        for form in (duality.relaxed_attention, duality.centred_linear_attention)
    )
    return torch.stack([*update, values.mean(0), *repaired])


def _cosines(head: Head, n: int, generator: Generator) -> Float[Tensor, "2 forms"]:
    """Cosines of forms on all tokens with the head's output, and on the n demonstration tokens with their part a."""
    parts = duality.split_attention(head.query, head.keys, head.values, n)
    whole = _forms(head.query, head.keys, head.values, generator)
    shown = _forms(head.query, head.keys[:n], head.values[:n], generator)
    pairs = ((whole, parts.attention), (shown, parts.demonstrations))
    return torch.stack([torch.cosine_similarity(found, exact[None]) for found, exact in pairs])


def cosines_of_prompts(prompts: list[PromptHeads]) -> Float[np.ndarray, "prompts heads 2 forms"]:
    """Cosines of each form with what every head of every prompt computes, on all tokens and on the demonstrations."""
    generator = Generator().manual_seed(0)
    return np.array([[_cosines(head, p.n, generator).numpy() for head in p.heads] for p in prompts])


def error_at_best_scale(cosine: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """The relative error of a form at its best scale, min_s |s f - F| / |F| = sqrt(1 - cos(f, F)^2)."""
    return np.sqrt(1 - cosine**2)


def median_by_form(samples: Float[np.ndarray, "prompts heads forms"]) -> list[Interval]:
    """The median over heads of each form, with a 95 % bootstrap interval over prompts and heads."""
    by_form = np.moveaxis(samples, 2, 0)
    return [statistics.bootstrap_interval([(prompt,) for prompt in its], np.median, n_resamples=500) for its in by_form]


def error_in_words(error: float) -> str:
    """The word for a relative error, by one rule for all forms: a larger error never has a better word."""
    if error < _EXACT:
        return "exact"
    return "approximation" if error < _GOOD else "poor approximation"
