"""The scoreboard: what `explainer verdict` says of a model, as one small file that anyone can add to a folder.

An entry holds the digest of the model's weights, what was asked of it in which protocol, the rows of the verdict with
their intervals, versions, and a digest of all this. `SCHEMA` says which keys and types it has.
"""

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from explainer.data.files import PUBLISHED, json_digest, rounded
from explainer.errors import ResultsError
from explainer.results import published, verdict
from explainer.results.verdict import FOLDERS, TEN_FOLDERS, Row
from explainer.theory.statistics import Interval

ENTRIES = PUBLISHED / "scoreboard"
"""A file for each model."""

SCHEMA = PUBLISHED / "scoreboard.schema.json"
"""JSON Schema of an entry."""

VERSIONS = ("explainer", "numpy", "python", "torch", "transformers")
_INTERVALS = ("floor", "measured", "ceiling", "share")


def entry(directory: str | Path | None = None, checkpoint: str | None = None) -> dict[str, Any]:
    """The entry of a checkpoint, from the tables of a directory, or of the book; its intervals are (low, value, high).

    Raises ResultsError where no row of it is published, where several have rows and none is named, and where its tables
    are of different weights; ExperimentError as `verdict.five_rows`.
    """
    five = verdict.five_rows(directory)
    published_at = Path(directory or PUBLISHED)
    ten = verdict.ten_rows(directory) if (published_at / "agreement").is_dir() else {}
    known = {name if directory else name.removesuffix(verdict.BOOK.format("")): name for name in [*five, *ten]}
    checkpoint = checkpoint or (next(iter(known)) if len(known) == 1 else "")
    if checkpoint not in known:
        its = ", ".join(known) or "none; `explainer verdict` says what to run"
        raise ResultsError(f"name the model of the entry by --model: {published_at} has rows of {its}.")
    rows = five.get(known[checkpoint], {}) | ten.get(known[checkpoint], {})
    folders = {TEN_FOLDERS.get(name) or FOLDERS[name] for name in rows}
    runs = {folder: published.reported(directory, folder, "runs")[checkpoint] for folder in sorted(folders)}
    identities = [json.loads(one) for its in runs.values() for one in its["identity"]]
    if len(digests := {one["weights"] for one in identities}) != 1:
        raise ResultsError(f"{published_at}: the tables of {checkpoint} are of {len(digests)} models of this name.")
    content = {
        "model": {
            "name": checkpoint,
            "sha256": digests.pop(),
            "dtype": sorted({one.get("dtype", "float32") for one in identities}),
        },
        "experiments": {folder: _asked(its) for folder, its in runs.items()},
        "rows": {name: _numbers(row) for name, row in rows.items()},
        "versions": {name: sorted({one for its in runs.values() for one in its[name]}) for name in VERSIONS},
    }
    return content | {"sha256": json_digest(content)}


def _asked(runs: pd.DataFrame) -> dict[str, Any]:
    """Tasks, or cues, and the values of what else the settings of one experiment have, with its protocols."""
    names = runs["cue"] if "cue" in runs else runs["tasks"] if "tasks" in runs else runs["task"]
    return {
        "protocol": sorted({json.loads(one)["protocol"] for one in runs["identity"]}),
        "tasks": sorted({task for its in names for task in its.split("/")}),
    } | {name: sorted(set(runs[name].tolist())) for name in ("k", "n_queries", "lr", "epochs") if name in runs}


def _numbers(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: [its.low, its.estimate, its.high] if math.isfinite(its.estimate) else None
        for name, its in zip(_INTERVALS, (row.floor, row.measured, row.ceiling, row.share), strict=True)
    }
    return rounded(found | {"draws": row.draws, "sentence": row.sentence})


def read(path: Path) -> dict[str, Any]:
    """An entry; raises ResultsError for one that was changed after it was written, or with an interval out of order."""
    try:
        content = json.loads(path.read_text("utf-8"))
        stated = content.pop("sha256")
        intervals = [(name, row[of]) for name, row in content["rows"].items() for of in _INTERVALS if row[of]]
        wrong = [name for name, (low, value, high) in intervals if not _in_order(low, value, high)]
    except (OSError, ValueError, LookupError, AttributeError, TypeError) as error:
        raise ResultsError(f"{path} is no entry ({error}); write it with `explainer verdict --entry`.") from error
    if json_digest(content) != stated:
        raise ResultsError(f"{path} was changed after it was written; write it again with `explainer verdict --entry`.")
    if wrong:
        raise ResultsError(f"{path}: the ends of an interval of {wrong[0]!r} are out of order.")
    return content


def _in_order(*numbers: float | None) -> bool:
    known = [number for number in numbers if number is not None]
    return known == sorted(known)


def entries(folder: Path = ENTRIES) -> dict[str, dict[str, Any]]:
    """The entries of a folder by the name of their file, in this order; raises ResultsError as `read`."""
    return {path.stem: read(path) for path in sorted(folder.glob("*.json"))}


def models(found: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """A row for each entry: whose it is, and what was asked of it."""
    rows = {}
    for name, one in found.items():
        asked = one["experiments"].values()
        rows[name] = {
            "model": one["model"]["name"],
            "SHA-256": one["model"]["sha256"][:12],
            "tasks and cues": _listed(task for its in asked for task in its["tasks"]),
            "k": _listed(sorted({k for its in asked for k in its["k"]})),
            "torch": _listed(one["versions"]["torch"]),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("entry")


def shares(found: Mapping[str, Mapping[str, Any]], names: Iterable[str] = FOLDERS) -> pd.DataFrame:
    """A row for each row of the verdict and entry that has it: the share of the way, floor, value, ceiling, draws."""
    rows = {(name, of): _cells(one["rows"][name]) for name in names for of, one in found.items() if name in one["rows"]}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["row", "entry"])


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    share = f"{_interval(row['share']):.2f}" if row["share"] else "none"
    ends = {of: f"{round(row[of][1], 2) + 0:.2f}".replace("-", "\N{MINUS SIGN}") for of in _INTERVALS[:-1]}
    return {"share of the way": share, **ends, "draws": row["draws"]}


def _interval(stored: Iterable[float | None]) -> Interval:
    low, value, high = (math.nan if number is None else number for number in stored)
    return Interval(value, low, high)


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(dict.fromkeys(map(str, values)))
