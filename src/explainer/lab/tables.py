"""Finished results as tables: a few Parquet files for an experiment, in place of a file for each setting.

`cells` has a row for each setting, `runs` what determined its result, on what it was computed and how long it took, and
an experiment may have further tables (`queries`, `layers`). All have the column `cell`, the key of a setting.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from explainer.errors import ResultsError
from explainer.lab.store import Identity, Stored, disk_errors, require_origin

Frames = dict[str, pa.Table]
"""The tables of some settings, by name; the rows of a setting stand together, settings in the same order in each."""

_PUBLICATION = b"explainer.publication"
"""Key of the digest that the files of one publication have in common."""


def frames(results: Iterable[Stored]) -> Frames:
    """The tables of results, in their order."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for one in results:
        key = {"cell": one.identity.cell}
        for name, columns in one.result.items():
            each = [columns] if name == "cells" else _rows(columns)
            setting = one.identity.parts["cell"] if name == "cells" else {}
            rows.setdefault(name, []).extend({**key, **setting, **row} for row in each)
        identity = {"slug": one.identity.slug, "identity": json.dumps(one.identity.parts, sort_keys=True)}
        rows.setdefault("runs", []).append({**key, **identity, **one.provenance, **one.run})
    return {name: _table(each) for name, each in rows.items()}


def _rows(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Columns in the order in which rows first have them; null where a row has none."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: _array([row.get(name) for row in rows]) for name in names})


def _array(values: Sequence[Any]) -> pa.Array:
    numbers = [value for value in values if type(value) in (int, float)]
    if any(type(value) is float for value in numbers):
        values = [float(value) if type(value) is int else value for value in values]
    return pa.array(values)


def _ordered(table: pa.Table) -> pa.Table:
    """The key first, the other columns by name, in one piece: the same bytes for the same values."""
    return table.select(sorted(table.column_names, key=lambda name: (name != "cell", name))).combine_chunks()


def joined(parts: Sequence[Frames]) -> Frames:
    """The tables of all parts, one below the other."""
    names = dict.fromkeys(name for part in parts for name in part)
    below = {name: [part[name] for part in parts if name in part] for name in names}
    return {name: pa.concat_tables(tables, promote_options="permissive") for name, tables in below.items()}


def of_cells(tables: Frames, cells: Sequence[str]) -> Frames:
    """The rows of these cells, cell by cell in this order."""
    place = {cell: i for i, cell in enumerate(cells)}

    def rows_of(table: pa.Table) -> pa.Table:
        table = table.filter(pc.is_in(table["cell"], pa.array(list(place), pa.string())))
        order = sorted(range(len(table)), key=[place[cell] for cell in table["cell"].to_pylist()].__getitem__)
        return table.take(pa.array(order, pa.int64()))

    return {name: rows_of(table) for name, table in tables.items()}


class Published:
    """The tables in a directory, `<name>.parquet` each; nothing is read before it is asked for."""

    def __init__(self, directory: str | os.PathLike):
        """The directory need not exist."""
        self.directory = Path(directory).expanduser()

    def tables(self) -> Frames:
        """All tables; ResultsError if there are none, or if a file is damaged or of another publication."""
        runs = self.directory / "runs.parquet"
        if not runs.is_file():
            raise ResultsError(f"there are no tables of results in {self.directory}; publish some, or fetch them.")
        return _read(self.directory, runs.stat().st_mtime_ns)

    def has(self, identity: Identity) -> bool:
        """Whether there is a result of this setting; ResultsError if it was made of something else than is asked."""
        runs = self.directory / "runs.parquet"
        stored = _identities(self.directory, runs.stat().st_mtime_ns).get(identity.cell) if runs.is_file() else None
        if stored is not None:
            require_origin(f"{identity.slug} in {self.directory}", identity, json.loads(stored))
        return stored is not None

    def add(self, results: Sequence[Stored]) -> None:
        """Fold results into the tables, in place of older ones of the same settings; ResultsError if it cannot be.

        The same results give the same bytes, in whatever order and portions they come. All files are written before
        the first is replaced, and each says which publication it belongs to.
        """
        new = frames({one.identity.cell: one for one in results}.values())  # a cell may stand in several grids
        tables = new
        if (self.directory / "runs.parquet").is_file():
            known = set(self.tables()["runs"]["cell"].to_pylist()) - set(new["runs"]["cell"].to_pylist())
            tables = joined([of_cells(self.tables(), sorted(known)), new])
        order = sorted(zip(*(tables["runs"][name].to_pylist() for name in ("slug", "cell")), strict=True))
        tables = {name: _ordered(table) for name, table in of_cells(tables, [cell for _, cell in order]).items()}
        digest = hashlib.sha256(repr(order).encode() + repr(tables["runs"].to_pylist()).encode()).hexdigest()
        with disk_errors(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.directory) as work:
                for name, table in tables.items():
                    _write(table, Path(work, f"{name}.parquet"), digest)
                for name in tables:
                    os.replace(Path(work, f"{name}.parquet"), self.directory / f"{name}.parquet")


def _write(table: pa.Table, path: Path, publication: str) -> None:
    # Without arrow's own schema, whose inner names depend on whether a table was read or made.
    how = {"compression": "zstd", "compression_level": 19, "store_schema": False}
    with pq.ParquetWriter(path, table.schema, **how) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({_PUBLICATION: publication})


@lru_cache(maxsize=8)
def _read(directory: Path, _modified: int) -> Frames:
    tables, publications = {}, set()
    for path in sorted(directory.glob("*.parquet")):
        try:
            tables[path.stem] = pq.read_table(path)
            publications.add((pq.read_metadata(path).metadata or {}).get(_PUBLICATION))
        except (OSError, pa.ArrowException) as error:
            raise ResultsError(
                f"{path} cannot be read ({error}); get it again, or publish the results again."
            ) from error
    if len(publications) > 1:
        raise ResultsError(f"the tables in {directory} are of different publications; publish the results again.")
    return tables


@lru_cache(maxsize=8)
def _identities(directory: Path, modified: int) -> dict[str, str]:
    runs = _read(directory, modified)["runs"]
    return dict(zip(runs["cell"].to_pylist(), runs["identity"].to_pylist(), strict=True))
