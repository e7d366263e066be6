"""What the published runs of a rule that nobody could know say: right answers, votes, steps, and parts of contrasts.

Everything takes tables of `results` for grids of the experiment "new_rule". Values are means over kinds of cues, which
are fixed, with Student's interval of the jackknife over draws.
"""

import numpy as np
import pandas as pd

from explainer.results import aggregate, minimal_pairs
from explainer.results.published import results
from explainer.theory.statistics import Interval

_DRAWS = ["seed", "cue"]
"""A draw of words for a kind of cue."""


def both_grids(grid: str, name: str = "settings") -> pd.DataFrame:
    """A table of a grid and of its fellow with categories, of which there are fewer words: all three cues."""
    return pd.concat([results(grid, name), results(f"{grid}-category", name)], ignore_index=True)


def accuracy_by_strength(changes: pd.DataFrame, kind: str) -> dict[int, Interval]:
    """The share of right answers after lessons of a kind ("ICL", "ICL shuffled", "FT", "ZSL") by their strength."""
    rows = changes[changes["kind"] == kind]
    right = rows.assign(right=accuracy_by_own_rule(rows))
    return aggregate.by_number(right, "strength", lambda its: aggregate.mean(its, "right", _DRAWS))


def accuracy_by_own_rule(changes: pd.DataFrame) -> pd.Series:
    """The share of right answers by the rule that was taught, a number for each row; rule A where none was."""
    return changes["right_a"].where(changes["lesson"] != "B", changes["right_b"])


def agreement(answers: pd.DataFrame, given: str, *, wrong: bool = False) -> Interval:
    """How often a column of "answers" is what the model answers after the context, or does where that is wrong."""
    asked = _asked(answers, wrong)
    return _share(asked.assign(hit=asked[given] == asked["icl"]))


def agreement_by_chance(answers: pd.DataFrame, given: str, *, wrong: bool = False) -> Interval:
    """The same if each query were given what a random query of the same draw and rule is given."""
    asked = _asked(answers, wrong)
    return _share(asked.assign(hit=_chances(answers, given, asked)))


def agreement_beyond_chance(answers: pd.DataFrame, given: str) -> Interval:
    """The share of the way from `agreement_by_chance` to full agreement: (agreement - chance) / (1 - chance)."""
    counted = answers.assign(hit=answers[given] == answers["icl"], chance=_chances(answers, given, answers))
    return aggregate.of_sums(counted, _DRAWS, lambda sums: (sums.hit - sums.chance) / (sums.n - sums.chance))


def _chances(answers: pd.DataFrame, given: str, asked: pd.DataFrame) -> np.ndarray:
    """For each query that is asked, how often what the model answers is given in its draw and rule."""
    draw = ["seed", "cue", "rule"]
    shares = answers.groupby([*draw, given]).size() / answers.groupby(draw).size()
    return shares.reindex(pd.MultiIndex.from_frame(asked[[*draw, "icl"]])).fillna(0).to_numpy()


def _asked(answers: pd.DataFrame, wrong: bool) -> pd.DataFrame:
    return answers[answers["icl"] != answers["right"]] if wrong else answers


def _share(asked: pd.DataFrame) -> Interval:
    """Hits over queries; cues count by their queries."""
    return aggregate.of_sums(asked, _DRAWS, lambda sums: sums.hit / sums.n)


def similarities(rows: pd.DataFrame) -> dict[str, Interval]:
    """As `minimal_pairs.similarities`, of "settings", or of "strengths" of one number of epochs and part of layers."""
    return minimal_pairs.similarities(_as_pairs(rows))


def accuracy_after_parts(
    interventions: pd.DataFrame, column: str = "right", layers: str = "all"
) -> dict[str, Interval]:
    """A column of "interventions" by what is put in or taken out, in all layers or in a third of them."""
    return minimal_pairs.mean_by_intervention(
        _as_pairs(interventions[interventions["layers"].isin(("all", layers))]), column
    )


def part_minus_random(interventions: pd.DataFrame, name: str, near: str, layers: str = "all") -> Interval:
    """Right answers after a part less those after a random part, mean over directions and cues."""
    chosen = interventions[interventions["layers"] == layers]
    wide = chosen.pivot_table(index=[*_DRAWS, "towards"], columns="intervention", values="right")
    return aggregate.of_means(wide.groupby(_DRAWS).mean(), lambda means: means[name] - means[near])


def _as_pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """With the cue where `contrasts` has the pair of tasks."""
    return rows.rename(columns={"cue": "pair"})
