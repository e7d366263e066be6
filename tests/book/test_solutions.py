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


def solved_exercises():
    """(check, name of the reader's function, solution) for every exercise that names a check."""
    for path in sorted((ROOT / "book").rglob("*.ipynb")):
        text = ""
        for cell in pages.cells(path):
            source = "".join(cell["source"])
            calls = "".join(f"`{call}`" for call in STUB.findall(source))  # of code only the checks that it calls
            text += (source if cell["cell_type"] == "markdown" else calls) + "\n\n"
        for exercise in re.split(r"> \*\*Exercise \d+[^*]*\*\*", text)[1:]:
            solution = DETAILS.search(exercise)
            assert solution, f"{path.name}: an exercise has no folded solution"
            code = "\n".join(CODE.findall(solution[1]))
            for check, name in CALL.findall(exercise[: solution.start()]):
                yield pytest.param(check, name, code, id=f"{path.stem}-{check}")


@pytest.mark.parametrize(("check", "name", "code"), list(solved_exercises()))
def test_solution_passes_its_check(check, name, code, capsys):
    space = {"np": np, "torch": torch}
    exec(code, space)  # our own committed text
    getattr(exercises, check)(space[name])
    assert "Passed" in capsys.readouterr().out
