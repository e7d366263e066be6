"""The static site without a browser: pages, renderers, boxes, addresses, notebooks' hygiene, strict builds."""

import json
import re
from importlib import metadata

import numpy as np
import plotly.graph_objects as go
import pytest
from conftest import ROOT
from plotly.subplots import make_subplots
from test_browser import PAGES

from bookbuilder import executed, notebooks, renderers
from bookbuilder.pages import cells
from explainer.figures import curve_panels, dot_panels, dot_plot
from explainer.theory.statistics import Interval


@pytest.mark.parametrize("page", [p for p in PAGES if (ROOT / p.replace(".html", ".ipynb")).exists()])
def test_every_figure_has_caption_origin_and_alternative(site, page):
    text = (site / page).read_text("utf8")
    figures = re.findall(r'<figure class="xp-figure" [^>]*>.*?</figure>', text, re.DOTALL)
    sources = ["".join(cell["source"]) for cell in cells(ROOT / page.replace(".html", ".ipynb"))]
    assert len(figures) >= sum("Captioned(" in source or "texts.figure(" in source for source in sources)
    assert all(re.search(r'aria-label="[^"]+"', figure) for figure in figures)
    for figure in figures + re.findall(r'<figure class="xp-table" [^>]*>.*?</figure>', text, re.DOTALL):
        caption = re.search(r"<figcaption>(.*?)</figcaption>", figure, re.DOTALL)[1]
        assert re.sub(r"<span.*</span>|<b .*</b>", "", caption).strip()
        assert re.search(r'class="xp-badge xp-(live|stored|quoted)"', figure)
        assert "xp-stored" not in figure or re.search("(computed|trained) by:? explainer(-lab| verdict)", figure)


@pytest.mark.usefixtures("site")
def test_record_has_every_finding_of_the_built_chapters_and_no_other(monkeypatch):
    monkeypatch.chdir(ROOT)
    copies = [executed.FOLDER / chapter.name for chapter in executed.chapters()]
    built = {path.stem: [one.statement for one in executed.findings_of(path)] for path in copies if path.exists()}
    chapters = executed.record()["chapters"]
    recorded = {name: [one["statement"] for one in chapters[name]["findings"]] for name in chapters}
    assert recorded == built, "make findings writes the record anew"
    assert sum(map(len, built.values())) > 100


def test_script_json_cannot_be_closed_by_its_content():
    hostile = {"text": "</script><script>alert(1)</script>"}
    text = renderers.script_json(hostile)
    assert "<" not in text
    assert json.loads(text) == hostile


POINTS = {0: Interval(0.5, 0.4, 0.7), 4: Interval(0.6, 0.5, 0.8), 16: Interval(0.9, 0.8, 1)}
CURVES = {"one": {"s": POINTS, "t": POINTS}, "two": {"s": POINTS}, "three": {"t": POINTS}}
RANKS = [["0", "0.5", "0.4 to 0.7"], ["4", "0.6", "0.5 to 0.8"], ["16", "0.9", "0.8 to 1.0"]]
DOTS = {"s": {"a": Interval(0.2, 0.1, 0.4), "b": Interval(0.3, 0.2, 0.5)}, "t": {"b": 0.5}, "u": {"a": 0.6}}
PANELS = {"one": {"s": {"a": 0.2}}, "two": {"s": {"a": 0.3, "b": 0.4}}}
TOKENS = {"tickvals": np.arange(3), "ticktext": [" ->", "a<br>word", "->"]}
TYPED = go.Scatter(x=np.array([1.0, 2.0]), y=np.array([0.25, 0.5]), name="<b>", error_y={"array": [0.1, 0.2]})
NOT_DRAWN = go.Scatter(x=[0.5, None, 2.0], y=["u", "v", "w"], name="s", error_x={"array": [0.1, None, None]})
BAR = go.Bar(x=[0.5], y=["a"], orientation="h", error_x={"array": [0.2], "arrayminus": [0.1]})
LOGS = go.Scatter(x=[0.3, 1], y=[2e-7, 4.0], name="s", error_x={"array": [0.1, 0.1]})
TWO = make_subplots(1, 2).add_scatter(x=[1], y=[2], row=1, col=1).add_scatter(x=[3], y=[4], row=1, col=2)
TWO.update_yaxes(title_text="loss").update_xaxes(title_text="layers", col=1).update_xaxes(title_text="n", col=2)
END = "95 % interval"
TABLES = {
    "typed arrays, and a name that is no markup": (
        go.Figure(TYPED), ["series", "x", "y", END],
        [["&lt;b&gt;", "1", "0.25", "0.15 to 0.35"], ["&lt;b&gt;", "2", "0.50", "0.30 to 0.70"]],
    ),
    "horizontal bars": (go.Figure(BAR), ["series", "x", "y", END], [["bar", "0.5", "a", "0.4 to 0.7"]]),
    "a point that is not drawn, and an end that is missing": (
        go.Figure(NOT_DRAWN), ["series", "x", "y", END], [["s", "0.5", "u", "0.4 to 0.6"], ["s", "2.0", "w", ""]],
    ),
    "places of the same name, and a name of two lines": (
        go.Figure(go.Heatmap(z=[[0.1, 0.2, 0.3]], x=np.arange(3), y=["q"])).update_xaxes(TOKENS),
        ["series", "x", "y", "value"],
        [["heatmap", name, "q", z] for name, z in (("-&gt; (1)", "0.1"), ("a word", "0.2"), ("-&gt; (3)", "0.3"))],
    ),
    "rows of dots": (
        dot_plot(DOTS, "cosine", floors={"s": {"a": 0.1}}), ["series", "cosine", "y", END],
        [
            ["s", "0.2", "a", "0.1 to 0.4"], ["s", "0.3", "b", "0.2 to 0.5"], ["s, floor", "0.1", "a", ""],
            ["t", "0.5", "b", ""], ["u", "0.6", "a", ""],
        ],
    ),
    "scales with names at places of their own": (
        go.Figure(LOGS)
        .update_yaxes(type="log", tickvals=[0.01, 1], ticktext=["1 %", "100 %"])
        .update_xaxes(tickvals=[0, 1], ticktext=["none", "all"]),
        ["series", "x", "y", END], [["s", "0.3", "2\xa0×\xa010⁻⁷", "0.2 to 0.4"], ["s", "1", "4", "0.9 to 1.1"]],
    ),
    "panels and ranks": (
        curve_panels(CURVES, "demonstrations", columns=2, by_rank=True),
        ["panel", "series", "demonstrations", "y", END],
        [[panel, series, *point] for panel in CURVES for series in CURVES[panel] for point in RANKS],
    ),
    "panels of dots": (
        dot_panels(PANELS, "cosine", columns=1), ["panel", "series", "cosine", "y"],
        [["one", "s", "0.2", "a"], ["two", "s", "0.3", "a"], ["two", "s", "0.4", "b"]],
    ),
    "titles of all axes": (TWO, ["series", "layers; n", "loss"], [["scatter", "1", "2"], ["scatter", "3", "4"]]),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_the_table_of_a_figure_has_its_numbers_as_a_reader_finds_them(name):
    figure, head, rows = TABLES[name]
    table = renderers.data_table(json.loads(figure.to_json()))
    assert [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall("<tr>.*?</tr>", table)] == [head, *rows]


def test_the_first_cell_changes_nothing_where_the_package_is():
    """Nor does it ask an index: the name is that of the installed package, and no version and no upgrade is asked."""
    *words, name = notebooks.SETUP["source"][-1].split()
    assert words == ["%pip", "install", "--quiet"] and metadata.version(name)
