"""The symbols of the book: one table, `notation.toml`, the page made of it, and what the chapters use that it lacks.

The symbols of a text are its LaTeX between dollar signs, taken apart into letters. What counts as one symbol, its
*base*:

- a letter (`W`, `h`) or a Greek letter (`\\eta`); `\\varphi` and `\\phi`, `\\ell` and `l` are different;
- a letter in another alphabet is a symbol of its own: `\\mathcal Y` is not `Y`. Bold and upright letters are not;
- accents, primes and subscripts belong to a symbol and are left out: `\\hat y`, `k'_i` and `W_\\text{ICL}` are `y`,
  `k` and `W`. So a subscript names no symbol, except below a sign such as `\\sum`, where the letters of `i < t` count;
- a superscript in brackets, a star and `\\top` are left out, other superscripts are exponents and are read;
- `e` with an exponent is Euler's number and is left out;
- words are no symbols: `\\text{...}`, `\\operatorname{...}` and named functions such as `\\log`.
"""

import os
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from docutils.parsers.rst import Directive

from bookbuilder.directives import parsed
from bookbuilder.pages import markdown, reading_order

SOURCE = Path(__file__).parent / "notation.toml"
_PAGE = Path("book/reference/notation")
HEADS = ("symbol", "meaning", "shape", "chapter")

_NO_PROSE = re.compile(r"^(```+|~~~+).*?^\1\s*$|(`+)(?!`).+?(?<!`)\2(?!`)", re.DOTALL | re.MULTILINE)
_MATH = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$(?!\s)([^$]+?)(?<![\s\\])\$(?!\d)", re.DOTALL)
_BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
_WORDS = rf"\\(?:text|operatorname\*?|mathrm|textbf|textit)\s*(?:{_BRACES}|\w)"
_ARGUMENT = rf"\s*(?:{_WORDS}|\\math\w+\s*(?:{_BRACES}|\w)|{_BRACES}|\\[A-Za-z]+(?:\s*{_BRACES})?|[^\s\\])"
_NO_SYMBOL = (
    (
        r"\\\\\s*\[[^]]*\]|\\[hv]space\*?\{[^}]*\}|\\begin\{(?:array|tabular)\}\{[^}]*\}|\\(?:begin|end)\s*\{[^}]*\}",
        " ",
    ),
    (r"\\[!,]", ""),
    # A sign with a range: what stands below and above it is read.
    (
        rf"(\\(?:sum|prod|min|max|int|lim|arg|sup|inf|oplus|bigoplus))\s*_({_ARGUMENT})(?:\^({_ARGUMENT}))?",
        r"\1 \2 \3 ",
    ),
    (rf"_{_ARGUMENT}", " "),
    (r"(?<![A-Za-z\\])e(?=\^)", " "),
    (r"\^\s*\{?(?:\([^)]*\)|\\top|\*|\\star|\\prime)\}?|\^(?:\{T\}|T)", " "),
    (_WORDS, " "),
)
_SYMBOL = re.compile(
    r"\\(mathcal|mathbb|mathfrak)\s*\{?\s*(\w)"
    r"|(\\(?:alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|vartheta|iota|kappa|lambda|mu|nu|xi|pi|varpi"
    r"|rho|varrho|sigma|varsigma|tau|upsilon|phi|varphi|chi|psi|omega"
    r"|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Upsilon|Phi|Psi|Omega|ell)(?![A-Za-z]))"
    r"|\\[A-Za-z]+|([A-Za-z])"
)


def formulas(text: str) -> list[str]:
    """The LaTeX of the formulas of a Markdown text in their order, without those in code."""
    return [found[1] or found[2] for found in _MATH.finditer(_NO_PROSE.sub(" ", text))]


def bases(latex: str) -> list[str]:
    """The symbols of a formula by the rules above, each once, in the order of their first appearance."""
    for pattern, instead in _NO_SYMBOL:
        latex = re.sub(pattern, instead, latex)
    found = _SYMBOL.findall(latex)
    letters = (rf"\{alphabet}{{{letter}}}" if alphabet else greek or latin for alphabet, letter, greek, latin in found)
    return list(dict.fromkeys(filter(None, letters)))


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
        return tuple(bases(self.latex))


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
    return list(dict.fromkeys(base for cell in cells for latex in formulas(cell) for base in bases(latex)))


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
        lines += ["", f"**{group}**", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for row in rows:
            used_first = {first[base] for base in row.bases if base in first}
            names = row.chapters or sorted(used_first, key=list(ways).index)
            links = ", ".join(f"[]({ways[name]})" for name in names if name in ways)
            cells = dict(zip(HEADS, (f"${row.latex}$", row.words, row.shape, links), strict=True))
            lines.append(f"| {' | '.join(cells[head] for head in heads)} |")
    return "\n".join(lines)


def chapters(root: Path) -> dict[str, list[str]]:
    """The Markdown cells of all chapters, in reading order."""
    return {path.stem: markdown(path) for path in reading_order(root) if path.suffix == ".ipynb"}
