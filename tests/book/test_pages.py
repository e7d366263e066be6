"""The pages in their order and their minutes."""

import pytest
from conftest import ROOT

from bookbuilder import pages


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("word " * 600, 6),
        ("```{drawing} claim\n```\n\n" * 2 + "```{explorable} OneStep\n```\n\n" * 3, 8),
        ("| two | heads |\n|---|---:|\n" + "| many | words |\n" * 200 + "\n" + "word " * 150, 2),
        ("$a < b$ " + "word " * 149 + f"\n\n<details>\n\n{'hidden ' * 999}</details>\n\n`c > d` " + "word " * 150, 3),
        ("word " * 300 + "\n\n## More exercises\n\n" + "hidden " * 999 + "\n\n## After\n\n" + "word " * 150, 4),
        ("word " * 300 + "\n\n> **Exercise 1, easy.** " + "hidden " * 999 + "\n\n" + "word " * 150, 4),
    ],
)
def test_minutes_are_those_of_what_stands_open(text, expected):
    assert pages.minutes([{"cell_type": "markdown", "source": text}]) == expected


def test_every_page_of_the_folders_is_in_the_contents():
    folders = [ROOT / "book", *(ROOT / "book" / name for name in ("chapters", "studies", "reference"))]
    written = {path for folder in folders for kind in ("*.ipynb", "*.md") for path in folder.glob(kind)}
    assert written == set(pages.reading_order(ROOT))
    assert len({path.stem for path in written}) == len(written)
