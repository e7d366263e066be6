"""The verdict's rows: each answer between its floor, 0, and its ceiling, 1, for the book's checkpoint or any other.

The floor is the value where the lesson plays no part, the ceiling the value where the claim is as true as it can be.
Five rows ask what the chapters ask, with the jackknife over draws of a ratio of means; ten finer rows take every
measure of *All claims*, with Student's interval over the ratios of the seeds.
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from explainer.data.assets import CHECKPOINT
from explainer.data.files import PUBLISHED
from explainer.errors import ResultsError
from explainer.results import agreement_results, contrast_results, published, reporting
from explainer.results.agreement_results import FT, ICL, UpdateFilter
from explainer.results.published import GRIDS, results
from explainer.results.table_intervals import Value, of_means, over_seeds, seed_means
from explainer.results.thirds import THIRDS, layer_thirds
from explainer.theory import statistics
from explainer.theory.statistics import Interval


class Row(NamedTuple):
    """Floor, measured value, ceiling and share of the way with intervals over `draws` draws, and what is said of it."""

    floor: Interval
    measured: Interval
    ceiling: Interval
    share: Interval
    draws: int
    sentence: str = ""

    @classmethod
    def over_seeds(cls, floor: pd.Series, measured: pd.Series, ceiling: pd.Series) -> "Row":
        """Each with Student's interval over its seeds, and (measured - floor) / (ceiling - floor) of those with all.

        No share where the ceiling is not on one side of the floor for all seeds.
        """

        def interval(values: pd.Series) -> Interval:
            return statistics.student(values.dropna()) if values.notna().any() else _NO_SHARE

        shares = ((measured - floor) / (ceiling - floor)).dropna()
        room = (ceiling - floor).dropna()
        one_sided = bool((room > 0).all() or (room < 0).all())
        share = interval(shares) if one_sided else _NO_SHARE
        return cls(interval(floor), interval(measured), interval(ceiling), share, len(shares))


Rows = dict[str, Row]
"""By the name of the question, as far as there are tables."""

_NO_SHARE = Interval(*3 * [float("nan")])

BOOK = "{} (the book)"
"""How the book's checkpoint is named beside those of a reader."""

# Five rows.

TRAINING, EXAMPLES, VECTOR = "like training", "on these examples", "carried by one vector"
LEARNED, OF_RULE = "new rule: learned", "new rule: like training"

FOLDERS: Mapping[str, str] = {
    TRAINING: "shared_part", EXAMPLES: "shared_part", VECTOR: "rival", LEARNED: "new_rule", OF_RULE: "new_rule",
}  # fmt: skip
"""The folder of the experiment whose tables answer a question."""


@lru_cache
def _sentences() -> dict[str, str]:
    """What is said of a row, from verdict.toml."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def five_rows(directory: str | Path | None = None) -> dict[str, Rows]:
    """The answers to the questions of `FOLDERS` by checkpoint, from the tables of a directory, or of the book.

    A question without tables is left out. Where the interval of what demonstrations add, or of a ceiling less its
    floor, includes 0, the row has no share of the way, and its sentence says so. Of several kinds of training a new
    rule is asked of the one of all weights. Raises ExperimentError where settings of a checkpoint differ in number
    format, or those of a task in more than the seed.
    """
    usual = {"layer_causal_lr": 0, "lessons": "all"}
    rules = ("suffix", "first word", "category")  # kinds of cues, which "rival" has among its tasks
    queries = {name: its[~its["task"].isin(rules)] for name, its in _reported(directory, "rival", "queries").items()}
    strengths = published.reported(directory, "new_rule", "strengths", layers="upper third")
    for checkpoint, of_trainings in strengths.items():  # whole trainings on a new rule, of all weights if there are any
        last = of_trainings.groupby("setting")["epochs"].transform("max")
        whole = of_trainings[of_trainings["epochs"] == last]
        every = whole["training"] == "all weights"
        strengths[checkpoint] = whole[every] if every.any() else whole
        published.require_only_seeds_differ(strengths[checkpoint])
    tables = {
        "layers": _reported(directory, "shared_part", "layers", **usual),
        "queries": {name: its for name, its in queries.items() if len(its)},
        "strengths": strengths,
        "changes": _reported(directory, "new_rule", "changes", training="none", lessons="all"),
    }
    settings = _reported(directory, "shared_part", "settings", **usual)
    rows = {}
    for checkpoint in dict.fromkeys(name for table in tables.values() for name in table):
        its = {name: table.get(checkpoint) for name, table in tables.items()}
        rows[checkpoint] = _with_sentences(checkpoint, _five_rows(**its), its, settings.get(checkpoint))
    return rows if directory else {BOOK.format(name): its for name, its in rows.items()}


def _five_rows(
    layers: pd.DataFrame | None = None,
    queries: pd.DataFrame | None = None,
    strengths: pd.DataFrame | None = None,
    changes: pd.DataFrame | None = None,
) -> Rows:
    """The share of the way from floor to ceiling that answers each question, with Student's jackknife over draws.

        like training      (own - another task) / (two trainings - another task), the context swapped
        on these examples  (own + both_other - training_other - context_other) / 2, over own sqrt((1 - C)(1 - F))
        one vector         (vector - floor) / (context - floor), of right answers; floor: the better of another task's
                           and none
        learned            (context - shuffled) / (1 - shuffled), of right answers after k lines
        like training      own / sqrt(C F), of a new rule; the mean over cues of these roots

    `layers` are those of the experiment "shared_part", `queries` those of "rival", `strengths` (of whole trainings in
    the upper third of the layers) and `changes` of "new_rule"; None leaves out its questions. Similarities are means
    over the upper third of the layers, everything is a mean over tasks or cues, of the draws that have all; a question
    that no draw has is left out.
    """
    rows = {}
    if layers is not None:
        upper = _means_of_third(layers, "upper third", [*agreement_results.CORNERS, "context_foreign"])
        swapped = upper[["own", "context_foreign", "trainings"]]
        rows[TRAINING] = _jackknifed(swapped, lambda m: m.context_foreign, lambda m: m.own, lambda m: m.trainings)
        rows[EXAMPLES] = _jackknifed(
            upper[agreement_results.CORNERS],
            lambda m: 0.0,
            lambda m: agreement_results.cost_of_examples(m)["both swapped"],
            agreement_results.yardstick,
        )
    if queries is not None:
        right = seed_means(queries, "correct", "task", "intervention").unstack()
        rows[VECTOR] = _jackknifed(
            right[["vector_foreign", "zsl", "vector", "icl"]],
            lambda m: max(m["vector_foreign"], m["zsl"]),
            lambda m: m["vector"],
            lambda m: m["icl"],
        )
    if changes is not None:
        whole = changes[(changes["strength"] == changes["k"]) & changes["kind"].isin(["ICL", "ICL shuffled"])]
        whole = whole.assign(right=contrast_results.accuracy_by_own_rule(whole))
        right = seed_means(whole, "right", "cue", "kind").unstack()
        rows[LEARNED] = _jackknifed(right, lambda m: m["ICL shuffled"], lambda m: m["ICL"], lambda m: 1.0)
    if strengths is not None:
        similar = strengths.pivot_table(index="seed", columns="cue", values=["own", "contexts", "trainings"])
        rows[OF_RULE] = _jackknifed(
            similar,
            lambda m: 0.0,
            lambda m: m["own"].mean(),
            lambda m: contrast_results.largest_similarity(m["contexts"], m["trainings"]),
        )
    return {name: row for name, row in rows.items() if row.draws}


def _jackknifed(means: pd.DataFrame, floor: Value, measured: Value, ceiling: Value) -> Row:
    """The three values and the share, of means by seed; no share where the interval of their distance includes 0."""
    known = means.dropna()
    with np.errstate(divide="ignore", invalid="ignore"):  # a ceiling at its floor gives no share
        share = of_means(known, lambda m: (measured(m) - floor(m)) / (ceiling(m) - floor(m)))
    room = of_means(known, lambda m: ceiling(m) - floor(m))
    low, value, high = (of_means(known, of) for of in (floor, measured, ceiling))
    return Row(low, value, high, share if room.low > 0 else _NO_SHARE, len(known))


def _reported(directory: str | Path | None, folder: str, table: str, **values: Any) -> dict[str, pd.DataFrame]:
    """`published.reported`; raises where more than seeds differ."""
    chosen = published.reported(directory, folder, table, **values)
    for rows in chosen.values():
        published.require_only_seeds_differ(rows)
    return chosen


def _with_sentences(
    checkpoint: str, rows: Rows, tables: Mapping[str, pd.DataFrame | None], settings: pd.DataFrame | None
) -> Rows:
    """Each row with its sentence; without a share where nothing is learned in context."""
    layers, queries = tables["layers"], tables["queries"]
    gains = {}
    if settings is not None:
        gains["shared_part"] = gain_in_context(settings.assign(task=settings["tasks"]))
    if queries is not None:  # right among the labels, where there are some
        right = queries["right_label"] if "right_label" in queries else queries["correct"]
        right = queries.assign(right=right.fillna(queries["correct"]))
        of_settings = right.groupby(["seed", "task", "intervention"])["right"].mean().unstack()
        accuracies = of_settings[["icl", "zsl"]].add_suffix("_accuracy").reset_index()
        of_setting = queries.filter(["seed", "task", "n_queries", "one_label_accuracy"]).drop_duplicates()
        gains["rival"] = gain_in_context(accuracies.merge(of_setting))
    not_seen = {folder: _not_learned(checkpoint, gain) for folder, gain in gains.items() if not gain.low > 0}
    if LEARNED in rows and not rows[LEARNED].share.low > 0:
        values = rows[LEARNED]._asdict() | {"checkpoint": checkpoint}
        not_seen["new_rule"] = _sentences()["rule_not_learned"].format(**values)
    said = {}
    for question, row in rows.items():
        if FOLDERS[question] in not_seen:
            said[question] = row._replace(share=_NO_SHARE, sentence=not_seen[FOLDERS[question]])
        elif not math.isfinite(row.share.low):
            said[question] = row._replace(sentence=_sentences()["no_room"].format(**row._asdict()))
        else:
            values = row._asdict() | {"power": (row.share.high - row.share.low) / 2}
            if question == TRAINING and layers is not None:
                lower, middle, _ = share_by_third(layers, "context", "another task").values()
                values |= {"lower": lower, "middle": middle}
            said[question] = row._replace(sentence=f"{_sentences()[question].format(**values)} ({row.draws} draws)")
    return said


def _not_learned(checkpoint: str, gain: Interval) -> str:
    """What is said of a checkpoint to whose right answers demonstrations add nothing that is seen."""
    one_draw = "" if math.isfinite(gain.low) else _sentences()["one_draw"]
    return _sentences()["not_learned"].format(checkpoint=checkpoint, gain=gain) + one_draw


def gain_in_context(rows: pd.DataFrame) -> Interval:
    """What demonstrations add to right answers without them, or to those of one label, whichever are more in a task.

    Columns task, seed, n_queries, icl_accuracy, zsl_accuracy and, where answers are labels, one_label_accuracy. Where
    all seeds gain alike the interval is that of so many queries of each task (`statistics.independent_difference`).
    """
    without = rows["zsl_accuracy"]
    if "one_label_accuracy" in rows:
        one = rows["one_label_accuracy"].fillna(without)
        means = pd.DataFrame({"one": one, "without": without}).groupby(rows["task"]).transform("mean")
        without = one.where(means["one"] > means["without"], without)
    rows = rows.assign(without=without, gain=rows["icl_accuracy"] - without)
    n_queries = int(rows.groupby("task")["n_queries"].max().sum())
    gain, *shares = (over_seeds(rows, name) for name in ("gain", "icl_accuracy", "without"))
    after, before = (statistics.binomial_interval(share.estimate, n_queries) for share in shares)
    return statistics.widen_degenerate_difference(gain, after, before)


# The book's rows.


def rows_of_book(checkpoint: str = CHECKPOINT.name) -> Rows:
    """The five rows of a checkpoint of the book, by question and what it is asked of: word pairs, or a new rule."""
    rows = five_rows()[BOOK.format(checkpoint)]
    return {name if ":" in name else f"word pairs: {name}": row for name, row in rows.items()}


def three_rows_of_book() -> Rows:
    """The rows with which the story and the last chapter end; the other two say how, in the chapter before."""
    three = (f"word pairs: {TRAINING}", f"word pairs: {EXAMPLES}", LEARNED)
    return {name: row for name, row in rows_of_book().items() if name in three}


def provenance() -> tuple[Any, ...]:
    """What the rows of the book were made of."""
    contexts, strongest = GRIDS["new_rule"][:2], GRIDS["new_rule"][2:]
    return tuple(reporting.provenance(results(grid)) for grid in ("shared-part", "rival", strongest, contexts))


def mechanisms_of_book() -> dict[str, dict[str, Interval]]:
    """How much of what a context does each mechanism carries, of word pairs and of a new rule, between 0 and 1.

    The first row of each is the similarity of training; the others are `_mechanisms` of the book's tables.
    """
    rows = rows_of_book()
    carried = _mechanisms(
        results("rival", "queries"),
        results(("rival-rules", "rival-rules-category"), "queries"),
        contrast_results.both_grids("edits", "edits"),
    )
    like = {"word pairs": f"word pairs: {TRAINING}", "a new rule": OF_RULE}
    return {title: {TRAINING: rows[like[title]].share} | its for title, its in carried.items()}


def _mechanisms(
    queries: pd.DataFrame, queries_of_rules: pd.DataFrame, edits: pd.DataFrame
) -> dict[str, dict[str, Interval]]:
    """Shares of what a context does.

        a vector, ten heads, patched in   (its own - another task's) / (context - another task's), of right answers
        heads, ablated                    (without random heads - without these) / without random heads
        ten heads, made equal             (random heads made equal - these) / (random heads - all heads)

    Queries are those of "rival", for tasks and for new rules, where an answer is the most probable label. `edits` are
    those of "vote" on new rules. The intervals are Student's of the jackknife over draws.
    """
    pairs = seed_means(queries, "correct", "task", "intervention").unstack()
    rules = seed_means(queries_of_rules, "right_label", "task", "intervention").unstack()
    equal = edits[(edits["edit"] == "flat") & ~edits["every_token"]]
    equal = equal.pivot_table(index=["seed", "cue"], columns="heads", values="right")

    def patched_in(right: pd.DataFrame, name: str) -> Interval:
        foreign = f"{name}_foreign"
        return of_means(right, lambda m: (m[name] - m[foreign]) / (m["icl"] - m[foreign]))

    def ablated(right: pd.DataFrame, name: str) -> Interval:
        return of_means(right, lambda m: (m["off_random"] - m[name]) / m["off_random"])

    return {
        "word pairs": {
            "one vector, patched in": patched_in(pairs, "vector"),
            "ten task heads, patched in": patched_in(pairs, "heads"),
            "ten task heads, ablated": ablated(pairs, "off"),
            "ten induction heads, ablated": ablated(pairs, "off_induction"),
        },
        "a new rule": {
            "one vector, patched in": patched_in(rules, "vector"),
            "ten vote heads, made equal": of_means(
                equal, lambda m: (m["random 10"] - m["effect 10"]) / (m["random 10"] - m["all"]), ["seed", "cue"]
            ),
        },
    }


# Thirds of the layers.


def share_by_third(layers: pd.DataFrame, side: str, floor: str = "made-up words") -> dict[str, Interval]:
    """The share of the way in each third of the layers (`layer_thirds`), from a floor to two trainings.

        (own - floor) / (trainings - floor),  of means over tasks, seeds and the layers of the third

    `layers` are those of the experiment "shared_part"; `side`, "training" or "context", says who learns what the floor
    is named for: "made-up words", "another task" or "shuffled answers". Jackknife over seeds.
    """
    lesson = {"made-up words": "nonsense", "another task": "foreign", "shuffled answers": "shuffled"}[floor]
    low = f"{side}_{lesson}"
    shares = {}
    for third in THIRDS:
        means = _means_of_third(layers, third, ["own", low, "trainings"])
        shares[third] = of_means(means, lambda m: (m["own"] - m[low]) / (m["trainings"] - m[low]))
    return shares


def _means_of_third(layers: pd.DataFrame, third: str, columns: list[str]) -> pd.DataFrame:
    """By seed, means over the layers of a third and over tasks; where a training diverged, over the other tasks."""
    n = layers["layer"].nunique()
    chosen = layers[layers["layer"].isin(range(n)[layer_thirds(n)[third]])]
    return chosen.groupby(["seed", "task"])[columns].mean().groupby("seed").mean()


# Ten finer rows.

_SIMILARITIES = {
    "attention outputs (SimAOU)": "sim_aou",
    "the same, query by query (residual)": "sim_aou_residual",
    "weights (cos ΔW)": "update_cosine",
}
_SHARED = {
    "fine-tuning needs what is common": ("ft_across_near", "ft_across_icl", "zsl"),
    "the context needs what is common": ("across_near", "across_ft", "zsl"),
}
"""Interventions of `shared_part`, taken out, whose shares of right answers are floor, measured value and ceiling."""
_PATCH = "the mean patch answers"
_EXPLAINED = "steps explain the change (R²)"

TEN_FOLDERS: Mapping[str, str] = (
    {f"{name}{swapped}": "agreement" for name in _SIMILARITIES for swapped in ("", ", context swapped")}
    | dict.fromkeys(_SHARED, "shared_part")
    | dict.fromkeys((_PATCH, _EXPLAINED), "causal_tests")
)
"""The folder of the experiment whose tables give each of the ten rows."""


def ten_rows(directory: str | Path | None = None) -> dict[str, Rows]:
    """The rows of `TEN_FOLDERS` by checkpoint, from the tables of a directory, or of the book.

    Every setting counts that reports and has all lessons (of a checkpoint that has none such, the bounds); a training
    is the whole one of its setting. A row is left out without its tables, or without a value. It has no share where the
    ceiling is above the floor for some seeds and below it for others, and where demonstrations add nothing that is
    seen, which its sentence says. Raises ResultsError, which names the command, without tables of the agreement, and
    ExperimentError as `five_rows`.
    """
    settings, pairs_of, changes = (
        published.reported(directory, "agreement", of) for of in ("settings", "pairs", "changes")
    )
    shared = _reported(directory, "shared_part", "queries", layer_causal_lr=0)
    answered, steps = (_reported(directory, "causal_tests", name, model="trained") for name in ("queries", "settings"))
    rows = {}
    for checkpoint, every_setting in settings.items():
        its = every_setting[every_setting["lessons"].isin(("all", "bounds"))]
        if its.empty:
            continue
        lessons = "all" if (its["lessons"] == "all").any() else "bounds"
        every_pair = pairs_of[checkpoint]
        pairs = agreement_results.with_changes(every_pair[every_pair["lessons"] == lessons], changes[checkpoint])
        published.require_only_seeds_differ(pairs)
        whole = [(pairs[f"{side}_kind"] == "ICL") | (pairs[f"{side}_epochs"] == pairs["epochs"]) for side in "ab"]
        found = similarity_rows(pairs[whole[0] & whole[1]], UpdateFilter("FT"))
        if checkpoint in shared:
            found |= {
                name: Row.over_seeds(*(_right(shared[checkpoint], of) for of in three))
                for name, three in _SHARED.items()
            }
        if checkpoint in answered:
            foreign, nothing, patch, context = (
                _right(answered[checkpoint], of) for of in ("patch_foreign_mean", "zsl", "patch_mean", "icl")
            )
            floor = foreign if foreign.mean() >= nothing.mean() else nothing  # a patch that gives less carries nothing
            found[_PATCH] = Row.over_seeds(floor, patch, context)
        if checkpoint in steps:
            columns = ("r2_icl_foreign", "r2_icl_own", "r2_descent_own")
            found[_EXPLAINED] = Row.over_seeds(*(seed_means(steps[checkpoint], name) for name in columns))
        found = {name: row for name, row in found.items() if all(math.isfinite(of.estimate) for of in row[:3])}
        gain = gain_in_context(its)
        if not gain.low > 0:
            told = _not_learned(checkpoint, gain)
            found = {name: row._replace(share=_NO_SHARE, sentence=told) for name, row in found.items()}
        rows[checkpoint if directory else BOOK.format(checkpoint)] = found
    if not rows:
        place = directory or PUBLISHED
        raise ResultsError(
            f"{place} has no setting of the agreement with all lessons that reports; compute some: "
            f"explainer-lab agreement --splits report --publish {place}"
        )
    return rows


def _right(queries: pd.DataFrame, intervention: str) -> pd.Series:
    return seed_means(queries[queries["intervention"] == intervention], "correct")


def similarity_rows(pairs: pd.DataFrame, training: UpdateFilter = FT) -> Rows:
    """The row of each similarity of a context and a training, from either floor to two trainings on the task.

    There are two floors: made-up words in the training, and in the context. The ceiling is two trainings on different
    examples.
    """

    def similar(measure: str, *two: UpdateFilter) -> pd.Series:
        return seed_means(agreement_results.pairs_between(pairs, *two), measure)

    made_up = {
        "": (ICL, replace(training, lesson="nonsense")),
        ", context swapped": (replace(ICL, lesson="nonsense"), training),
    }
    return {
        f"{name}{swapped}": Row.over_seeds(
            similar(measure, *floor),
            similar(measure, ICL, training),
            similar(measure, training, replace(training, lesson="other")),
        )
        for name, measure in _SIMILARITIES.items()
        for swapped, floor in made_up.items()
    }
