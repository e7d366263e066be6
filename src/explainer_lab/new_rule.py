"""A rule that nobody could know: a cue in made-up words stands for a label without meaning, drawn anew by each seed.

Rule A gives each of four cues a label, rule B the label of the next cue: the same words, order and template, and every
answer another. A context or a training shows k words of one rule, and words that were not shown are asked. With u(h) =
h / |h| for the attention outputs where the answer is decided, the *contrast* of two contexts is c = u_ICL(A) -
u_ICL(B), that of two trainings f = u_FT(A) - u_FT(B), as in `minimal_pairs`. The *vote* of a head for a label is
its attention to the answers that are this label, summed over the demonstrations. The plan and the predictions, from
before the runs, are in published/PLANS.md.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from explainer.compare import cued_words
from explainer.compare.cued_words import CUES, LABELS, TASK, Word, label_words
from explainer.data.files import Tables
from explainer.data.tasks import Example, Task, demonstrations, unrelated_task
from explainer.errors import DivergenceError, TaskError, require
from explainer.models import circuits, finetuning, interventions, recording, scoring
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Prefix
from explainer.results.thirds import THIRDS, layer_thirds
from explainer.theory import projections
from explainer_lab import harness, lab_lessons, minimal_pairs, on_checkpoint
from explainer_lab.experiment import Computed
from explainer_lab.lab_lessons import matched_random
from explainer_lab.minimal_pairs import LESSONS, SETS, Lesson, Outputs
from explainer_lab.on_checkpoint import OnCheckpoint, as_columns

TRAININGS: Mapping[str, str] = {
    "none": "none: contexts of every length, and the votes of the heads",
    "text": "keys and values, by the loss of the whole text, as in the paper",
    "answers": "keys and values, by the loss of the answers only",
    "all weights": "every weight, by the loss of the answers only",
}

N_HEADS = 10
"""Heads that vote together: those that agree most often with the model about the other set of words."""


@dataclass(frozen=True, kw_only=True)
class _NewRuleSetting(on_checkpoint.FineTuningSetting):
    """A kind of cue, and the draw of a seed: the labels of the cues, two sets of k words, and other words as queries.

    `training` is a name in TRAININGS; each of its steps takes `batch` lines. With `lessons` "own" there is one lesson,
    enough to choose a rate. Raises ExperimentError where a value is impossible.
    """

    cue: str
    k: int
    n_queries: int
    training: str
    batch: int = 1
    lessons: str = "all"
    least: ClassVar = {"k": 4, "epochs": 1, "n_queries": 4, "batch": 1}
    fours: ClassVar = ("k", "n_queries")
    known: ClassVar = {"cue": CUES, "training": TRAININGS, "lessons": ("all", "own")}

    def __post_init__(self):
        """Refuse what cannot be computed before anything is."""
        super().__post_init__()
        one = self.batch == 1 or self.training == "all weights"
        require(one, f"batch = {self.batch}: keys and values learn one line a step; leave it out.")
        require(self.k % self.batch == 0, f"batch = {self.batch} does not divide k = {self.k}.")

    @property
    def given(self) -> tuple[Lesson, ...]:
        """The lessons of the setting."""
        return LESSONS if self.lessons == "all" else LESSONS[:1]

    @property
    def slug(self) -> str:
        """A readable name."""
        unusual = [f"batch{self.batch}"] * (self.batch > 1) + ["own"] * (self.lessons == "own")
        of = [self.cue, self.training] if self.training != "none" else [self.cue]
        of = [word.replace(" ", "-") for word in of]
        return "-".join(["rule", self.name, *of, self.numbers(self.k, self.n_queries), *unusual])


# The rules and their words.


def _draw_words(setting: _NewRuleSetting) -> list[list[Word]]:
    """Two sets of k words, and the queries."""
    return cued_words.draw_words(setting.cue, setting.seed, setting.k, setting.k, setting.n_queries)


@dataclass(frozen=True, eq=False)
class _Rules:
    """Both rules of a draw, and what is asked of a checkpoint about them."""

    setting: _NewRuleSetting
    checkpoint: Checkpoint

    @cached_property
    def words(self) -> list[list[Word]]:
        """Two sets of words, and the queries."""
        return _draw_words(self.setting)

    def examples(self, rule: str, words: Sequence[Word]) -> list[Example]:
        """Words with their labels under rule A or B."""
        labels = cued_words.draw_labels(self.setting.cue, self.setting.seed)["AB".index(rule)]
        return label_words(words, [labels[cue] for _, cue in words])

    def demonstrations(self, lesson: Lesson) -> list[Example]:
        """The k examples of a lesson."""
        return self.examples(lesson.task, self.words[lesson.words])

    def shuffled(self) -> list[Example]:
        """The first set of words with labels that say nothing: each cue has each label as often as the others."""
        seen, given = [0] * 4, []
        for _, cue in self.words[0]:
            given.append((cue + seen[cue]) % len(LABELS))
            seen[cue] += 1
        return label_words(self.words[0], given)

    def context(self, examples: Sequence[Example]) -> Prefix:
        """The prefix of some examples."""
        return lab_lessons.context(self.checkpoint, TASK, examples)

    def right(self, rule: str) -> Int[np.ndarray, " n"]:
        """The number of the right label of each query under a rule."""
        return np.array([query.label for query in self.examples(rule, self.words[2])])

    @cached_property
    def prompts(self) -> list[str]:
        """The queries, which are the same text under both rules."""
        return list(map(TASK.prompt, self.examples("A", self.words[2])))

    def see(
        self, checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str] | None = None
    ) -> tuple[Float[Tensor, "n layers d"], Int[np.ndarray, " n"]]:
        """Attention outputs where each query, or another prompt, is decided, and the number of its label."""
        records = list(recording.iter_records(checkpoint, prefix, prompts or self.prompts, LABELS))
        chosen = [int(r.log_probs.argmax()) for r in records if r.log_probs is not None]  # of labels there always are
        return torch.stack([r.outputs for r in records]), np.array(chosen)


# The vote.


def _label_votes(
    checkpoint: Checkpoint, examples: Sequence[Example], prompts: Sequence[str]
) -> Float[Tensor, "n layers heads labels"]:
    """Attention of every head, from where each query is decided, to the answers that are a label, summed over them."""
    shown = circuits.TokenSpans.of(checkpoint, TASK, examples)
    answers = scoring.continuation_ids(checkpoint, list(map(TASK.prompt, examples)), [f" {e.answer}" for e in examples])
    of_label = torch.zeros(len(shown.ids), len(LABELS))
    for example, start, ids in zip(examples, shown.answers, answers, strict=True):
        of_label[start : start + len(ids), example.label] = 1
    found = []
    for record in recording.iter_records(checkpoint, scoring.encode(checkpoint, shown.ids), prompts, LABELS):
        found.append(record.weights[..., : len(of_label)] @ of_label)
    return torch.stack(found)


def _voted(rules: _Rules, lesson: Lesson) -> Int[np.ndarray, " n"]:
    """Labels with most votes of the heads that agree most often with the model about the other set of words."""
    examples = rules.demonstrations(lesson)
    others = list(map(TASK.prompt, rules.examples("A", rules.words[1 - lesson.words])))
    answers = torch.from_numpy(rules.see(rules.checkpoint, rules.context(examples), others)[1])
    agree = _label_votes(rules.checkpoint, examples, others).argmax(-1) == answers[:, None, None]
    layers, heads = map(list, zip(*circuits.strongest_heads(agree.float().mean(0), N_HEADS), strict=True))
    return _label_votes(rules.checkpoint, examples, rules.prompts)[:, layers, heads].sum(1).argmax(-1).numpy()


# Contexts and trainings.


@dataclass(frozen=True, eq=False)
class _Found:
    """What was seen: outputs as `minimal_pairs` has them, answers by (kind, strength, lesson), what diverged."""

    outputs: Outputs
    answers: dict[tuple[str, int, Lesson | None], Int[np.ndarray, " n"]]
    lost: list[str]

    def add(self, kind: str, strength: int, lesson: Lesson, seen: tuple[Tensor, np.ndarray]) -> None:
        self.outputs.setdefault((kind, strength), {})[lesson], self.answers[kind, strength, lesson] = seen


def _add_contexts(rules: _Rules, found: _Found) -> None:
    """Whole contexts, those in another order, and shuffled labels; without a training contexts of all lengths."""
    setting, every_length = rules.setting, rules.setting.training == "none"

    def see(kind: str, lesson: Lesson, examples: Sequence[Example]) -> None:
        found.add(kind, len(examples), lesson, rules.see(rules.checkpoint, rules.context(examples)))

    order = np.random.default_rng([setting.seed, 3]).permutation(setting.k)
    for lesson in setting.given:
        examples = rules.demonstrations(lesson)
        for n in [n for n in (1, 2, 4, 8) if n < setting.k and every_length] + [setting.k]:
            see("ICL", lesson, examples[:n])
        if setting.lessons == "all":
            see("ICL reordered", lesson, [examples[i] for i in order])
    see("ICL shuffled", LESSONS[0], rules.shuffled())
    if every_length:
        for rule in "AB":
            see("ICL", Lesson(rule, 0), [e for i in SETS for e in rules.demonstrations(Lesson(rule, i))])


def _trained(rules: _Rules, lost: list[str], progress: bool) -> Iterator[tuple[Lesson, int, Checkpoint]]:
    """The model after each number of epochs of each lesson, until the next one is asked for; who diverged is `lost`."""
    setting, checkpoint = rules.setting, rules.checkpoint
    given = {lesson: (TASK, rules.demonstrations(lesson)) for lesson in setting.given}
    if setting.training == "all weights":
        steps = {n * setting.k // setting.batch: n for n in setting.stages}
        for lesson, shown in given.items():
            answers = finetuning.answer_lengths(checkpoint, *shown)
            run = finetuning.Run(setting.sequences(checkpoint, *shown), setting.lr, answers)
            try:
                with closing(
                    finetuning.fine_tune_every_weight(checkpoint, run, setting.batch, progress=progress)
                ) as taken:
                    yield from ((lesson, steps[n], checkpoint) for n in taken if n in steps)
            except DivergenceError as error:
                lost.append(f"{lesson.task}{lesson.words}: {error}")
        return
    at_rate = {lesson: (shown, setting.lr) for lesson, shown in given.items()}
    answers_only = setting.training == "answers"
    after = lab_lessons.trained(checkpoint, setting, at_rate, answers_only=answers_only, progress=progress)
    for lesson, states in after.items():
        for n, state in states.items():
            if state.diverged_at is None:
                with state.applied() as tuned:
                    yield lesson, n, tuned
        if (at := states[setting.epochs].diverged_at) is not None:
            lost.append(f"{lesson.task}{lesson.words} at step {at}")


# Tables.


def _summary(rules: _Rules, found: _Found, changes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    setting = rules.setting

    def right(kind: str, strength: int) -> float:
        its = [r for r in changes if (r["kind"], r["strength"]) == (kind, strength)]
        return float(np.mean([r[f"right_{(r['lesson'] or 'A').lower()}"] for r in its])) if its else float("nan")

    strengths = {"zsl": ("ZSL", 0), "icl": ("ICL", setting.k), "shuffled": ("ICL shuffled", setting.k)}
    strengths |= {} if setting.training == "none" else {"ft": ("FT", setting.epochs)}
    note = f"a training diverged: {', '.join(found.lost)}" if found.lost else ""
    return {f"{name}_accuracy": right(*its) for name, its in strengths.items()} | {"note": note}


def _changes(rules: _Rules, found: _Found) -> Iterator[dict[str, Any]]:
    """Shares of right answers; a context of more than k words has both sets."""
    for (kind, strength, lesson), answers in found.answers.items():
        told = {"kind": kind, "strength": strength, "lesson": lesson and lesson.task, "words": lesson and lesson.words}
        yield told | {f"right_{rule.lower()}": (answers == rules.right(rule)).mean() for rule in "AB"}


def _given(
    rules: _Rules, found: _Found, rule: str, given: Mapping[str, tuple[str, int]], **more: np.ndarray
) -> Iterator[dict[str, Any]]:
    """For each query the right label, those given after the first set of words and after the other, and more."""
    labels = {"right": rules.right(rule)} | more
    for name, strength in given.items():
        labels |= {f"{name}{end}": found.answers[*strength, Lesson(rule, i)] for end, i in (("", 0), ("_other", 1))}
    for i, (word, _) in enumerate(rules.words[2]):
        yield {"rule": rule, "query": i, "word": word} | {name: int(its[i]) for name, its in labels.items()}


def _votes(rules: _Rules, found: _Found) -> Iterator[dict[str, Any]]:
    """What is voted after the first set of words, beside the answers after it and after the other set."""
    for rule in "AB":
        yield from _given(rules, found, rule, {"icl": ("ICL", rules.setting.k)}, vote=_voted(rules, Lesson(rule, 0)))


# Interventions.


def _interventions(rules: _Rules, found: _Found) -> Iterator[dict[str, Any]]:
    """Answers when a part of a contrast is put into the pass with the other rule, or taken out of that with the rule.

    Passes are those of the first set of words. A part is changed in all layers, or in a third of them alone. Raises
    TaskError where no one token tells the labels apart.
    """
    tokens = torch.tensor(scoring.label_tokens(rules.checkpoint, TASK, rules.examples("A", rules.words[2])))
    empty = scoring.encode(rules.checkpoint, "")
    last = interventions.without_context(rules.checkpoint, empty, rules.prompts, LABELS).at_last()
    icl, ft = found.outputs["ICL", rules.setting.k], found.outputs["FT", rules.setting.epochs]
    generator = rules.setting.generator(7, rules.setting.cue)
    for to, away in ("AB", "BA"):
        wanted = torch.from_numpy(rules.right(to)), torch.from_numpy(rules.right(away))

        def row(name: str, layers: str, *attention: Tensor, to: str = to, wanted: Sequence[Tensor] = wanted):
            logits = last.logits_with_outputs(*attention).cpu().float()
            of_labels = logits.gather(1, tokens.repeat(len(attention), 1))
            answers = minimal_pairs.answered(of_labels, *wanted)
            return {"intervention": name, "towards": to, "layers": layers} | answers

        (c_this, c_that, c), (f_this, f_that, f) = (_contrast(of, to, away, 0) for of in (icl, ft))
        f_other = _contrast(ft, to, away, 1)[-1]
        yield row("context", "all", c_this)
        yield row("context_other_rule", "all", c_that)
        yield row("ft", "all", f_this)
        yield row("ft_other_rule", "all", f_that)
        parts = {
            ("context", "ft"): [projections.component(c, f)],
            ("context", "other_ft"): [projections.component(c, f_other)],
            ("context", "near"): matched_random(c, f, generator),
            ("ft", "icl"): [projections.component(f, c)],
            ("ft", "near"): matched_random(f, c, generator),
        }
        for (side, name), its in parts.items():
            with_rule, with_other = (c_this, c_that) if side == "context" else (f_this, f_that)
            for layers, chosen in ({"all": slice(None)} | layer_thirds(c.shape[1])).items():
                kept = torch.zeros(c.shape[1], 1)
                kept[chosen] = 1
                yield row(f"{side}_along_{name}", layers, *(with_other + kept * part for part in its))
                yield row(f"{side}_across_{name}", layers, *(with_rule - kept * part for part in its))


def _contrast(of: Mapping[Lesson, Tensor], to: str, away: str, words: int) -> tuple[Tensor, Tensor, Tensor]:
    """The outputs under one rule, those under the other, and their difference."""
    this, that = of[Lesson(to, words)], of[Lesson(away, words)]
    return this, that, this - that


# The experiment.


class NewRule(OnCheckpoint[_NewRuleSetting]):
    """Computes the rules of each setting."""

    name = "new_rule"
    setting = _NewRuleSetting
    protocol = 1
    slowest_first = ("checkpoint", "cue", "training", "lessons", "batch", "epochs", "k", "n_queries", "lr", "seed")
    shown = ("zsl_accuracy", "icl_accuracy", "shuffled_accuracy", "ft_accuracy", "own", "other", "note")
    usual: ClassVar = {"k": 16, "n_queries": 24, "lr": 2e-3, "epochs": 10, "training": "none"}

    def holds(self, setting: _NewRuleSetting) -> tuple[int, int]:
        """A second model to go back to where every weight is trained; else every lesson after each number of epochs."""
        whole = setting.training == "all weights"
        return 1 + 2 * whole, 0 if whole or setting.training == "none" else len(setting.given) * len(setting.stages)

    def parts(self, setting: _NewRuleSetting) -> dict[str, Any]:
        """Weights, the words, and their labels."""
        drawn = repr((tuple(_draw_words(setting)), cued_words.draw_labels(setting.cue, setting.seed).tolist(), LABELS))
        return {"weights": self._weights(setting.checkpoint), "words": hashlib.sha256(drawn.encode()).hexdigest()}

    def asked(self, setting: _NewRuleSetting) -> tuple[str, Task, list[Example], harness.Shown]:
        """A name, the task, its queries, and demonstrations: of rule A, with shuffled labels, and of another task."""
        rules = _Rules(setting, self._load(setting.checkpoint))
        shown = {"right": rules.demonstrations(LESSONS[0]), "shuffled": rules.shuffled()}
        other = self._load_data(unrelated_task(TASK, short=True))
        of_task = {name: (TASK, examples) for name, examples in shown.items()}
        of_task["other"] = other.task, demonstrations(other, setting.k, setting.seed)
        return setting.cue, TASK, rules.examples("A", rules.words[2]), of_task

    def compute(self, setting: _NewRuleSetting, *, progress: bool) -> Computed:
        """One setting; published/README.md says what the tables have."""
        checkpoint = self._load(setting.checkpoint)
        rules, found = _Rules(setting, checkpoint), _Found({}, {}, [])
        found.answers["ZSL", 0, None] = rules.see(checkpoint, scoring.encode(checkpoint, ""))[1]
        _add_contexts(rules, found)
        if setting.training != "none":
            for lesson, n, tuned in _trained(rules, found.lost, progress):
                found.add("FT", n, lesson, rules.see(tuned, scoring.encode(tuned, "")))
        changes = list(_changes(rules, found))
        tables: Tables = {"settings": _summary(rules, found, changes), "changes": as_columns(changes)}
        if setting.training == "none":
            tables["answers"] = as_columns(list(_votes(rules, found)))
        elif setting.lessons == "all":
            layers = minimal_pairs.similarities(found.outputs, setting.k, setting.epochs)
            tables["settings"] |= minimal_pairs.means(layers)
            tables |= minimal_pairs.similarity_tables(found.outputs, setting, setting.k, [setting.k], THIRDS)
            del tables["strengths"]["shots"]  # all are of k words
            if not found.lost:
                given = {"icl": ("ICL", setting.k), "ft": ("FT", setting.epochs)}
                tables["answers"] = as_columns([row for rule in "AB" for row in _given(rules, found, rule, given)])
                try:
                    tables["interventions"] = as_columns(list(_interventions(rules, found)))
                except TaskError:  # a small vocabulary spells the labels, and some begin alike
                    tables["settings"]["note"] = "no interventions, because no one token tells the labels apart"
        return Computed(tables, self._provenance(checkpoint, TASK), arrays=minimal_pairs.arrays(found.outputs))
