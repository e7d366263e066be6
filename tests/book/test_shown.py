"""How the site shows a chapter: minutes under the title, findings in one fold, spare exercises in another."""

import pytest
from small_book import code_cell, notebook_of

from bookbuilder import shown
from explainer import findings

STATEMENT = "<b>It</b> falls"


def text(source):
    return {"cell_type": "markdown", "id": "t", "metadata": {}, "source": source}


def shown_page(name, *cells, repository=None):
    """The sources of the cells that the site shows of a page with these."""
    made = shown.chapter(notebook_of(list(cells)), f"book/{name}", repository)["cells"]
    return ["".join(cell["source"]) for cell in made]


def test_minutes_stand_below_the_title_and_the_code_is_named_at_the_end():
    asked = "\n\n> **Exercise 1, easy.** Write it.\n\n> **Exercise 2, hard.** Prove it."
    title, minutes, rest, _ = shown_page("chapters/a", text(f"# Title\n\n{'words ' * 100}{asked}"))
    assert title == "# Title" and rest.startswith("words")
    assert minutes == '<p class="xp-minutes">1 minute to read, 2 exercises besides</p>'
    code = code_cell("import explainer\nfrom explainer.theory import duality, momentum")
    *_, end, line = shown_page("studies/a", text("# Title"), code, text("end"))
    assert end == "end" and '<a href="../../_sources/book/studies/a.ipynb">the notebook of this page</a>' in line
    assert "theory/duality.py, theory/momentum.py" in line
    *_, line = shown_page("studies/a", code, repository="https://github.com/org/name")
    for name in ("duality", "momentum"):
        address = f"https://github.com/org/name/blob/main/src/explainer/theory/{name}.py"
        assert f'<a href="{address}">theory/{name}.py</a>' in line


@pytest.mark.parametrize(
    ("values", "said", "opens"),
    [
        ([0.5], "1 finding of this page holds here", False),
        ([0.5, 0.6], "2 findings of this page hold here", False),
        ([0.5, 2], "1 of 2 findings of this page did not hold here", True),
    ],
)
def test_findings_move_into_one_fold(values, said, opens):
    made = [findings._Shown(findings.Finding(STATEMENT, value, "<", 1), None)._repr_mimebundle_() for value in values]
    outputs = [{"output_type": "display_data", "data": data, "metadata": {}} for data in made]
    cells = [code_cell("finding()", outputs=[one]) for one in outputs]
    title, end, fold = shown_page("reference/a", text("# T"), *cells, text("end"))
    assert (title, end) == ("# T", "end")
    assert f"<summary>{said}</summary>" in fold and (" open>" in fold) == opens
    assert fold.count("&lt;b&gt;It&lt;/b&gt; falls") == len(values)
