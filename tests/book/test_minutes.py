"""Reading times: exact on a small notebook."""

import json

import pytest
from small_book import code_cell, notebook_of

from bookbuilder import minutes

STUB = "def step(x): ...\n\n\nexercises.step(step)"
HIDDEN = {"tags": ["hide-input"]}


def text(source):
    return {"cell_type": "markdown", "id": "t", "metadata": {}, "source": source}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Two words.", (2, 0, 0)),
        ("# A title\n\n> **A box.** With $x + y$ and [a link](https://example.org/a/b).", (9, 0, 0)),
        ("One\n\n$$ x = y $$\n\ntwo $$ z $$ three.", (3, 2, 0)),
        ("Before\n<details><summary>More</summary>\n\nhidden $$ x $$ words\n\n</details>\nafter — all", (3, 0, 0)),
        ("```python\nsome code\n```\nand `x = 1` words", (2, 0, 0)),
        (
            "```{drawing} claim\n```\n\n:::{note}\nOne\n:::\n\n```{explorable} OneStep\n```",
            (2, 0, 2),
        ),
        (
            "Before\n\n> **Exercise 1, easy.** Not\n> counted.\n\nafter",
            (2, 0, 0),
        ),
        (
            "One\n\n## More exercises\n\nhidden $$ x $$\n\n## After\n\ntwo",
            (3, 0, 0),
        ),
    ],
)
def test_words_equations_and_figures_of_a_text(source, expected):
    assert minutes.count_text(source)[:3] == expected


@pytest.mark.parametrize(
    ("cell", "figures", "cells", "lines"),
    [
        (code_cell('texts.figure("a", drawn)', metadata=HIDDEN), 1, 0, 0),
        (
            code_cell('drawings.drawing("claim")', metadata={"tags": ["remove-input"]}),
            1,
            0,
            0,
        ),
        (
            code_cell('drawings.drawing("claim")', metadata={"tags": ["remove-cell"]}),
            0,
            0,
            0,
        ),
        (
            code_cell("from explainer.explorables import OneStep\n\nOneStep(rate=1)"),
            1,
            0,
            0,
        ),
        (code_cell("x = 1\n\n# why\ny = 2"), 0, 1, 3),
        (code_cell("%pip list\nx = 1"), 0, 1, 2),
        (code_cell(STUB), 0, 0, 0),
    ],
)
def test_figures_cells_and_lines_of_code(cell, figures, cells, lines):
    assert minutes.count(notebook_of([cell])) == (0, 0, figures, cells, lines)


def test_spare_exercises_are_left_out_with_their_cells():
    cells = [
        text("# Title"),
        code_cell("x = 1"),
        text("## More exercises"),
        text("hidden words"),
        code_cell("y = 1"),
    ]
    assert minutes.count(notebook_of([*cells, text("## After\n\nshown")])) == (
        3,
        0,
        0,
        1,
        1,
    )


def test_minutes():
    assert minutes.Count(words=500, equations=2, figures=3, cells=2, lines=10).minutes == 5.5


def test_prints_all_pages(tmp_path, capsys):
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook_of([text("word " * 400)])))
    (tmp_path / "b.md").write_text("word " * 200)
    assert minutes.main([str(tmp_path)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "a: 2.0 minutes, 400 words, 0 equations, 0 figures, 0 cells, 0 lines"
    assert out[-1] == "together: 3 minutes"
