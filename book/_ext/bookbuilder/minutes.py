"""How long the main line of a page takes to read: `python -m bookbuilder.minutes book/chapters`.

The main line is what a reader sees without opening anything: the words of the Markdown cells outside folds, at 200 a
minute; visible code at 20 lines a minute; half a minute for each displayed equation and for each figure, drawing or
explorable. A formula in a sentence counts as one word, an address as none. Exercises are not counted: neither their
texts nor the cells in which a reader answers.
"""

import argparse
import ast
import json
import re
from pathlib import Path
from typing import NamedTuple

from bookbuilder import symbols

WORDS_A_MINUTE = 200
LINES_A_MINUTE = 20
_FOLD = re.compile(r"<details\b.*?</details>", re.DOTALL)
_EXERCISE = re.compile(r"^> \*\*Exercise \d.*?(?=^[^>]|\Z)", re.DOTALL | re.MULTILINE)
_SPARE = re.compile(r"^## More exercises.*?(?=^##? |\Z)", re.DOTALL | re.MULTILINE)
_STUB = re.compile(r"^exercises\.\w+\(\w+\)$", re.MULTILINE)
_TAG = re.compile(r"<[^>]+>")
_ADDRESS = re.compile(r"\]\([^)\s]*\)")
_WORD = re.compile(r"[^\W_]")
_SHOWN = re.compile(r"^`{3,}\{(?:drawing|explorable)\}|!\[", re.MULTILINE)


class Count(NamedTuple):
    """What the main line of a page holds."""

    words: int = 0
    equations: int = 0
    figures: int = 0
    cells: int = 0
    lines: int = 0

    @property
    def minutes(self) -> float:
        """Words, equations, figures and lines of code, each at its pace."""
        return self.words / WORDS_A_MINUTE + (self.equations + self.figures) / 2 + self.lines / LINES_A_MINUTE


def count(notebook: dict) -> Count:
    """Count the main line of a notebook (as parsed JSON)."""
    total, spare = Count(), False
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and re.match(r"##? ", source):
            spare = source.startswith("## More exercises")
        if not spare:
            one = _code(source, cell) if cell["cell_type"] == "code" else count_text(source)
            total = Count(*map(sum, zip(total, one, strict=True)))
    return total


def count_text(text: str) -> Count:
    """Count a Markdown text."""
    figures = len(_SHOWN.findall(text))
    for left_out in (_FOLD, _SPARE, _EXERCISE):
        text = left_out.sub(" ", text)
    text = symbols.without_code(text)
    found = symbols.formulas(text)
    for one in reversed(found):
        formula = " " if one.displayed else " x "
        text = text[: one.start] + formula + text[one.start + one.length :]
    words = sum(bool(_WORD.search(word)) for word in _TAG.sub(" ", _ADDRESS.sub("]", text)).split())
    return Count(words, sum(one.displayed for one in found), figures)


def visible(cell: dict) -> bool:
    """Whether a reader of the site sees the code of a cell."""
    tags = cell["metadata"].get("tags", [])
    return not any(tag.startswith(("hide-input", "hide-cell", "remove-")) for tag in tags)


def _code(source: str, cell: dict) -> Count:
    if not visible(cell):
        return Count(figures=_figures(source) if "remove-cell" not in cell["metadata"].get("tags", []) else 0)
    if _STUB.search(source):
        return Count()
    lines = [line for line in source.splitlines() if line.strip()]
    only_shows = all(re.match(r"from explainer\.(?:explorables|page) import|[A-Z]\w+\(.*\)$", line) for line in lines)
    return Count(figures=_figures(source)) if only_shows else Count(0, 0, _figures(source), 1, len(lines))


def _figures(source: str) -> int:
    """Calls that show something to look at: a chapter's figure or drawing, or an explorable."""
    tree = ast.parse(re.sub(r"^(\s*)[%!].*", r"\1pass", source, flags=re.MULTILINE))
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    shown = sum(isinstance(call, ast.Attribute) and call.attr in ("figure", "drawing") for call in calls)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return shown + sum((node.module or "").startswith(("explainer.explorables", "explainer.page")) for node in imports)


def of_page(path: Path) -> Count:
    """Count a chapter or a page of prose."""
    text = path.read_text("utf-8")
    return count(json.loads(text)) if path.suffix == ".ipynb" else count_text(text)


def main(arguments: list[str] | None = None) -> int:
    """Print what each page of a folder holds, and the sum."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    total = 0.0
    for path in sorted([*folder.glob("*.ipynb"), *folder.glob("*.md")]):
        its = of_page(path)
        total += its.minutes
        print(f"{path.stem}: {its.minutes:.1f} minutes, {', '.join(f'{v} {k}' for k, v in its._asdict().items())}")
    print(f"together: {total:.0f} minutes")
    return 0


if __name__ == "__main__":
    main()
