"""Results of a running study on disk: one JSON file for each finished setting, named after it.

Inside a file its `Identity` says what determines the numbers: weights, data, and the protocol. A result that was made
of something else than what is asked for is refused with the reason, never used and never overwritten. What differs
between two runs of the same setting stands in a second file beside it, `<setting>.run`, so that an interrupted and
resumed study gives the same bytes. What is finished is folded into tables (`explainer_lab.publication`).
"""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explainer.data.files import PERMIT, Tables, disk_errors, home_expanded, replace_file, rounded, to_json
from explainer.errors import ResultsError

_FORMAT = 4  # of the files; raised when their layout changes
SETTING = "cell"
"""The part of an identity that holds the setting. Its digest names every result, so that it keeps its first name."""

_SETTING = (SETTING, "dtype")  # the parts of an identity that name its file: what was asked for
_KEYS = {"format", "slug", "identity", "provenance", "result", "sha256"}


@dataclass(frozen=True)
class Identity:
    """Everything that determines a result, as plain JSON values, with a readable `slug` for the file's name.

    Of the parts, those in `_SETTING` are what was asked for. The others are what it was made of: weights, data, and
    `protocol`, the number of the experiment's arithmetic. A part that cannot be known here is None, and not compared.
    """

    slug: str
    parts: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The first 16 digits of the setting's digest: the key of its rows in the tables."""
        return _sha256({name: self.parts[name] for name in _SETTING if name in self.parts})[:16]

    @property
    def filename(self) -> str:
        """`<slug>-<setting>.json`."""
        return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', self.slug)[:120]}-{self.key}.json"

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
        path = self.path.with_suffix(".run")
        try:
            return json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise ResultsError(f"{path} cannot be read ({error}); copy it too, or compute it again.") from error


class Store:
    """A directory of results."""

    def __init__(self, directory: str | os.PathLike):
        """Nothing is read or written before it is asked for."""
        self.directory = home_expanded(directory)

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
        content = {"format": _FORMAT, "slug": identity.slug, "identity": identity.parts}
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
    except PermissionError as error:
        raise ResultsError(f"{path} may not be read by this user; {PERMIT}.") from error
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path} cannot be read ({error}); delete it and run the study again.") from error
    if not isinstance(content, dict) or "format" not in content:
        raise ResultsError(f"{path} is not the result of a study; move it to another directory.")
    if content["format"] != _FORMAT:
        raise ResultsError(
            f"{path} has format {content['format']!r}, this version of explainer reads {_FORMAT}; "
            "delete it and run the study again, or use the version that wrote it."
        )
    if content.keys() != _KEYS or content["sha256"] != _sha256({k: v for k, v in content.items() if k != "sha256"}):
        raise ResultsError(f"{path} is damaged or was edited; delete it and run the study again.")
    identity = Identity(content["slug"], content["identity"])
    if path.name != identity.filename:
        raise ResultsError(f"{path} was renamed: it holds another setting; delete it and run the study again.")
    return Stored(path, identity, content["provenance"], content["result"])


def _sha256(value: Any) -> str:
    """Of the values, however they are laid out in the file."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
