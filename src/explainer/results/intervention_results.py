"""What interventions do to the answers: the published causal tests, with intervals and paired differences.

Everything takes tables of `results` for a grid of causal tests, with one setting for each seed and task. Every interval
is Student's over seeds; where answers are counted, it allows for the words that seeds share.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from explainer.errors import ExperimentError
from explainer.results import table_intervals
from explainer.theory import statistics
from explainer.theory.statistics import Interval, Sample

_QUERY = ["setting", "task", "query"]


def accuracy(queries: pd.DataFrame, intervention: str) -> Interval:
    """The share of right answers after an intervention, mean over these tasks.

    Raises ExperimentError for an intervention that is nowhere, and for two settings of one task and seed; so do all.
    """
    sample = _sample(_rows(queries, intervention), "correct")
    nothing = replace(sample, groups=[(np.zeros(n),) for n in sample.sizes])
    return statistics.widen_degenerate(statistics.paired_difference(sample, nothing).of_share, sample.n_queries)


def difference(queries: pd.DataFrame, a: str, b: str) -> Interval:
    """A minus B of two interventions, mean over these tasks."""
    after_b = _rows(queries, b)[[*_QUERY, "correct"]]
    both = _rows(queries, a).merge(after_b, on=_QUERY, suffixes=("", "_b"), validate="one_to_one")
    return statistics.paired_difference(_sample(both, "correct"), _sample(both, "correct_b"))


def who_answers(queries: pd.DataFrame, intervention: str) -> pd.DataFrame:
    """Right answers after an intervention by who else is right on the same query, with FT and with the context.

    A row for each of the four cases: `ft`, `icl` (whether they are right), `n` queries, `right`, their share, an
    interval over seeds.
    """
    found = _rows(queries, intervention)
    for name in ("ft", "icl"):
        its = _rows(queries, name)[[*_QUERY, "correct"]].rename(columns={"correct": name})
        found = found.merge(its, on=_QUERY, validate="one_to_one")
    rows = []
    for (ft, right), its in found.groupby(["ft", "icl"]):
        share = table_intervals.of_sums(its, lambda sums: sums.correct / sums.n)
        rows.append({"ft": bool(ft), "icl": bool(right), "n": len(its), "right": share.of_share})
    return pd.DataFrame(rows)


def _rows(queries: pd.DataFrame, intervention: str) -> pd.DataFrame:
    rows = queries[queries["intervention"] == intervention]
    if rows.empty:
        known = ", ".join(queries["intervention"].unique())
        raise ExperimentError(f"there is no intervention {intervention!r} in this table; it has {known}.")
    if (twice := rows[rows.duplicated(["task", "seed", "query"])]).size:
        first = twice.iloc[0]
        raise ExperimentError(
            f"seed {first['seed']} of {first['task']} is there twice; only seeds and tasks may differ."
        )
    return rows


def _sample(rows: pd.DataFrame, column: str) -> Sample:
    """A group for each setting and task, a stratum for each task."""
    settings = [its for _, its in rows.groupby(["setting", "task"], sort=False)]
    groups, ids = [(its[column].to_numpy(float),) for its in settings], [its["query_id"].to_numpy() for its in settings]
    return Sample(groups, ids, *([its[name].iloc[0] for its in settings] for name in ("task", "seed")))
