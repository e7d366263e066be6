"""The exercises' folded solutions: each that has a check passes it, as a reader's own answer would."""

import re

import numpy as np
import pytest
import torch
from conftest import ROOT

from bookbuilder import pages
from explainer import exercises

DETAILS = re.compile(r"<details><summary>Solution</summary>(.*?)</details>", re.DOTALL)
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
CALL = re.compile(r"`exercises\.(\w+)\((\w+)\)`")
STUB = re.compile(r"^exercises\.\w+\(\w+\)$", re.MULTILINE)


def chapters():
    """(path, cells) of every chapter."""
    for path in sorted((ROOT / "book").rglob("*.ipynb")):
        yield path, [(cell["cell_type"], "".join(cell["source"])) for cell in pages.cells(path)]


def told(kind, source):
    """A cell as text; of code only the checks that it calls."""
    return source if kind == "markdown" else "".join(f"`{call}`" for call in STUB.findall(source))


def solved_exercises():
    """(check, name of the reader's function, solution) for every exercise that names a check."""
    for path, cells in chapters():
        text = "\n\n".join(told(*cell) for cell in cells)
        for exercise in re.split(r"> \*\*Exercise \d+[^*]*\*\*", text)[1:]:
            solution = DETAILS.search(exercise)
            assert solution, f"{path.name}: an exercise has no folded solution"
            code = "\n".join(CODE.findall(solution[1]))
            for check, name in CALL.findall(exercise[: solution.start()]):
                yield pytest.param(check, name, code, id=f"{path.stem}-{check}")


def stubs():
    """Every cell in which a reader writes an answer."""
    for path, cells in chapters():
        for kind, source in cells:
            if kind == "code" and STUB.search(source):
                yield pytest.param(source, id=f"{path.stem}-{STUB.search(source)[0]}")


@pytest.mark.parametrize(("check", "name", "code"), list(solved_exercises()))
def test_solution_passes_its_check(check, name, code, capsys):
    space = {"np": np, "torch": torch}
    exec(code, space)  # our own committed text
    getattr(exercises, check)(space[name])
    assert "Passed" in capsys.readouterr().out


@pytest.mark.parametrize("source", list(stubs()))
def test_a_stub_cell_gets_the_hint(source, capsys):
    exec(source, {"np": np, "torch": torch, "exercises": exercises})  # our own committed text
    assert capsys.readouterr().out.startswith("Your turn")
