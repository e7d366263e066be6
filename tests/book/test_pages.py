"""The pages in their order, the way from one to another, their minutes, and the preview of the story."""

import json
from pathlib import Path

import pytest
from conftest import ROOT
from small_book import code_cell, notebook_of

from bookbuilder import directives, pages
from explainer.figures.texts import badge

TOC = """\
format: jb-book
root: book/intro
parts:
  - caption: First
    chapters:
      - file: book/one/a
  - caption: Second
    chapters:
      - file: book/all
        sections:
          - file: book/two/b
          - file: book/two/c
"""


@pytest.fixture
def book(tmp_path):
    (tmp_path / "_toc.yml").write_text(TOC)
    for name, text in {
        "intro": "# I", "all": "# All", "one/a": "# A\n\n> **The question.** Why [x](../two/b.md) | y?",
        "two/b": "# B\n\n" + "word " * 600,
    }.items():  # fmt: skip
        path = tmp_path / "book" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    cell = {"cell_type": "markdown", "id": "t", "metadata": {}, "source": "# C"}
    (tmp_path / "book" / "two" / "c.ipynb").write_text(json.dumps(notebook_of([cell])))
    return tmp_path


def test_sections_follow_the_page_that_opens_them(book):
    found = [path.relative_to(book / "book").as_posix() for path in pages.reading_order(book)]
    assert found == ["intro.md", "one/a.md", "all.md", "two/b.md", "two/c.ipynb"]


def test_the_way_from_page_to_page(book):
    assert pages.addresses(book, Path("book/two/c")) == {
        "intro": "../intro",
        "a": "../one/a",
        "all": "../all",
        "b": "b",
        "c": "c",
    }


def test_rows_have_title_question_and_minutes(book):
    assert directives.rows_of(book, Path("book/all"), "First") == [r"| [A](one/a.md) | Why x \| y? | 1 |"]
    rows = directives.rows_of(book, Path("book/all"), "Second")
    assert rows == ["| [B](two/b.md) |  | 4 |", "| [C](two/c.ipynb) |  | 1 |"]
    with pytest.raises(KeyError, match="Third"):
        directives.rows_of(book, Path("book/all"), "Third")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("word " * 600, 4),
        ("```{drawing} claim\n```\n\n" * 2 + "```{explorable} OneStep\n```\n\n" * 3, 6),
        ("| two | heads |\n|---|---:|\n" + "| many | words |\n" * 200 + "\n" + "word " * 150, 2),
        ("$a < b$ " + "word " * 149 + f"\n\n<details>\n\n{'hidden ' * 999}</details>\n\n`c > d` " + "word " * 150, 2),
        ("word " * 300 + "\n\n## More exercises\n\n" + "hidden " * 999 + "\n\n## After\n\n" + "word " * 150, 3),
        ("word " * 300 + "\n\n> **Exercise 1, easy.** " + "hidden " * 999 + "\n\n" + "word " * 150, 3),
    ],
)
def test_minutes_are_those_of_what_stands_open(text, expected):
    assert pages.minutes([{"cell_type": "markdown", "source": text}]) == expected


def test_visible_code_and_figures_take_minutes():
    code = "x = 1\n\n" * 20 + 'texts.figure("a", drawn)\ntexts.table("b")\n'
    hidden = [{"tags": ["hide-input"]}, {"tags": ["remove-cell"]}]
    assert [pages.minutes([code_cell(code * 2, metadata=its)]) for its in ({}, *hidden)] == [18, 3, 1]
    assert pages.minutes([code_cell("def step(x): ...\n" * 60 + "exercises.step(step)")]) == 1


def test_an_explorable_counts_where_it_is_shown():
    imports = code_cell(
        "from explainer.explorables import Ladder, OnePlane\nfrom explainer.page import LiveGPT\nLadder(rung=5)",
        metadata={"tags": ["remove-input"]},
    )
    shown = code_cell("OnePlane()\nprint(OnePlane)", metadata={"tags": ["remove-input"]})
    cells = [imports, shown, {"cell_type": "markdown", "source": "```{explorable} OneStep\n```"}]
    assert pages.to_read(cells) == {"words": 0, "figures": 0, "explorables": 3, "lines": 0}


def test_every_page_of_the_folders_is_in_the_contents():
    folders = [ROOT / "book", *(ROOT / "book" / name for name in ("chapters", "studies", "reference"))]
    written = {path for folder in folders for kind in ("*.ipynb", "*.md") for path in folder.glob(kind)}
    assert written == set(pages.reading_order(ROOT))
    assert len({path.stem for path in written}) == len(written)


def test_a_badge_has_a_kind_and_its_details():
    live, quoted = badge("Live: in 2 s <on> it."), badge("Quoted.")
    assert 'class="xp-badge xp-live" tabindex="0"' in live
    assert '<span class="xp-badge-more">in 2 s &lt;on&gt; it.</span>' in live
    assert 'class="xp-badge xp-quoted"' in quoted and "xp-badge-more" not in quoted
    with pytest.raises(ValueError, match="Computed somewhere"):
        badge("Computed somewhere")
