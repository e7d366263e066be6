"""The pages of the book in the order in which they are read: titles, texts, minutes."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

REFERENCE = ("laboratory", "notation", "glossary")
"""The pages of the back matter that belong to the main line."""
_NO_MAIN_LINE = re.compile(
    r"<details\b.*?</details>|</?[a-z]+(?:\s[^>\n]*)?>|(?<=\])\([^)\s]*\)|^(```+|~~~+).*?^\1\s*$"
    r"|^> \*\*Exercise \d.*?(?=^[^>]|\Z)|^## More exercises.*?(?=^##? |\Z)",
    re.DOTALL | re.MULTILINE,
)
"""What a reader opens or answers, tags, addresses and code."""
_EXERCISE = re.compile(r"^> \*\*Exercise \d", re.MULTILINE)
_STUB = re.compile(r"^exercises\.\w+\(\w+\)$", re.MULTILINE)
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_FENCE = re.compile(r"`{3,}\{(?:drawing|explorable)\}")
_FIGURE = re.compile(
    r"\b(?:texts\.(?:figure|table|drawing)|drawings\.drawing)\(|^`{3,}\{drawing\}|^!\[.*"
    r"|^\|.*\n\|(?:[ :]*-+[ :]*\|)+\n(?:\|.*(?:\n|\Z))*",
    re.MULTILINE,
)
"""A figure or a table, in code or in Markdown."""
_EXPLORABLE = re.compile(r"^`{3,}\{explorable\}", re.MULTILINE)
_EXPLORABLES = re.compile(r"^from explainer\.(?:explorables|page)[\w.]* import (\w+(?:, \w+)*)$", re.MULTILINE)
_SECONDS = {"words": 60 / 105, "figures": 60, "explorables": 120, "lines": 28}


# The order.


def parts(root: Path) -> list[tuple[str, list[str]]]:
    """The parts of the table of contents: caption and pages of each. The first page stands alone, under ""."""
    toc = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))

    def below(entries: list[dict]) -> Iterator[str]:
        for entry in entries:
            yield entry["file"]
            yield from below(entry.get("sections", []))

    return [
        ("", [toc["root"]]),
        *((part.get("caption", ""), list(below(part["chapters"]))) for part in toc.get("parts", [toc])),
    ]


def names(root: Path) -> list[str]:
    """The pages of the table of contents without their endings, those of a section after the page that opens it."""
    return [name for _, names in parts(root) for name in names]


def main_line(root: Path = Path()) -> list[str]:
    """The pages that other languages have: no studies, and little of the back matter."""

    def there(name: str) -> bool:
        folder, _, page = name.rpartition("/")
        return page in REFERENCE if folder.endswith("reference") else not folder.endswith("studies")

    return [name for name in names(root) if there(name) and name != "book/contents"]


def reading_order(root: Path) -> list[Path]:
    """The pages of the book from first to last, as its table of contents has them."""
    paths = [root / f"{name}{end}" for name in names(root) for end in (".ipynb", ".md")]
    return [path for path in paths if path.exists()]


def addresses(root: Path, start: Path) -> dict[str, str]:
    """The way to each page from the folder of the page `start`, without its ending, by its name; names are unique."""
    return {Path(name).name: os.path.relpath(name, start.parent) for name in names(root)}


# A page.


def cells(path: Path) -> list[dict[str, Any]]:
    """The cells of a chapter, or a page of prose as one cell."""
    text = path.read_text("utf-8")
    return json.loads(text)["cells"] if path.suffix == ".ipynb" else [{"cell_type": "markdown", "source": text}]


def markdown(path: Path) -> list[str]:
    """The Markdown cells of a page."""
    return [_source(cell) for cell in cells(path) if cell["cell_type"] == "markdown"]


def path_of(name: str, root: Path = Path()) -> Path:
    """The source of a page."""
    return next(path for end in (".ipynb", ".md") if (path := root / f"{name}{end}").exists())


def title(path: Path) -> str:
    """The title of a page."""
    found = re.search(r"^# (.+)$", "\n".join(markdown(path)), re.MULTILINE)
    return found[1] if found else path.stem


def exercises(content: list[Mapping[str, Any]]) -> int:
    """How many exercises a page's cells have."""
    return sum(len(_EXERCISE.findall(_source(cell))) for cell in content if cell["cell_type"] == "markdown")


def minutes(content: list[Mapping[str, Any]]) -> int:
    """Minutes for what a reader sees of a page's cells without opening anything, rounded, exercises left out.

    105 words a minute, a figure or table 60 seconds, an explorable 120, a line of code 28: two students took this sum.
    """
    return max(1, round(sum(_SECONDS[what] * number for what, number in to_read(content).items()) / 60))


def sections(content: list[Mapping[str, Any]]) -> dict[str, int]:
    """Minutes of each section of a page by its heading, "" before the first; spare exercises are left out."""
    lines = [found[0] for cell in content for found in _EXPLORABLES.finditer(_source(cell))]
    imports = {"cell_type": "code", "metadata": {"tags": ["remove-input"]}, "source": "\n".join(lines)}
    parts: dict[str, list[Mapping[str, Any]]] = {"": [imports]}
    for cell in content:
        before, *later = _HEADING.split(_source(cell)) if cell["cell_type"] == "markdown" else [_source(cell)]
        parts[next(reversed(parts))].append({**cell, "source": before})
        for heading, text in zip(later[::2], later[1::2], strict=True):
            parts[heading] = [imports, {**cell, "source": text}]
    return {heading: minutes(cells) for heading, cells in parts.items() if heading != "More exercises"}


def to_read(content: list[Mapping[str, Any]]) -> dict[str, int]:
    """How many words, figures and tables, explorables and visible lines of code stand open on a page."""

    def kept(found: re.Match) -> str:
        drawn = _FENCE.match(found[0])  # of what is not read the line that begins a drawing or an explorable
        return f"\n{drawn[0]}\n" if drawn else " "

    text = _NO_MAIN_LINE.sub(kept, "\n\n".join(_source(cell) for cell in content if cell["cell_type"] == "markdown"))
    closed = {"remove-cell", "hide-cell", "hide-output"}
    code = [cell for cell in content if cell["cell_type"] == "code" and closed.isdisjoint(_tags(cell))]
    all_code = "\n".join(map(_source, code))
    imported = {name for names in _EXPLORABLES.findall(all_code) for name in names.split(", ")}
    shown = [name for name in re.findall(r"^(\w+)\(", all_code, re.MULTILINE) if name in imported]
    words = _EXPLORABLE.sub(" ", _FIGURE.sub(" ", text)).split()
    return {
        "words": sum(bool(re.search(r"\w", word)) for word in words),
        "figures": len(_FIGURE.findall(text)) + len(_FIGURE.findall(all_code)),
        "explorables": len(_EXPLORABLE.findall(text)) + len(shown),
        "lines": sum(len(re.findall(r"^.*\S.*$", _source(cell), re.MULTILINE)) for cell in code if _is_open(cell)),
    }


def _source(cell: Mapping[str, Any]) -> str:
    return "".join(cell["source"])


def _tags(cell: Mapping[str, Any]) -> list[str]:
    return cell.get("metadata", {}).get("tags", [])


def _is_open(cell: Mapping[str, Any]) -> bool:
    """Whether a page shows the code of a cell; that of an exercise belongs to the exercise."""
    hidden = any(tag.startswith(("hide-input", "hide-cell", "remove-")) for tag in _tags(cell))
    return not hidden and not _STUB.search(_source(cell))
