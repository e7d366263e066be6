"""Finished results as tables: a few Parquet files for an experiment, in place of a file for each setting.

Which tables there are, and how they are read: see `explainer.results.published`.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from filelock import FileLock

from explainer.data.files import disk_errors, home_expanded
from explainer.results import published
from explainer.results.published import PENDING, PUBLICATION
from explainer_lab.store import SETTING, Identity, Stored, require_origin

Frames = dict[str, pa.Table]
"""The tables of some settings, by name; the rows of a setting stand together, settings in the same order in each."""


def frames(results: Iterable[Stored]) -> Frames:
    """The tables of results, in their order."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for one in results:
        key = {"setting": one.identity.key}
        for name, columns in one.result.items():
            each = [columns] if name == "settings" else _rows(columns)
            setting = one.identity.parts[SETTING] if name == "settings" else {}
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
    if any(type(value) is float for value in values):
        values = [float(value) if type(value) is int else value for value in values]
    return pa.array(values)


def _ordered(table: pa.Table) -> pa.Table:
    """The key first, the other columns by name, in one piece: the same bytes for the same values."""
    return table.select(sorted(table.column_names, key=lambda name: (name != "setting", name))).combine_chunks()


def joined(parts: Sequence[Frames]) -> Frames:
    """The tables of all parts, one below the other."""
    names = dict.fromkeys(name for part in parts for name in part)
    below = {name: [part[name] for part in parts if name in part] for name in names}
    return {name: pa.concat_tables(tables, promote_options="permissive") for name, tables in below.items()}


def of_settings(tables: Frames, settings: Sequence[str]) -> Frames:
    """The rows of these settings, setting by setting in this order."""
    place = {setting: i for i, setting in enumerate(settings)}

    def rows_of(table: pa.Table) -> pa.Table:
        # pyarrow makes most of its functions when it is imported, where no type checker sees them.
        asked = pc.is_in(table["setting"], pa.array(list(place), pa.string()))  # pyright: ignore[reportAttributeAccessIssue]
        table = table.filter(asked)
        order = sorted(range(len(table)), key=[place[setting] for setting in table["setting"].to_pylist()].__getitem__)
        return table.take(pa.array(order, pa.int64()))

    return {name: rows_of(table) for name, table in tables.items()}


_NO_GRIDS: Mapping[str, Sequence[Mapping]] = MappingProxyType({})


class Published:
    """The tables in a directory, `<name>.parquet` each; nothing is read before it is asked for."""

    def __init__(self, directory: str | os.PathLike):
        """The directory need not exist."""
        self.directory = home_expanded(directory)

    def tables(self) -> Frames:
        """Those of results; ResultsError if there are none, or if a file is damaged or of another publication."""
        return {name: table for name, table in published.read(self.directory).items() if name != "grids"}

    def has(self, identity: Identity) -> bool:
        """Whether there is a result of this setting; ResultsError if it was made of something else than is asked."""
        runs = published.files(self.directory).get("runs")
        stored = _identities(self.directory, runs.stat().st_mtime_ns).get(identity.key) if runs else None
        if stored is not None:
            require_origin(f"{identity.slug} in {self.directory}", identity, json.loads(stored))
        return stored is not None

    def add(self, results: Sequence[Stored], grids: Mapping[str, Sequence[Mapping]] = _NO_GRIDS) -> None:
        """Fold results and grids into the tables, in place of older ones of the same settings and names.

        A grid is a list of its settings, each with its key `setting`. The same results give the same bytes, in whatever
        order and portions they come. All files are written before the first is replaced, and each says which
        publication it belongs to; killed at any step, the tables are those before or those after, and the next
        publication goes on. Raises ResultsError if they cannot be written.
        """
        new = frames({one.identity.key: one for one in results}.values())  # a setting may stand in several grids
        parts, named = [new], {}
        if "runs" in published.files(self.directory):
            tables = self.tables()
            replaced = set(new["runs"]["setting"].to_pylist()) if new else set()
            parts.insert(0, of_settings(tables, sorted(set(tables["runs"]["setting"].to_pylist()) - replaced)))
            named = self._grids()
        tables = joined(parts)
        order = sorted(zip(*(tables["runs"][name].to_pylist() for name in ("slug", "setting")), strict=True))
        tables = {
            name: _ordered(table) for name, table in of_settings(tables, [setting for _, setting in order]).items()
        }
        digest = hashlib.sha256(repr(order).encode() + repr(tables["runs"].to_pylist()).encode()).hexdigest()
        named = dict(sorted({**named, **grids}.items()))
        if named:
            tables["grids"] = _table([{"grid": name, **row} for name, rows in named.items() for row in rows])
        with disk_errors(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            self._put_in_place()
            with tempfile.TemporaryDirectory(dir=self.directory) as work:
                whole = Path(work, "whole")
                whole.mkdir()
                for name, table in tables.items():
                    _write(table, whole / f"{name}.parquet", digest)
                os.replace(whole, self.directory / PENDING)  # from here on these are the tables
            self._put_in_place()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Other processes that publish here wait, so that none replaces what another has just added."""
        with disk_errors(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.directory / ".lock")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def _put_in_place(self) -> None:
        pending = self.directory / PENDING
        if pending.is_dir():
            for path in sorted(pending.iterdir()):
                os.replace(path, self.directory / path.name)
            pending.rmdir()

    def _grids(self) -> dict[str, list[dict[str, Any]]]:
        named: dict[str, list[dict[str, Any]]] = {}
        if table := published.read(self.directory).get("grids"):
            for row in table.to_pylist():
                named.setdefault(row.pop("grid"), []).append(row)
        return named


@lru_cache(maxsize=16)
def _identities(directory: Path, _modified: int) -> dict[str, str]:
    runs = published.read(directory, "runs")["runs"]
    return dict(zip(runs["setting"].to_pylist(), runs["identity"].to_pylist(), strict=True))


def _write(table: pa.Table, path: Path, publication: str) -> None:
    # Without arrow's own schema, whose inner names depend on whether a table was read or made.
    how = {"compression": "zstd", "compression_level": 19, "store_schema": False}
    with pq.ParquetWriter(path, table.schema, **how) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({PUBLICATION: publication})
