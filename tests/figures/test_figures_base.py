"""Where a result comes from, as a badge and a caption, and of which checkpoint a stored one is."""

import re
from types import SimpleNamespace

import pytest

from bookbuilder.renderers import _figure_html, widget_html
from explainer.explorables import Bets
from explainer.figures import Captioned, Table, base
from explainer.results import agreement, reporting

STARTER = "SmolLM2-135M-Instruct"
SAID = f"Stored, computed with {STARTER}"


@pytest.mark.parametrize(
    ("provenance", "said"),
    [
        (f"Stored: 2 settings, seeds 0, 1; k = 16; {STARTER}, float32, x86_64; 7 CPU s.", f", computed with {STARTER}"),
        (f"Stored: {STARTER}, float32; computed by a function.", f", computed with {STARTER}"),
        ("Stored: 1 cell; k = 4; /a b/<model>, float32, x86_64.", ", computed with /a b/<model>"),
        ("Stored: 8 runs, seeds 0 to 7; x86_64, 1 thread.", ""),
        ("Stored: 1 cell; k = 4; other, float32, x86_64.", ""),
        (f"Live: computed in this page; {STARTER}, float32.", ""),
    ],
)  # fmt: skip
def test_a_stored_result_of_another_checkpoint_than_the_readers_says_so(monkeypatch, provenance, said):
    monkeypatch.setenv("EXPLAINER_MODEL", "other")
    assert base.of_checkpoint(provenance) == said
    assert said.replace("<", "&lt;").replace(">", "&gt;") in base.badge(provenance) and "<model>" not in base.badge(
        provenance
    )
    monkeypatch.delenv("EXPLAINER_MODEL")
    assert base.of_checkpoint(provenance) == ""


def test_figures_tables_and_explorables_say_it(monkeypatch, capsys):
    provenance = reporting.provenance(agreement.pairs("agreement", seed=0))
    shown = []
    monkeypatch.setattr(base, "display", lambda of, **_: shown.append(of))
    monkeypatch.setenv("EXPLAINER_MODEL", "other")
    Captioned({}, "A caption.", "Alt.", provenance)._ipython_display_()
    assert f"<strong>{SAID}.</strong> A caption." in shown[-1]["text/html"]
    assert SAID in Table(["a"], [["b"]], "A caption.", provenance)._repr_mimebundle_()["text/html"]
    assert SAID in widget_html({"explainer": {"provenance": Bets.provenance}})


def test_a_caption_says_first_what_to_see_and_then_how_it_was_measured(monkeypatch):
    table = Table(["a"], [["b"]], "See <a>.", "Live.", "20 draws & more.")._repr_mimebundle_()["text/html"]
    caption = re.search(r"<figcaption>(.*)</figcaption>", table)[1]
    see, below = caption.split("<details")
    assert see.endswith("See &lt;a&gt;.") and 'class="xp-badge' in see
    assert below == (' class="xp-sample"><summary>How it was measured</summary><p>20 draws &amp; more.</p></details>')
    shown = []
    monkeypatch.setattr(base, "display", lambda of, **_: shown.append(of))
    Captioned({}, "See.", "Alt.", "Live.", "20 draws.")._ipython_display_()
    figure = SimpleNamespace(content=shown[0].to_plotly_json())
    assert "See.<details" in _figure_html(figure) and "<p>20 draws.</p></details></figcaption>" in _figure_html(figure)
    assert "See. <small>20 draws.</small> <em>Live.</em>" in shown[1]["text/html"]


def test_a_caption_without_a_second_part_has_no_fold():
    assert base.figcaption("", "See.") == "<figcaption> See.</figcaption>"
