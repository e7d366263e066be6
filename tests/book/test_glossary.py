"""The terms of the book: what is recognised, and what is marked."""

import pytest
from conftest import ROOT
from docutils import nodes
from docutils.utils import new_document

from bookbuilder import glossary, pages


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The gates open. Gates open.", ["gate", "gate"]),
        ("ICL and icl, SimAM and SimAOU", ["in-context learning (ICL)", "SimAM", "SimAOU"]),
        ("an attention weight, a weight, the weights", ["attention weight", "weight", "weight"]),
        ("linear attention of an attention head", ["linear attention", "attention head"]),
        ("keyword, keyed, prompted, a zero-shot-like thing", []),
        ("keys, (key) and key.", ["key", "key", "key"]),
    ],
)
def test_uses(text, expected):
    assert [term.name for term, _ in glossary.uses(text)] == expected


def document(*parts):
    made = new_document("test")
    made += parts
    return made


def marked(made, page=""):
    glossary.mark(made, "glossary.html", page)
    links = (link for link in made.findall(nodes.reference) if "xp-term" in link["classes"])
    return [(link["refuri"], link.astext()) for link in links]


def test_marks_the_first_use_of_each_term_on_a_page():
    made = document(nodes.paragraph("", "A gate & a gate."), nodes.paragraph("", "The gate has Keys."))
    assert marked(made) == [("glossary.html#term-gate", "gate"), ("glossary.html#term-key", "Keys")]
    assert made[0].astext() == "A gate & a gate."


def test_leaves_alone_what_is_no_prose_and_what_is_folded():
    """A link in a link would be two, of which the first is empty."""
    for kind in (
        nodes.title,
        nodes.literal,
        nodes.literal_block,
        nodes.math,
        nodes.reference,
        nodes.raw,
        nodes.caption,
    ):
        made = document(nodes.paragraph("", "", kind("", "gate")), nodes.paragraph("", "A gate."))
        assert marked(made) == [("glossary.html#term-gate", "gate")]
        assert not any(link["classes"] for link in made[0].findall(nodes.reference))
    for start, end in (("<details><summary>More</summary>", "</details>"), ('<a href="b.html">', "</a>")):
        hidden = nodes.raw("", start, format="html"), nodes.paragraph("", "A gate."), nodes.raw("", end, format="html")
        made = document(*hidden, nodes.paragraph("", "A key and a gate."))
        assert [word for _, word in marked(made)] == ["key", "gate"]
        assert not list(made[1].findall(nodes.reference))


def test_terms_are_distinct_and_name_pages_of_the_book():
    known = glossary.terms()
    named = {page for term in known for page in (term.chapter, *term.only_on, *term.not_on)}
    assert named - {path.stem for path in pages.reading_order(ROOT)} == set()
    forms = [form for term in known for form in term.forms]
    assert len({term.identity for term in known}) == len(known) and len(set(forms)) == len(forms)
    expected = {"agreement": ["floor"], "idea_it_inspired": [], "momentum_attention": ["floor", "gain"]}
    for page, names in expected.items():
        assert [term.name for term, _ in glossary.uses("its floor, a gain", page)] == names
