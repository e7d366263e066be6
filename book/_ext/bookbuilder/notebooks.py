"""Hygiene of the committed notebooks: no outputs, one generated first cell, short and narrow cells, formatted by ruff.

`python -m bookbuilder.notebooks book` mends them, with `--check` it only reports.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bookbuilder.repository import public_address

MAX_LINES = 20
MAX_WIDTH = 80
SETUP_TAGS = ["remove-cell"]
# As `ruff format` writes it, with every address: an address has a line of its own.
SETUP = """\
# A hosted notebook (Colab, Binder) starts without this book's package:
# install it there. Elsewhere, do nothing.
import importlib.util, os

if importlib.util.find_spec("explainer") is None:
    public = "{address}"
    address = os.environ.get("EXPLAINER_REPOSITORY") or public
    assert address, (
        "Set EXPLAINER_REPOSITORY to this book's public git address, "
        "then run this cell again."
    )
    %pip install --quiet "git+{{address}}\""""
_JSON = {"indent": 1, "ensure_ascii": False}
_OPENING = "# A hosted notebook (Colab, Binder) starts without this book's package"
_ADDRESS = re.compile(r'public = "([^"]*)"')


def setup_source(address: str) -> str:
    """Source of the first cell for a public address ('' while none is known)."""
    return SETUP.format(address=address)


def setup_cell(address: str) -> dict:
    """The generated first cell, hidden on the site."""
    metadata = {"tags": SETUP_TAGS}
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": "setup",
        "metadata": metadata,
        "outputs": [],
        "source": setup_source(address).splitlines(keepends=True),
    }


def _is_setup(cell: dict) -> bool:
    return cell["cell_type"] == "code" and "".join(cell["source"]).startswith(_OPENING)


def problems(notebook: dict) -> list[str]:
    """What is wrong with a notebook (as parsed JSON), in plain words."""
    found = []
    cells = notebook["cells"]
    first = "".join(cells[0]["source"]) if cells else ""
    address = _ADDRESS.search(first)
    if not cells or not _is_setup(cells[0]) or address is None or first != setup_source(address[1]):
        found.append("its first cell is not the generated one")
    if sum(map(_is_setup, cells)) > 1:
        found.append("it has the generated cell more than once")
    for i, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            continue
        if cell["outputs"] or cell["execution_count"] is not None:
            found.append(f"cell {i} has outputs")
        lines = [line for line in "".join(cell["source"]).split("\n") if line.strip()]
        if len(lines) > MAX_LINES:
            found.append(f"cell {i} has {len(lines)} lines, {MAX_LINES} are allowed")
        if not _is_setup(cell) and (width := max(map(len, lines), default=0)) > MAX_WIDTH:
            found.append(f"cell {i} has a line of {width} characters, {MAX_WIDTH} are allowed")
    if set(notebook["metadata"]) - {"kernelspec", "language_info"}:
        found.append(f"it carries metadata of an editor: {sorted(set(notebook['metadata']))}")
    return found


def mended(notebook: dict, address: str) -> dict:
    """The notebook without outputs and editor's metadata, with the generated first cell."""
    cells = [setup_cell(address), *(cell for cell in notebook["cells"] if not _is_setup(cell))]
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
    command = [sys.executable, "-m", "ruff", "format", "--isolated", f"--line-length={MAX_WIDTH}"]
    return subprocess.run([*command, *(["--check"] if check else ["--quiet"]), *paths], check=False).returncode


def main(arguments: list[str] | None = None) -> int:
    """Check or mend the given notebooks and every one below the given folders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true", help="report, change nothing")
    options = parser.parse_args(arguments)
    given = (p for path in options.paths for p in ([path] if path.suffix == ".ipynb" else path.rglob("*.ipynb")))
    paths = sorted(p for p in given if ".ipynb_checkpoints" not in p.parts)
    if not paths:
        parser.error(f"there is no notebook in {', '.join(map(str, options.paths))}")  # ruff would format all files
    if not options.check:
        for path in paths:
            text = json.dumps(mended(json.loads(path.read_text("utf8")), public_address() or ""), **_JSON) + "\n"
            if text != path.read_text("utf8"):
                path.write_text(text, "utf8")
                print(f"{path}: mended")
    failed = _ruff(paths, check=options.check) > 0
    for path in paths:
        notebook = json.loads(path.read_text("utf8"))
        for problem in problems(notebook):
            failed = True
            print(f"{path}: {problem}", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
