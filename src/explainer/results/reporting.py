"""What many finished comparisons say together: intervals and a fair selection, from the tables of `results`.

ZSL, ICL and FT are the states "zsl", "icl" and "ft". Settings of one task that are given together should differ in
their seeds only: each is a group of the bootstrap, over seeds and queries. Over several tasks everything is a mean over
these tasks, which are never resampled.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from explainer.data.files import published_directory
from explainer.errors import ExperimentError
from explainer.results import published
from explainer.results.table_intervals import by_group, holm_corrected
from explainer.theory import statistics
from explainer.theory.statistics import Interval


@dataclass(frozen=True)
class _Provenance:
    """Where published results come from, as pages say it, and the checkpoint that they are of; trainings have none."""

    text: str
    checkpoint: str = ""

    def __str__(self) -> str:
        """The kind of a badge and its details."""
        return f"Stored: {self.text}"


def provenance(*frames: pd.DataFrame) -> _Provenance:
    """Where published results come from: those of one experiment on checkpoints by settings, trainings by "runs".

    Raises ExperimentError where no published experiment has the settings.
    """
    settings = pd.concat(frames).drop_duplicates("setting")
    of_frames, directory = set(settings["setting"]), published_directory()
    for folder in sorted(directory.iterdir()):
        if "runs" in published.files(folder):
            tables = published.read(folder, "runs", "grids")
            runs = tables["runs"].to_pandas()
            runs = runs[runs["setting"].isin(of_frames)]
            if len(runs):
                break
    else:
        raise ExperimentError(f"no published table in {directory} has the given settings; publish them.")
    first, seeds = runs.iloc[0], sorted(set(settings["seed"]))
    grids = _grids_with(tables["grids"].to_pandas(), of_frames)
    computed = (
        f"torch {first['torch']}; {runs['cpu_seconds'].sum():.0f} CPU seconds; computed by "
        f"{published.command(folder.name)}, grid{'s' * (len(grids) > 1)} {', '.join(grids)} (see Reproduce)."
    )
    if "checkpoint" not in settings:
        listed = ", ".join(map(str, seeds))
        machine = f"{first['device']}, {first['threads']} thread"
        return _Provenance(f"{len(settings)} runs, seeds {listed}; {machine}, {computed}")
    checkpoint = settings["checkpoint"].iloc[0]
    formats = " and ".join(sorted(set(published.number_formats(runs).values())))
    return _Provenance(
        f"{len(settings)} settings, seeds {_range(seeds, ', ')}; {_range(settings['n_queries'])} queries each; "
        f"k = {_range(settings['k'])}; {checkpoint}, {formats}, {first['device']}, {computed}",
        checkpoint,
    )


def _grids_with(grids: pd.DataFrame, settings: set[str]) -> list[str]:
    """Few grids that have all of these settings: each the one with most that are left, and least else."""
    members, left, found = grids.groupby("grid", sort=False)["setting"].agg(set).to_dict(), set(settings), []
    while having := [grid for grid, its in members.items() if its & left]:
        found.append(max(having, key=lambda grid: (len(members[grid] & left), -len(members[grid]))))
        left -= members[found[-1]]
    return found


def _range(numbers: Iterable[int], joined: str = " or ") -> str:
    distinct = sorted(set(numbers))
    whole = len(distinct) > 2 and distinct == list(range(distinct[0], distinct[-1] + 1))
    return f"{distinct[0]} to {distinct[-1]}" if whole else joined.join(map(str, distinct))


def sizes(queries: pd.DataFrame) -> str:
    """Seeds times queries, and the tasks that have as many: `5 × 150 (sst2, mr), 5 × 56 (cb)`."""
    each = queries.groupby("task", sort=False)[["seed", "n_queries"]].agg({"seed": "nunique", "n_queries": "first"})
    tasks: dict[str, list[str]] = {}
    for task, seeds, n in each.itertuples():
        tasks.setdefault(f"{seeds} × {n}", []).append(task)
    return ", ".join(f"{size} ({', '.join(names)})" for size, names in tasks.items())


def as_sample(queries: pd.DataFrame, *columns: str) -> statistics.Sample:
    """Columns of the queries as a `statistics.Sample`: a group for each setting, a stratum for a task.

    Queries without a value are left out. Raises ExperimentError, with the note of the study, where a setting has none
    of a column, and as `published.require_only_seeds_differ`.
    """
    published.require_only_seeds_differ(queries)
    settings, places = queries.drop_duplicates("setting"), queries.groupby("setting").indices
    # Columns are read once: to take a part of a frame for each of hundreds of settings takes seconds.
    unknown = {name: queries[name].isna().to_numpy() for name in columns if name in queries}
    values = {name: queries[name].tolist() for name in (*unknown, "query_id")}
    groups, ids = [], []
    for _, first in settings.iterrows():
        rows = places[first["setting"]]
        for name in columns:
            without_order = name.startswith("example_") and first["k"] == 1  # NaN is the value of one demonstration
            if name not in unknown or (unknown[name][rows].all() and not without_order):
                raise ExperimentError(
                    f"{first['task']}, seed {first['seed']}, control {first['control']} has no {name!r}; see its note."
                )
        known = rows[~np.any([unknown[name][rows] for name in columns], axis=0)]
        known = known if len(known) else rows
        groups.append(tuple(np.array([values[name][row] for row in known]) for name in columns))
        ids.append(np.array([values["query_id"][row] for row in known]))
    return statistics.Sample(groups, ids, settings["task"].tolist(), settings["seed"].tolist())


_STATISTICS: Mapping[str, Callable[..., float]] = {
    "accuracy": np.mean,
    "calibrated_accuracy": statistics.calibrated_accuracy,
    "auc": statistics.macro_auc,
}


def prediction_interval(queries: pd.DataFrame, state: str, measure: str = "accuracy", **options) -> Interval:
    """A measure of the predictions in a state: accuracy, calibrated_accuracy or auc.

    Options as in `explainer.theory.statistics.bootstrap_interval`. Raises ExperimentError as `as_sample`.
    """
    columns = (f"{state}_correct",) if measure == "accuracy" else (f"{state}_log_probs", "label")
    found = as_sample(queries, *columns)
    interval = statistics.bootstrap_interval(found, _STATISTICS[measure], **options)
    return statistics.widen_degenerate(interval, found.n_queries) if measure == "accuracy" else interval


def similarity_interval(queries: pd.DataFrame, measure: str, **options) -> Interval:
    """A similarity, mean over layers, queries, seeds and tasks, with its interval over seeds and queries; or a share.

    Measures that are centred over queries keep their centre when queries are resampled. Raises ExperimentError as
    `as_sample`: a mean over tasks is of all of them.
    """
    found = as_sample(queries, measure)
    interval = statistics.bootstrap_interval(found, np.nanmean, **options)
    of_answers = all(values.dtype == bool for (values,) in found.groups)
    return statistics.widen_degenerate(interval, found.n_queries) if of_answers else interval


def similarities_by_task(queries: pd.DataFrame, measure: str, **options) -> dict[str, Interval]:
    """`similarity_interval` for each task that has the measure in all of its settings."""
    known = _tasks_with(measure, queries)
    known = known if len(known) else queries  # without any, `as_sample` says which setting lacks it
    return by_group(known, "task", lambda its: similarity_interval(its, measure, **options))


def _tasks_with(measure: str, queries: pd.DataFrame) -> pd.DataFrame:
    has = queries[measure].notna().groupby(queries["setting"]).transform("any")
    return queries[has.groupby(queries["task"]).transform("all")]


def estimates(values: Mapping) -> dict:
    """The estimates of intervals, in mappings of any depth."""
    return {name: each.estimate if hasattr(each, "estimate") else estimates(each) for name, each in values.items()}


def column_differences(
    queries: pd.DataFrame, a: str, b: str, statistic: Callable[..., float] = np.nanmean
) -> dict[str, Interval]:
    """A minus B of two columns, query by query, for each task that has both, p-values after Holm for their number."""

    def difference(its: pd.DataFrame) -> Interval:
        return statistics.paired_difference(as_sample(its, a), as_sample(its, b), statistic)

    return holm_corrected(by_group(_tasks_with(b, _tasks_with(a, queries)), "task", difference))


def selected_setting(settings: pd.DataFrame, split: str = "selection") -> pd.Series:
    """The setting of the split "report" with the seed and learning rate that are best on `split`.

    The seed by the accuracy of ICL, then the learning rate by that of FT with this seed; the smaller one of equals,
    and none that diverged. With `split="report"` it is the selection of Dai et al. (2023). The settings should differ
    in seed, learning rate and split only.
    """
    candidates = settings[(settings["split"] == split) & settings["ft_accuracy"].notna()].sort_values(["seed", "lr"])
    seed = candidates["seed"].iloc[candidates["icl_accuracy"].argmax()]
    of_seed = candidates[candidates["seed"] == seed]
    lr = of_seed.loc[of_seed["ft_accuracy"].idxmax(), "lr"]
    report = settings[(settings["split"] == "report") & (settings["seed"] == seed) & (settings["lr"] == lr)]
    return report.iloc[0]
