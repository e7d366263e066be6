"""What is measured once on the starter checkpoint and read by the pages: a JSON file beside the published tables."""

import json
from collections.abc import Callable
from typing import Any

from explainer.data.files import published_directory, replace_file
from explainer.models.loading import Checkpoint


def write(file: str, measure: Callable[[Checkpoint], Any], end_of_line: str) -> None:
    """Store what `measure` finds on the starter checkpoint, in float32 on the CPU; a line ends after `end_of_line`."""
    import torch  # noqa: PLC0415 - reading needs no model

    from explainer.models import loading  # noqa: PLC0415

    found = measure(loading.load(device="cpu", dtype=torch.float32))
    text = json.dumps(found, separators=(",", ":")).replace(end_of_line, f"{end_of_line}\n") + "\n"
    replace_file(published_directory() / file, text)


def read(file: str) -> Any:
    """The stored value."""
    return json.loads((published_directory() / file).read_text("utf-8"))
