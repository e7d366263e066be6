"""The published results as data frames, by the name of their grid: Parquet tables and a filter.

The folder of an experiment has one file for each of its tables: `settings` with a row for each setting, `runs` with
what determined its result and how long that took, `grids` with the settings of each grid in order, and further ones
(`queries`, `layers`). All have the column `setting`, the key of a setting.
"""

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from explainer.data.files import PUBLISHED, published_directory
from explainer.errors import ExperimentError, ResultsError

PUBLICATION = b"explainer.publication"
"""Key of the digest that the files of one publication have in common."""

PENDING = ".publication"
"""Folder beside the tables with those of the last publication that are not yet in their place: it was interrupted."""

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

GRIDS: Mapping[str, tuple[str, ...]] = {
    "shared_part": ("shared-part",),
    "rival": ("rival",),
    "new_rule": ("rule-contexts", "rule-contexts-category", "rule-strongest", "rule-strongest-category"),
    "agreement": ("agreement",),
    "causal_tests": ("causal-tests",),
    "comparison": ("classification", "agnews", "cb"),
}
"""The grids of the verdict and of the scorecard, by folder; those of the comparison have the paper's six tasks.

What a second GPT has of them ends in "-gemma".
"""


def command(folder: str) -> str:
    """What computes the tables of a folder."""
    return f"explainer-lab {folder.replace('_', '-')}"


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
    known: list[str] = []
    for place in sorted(published_directory().iterdir()):
        if "grids" in files(place):
            grids = read(place, "grids")["grids"].to_pandas()
            settings = grids[grids["grid"] == grid]
            if len(settings):
                break
            known += grids["grid"].unique().tolist()
    else:
        raise ExperimentError(f"there is no grid {grid!r}; known: {', '.join(known)}.")
    for column, value in where.items():
        settings = settings[settings[column] == value] if column in settings else settings[:0]
    if settings.empty:
        raise ExperimentError(f"no setting of the grid {grid!r} has {where}.")
    if table not in (known := sorted(files(place))):
        raise ExperimentError(f"there is no table {table!r} of {place.name}; it has {', '.join(known)}.")
    tables = read(place, "settings", table)
    if missing := set(settings["setting"]) - set(tables["settings"]["setting"].to_pylist()):
        raise ExperimentError(
            f"{len(missing)} of the {len(settings)} settings asked for are not published in {place}; compute them: "
            f"{command(place.name)} --grid {place / 'grids.toml'} --publish {place.parent}"
        )
    return _with_settings(settings.drop(columns="grid"), tables[table], own_first=table != "settings")


def _with_settings(settings: pd.DataFrame, table: pa.Table, *, own_first: bool) -> pd.DataFrame:
    """The rows of these settings, their columns first; `own_first` keeps the table's where both have one."""
    # pyarrow makes most of its functions when it is imported, where no type checker sees them.
    asked = pc.is_in(table["setting"], pa.array(settings["setting"]))  # pyright: ignore[reportAttributeAccessIssue]
    rows = table.filter(asked).to_pandas()
    twice = [name for name in rows if name in settings and name != "setting"]
    return (settings.drop(columns=twice) if own_first else settings).merge(
        rows if own_first else rows.drop(columns=twice), on="setting"
    )


def rows_of_experiment(folder: Path, table: str = "settings", grid: str | Sequence[str] | None = None) -> pd.DataFrame:
    """All published rows of the folder of an experiment, or of some of its grids, with the columns of the setting.

    Raises ResultsError if there are none; the message names the command that computes them.
    """
    if "runs" not in files(folder):
        raise ResultsError(
            f"there are no tables of results in {folder}; compute them, with your model, and publish them: "
            f"{command(folder.name)} --publish {folder.parent}"
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


def reported(
    directory: str | Path | None, folder: str, table: str = "settings", **values: Any
) -> dict[str, pd.DataFrame]:
    """By checkpoint, the rows of an experiment that are not of the split "selection" and have some values.

    Of all that a directory has in the folder of the experiment, or of the book's grids, `GRIDS`. None where the table
    is not published. Raises ExperimentError where settings of a checkpoint differ in number format.
    """
    place = Path(directory or PUBLISHED) / folder
    if table not in files(place):
        return {}
    of_book = [f"{grid}{model}" for grid in GRIDS[folder] for model in ("", "-gemma")]
    rows = rows_of_experiment(place, table, None if directory else of_book)
    rows = rows[rows["split"] != "selection"] if "split" in rows else rows
    for name, value in values.items():
        rows = rows[rows[name] == value]
    formats = rows["setting"].map(number_formats(read(place, "runs")["runs"].to_pandas()))
    for checkpoint, its in formats.groupby(rows["checkpoint"], sort=False):
        if its.nunique() > 1:
            raise ExperimentError(
                f"{place}: the settings of {checkpoint} are in {' and '.join(sorted(its.unique()))}; one format "
                "is averaged, so publish each in a directory of its own."
            )
    return {str(checkpoint): its for checkpoint, its in rows.groupby("checkpoint", sort=False)}


def files(directory: Path) -> dict[str, Path]:
    """The files of the tables in a folder, by name; of an interrupted publication those that are not in their place."""
    return {path.stem: path for place in (directory, directory / PENDING) for path in sorted(place.glob("*.parquet"))}


def read(directory: Path, *names: str) -> dict[str, pa.Table]:
    """The tables of a folder, `<name>.parquet` each, or those with these names; no other is opened.

    Raises ResultsError if there are none, or if a file is damaged or of another publication than the others.
    """
    found = {name: (path, path.stat().st_mtime_ns) for name, path in files(directory).items()}
    if "runs" not in found:
        raise ResultsError(f"there are no tables of results in {directory}; publish some, or fetch them.")
    try:
        if len({_publication(*file) for file in found.values()}) > 1:
            raise ResultsError(f"the tables in {directory} are of different publications; get them again.")
        return {name: _table(*found[name]) for name in names or sorted(found)}
    except pa.ArrowException as error:
        raise ResultsError(f"the tables in {directory} cannot be read ({error}); get them again.") from error


@lru_cache(maxsize=256)
def _publication(path: Path, _modified: int) -> bytes | None:
    return (pq.read_metadata(path).metadata or {}).get(PUBLICATION)


@lru_cache(maxsize=64)
def _table(path: Path, _modified: int) -> pa.Table:
    return pq.read_table(path)


# How long a setting takes on another checkpoint.

WEIGHTS_OF_BOOK, LAYERS_OF_BOOK = 134_515_008, 30
"""Of the starter checkpoint, which need not be here."""

_CALLS = 0.1
"""Share of the book's time that its layers take however narrow they are: measured 0.04 to 0.3."""

LEAST = 3.0
"""Seconds of a setting of the smallest model: measured 2 to 5 for a hundred thousand weights."""


def seconds_on(model: Any, of_book: float) -> float:
    """Those of the book's checkpoint, scaled by the number of weights, or of layers where weights are few."""
    weights = sum(p.numel() for p in model.parameters()) / WEIGHTS_OF_BOOK
    ratio = max(weights, _CALLS * model.config.num_hidden_layers / LAYERS_OF_BOOK)
    return max(of_book * ratio, LEAST)  # NaN comes first: what the book has not measured stays unknown


def in_words(seconds: float) -> str:
    """Minutes or hours in words; an unknown time where it is NaN."""
    if math.isnan(seconds):
        return "an unknown time"
    if seconds < 60:
        return "less than a minute"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
