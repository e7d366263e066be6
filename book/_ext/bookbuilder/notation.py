"""The symbols of the book: one table, `notation.toml`, the page made of it, and what the chapters use that it lacks.

`python -m bookbuilder.notation` prints the symbols without a row, the rows without a use, and the letters whose local
meaning a chapter does not announce.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from bookbuilder import symbols
from bookbuilder.pages import markdown, reading_order, title

SOURCE = Path(__file__).parent / "notation.toml"
_ANNOUNCES = re.compile(r"\b[Ii]n this (chapter|section|exercise)\b")


class Symbol(NamedTuple):
    """A row of the table."""

    latex: str
    words: str
    group: str
    shape: str = ""
    chapter: str = ""
    """The chapter of the first use, from which on the meaning holds; empty for a local meaning."""
    local: bool = False
    chapters: tuple[str, ...] = ()
    """The chapters in which a local meaning holds."""
    later: bool = False
    """Whether these chapters use the letter first in the sense that it has elsewhere."""

    @property
    def bases(self) -> tuple[str, ...]:
        """The letters it explains."""
        return tuple(symbols.bases(self.latex))

    @property
    def home(self) -> str:
        """The chapter of the first use."""
        return self.chapters[0] if self.local else self.chapter


@cache
def table() -> tuple[Symbol, ...]:
    """All rows, in the order of the source."""
    groups = tomllib.loads(SOURCE.read_text("utf-8"))["group"]
    rows = ((group["name"], row) for group in groups for row in group["symbol"])
    return tuple(Symbol(**row | {"group": name, "chapters": tuple(row.get("chapters", ()))}) for name, row in rows)


def used(cells: list[str]) -> dict[str, int]:
    """The symbols of a chapter's Markdown cells, and the number of the paragraph in which each appears first."""
    found: dict[str, int] = {}
    for i, paragraph in enumerate(_paragraphs(cells)):
        for formula in symbols.formulas(paragraph):
            for base in symbols.bases(formula.latex):
                found.setdefault(base, i)
    return found


def _paragraphs(cells: list[str]) -> list[str]:
    """The paragraphs; a displayed equation belongs to the sentences before and after it."""
    joined = [re.sub(r"\n\n(?=\$\$)|(?<=\$\$)\n\n", "\n", symbols.without_code(cell)) for cell in cells]
    return [paragraph for cell in joined for paragraph in cell.split("\n\n")]


def missing(chapters: dict[str, list[str]], rows: tuple[Symbol, ...]) -> Iterator[str]:
    """Symbols that a chapter uses and that have no row for it; `chapters` are Markdown cells in reading order."""
    known: set[str] = set()
    for name, cells in chapters.items():
        known |= {base for row in rows if row.chapter == name for base in row.bases}
        here = {base for row in rows if name in row.chapters for base in row.bases}
        for base in used(cells).keys() - known - here:
            yield f"{name} uses {base}, which has no row in notation.toml that holds there"


def idle(chapters: dict[str, list[str]], rows: tuple[Symbol, ...]) -> Iterator[str]:
    """Rows that name a chapter which does not exist or does not use the symbol."""
    found = {name: used(cells) for name, cells in chapters.items()}
    for row in rows:
        for name in row.chapters or (row.chapter,):
            for base in row.bases:
                if base not in found.get(name, {}):
                    yield f"notation.toml says that {name} uses {base} ({row.words}), which it does not"


def unannounced(name: str, cells: list[str], rows: tuple[Symbol, ...]) -> list[str]:
    """Letters with a local meaning of which a chapter does not say, at or before their first use, that it is local.

    Where a letter has its general meaning first, the chapter may say so later.
    """
    paragraphs, first = _paragraphs(cells), used(cells)
    said: dict[str, int] = {}
    for i, paragraph in enumerate(paragraphs):
        if _ANNOUNCES.search(paragraph):
            for base in {base for one in symbols.formulas(paragraph) for base in symbols.bases(one.latex)}:
                said.setdefault(base, i)
    last = {base: len(paragraphs) - 1 if row.later else first.get(base, 0)
            for row in rows if name in row.chapters for base in row.bases}  # fmt: skip
    return [base for base in sorted(last) if said.get(base, len(paragraphs)) > last[base]]


class Notation(Directive):
    """`{notation}`: the symbols by groups, and the other meanings that some have in single chapters."""

    def run(self) -> list[nodes.Node]:
        """Return headings and tables."""
        environment = self.state.document.settings.env
        environment.note_dependency(str(SOURCE))
        inside = nodes.section()
        inside.document = self.state.document
        text = page(Path(environment.srcdir))
        self.state.nested_parse(StringList(text.splitlines(), str(SOURCE)), self.content_offset, inside)
        return inside.children


def page(root: Path) -> str:
    """The tables as Markdown."""
    lines, titles = [], {path.stem: title(path) for path in reading_order(root)}
    for group in dict.fromkeys(row.group for row in table()):
        rows = [row for row in table() if row.group == group]
        columns = ["symbol", "meaning", "shape" if any(row.shape for row in rows) else "", "chapter"]
        heads = [column for column in columns if column]
        lines += ["", f"**{group}**", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for row in rows:
            names = row.chapters or (row.chapter,)
            links = ", ".join(f"[{titles[name]}]({name}.ipynb)" if name in titles else name for name in names)
            cells = [f"${row.latex}$", row.words, *([row.shape] if "shape" in heads else []), links]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def chapters(root: Path) -> dict[str, list[str]]:
    """The Markdown cells of all chapters, in reading order."""
    return {path.stem: markdown(path) for path in reading_order(root) if path.suffix == ".ipynb"}


def main(arguments: list[str] | None = None) -> int:
    """Print where chapters and table disagree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, nargs="?", default=Path())
    texts = chapters(parser.parse_args(arguments).root)
    found = [*missing(texts, table()), *idle(texts, table())]
    for name, cells in texts.items():
        if silent := unannounced(name, cells, table()):
            found.append(f"{name} does not say that these are local: {' '.join(silent)}")
    print("\n".join(found) or "Chapters and table agree.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
