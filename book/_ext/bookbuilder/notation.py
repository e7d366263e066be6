"""The symbols of the book: one table, `notation.toml`, the page made of it, and what the chapters use that it lacks.

`python -m bookbuilder.notation` prints the symbols without a row.
"""

import os
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from docutils.parsers.rst import Directive

from bookbuilder import symbols
from bookbuilder.pages import markdown, parsed, reading_order

SOURCE = Path(__file__).parent / "notation.toml"
_PAGE = Path("book/reference/notation")


HEADS = ("symbol", "meaning", "shape", "chapter")


class Symbol(NamedTuple):
    """A row of the table."""

    latex: str
    words: str
    group: str
    shape: str = ""
    chapters: tuple[str, ...] = ()
    """The pages to which the meaning is confined; none for a meaning that holds in the whole book."""

    @property
    def bases(self) -> tuple[str, ...]:
        """The letters it explains."""
        return tuple(symbols.bases(self.latex))


@cache
def table() -> tuple[Symbol, ...]:
    """All rows, in the order of the source."""
    rows, name = [], ""
    for group in tomllib.loads(SOURCE.read_text("utf-8"))["group"]:
        name, pages = group.pop("name", name), tuple(group.pop("pages", ()))
        for latex, said in group.items():
            words, shape = said if isinstance(said, list) else (said, "")
            rows.append(Symbol(latex, words, name, shape, pages))
    return tuple(rows)


def used(cells: list[str]) -> list[str]:
    """The symbols of a chapter's Markdown cells, each once, in the order of their first use."""
    formulas = (latex for cell in cells for latex in symbols.formulas(cell))
    return list(dict.fromkeys(base for latex in formulas for base in symbols.bases(latex)))


def missing(chapters: dict[str, list[str]], rows: tuple[Symbol, ...]) -> Iterator[str]:
    """Symbols that a chapter uses and that have no row for it."""
    for name, cells in chapters.items():
        known = {base for row in rows if not row.chapters or name in row.chapters for base in row.bases}
        for base in used(cells):
            if base not in known:
                yield f"{name} uses {base}, which has no row in notation.toml that holds there"


def notation(here: Directive) -> list[nodes.Node]:
    """`{notation}`: the symbols by groups, and the other meanings that some have in single chapters."""
    environment = here.state.document.settings.env
    environment.note_dependency(str(SOURCE))
    return parsed(here, page(Path(environment.srcdir)))


def page(root: Path) -> str:
    """The tables as Markdown: a general meaning names the page of its first use, any other the pages where it holds."""
    lines, ways = [], {path.stem: os.path.relpath(path, root / _PAGE.parent) for path in reading_order(root)}
    first = {base: name for name, cells in reversed(chapters(root).items()) for base in used(cells)}
    for group in dict.fromkeys(row.group for row in table()):
        rows = [row for row in table() if row.group == group]
        heads = [head for head in HEADS if head != "shape" or any(row.shape for row in rows)]
        lines += ["", f"**{group}**", "", _row(heads), "|---" * len(heads) + "|"]
        for row in rows:
            used_first = {first[base] for base in row.bases if base in first}
            names = row.chapters or sorted(used_first, key=list(ways).index)
            links = ", ".join(f"[]({ways[name]})" for name in names if name in ways)
            cells = dict(zip(HEADS, (f"${row.latex}$", row.words, row.shape, links), strict=True))
            lines.append(_row(cells[head] for head in heads))
    return "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def chapters(root: Path) -> dict[str, list[str]]:
    """The Markdown cells of all chapters, in reading order."""
    return {path.stem: markdown(path) for path in reading_order(root) if path.suffix == ".ipynb"}


def main() -> int:
    """Print where chapters and table disagree."""
    found = list(missing(chapters(Path()), table()))
    print("\n".join(found) or "Chapters and table agree.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
