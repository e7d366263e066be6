"""What a language model has learned: losses on held-out text, and what it copies from its context."""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from explainer.errors import ExperimentError
from explainer_lab.training_corpora import Tokens

_TOKENS_AT_ONCE = 8192  # in one forward pass


# Losses


def spaced_blocks(stream: Int[Tensor, " tokens"], length: int, n: int) -> Int[Tensor, "n length+1"]:
    """Cut a stream into consecutive blocks, and take at most n that are evenly spaced.

    Neighbours overlap in one token, the last target of one and the first input of the next.
    Raises: ExperimentError if not even one fits.
    """
    available = (len(stream) - 1) // length
    if available < 1:
        raise ExperimentError(
            f"a part of the corpus has {len(stream)} tokens, a window {length + 1}: take a longer corpus or a shorter "
            "length."
        )
    first = torch.arange(min(n, available)) * available // min(n, available) * length
    return stream[first[:, None] + torch.arange(length + 1)]


def held_out_blocks(tokens: Tokens, length: int, n: int) -> tuple[Int[Tensor, "n length+1"], list[str]]:
    """`spaced_blocks` of the held-out stream, and the document in which each begins.

    Raises: ExperimentError if not even one fits.
    """
    blocks = spaced_blocks(tokens.held_out, length, n)
    available = (len(tokens.held_out) - 1) // length
    first = torch.arange(len(blocks)) * available // len(blocks) * length
    index = torch.searchsorted(tokens.starts, first, right=True) - 1
    return blocks, [tokens.corpus.held_out[i].name for i in index]


@torch.no_grad()
def token_nll(model: nn.Module, blocks: Int[Tensor, "n length+1"]) -> Float[Tensor, "n length"]:
    """Negative log-likelihood of each token after the first given those before it, -log p(x_{t+1} | x_1 .. x_t).

    In nats, float64.
    """
    device, rows = next(model.parameters()).device, max(1, _TOKENS_AT_ONCE // (blocks.shape[1] - 1))
    parts = (part.to(device) for part in blocks.split(rows))
    nll = (cross_entropy(model(part[:, :-1]).logits.mT, part[:, 1:], reduction="none") for part in parts)
    return torch.cat([part.double().cpu() for part in nll])


# Copying


@torch.no_grad()
def _guesses(model: nn.Module, ids: Tensor) -> Tensor:
    return model(ids.to(next(model.parameters()).device)).logits.argmax(-1).cpu()


def repeated_sequences(model: nn.Module, vocabulary: int, *, half: int, sequences: int = 32) -> float:
    """How often the next token is right where a sequence of random tokens comes a second time.

    The tokens are uniform over the vocabulary without the separator. In the second half every token but the first
    follows from its earlier occurrence.
    Source: Olsson et al. 2022, section 3.
    """
    random = torch.from_numpy(np.random.default_rng(0).integers(1, vocabulary, (sequences, half)))
    guesses = _guesses(model, random.repeat(1, 2))
    right = guesses[:, half : 2 * half - 1] == random[:, 1:]
    return float(right.double().mean())


def labels_in_context(model: nn.Module, vocabulary: int, *, shots: int, prompts: int = 256) -> tuple[float, float]:
    """Ask for the label of an example that the prompt shows: x_1 : y_1 ; ... x_k : y_k ; x_j : with j among 1 .. k.

    Returns how often the answer is one of the two labels, and how often the right one.

    Inputs, the two labels and the two separators are random tokens, new in each prompt, so that nothing but the
    prompt tells which tokens are labels and which belongs to which input. Who knows the two labels and not the rule
    is right half of the time.
    """
    drawn = list(_few_shot_prompts(vocabulary, shots, prompts))
    ids, labels, answers = (torch.tensor(np.array(part)) for part in zip(*drawn, strict=True))
    guesses = _guesses(model, ids)[:, -1]
    is_a_label, right = (guesses[:, None] == labels).any(1), guesses == answers
    return float(is_a_label.double().mean()), float(right.double().mean())


def _few_shot_prompts(vocabulary: int, shots: int, prompts: int) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Yield the prompts of `labels_in_context`: (4 shots + 2,) tokens, the two labels, and the right one."""
    generator = np.random.default_rng(0)
    for _ in range(prompts):
        tokens = generator.choice(np.arange(1, vocabulary), shots + 4, replace=False)
        inputs, labels, (colon, semicolon) = tokens[:shots], tokens[shots : shots + 2], tokens[shots + 2 :]
        shown = labels[generator.permutation(np.arange(shots) % 2)]
        asked = generator.integers(shots)
        rows = np.stack([inputs, np.full(shots, colon), shown, np.full(shots, semicolon)], axis=1)
        yield np.concatenate([rows.ravel(), [inputs[asked], colon]]), labels, shown[asked]
