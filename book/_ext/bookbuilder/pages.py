"""The pages of the book as text, in the order in which they are read."""

import json
import re
from pathlib import Path

import yaml


def title(path: Path) -> str:
    """The title of a chapter."""
    for cell in markdown(path):
        if found := re.search(r"^# (.+)$", cell, re.MULTILINE):
            return found[1]
    return path.stem


def markdown(path: Path) -> list[str]:
    """The Markdown cells of a chapter, or a page of prose as one cell."""
    if path.suffix == ".md":
        return [path.read_text("utf-8")]
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]


def reading_order(root: Path) -> list[Path]:
    """The pages of the book from first to last, as its table of contents has them."""
    toc = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
    parts = toc.get("parts", [toc])
    names = [toc["root"], *(chapter["file"] for part in parts for chapter in part["chapters"])]
    paths = [root / f"{name}{end}" for name in names for end in (".ipynb", ".md")]
    return [path for path in paths if path.exists()]
