"""Blocking: does a learner learn about a cue whose label another cue has already told?

First a cue X stands alone with a label, then X and Y stand together with the same label, and Y is asked alone. A
learner that corrects its error (several steps of descent, the delta rule) has nothing left to learn about Y. One step
from zero, and a vote of similar examples, learn about Y all the same. Beside it, another cue Z stands first, which says
nothing of X and Y. The plan and the predictions, from before the runs, are in published/PLANS.md.
Source: Kamin (1969); Rescorla & Wagner (1972).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from explainer.compare.controls import made_up_word
from explainer.compare.cued_words import LABELS, TASK, label_words
from explainer.data.files import Tables
from explainer.data.tasks import Example
from explainer.errors import DivergenceError, require
from explainer.models import finetuning, scoring
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Prefix
from explainer_lab import lab_lessons, on_checkpoint
from explainer_lab.experiment import Computed
from explainer_lab.on_checkpoint import OnCheckpoint, as_columns

LESSONS: Mapping[str, tuple[str, str]] = {"blocked": ("X", "XY"), "control": ("Z", "XY"), "alone": ("Z", "Y")}
"""Which cues stand in the first lines, and which in those after them."""

_BATCH = 4  # lines in a step of training: one for each label


@dataclass(frozen=True, kw_only=True)
class _BlockingSetting(on_checkpoint.FineTuningSetting):
    """Four cues of each kind and their labels, as a seed draws them, with `k` lines of each of two parts of a lesson.

    Y stands behind X where they stand together if `last` is "Y", else before it. Without epochs there are contexts
    only. Raises ExperimentError for other values.
    """

    k: int
    n_queries: int
    last: str = "Y"
    least: ClassVar = {"k": 4, "n_queries": 4, "epochs": 0}
    fours: ClassVar = ("k", "n_queries")

    def __post_init__(self):
        """Refuse what cannot be computed before anything is."""
        super().__post_init__()
        require(self.last in ("X", "Y"), f"last = {self.last!r}: give X or Y.")

    @property
    def slug(self) -> str:
        """A readable name."""
        return f"blocking-{self.name}-{self.last}-last-{self.numbers(self.k, self.n_queries)}"


class _Lines:
    """The lines of a draw; every line begins with a made-up word of its own."""

    def __init__(self, setting: _BlockingSetting):
        """Draw the cues and their labels."""
        self._generator = np.random.default_rng([setting.seed, 13])
        words: dict[str, None] = {}
        while len(words) < 12 + 16 * setting.k + 2 * setting.n_queries:
            words[made_up_word(self._generator)] = None
        drawn = list(words)
        self.cues = {kind: drawn[4 * i : 4 * i + 4] for i, kind in enumerate("XYZ")}
        self.labels, self._order = self._generator.permutation(len(LABELS)), "XY" if setting.last == "Y" else "YX"
        self._stems = iter(drawn[12:])

    def draw(self, kinds: str, n: int) -> list[Example]:
        """n lines with these cues, each label in each four in a row once."""
        numbers = [int(i) for _ in range(n // 4) for i in self._generator.permutation(4)]
        order = self._order if len(kinds) > 1 else kinds
        words = [(" ".join([next(self._stems), *(self.cues[kind][i] for kind in order)]), i) for i in numbers]
        return label_words(words, [self.labels[i] for i in numbers])


def _run_blocking(checkpoint: Checkpoint, setting: _BlockingSetting, *, progress: bool = False) -> Tables:
    """The tables of one setting; published/README.md says what they have."""
    lines, rows, lost = _Lines(setting), [], []
    parts = {kinds: lines.draw(kinds, setting.k) for kinds in ("X", "Z", "XY", "Y")}
    asked = {kind: lines.draw(kind, setting.n_queries) for kind in "XY"}

    def add(kind: str, lesson: str, checkpoint: Checkpoint, prefix: Prefix) -> None:
        for cue, queries in asked.items():
            prompts, labels = [TASK.prompt(query) for query in queries], np.array([query.label for query in queries])
            log_probs = scoring.candidate_log_probs(checkpoint, prefix, prompts, LABELS).astype(float)
            among = log_probs - np.log(np.exp(log_probs).sum(1, keepdims=True))
            right, log_prob = (among.argmax(1) == labels).mean(), among[range(len(labels)), labels].mean()
            rows.append({"kind": kind, "lesson": lesson, "cue": cue, "right": right, "log_prob": log_prob})

    for lesson, (first, then) in LESSONS.items():
        add("ICL", lesson, checkpoint, lab_lessons.context(checkpoint, TASK, parts[first] + parts[then]))
        if not setting.epochs:
            continue
        try:
            for tuned in _trained(checkpoint, setting, (parts[first], parts[then]), progress):
                add("FT", lesson, tuned, scoring.encode(tuned, ""))
        except DivergenceError as error:
            lost.append(f"{lesson}: {error}")
    of_y = {f"{r['kind'].lower()}_{r['lesson']}": r["right"] for r in rows if r["cue"] == "Y"}
    return {"settings": of_y | {"note": "; ".join(lost)}, "answers": as_columns(rows)}


def _trained(
    checkpoint: Checkpoint, setting: _BlockingSetting, parts: Sequence[list[Example]], progress: bool
) -> Iterator[Checkpoint]:
    """The model after so many epochs over the first lines, and then as many over those after them."""
    sequences = [each for part in parts for each in setting.sequences(checkpoint, TASK, part)]
    answers = finetuning.answer_lengths(checkpoint, TASK, [example for part in parts for example in part])
    run = finetuning.Run(sequences, setting.lr, answers)
    with closing(finetuning.fine_tune_every_weight(checkpoint, run, _BATCH, progress=progress)) as steps:
        yield from (checkpoint for n in steps if n * _BATCH == len(sequences))


class Blocking(OnCheckpoint[_BlockingSetting]):
    """Computes the lessons of each setting."""

    name = "blocking"
    setting = _BlockingSetting
    protocol = 1
    slowest_first = ("checkpoint", "last", "k", "n_queries", "lr", "epochs", "seed")
    shown = ("icl_blocked", "icl_control", "icl_alone", "ft_blocked", "ft_control", "ft_alone", "note")
    usual: ClassVar = {"k": 16, "n_queries": 24, "lr": 2e-3, "epochs": 10}

    def holds(self, setting: _BlockingSetting) -> tuple[int, int]:
        """Its own weights to go back to, and the gradient."""
        return 3, 0

    def parts(self, setting: _BlockingSetting) -> dict[str, Any]:
        """Weights, and the cues with their labels."""
        lines = _Lines(setting)
        return {"weights": self._weights(setting.checkpoint), "cues": lines.cues | {"labels": lines.labels.tolist()}}

    def compute(self, setting: _BlockingSetting, *, progress: bool) -> Computed:
        """One setting."""
        checkpoint = self._load(setting.checkpoint)
        return Computed(_run_blocking(checkpoint, setting, progress=progress), self._provenance(checkpoint, TASK))
