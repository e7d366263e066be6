"""The published results as data frames, by the name of their grid: Parquet tables and a filter.

The folder of an experiment has one file for each of its tables: `settings` with a row for each setting, `runs` with
what determined its result and how long that took, `grids` with the settings of each grid in order, and further ones
(`queries`, `layers`). All have the column `setting`, the key of a setting.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from explainer.data.files import published_directory
from explainer.errors import ExperimentError, ResultsError

PUBLICATION = b"explainer.publication"
"""Key of the digest that the files of one publication have in common."""

PENDING = ".publication"
"""Folder beside the tables with those of the last publication that are not yet in their place: it was interrupted."""

COMMANDS: Mapping[str, str] = {
    "comparison": "explainer-lab comparison",
    "agreement": "explainer-lab agreement",
    "blocking": "explainer-lab blocking",
    "causal_tests": "explainer-lab causal-tests",
    "language_models": "explainer-lab language-models",
    "minimal_pairs": "explainer-lab minimal-pairs",
    "new_rule": "explainer-lab new-rule",
    "trained_control": "explainer-lab trained-control",
    "recall": "explainer-lab recall",
    "regression": "explainer-lab regression",
    "reversal": "explainer-lab reversal",
    "rival": "explainer-lab rival",
    "shared_part": "explainer-lab shared-part",
}
"""What computes the tables, by the name of their folder."""

_SETTING = (
    "checkpoint", "k", "lr", "n_queries", "control", "position", "split",
    "epochs", "loss", "tasks", "n_selection", "rate", "training", "batch",
)  # fmt: skip
"""What the settings of one task must have in common to be draws of one thing."""

TEN_TASKS: Mapping[str, tuple[str, ...]] = {
    "none": ("classification", "agnews", "cb", "word-pairs"),
    "untrained": ("classification", "agnews", "cb", "word-pairs-controls"),
}
"""Grids with the comparison on the paper's six tasks and on word pairs, and those with the untrained model instead."""


def results(grid: str | Sequence[str], table: str = "settings", **where: Any) -> pd.DataFrame:
    """The published rows of a grid whose settings have the given values, in the order of the grid.

    `results("word-pairs")` has a row for each setting, and `results("word-pairs", "queries", task="capitals")` one
    for each query of the settings of one task; the README beside the tables says which there are. Several grids stand
    one below the other, each setting once. Raises ExperimentError for an unknown grid or table, for values that no
    setting of the grid has and for a setting that is not published, ResultsError for a damaged file.
    """
    if not isinstance(grid, str):
        rows = pd.concat([results(one, table, **where).assign(grid=one) for one in grid], ignore_index=True)
        first = rows.groupby("setting")["grid"].transform("first")
        return rows[rows["grid"] == first].drop(columns="grid").reset_index(drop=True)
    name, settings = settings_of(grid)
    for column, value in where.items():
        settings = settings[settings[column] == value] if column in settings else settings[:0]
    if settings.empty:
        raise ExperimentError(f"no setting of the grid {grid!r} has {where}.")
    place = published_directory() / name
    if table not in (known := sorted(files(place))):
        raise ExperimentError(f"there is no table {table!r} of {name}; it has {', '.join(known)}.")
    tables = read(place, "settings", table)
    if missing := set(settings["setting"]) - set(tables["settings"]["setting"].to_pylist()):
        raise ExperimentError(
            f"{len(missing)} of the {len(settings)} settings asked for are not published in {place}; compute them: "
            f"{COMMANDS[name]} --grid {place / 'grids.toml'} --publish {place.parent}"
        )
    return _with_settings(settings.drop(columns="grid"), tables[table], own_first=table != "settings")


def settings_of(grid: str) -> tuple[str, pd.DataFrame]:
    """The folder that has a grid, and its settings, published or not; ExperimentError if none has it."""
    known = []
    for folder in _folders("grids"):
        grids = read(folder, "grids")["grids"].to_pandas()
        known += grids["grid"].unique().tolist()
        if grid in known:
            return folder.name, grids[grids["grid"] == grid]
    raise ExperimentError(f"there is no grid {grid!r}; known: {', '.join(known)}.")


def _with_settings(settings: pd.DataFrame, table: pa.Table, *, own_first: bool) -> pd.DataFrame:
    """The rows of these settings, their columns first; `own_first` keeps the table's where both have one."""
    # pyarrow makes most of its functions when it is imported, where no type checker sees them.
    asked = pc.is_in(table["setting"], pa.array(settings["setting"]))  # pyright: ignore[reportAttributeAccessIssue]
    rows = table.filter(asked).to_pandas()
    twice = [name for name in rows if name in settings and name != "setting"]
    return (settings.drop(columns=twice) if own_first else settings).merge(
        rows if own_first else rows.drop(columns=twice), on="setting"
    )


Grids = str | Sequence[str] | None
"""The names of one or more grids; None for all that is published."""


def rows_of_experiment(folder: Path, table: str = "settings", grid: Grids = None) -> pd.DataFrame:
    """All published rows of the folder of an experiment, or of some of its grids, with the columns of the setting.

    Raises ResultsError if there are none; the message names the command that computes them.
    """
    if "runs" not in files(folder):
        raise ResultsError(
            f"there are no tables of results in {folder}; compute them, with your model, and publish them: "
            f"{COMMANDS[folder.name]} --publish {folder.parent}"
        )
    settings = read(folder, "settings")["settings"].to_pandas()
    if grid is not None:
        grids = read(folder, "grids")["grids"].to_pandas()
        names = [grid] if isinstance(grid, str) else grid
        settings = settings[settings["setting"].isin(grids.loc[grids["grid"].isin(names), "setting"])]
    return settings if table == "settings" else _with_settings(settings, read(folder, table)[table], own_first=True)


def number_formats(runs: pd.DataFrame) -> dict[str, str]:
    """The number format by setting; an identity may leave out float32."""
    identities = map(json.loads, runs["identity"])
    return {setting: its.get("dtype", "float32") for setting, its in zip(runs["setting"], identities, strict=True)}


def require_only_seeds_differ(rows: pd.DataFrame) -> None:
    """ExperimentError where settings of one task, draws of one thing for an interval, differ in more than the seed."""
    settings = rows.drop_duplicates("setting")
    by = next(name for name in ("task", "cue", "tasks") if name in settings)
    for task, of_task in settings.groupby(by, sort=False):
        for name in _SETTING:
            if name in of_task and len(values := of_task[name].unique()) > 1:
                listed = ", ".join(map(str, values))
                raise ExperimentError(f"settings of {task} differ in {name}: {listed}; only seeds may differ.")
        if (twice := of_task["seed"][of_task["seed"].duplicated()]).size:
            raise ExperimentError(f"seed {twice.iloc[0]} of {task} is there twice; each setting should be given once.")


def reported(folder: Path, table: str = "settings", grid: Grids = None, **values: Any) -> dict[str, pd.DataFrame]:
    """By checkpoint, the rows of an experiment's folder that are not of the split "selection" and have some values.

    None where nothing is published. Raises ExperimentError where settings of a checkpoint differ in number format.
    """
    if not folder.is_dir():
        return {}
    rows = rows_of_experiment(folder, table, grid)
    rows = rows[rows["split"] != "selection"] if "split" in rows else rows
    for name, value in values.items():
        rows = rows[rows[name] == value]
    formats = rows["setting"].map(number_formats(read(folder, "runs")["runs"].to_pandas()))
    for checkpoint, its in formats.groupby(rows["checkpoint"], sort=False):
        if its.nunique() > 1:
            raise ExperimentError(
                f"{folder}: the settings of {checkpoint} are in {' and '.join(sorted(its.unique()))}; one format "
                "is averaged, so publish each in a directory of its own."
            )
    return {str(checkpoint): its for checkpoint, its in rows.groupby("checkpoint", sort=False)}


def _folders(table: str) -> list[Path]:
    return [folder for folder in sorted(published_directory().iterdir()) if table in files(folder)]


def files(directory: Path) -> dict[str, Path]:
    """The files of the tables in a folder, by name; of an interrupted publication those that are not in their place."""
    return {path.stem: path for place in (directory, directory / PENDING) for path in sorted(place.glob("*.parquet"))}


def read(directory: Path, *names: str) -> dict[str, pa.Table]:
    """The tables of a folder, `<name>.parquet` each, or those with these names; no other is opened.

    Raises ResultsError if there are none, or if a file is damaged or of another publication than the others.
    """
    found = files(directory)
    if "runs" not in found:
        raise ResultsError(f"there are no tables of results in {directory}; publish some, or fetch them.")
    try:
        if len({_publication(path, path.stat().st_mtime_ns) for path in found.values()}) > 1:
            raise ResultsError(f"the tables in {directory} are of different publications; get them again.")
        return {name: _table(found[name], found[name].stat().st_mtime_ns) for name in names or sorted(found)}
    except FileNotFoundError:  # another process has just put it in its place
        return read(directory, *names)


@lru_cache(maxsize=256)
def _publication(path: Path, _modified: int) -> bytes | None:
    with _damage(path):
        return (pq.read_metadata(path).metadata or {}).get(PUBLICATION)


@lru_cache(maxsize=64)
def _table(path: Path, _modified: int) -> pa.Table:
    with _damage(path):
        return pq.read_table(path)


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (PermissionError, FileNotFoundError):
        raise  # it is not damaged
    except (OSError, pa.ArrowException) as error:
        raise ResultsError(f"{path} cannot be read ({error}); get it again, or publish the results again.") from error
