"""The exercises' folded solutions: each that has a check passes it, as a reader's own answer would."""

import inspect
import json
import re

import numpy as np
import pytest
import torch
from conftest import ROOT

from explainer import exercises

DETAILS = re.compile(r"<details><summary>Solution</summary>(.*?)</details>", re.DOTALL)
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
CALL = re.compile(r"`exercises\.(\w+)\((\w+)\)`")


def _solved_exercises():
    """(chapter, check, name of the reader's function, solution) for every exercise that names a check."""
    for path in sorted((ROOT / "book").glob("*.ipynb")):
        cells = json.loads(path.read_text("utf8"))["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        for exercise in re.split(r"> \*\*Exercise \d+\.\*\*", text)[1:]:
            solution = DETAILS.search(exercise)
            assert solution, f"{path.name}: an exercise has no folded solution"
            code = "\n".join(CODE.findall(solution[1]))
            for check, name in CALL.findall(exercise[: solution.start()]):
                yield pytest.param(check, name, code, id=f"{path.stem}-{check}")


@pytest.mark.parametrize(("check", "name", "code"), list(_solved_exercises()))
def test_solution_passes_its_check(check, name, code, capsys):
    space = {"np": np, "torch": torch}
    exec(code, space)  # our own committed text
    getattr(exercises, check)(space[name])
    assert "Passed" in capsys.readouterr().out


OWN = [
    n
    for n, f in inspect.getmembers(exercises, inspect.isfunction)
    if f.__module__ == exercises.__name__ and n[0] != "_"
]


@pytest.mark.parametrize("check", OWN)
def test_check_refuses_a_stub(check):
    """A function that returns None, the state of an unsolved exercise, fails with a hint and not with a crash."""
    with pytest.raises(AssertionError, match=r"\w"):
        getattr(exercises, check)(lambda *arguments, **options: None)
