"""Where a result comes from, as a badge and a caption, and of which checkpoint a stored one is."""

import html
import re
from types import SimpleNamespace

import plotly.graph_objects as go
import pytest

from bookbuilder.renderers import _figure_html, widget_html
from explainer.explorables import Bets
from explainer.figures import Table, figure_texts
from explainer.results import agreement_results, reporting

STARTER = "SmolLM2-135M-Instruct"
SAID = f"Stored, computed with {STARTER}"


@pytest.mark.parametrize("checkpoint", [STARTER, "/a b/<model>", "other", ""])
def test_a_stored_result_of_another_checkpoint_than_the_readers_says_so(monkeypatch, checkpoint):
    monkeypatch.setenv("EXPLAINER_MODEL", "other")
    said = f", computed with {checkpoint}" if checkpoint not in ("other", "") else ""
    assert figure_texts._of_checkpoint(checkpoint) == said
    assert f">Stored{html.escape(said)}<" in figure_texts.badge("Stored: 8 runs.", checkpoint)
    monkeypatch.delenv("EXPLAINER_MODEL")
    assert figure_texts._of_checkpoint(checkpoint) == ""


def test_figures_tables_and_explorables_say_it(monkeypatch):
    provenance = reporting.provenance(agreement_results.pairs("agreement", seed=0))
    own = {"title": "A title.", "caption": "A caption.", "alt": "Alt."}
    told = {"stored": own, "more": own | {"provenance": "{provenance} Quoted."},
            "starter": own | {"provenance": "Stored: {checkpoint}."}, "live": own}  # fmt: skip
    monkeypatch.setattr(figure_texts, "_texts", lambda chapter: told)
    monkeypatch.setenv("EXPLAINER_MODEL", "other")
    shown, words = [], figure_texts.Texts("a")
    monkeypatch.setattr(figure_texts, "display", lambda of, **_: shown.append(of))
    for name, given in (("stored", provenance), ("stored", (provenance, provenance)), ("more", provenance)):
        figure = words.figure(name, go.Figure(), provenance=given)
        figure._ipython_display_()
        assert f"<strong>{SAID}.</strong> <strong>A title.</strong> A caption." in shown[-1]["text/html"]
        assert SAID in _figure_html(SimpleNamespace(content=shown[-2].to_plotly_json()))
        parts = "title", "caption", "alt", "provenance", "sample", "checkpoint", "name"
        assert tuple(shown[-2].layout.meta["explainer"]) == parts
        assert SAID in words.table(name, ["a"], [["b"]], provenance=given)._repr_mimebundle_()["text/html"]
    assert figure.provenance == f"{provenance} Quoted."
    assert words.figure("starter", go.Figure()).provenance == f"Stored: {STARTER}."
    assert SAID in words.table("starter", ["a"], [["b"]])._repr_mimebundle_()["text/html"]
    assert "computed with" not in words.table("live", ["a"], [["b"]])._repr_mimebundle_()["text/html"]
    bundle, _ = Bets()._repr_mimebundle_()
    assert SAID in widget_html(bundle["application/vnd.jupyter.widget-view+json"])


def test_a_caption_says_first_what_to_see_and_then_how_it_was_measured(monkeypatch):
    table = Table(["a"], [["b"]], "See <a>.", "Live.", "20 draws & more.")._repr_mimebundle_()["text/html"]
    caption = re.search(r"<figcaption>(.*)</figcaption>", table)[1]
    see, below = caption.split("<details")
    assert see.endswith("See &lt;a&gt;.") and 'class="xp-badge' in see
    assert below == (' class="xp-sample"><summary>How it was measured</summary><p>20 draws &amp; more.</p></details>')
    shown = []
    monkeypatch.setattr(figure_texts, "display", lambda of, **_: shown.append(of))
    figure_texts._Captioned({}, "<T>.", "See.", "Alt.", "Live.", "20 draws.")._ipython_display_()
    figure = _figure_html(SimpleNamespace(content=shown[0].to_plotly_json()))
    assert '</span> <strong class="xp-title">&lt;T&gt;.</strong> See.<details' in figure
    assert "<p>20 draws.</p></details></figcaption>" in figure
    assert "<strong>&lt;T&gt;.</strong> See. <small>20 draws.</small> <em>Live.</em>" in shown[1]["text/html"]
    its = 'viewBox="0 0 300 9" font-size="{}"><svg ></svg></svg>'
    small, large = (
        figure_texts._Drawing(f"<svg {its.format(size)}", "C & d.", 'An "alt".')._repr_mimebundle_()["text/html"]
        for size in (5.5, 11)
    )
    said, caption = 'role="img" aria-label="An &quot;alt&quot;."', "<figcaption>C &amp; d.</figcaption>"
    assert f"<svg {said} {its.format(11)}{caption}" in large
    assert f'tabindex="0"><svg style="min-width:600px" {said} {its.format(5.5)}</div>{caption}' in small
    assert figure_texts.figcaption("", "See.") == "<figcaption> See.</figcaption>"
    with pytest.raises(ValueError, match="'Measured: x' does not say"):
        figure_texts.badge("Measured: x")
