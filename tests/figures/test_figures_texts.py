"""The words around the figures: filled in exactly, one entry for each figure of a chapter, none left over."""

import json
import re
import tomllib

import plotly.graph_objects as go
import pytest
from conftest import ROOT

from explainer.figures import drawings, texts

WORDS = ROOT / "src" / "explainer" / "figures" / "words"


@pytest.fixture
def words(monkeypatch):
    own = {
        "a": {"caption": "n = {n},\nof {of:.1f}.", "alt": "At {of[GD]:.0%}: {tokens[0]!r}.", "made": "Live."},
        "b": {"caption": "C.", "head": ["<i>x</i>", "y"], "rows": [["one", "{n:.2f}"]]},
    }
    monkeypatch.setattr(texts, "_texts", lambda chapter: own)
    return texts.Texts("chapter")


def test_numbers_are_filled_in_one_by_one(words):
    shown = words.figure("a", go.Figure(), n=3, of={"GD": 0.11, "Adam": 0.25}, tokens=["  two spaces"])
    assert (shown.caption, shown.alt, shown.made) == ("n = 3, of GD 0.1, Adam 0.2.", "At 11%: '  two spaces'.", "Live.")
    shown = words.figure("a", go.Figure(), n=[1, 2], of={"GD": 0.5}, tokens=[""])
    assert shown.caption == "n = 1, 2, of GD 0.5."


def test_lists_in_a_mapping_stay_apart(words):
    assert texts._filled("{m:.1f}", {"m": {"a": [0.11, 0.2], "b": (1, 2)}}) == "a 0.1, 0.2; b 1.0, 2.0"


def test_table_takes_rows_of_the_file_or_given_ones(words):
    assert words.table("b", n=1 / 3, made="Live.").rows == [["one", "0.33"]]
    given = words.table("b", ["z"], [["1"]], made="Live.")
    assert (given.head, given.rows, given.made) == (["z"], [["1"]], "Live.")


@pytest.mark.parametrize("call", [{"name": "c"}, {"name": "a"}, {"name": "b"}])
def test_what_is_missing_is_an_error(words, call):
    with pytest.raises(KeyError):
        words.figure(drawn=go.Figure(), **call)


@pytest.mark.parametrize("path", sorted(WORDS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_text_is_shown_and_every_figure_has_one(path):
    written = set(tomllib.loads(path.read_text("utf-8")))
    if path.stem == "drawings":
        assert written == {svg.stem for svg in WORDS.with_name("drawings").glob("*.svg")}
        return
    (page,) = (ROOT / "book").rglob(f"{path.stem}.ipynb")
    cells = json.loads(page.read_text("utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert set(re.findall(r'texts\.(?:figure|table|drawing)\(\s*"(\w+)"', code)) == written
    assert f'Texts("{path.stem}")' in code


def test_every_drawing_has_whole_sentences():
    for svg in WORDS.with_name("drawings").glob("*.svg"):
        drawing = drawings.drawing(svg.stem)
        assert drawing.svg.startswith("<svg") and drawing.caption.endswith(".") and drawing.alt.endswith(".")
