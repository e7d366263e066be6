"""The pages of the book as text, in the order in which they are read."""

import json
import os
import re
from collections.abc import Iterator
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
    paths = [root / f"{name}{end}" for name in names(root) for end in (".ipynb", ".md")]
    return [path for path in paths if path.exists()]


def names(root: Path) -> list[str]:
    """The pages of the table of contents without their endings, those of a section after the page that opens it."""
    toc = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
    return [
        toc["root"],
        *(name for part in toc.get("parts", [toc]) for name in below(part["chapters"])),
    ]


def below(entries: list[dict]) -> Iterator[str]:
    """The pages of a list of the table of contents, with those of their sections."""
    for entry in entries:
        yield entry["file"]
        yield from below(entry.get("sections", []))


def address(page: str, root: Path, start: Path) -> str:
    """The way to the page with this name from the folder of the page `start`, without its ending; names are unique."""
    found = next(name for name in names(root) if Path(name).name == page)
    return os.path.relpath(found, start.parent)
