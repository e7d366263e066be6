"""What interventions do to the answers: the published causal tests, with intervals and paired differences.

Everything takes tables of `results` for a grid of causal tests, with one setting for each seed and task. Every interval
is Student's over seeds; where answers are counted, it allows for the words that seeds share.
"""

from collections.abc import Mapping

import pandas as pd

from explainer.errors import ExperimentError
from explainer.results import aggregate, agreement, reporting
from explainer.theory import statistics
from explainer.theory.statistics import Interval, Sample

_QUERY = ["setting", "task", "query"]


def accuracies(queries: pd.DataFrame, names: Mapping[str, str]) -> dict[str, dict[str, Interval]]:
    """Share of right answers after several interventions, `[task][name]`, by the names given to them.

    Raises ExperimentError for an intervention that is nowhere, and for two settings of one task and seed; so do all.
    """
    found = {name: aggregate.by_group(_rows(queries, of), "task", _mean) for of, name in names.items()}
    tasks = queries["task"].unique()
    return {task: {name: each[task] for name, each in found.items() if task in each} for task in tasks}


def over_tasks(queries: pd.DataFrame, intervention: str) -> Interval:
    """The share of right answers after an intervention, mean over these tasks."""
    return _mean(_rows(queries, intervention))


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
        share = aggregate.of_sums(its, ["seed"], lambda sums: sums.correct / sums.n)
        rows.append({"ft": bool(ft), "icl": bool(right), "n": len(its), "right": share.of_share})
    return pd.DataFrame(rows)


def columns(settings: pd.DataFrame, names: Mapping[str, str]) -> dict[str, Interval]:
    """Columns of the settings, means over these tasks, by the names given to them; Student's intervals over seeds.

    Seeds that lack a column on some task are left out of it.
    """
    tables = {name: settings.pivot(index="seed", columns="task", values=column) for column, name in names.items()}
    return {name: statistics.student(of_tasks.dropna().mean(axis=1)) for name, of_tasks in tables.items()}


def accuracy_by_layer(layers: pd.DataFrame, column: str) -> dict[str, Interval]:
    """Mean over seeds of a share in each layer, an interval of arrays for each task; no end leaves [0, 1]."""

    def of_layers(its: pd.DataFrame) -> Interval:
        return statistics.student(its.pivot(index="seed", columns="layer", values=column)).of_share

    return aggregate.by_group(layers, "task", of_layers)


def column_differences(settings: pd.DataFrame, a: str, b: str) -> dict[str, Interval]:
    """Column A minus column B of the settings for each task, with p-values corrected by Holm for the tasks."""
    return reporting.corrected(agreement.by_task(settings.assign(gap=settings[a] - settings[b]), "gap"))


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


def _mean(rows: pd.DataFrame) -> Interval:
    found = _sample(rows, "correct")
    interval = statistics.paired_difference(found, _sample(rows.assign(nothing=0.0), "nothing"))
    return statistics.widen_degenerate(interval.of_share, found.n_queries)


def _sample(rows: pd.DataFrame, column: str) -> Sample:
    """A group for each setting and task, a stratum for each task."""
    settings = [its for _, its in rows.groupby(["setting", "task"], sort=False)]
    groups, ids = [(its[column].to_numpy(float),) for its in settings], [its["query_id"].to_numpy() for its in settings]
    return Sample(groups, ids, *([its[name].iloc[0] for its in settings] for name in ("task", "seed")))
