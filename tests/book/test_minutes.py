"""Reading times: exact on a small notebook, and what every chapter prints."""

import json

import pytest
from conftest import ROOT
from small_book import code_cell, notebook_of

from bookbuilder import minutes

CHAPTERS = sorted((ROOT / "book").glob("*.ipynb"))


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
    ],
)
def test_main_line(source, expected):
    assert minutes.count(notebook_of([text(source)])) == expected


@pytest.mark.parametrize(
    ("source", "figures"),
    [
        ('texts.figure("a", drawn)', 1),
        ('drawings.drawing("claim")', 1),
        ("from explainer.explorables import OneStep\nOneStep()", 1),
        ('%pip list\ntexts.table("a", rows)\nfigure = go.Figure()', 0),
    ],
)
def test_figures(source, figures):
    assert minutes.count(notebook_of([code_cell(source)])).figures == figures


def test_a_section_of_detail_is_left_out():
    cells = [
        text("# Title\n\nOne.\n\n### A part\n\nTwo.\n\n## Detail: more\n\nhidden $$ x $$ words"),
        code_cell('texts.figure("a", drawn)'),
        text("### A part of it\n\nhidden"),
        code_cell("from explainer.explorables import OneStep"),
        text("hidden\n\n## Details, please\n\nshown"),
        code_cell('texts.figure("b", drawn)'),
        text("## Detail\n\nhidden\n\n# End"),
    ]
    assert minutes.count(notebook_of(cells)) == (9, 0, 1)


def test_minutes():
    assert minutes.Count(words=500, equations=2, figures=3).minutes == 7.5


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("> **Before you read.** Fifteen minutes to read, two to run.", 15),
        ("About 22 minutes to read.", 22),
        ("Forty-five minutes to read.", 45),
        ("Some minutes to read.", None),
        ("Ten minutes to run.", None),
    ],
)
def test_printed(source, said):
    assert minutes.printed(notebook_of([text(source)])) == said


def test_a_wrong_number_is_a_problem():
    def problem(said):
        return minutes.problem(notebook_of([text(f"{said} minutes to read. " + "word " * 7996)]))

    assert problem(40) is problem(31) is problem(50) is None
    assert "8000 words" in problem(29) and "40 minutes are measured" in problem(51)
    assert "does not say" in minutes.problem(notebook_of([text("word")]))


@pytest.mark.parametrize("path", CHAPTERS, ids=[path.stem for path in CHAPTERS])
def test_every_chapter_prints_what_is_measured(path):
    assert minutes.problem(json.loads(path.read_text("utf-8"))) is None


def test_prints_all_chapters(tmp_path, capsys):
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook_of([text("One minute to read.")])))
    assert minutes.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == "a: 0 minutes are measured (4 words, 0 equations, 0 figures)\n"
