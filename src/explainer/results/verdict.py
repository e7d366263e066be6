"""The verdict in five rows: each question's answer between its floor, 0, and its ceiling, 1, for any model."""

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd

from explainer.data.files import PUBLISHED
from explainer.results import aggregate, new_rule, published, reporting, verdict_scale
from explainer.results.aggregate import Value
from explainer.results.published import results
from explainer.theory.statistics import Interval


class Answer(NamedTuple):
    """Floor, measured value, ceiling and share of the way with intervals over `draws` draws, and one sentence."""

    floor: Interval
    measured: Interval
    ceiling: Interval
    share: Interval
    draws: int
    sentence: str = ""


Answers = dict[str, Answer]
"""By the name of the question, as far as there are tables."""

TRAINING, EXAMPLES, VECTOR = "like training", "on these examples", "carried by one vector"
LEARNED, OF_RULE = "new rule: learned", "new rule: like training"

FOLDERS: Mapping[str, str] = {
    TRAINING: "shared_part", EXAMPLES: "shared_part", VECTOR: "rival", LEARNED: "new_rule", OF_RULE: "new_rule",
}  # fmt: skip
"""The folder of the experiment whose tables answer a question."""

BOOK: Mapping[str, tuple[str, ...]] = {
    "shared_part": ("shared-part",),
    "rival": ("rival",),
    "new_rule": ("rule-contexts", "rule-contexts-category", "rule-strongest", "rule-strongest-category"),
}
"""The grids of the book that answer the questions, by folder."""

WORD_PAIRS = ("capitals", "plurals", "past", "antonyms")
"""The tasks of the book's answers."""

_SENTENCES: Mapping[str, str] = {
    TRAINING: "From another task to two trainings, a context and a training are {lower:.2f} of the way in the lower "
    "third of the layers, {middle:.2f} in the middle third and {share:.2f} in the upper third.",
    EXAMPLES: "In the upper third of the layers, other examples on either side cost {measured:.3f} of the likeness. "
    "If what is special to the examples agreed as well as the whole does, they would cost {ceiling:.3f}, the "
    "yardstick. The share is {share:.2f}; one above {power:.2f} would have been settled.",
    VECTOR: "Put in without any example, one vector gives {measured:.2f} of the right answers, that of another task, "
    "or none if that gives more, {floor:.2f}, and the whole context {ceiling:.2f}.",
    LEARNED: "Of new words, {measured:.2f} are answered by a rule that nobody could know, and {floor:.2f} after "
    "shuffled labels.",
    OF_RULE: "In the upper third of the layers, the contrasts of contexts and of trainings have a cosine of "
    "{measured:.3f}, where {ceiling:.3f} would be possible.",
}


def of_directory(
    directory: str | Path, grids: Mapping[str, published.Grids] = MappingProxyType({})
) -> dict[str, Answers]:
    """The answers of every checkpoint of the published tables of a directory, or of those of `grids`, by folder.

    A question without tables is left out. Where demonstrations add nothing that is settled, or no ceiling is settled
    above its floor, the answer has no share of the way, and its sentence says so. Of several kinds of training a new
    rule is asked of the one of all weights. Raises ExperimentError as `verdict_scale.require_same_setting_and_format`.
    """
    directory = Path(directory)

    def of(name: str, table: str, **usual: float | str) -> dict[str, pd.DataFrame]:
        found = verdict_scale.reported(directory / name, table, grids.get(name), **usual)
        return verdict_scale.by_checkpoint(found)

    usual = {"layer_causal_lr": 0, "lessons": "all"}
    layers, settings = (of("shared_part", table, **usual) for table in ("layers", "settings"))
    strengths = verdict_scale.by_checkpoint(_strengths(directory / "new_rule", grids.get("new_rule")))
    changes = of("new_rule", "changes", training="none", lessons="all")
    answered = of("rival", "queries")
    answered = {name: its for name, rows in answered.items() if len(its := rows[~rows["task"].isin(_RULES)])}
    tables = layers, answered, strengths, changes
    names = dict.fromkeys(name for table in tables for name in table)
    return {name: _told(name, settings.get(name), *(table.get(name) for table in tables)) for name in names}


_RULES = ("suffix", "first word", "category")
"""Kinds of cues, which the experiment "rival" has among its tasks."""


def _strengths(folder: Path, grids: published.Grids) -> pd.DataFrame | None:
    """Similarities of contexts and whole trainings on a new rule in the upper third of the layers."""
    if not folder.is_dir() or "strengths" not in published.files(folder):
        return None
    found = published.rows_of_experiment(folder, "strengths", grids)
    whole = found["epochs"] == found.groupby("setting")["epochs"].transform("max")
    found = found[whole & (found["layers"] == "upper third")]
    if (every := found["training"] == "all weights").any():
        found = found[every]
    return verdict_scale.require_same_setting_and_format(found, folder)


def _told(name: str, settings: pd.DataFrame | None, *tables: pd.DataFrame | None) -> Answers:
    """`answer_questions` of one checkpoint, each with its sentence; no share where nothing is learned in context."""
    layers, answered, *_ = tables
    found, gains = answer_questions(*tables), {}
    if settings is not None:
        gains["shared_part"] = verdict_scale.gain_in_context(settings.assign(task=settings["tasks"]))
    if answered is not None:
        gains["rival"] = _gain(answered)
    if LEARNED in found and not found[LEARNED].share.low > 0:
        gains["new_rule"] = found[LEARNED].share
    told = {}
    for question, one in found.items():
        gain = gains.get(FOLDERS[question])
        if gain is not None and not gain.low > 0:
            told[question] = one._replace(share=_NONE, sentence=_not_learned(name, question, one, gain))
        else:
            told[question] = one._replace(sentence=_said(question, one, layers))
    return told


_NONE = Interval(*3 * [float("nan")])


def _gain(answered: pd.DataFrame) -> Interval:
    """What demonstrations add to right answers, those among the labels where there are some."""
    right = answered["right_label"] if "right_label" in answered else answered["correct"]
    right = answered.assign(right=right.fillna(answered["correct"]))
    of_settings = right.groupby(["seed", "task", "intervention"])["right"].mean().unstack()
    rows = of_settings[["icl", "zsl"]].add_suffix("_accuracy").reset_index()
    of_setting = ["seed", "task", "n_queries", "one_label_accuracy"]
    return verdict_scale.gain_in_context(rows.merge(answered.filter(of_setting).drop_duplicates()))


def _not_learned(name: str, question: str, one: Answer, gain: Interval) -> str:
    if FOLDERS[question] != "new_rule":
        return verdict_scale.sentence_not_learned(name, gain)
    return (
        f"{name}: of new words, {one.measured:.2f} are right after lines of a rule and {one.floor:.2f} after shuffled "
        "labels. That it learns a new rule is not settled, so there is no share of the way."
        if question == LEARNED
        else f"{name}: that it learns a new rule is not settled, so nothing is said of how."
    )


def _said(question: str, one: Answer, layers: pd.DataFrame | None) -> str:
    if not math.isfinite(one.share.low):
        return (
            f"The ceiling, {one.ceiling:.2f}, is not settled above the floor, {one.floor:.2f}. There is no room for an "
            "answer, and no share of the way."
        )
    more = {}
    if question == TRAINING and layers is not None:
        of_thirds = verdict_scale.normalised_position_by_thirds(layers, "context", "another task")
        more = {third.partition(" ")[0]: of for third, of in of_thirds.items()}
    text = _SENTENCES[question].format(**one._asdict() | more, power=(one.share.high - one.share.low) / 2)
    return f"{text} ({one.draws} draws)"


# From tables.


def answer_questions(
    layers: pd.DataFrame | None,
    answers: pd.DataFrame | None,
    strengths: pd.DataFrame | None,
    changes: pd.DataFrame | None,
) -> Answers:
    """The share of the way from floor to ceiling that answers each question, with Student's jackknife over draws.

        like training      (own - another task) / (two trainings - another task), the context swapped
        on these examples  (own + both_other - training_other - context_other) / 2, over own sqrt((1 - C)(1 - F))
        one vector         (vector - floor) / (context - floor), of right answers; floor: the better of another task's
                           and none
        learned            (context - shuffled) / (1 - shuffled), of right answers after k lines
        like training      own / sqrt(C F), of a new rule

    `layers` are those of the experiment "shared_part", `answers` the queries of "rival", `strengths` (of whole
    trainings in the upper third of the layers) and `changes` of "new_rule"; None leaves out its questions. Similarities
    are means over the upper third of the layers, everything is a mean over tasks or cues, of the draws that have all;
    a question that no draw has is left out.
    """
    found = {}
    if layers is not None:
        upper = verdict_scale.by_thirds(layers, [*verdict_scale.CORNERS, "context_foreign"])["upper third"]
        swapped = upper[["own", "context_foreign", "trainings"]]
        found[TRAINING] = _answer(swapped, lambda m: m.context_foreign, lambda m: m.own, lambda m: m.trainings)
        corners, cost = upper[verdict_scale.CORNERS], verdict_scale.cost_of_both
        found[EXAMPLES] = _answer(corners, _zero, cost, verdict_scale.yardstick)
    if answers is not None:
        right = _by_seed(answers, "task", "intervention", "correct")
        found[VECTOR] = _answer(
            right, lambda m: max(m["vector_foreign"], m["zsl"]), lambda m: m["vector"], lambda m: m["icl"]
        )
    if changes is not None:
        whole = changes[(changes["strength"] == changes["k"]) & changes["kind"].isin(["ICL", "ICL shuffled"])]
        right = _by_seed(whole.assign(right=new_rule.accuracy_by_own_rule(whole)), "cue", "kind", "right")
        found[LEARNED] = _answer(right, lambda m: m["ICL shuffled"], lambda m: m["ICL"], lambda m: 1 + _zero(m))
    if strengths is not None:
        names = ["own", "contexts", "trainings"]
        of_seeds = aggregate.nested_means(strengths, names, "cue")
        found[OF_RULE] = _answer(of_seeds, _zero, lambda m: m.own, _possible)
    return {name: one for name, one in found.items() if one.draws}


def _answer(rows: pd.DataFrame, floor: Value, measured: Value, ceiling: Value) -> Answer:
    """The three values and the share, of the means of rows by seed; no share where no ceiling is settled above."""
    known = rows.dropna()

    def of(value: Value) -> Interval:
        return aggregate.of_means(known, value)

    with np.errstate(divide="ignore", invalid="ignore"):  # a ceiling at its floor gives no share
        share = of(lambda m: (measured(m) - floor(m)) / (ceiling(m) - floor(m)))
    room = of(lambda m: ceiling(m) - floor(m))
    return Answer(of(floor), of(measured), of(ceiling), share if room.low > 0 else _NONE, len(known))


def _by_seed(rows: pd.DataFrame, over: str, by: str, value: str) -> pd.DataFrame:
    """Means of a column, over tasks or cues, with a row for each seed and a column for each kind."""
    return aggregate.nested_means(rows, value, over, by).unstack()


def _zero(means: pd.Series) -> float:
    """Where nothing is shared."""
    return 0.0 * means.iloc[0]


def _possible(m: pd.Series) -> float:
    return (m.contexts * m.trainings) ** 0.5 if min(m.contexts, m.trainings) > 0 else float("nan")


# The book.


def of_book() -> dict[str, Interval]:
    """The shares of the book's checkpoint, by question and what it is asked of."""
    return {name: one.share for name, one in _answers_of_book().items()}


def three_of_book() -> Answers:
    """The answers with which the story and the last chapter end, by question and what it is asked of."""
    return {name: one for name, one in _answers_of_book().items() if name.endswith(_THREE)}


_THREE = (f"word pairs: {TRAINING}", EXAMPLES, LEARNED)
"""Like training, on these examples, learned; the other two rows say how, in the chapter before."""


def _answers_of_book() -> Answers:
    (found,) = of_directory(PUBLISHED, BOOK).values()
    return {name if ":" in name else f"word pairs: {name}": one for name, one in found.items()}


def shares_by_mechanism(
    answers: pd.DataFrame, rules: pd.DataFrame, votes: pd.DataFrame
) -> dict[str, dict[str, Interval]]:
    """How much of what a context does each mechanism carries, of word pairs and of a new rule, between 0 and 1.

        a vector, ten heads, put in   (its own - another task's) / (context - another task's), of right answers
        heads, taken out              (without random heads - without these) / without random heads, of right answers
        a vote of ten heads           (agreement - chance) / (1 - chance), of the model's answers

    `answers` are the queries of "rival" for tasks, `rules` those for new rules, `votes` the answers of "new_rule". The
    intervals are Student's of the jackknife over draws.
    """
    pairs, of_rules = (_by_seed(its, "task", "intervention", "correct") for its in (answers, rules))
    return {
        "word pairs": {
            "one vector, put in": aggregate.of_means(pairs, _carried),
            "ten heads, put in": aggregate.of_means(pairs, partial(_carried, name="heads")),
            "the ten heads, taken out": aggregate.of_means(pairs, _lost),
            "induction heads, taken out": aggregate.of_means(pairs, partial(_lost, name="off_induction")),
        },
        "a new rule": {
            "one vector, put in": aggregate.of_means(of_rules, _carried),
            "a vote of ten heads": new_rule.agreement_beyond_chance(votes, "vote"),
        },
    }


def shares_by_mechanism_of_book() -> dict[str, dict[str, Interval]]:
    """`shares_by_mechanism` of the book's tables; the first row of each is the similarity of training."""
    similar, rules = of_book(), pd.concat(results(grid, "queries") for grid in ("rival-rules", "rival-rules-category"))
    found = shares_by_mechanism(results("rival", "queries"), rules, new_rule.both_grids("rule-contexts", "answers"))
    like = {"word pairs": "word pairs: like training", "a new rule": "new rule: like training"}
    return {title: {"like training": similar[like[title]]} | rows for title, rows in found.items()}


def provenance() -> tuple[reporting.Provenance, ...]:
    """What the rows of the book were made of."""
    settings = (
        results("shared-part"),
        results("rival"),
        new_rule.both_grids("rule-strongest"),
        new_rule.both_grids("rule-contexts"),
    )
    return tuple(map(reporting.provenance, settings))


def _carried(m: pd.Series, name: str = "vector") -> float:
    return (m[name] - m[f"{name}_foreign"]) / (m["icl"] - m[f"{name}_foreign"])


def _lost(m: pd.Series, name: str = "off") -> float:
    return (m["off_random"] - m[name]) / m["off_random"]
