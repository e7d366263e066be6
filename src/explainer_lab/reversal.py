"""Reversal: pairs "a -> b" are learned, in the context or by fine-tuning, and "b -> a" is asked.

The words a are made up and the words b are nouns, paired at random. An answer is right if of all answers of the lesson
it is the most probable: by chance 1 / n_pairs.
Source: Berglund et al. (2024), of trainings; Lampinen et al. (2025), of contexts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from explainer.compare.controls import made_up_word
from explainer.data import tasks
from explainer.data.tasks import Example, Task
from explainer.errors import require
from explainer.models import finetuning, scoring
from explainer.models.loading import Checkpoint
from explainer_lab import lab_lessons, on_checkpoint
from explainer_lab.experiment import Computed
from explainer_lab.on_checkpoint import OnCheckpoint, as_columns

LESSONS: Mapping[str, str] = {
    "forward": "a -> b",
    "both": "a -> b of all pairs, then b -> a of all pairs",
    "shuffled": "a -> b with the b of another pair, mostly",
}
"""What stands in the context, or is trained on."""

LINE = Task("reversal", "{word} ->", None)
"""How a pair is written."""

Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class _ReversalSetting(on_checkpoint.FineTuningSetting):
    """The pairs of one seed, and how they are trained on."""

    n_pairs: int
    least: ClassVar = {"n_pairs": 2, "epochs": 1}

    @property
    def slug(self) -> str:
        """A readable name."""
        return f"reversal-{self.name}-n{self.n_pairs}-lr{self.lr:g}-e{self.epochs}-seed{self.seed}"


def _draw_pairs(n: int, seed: int) -> list[Pair]:
    """(a, b) with a made up and b a noun, all different; ExperimentError if there are not so many nouns."""
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


def _answer_log_probs(checkpoint: Checkpoint, context: Sequence[Pair], pairs: Sequence[Pair]) -> dict[str, np.ndarray]:
    """log p of every answer to every question after the lines of a context, (n, n) for each direction."""
    prefix = lab_lessons.context(checkpoint, LINE, [Example({"word": x}, y) for x, y in context])
    a, b = (list(side) for side in zip(*pairs, strict=True))
    asked = {"forward": (a, b), "backward": (b, a)}
    return {
        direction: scoring.candidate_log_probs(checkpoint, prefix, [f"{word} ->" for word in questions], given)
        for direction, (questions, given) in asked.items()
    }


def _scored(log_probs: np.ndarray) -> dict[str, np.ndarray]:
    """Whether the right answer is the most probable one, and so less each answer's mean log p (`calibrated`)."""
    right = np.arange(len(log_probs))
    calibrated = log_probs - log_probs.mean(0)
    return {
        "correct": log_probs.argmax(1) == right,
        "calibrated": calibrated.argmax(1) == right,
        "log_prob": log_probs[right, right].astype(float),
    }


class Reversal(OnCheckpoint[_ReversalSetting]):
    """Computes the lessons of each setting."""

    name = "reversal"
    setting = _ReversalSetting
    protocol = 1
    slowest_first = ("checkpoint", "n_pairs", "lr", "epochs", "seed")
    shown = ("icl_forward_forward", "icl_forward_backward", "ft_forward_forward", "ft_forward_backward", "note")
    usual: ClassVar = {"n_pairs": 8}

    def parts(self, setting: _ReversalSetting) -> dict[str, Any]:
        """Weights, and the nouns of the pairs."""
        pairs = [list(pair) for pair in _draw_pairs(setting.n_pairs, setting.seed)]
        return {"weights": self._weights(setting.checkpoint), "pairs": pairs}

    def compute(self, setting: _ReversalSetting, *, progress: bool) -> Computed:
        """Answers after nothing, after each lesson in the context, and after training on it."""
        checkpoint, pairs = self._load(setting.checkpoint), _draw_pairs(setting.n_pairs, setting.seed)
        rows, settings, notes = [], {}, []

        def add(kind: str, name: str | None, found: Mapping[str, np.ndarray]) -> None:
            for direction, log_probs in found.items():
                scored = _scored(log_probs)
                told = {"kind": kind, "lesson": name, "direction": direction}
                settings["_".join(filter(None, told.values()))] = float(scored["correct"].mean())
                for pair in range(len(pairs)):
                    rows.append(told | {"pair": pair} | {column: its[pair].item() for column, its in scored.items()})

        add("zsl", None, _answer_log_probs(checkpoint, [], pairs))
        for name in LESSONS:
            lines = lesson(pairs, name, setting.seed)
            add("icl", name, _answer_log_probs(checkpoint, lines, pairs))
            once = [[checkpoint.first_token_id, *checkpoint.tokenize(f"{x} -> {y}")] for x, y in lines]
            repeated = finetuning.repeat_epochs(once, setting.epochs, setting.seed)
            finetuned = finetuning.fine_tune(checkpoint, repeated, setting.lr, progress=progress)
            if finetuned.diverged_at is not None:
                notes.append(f"fine-tuning on {name} diverged at step {finetuned.diverged_at}")
                continue
            with finetuned.applied() as tuned:
                add("ft", name, _answer_log_probs(tuned, [], pairs))
        tables = {"settings": settings | {"note": "; ".join(notes)}, "answers": as_columns(rows)}
        return Computed(tables, self._provenance(checkpoint))
