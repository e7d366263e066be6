"""The published results as data frames, by the name of their grid."""

from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from explainer.errors import StudyError
from explainer.experiments.agreement import Agreement
from explainer.experiments.causal import CausalTests
from explainer.experiments.language_models import LanguageModels
from explainer.experiments.minimal_pairs import MinimalPairs
from explainer.experiments.positive_pipeline import PositivePipeline
from explainer.experiments.recall_runs import RecallRuns
from explainer.experiments.regression_runs import RegressionRuns
from explainer.experiments.reversal import Reversal
from explainer.experiments.shared_part import SharedPart
from explainer.experiments.study import Study
from explainer.lab.experiment import Experiment
from explainer.lab.store import published_directory
from explainer.lab.tables import Frames, Published, of_cells

EXPERIMENTS = (
    Study, Agreement, SharedPart, MinimalPairs, CausalTests, PositivePipeline,
    LanguageModels, RegressionRuns, RecallRuns, Reversal,
)  # fmt: skip
"""Those of the book; their published tables are in folders of their names, beside the grids that describe them."""

TEN_TASKS: Mapping[str, tuple[str, ...]] = {
    "none": ("classification", "agnews", "cb", "pairs"),
    "untrained": ("classification", "agnews", "cb", "pairs-controls"),
}
"""Grids with the comparison on the paper's six tasks and on word pairs, and those with the untrained model instead."""


def results(grid: str, table: str = "cells", **where: Any) -> pd.DataFrame:
    """The published rows of a grid whose settings have the given values, in the order of the grid.

    `results("pairs")` has a row for each cell, `results("pairs", "queries", task="capitals")` one for each query of the
    cells of one task; both have the columns of the setting. Which tables and columns there are is said in the README
    beside the tables. Raises StudyError for an unknown grid or table, for values that no setting of the grid has and
    for a setting that is not published, and ResultsError for a damaged file.
    """
    experiment, settings = _grid(grid)
    chosen = [one for one in settings if all(getattr(one, name, None) == value for name, value in where.items())]
    if not chosen:
        raise StudyError(f"no setting of the grid {grid!r} has {where}.")
    tables = rows(experiment, chosen)
    if table not in tables:
        raise StudyError(f"there is no table {table!r} of {experiment.name}; it has {', '.join(tables)}.")
    return frame(experiment, tables, table)


def ten_tasks(table: str = "cells", control: str = "none") -> pd.DataFrame:
    """The rows of the comparison of all ten tasks, or of the untrained model, whose word pairs have fewer seeds."""
    return pd.concat([results(grid, table, control=control) for grid in TEN_TASKS[control]])


def frame(experiment: Experiment, tables: Frames, table: str = "cells") -> pd.DataFrame:
    """One of the tables as a data frame, with the columns of the setting first, but for those that it has itself."""
    names = ["cell", *(f.name for f in fields(experiment.setting))]
    cells = tables["cells"].to_pandas()
    if table == "cells":
        return cells[[*names, *(name for name in cells if name not in names)]]
    own = tables[table].to_pandas()  # `runs` says in `device` what the device of the setting was
    return cells[["cell", *(name for name in names if name not in own)]].merge(own, on="cell")


def rows(experiment: Experiment, settings: list) -> Frames:
    """The published tables of these settings."""
    published = Published(published_directory() / experiment.name)
    keys = [experiment.key(one) for one in settings]
    if missing := [key.slug for key in keys if not published.has(key)]:
        file = published.directory / "grids.toml"
        command = f"{experiment.command} --grid {file} --publish {published.directory}"
        raise StudyError(f"{missing[0]} is not published in {published.directory}; compute it: {command}")
    return of_cells(published.tables(), [key.cell for key in keys])


def grids(experiment: type[Experiment] = Study) -> dict[str, list]:
    """The grids of an experiment of the book and their settings."""
    path = published_directory() / experiment.name / "grids.toml"
    return dict(_read_grids(experiment, path, path.stat().st_mtime_ns)) if path.is_file() else {}


@lru_cache(maxsize=8)
def _read_grids(experiment: type[Experiment], path: Path, _modified: int) -> dict[str, list]:
    return experiment.read_grids(path)


def _grid(name: str) -> tuple[Experiment, list]:
    known = {experiment: grids(experiment) for experiment in EXPERIMENTS}
    for experiment, its in known.items():
        if name in its:
            return experiment(), its[name]
    raise StudyError(f"there is no grid {name!r}; known: {', '.join(each for its in known.values() for each in its)}.")
