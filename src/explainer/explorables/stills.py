"""Draw the stills of the explorables with their own JavaScript: `python -m explainer.explorables.stills`."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from explainer.errors import ExplainerError
from explainer.explorables import EXPLORABLES, FOLDER, Explorable

_DRAW = """
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const { still } = await import(pathToFileURL(process.argv[1]));
process.stdout.write(still(JSON.parse(readFileSync(0, "utf8"))) + "\\n");
"""


def node_executable() -> str:
    """Find Node.js: `node` on the PATH, else the one inside the playwright wheel.

    Raises: ExplainerError if there is neither.
    """
    if found := shutil.which("node"):
        return found
    try:
        from playwright._impl._driver import compute_driver_executable  # noqa: PLC0415 (a development dependency)
    except ImportError:
        raise ExplainerError("Node.js is missing: install it, or `pip install playwright`, which brings it.") from None
    return str(compute_driver_executable()[0])


def draw_still(widget: Explorable) -> str:
    """Return the SVG of the widget's present state.

    Raises: ExplainerError if Node.js is missing or the module fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "module.mjs"
        module.write_text(widget._esm, "utf-8")
        command = [node_executable(), "--input-type=module", "--eval", _DRAW, str(module)]
        state = json.dumps(widget.state())
        done = subprocess.run(command, input=state, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise ExplainerError(f"{widget.name} could not be drawn; Node.js says:\n{done.stderr}")
    return done.stdout


def write_stills(folder: Path = FOLDER / "stills") -> list[Path]:
    """Draw every explorable in its default state into `folder` and return the files."""
    folder.mkdir(exist_ok=True)
    files = []
    for explorable in EXPLORABLES:
        file = folder / f"{explorable.name}.svg"
        part = file.with_suffix(".part")
        part.write_text(draw_still(explorable()), "utf-8")
        os.replace(part, file)
        files.append(file)
    return files


if __name__ == "__main__":
    for written in write_stills():
        print(written)
