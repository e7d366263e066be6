"""Counting plumbing: exact on a small notebook, and the bar for every chapter."""

import json

import pytest
from conftest import ROOT
from small_book import code_cell, notebook_of

from bookbuilder import plumbing

IDEA = [
    "loss = ((W @ x - y) ** 2).sum()",
    "assert loss < 1",
    'print(f"loss {loss:.2f}, {n:,} steps")',
    "for x in rows:\n    W = W - lr * gradient(x)",
    "pd.DataFrame(errors).round(2)",
    'finding("It learns", loss, "<", 1)',
    'data = tasks.load("capitals")',
    "finished = reporting.stored(grid, task=name)",
]
PLUMBING = [
    "import torch",
    "from explainer import tasks",
    'texts = Texts("chapter")',
    'words.figure("name", drawn, n=3)',
    "Captioned(\n    drawn,\n    caption,\n)",
    "drawn.update_yaxes(range=[0, 1])",
    'x_title = "steps"',
    'print(f"{name:<9} {loss}")',
    'print(f"{loss:10.2f}")',
    'print("name      loss")',
    'grids = study.read_grids(store.published_directory() / "grids.toml")',
    "started = time.perf_counter()",
    "torch.set_num_threads(1)",
]


@pytest.mark.parametrize(("source", "found"), [(s, False) for s in IDEA] + [(s, True) for s in PLUMBING])
def test_statement(source, found):
    count = plumbing.count(notebook_of([code_cell('words = Texts("x")', metadata=HIDDEN), code_cell(source)]))
    lines = source.split("\n")
    assert count == (len(lines), [("x", line) for line in lines] if found else [])


HIDDEN = {"tags": ["hide-input"]}


def test_counts_visible_lines_of_code_only():
    source = "# why\nimport torch\n\nfor i in range(3):\n    print(f'{i:>3}')\n    x = i\n%pip list"
    cells = [code_cell("import os", metadata={"tags": ["remove-cell"]}), code_cell(source)]
    count = plumbing.count(notebook_of(cells))
    assert count == (5, [("x", "import torch"), ("x", "    print(f'{i:>3}')")])
    assert count.share == 0.4
    assert plumbing.count(notebook_of(cells[:1])).share == 0


def test_prints_shares_and_lines(tmp_path, capsys):
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook_of([code_cell("import os\nx = 1")])))
    assert plumbing.main([str(tmp_path), "--lines"]) == 0
    assert capsys.readouterr().out == "a: 1 of 2 lines, 50.0%\n    x: import os\n"


def test_every_chapter_keeps_the_bar():
    shares = {name: its.share for name, its in plumbing.chapters(ROOT / "book").items()}
    assert {name: share for name, share in shares.items() if share > plumbing.BAR} == {}
