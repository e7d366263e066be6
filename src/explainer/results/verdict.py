"""The verdict in five rows: each question's answer between its floor, 0, and its ceiling, 1."""

import pandas as pd

from explainer.results import new_rule, reporting, verdict_scale
from explainer.results.published import results
from explainer.theory.statistics import Interval


def questions(
    layers: pd.DataFrame, answers: pd.DataFrame, strengths: pd.DataFrame, changes: pd.DataFrame
) -> dict[str, Interval]:
    """The share of the way from floor to ceiling that answers each question, with Student's jackknife over draws.

        like training      (own - another task) / (two trainings - another task), the context swapped
        on these examples  (own + both_other - training_other - context_other) / 2, over own sqrt((1 - C)(1 - F))
        one vector         (vector - another task's) / (context - another task's), of right answers
        learned            (context - shuffled) / (1 - shuffled), of right answers after sixteen lines
        like training      own / sqrt(C F), of a new rule

    `layers` are those of the experiment "shared_part", `answers` the queries of "rival", `strengths` and `changes` of
    "new_rule". Similarities are means over the upper third of the layers, everything is a mean over tasks or cues.
    """
    upper = layers[3 * layers["layer"] >= 2 * layers["layer"].nunique()]
    columns = ["own", "both_other", "training_other", "context_other", "contexts", "trainings"]
    of_seeds = upper.groupby(["seed", "task"])[columns].mean().groupby("seed").mean()
    right = answers.groupby(["seed", "task", "intervention"])["correct"].mean().groupby(["seed", "intervention"]).mean()
    last = strengths[strengths["epochs"] == strengths["epochs"].max()]
    return {
        "word pairs: like training": verdict_scale.normalised_position_by_thirds(layers, "context", "another task")[
            "upper third"
        ],
        "word pairs: on these examples": reporting.jackknife(of_seeds, _of_yardstick),
        "word pairs: carried by one vector": reporting.jackknife(right.unstack(), _carried),
        "new rule: learned": reporting.jackknife(_learned(changes), _of_the_rest),
        "new rule: like training": new_rule.similarities(last[last["layers"] == "upper third"])["own / sqrt(C F)"],
    }


def of_book() -> dict[str, Interval]:
    """`questions` of the book's tables."""
    strengths, changes = new_rule.table("rule-strongest", "strengths"), new_rule.table("rule-contexts", "changes")
    return questions(results("shared-part", "layers"), results("rival", "queries"), strengths, changes)


def provenance() -> str:
    """What the rows of the book were made of, one line each."""
    settings = (
        results("shared-part"),
        results("rival"),
        new_rule.table("rule-strongest"),
        new_rule.table("rule-contexts"),
    )
    return " ".join(map(reporting.provenance, settings))


def _of_yardstick(rows: pd.DataFrame) -> float:
    m = rows.mean()
    special = (m.own + m.both_other - m.training_other - m.context_other) / 2
    return special / (m.own * ((1 - m.contexts) * (1 - m.trainings)) ** 0.5)


def _carried(rows: pd.DataFrame) -> float:
    m = rows.mean()
    return (m["vector"] - m["vector_foreign"]) / (m["icl"] - m["vector_foreign"])


def _learned(changes: pd.DataFrame) -> pd.DataFrame:
    """Right answers after sixteen lines and after shuffled ones, by seed, means over rules and cues."""
    rows = changes[(changes["strength"] == 16) & changes["kind"].isin(["ICL", "ICL shuffled"])]
    rows = rows.assign(right=new_rule.by_own_rule(rows))
    return rows.groupby(["seed", "cue", "kind"])["right"].mean().groupby(["seed", "kind"]).mean().unstack()


def _of_the_rest(rows: pd.DataFrame) -> float:
    m = rows.mean()
    return (m["ICL"] - m["ICL shuffled"]) / (1 - m["ICL shuffled"])
