"""The pages in their order and their minutes."""

import pytest
from conftest import ROOT
from small_book import code_cell

from bookbuilder import pages


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
