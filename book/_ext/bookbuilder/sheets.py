"""`make exercises`: the exercises of all pages, and the problems, as notebooks without and with solutions.

Statements, stubs and solutions are taken from the pages; the problems and their solutions from `book/_teaching`, of
which the site shows the statements only (`{problems}`).
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from docutils.parsers.rst import Directive

from bookbuilder import notebooks, pages
from bookbuilder.directives import parsed
from explainer.data.files import replace_file

PROBLEMS = Path("book/_teaching/problems.md")
_EXERCISE = re.compile(r"^> \*\*Exercise (\d+, \w+)\.\*\* *((?:.*\n?)(?:^>.*\n?)*)", re.MULTILINE)
_SOLUTION = re.compile(r"<details><summary>Solution</summary>\n(.*?)</details>", re.DOTALL)
_CODE = re.compile(r"```python\n(.*?)\n```", re.DOTALL)
_TO_WRITE = re.compile(r"^def .*: \.\.\.(?:  #.*)?\n*", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^][]+)\]\((?!https?:)[^)]*\)")
_IMPORTS = "import numpy as np\nimport torch\nfrom explainer import exercises"


class Exercise(NamedTuple):
    """A number with its difficulty, the statement, the stubs of code, and the solution, both as Markdown."""

    number: str
    statement: str
    stubs: tuple[str, ...]
    solution: str


def exercises(content: Sequence[Mapping[str, Any]]) -> list[Exercise]:
    """The exercises of a page's cells; raises ValueError for one without a solution."""
    sources = ((cell["cell_type"], "".join(cell["source"])) for cell in content)
    text = "\n\n".join(one if kind == "markdown" else f"```python\n{one}\n```" for kind, one in sources)
    begins, found = list(_EXERCISE.finditer(text)), []
    for begin, end in zip(begins, [*(one.start() for one in begins[1:]), len(text)], strict=False):
        rest = text[begin.end() : end]
        if not (solution := _SOLUTION.search(rest)):
            raise ValueError(f"exercise {begin[1]} has no folded solution")
        stubs = tuple(code for code in _CODE.findall(rest[: solution.start()]) if _TO_WRITE.search(code))
        statement = re.sub(r"^> ?", "", begin[2], flags=re.MULTILINE).strip()
        found.append(Exercise(begin[1], statement, stubs, solution[1].strip()))
    return found


def sheet(path: Path, *, solved: bool) -> dict[str, Any] | None:
    """A notebook of a page's exercises, with the code of the page that they need; none if the page has none."""
    content = pages.cells(path)
    if not (found := exercises(content)):
        return None
    code = [cell["source"] for cell in content[1:] if cell["cell_type"] == "code"]
    used = [code for one in found for code in (*one.stubs, *_CODE.findall(one.solution))]
    title = "Problems" if path.name == PROBLEMS.name else f"Exercises: {pages.title(path)}"
    cells = [_text(f"# {title}"), *map(_code, [_IMPORTS, *_needed(["".join(one) for one in code], used)])]
    for one in found:
        cells += [_text(f"**{one.number.capitalize()}.** {one.statement}"), *(_solved(one) if solved else _open(one))]
    return notebooks.mended({"cells": cells})


def _open(one: Exercise) -> list[dict[str, Any]]:
    return [*map(_code, one.stubs)] or [_text("*Your answer.*")]


def _solved(one: Exercise) -> Iterator[dict[str, Any]]:
    """The solution's text and code in turn, then what checks it in the stubs."""
    for i, part in enumerate(_CODE.split(one.solution)):
        if part.strip():
            yield _code(part) if i % 2 else _text(part.strip())
    yield from (_code(check) for stub in one.stubs if (check := _TO_WRITE.sub("", stub).strip()))


def _needed(code: Sequence[str], used: Sequence[str]) -> list[str]:
    """The cells that define a name that `used`, or a needed cell, takes from outside; stubs define nothing."""
    defined = set().union(*(_names(one)[1] for one in (_IMPORTS, *used)))
    wanted, kept = set().union(*(_names(one)[0] for one in used)) - defined, []
    for source in reversed([one for one in code if not _TO_WRITE.search(one)]):
        read, made = _names(source)
        if made & wanted:
            kept.insert(0, source)
            wanted = wanted - made | read
    return kept


def _names(code: str) -> tuple[set[str], set[str]]:
    """The names that code takes from outside, and those that it defines."""
    found = list(ast.walk(ast.parse(code)))
    names = [node for node in found if isinstance(node, ast.Name)]
    made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    made |= {node.arg for node in found if isinstance(node, ast.arg)}
    made |= {node.name for node in found if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    made |= {node.asname or node.name.partition(".")[0] for node in found if isinstance(node, ast.alias)}
    return {node.id for node in names} - made, made


def _text(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": _LINK.sub(r"\1", source)}


def _code(source: str) -> dict[str, Any]:
    return {"cell_type": "code", "metadata": {}, "source": source}


def problems(here: Directive) -> list[nodes.Node]:
    """`{problems}`: the statements of the problems, each in a fold."""
    environment = here.state.document.settings.env
    path = Path(environment.srcdir) / PROBLEMS
    environment.note_dependency(str(path))
    folds = []
    for one in exercises(pages.cells(path)):
        title, _, statement = one.statement.partition(". ")
        code = "\n\n".join(f"```python\n{stub}\n```" for stub in one.stubs)
        summary = f"<summary>{one.number}: {title.replace('*', '')}</summary>"
        folds.append(f"<details>{summary}\n\n{statement}\n\n{code}\n\n</details>")
    return parsed(here, "\n\n".join(folds))


def main(folder: Path) -> int:
    """Write `questions` and `solutions` into a folder, a notebook for each page that has exercises."""
    for path in (*pages.reading_order(Path()), PROBLEMS):
        for kind in ("questions", "solutions"):
            if notebook := sheet(path, solved=kind == "solutions"):
                (folder / kind).mkdir(parents=True, exist_ok=True)
                replace_file(folder / kind / f"{path.stem}.ipynb", notebooks.text_of(notebook))
    print(f"Exercises and problems are in {folder}/questions, their solutions in {folder}/solutions.")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1])))
    except OSError as error:
        sys.exit(f"The exercises were not written: {error}.")
