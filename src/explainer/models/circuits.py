"""Circuits: where every head attends, which heads look one token back or complete a pattern, the model without them.

A *previous-token head* attends from each token to the one before it. An *induction head* attends to the token that
followed an earlier occurrence of the present one. Layers, heads and tokens count from 0. The first token of a text, on
which many heads rest, is left out of every mean.
Source: Elhage et al. 2021 (A Mathematical Framework for Transformer Circuits); Olsson et al. 2022 (arXiv 2209.11895).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from explainer.data.tasks import Example, Task
from explainer.models import architectures, hooks, scoring
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Prefix

HeadIndex = tuple[int, int]
"""(layer, head), both from 0."""

_ORDINARY = 256  # ids below are special tokens and single bytes in the usual vocabularies


@torch.no_grad()
def attention_maps(checkpoint: Checkpoint, ids: Sequence[int]) -> Float[Tensor, "layers heads T T"]:
    """Attention weights of every head on T token ids: A[t, s] = softmax_s(q_t . k_s / sqrt(d)), s <= t.

    Rows sum to one. Float32, on the CPU. Raises CheckpointError: no token or too many.
    """
    model, inputs = checkpoint.model, checkpoint.row(ids)
    own = model.config._attn_implementation
    with hooks.restoring(lambda: model.set_attn_implementation(own)):
        model.set_attn_implementation("eager")  # the only one that keeps the weights
        maps = model.base_model(input_ids=inputs, output_attentions=True, use_cache=False).attentions
    return torch.cat([layer.float().cpu() for layer in maps])


def previous_token_score(maps: Float[Tensor, "layers heads T T"]) -> Float[Tensor, "layers heads"]:
    """Mean attention of a token to the one before it: mean A[t, t - 1] over t = 2, ..., T - 1."""
    return maps.diagonal(-1, -2, -1)[..., 1:].mean(-1)


def induction_score(maps: Float[Tensor, "layers heads T T"]) -> Float[Tensor, "layers heads"]:
    """Mean attention to the token after the earlier occurrence, on `repeated_random_tokens`, T = 2n + 1.

    Mean A[n + i, i + 1] over i = 1, ..., n. Source: Olsson et al. 2022.
    """
    n = maps.shape[-1] // 2
    return maps.diagonal(1 - n, -2, -1)[..., 2:].mean(-1)


def repeated_random_tokens(checkpoint: Checkpoint, n: int, seed: int) -> list[int]:
    """The first token, then n different random tokens twice: 2n + 1 ids that no memory of texts can predict.

    They are fewer where the checkpoint has fewer positions or tokens.
    """
    size = len(checkpoint.tokenizer)
    n = min(n, size, checkpoint.context_length // 2 - 1)
    ordinary = np.arange(_ORDINARY if size >= _ORDINARY + n else 0, size)
    drawn = np.random.default_rng(seed).choice(ordinary, n, replace=False)
    return [checkpoint.first_token_id, *2 * drawn.tolist()]


def strongest_heads(scores: Float[Tensor, "layers heads"], m: int) -> list[HeadIndex]:
    """The m heads with the highest scores, highest first."""
    best = scores.flatten().argsort(descending=True)[:m].tolist()
    return [divmod(i, scores.shape[1]) for i in best]


def random_heads_like(heads: Sequence[HeadIndex], n_heads: int, seed: int) -> list[HeadIndex]:
    """As many random heads of the same layers, none of them among those given: the control for switching heads off.

    Raises ValueError where a layer of `n_heads` heads has too few others.
    """
    generator, drawn = np.random.default_rng(seed), []
    for layer in dict.fromkeys(layer for layer, _ in heads):
        own = [head for of, head in heads if of == layer]
        rest = [head for head in range(n_heads) if head not in own]
        drawn += [(layer, int(head)) for head in generator.choice(rest, len(own), replace=False)]
    return drawn


@contextmanager
def ablate_heads(
    checkpoint: Checkpoint, heads: Iterable[HeadIndex], outputs: Float[Tensor, "layers heads d_v"] | None = None
) -> Iterator[None]:
    """Switch heads off inside a `with` block: each gives the output projection the same vector at every token.

    That is zero, or the head's row of `outputs`, for example of `mean_head_outputs`: mean ablation.
    """
    found = architectures.architecture(checkpoint.model)
    by_layer: dict[int, list[int]] = {}
    for layer, head in heads:
        by_layer.setdefault(layer, []).append(head)

    def replaced(layer: int, x: Tensor) -> Tensor:
        x, off = x.unflatten(-1, (found.n_heads, -1)).clone(), by_layer[layer]
        x[..., off, :] = 0.0 if outputs is None else outputs[layer, off].to(x)
        return x.flatten(-2)

    with hooks.inputs((found.layers[layer].output, partial(replaced, layer)) for layer in by_layer):
        yield


@torch.no_grad()
def mean_head_outputs(checkpoint: Checkpoint, sequences: Iterable[Sequence[int]]) -> Float[Tensor, "layers heads d_v"]:
    """Mean of what each head gives to the output projection, over all tokens but the first of some sequences."""
    found = architectures.architecture(checkpoint.model)
    sums, tokens = [0.0] * len(found.layers), 0

    def add(layer: int, x: Tensor) -> None:
        x = x.view(len(ids), -1)[1:]
        sums[layer] = sums[layer] + x.unflatten(-1, (found.n_heads, -1)).sum(0)

    with hooks.inputs((layer.output, partial(add, i)) for i, layer in enumerate(found.layers)):
        for ids in sequences:
            checkpoint.hidden(input_ids=checkpoint.row(ids), use_cache=False)
            tokens += len(ids) - 1
    return torch.stack(sums) / tokens


@dataclass(frozen=True)
class TokenSpans:
    """Token ids of k demonstrations after the first token, and for each where its parts stand.

    Demonstration i fills the positions `ends[i]` to `ends[i + 1] - 1`, with its answer from `answers[i]` on; the arrow
    stands one before, the last token of the input two before.
    """

    ids: tuple[int, ...]
    answers: tuple[int, ...]
    ends: tuple[int, ...]

    @classmethod
    def of(cls, checkpoint: Checkpoint, task: Task, examples: Sequence[Example]) -> "TokenSpans":
        """Tokenize demonstrations in a row, as `scoring.context_ids` does, and find where their parts stand.

        For tasks of word pairs, whose template ends in an arrow of one token.
        """
        ids, ends = scoring.context_ids(checkpoint, task, examples)
        tails = [f" {one.answer}{task.separator}" for one in examples]
        tokens = scoring.continuation_ids(checkpoint, [task.prompt(one) for one in examples], tails)
        starts = (end - len(tail) for end, tail in zip(ends[1:], tokens, strict=True))
        return cls(tuple(ids), tuple(starts), tuple(ends))

    def between(self, part: str, back: int = 0, *, arrow: bool = False) -> list[tuple[int, int]]:
        """Pairs (t, s): t from each answer to its line's end, s in the "input", "arrow" or "both" of a demonstration.

        That is the demonstration's own, or with `back` that of the one so many before. With `arrow`, t begins there.
        """
        pairs = []
        for i in range(back, len(self.answers)):
            start, answer = self.ends[i - back], self.answers[i - back]
            sources = {"input": range(start, answer - 1), "arrow": [answer - 1], "both": range(start, answer)}[part]
            pairs += [(t, s) for t in range(self.answers[i] - arrow, self.ends[i + 1]) for s in sources]
        return pairs


@dataclass(frozen=True, eq=False)
class Answers:
    """For each of n queries whether the model writes the answer and ends the line, and log p(answer) before that."""

    correct: np.ndarray
    log_probs: np.ndarray

    @classmethod
    def of(cls, checkpoint: Checkpoint, task: Task, prefix: Prefix, queries: Sequence[Example]) -> "Answers":
        """Exact match, as in `scoring.exact_match`, and log-probability of the right answer, from the same pass."""
        prompts, words = [task.prompt(query) for query in queries], [query.answer for query in queries]
        correct, log_probs = np.empty(len(queries), dtype=bool), np.empty(len(queries))
        for i, logits, ids in scoring.teacher_forced(checkpoint, prefix, prompts, words, task.separator):
            correct[i] = logits.argmax(-1).tolist() == ids
            log_probs[i] = logits.log_softmax(-1)[range(len(ids)), ids][:-1].sum().item()
        return cls(correct, log_probs)
