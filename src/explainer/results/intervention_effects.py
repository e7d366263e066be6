"""What interventions do to the answers: the published causal tests, with intervals and paired differences.

Everything takes tables of `results` for a grid of causal tests, with one setting for each seed and task. Every interval
is Student's over seeds; where answers are counted, it allows for the words that seeds share.
"""

from collections.abc import Callable, Mapping

import pandas as pd

from explainer.errors import ExperimentError
from explainer.results import agreement, reporting
from explainer.theory import statistics
from explainer.theory.statistics import Interval, Sample


def accuracies(queries: pd.DataFrame, names: Mapping[str, str]) -> dict[str, dict[str, Interval]]:
    """Share of right answers after several interventions, `rows(...)[task][name]`, by the names given to them.

    Raises ExperimentError for an intervention that is nowhere, and for two settings of one task and seed.
    """
    found = {name: _each_task(_rows(queries, intervention), _mean) for intervention, name in names.items()}
    tasks = queries["task"].unique()
    return {task: {name: each[task] for name, each in found.items() if task in each} for task in tasks}


def over_tasks(queries: pd.DataFrame, intervention: str) -> Interval:
    """The share of right answers after an intervention, mean over these tasks; raises as `rows`."""
    return _mean(_rows(queries, intervention))


def differences(queries: pd.DataFrame, a: str, b: str) -> dict[str, Interval]:
    """A minus B of two interventions for each task, query by query, with p-values corrected by Holm for the tasks.

    Raises as `rows`.
    """
    return reporting.corrected(_each_task(_pairs(queries, a, b), _difference))


def difference(queries: pd.DataFrame, a: str, b: str) -> Interval:
    """A minus B of two interventions, mean over these tasks; raises as `rows`."""
    return _difference(_pairs(queries, a, b))


def who_answers(queries: pd.DataFrame, intervention: str) -> pd.DataFrame:
    """Right answers after an intervention by who else is right on the same query, with FT and with the context.

    A row for each of the four cases: `ft`, `icl` (whether they are right), `n` queries, `right`, their share, an
    interval over seeds. Raises as `rows`.
    """
    keys = ["setting", "task", "query"]
    found = _rows(queries, intervention)
    for name in ("ft", "icl"):
        its = _rows(queries, name)[[*keys, "correct"]].rename(columns={"correct": name})
        found = found.merge(its, on=keys, validate="one_to_one")
    rows = []
    for (ft, right), its in found.groupby(["ft", "icl"]):
        sums = its.assign(n=1).groupby("seed")[["correct", "n"]].sum()
        share = reporting.jackknife(sums, lambda kept: kept["correct"].sum() / kept["n"].sum())
        rows.append({"ft": bool(ft), "icl": bool(right), "n": len(its), "right": share.of_share})
    return pd.DataFrame(rows)


def columns(settings: pd.DataFrame, names: Mapping[str, str]) -> dict[str, Interval]:
    """Columns of the settings, means over these tasks, by the names given to them; Student's intervals over seeds.

    Seeds that lack a column on some task are left out of it.
    """
    means = {
        name: settings.pivot(index="seed", columns="task", values=column).dropna().mean(axis=1)
        for column, name in names.items()
    }
    return {name: statistics.student(of_seed.to_numpy()) for name, of_seed in means.items()}


def accuracy_by_layer(layers: pd.DataFrame, column: str) -> dict[str, Interval]:
    """Mean over seeds of a share in each layer, an interval of arrays for each task; no end leaves [0, 1]."""
    of_task = layers.groupby("task", sort=False)
    means = {str(t): statistics.student(its.pivot(index="seed", columns="layer", values=column)) for t, its in of_task}
    return {task: each.of_share for task, each in means.items()}


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


def _pairs(queries: pd.DataFrame, a: str, b: str) -> pd.DataFrame:
    """The queries after A, with what they have after B in columns that end in _b."""
    return _rows(queries, a).merge(
        _rows(queries, b), on=["setting", "task", "query"], suffixes=("", "_b"), validate="one_to_one"
    )


def _each_task(rows: pd.DataFrame, interval: Callable[[pd.DataFrame], Interval]) -> dict[str, Interval]:
    return {str(task): interval(of_task) for task, of_task in rows.groupby("task", sort=False)}


def _mean(rows: pd.DataFrame) -> Interval:
    found = _sample(rows, rows["correct"])
    interval = statistics.paired_difference(found, _sample(rows, 0 * rows["correct"]))
    return statistics.widen_degenerate(interval.of_share, found.n_queries)


def _difference(rows: pd.DataFrame) -> Interval:
    return statistics.paired_difference(_sample(rows, rows["correct"]), _sample(rows, rows["correct_b"]))


def _sample(rows: pd.DataFrame, values: pd.Series) -> Sample:
    """A group for each setting and task, a stratum for each task."""
    settings = list(rows.assign(value=values).groupby(["setting", "task"], sort=False))
    groups = [(of_setting["value"].to_numpy(float),) for _, of_setting in settings]
    first = [of_setting.iloc[0] for _, of_setting in settings]
    ids = [of_setting["query_id"].to_numpy() for _, of_setting in settings]
    return Sample(groups, ids, [one["task"] for one in first], [one["seed"] for one in first])
