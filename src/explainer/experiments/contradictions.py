"""One made-up word with four answers that contradict each other, in all 24 orders: which answer counts?

An update rule that takes all lines at once gives each answer the same weight, wherever it stands. One that takes them
one after the other at a constant rate, as the delta rule does, gives the last line the most. Both predictions stood
here before the run; a run with eight other words, which had put the first answer above those in the middle, was known.

Over all orders each answer stands equally often at each position, so that what a model thinks of a word cancels.
"""

import json
from collections.abc import Sequence

import numpy as np

from explainer.experiments import reversal
from explainer.lab.store import published_directory
from explainer.models import scoring
from explainer.models.checkpoints import Checkpoint
from explainer.theory import order

LINES, WORDS = 4, 32
FILE = "contradictions.json"


def drawn(seed: int) -> tuple[str, list[str]]:
    """A made-up word, and four nouns that are its answers."""
    pairs = reversal.draw_pairs(LINES, seed)
    return pairs[0][0], [noun for _, noun in pairs]


def prompt(word: str, answers: Sequence[str]) -> str:
    """A line for each answer, in this order, and the word again."""
    return "".join(f"{word} -> {answer}\n" for answer in answers) + f"{word} ->"


def measured(checkpoint: Checkpoint, seed: int) -> np.ndarray:
    """log p of the answer at each position in each order of `explainer.theory.order.orders`: (24, 4)."""
    word, answers = drawn(seed)
    orders = order.orders(LINES).numpy()
    prompts = [prompt(word, [answers[i] for i in row]) for row in orders]
    log_probs = scoring.candidate_log_probs(checkpoint, scoring.encode(checkpoint, ""), prompts, answers)
    return np.take_along_axis(log_probs.astype(float), orders, axis=1)


def shares(log_probs: np.ndarray) -> np.ndarray:
    """Share of the probability of the four answers that each position has, mean over orders: (..., 24, 4) -> (..., 4)."""
    p = np.exp(log_probs)
    return (p / p.sum(-1, keepdims=True)).mean(-2)


def store() -> None:
    """Write what `stored` reads: all words on the starter checkpoint, in float32 on the CPU, in three minutes."""
    import torch  # noqa: PLC0415 - reading needs no model

    from explainer.models import checkpoints  # noqa: PLC0415

    checkpoint = checkpoints.load(device="cpu", dtype=torch.float32)
    found = [measured(checkpoint, seed).round(4).tolist() for seed in range(WORDS)]
    text = json.dumps(found, separators=(",", ":")).replace("]],", "]],\n") + "\n"
    (published_directory() / FILE).write_text(text, "utf-8")


def stored() -> np.ndarray:
    """The stored log-probabilities of the answer at each position: (32 words, 24 orders, 4 positions)."""
    return np.array(json.loads((published_directory() / FILE).read_text("utf-8")))
