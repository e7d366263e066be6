"""Trained weights on disk: `<name>.safetensors`, and `<name>.json` with what they are and where they come from."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from explainer.errors import CheckpointError

_UNREADABLE = (OSError, SafetensorError, KeyError, TypeError, ValueError, AttributeError, RuntimeError)


def directory() -> Path:
    """Where the trained models of the book are: $EXPLAINER_WEIGHTS, else the package's.

    Raises CheckpointError if the given directory does not exist.
    """
    given = os.path.expanduser(os.environ.get("EXPLAINER_WEIGHTS", ""))
    if given and not Path(given).is_dir():
        raise CheckpointError(
            f"EXPLAINER_WEIGHTS = {given!r} is no directory; give one with trained models, or unset it."
        )
    return Path(given) if given else Path(__file__).parents[1] / "published" / "weights"


def describe(path: str | os.PathLike) -> dict[str, Any]:
    """What `<path>.json` says about the weights; CheckpointError if it cannot be read."""
    path = Path(path).with_suffix(".json")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}); fetch it again, or train the model.") from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn the errors of missing, damaged or edited files inside a `with` block into a CheckpointError."""
    try:
        yield
    except _UNREADABLE as error:
        raise CheckpointError(f"{path} cannot be loaded ({error}); fetch both files again, or train anew.") from error
