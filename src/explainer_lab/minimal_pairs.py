"""Minimal pairs of lessons: the same words, template and order, with the answers of two tasks A and B.

With u(h) = h / |h| for the attention outputs at the last token of a query, the *contrast* of two contexts is c =
u_ICL(A) - u_ICL(B), and that of two trainings f = u_FT(A) - u_FT(B). Exchanging A and B in one of them turns the sign
of cos(c, f): its floor is 0, exactly. The plan and the predictions, from before the runs, are in published/PLANS.md.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from explainer.compare.observations import observe
from explainer.data.files import Tables
from explainer.data.tasks import Example, TaskData
from explainer.errors import TaskError, require
from explainer.models import interventions, scoring
from explainer.models.finetuning import FineTuned
from explainer.models.loading import Checkpoint
from explainer.results.thirds import layer_thirds
from explainer.theory import metrics, projections
from explainer_lab import lab_lessons, on_checkpoint
from explainer_lab.experiment import Computed
from explainer_lab.lab_lessons import matched_random
from explainer_lab.on_checkpoint import FineTuningSetting, OnCheckpoint, as_columns

SETS = (0, 1)  # two disjoint sets of words


@dataclass(frozen=True, kw_only=True)
class _MinimalPairsSetting(on_checkpoint.FineTuningSetting):
    """Two tasks of one template, as "A/B", and the draw of a seed: two sets of k words, and other words as queries.

    Raises ExperimentError where a value is impossible.
    """

    pair: str
    k: int
    n_queries: int
    least: ClassVar = {"k": 1, "epochs": 1, "n_queries": 2}

    def __post_init__(self):
        """Refuse what cannot be computed before anything is."""
        super().__post_init__()
        require(len(set(self.names)) == 2, f"the pair {self.pair!r} does not name two tasks; give 'past/participles'.")

    @property
    def names(self) -> tuple[str, ...]:
        """A and B."""
        return tuple(self.pair.split("/"))

    @property
    def shots(self) -> list[int]:
        """The numbers of words with which contexts are compared: 1, 2, 4, 8, 16, as far as they go, and k."""
        return [n for n in (1, 2, 4, 8, 16) if n < self.k] + [self.k]

    @property
    def slug(self) -> str:
        """A readable name."""
        return f"pairs-{self.name}-{self.pair.replace('/', '-')}-{self.numbers(self.k, self.n_queries)}"


# Lessons.


class _Words(NamedTuple):
    """The words of a draw: two sets to learn from, and the queries; with the example of each word in both tasks."""

    examples: Mapping[str, Mapping[str, Example]]
    sets: tuple[list[str], ...]
    queries: list[str]

    def of(self, lesson: str, words: Sequence[str]) -> list[Example]:
        """The examples of words in a task."""
        return [self.examples[lesson][word] for word in words]


def _draw_words(checkpoint: Checkpoint, data: Mapping[str, TaskData], setting: _MinimalPairsSetting) -> _Words:
    """Words that the two tasks answer differently, the queries with another first token; TaskError where too few."""
    forms = {(its.task.fields, its.task.template, its.task.separator, its.task.labels) for its in data.values()}
    (fields, *_, labels) = next(iter(forms))
    if len(forms) > 1 or len(fields) != 1 or labels is not None:
        raise TaskError(f"{'/'.join(data)}: a minimal pair has one template of one field, and free answers, in common.")
    (field,) = fields
    examples = {
        name: {example.fields[field]: example for example in (*its.train, *its.test)} for name, its in data.items()
    }
    shared = sorted(set.intersection(*map(set, examples.values())))
    differ = [word for word in shared if len({of[word].answer for of in examples.values()}) == len(data)]
    order = np.random.default_rng([setting.seed, *setting.pair.encode()]).permutation(len(differ))
    words = [differ[i] for i in order]
    first = []
    for name, of in examples.items():
        prompts = [data[name].task.prompt(of[word]) for word in words]
        ids = scoring.continuation_ids(checkpoint, prompts, [f" {of[word].answer}" for word in words])
        first.append([each[0] for each in ids])
    telling = [word for word, *tokens in zip(words, *first, strict=True) if len(set(tokens)) == len(data)]
    queries = telling[: setting.n_queries]
    rest = [word for word in words if word not in queries]
    if len(queries) < setting.n_queries or len(rest) < 2 * setting.k:
        raise TaskError(
            f"{setting.pair}: {len(telling)} words have answers with another first token, and n_queries = "
            f"{setting.n_queries} are needed; {len(rest)} are left, and 2 k = {2 * setting.k} are needed."
        )
    return _Words(examples, (rest[: setting.k], rest[setting.k : 2 * setting.k]), queries)


# Contrasts.


def contrast(a: Float[Tensor, "n layers d"], b: Float[Tensor, "n layers d"]) -> Float[Tensor, "n layers d"]:
    """u(a) - u(b), the difference of the normalised outputs under two lessons; NaN where it is rounding."""
    u, v = (torch.nn.functional.normalize(h.double(), dim=-1) for h in (a, b))
    return metrics.nan_within_rounding(u - v, u, metrics.machine_epsilon(a, b))


def contrast_agreement(
    c: Float[Tensor, "n layers d"], f: Float[Tensor, "n layers d"]
) -> tuple[Float[Tensor, " layers"], Float[Tensor, " layers"]]:
    """Means over queries of cos(c, f), and of the cosine of what is left of each when its mean over queries is taken.

    Exchanging the lessons of one contrast turns both signs. NaN where a contrast is rounding.
    """
    cosine = torch.nn.functional.cosine_similarity
    return cosine(c, f, dim=-1).nanmean(0), cosine(c - c.nanmean(0), f - f.nanmean(0), dim=-1).nanmean(0)


class Lesson(NamedTuple):
    """A task, A or B, and the number of a set of words."""

    task: str
    words: int


LESSONS = tuple(Lesson(task, words) for words in SETS for task in "AB")

CONTRASTS: Mapping[str, tuple[Lesson, Lesson]] = {
    "tasks 0": (Lesson("A", 0), Lesson("B", 0)),
    "tasks 1": (Lesson("A", 1), Lesson("B", 1)),
    "words A": (Lesson("A", 0), Lesson("A", 1)),
    "words B": (Lesson("B", 0), Lesson("B", 1)),
}
"""Which lessons are subtracted: both tasks on one set of words, or both sets of words in one task."""


@dataclass(frozen=True, eq=False)
class _Pair:
    """What all tests of a pair share."""

    setting: _MinimalPairsSetting
    checkpoint: Checkpoint
    data: Mapping[str, TaskData]
    words: _Words

    def name(self, letter: str) -> str:
        """The task that is called A or B."""
        return self.setting.names["AB".index(letter)]

    def examples(self, lesson: Lesson) -> list[Example]:
        return self.words.of(self.name(lesson.task), self.words.sets[lesson.words])

    def context(self, lesson: Lesson, order: Sequence[int]) -> scoring.Prefix:
        """The examples with these numbers, in this order."""
        task, examples = self.data[self.name(lesson.task)].task, self.examples(lesson)
        return lab_lessons.context(self.checkpoint, task, [examples[i] for i in order])

    def queries(self, letter: str) -> list[Example]:
        return self.words.of(self.name(letter), self.words.queries)

    def prompts(self) -> list[str]:
        """The queries, which are the same text in both tasks."""
        return [self.data[self.name("A")].task.prompt(example) for example in self.queries("A")]

    def first_tokens(self, letter: str) -> Tensor:
        return torch.tensor(
            scoring.distinguishing_tokens(self.checkpoint, self.data[self.name(letter)].task, self.queries(letter))
        )

    def seen(self, checkpoint: Checkpoint, prefix: scoring.Prefix) -> tuple[Tensor, dict[str, float]]:
        """Attention outputs at the last token of the queries, and the shares of right answers of each task."""
        seen = observe(checkpoint, prefix, self.data[self.name("A")].task, self.queries("A"))
        answers, end = [example.answer for example in self.queries("B")], self.data[self.name("A")].task.separator
        of_b = scoring.exact_match(checkpoint, prefix, self.prompts(), answers, end)
        return seen.outputs, {"right_a": seen.correct.mean(), "right_b": of_b.mean()}


Outputs = dict[tuple[str, int], dict[Lesson, Tensor]]
"""Attention outputs by ("ICL", number of words), ("ICL reordered", k) or ("FT", number of epochs), and by lesson."""


def _every_change(
    pair: _Pair, trained: Mapping[Lesson, Mapping[int, FineTuned]]
) -> tuple[Outputs, list[dict[str, Any]]]:
    """Attention outputs under every lesson in every strength, and the answers."""
    setting, outputs = pair.setting, {}
    nothing = pair.seen(pair.checkpoint, scoring.encode(pair.checkpoint, ""))[1]
    rows = [{"kind": "ZSL", "strength": 0, "lesson": None, "words": None} | nothing]
    order = np.random.default_rng([setting.seed, 3]).permutation(setting.k).tolist()
    contexts: dict[tuple[str, int], Sequence[int]] = {("ICL", n): range(n) for n in setting.shots}
    contexts["ICL reordered", setting.k] = order

    def add(strength: tuple[str, int], lesson: Lesson, seen: tuple[Tensor, dict[str, float]]) -> None:
        outputs.setdefault(strength, {})[lesson] = seen[0]
        told = {"kind": strength[0], "strength": strength[1], "lesson": lesson.task, "words": lesson.words}
        rows.append(told | seen[1])

    for lesson in LESSONS:
        for strength, order in contexts.items():
            add(strength, lesson, pair.seen(pair.checkpoint, pair.context(lesson, order)))
        for n, state in trained[lesson].items():
            if state.diverged_at is None:
                with state.applied() as tuned:
                    add(("FT", n), lesson, pair.seen(tuned, scoring.encode(tuned, "")))
    return outputs, rows


SIMILARITIES = (
    "own", "other", "contexts", "trainings", "examples", "reordered",
    "own_residual", "other_residual", "contexts_residual", "trainings_residual",
)  # fmt: skip
"""What is said of a context and a training; the first lines of this module define it."""


def similarities(outputs: Outputs, shots: int, epochs: int) -> dict[str, Float[Tensor, " layers"]]:
    """The agreement of contexts of so many words and trainings of so many epochs, by layer, mean over queries.

    "own" and "other" are each the mean of two: both sets of words are context and training in turn. "examples" is the
    mean over both tasks, and so is "reordered", its ceiling, which is that of the whole context with itself in another
    order. Residuals leave out the mean of a contrast over queries. NaN where a training diverged.
    """
    c, f = _contrasts(outputs.get(("ICL", shots), {})), _contrasts(outputs.get(("FT", epochs), {}))
    longest = max((n for kind, n in outputs if kind == "ICL reordered"), default=0)
    whole, again = (_contrasts(outputs.get((kind, longest), {})) for kind in ("ICL", "ICL reordered"))
    compared = {
        "own": [(c["tasks 0"], f["tasks 0"]), (c["tasks 1"], f["tasks 1"])],
        "other": [(c["tasks 0"], f["tasks 1"]), (c["tasks 1"], f["tasks 0"])],
        "contexts": [(c["tasks 0"], c["tasks 1"])],
        "trainings": [(f["tasks 0"], f["tasks 1"])],
        "examples": [(c["words A"], f["words A"]), (c["words B"], f["words B"])],
        "reordered": [(whole["words A"], again["words A"]), (whole["words B"], again["words B"])],
    }
    found = {}
    for name, pairs in compared.items():
        agreements = [contrast_agreement(*pair) for pair in pairs]
        found[name] = torch.stack([cosine for cosine, _ in agreements]).mean(0)
        found[f"{name}_residual"] = torch.stack([residual for _, residual in agreements]).mean(0)
    return {name: found[name] for name in SIMILARITIES}


def arrays(outputs: Outputs) -> dict[str, Tensor]:
    """Attention outputs to keep, by kind, strength and lesson: "FT 10 A0"."""
    return {f"{kind} {n} {one.task}{one.words}": its for (kind, n), of in outputs.items() for one, its in of.items()}


def means(by_layer: Mapping[str, Float[Tensor, " layers"]], chosen: slice = slice(None)) -> dict[str, float]:
    """Means over the chosen layers."""
    return {name: its[chosen].nanmean().item() for name, its in by_layer.items()}


def similarity_tables(
    outputs: Outputs, setting: FineTuningSetting, k: int, shots: Sequence[int], parts: Collection[str]
) -> Tables:
    """The similarities of contexts of k words and whole trainings by layer, and of each strength as means over layers.

    The means are over all layers, and over those thirds of them that are named.
    """
    whole, rows = similarities(outputs, k, setting.epochs), []
    chosen = {"all": slice(None)} | layer_thirds(len(whole["own"]))
    for n in shots:
        for epochs in setting.stages:
            by_layer = similarities(outputs, n, epochs)
            for part in ("all", *parts):
                rows.append({"shots": n, "epochs": epochs, "layers": part} | means(by_layer, chosen[part]))
    layers = {"layer": list(range(len(whole["own"])))} | {name: its.tolist() for name, its in whole.items()}
    return {"layers": layers, "strengths": as_columns(rows)}


def _contrasts(of: Mapping[Lesson, Tensor]) -> dict[str, Tensor]:
    """All contrasts of one strength; of NaN where a lesson is missing."""
    unknown = torch.full_like(next(iter(of.values())), torch.nan) if of else torch.full((1, 1, 1), torch.nan)
    return {name: contrast(of.get(one, unknown), of.get(two, unknown)) for name, (one, two) in CONTRASTS.items()}


def _summary(pair: _Pair, changes: Sequence[Mapping], layers: Mapping[str, Tensor]) -> dict[str, Any]:
    setting, lost = pair.setting, []
    whole = {"ZSL": 0, "ICL": setting.k, "FT": setting.epochs}
    answers = {}
    for kind, n in whole.items():
        for letter in "AB":
            rows = [r for r in changes if (r["kind"], r["strength"]) == (kind, n) and r["lesson"] in (None, letter)]
            answers[f"{kind.lower()}_{letter.lower()}"] = (
                float(np.mean([r[f"right_{letter.lower()}"] for r in rows])) if rows else float("nan")
            )
            if kind == "FT" and len(rows) < len(SETS):
                lost.append(setting.names["AB".index(letter)])
    return answers | means(layers) | {"note": f"a training diverged: {', '.join(lost)}" if lost else ""}


# Insert.


def _interventions(pair: _Pair, states: Mapping[Lesson, FineTuned]) -> Iterator[dict[str, Any]]:
    """Answers in the pass with one lesson when a part of the change to the other is put in, in both directions.

    Base and change are those of the first set of words, each in the pass whose outputs are compared elsewhere: contexts
    with the positions that follow them, trainings without a context. With all attention outputs of the last token
    given, its position plays no part.
    """
    prompts, whole = pair.prompts(), range(pair.setting.k)
    generator = pair.setting.generator(7)
    contexts = {lesson: pair.context(lesson, whole) for lesson in LESSONS if lesson.words == 0}
    icl = {
        lesson: interventions.after_context(pair.checkpoint, context, prompts).run().attention
        for lesson, context in contexts.items()
    }
    without = interventions.without_context(pair.checkpoint, scoring.encode(pair.checkpoint, ""), prompts)
    last, ft = without.at_last(), {}
    for lesson, state in states.items():
        with state.applied():
            ft[lesson] = without.run().attention
    first = {letter: pair.first_tokens(letter) for letter in "AB"}
    for to, away in ("AB", "BA"):
        this, that = Lesson(to, 0), Lesson(away, 0)
        c, f = icl[this] - icl[that], ft[this] - ft[that]
        f_other = ft[Lesson(to, 1)] - ft[Lesson(away, 1)]
        put = {
            "context": (icl[that], [0 * c]),
            "context_whole": (icl[that], [c]),
            "context_along_ft": (icl[that], [projections.component(c, f)]),
            "context_along_other_ft": (icl[that], [projections.component(c, f_other)]),
            "context_along_near": (icl[that], matched_random(c, f, generator)),
            "ft": (ft[that], [0 * f]),
            "ft_whole": (ft[that], [f]),
            "ft_along_icl": (ft[that], [projections.component(f, c)]),
            "ft_along_near": (ft[that], matched_random(f, c, generator)),
        }
        for name, (base, parts) in put.items():
            logits = last.logits_with_outputs(*(base + part for part in parts))
            answers = answered(logits.float().log_softmax(-1), first[to], first[away])
            yield {"intervention": name, "towards": to} | answers


def answered(
    scores: Float[Tensor, "times*n answers"], this: Int[Tensor, " n"], that: Int[Tensor, " n"]
) -> dict[str, float]:
    """Shares of queries whose best answer is that of this or of that lesson, by its number, and their log odds."""
    this, that = (numbers.to(scores.device).repeat(len(scores) // len(numbers)) for numbers in (this, that))
    best, odds = scores.argmax(-1), scores.gather(1, this[:, None]) - scores.gather(1, that[:, None])
    shares = {"right": (best == this).float(), "right_other": (best == that).float(), "log_odds": odds}
    return {name: values.mean().item() for name, values in shares.items()}


# The experiment.


class MinimalPairs(OnCheckpoint[_MinimalPairsSetting]):
    """Computes the pair of each setting."""

    name = "minimal_pairs"
    setting = _MinimalPairsSetting
    protocol = 1
    slowest_first = ("checkpoint", "epochs", "k", "n_queries", "pair", "lr", "seed")
    shown = ("icl_a", "icl_b", "ft_a", "ft_b", "own", "other", "contexts", "trainings", "note")
    usual: ClassVar = {"k": 16, "n_queries": 16, "lr": 7e-4, "epochs": 10}

    def holds(self, setting: _MinimalPairsSetting) -> tuple[int, int]:
        """One model, and every lesson after each number of epochs."""
        return 1, len(LESSONS) * len(setting.stages)

    def parts(self, setting: _MinimalPairsSetting) -> dict[str, Any]:
        """Weights and data."""
        return {"weights": self._weights(setting.checkpoint), "data": self._data_digests(setting.names)}

    def compute(self, setting: _MinimalPairsSetting, *, progress: bool) -> Computed:
        """One pair of lessons; published/README.md says what the tables have."""
        checkpoint, data = self._load(setting.checkpoint), {name: self._load_data(name) for name in setting.names}
        pair = _Pair(setting, checkpoint, data, _draw_words(checkpoint, data, setting))
        given = {one: ((pair.data[pair.name(one.task)].task, pair.examples(one)), setting.lr) for one in LESSONS}
        trained = lab_lessons.trained(checkpoint, setting, given, progress=progress)
        outputs, changes = _every_change(pair, trained)
        layers = similarities(outputs, setting.k, setting.epochs)
        tables = {"settings": _summary(pair, changes, layers), "changes": as_columns(changes)}
        tables |= similarity_tables(outputs, setting, setting.k, setting.shots, ["upper third"])
        states = {lesson: of[setting.epochs] for lesson, of in trained.items()}
        if all(state.diverged_at is None for state in states.values()):
            tables["interventions"] = as_columns(list(_interventions(pair, states)))
        return Computed(tables, self._provenance(checkpoint), arrays=arrays(outputs))
