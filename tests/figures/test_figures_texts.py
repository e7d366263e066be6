"""The words around the figures: filled in exactly, one entry for each figure of a chapter, none left over."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator

import plotly.graph_objects as go
import pytest
from conftest import ROOT
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from explainer.figures import figure_texts

WORDS = ROOT / "src" / "explainer" / "figures" / "words"


@pytest.fixture
def words(monkeypatch):
    own = {
        "a": {"title": "T.", "caption": "n = {n},\nof {of:.1f}.", "alt": "At {of[GD]:.0%}: {tokens[0]!r}."},
        "b": {"caption": "C.", "head": ["<i>x</i>", "y"], "rows": [["one", "{n:.2f}"]]},
        "c": {"caption": "C.", "sample": "{n} draws.", "head": ["x"], "rows": [], "facts": "seed {n}"},
    }
    monkeypatch.setattr(figure_texts, "_texts", lambda chapter: own)
    return figure_texts.Texts("chapter")


def test_numbers_are_filled_in_one_by_one(words):
    values = {"n": 3, "of": {"GD": 0.11, "Adam": 0.25}, "tokens": ["  two spaces"], "provenance": "Live."}
    shown = words.figure("a", go.Figure(), **values)
    assert (shown.caption, shown.alt, shown.provenance) == (
        "n = 3, of GD 0.1, Adam 0.2.",
        "At 11%: '  two spaces'.",
        "Live.",
    )


def test_numbers_of_a_column_end_below_each_other_and_powers_of_ten_are_written_out():
    table = figure_texts.Table(
        ["", "x"], [["a", "0.1\N{NO-BREAK SPACE}[0, 1]"], ["b", "−0.1"], ["c", "2 of 3"]], "", ""
    )
    cells = re.findall(r"<td>(.*?)</td>", table._repr_mimebundle_()["text/html"])
    assert cells[2] == "2 of 3"
    assert cells[0] == '<span class="xp-aligned" style="min-width:4ch">0.1</span> [0, 1]'
    written = figure_texts._filled("{x:.0e}, {y:.3g}, {z}", {"x": 6e-6, "y": 88_612.0, "z": "4e-16 (7e-16)"})
    assert " ".join(written.split()) == "6 × 10⁻⁶, 88,600, 4 × 10⁻¹⁶ (7 × 10⁻¹⁶)"


def test_table_takes_rows_of_the_file_or_given_ones(words):
    assert words.table("b", n=1 / 3, provenance="Live.").rows == [["one", "0.33"]]
    given = words.table("b", ["z"], [["1"]], provenance="Live.")
    assert (given.head, given.rows, given.provenance) == (["z"], [["1"]], "Live.")
    assert (words.table("c", n=20).sample, given.sample) == ("20 draws.", "")
    assert figure_texts._filled("{m:.1f}", {"m": {"a": [0.11, 0.2], "b": (1, 2)}}) == "a 0.1, 0.2; b 1.0, 2.0"


@pytest.fixture
def cell(monkeypatch):
    """Runs code in a notebook whose time passes in `wait(seconds)` only, and returns the origins that it collected."""
    now, shell = [0.0], InteractiveShell(config=Config(HistoryManager={"enabled": False}))
    wait = lambda seconds: now.append(now[-1] + seconds)  # noqa: E731
    monkeypatch.setattr(figure_texts, "perf_counter", lambda: now[-1])
    monkeypatch.setattr(figure_texts, "get_ipython", lambda: shell)

    def run(code):
        wait(1000)  # between cells
        shell.push({"texts": figure_texts, "wait": wait, "told": []})
        shell.run_cell(code)
        return [re.sub(r"\d+ threads?", "n threads", provenance) for provenance in shell.user_ns["told"]]

    return run


def test_a_live_figure_says_what_the_cells_since_the_last_one_took(words, cell, capsys):
    cell("wait(50); words = texts.Texts('chapter')")
    cell("wait(2)\n1 / 0")
    cell("wait(3); texts.Texts('chapter')")
    told = cell("wait(4); told.append(words.table('c', n=3).provenance)")
    assert told == ["Live: computed in this page in 9 s on n threads, seed 3."]
    cell("wait(5); words.table('b', n=1, provenance='Stored.'); wait(0.9)")
    told = cell("told.append(words.table('b', n=1).provenance)")
    assert told == ["Live: computed in this page on n threads."]
    told = cell("wait(2); told.append(words.table('c', n=3, provenance='Stored.').provenance)")
    assert told == ["Stored."]


@pytest.mark.parametrize("call", [{"name": "d"}, {"name": "a"}, {"name": "b"}])
def test_what_is_missing_is_an_error(words, call):
    with pytest.raises(KeyError):
        words.figure(drawn=go.Figure(), **call)


def code_of(stem: str) -> str:
    (page,) = (ROOT / "book").rglob(f"{stem}.ipynb")
    cells = json.loads(page.read_text("utf-8"))["cells"][1:]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def figures_of_published_numbers(code: str) -> Iterator[tuple[str, set[str]]]:
    """Name and arguments of each figure and table that a name from `explainer.results` reaches through assignments."""
    reached = set()
    for statement in ast.parse(code).body:
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        inner = [node.target for node in ast.walk(statement) if isinstance(node, ast.comprehension)]
        gone = {node.id for target in inner for node in ast.walk(target) if isinstance(node, ast.Name)}
        set_here = {name.id for name in names if isinstance(name.ctx, ast.Store)} | {getattr(statement, "name", "")}
        set_here -= gone
        if isinstance(statement, ast.ImportFrom) and statement.module.startswith("explainer.results"):
            # these three read nothing: they simulate, write numbers as text, and measure heads
            reached |= {each.asname or each.name for each in statement.names} - {
                "coverage",
                "reporting",
                "softmax_forms",
            }
        elif any(name.id in reached for name in names if isinstance(name.ctx, ast.Load)):
            reached |= set_here
            calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
            for call in calls:
                if re.fullmatch(r"texts\.(figure|table)", ast.unparse(call.func)):
                    yield call.args[0].value, {each.arg for each in call.keywords}
        else:
            reached -= set_here


def test_the_way_of_published_numbers_is_found():
    code = "from explainer.results import floors\na = floors.of()\ndef f(): return a\nb = [f() for c in d]\n"
    assert list(figures_of_published_numbers(code + 'texts.figure("n", b, m=1)')) == [("n", {"m"})]
    assert list(figures_of_published_numbers(code + 'b = 1\ntexts.table("n", b)')) == []


@pytest.mark.parametrize("path", sorted(WORDS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_figure_of_published_numbers_says_so(path):
    if path.stem == "drawings":
        return
    own = tomllib.loads(path.read_text("utf-8"))
    for name, given in figures_of_published_numbers(code_of(path.stem)):
        simulated = name == "promise"  # here, from published shares
        assert simulated or "provenance" in given | own[name].keys(), f"{name} is not live: give it a `provenance`"


@pytest.mark.parametrize("path", sorted(WORDS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_text_is_shown_and_every_figure_has_one(path):
    written = set(tomllib.loads(path.read_text("utf-8")))
    if path.stem == "drawings":
        assert written == {svg.stem for svg in WORDS.with_name("drawings").glob("*.svg")}
        return
    code = code_of(path.stem)
    assert set(re.findall(r'texts\.(?:figure|table|drawing)\(\s*"(\w+)"', code)) == written
    assert f'Texts("{path.stem}")' in code


@pytest.mark.parametrize("path", sorted(WORDS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_figure_has_a_title_of_one_sentence(path):
    if path.stem == "drawings":
        return
    own = tomllib.loads(path.read_text("utf-8"))
    figures = set(re.findall(r'texts\.figure\(\s*"(\w+)"', code_of(path.stem)))
    assert figures == {name for name, words in own.items() if "title" in words}
    for name in figures:
        title = own[name]["title"]
        assert re.fullmatch(r"[A-Z][^.:!?{}]+\.", title) and len(title.split()) <= 14, (name, title)
