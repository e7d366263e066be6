"""Results of a running study on disk: one JSON file for each finished setting, named after it.

A file is written to a temporary name, then renamed, so that it is there whole or not at all. Inside, its `Identity`
says what else determines the numbers: weights, data, and the number of the experiment's protocol. A result that was
made of something else than what is asked for is refused with the reason, never used and never overwritten. What
differs between two runs of the same setting, the time it took, stands in a second file beside it, `<setting>.run`, so
that the results of an interrupted and resumed study equal those of an uninterrupted one byte for byte. What is finished
is folded into tables (`explainer.lab.tables`), and what the tables have counts as stored.
"""

import hashlib
import json
import math
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explainer.errors import ResultsError

SIGNIFICANT_DIGITS = 4
"""Floats in results are rounded to so many significant decimal digits; NaN and infinity become null."""

FORMAT = 3
"""Of the files; raised when their layout changes."""

SETTING = ("cell", "dtype")
"""The parts of an identity that name its file: what was asked for."""

_KEYS = {"format", "slug", "identity", "provenance", "result", "sha256"}


def published_directory() -> Path:
    """Where the published results are, a folder for each experiment: $EXPLAINER_RESULTS, else those of the package.

    Raises ResultsError if the given directory does not exist.
    """
    given = os.environ.get("EXPLAINER_RESULTS")
    if given and not Path(given).is_dir():
        raise ResultsError(f"EXPLAINER_RESULTS = {given!r} is no directory; give one, or unset it.")
    return Path(given) if given else Path(__file__).parents[1] / "published"


Tables = Mapping[str, Mapping[str, Any]]
"""A result: `cells` is one row, a value for each column; every other table has a list for each of its columns."""


@dataclass(frozen=True)
class Identity:
    """Everything that determines a result, as plain JSON values, with a readable `slug` for the file's name.

    Of the parts, those in `SETTING` are what was asked for. The others are what it was made of: weights, data, and
    `protocol`, the number of the experiment's arithmetic. A part that cannot be known here is None, and not compared.
    """

    slug: str
    parts: Mapping[str, Any]

    @property
    def cell(self) -> str:
        """The first 16 digits of the setting's digest: the key of its rows in the tables."""
        return _sha256({name: self.parts[name] for name in SETTING if name in self.parts})[:16]

    @property
    def filename(self) -> str:
        """`<slug>-<cell>.json`."""
        return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', self.slug)[:120]}-{self.cell}.json"

    def differences(self, stored: Mapping[str, Any]) -> list[str]:
        """Names of the known parts that a stored identity has otherwise."""
        return [name for name, part in self.parts.items() if part is not None and stored.get(name) != part]


@dataclass(frozen=True)
class Stored:
    """A result that was read back: what determines it, where it comes from, and the numbers."""

    path: Path
    identity: Identity
    provenance: Mapping[str, Any]
    result: Tables

    @property
    def run(self) -> Mapping[str, Any]:
        """What may differ between two runs: how long it took, and the commit."""
        return json.loads(self.path.with_suffix(".run").read_text("utf-8"))


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

        Raises ResultsError if its file is damaged, or if it was made of something else than what is asked for.
        """
        path = self.path(identity)
        if not path.exists():
            return None
        stored = read(path)
        require_origin(str(path), identity, stored.identity.parts)
        return stored

    def all(self) -> list[Stored]:
        """Every result of the directory, in the order of the file names; ResultsError as in `load`."""
        return [read(path) for path in sorted(self.directory.glob("*.json"))]

    def require_writable(self) -> None:
        """Make the directory and try to write there, before hours of work depend on it; else ResultsError."""
        with disk_errors(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.directory).close()

    def save(
        self, identity: Identity, result: Mapping[str, Any], *, provenance: Mapping[str, Any], run: Mapping[str, Any]
    ) -> Path:
        """Write a result and its `run`, which holds what may differ between two runs; ResultsError if it cannot be."""
        content = {"format": FORMAT, "slug": identity.slug, "identity": identity.parts}
        content |= {"provenance": provenance, "result": rounded(result)}
        path = self.path(identity)
        with disk_errors(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            replace_file(path.with_suffix(".run"), to_json(rounded(run)))
            replace_file(path, to_json(content | {"sha256": _sha256(content)}))  # last: its presence means finished
        return path

    def remains(self) -> list[Path]:
        """Temporary files of runs that were killed while writing (or of one that is writing now)."""
        return sorted(self.directory.glob(".*.tmp"))


def require_origin(where: str, identity: Identity, stored: Mapping[str, Any]) -> None:
    """Raise ResultsError if the stored parts of an identity are not those that are asked for."""
    if not (differing := identity.differences(stored)):
        return
    if "protocol" in differing:
        raise ResultsError(
            f"{where} was computed by protocol {stored.get('protocol')}, this version computes protocol "
            f"{identity.parts['protocol']}: use another directory, or delete it and compute it again."
        )
    raise ResultsError(
        f"{where} was computed from other {' and '.join(differing)} than are here: use another directory, or get what "
        "it was computed from."
    )


def read(path: str | os.PathLike) -> Stored:
    """One stored result; ResultsError if the file is damaged, was edited, or is no result."""
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path} cannot be read ({error}); delete it and run the study again.") from error
    if not isinstance(content, dict) or "format" not in content:
        raise ResultsError(f"{path} is not the result of a study; move it to another directory.")
    if content["format"] != FORMAT:
        raise ResultsError(
            f"{path} has format {content['format']!r}, this version of explainer reads {FORMAT}; "
            "delete it and run the study again, or use the version that wrote it."
        )
    if content.keys() != _KEYS or content["sha256"] != _sha256({k: v for k, v in content.items() if k != "sha256"}):
        raise ResultsError(f"{path} is damaged or was edited; delete it and run the study again.")
    identity = Identity(content["slug"], content["identity"])
    if path.name != identity.filename:
        raise ResultsError(f"{path} was renamed: it holds another cell; delete it and run the study again.")
    return Stored(path, identity, content["provenance"], content["result"])


def rounded(value: Any) -> Any:
    """Plain JSON values of mappings, sequences, numbers, arrays and tensors, with floats as in the stored files."""
    if isinstance(value, Mapping):
        return {str(key): rounded(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return rounded(value.tolist())
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    if isinstance(value, float):
        value = float(f"{value:.{SIGNIFICANT_DIGITS}g}")
        return value if math.isfinite(value) else None  # rounding can pass the largest float
    return value


def to_json(value: Any) -> str:
    """JSON with sorted keys, the same bytes for the same values; a list of numbers stands on one line."""
    return _lines(value, "") + "\n"


def _lines(value: Any, indent: str) -> str:
    inner = indent + " "
    if isinstance(value, Mapping) and value:
        rows = [f"{json.dumps(key, ensure_ascii=False)}: {_lines(value[key], inner)}" for key in sorted(value)]
    elif isinstance(value, (list, tuple)) and any(isinstance(item, (Mapping, list, tuple)) for item in value):
        rows = [_lines(item, inner) for item in value]
    else:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    opening, closing = "{}" if isinstance(value, Mapping) else "[]"
    return f"{opening}\n{inner}" + f",\n{inner}".join(rows) + f"\n{indent}{closing}"


def _sha256(value: Any) -> str:
    """Of the values, however they are laid out in the file."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def replace_file(path: Path, text: str) -> None:
    """Write the text to a temporary file of the same directory, then rename it."""
    file = tempfile.NamedTemporaryFile(  # noqa: SIM115 - it is renamed, and closed below
        "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=f".{path.name}.", suffix=".tmp", delete=False
    )
    try:
        with file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(file.name, 0o644)  # temporary files are private
        os.replace(file.name, path)
    except BaseException:
        Path(file.name).unlink(missing_ok=True)
        raise


@contextmanager
def disk_errors(directory: Path) -> Iterator[None]:
    """Turn what the disk refuses into an error that says what to do."""
    try:
        yield
    except OSError as error:
        raise ResultsError(
            f"results cannot be written to {directory} ({error}); make it a directory that you can write, free some "
            "space, or choose another one."
        ) from error
