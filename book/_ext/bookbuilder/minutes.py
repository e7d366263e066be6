"""How long the main line of a chapter takes to read: `python -m bookbuilder.minutes book`.

The main line is what a reader sees without opening anything and without reading code: the words of the Markdown cells
outside folds (`<details>`), at 200 words a minute, and a minute for each displayed equation and for each figure,
drawing or explorable. A formula in a sentence counts as one word, an address as none. A section whose heading begins
with the word "Detail" is left out as a fold is: it has code cells, which no fold can hold, and the chapter says that it
may be left out. The number that a chapter prints in its box "Before you read" ("Fifteen minutes to read") has to agree
within five minutes or a quarter of what is measured.
"""

import argparse
import ast
import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

from bookbuilder import symbols

WORDS_A_MINUTE = 200
SLACK, SHARE = 5, 0.25
_FOLD = re.compile(r"<details\b.*?</details>", re.DOTALL)
_HEADING = re.compile(r"^(#+) +(Detail\b)?", re.MULTILINE)
_TAG = re.compile(r"<[^>]+>")
_ADDRESS = re.compile(r"\]\([^)\s]*\)")
_WORD = re.compile(r"[^\W_]")
_PRINTED = re.compile(r"([\w-]+) minutes? to read", re.IGNORECASE)
_SMALL = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


class Count(NamedTuple):
    """What the main line of a chapter holds."""

    words: int
    equations: int
    figures: int

    @property
    def minutes(self) -> float:
        """Words at 200 a minute, and a minute for each equation and figure."""
        return self.words / WORDS_A_MINUTE + self.equations + self.figures


def count(notebook: dict) -> Count:
    """Count the main line of a notebook (as parsed JSON)."""
    words = equations = figures = 0
    detail = 0  # depth of the heading of the section that is left out
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            figures += 0 if detail else _figures(source)
            continue
        text, detail = _main_line(symbols.without_code(_FOLD.sub(" ", source)), detail)
        found = symbols.formulas(text)
        equations += sum(one.displayed for one in found)
        for one in reversed(found):
            text = text[: one.start] + (" " if one.displayed else "x") + text[one.start + one.length :]
        text = _TAG.sub(" ", _ADDRESS.sub("]", text))
        words += sum(bool(_WORD.search(word)) for word in text.split())
    return Count(words, equations, figures)


def _main_line(text: str, detail: int) -> tuple[str, int]:
    """A text without its sections of detail, and the depth of the one that goes on after it; 0 stands for none."""
    kept, start = [], 0
    for heading in _HEADING.finditer(text):
        kept.append("" if detail else text[start : heading.start()])
        start, depth = heading.start(), len(heading[1])
        if not detail or depth <= detail:
            detail = depth if heading[2] else 0
    return "".join([*kept, "" if detail else text[start:]]), detail


def _figures(source: str) -> int:
    """Calls that show something to look at: a chapter's figure or drawing, or an explorable."""
    tree = ast.parse(re.sub(r"^(\s*)[%!].*", r"\1pass", source, flags=re.MULTILINE))
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    shown = sum(isinstance(call, ast.Attribute) and call.attr in ("figure", "drawing") for call in calls)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return shown + sum((node.module or "").startswith("explainer.explorables") for node in imports)


def printed(notebook: dict) -> int | None:
    """The minutes to read that a chapter prints, in digits or in words up to ninety-nine."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown" and (found := _PRINTED.search("".join(cell["source"]))):
            return _number(found[1].lower())
    return None


def _number(text: str) -> int | None:
    if text.isdecimal():
        return int(text)
    tens, _, rest = text.partition("-")
    if tens in _TENS and rest in ("", *_SMALL[1:10]):
        return 10 * (_TENS.index(tens) + 2) + (_SMALL.index(rest) if rest else 0)
    return _SMALL.index(text) if text in _SMALL else None


def problem(notebook: dict) -> str | None:
    """What is wrong with the printed minutes, in plain words."""
    its, said = count(notebook), printed(notebook)
    if said is None:
        return 'its box "Before you read" does not say how many minutes it takes to read'
    if abs(said - its.minutes) > max(SLACK, SHARE * its.minutes):
        return f"it prints {said} minutes to read; {described(its)}"
    return None


def described(its: Count) -> str:
    """The measurement as words."""
    parts = f"{its.words} words, {its.equations} equations, {its.figures} figures"
    return f"{its.minutes:.0f} minutes are measured ({parts})"


def main(arguments: list[str] | None = None) -> int:
    """Print what each chapter prints and what is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    failed = False
    for path in sorted(parser.parse_args(arguments).folder.glob("*.ipynb")):
        notebook = json.loads(path.read_text("utf-8"))
        wrong = problem(notebook)
        failed |= wrong is not None
        print(f"{path.stem}: {wrong or described(count(notebook))}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
