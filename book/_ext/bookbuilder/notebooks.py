"""Hygiene of the committed notebooks: no outputs, one common first cell, short and narrow cells, formatted by ruff.

`python -m bookbuilder.notebooks book` mends them, with `--check` it only reports.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

_MAX_LINES, _MAX_HIDDEN = 20, 60  # a page shows one box for each hidden cell, so one long cell is better than many
_MAX_WIDTH = 80
SETUP = {
    "cell_type": "code",
    "execution_count": None,
    "id": "setup",
    "metadata": {"tags": ["remove-cell"]},
    "outputs": [],
    "source": ["%pip install --quiet icl-explainer"],
}
"""The first cell: a hosted notebook starts without the package. Where it is, pip changes nothing and asks no index."""


def is_setup(cell: Mapping[str, Any]) -> bool:
    """Whether a cell is the first one of every notebook, or was in an older edition."""
    return cell["cell_type"] == "code" and (cell.get("id") == "setup" or "".join(cell["source"]) == SETUP["source"][0])


def problems(notebook: dict) -> list[str]:
    """What is wrong with a notebook (as parsed JSON), in plain words."""
    same = text_of(mended(json.loads(text_of(notebook)))) == text_of(notebook)
    found = [] if same else ["it has outputs, metadata of an editor, or not the common first cell"]
    for i, cell in enumerate(notebook["cells"][1:], 1):
        lines = [line for line in "".join(cell["source"]).split("\n") if line.strip()]
        most = _MAX_HIDDEN if "hide-cell" in cell["metadata"].get("tags", ()) else _MAX_LINES
        if cell["cell_type"] == "code" and len(lines) > most:
            found.append(f"cell {i} has {len(lines)} lines, {most} are allowed")
        if cell["cell_type"] == "code" and (width := max(map(len, lines), default=0)) > _MAX_WIDTH:
            found.append(f"cell {i} has a line of {width} characters, {_MAX_WIDTH} are allowed")
    return found


def text_of(notebook: dict) -> str:
    """A notebook as its file has it."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def mended(notebook: dict) -> dict:
    """The notebook without outputs and editor's metadata, with the common first cell."""
    cells = [deepcopy(SETUP), *(cell for cell in notebook["cells"] if not is_setup(cell))]
    for i, cell in enumerate(cells):
        cell.setdefault("id", f"cell-{i:02d}")
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
        cell["metadata"] = {k: v for k, v in cell["metadata"].items() if k == "tags"}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _ruff(paths: Sequence[Path], *, check: bool) -> int:
    """Format the cells of notebooks, or tell which are not; the package's own settings leave notebooks alone."""
    command = [sys.executable, "-m", "ruff", "format", "--isolated", f"--line-length={_MAX_WIDTH}"]
    return subprocess.run([*command, *(["--check"] if check else ["--quiet"]), *paths], check=False).returncode


def main(folder: Path, *, check: bool) -> int:
    """Check or mend every notebook below a folder, and return an exit code."""
    paths = sorted(path for path in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)
    if not paths:
        sys.exit(f"There is no notebook in {folder}.")  # without a path ruff would format every file
    for path in [] if check else paths:
        text = text_of(mended(json.loads(path.read_text("utf8"))))
        if text != path.read_text("utf8"):
            path.write_text(text, "utf8")
            print(f"{path}: mended")
    failed = _ruff(paths, check=check) > 0
    for path in paths:
        for problem in problems(json.loads(path.read_text("utf8"))):
            failed = True
            print(f"{path}: {problem}", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[-1]), check="--check" in sys.argv))
