"""What the published runs of associative recall say, from the tables "curve" of `results("recall", "curve")`.

Models of one seed are matched, so rules are compared seed by seed. Outcomes are shares of the queries: "kept" and
"revised" of right answers, "stale" of answers with the old value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from explainer.theory import statistics
from explainer.theory.statistics import Interval, student

PAIRS: Mapping[str, str] = {
    "delta-momentum": "delta",
    "delta-half": "delta",
    "gated-momentum": "gated",
    "momentum-attention": "softmax",
}
"""Each rule with momentum, and the rule that it adds momentum to."""

NAMES: Mapping[str, str] = {
    "linear": "linear attention",
    "delta": "delta rule",
    "delta-momentum": "delta + momentum",
    "delta-half": "delta + momentum ½",
    "gated": "gated delta",
    "gated-momentum": "gated + momentum",
    "ascent": "ascent, v turned",
    "softmax": "softmax attention",
    "momentum-attention": "momentum attention",
}
"""The rules as figures call them."""

OUTCOMES: Mapping[str, str] = {
    "kept": "kept keys, right",
    "revised": "revised keys, right",
    "stale": "revised keys, stale",
}
"""The outcomes as figures call them."""


@dataclass(frozen=True)
class _RuleComparison:
    """Differences between two rules, one for each seed: their mean with Student's interval, and the sign test."""

    by_seed: pd.Series
    mean: Interval
    sign_p: float

    @property
    def ahead(self) -> int:
        """Seeds in which the first rule is higher."""
        return int((self.by_seed > 0).sum())


def mean_over_keys(curve: pd.DataFrame, column: str, rules: Sequence[str]) -> dict[str, dict[int, Interval]]:
    """A column after each number of steps, mean over the numbers of keys, for some rules: Student over seeds."""
    means = {rule: curve[curve["rule"] == rule].pivot_table(column, "step", "seed") for rule in rules}
    return {
        NAMES[rule]: {
            int(step): student(seeds).of_share for step, seeds in zip(table.index, table.to_numpy(), strict=True)
        }
        for rule, table in means.items()
    }


def rule_difference(curve: pd.DataFrame, rule: str, other: str, outcome: str) -> _RuleComparison:
    """The outcome of a rule minus that of another at the end, seed by seed, as the mean over the numbers of keys."""
    at_end = curve[(curve["step"] == curve["steps"]) & curve["rule"].isin([rule, other])]
    seeds = at_end.pivot_table(outcome, "seed", "rule")
    differences = seeds[rule] - seeds[other]
    values = differences.to_numpy()
    return _RuleComparison(differences, student(values), statistics.sign_test(values))


def momentum_effects(curve: pd.DataFrame) -> dict[str, dict]:
    """For kept and revised keys and each rule with momentum that the curve has, this rule minus that without it.

    The p-values of all of them, Student's and those of the sign test, are corrected by Holm for their number.
    """
    rules, outcomes = set(curve["rule"]), ("kept", "revised")
    asked = [(outcome, rule) for outcome in outcomes for rule in PAIRS if {rule, PAIRS[rule]} <= rules]
    raw = [rule_difference(curve, rule, PAIRS[rule], outcome) for outcome, rule in asked]
    students = statistics.holm(np.array([each.mean.p_value for each in raw]))
    signs = statistics.holm(np.array([each.sign_p for each in raw]))
    effects: dict[str, dict[str, _RuleComparison]] = {outcome: {} for outcome in outcomes}
    for (outcome, rule), each, by_student, by_sign in zip(asked, raw, students, signs, strict=True):
        mean = replace(each.mean, p_value=float(by_student))
        effects[outcome][rule] = replace(each, mean=mean, sign_p=float(by_sign))
    return effects
