"""Results on disk: a file for each finished setting, and the tables into which finished settings are folded.

The `Identity` of a result says what determines its numbers: weights, data, and the protocol. A result that was made of
something else than what is asked for is refused with the reason, never used and never overwritten. What differs between
two runs of a setting stands in a second file, `<setting>.run`, so that an interrupted and resumed study gives the same
bytes. What was measured in between, as attention outputs, is kept beside both as `<setting>.safetensors`.
"""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import safetensors.numpy

from explainer.data.files import Tables, json_digest, replace_file, rounded, to_json
from explainer.errors import ResultsError
from explainer.results import published
from explainer.results.published import PENDING, PUBLICATION

SETTING = "cell"
"""The part of an identity that holds the setting. Its digest names every result, so that it keeps its first name."""

KEPT_MB = 40
"""The most that is kept of the arrays of a setting, in megabytes of float16: more are left out."""


@dataclass(frozen=True)
class Identity:
    """Everything that determines a result, as plain JSON values, with a readable `slug` for the file's name.

    Of the parts, `SETTING` and "dtype" are what was asked for. The others are what it was made of: weights, data, and
    `protocol`, the number of the experiment's arithmetic. A part that cannot be known here is None, and not compared.
    """

    slug: str
    parts: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The first 16 digits of the setting's digest: the key of its rows in the tables."""
        return json_digest({name: self.parts[name] for name in (SETTING, "dtype") if name in self.parts})[:16]

    @property
    def filename(self) -> str:
        """`<slug>-<setting>.json`."""
        return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', self.slug)[:120]}-{self.key}.json"

    def require_same(self, stored: Mapping[str, Any], where: object) -> None:
        """Raise ResultsError if the known parts are not those of a stored identity."""
        differing = [name for name, part in self.parts.items() if part is not None and stored.get(name) != part]
        if differing:
            raise ResultsError(
                f"{where} was computed from other {' and '.join(differing)} than are here: use another directory, or "
                "get what it was computed from."
            )


@dataclass(frozen=True)
class Computed:
    """What a setting gives: its tables, where they come from, what may differ between two runs, and tensors to keep."""

    tables: Tables
    provenance: Mapping[str, Any]
    run: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stored:
    """A result that was read back: what determines it, where it comes from, the numbers, and how long they took."""

    identity: Identity
    provenance: Mapping[str, Any]
    result: Tables
    run: Mapping[str, Any]


class Store:
    """A directory of results."""

    def __init__(self, directory: str | os.PathLike):
        """Nothing is read or written before it is asked for."""
        self.directory = Path(directory).expanduser()

    def path(self, identity: Identity) -> Path:
        """Where the result with this identity is, or would be."""
        return self.directory / identity.filename

    def load(self, identity: Identity) -> Stored | None:
        """The stored result, or None if there is none.

        Raises ResultsError if its file is damaged or was edited, or if it was made of something else than is asked for.
        """
        path = self.path(identity)
        if not path.exists():
            return None
        try:
            content = json.loads(path.read_text("utf-8"))
            run = json.loads(path.with_suffix(".run").read_text("utf-8"))
            digest = content.pop("sha256")
            found = Identity(content["slug"], content["identity"])
            result = Stored(found, content["provenance"], content["result"], run)
        except (OSError, ValueError, LookupError, AttributeError, TypeError) as error:
            raise ResultsError(f"{path} cannot be read ({error}); delete it and run the experiment again.") from error
        if digest != json_digest(content) or result.identity.key != identity.key:
            raise ResultsError(f"{path} is damaged or was edited; delete it and run the experiment again.")
        identity.require_same(result.identity.parts, path)
        return result

    def save(self, identity: Identity, computed: Computed) -> Path:
        """Write a result, its arrays, and its `run`, which holds what may differ between two runs."""
        content = {"slug": identity.slug, "identity": identity.parts}
        content |= {"provenance": computed.provenance, "result": rounded(computed.tables)}
        path = self.path(identity)
        self.directory.mkdir(parents=True, exist_ok=True)
        halved = {name: np.asarray(array, np.float16) for name, array in computed.arrays.items()}
        if halved and sum(array.nbytes for array in halved.values()) <= KEPT_MB * 10**6:
            replace_file(path.with_suffix(".safetensors"), safetensors.numpy.save(halved))
        replace_file(path.with_suffix(".run"), to_json(rounded(computed.run)))
        replace_file(path, to_json(content | {"sha256": json_digest(content)}))  # last: its presence means finished
        return path

    def arrays(self, identity: Identity) -> dict[str, np.ndarray]:
        """What was kept of a finished setting, float16 by name; empty where it was more than KEPT_MB."""
        path = self.path(identity).with_suffix(".safetensors")
        return safetensors.numpy.load_file(path) if self.load(identity) and path.exists() else {}


# Tables. Which there are, and how they are read: see `explainer.results.published`.

Frames = dict[str, pa.Table]
"""The tables of some settings, by name; the rows of a setting stand together, settings in the same order in each."""


def frames(results: Iterable[Stored]) -> Frames:
    """The tables of results, in their order."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for one in results:
        key = {"setting": one.identity.key}
        for name, columns in one.result.items():
            if name == "settings":
                rows.setdefault(name, []).append(key | one.identity.parts[SETTING] | columns)
            else:
                each = zip(*columns.values(), strict=True)
                rows.setdefault(name, []).extend(key | dict(zip(columns, values, strict=True)) for values in each)
        identity = {"slug": one.identity.slug, "identity": json.dumps(one.identity.parts, sort_keys=True)}
        rows.setdefault("runs", []).append({**key, **identity, **one.provenance, **one.run})
    return {name: _table(each) for name, each in rows.items()}


def _table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Columns in the order in which rows first have them; null where a row has none; floats where one is a float."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    for name, values in columns.items():
        if any(type(value) is float for value in values):
            columns[name] = [float(value) if type(value) is int else value for value in values]
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def joined(parts: Sequence[Frames]) -> Frames:
    """The tables of all parts, one below the other."""
    names = dict.fromkeys(name for part in parts for name in part)
    below = {name: [part[name] for part in parts if name in part] for name in names}
    return {name: pa.concat_tables(tables, promote_options="permissive") for name, tables in below.items()}


def of_settings(tables: Frames, settings: Sequence[str]) -> Frames:
    """The rows of these settings, setting by setting in this order."""
    place = {setting: i for i, setting in enumerate(settings)}

    def rows_of(table: pa.Table) -> pa.Table:
        keys = table["setting"].to_pylist()
        asked = [i for i, key in enumerate(keys) if key in place]
        return table.take(pa.array(sorted(asked, key=lambda i: place[keys[i]]), pa.int64()))

    return {name: rows_of(table) for name, table in tables.items()}


class Published:
    """The tables in a directory, `<name>.parquet` each; nothing is read before it is asked for."""

    def __init__(self, directory: str | os.PathLike):
        """The directory need not exist."""
        self.directory = Path(directory).expanduser()

    def tables(self) -> Frames:
        """Those of results, none before the first publication; ResultsError if they are damaged."""
        if "runs" not in published.files(self.directory):
            return {}
        return {name: table for name, table in published.read(self.directory).items() if name != "grids"}

    def identities(self) -> dict[str, Mapping[str, Any]]:
        """The parts of the identity of every published result, by its key."""
        tables = self.tables()
        runs = tables["runs"].select(["setting", "identity"]).to_pylist() if tables else []
        return {row["setting"]: json.loads(row["identity"]) for row in runs}

    def add(self, results: Sequence[Stored], grids: Mapping[str, Sequence[Mapping]]) -> None:
        """Fold results and grids into the tables, in place of older ones of the same settings and names.

        A grid is a list of its settings, each with its key `setting`. The same results give the same bytes, in whatever
        order and portions they come. All files are written before the first is replaced; killed at any step, the next
        publication goes on.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        self._put_in_place()
        new = frames({one.identity.key: one for one in results}.values())  # a setting may stand in several grids
        old, named = self.tables(), {}
        if old:
            replaced = set(new["runs"]["setting"].to_pylist()) if new else set()
            kept = [setting for setting in old["runs"]["setting"].to_pylist() if setting not in replaced]
            old = of_settings(old, kept)
            grid_rows = published.read(self.directory).get("grids")
            for row in grid_rows.to_pylist() if grid_rows else ():
                named.setdefault(row.pop("grid"), []).append(row)
        tables = joined([old, new])
        order = sorted(zip(*(tables["runs"][name].to_pylist() for name in ("slug", "setting")), strict=True))
        tables = of_settings(tables, [setting for _, setting in order])
        for name, table in tables.items():  # the key first, the others by name: the same bytes for the same values
            columns = sorted(table.column_names, key=lambda column: (column != "setting", column))
            tables[name] = table.select(columns).combine_chunks()
        digest = hashlib.sha256(repr(order).encode() + repr(tables["runs"].to_pylist()).encode()).hexdigest()
        named = dict(sorted({**named, **grids}.items()))
        if named:
            tables["grids"] = _table([{"grid": name, **row} for name, rows in named.items() for row in rows])
        with tempfile.TemporaryDirectory(dir=self.directory) as work:
            whole = Path(work, "whole")
            whole.mkdir()
            for name, table in tables.items():
                # Without arrow's own schema, whose inner names depend on whether a table was read or made.
                how = {"compression": "zstd", "compression_level": 19, "store_schema": False}
                with pq.ParquetWriter(whole / f"{name}.parquet", table.schema, **how) as writer:
                    writer.write_table(table)
                    writer.add_key_value_metadata({PUBLICATION: digest})
            os.replace(whole, self.directory / PENDING)  # from here on these are the tables
        self._put_in_place()

    def _put_in_place(self) -> None:
        pending = self.directory / PENDING
        if pending.is_dir():
            for path in sorted(pending.iterdir()):
                os.replace(path, self.directory / path.name)
            pending.rmdir()
