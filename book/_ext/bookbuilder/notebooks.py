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

_MAX_LINES = 20
_MAX_WIDTH = 80
# As `ruff format` writes it, with every address: an address has a line of its own.
_SETUP = """\
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
_OPENING = "# A hosted notebook (Colab, Binder) starts without this book's package"
_ADDRESS = re.compile(r'public = "([^"]*)"')


def setup_source(address: str) -> str:
    """Source of the first cell for a public address ('' while none is known)."""
    return _SETUP.format(address=address)


def setup_cell(address: str) -> dict:
    """The generated first cell, hidden on the site."""
    source = setup_source(address).splitlines(keepends=True)
    about = {"metadata": {"tags": ["remove-cell"]}, "outputs": [], "source": source}
    return {"cell_type": "code", "execution_count": None, "id": "setup"} | about


def _is_setup(cell: dict) -> bool:
    return cell["cell_type"] == "code" and "".join(cell["source"]).startswith(_OPENING)


def problems(notebook: dict) -> list[str]:
    """What is wrong with a notebook (as parsed JSON), in plain words."""
    address = _ADDRESS.search("".join(notebook["cells"][0]["source"]) if notebook["cells"] else "")
    same = _text(mended(json.loads(_text(notebook)), address[1] if address else "")) == _text(notebook)
    found = [] if same else ["it has outputs, metadata of an editor, or not the generated first cell"]
    for i, cell in enumerate(notebook["cells"][1:], 1):
        lines = [line for line in "".join(cell["source"]).split("\n") if line.strip()]
        if cell["cell_type"] == "code" and len(lines) > _MAX_LINES:
            found.append(f"cell {i} has {len(lines)} lines, {_MAX_LINES} are allowed")
        if cell["cell_type"] == "code" and (width := max(map(len, lines), default=0)) > _MAX_WIDTH:
            found.append(f"cell {i} has a line of {width} characters, {_MAX_WIDTH} are allowed")
    return found


def _text(notebook: dict) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


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
    command = [sys.executable, "-m", "ruff", "format", "--isolated", f"--line-length={_MAX_WIDTH}"]
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
            text = _text(mended(json.loads(path.read_text("utf8")), public_address() or ""))
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
