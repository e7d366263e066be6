"""Contrasts of two lessons: minimal pairs of tasks, and rules that nobody could know.

Everything takes tables of `results` for grids of "minimal-pairs", whose draws are seeds of a pair of tasks, or of
"new-rule", whose draws are seeds of a kind of cue. Values are functions of means over pairs, or cues, which are fixed,
with Student's interval of the jackknife over seeds (`of_means`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from explainer.results.agreement_results import yardstick
from explainer.results.published import results
from explainer.results.table_intervals import Value, by_group, of_means, of_sums
from explainer.theory.statistics import Interval


def both_grids(grid: str, table: str = "settings") -> pd.DataFrame:
    """A table of a grid and of its fellow with categories, of which there are fewer words: all three cues."""
    return results((grid, f"{grid}-category"), table)


def _draws(rows: pd.DataFrame) -> list[str]:
    """The columns of a draw: of a pair of tasks, or of a kind of cue."""
    return ["seed", "pair" if "pair" in rows else "cue"]


def similarities(rows: pd.DataFrame) -> dict[str, Interval]:
    """The similarities of contexts and trainings of one strength, with their floor, ceilings and yardstick.

        own, other              cos(c_A - c_B, f_A - f_B), context and training of the same words, or of others
        own - other             what the words cost
        yardstick               own sqrt((1 - C) (1 - F)), what they would cost if they counted as the task does
        contexts, trainings     C and F, two contrasts of one kind
        sqrt(C F)               what a context and a training could share, the mean over pairs, or cues, of these roots
        own / sqrt(C F)         own, corrected for what two lessons of one task do not share
        examples, reordered     of what two sets of words do differently in one task, and its ceiling

    `rows` are those of "settings", or of "strengths" of one number of epochs and part of the layers. NaN where C or F
    is above 0 for none.
    """
    values: dict[str, str | Value] = {
        name: name for name in ("own", "other", "contexts", "trainings", "examples", "reordered")
    }
    draws = _draws(rows)
    means = rows.groupby(draws)[list(values)].mean()
    values |= {
        "own - other": lambda m: m.own - m.other,
        "yardstick": yardstick,
    }
    of_kinds: dict[str, Value] = {
        "sqrt(C F)": lambda m: largest_similarity(m["contexts"], m["trainings"]),
        "own / sqrt(C F)": lambda m: m["own"].mean() / largest_similarity(m["contexts"], m["trainings"]),
    }
    by_kind: pd.DataFrame = means.pivot_table(index=draws[0], columns=draws[1], values=["own", "contexts", "trainings"])
    return {name: of_means(means, value, draws) for name, value in values.items()} | {
        name: of_means(by_kind, value) for name, value in of_kinds.items()
    }


def largest_similarity(contexts: pd.Series, trainings: pd.Series) -> float:
    """What a context and a training could share, given how well two of each agree: the mean over kinds of sqrt(C F).

    A kind of which C or F is not above 0 shares nothing; NaN if none does.
    """
    return float(((contexts.clip(lower=0) * trainings.clip(lower=0)) ** 0.5).mean()) or np.nan


def accuracy_by_own_rule(changes: pd.DataFrame) -> pd.Series:
    """The share of right answers by the rule that was taught, a number for each row; rule A where none was."""
    return changes["right_a"].where(changes["lesson"] != "B", changes["right_b"])


def mean_by(rows: pd.DataFrame, by: str, column: str = "right") -> dict[Any, Interval]:
    """A column by the strength of a lesson, or by the intervention, mean over directions and over pairs or cues."""
    return by_group(rows, by, lambda its: of_means(its, column, _draws(its)))


def share_of_the_whole(interventions: pd.DataFrame) -> dict[str, Interval]:
    """What each part does of what the whole change does: (x - base) / (whole - base) of the log odds of A over B."""
    draws = _draws(interventions)
    odds = interventions.pivot_table(index=draws, columns="intervention", values="log_odds")
    bases: Mapping[str, str] = {
        "context_along_ft": "context", "context_along_other_ft": "context", "context_along_near": "context",
        "ft_along_icl": "ft", "ft_along_near": "ft",
    }  # fmt: skip

    def share(part: str, base: str) -> Interval:
        return of_means(odds, lambda m: (m[part] - m[base]) / (m[f"{base}_whole"] - m[base]), draws)

    return {part: share(part, base) for part, base in bases.items()}


def effect_beyond_random(interventions: pd.DataFrame, part: str = "ft_along_icl") -> Interval:
    """How much of what training on a rule does to the log odds of A over B lies along the contexts, or the converse.

        (part - random part) / (whole - other rule),  the mean over cues of these shares

    `interventions` are those of "new_rule", with parts in all layers.
    """
    chosen = interventions[interventions["layers"] == "all"]
    odds = chosen.pivot_table(index="seed", columns=["cue", "intervention"], values="log_odds")

    side = part.split("_along_", maxsplit=1)[0]

    def share(m: pd.Series) -> float:
        its: Any = m.unstack("cue")
        moved = its.loc[part] - its.loc[f"{side}_along_near"]
        return (moved / (its.loc[side] - its.loc[f"{side}_other_rule"])).mean()

    return of_means(odds, share)


def agreement(answers: pd.DataFrame, given: str, *, wrong: bool = False) -> dict[str, Interval]:
    """How often a column of "answers" is what the model answers after the context, or does where that is wrong.

    agreement       hits / queries; cues count by their queries
    floor           the same for who knows the right label alone: each query is given what another one of the same draw,
                    rule and right label is given (among the wrong ones, another wrong one), or its own if there is none
    gain            agreement - floor
    """
    alike = ["seed", "cue", "rule", "right"]
    asked = answers[answers["icl"] != answers["right"]] if wrong else answers
    hit = (asked[given] == asked["icl"]).to_numpy(float)
    n = asked.groupby(alike)[given].transform("size").to_numpy()
    same = asked.groupby([*alike, given]).size().reindex(pd.MultiIndex.from_frame(asked[[*alike, "icl"]]), fill_value=0)
    counted = asked.assign(hit=hit, floor=np.where(n > 1, (same.to_numpy() - hit) / np.maximum(n - 1, 1), hit))
    values: dict[str, Value] = {
        "agreement": lambda sums: sums.hit / sums.n,
        "floor": lambda sums: sums.floor / sums.n,
        "gain": lambda sums: (sums.hit - sums.floor) / sums.n,
    }
    return {name: of_sums(counted, value, ["seed", "cue"]) for name, value in values.items()}


def line_over(lines: pd.DataFrame, column: str, place: str, form: str, other: str = "new") -> Interval:
    """A column of "lines" for lines of one form, over that for lines of another that stand at the same place."""
    wide = lines[lines["place"] == place].pivot_table(index=["seed", "cue"], columns="form", values=column)
    return of_means(wide, lambda m: m[form] / m[other], ["seed", "cue"])


def attention_moved(exchanges: pd.DataFrame) -> Interval:
    """How far attention goes from the lines of the answer's label to those of the next, of rows of "exchanges".

    (after - before) / (before, of the answer - before),  of shares of attention to the next label
    """
    return of_means(
        exchanges,
        lambda m: (m.after_next - m.before_next) / (m.before_answer - m.before_next),
        ["seed", "cue"],
    )


def ablation_losses(grid: str) -> pd.DataFrame:
    """The "ablations" of a grid, with what each loses ("lost") of the share of right answers.

    Answers are the most probable of all tokens on word pairs, and of the labels on new rules ("kind").
    """
    held = results(grid, "ablations")
    rules = held["right_label"].notna()
    right = held["right_label"].where(rules, held["right"]).astype(float)
    held = held.assign(kind=rules.map({True: "new rules", False: "word pairs"}), share=right)
    draws = ["task", "seed"]
    whole = held[held["part"] == "none"].set_index(draws)["share"]
    held["lost"] = whole.loc[pd.MultiIndex.from_frame(held[draws])].to_numpy() - right
    return held.replace({"part": {"mlp": "MLP"}})
