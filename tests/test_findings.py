"""explainer.findings: a statement decides by its numbers, and says so on the page."""

import html
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explainer import findings
from explainer.findings import Finding, finding

numbers = st.floats(-1e6, 1e6)


@given(numbers, st.sampled_from(["<", "<=", ">", ">="]), numbers)
def test_a_finding_holds_where_its_comparison_does_and_its_margin_is_the_distance(value, relation, bound):
    one = Finding("s", value, relation, bound)
    assert one.holds == {"<": value < bound, "<=": value <= bound, ">": value > bound, ">=": value >= bound}[relation]
    assert abs(one.margin) == abs(value - bound)
    assert (one.margin > 0) <= one.holds <= (one.margin >= 0)


@pytest.mark.parametrize(("value", "relation", "bound"), [(math.nan, "<", 1), (1, ">", math.inf), (1, "!=", 2)])
def test_a_finding_that_decides_nothing_is_refused(value, relation, bound):
    with pytest.raises(ValueError, match=r"'It is so': .* decides nothing"):
        finding("It is so", value, relation, bound)


@pytest.fixture
def record(tmp_path, monkeypatch):
    """Stored studies beside which a record of the published book lies."""
    one = {"statement": "A < B & more", "value": 0.25, "relation": "<", "bound": 0.5}
    content = {"chapters": {"page": {"seconds": 1.0, "findings": [one]}}}
    (tmp_path / findings.RECORD).write_text(json.dumps(content))
    monkeypatch.setenv("EXPLAINER_RESULTS", str(tmp_path))
    return tmp_path


def test_what_holds_is_shown_with_its_numbers(capsys):
    finding("A is small", 0.25, "<=", 0.5)
    assert capsys.readouterr().out == "✓ Finding. A is small: 0.25 ≤ 0.5.\n"
    finding("B is large", 88580, ">", 2.29e-5)
    assert " ".join(capsys.readouterr().out.split()) == "✓ Finding. B is large: 88,600 > 2.29 × 10⁻⁵."


def test_what_does_not_hold_is_marked_and_says_what_was_published(record, capsys):
    finding("A < B & more", 0.75, "<", 0.5)
    text = "A < B & more: 0.75, not < 0.5. On the machine of the published book: 0.25 < 0.5."
    assert capsys.readouterr().out == f"✗ Did not hold on this machine. {text}\n"
    finding("Something new", 0.75, "<", 0.5)
    assert "published book: no number is stored." in capsys.readouterr().out


def test_a_page_shows_text_and_no_markup_of_the_statement():
    here, there = Finding("<b>A</b>", 0.75, "<", 0.5), Finding("<b>A</b>", 0.25, "<", 0.5)
    bundle = findings._Shown(here, there)._repr_mimebundle_()
    assert '<p class="xp-finding xp-fails"><strong>✗ Did not hold on this machine.</strong> ' in bundle["text/html"]
    assert html.escape("<b>A</b>: 0.75, not < 0.5.") in bundle["text/html"] and "<b>" not in bundle["text/html"]
    assert bundle["text/plain"].startswith("✗ Did not hold")
