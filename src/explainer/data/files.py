"""Where published results are, how their numbers are written, and how a file or a folder gets there whole."""

import hashlib
import json
import math
import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from explainer.errors import CheckpointError, ResultsError

_SIGNIFICANT_DIGITS = 4
"""Floats in results are rounded to so many significant decimal digits; NaN and infinity become null."""

Tables = dict[str, dict[str, Any]]
"""A result: `settings` is one row, a value for each column; every other table has a list for each of its columns."""

PUBLISHED = Path(__file__).parents[1] / "published"
"""The published results of the book, which come with the package."""


def published_directory() -> Path:
    """Where the published results are, a folder for each experiment: $EXPLAINER_RESULTS, else those of the package.

    Raises ResultsError if the given directory does not exist.
    """
    given = os.path.expanduser(os.environ.get("EXPLAINER_RESULTS", ""))
    if given and not Path(given).is_dir():
        raise ResultsError(f"EXPLAINER_RESULTS = {given!r} is no directory; give one, or unset it.")
    return Path(given) if given else PUBLISHED


def published_json(name: str) -> Any:
    """What stands in a JSON file beside the published tables; raises ResultsError where there is none to read."""
    path = published_directory() / f"{name}.json"
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ResultsError(
            f"{path} cannot be read ({error}); store it there with explainer-lab {name.replace('_', '-')} --publish."
        ) from error


def weights_directory() -> Path:
    """Where the trained small models of the book are: $EXPLAINER_WEIGHTS, else the package's."""
    given = os.environ.get("EXPLAINER_WEIGHTS")
    return Path(given).expanduser() if given else PUBLISHED / "weights"


@contextmanager
def reading_weights(name: str) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """The content of `<name>.safetensors` and `<name>.json`, to be read in a `with` block.

    Raises CheckpointError for files that are missing or damaged, or that turn out in the block to be edited.
    """
    path = weights_directory() / name
    try:
        description = json.loads(path.with_suffix(".json").read_text("utf-8"))
        yield path.with_suffix(".safetensors").read_bytes(), description
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise CheckpointError(f"{path} cannot be loaded ({error}); fetch both files again, or train anew.") from error


def rounded(value: Any) -> Any:
    """Plain JSON values of mappings, sequences, numbers, arrays and tensors, with floats as in the stored files."""
    if isinstance(value, Mapping):
        return {str(key): rounded(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return rounded(value.tolist())
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    if isinstance(value, float):
        value = float(f"{value:.{_SIGNIFICANT_DIGITS}g}")
        return value if math.isfinite(value) else None  # rounding can pass the largest float
    return value


def to_json(value: Any) -> str:
    """JSON with sorted keys, the same bytes for the same values; a list of numbers stands on one line."""
    return _lines(value, "") + "\n"


def json_digest(value: Any) -> str:
    """SHA-256 of plain JSON values, however they are laid out in a file."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


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


def replace_file(path: Path, content: str | bytes) -> None:
    """Write text or bytes whole or not at all: to a temporary file of the same directory, which is then renamed.

    A link stays one, and its file is replaced; a device or a pipe, which has no whole, is written into.
    """
    data = content.encode() if isinstance(content, str) else content
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    path = path.resolve()
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def fresh_folder(home: Path) -> Iterator[Path]:
    """An empty folder that takes the place of `home` when the block has ended, whole or not at all."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=f".{home.name}-", ignore_cleanup_errors=True) as work:
        fresh = Path(work, "fresh")
        fresh.mkdir()
        yield fresh
        if home.exists():
            os.replace(home, Path(work, "stale"))
        os.replace(fresh, home)
