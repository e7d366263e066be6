"""The vote as a cause: attention of some heads to the labels of a context, changed, and what the model then answers.

A context shows k lines of a rule that nobody could know (`new_rule`), and words that were not shown are asked. Where a
query is decided, a head attends a_j to the label of line j. An edit puts M a in place of a: the attention to all labels
together stays, and only how it is spread over the lines changes.

- *flat*: M = 1 1^T / k. What the head knows of the lines is gone: is it needed?
- *flat others*: the same in all heads but these: are they enough?
- *moved*: M = (1 - dose) I + dose u 1^T, with u even over the lines of a label that is not the answer: is it given?
- *exchanged*: of each four lines in a row, that of the answer's label and that of another change places.

Heads are ranked by what *flat* costs the answer's logit, on draws and a kind of cue that are never reported; a grid
names them, in this order. On a known task every line has a label of its own, its answer. The plan and the predictions,
from before the runs, are in published/PLANS.md.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from explainer.compare import controls, cued_words
from explainer.compare.cued_words import CUES
from explainer.data import tasks
from explainer.data.files import Tables
from explainer.data.tasks import Example, Task
from explainer.errors import require
from explainer.models import attention_edits, interventions, scoring
from explainer.models.attention_edits import AttentionEdit
from explainer.models.circuits import HeadIndex, TokenSpans, strongest_heads
from explainer.models.interventions import Pass
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Prefix
from explainer_lab import on_checkpoint
from explainer_lab.experiment import Computed
from explainer_lab.on_checkpoint import OnCheckpoint, as_columns, by_head

LABELS: Mapping[str, tuple[str, ...]] = {
    "kel": cued_words.LABELS,
    "zan": ("zan", "mup", "tig", "rof"),
    "chair": ("chair", "river", "seven", "north"),
}
"""Sets of labels, by the first of each: that of `new_rule`, another, and words that mean something else."""

TEMPLATES: Mapping[str, str] = {"arrow": cued_words.TASK.template, "output": "Input: {word} Output:"}

KNOWN = ("antonyms", "capitals", "past", "plurals")
"""Tasks that a model knows."""

SIZES: Mapping[str, tuple[int, ...]] = {"all": (1, 2, 5, 10, 20, 40, 80), "ten": (10,), "one": (1, 2, 5, 10)}
"""Numbers of heads, the strongest first."""

MAIN: Mapping[str, int] = {"all": 10, "ten": 10, "one": 1}
"""How many of them stand beside as many controls."""

DOSES = (0.05, 0.1, 0.2, 0.5, 1.0)

_USUAL_DOSE = 0.2
_AT_ONCE = 16  # edits side by side: of each there are the logits of all tokens
_LOOKS = 0.01  # a head with less attention to all labels together is not tried


@dataclass(frozen=True, kw_only=True)
class VoteSetting(on_checkpoint.CheckpointSetting):
    """A rule as in `new_rule`, with labels of `LABELS` and a template of `TEMPLATES`; or `cue` is one of KNOWN.

    `part` is "rank", which tries every head alone, or "edits", which edits sets of heads: the strongest in the order of
    `effect`, as "18.6 20.5" (layer.head), so many as SIZES has for `sizes`; and beside those of MAIN as many of the
    same attention to labels and the ten that agree most with the answers. Or it is "calibrated", which flattens those
    of MAIN. Raises ExperimentError for other values.
    """

    part: str
    cue: str
    k: int
    n_queries: int
    labels: str = "kel"
    template: str = "arrow"
    sizes: str = "all"
    effect: str = ""
    attention: str = ""
    agreement: str = ""
    least: ClassVar = {"k": 4, "n_queries": 4}
    fours: ClassVar = ("k", "n_queries")
    known: ClassVar = {
        "part": ("rank", "edits", "calibrated"),
        "cue": (*CUES, *KNOWN),
        "labels": LABELS,
        "template": TEMPLATES,
        "sizes": SIZES,
    }

    def __post_init__(self):
        """Refuse what cannot be computed before anything is."""
        super().__post_init__()
        few, without = MAIN[self.sizes], self.part in ("rank", "kernels")
        for name, n in {"effect": max(SIZES[self.sizes]), "attention": few, "agreement": few}.items():
            named = len({*named_heads(getattr(self, name))})
            require(without or named >= n, f"{name} names {named} heads, sizes {self.sizes!r} need {n}.")

    @property
    def slug(self) -> str:
        """A readable name."""
        unusual = [word for word in (self.labels, self.template, self.sizes) if word not in ("kel", "arrow", "all")]
        sizes = f"k{self.k}-n{self.n_queries}-seed{self.seed}"
        return "-".join(["vote", self.name, self.part, self.cue.replace(" ", "-"), *unusual, sizes])


@dataclass(frozen=True, eq=False)
class VoteLesson:
    """A context of k lines of a rule: queries after it, and other words, which are never reported."""

    checkpoint: Checkpoint
    task: Task
    labels: Sequence[str]  # none of a known task
    shown: Sequence[Example]
    queries: Sequence[Example]
    others: Sequence[Example]

    @classmethod
    def of(cls, checkpoint: Checkpoint, setting: VoteSetting, rule: str) -> "VoteLesson":
        """The lesson of a draw under rule A or B, or of a known task."""
        if setting.cue in KNOWN:
            data = tasks.load(setting.cue)
            task, shown = controls.own(data, setting.k, setting.seed)
            return cls(checkpoint, task, (), shown, tasks.queries(data, setting.n_queries, setting.seed), ())
        labels = LABELS[setting.labels]
        task = replace(cued_words.TASK, template=TEMPLATES[setting.template], labels=labels)
        data = cued_words.data(setting.cue, setting.seed, rule, 2 * setting.k, setting.n_queries)
        train, test = ([replace(e, answer=labels[e.label or 0]) for e in its] for its in (data.train, data.test))
        return cls(checkpoint, task, labels, train[: setting.k], test, train[setting.k :])

    @cached_property
    def spans(self) -> TokenSpans:
        """Where the parts of the lines stand."""
        return TokenSpans.of(self.checkpoint, self.task, self.shown)

    @cached_property
    def lines(self) -> Float[Tensor, "k N"]:
        """The tokens of the label of each line."""
        labels = [f" {example.answer}" for example in self.shown]
        prompts = [self.task.prompt(example) for example in self.shown]
        lengths = map(len, scoring.continuation_ids(self.checkpoint, prompts, labels))
        lines = torch.zeros(len(self.shown), len(self.spans.ids))
        for line, start, length in zip(lines, self.spans.answers, lengths, strict=True):
            line[start : start + length] = 1
        return lines

    @cached_property
    def prefix(self) -> Prefix:
        """The context."""
        return scoring.encode(self.checkpoint, self.spans.ids)

    @cached_property
    def label_of_line(self) -> Int[Tensor, " k"]:
        """The number of the label of each line, or of the line."""
        return torch.tensor([i if example.label is None else example.label for i, example in enumerate(self.shown)])

    def passed(self, examples: Sequence[Example], prefix: Prefix | None = None) -> Pass:
        """Some words after the context, or after one that was changed."""
        prompts = [*map(self.task.prompt, examples)]
        return interventions.after_context(self.checkpoint, prefix or self.prefix, prompts, self.labels)

    @cached_property
    def tokens(self) -> Int[Tensor, " c"]:
        """Where labels part, the token of each, the same after every word; of a known task the first of each line."""
        if not self.labels:
            return torch.tensor(self.spans.ids)[list(self.spans.answers)]
        (tokens,) = {tuple(its) for its in scoring.label_tokens(self.checkpoint, self.task, self.queries)}
        return torch.tensor(tokens)


def attention_to_lines(last: Pass, lines: Float[Tensor, "k N"]) -> Float[Tensor, "n layers heads k"]:
    """What each head attends to the label of each line, at the last token of each query."""
    kept: list[Tensor] = []

    def keep(_layer: int, A: Tensor) -> Tensor:
        kept.append(A[:, :, -1, : lines.shape[1]].float() @ lines.T)
        return A

    with attention_edits.changed_attention(last.checkpoint, keep):
        last.run()
    return torch.stack(kept, 1)


def _edited(
    passed: Pass,
    lesson: VoteLesson,
    heads: Bool[Tensor, "times layers heads"],
    mix: Float[Tensor, "times n k k"],
    *,
    every_token: bool = False,
) -> tuple[Float[Tensor, "times n c"], Int[Tensor, "times n"]]:
    """Logits of the labels, and the most probable tokens, when these heads spread their attention by these matrices.

    They do so at the last token of each query, where `passed` is a pass of these alone, or at every token.
    """
    found, at_once = [], 1 if every_token else _AT_ONCE
    for its, M in zip(heads.split(at_once), mix.split(at_once), strict=True):
        edit = AttentionEdit(its[None], lesson.lines, M.transpose(0, 1))
        if every_token:
            with attention_edits.changed_attention(passed.checkpoint, edit):
                logits = passed.run().logits[None]
        else:
            logits = attention_edits.edited_logits(passed, edit).transpose(0, 1)
        found.append((logits[..., lesson.tokens], logits.argmax(-1)))
    of_labels, most = zip(*found, strict=True)
    return torch.cat(of_labels), torch.cat(most)


def _exchanged(y: Int[Tensor, " k"], a: Int[Tensor, " n"], c: Int[Tensor, " n"]) -> Float[Tensor, "n k k"]:
    """A permutation: of each four lines in a row, which have each label once, that of a and that of c change places."""
    taken = torch.where(y == a[:, None], c[:, None], torch.where(y == c[:, None], a[:, None], y))
    four = torch.arange(len(y)) // 4
    return ((taken[..., None] == y) & (four[:, None] == four)).float()


def margin(logits: Float[Tensor, "... c"], label: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
    """The logit of a label above the mean of the others."""
    own = logits.gather(-1, label.expand(logits.shape[:-1])[..., None])[..., 0]
    c = logits.shape[-1]
    return (c * own - logits.sum(-1)) / (c - 1)


def _rank(lesson: VoteLesson) -> dict[str, Float[Tensor, "layers heads"]]:
    """Of each head, on the other words: what flattening it costs the answer, its attention, how often it agrees."""
    last = lesson.passed(lesson.others).at_last()
    a, y = attention_to_lines(last, lesson.lines), lesson.label_of_line
    logits = last.run().logits[:, lesson.tokens]
    answer = logits.argmax(-1)
    attention = a.sum(-1).mean(0)
    tried = (attention > _LOOKS).flatten().nonzero()[:, 0]
    heads = one_hot(tried, attention.numel()).bool().unflatten(1, attention.shape)
    k = len(y)
    flat = torch.full((len(tried), len(answer), k, k), 1 / k)
    flattened, _ = _edited(last, lesson, heads, flat)
    cost = margin(logits, answer) - margin(flattened, answer)
    effect = torch.zeros(attention.numel()).scatter(0, tried, cost.mean(1))
    agrees = ((a @ one_hot(y, 4).float()).argmax(-1) == answer[:, None, None]).float().mean(0)
    return {"effect": effect.unflatten(0, attention.shape), "attention": attention, "agrees": agrees}


# Sets of heads.


def named_heads(heads: str) -> list[HeadIndex]:
    """The heads that a grid names, as (layer, head); raises ExperimentError."""
    require(re.fullmatch(r"(\d+\.\d+( |$))*", heads) is not None, f"heads {heads!r}: name them as '18.6 20.5'.")
    return [(int(layer), int(head)) for layer, _, head in (one.partition(".") for one in heads.split())]


def head_mask(shape: Sequence[int], heads: Sequence[HeadIndex]) -> Bool[Tensor, "layers heads"]:
    """True where a head is one of these."""
    mask = torch.zeros(*shape, dtype=torch.bool)
    for layer, head in heads:
        mask[layer, head] = True
    return mask


def random_like(heads: Bool[Tensor, "layers heads"], generator: torch.Generator) -> Bool[Tensor, "layers heads"]:
    """As many heads that are not among these: of the same layers while those have some, then of any."""
    order = torch.rand(heads.shape, generator=generator) - 2 * heads.float()
    rank = order.argsort(1, descending=True).argsort(1)
    found = (rank < heads.sum(1, keepdim=True)) & ~heads
    more = torch.rand(heads.shape, generator=generator) - 2 * (heads | found).float()
    for layer, head in strongest_heads(more, int(heads.sum() - found.sum())):
        found[layer, head] = True
    return found


def head_sets(setting: VoteSetting, shape: Sequence[int], rule: str) -> dict[str, Bool[Tensor, "layers heads"]]:
    """The sets of heads of a setting, by kind and number."""
    generator, effect = setting.generator(17, setting.cue + rule), named_heads(setting.effect)
    sets = {}
    for m in SIZES[setting.sizes]:
        sets[f"effect {m}"] = of_effect = head_mask(shape, effect[:m])
        sets[f"random {m}"] = random_like(of_effect, generator)
    m = MAIN[setting.sizes]
    sets[f"attention {m}"] = head_mask(shape, named_heads(setting.attention))
    sets[f"agreement {m}"] = head_mask(shape, named_heads(setting.agreement))
    return sets | {"all": torch.ones(*shape, dtype=torch.bool)}


# Edits.


def _edits(lesson: VoteLesson, sets: Mapping[str, Bool[Tensor, "layers heads"]], m: int) -> Iterator[dict[str, Any]]:
    """A row for each edit of each set: how often the right label, the one that is aimed at, or the same is given.

    By the labels, and ("_all") by the most probable of all tokens. What aims is done for three other labels in turn.
    """
    passed, y = lesson.passed(lesson.queries), lesson.label_of_line
    last, k, n = passed.at_last(), len(y), len(lesson.queries)
    right = torch.tensor(scoring.distinguishing_tokens(lesson.checkpoint, lesson.task, lesson.queries))
    answer = last.run().logits[:, lesson.tokens].argmax(-1)
    aimed = torch.stack([(answer + j) % len(lesson.tokens) for j in (1, 2, 3)])

    def rows(
        edit: str,
        names: Sequence[str],
        mixes: Sequence[Tensor],
        *,
        dose: float = 1,
        every: bool = False,
        but: bool = False,
    ):
        heads = torch.stack([~sets[name] if but else sets[name] for name in names for _ in mixes])
        mix = torch.stack([*mixes] * len(names))
        its = _edited(passed if every else last, lesson, heads, mix, every_token=every)
        for name, of_labels, most in zip(names, *(each.unflatten(0, (len(names), -1)) for each in its), strict=True):
            given = of_labels.argmax(-1)
            row = {"edit": edit, "heads": name, "dose": dose, "every_token": every}
            row |= {"right": lesson.tokens[given] == right, "same": given == answer, "right_all": most == right}
            towards = {"aimed": given == aimed, "aimed_all": most == lesson.tokens[aimed]}
            row |= towards if len(mixes) > 1 else dict.fromkeys(towards, torch.tensor(torch.nan))
            yield {c: v.float().mean().item() if isinstance(v, Tensor) else v for c, v in row.items()}

    flat = [torch.full((n, k, k), 1 / k)]
    main = [name for name in sets if name.endswith(f" {m}") or name == "all"]
    strongest = [name for name in sets if name.startswith("effect")]
    yield from rows("none", ["all"], [torch.eye(k).expand(n, k, k)])
    yield from rows("flat", list(sets), flat)
    yield from rows("flat others", [*strongest, f"random {m}"], flat, but=True)
    for dose in DOSES:
        moved = [attention_edits.moved(y, c, dose) for c in aimed]
        some = {_USUAL_DOSE: list(sets), 1.0: main}.get(dose, [f"effect {m}"])
        yield from rows("moved", some, moved, dose=dose)
    if not lesson.labels:
        return
    exchanged = [_exchanged(y, answer, c) for c in aimed]
    yield from rows("exchanged", list(sets), exchanged)
    for edit, mixes in {"flat": flat, "exchanged": exchanged}.items():
        yield from rows(edit, [f"effect {m}", f"random {m}", "all"], mixes, every=True)


def _calibrated(lesson: VoteLesson, sets: Mapping[str, Bool[Tensor, "layers heads"]]) -> Iterator[dict[str, Any]]:
    """How often the right label is given when heads are flat, by z, and calibrated, by z less its mean over others.

    z are the logits of the labels. An edit may favour one label whatever is asked; `one_label` is the largest share of
    one label among the answers.
    """
    k, right = len(lesson.shown), torch.tensor([query.label for query in lesson.queries])
    for name, heads in sets.items():
        flat = (
            _edited(lesson.passed(its).at_last(), lesson, heads[None], torch.full((1, len(its), k, k), 1 / k))[0][0]
            for its in (lesson.queries, lesson.others)
        )
        logits, others = flat
        given, calibrated = logits.argmax(-1), (logits - others.mean(0)).argmax(-1)
        row = {
            "right": given == right,
            "calibrated": calibrated == right,
            "one_label": one_hot(given).float().mean(0).max(),
        }
        yield {"heads": name} | {c: v.float().mean().item() for c, v in row.items()}


def _votes(lesson: VoteLesson, heads: Bool[Tensor, "layers heads"]) -> Iterator[dict[str, Any]]:
    """For each query the label that is right, the answer, the vote of the heads, and the label that they always favour.

    The last is the one with most of their attention over the other words, whatever is asked.
    """
    labels = one_hot(lesson.label_of_line, 4).float()
    last = lesson.passed(lesson.queries).at_last()
    votes, constant = (
        attention_to_lines(its, lesson.lines)[:, heads].sum(1) @ labels
        for its in (last, lesson.passed(lesson.others).at_last())
    )
    answers = last.run().logits[:, lesson.tokens].argmax(-1).tolist()
    favoured = int(constant.mean(0).argmax())
    for i, query in enumerate(lesson.queries):
        vote = int(votes[i].argmax())
        yield {"query": i, "right": query.label, "answer": answers[i], "vote": vote, "favoured": favoured}


class Vote(OnCheckpoint[VoteSetting]):
    """Computes the lessons of each setting, under rule A and under rule B."""

    name = "vote"
    setting = VoteSetting
    protocol = 1
    slowest_first = (
        *("checkpoint", "part", "labels", "template", "sizes", "cue", "k", "n_queries"),
        *("effect", "attention", "agreement", "seed"),
    )
    shown = ("right",)
    usual: ClassVar = {"k": 16, "n_queries": 24}

    def parts(self, setting: VoteSetting) -> dict[str, Any]:
        """Weights, and data of a known task."""
        data = {"data": self._data_digest(setting.cue)} if setting.cue in KNOWN else {}
        return {"weights": self._weights(setting.checkpoint), **data}

    def compute(self, setting: VoteSetting, *, progress: bool) -> Computed:
        """One setting; published/README.md says what the tables have."""
        checkpoint, tables = self._load(setting.checkpoint), {"heads": [], "edits": [], "queries": [], "calibrated": []}
        rules = "A" if setting.cue in KNOWN else "AB"
        lessons = {rule: VoteLesson.of(checkpoint, setting, rule) for rule in rules}
        for rule, lesson in lessons.items():
            if setting.part == "rank":
                tables["heads"] += [{"rule": rule} | row for row in by_head(_rank(lesson))]
                continue
            shape = checkpoint.model.config.num_hidden_layers, checkpoint.model.config.num_attention_heads
            sets = head_sets(setting, shape, rule)
            if setting.part == "calibrated":
                m, every = MAIN[setting.sizes], sets["all"]
                ten = {name: sets[name] for name in (f"effect {m}", f"random {m}", f"attention {m}", "all")}
                ten |= {"none": ~every, f"all but effect {m}": every & ~sets[f"effect {m}"]}
                tables["calibrated"] += [{"rule": rule, **row} for row in _calibrated(lesson, ten)]
                continue
            tables["edits"] += [{"rule": rule, **row} for row in _edits(lesson, sets, MAIN[setting.sizes])]
            votes = _votes(lesson, sets[f"effect {MAIN[setting.sizes]}"]) if lesson.labels else ()
            tables["queries"] += [{"rule": rule, **row} for row in votes]
        count = "right_all" if setting.cue in KNOWN else "right"
        right = [row[count] for row in tables["edits"] if row["edit"] == "none"]
        found: Tables = {name: as_columns(rows) for name, rows in tables.items() if rows}
        return Computed(
            {"settings": {"right": float(np.mean(right)) if right else None}} | found,
            self._provenance(checkpoint, lessons["A"].task),
        )
