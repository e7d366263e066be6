"""Reversal: pairs "a -> b" are learned, in the context or by fine-tuning, and "b -> a" is asked.

The words a are made up and the words b are nouns, paired at random, so that no model can know a pair beforehand. Who
has read the pairs in the context can answer in both directions by looking back. Who was trained on them has learned to
write b after a. Berglund et al. (2024) found that models do not reverse what they were trained on, and Lampinen et al.
(2025) that they do reverse what stands in their context. If in-context learning does what fine-tuning does, it should
fail where fine-tuning fails.

An answer is right if of all answers of the lesson the right one is the most probable: by chance 1 / n_pairs. Controls:
no lesson at all, and a lesson with the answers shuffled, are floors; both directions in the lesson are the ceiling.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from explainer.compare.comparison import require
from explainer.compare.controls import made_up_word
from explainer.data import tasks
from explainer.models import checkpoints, finetuning, lockstep, scoring
from explainer.models.checkpoints import Checkpoint
from explainer.study.experiment import Computed, Experiment

PROTOCOL = 1

LESSONS: Mapping[str, str] = {
    "forward": "a -> b",
    "both": "a -> b of all pairs, then b -> a of all pairs",
    "shuffled": "a -> b with the b of another pair, mostly",
}
"""What stands in the context, or is trained on."""

Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Draw:
    """The pairs of one seed, and how they are trained on."""

    checkpoint: str
    n_pairs: int
    lr: float
    epochs: int
    seed: int

    def __post_init__(self):
        """Refuse what is impossible; StudyError."""
        require(self.seed >= 0, f"seed {self.seed} is negative; use 0 or more.")
        require(self.n_pairs >= 2, f"n_pairs = {self.n_pairs} is too small; use at least 2.")
        require(self.epochs >= 1, f"epochs = {self.epochs} is too small; use at least 1.")
        require(0 < self.lr < np.inf, f"lr = {self.lr:g} is not a positive number.")

    @property
    def slug(self) -> str:
        """A readable name."""
        name = Path(self.checkpoint.partition("@")[0]).name
        return f"reversal-{name}-n{self.n_pairs}-lr{self.lr:g}-e{self.epochs}-seed{self.seed}"


def draw_pairs(n: int, seed: int) -> list[Pair]:
    """(a, b) with a made up and b a noun, all different; StudyError if there are not so many nouns."""
    generator = np.random.default_rng([seed, 3])
    nouns = sorted({example.fields["word"] for example in tasks.load("plurals").train})
    require(n <= len(nouns), f"n_pairs = {n} is too large; there are {len(nouns)} nouns.")
    made_up: dict[str, None] = {}
    while len(made_up) < n:
        made_up[made_up_word(generator)] = None
    return list(zip(made_up, generator.choice(nouns, n, replace=False).tolist(), strict=True))


def lesson(pairs: Sequence[Pair], name: str, seed: int) -> list[Pair]:
    """The lines of a lesson, question and answer."""
    if name == "both":
        return [*pairs, *((b, a) for a, b in pairs)]
    if name == "shuffled":
        order = np.random.default_rng([seed, 4]).permutation(len(pairs))
        return [(a, pairs[i][1]) for (a, _), i in zip(pairs, order, strict=True)]
    return list(pairs)


def answers(checkpoint: Checkpoint, context: Sequence[Pair], pairs: Sequence[Pair]) -> dict[str, np.ndarray]:
    """log p of every answer to every question after the lines of a context, (n, n) for each direction."""
    pieces = [checkpoint.tokenize(f"{x} -> {y}\n") for x, y in context]
    prefix = scoring.encode(checkpoint, [checkpoint.first_token_id, *(token for piece in pieces for token in piece)])
    a, b = (list(side) for side in zip(*pairs, strict=True))
    ask = lambda questions, given: scoring.candidate_log_probs(  # noqa: E731
        checkpoint, prefix, [f"{word} ->" for word in questions], given
    )
    return {"forward": ask(a, b), "backward": ask(b, a)}


def run_draw(checkpoint: Checkpoint, draw: Draw, *, progress: bool = False) -> dict[str, Any]:
    """The tables of one draw: answers after nothing, after each lesson in the context, and after training on it."""
    pairs = draw_pairs(draw.n_pairs, draw.seed)
    rows, cells, notes = [], {}, []

    def add(kind: str, name: str | None, found: Mapping[str, np.ndarray]) -> None:
        for direction, log_probs in found.items():
            row = _scored(log_probs)
            told = {"kind": kind, "lesson": name, "direction": direction}
            cells["_".join(filter(None, told.values()))] = float(row["correct"].mean())
            rows.append(
                {column: [value] * len(pairs) for column, value in told.items()}
                | {"pair": list(range(len(pairs)))}
                | {column: values.tolist() for column, values in row.items()}
            )

    add("zsl", None, answers(checkpoint, [], pairs))
    for name in LESSONS:
        lines = lesson(pairs, name, draw.seed)
        add("icl", name, answers(checkpoint, lines, pairs))
        once = [[checkpoint.first_token_id, *checkpoint.tokenize(f"{x} -> {y}")] for x, y in lines]
        repeated = lockstep.epochs(once, draw.epochs, draw.seed)
        finetuned = finetuning.fine_tune(checkpoint, repeated, draw.lr, progress=progress)
        if finetuned.diverged_at is not None:
            notes.append(f"fine-tuning on {name} diverged at step {finetuned.diverged_at}")
            continue
        with finetuned.applied() as tuned:
            add("ft", name, answers(tuned, [], pairs))
    columns = {name: [value for row in rows for value in row[name]] for name in rows[0]}
    return {"cells": cells | {"note": "; ".join(notes)}, "answers": columns}


def _scored(log_probs: np.ndarray) -> dict[str, np.ndarray]:
    """Whether the right answer is the most probable one, and the same after each answer's mean is taken away.

    Some words are probable whatever is asked. `calibrated` subtracts the mean over questions of each answer's log p.
    """
    right = np.arange(len(log_probs))
    calibrated = log_probs - log_probs.mean(0)
    return {
        "correct": log_probs.argmax(1) == right,
        "calibrated": calibrated.argmax(1) == right,
        "log_prob": log_probs[right, right].astype(float),
    }


class Reversal(Experiment[Draw]):
    """Computes draws, all on one checkpoint at a time."""

    name = "reversal"
    setting = Draw
    protocol = PROTOCOL
    slowest_first = ("checkpoint", "n_pairs", "lr", "epochs", "seed")
    shown = ("icl_forward_forward", "icl_forward_backward", "ft_forward_forward", "ft_forward_backward", "note")

    def __init__(self):
        """Nothing is loaded before it is asked for."""
        self._checkpoint: tuple[str, Checkpoint] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Another process loads for itself."""
        return {}

    def __setstate__(self, _: dict[str, Any]) -> None:
        """See `__getstate__`."""
        self.__init__()

    @classmethod
    def of(cls, **values: Any) -> Draw:
        """Without a checkpoint the starter checkpoint, and eight pairs."""
        return super().of(**{"checkpoint": checkpoints.STARTER, "n_pairs": 8} | values)

    def parts(self, draw: Draw) -> dict[str, Any]:
        """Weights, and the nouns of the pairs."""
        pairs = [list(pair) for pair in draw_pairs(draw.n_pairs, draw.seed)]
        return {"weights": checkpoints.digest(draw.checkpoint), "pairs": pairs}

    def compute(self, draw: Draw, *, progress: bool) -> Computed:
        """One draw."""
        if self._checkpoint is None or self._checkpoint[0] != draw.checkpoint:
            self._checkpoint = draw.checkpoint, checkpoints.load(draw.checkpoint, dtype=torch.float32)
        checkpoint = self._checkpoint[1]
        return Computed(run_draw(checkpoint, draw, progress=progress), {"revision": checkpoint.revision})
