"""Results on disk: one JSON file for each finished cell of a study, named after its setting.

A file is written to a temporary name, then renamed, so that it is there whole or not at all. Inside, its `Identity`
says what else determines the numbers: weights, data, and the number of the experiment's protocol. A result that was
made of something else than what is asked for is refused with the reason, never used and never overwritten. What
differs between two runs of the same cell, the time it took, stands in a second file beside it, `<cell>.run`, so that
the results of an interrupted and resumed study equal those of an uninterrupted one byte for byte.
"""

import hashlib
import json
import math
import os
import re
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explainer.errors import ExplainerError

SIGNIFICANT_DIGITS = 4
"""Floats in results are rounded to so many significant decimal digits; NaN and infinity become null."""

FORMAT = 2
"""Of the files; raised when their layout changes."""

SETTING = ("cell", "dtype")
"""The parts of an identity that name its file: what was asked for."""

GRIDS = "grids.toml"
"""The file in the directory of stored results that describes their grids."""

_KEYS = {"format", "identity", "provenance", "result", "sha256"}


class ResultsError(ExplainerError):
    """A stored result cannot be read or written."""


def published_directory() -> Path:
    """Where the stored studies of the book are: $EXPLAINER_RESULTS, else the checkout, else the installed copy.

    Raises ResultsError if they are nowhere.
    """
    places = [
        *([Path(given)] if (given := os.environ.get("EXPLAINER_RESULTS")) else []),
        Path(__file__).parents[3] / "book" / "results",
        Path(sysconfig.get_path("data")) / "share" / "explainer" / "results",
    ]
    for place in places:
        if (place / GRIDS).is_file():
            return place
    raise ResultsError(
        f"there are no stored studies in {' or '.join(map(str, places))}; set EXPLAINER_RESULTS to a directory with "
        f"{GRIDS} and the results that `explainer study --grid` computed."
    )


@dataclass(frozen=True)
class Identity:
    """Everything that determines a result, as plain JSON values, with a readable `slug` for the file's name.

    Of the parts, those in `SETTING` are what was asked for. The others are what it was made of: weights, data, and
    `protocol`, the number of the experiment's arithmetic. A part that cannot be known here is None, and not compared.
    """

    slug: str
    parts: Mapping[str, Any]

    @property
    def filename(self) -> str:
        """`<slug>-<first 16 digits of the setting's digest>.json`."""
        return _filename(self.slug, self.parts)

    def differences(self, stored: Mapping[str, Any]) -> list[str]:
        """Names of the known parts that a stored identity has otherwise."""
        return [name for name, part in self.parts.items() if part is not None and stored.get(name) != part]


@dataclass(frozen=True)
class Stored:
    """A result that was read back: what determines it, where it comes from, and the numbers."""

    path: Path
    identity: Mapping[str, Any]
    provenance: Mapping[str, Any]
    result: Mapping[str, Any]


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
        if differing := identity.differences(stored.identity):
            raise ResultsError(f"{path} {_other_origin(stored.identity, identity.parts, differing)}")
        return stored

    def all(self) -> list[Stored]:
        """Every result of the directory, in the order of the file names; ResultsError as in `load`."""
        return [read(path) for path in sorted(self.directory.glob("*.json"))]

    def require_writable(self) -> None:
        """Make the directory and try to write there, before hours of work depend on it; else ResultsError."""
        with _disk_errors(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.directory).close()

    def save(
        self, identity: Identity, result: Mapping[str, Any], *, provenance: Mapping[str, Any], run: Mapping[str, Any]
    ) -> Path:
        """Write a result and its `run`, which holds what may differ between two runs; ResultsError if it cannot be."""
        content = {"format": FORMAT, "identity": identity.parts, "provenance": provenance, "result": rounded(result)}
        path = self.path(identity)
        with _disk_errors(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            _replace(path.with_suffix(".run"), to_json(rounded(run)))
            _replace(path, to_json(content | {"sha256": _sha256(content)}))  # last: its presence means finished
        return path

    def remains(self) -> list[Path]:
        """Temporary files of runs that were killed while writing (or of one that is writing now)."""
        return sorted(self.directory.glob(".*.tmp"))


def _other_origin(then: Mapping[str, Any], now: Mapping[str, Any], differing: list[str]) -> str:
    """What a result was made of, as opposed to what is asked for now, and what to do."""
    if "protocol" in differing:
        return (
            f"was computed by protocol {then.get('protocol')}, this version computes protocol {now['protocol']}: use "
            "another directory, or delete it and compute it again."
        )
    return (
        f"was computed from other {' and '.join(differing)} than are here: use another directory, or get what it was "
        "computed from."
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
    if not path.name.endswith(_filename("", content["identity"])):
        raise ResultsError(f"{path} was renamed: it holds another cell; delete it and run the study again.")
    return Stored(path, content["identity"], content["provenance"], content["result"])


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


def _filename(slug: str, parts: Mapping[str, Any]) -> str:
    digest = _sha256({name: parts[name] for name in SETTING if name in parts})
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', slug)[:120]}-{digest[:16]}.json"


def _replace(path: Path, text: str) -> None:
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
def _disk_errors(directory: Path) -> Iterator[None]:
    """Turn what the disk refuses into an error that says what to do."""
    try:
        yield
    except OSError as error:
        raise ResultsError(
            f"results cannot be written to {directory} ({error}); make it a directory that you can write, free some "
            "space, or choose another one."
        ) from error
