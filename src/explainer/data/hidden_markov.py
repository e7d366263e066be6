"""A mixture of hidden Markov models, where the best that any learner in context can do is known exactly.

Xie et al. (2022, arXiv 2111.02080) explain in-context learning as inference of the concept that a document shares. In
their GINC data a concept is the transition matrix of a hidden Markov model. This is a small mixture of that kind, our
own: a document has one concept; its hidden states move by that concept's matrix, and after every token, with
probability `end`, an example ends: a delimiter follows and the state is drawn anew. So examples that are put side by
side in a prompt look like a document, and what Bayes' rule predicts can only gain from more of them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from tokenizers import Tokenizer, models
from torch import Tensor, nn

from explainer.data import corpora
from explainer.data.corpora import Tokens

NAME = "mixture"
"""Of the corpus, among training settings."""

DELIMITER = 0
EXAMPLES = (0, 1, 2, 4, 8, 16, 32)
LENGTHS = (3, 5, 8)


@dataclass(frozen=True, eq=False)
class Mixture:
    """C concepts with S hidden states and V tokens: all rows are probabilities, float64.

    start (S,), transition (C, S, S) from row to column, emission (S, V) of the tokens 1 ... V; token 0 is DELIMITER.
    """

    start: Float[Tensor, " S"]
    transition: Float[Tensor, "C S S"]
    emission: Float[Tensor, "S V"]
    end: float

    @property
    def vocabulary(self) -> int:
        """V + 1: the tokens and the delimiter."""
        return self.emission.shape[1] + 1


def draw(
    *, concepts: int = 10, states: int = 10, tokens: int = 20, noise: float = 0.3, end: float = 0.15, seed: int = 0
) -> Mixture:
    """A random mixture: each concept sends a state to one other, and with probability `noise` to any.

    Every state emits three tokens of its own choice, the first of them in half of the cases.
    """
    generator = np.random.default_rng(seed)
    moves = np.stack([np.eye(states)[generator.permutation(states)] for _ in range(concepts)])
    emission = np.zeros((states, tokens))
    for row in emission:
        row[generator.choice(tokens, 3, replace=False)] = (0.5, 0.3, 0.2)
    start = np.full(states, 1 / states)
    transition = (1 - noise) * moves + noise / states
    return Mixture(*(torch.from_numpy(part) for part in (start, transition, emission)), end)


def documents(mixture: Mixture, n: int, length: int, *, seed: int) -> Int[Tensor, "n length"]:
    """Documents, each of one concept that is drawn uniformly."""
    generator = np.random.default_rng(seed)
    concept = generator.integers(len(mixture.transition), size=n)
    rows, state = np.zeros((n, length), dtype=np.int64), None
    fresh = np.ones(n, dtype=bool)
    for t in range(length):
        ends = ~fresh & (generator.random(n) < mixture.end)
        moved = _drawn(mixture.transition.numpy()[concept, state], generator) if t else np.zeros(n, dtype=np.int64)
        state = np.where(fresh, _drawn(np.tile(mixture.start, (n, 1)), generator), moved)
        rows[:, t] = np.where(ends, DELIMITER, 1 + _drawn(mixture.emission.numpy()[state], generator))
        fresh = ends
    return torch.from_numpy(rows)


def _drawn(probabilities: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """One column of every row, by inversion."""
    points = generator.random((len(probabilities), 1))
    return (points > probabilities.cumsum(1)[:, :-1]).sum(1)


def predictive(mixture: Mixture, rows: Int[Tensor, "n T"]) -> Float[Tensor, "n T+1 V+1"]:
    """The exact Bayesian prediction p(x_t | x_1 ... x_(t-1)) at every place and after the last.

    The forward algorithm for the joint of concept and state: a move, alpha'(c, s) = sum_s' alpha(c, s') A_c(s', s), or
    alpha'(c, s) = start(s) sum_s' alpha(c, s') after a delimiter; then alpha(c, s) ~ alpha'(c, s) B(s, x_t).
    """
    C, n = len(mixture.transition), len(rows)
    alpha = (mixture.start / C).expand(n, C, -1)
    predictions = []
    for t in range(rows.shape[1] + 1):
        fresh = torch.ones(n, dtype=torch.bool) if t == 0 else rows[:, t - 1] == DELIMITER
        renewed = alpha.sum(-1, keepdim=True) * mixture.start
        state = torch.where(fresh[:, None, None], renewed, torch.einsum("ncs,csz->ncz", alpha, mixture.transition))
        end = torch.where(fresh, 0.0, mixture.end)[:, None]
        predictions.append(torch.cat([end, (1 - end) * state.sum(1) @ mixture.emission], dim=1))
        if t < rows.shape[1]:
            token = rows[:, t]
            seen = state * mixture.emission[:, (token - 1).clamp(min=0)].T[:, None]
            alpha = torch.where((token == DELIMITER)[:, None, None], alpha, seen)
            alpha = alpha / alpha.sum((1, 2), keepdim=True)
    return torch.stack(predictions, dim=1)


def tokens(*, train: int = 500, held_out: int = 50, length: int = 4096) -> Tokens:
    """Documents of the default mixture as a corpus to train on; no document is in both parts."""
    stream = documents(draw(), train + held_out, length, seed=1)
    names = tuple(f"document {i}" for i in range(held_out))
    vocabulary = models.WordLevel({corpora.SEPARATOR: DELIMITER} | {str(i): i for i in range(1, draw().vocabulary)})
    return Tokens(
        corpus=NAME,
        source="drawn from explainer.data.hidden_markov",
        licence="MIT",
        tokenizer=Tokenizer(vocabulary),
        train=stream[:train].flatten(),
        held_out=stream[train:].flatten(),
        starts=torch.arange(held_out) * length,
        documents=names,
    )


@dataclass(frozen=True, eq=False)
class Prompts:
    """Prompts of `examples` examples of k tokens and a delimiter each, then k - 1 tokens of one more.

    rows (n, examples (k + 1) + k - 1); the answer is the most likely token for one who knows the concept.
    """

    rows: Int[Tensor, "n T"]
    answers: Int[Tensor, " n"]


def prompts(mixture: Mixture, n: int, examples: int, k: int, *, seed: int) -> Prompts:
    """Draw prompts; `answers[i]` is argmax_x p(x | query, concept of prompt i), never the delimiter."""
    generator = np.random.default_rng([seed, examples, k])
    concept = generator.integers(len(mixture.transition), size=n)
    parts = []
    for i in range(examples + 1):
        length = k if i < examples else k - 1
        parts.append(_example(mixture, concept, length, generator))
        if i < examples:
            parts.append(np.full((n, 1), DELIMITER))
    query = torch.from_numpy(parts[-1])
    answers = torch.empty(n, dtype=torch.int64)
    for c in range(len(mixture.transition)):
        mine = torch.from_numpy(concept == c)
        known = Mixture(mixture.start, mixture.transition[c : c + 1], mixture.emission, mixture.end)
        answers[mine] = most_likely(predictive(known, query[mine])[:, -1])
    return Prompts(torch.from_numpy(np.concatenate(parts, axis=1)), answers)


def _example(mixture: Mixture, concept: np.ndarray, length: int, generator: np.random.Generator) -> np.ndarray:
    n, state, tokens = len(concept), None, []
    for t in range(length):
        start, moves = np.tile(mixture.start, (n, 1)), mixture.transition.numpy()
        state = _drawn(moves[concept, state] if t else start, generator)
        tokens.append(1 + _drawn(mixture.emission.numpy()[state], generator))
    return np.stack(tokens, axis=1) if tokens else np.zeros((n, 0), dtype=np.int64)


def most_likely(scores: Float[Tensor, "n V+1"]) -> Int[Tensor, " n"]:
    """The token with the highest score, the delimiter left out."""
    return scores[:, 1:].argmax(1) + 1


def accuracy(mixture: Mixture, asked: Prompts, predict: Callable[[Tensor], Tensor]) -> float:
    """Share of prompts answered right by `predict`: rows (n, T) to scores of the next token (n, V + 1 or more)."""
    scores = predict(asked.rows)[:, : mixture.vocabulary]
    return float((most_likely(scores) == asked.answers).double().mean())


def bayes(mixture: Mixture) -> Callable[[Tensor], Tensor]:
    """Predicts by Bayes' rule."""
    return lambda rows: predictive(mixture, rows)[:, -1]


def of_model(model: nn.Module) -> Callable[[Tensor], Tensor]:
    """Predicts by a language model."""

    @torch.no_grad()
    def predict(rows: Tensor) -> Tensor:
        device = next(model.parameters()).device
        return torch.cat([model(part.to(device)).logits[:, -1].float().cpu() for part in rows.split(64)])

    return predict


def in_context(model: nn.Module, context: int, *, n: int = 500) -> dict[str, list]:
    """Accuracy of Bayes' rule and of a model on n prompts of the default mixture, a row for each kind of prompt.

    Columns: length of an example, number of examples, n, and the two accuracies. Prompts that are longer than the
    model's context are left out.
    """
    mixture, predict = draw(), of_model(model)
    kinds = [(k, count) for k in LENGTHS for count in EXAMPLES if count * (k + 1) + k - 1 <= context]
    asked = [prompts(mixture, n, count, k, seed=0) for k, count in kinds]
    return {
        "example_length": [k for k, _ in kinds],
        "examples": [count for _, count in kinds],
        "n_prompts": [n] * len(kinds),
        "bayes": [accuracy(mixture, one, bayes(mixture)) for one in asked],
        "model": [accuracy(mixture, one, predict) for one in asked],
    }
