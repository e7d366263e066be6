"""The terms of the book: what is recognised, what is marked, and that none is used before it is introduced."""

import re

import pytest
from conftest import ROOT
from docutils import nodes
from docutils.utils import new_document

from bookbuilder import glossary, pages, symbols

MAX_BYTES = 6_000


def names(text):
    return [use.term.name for use in glossary.uses(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The gates open. Gates open.", ["gate", "gate"]),
        ("ICL and icl, SimAM and SimAOU", ["in-context learning (ICL)", "SimAM", "SimAOU"]),
        ("an attention weight, a weight, the weights", ["attention weight", "weight", "weight"]),
        ("the p-value in context", ["p-value"]),
        ("linear attention of an attention head", ["linear attention", "attention head"]),
        ("an outer\nproduct", ["outer product"]),
        ("keyword, keyed, prompted, a zero-shot-like thing", []),
        ("keys, (key) and key.", ["key", "key", "key"]),
    ],
)
def test_uses(text, expected):
    assert names(text) == expected


def document(*parts):
    made = new_document("test")
    made += parts
    return made


def marked(made):
    glossary.mark(made, "glossary.html")
    return re.findall(r'href="([^"]+)">([^<]+)<', "".join(node.astext() for node in made.findall(nodes.raw)))


def test_marks_the_first_use_of_each_term_on_a_page():
    made = document(nodes.paragraph("", "A gate & a gate."), nodes.paragraph("", "The gate has Keys."))
    assert marked(made) == [("glossary.html#term-gate", "gate"), ("glossary.html#term-key", "Keys")]
    assert made[0].astext() == 'A <a class="xp-term" href="glossary.html#term-gate">gate</a> & a gate.'


@pytest.mark.parametrize(
    "kind", [nodes.title, nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.reference,
             nodes.raw, nodes.caption]
)  # fmt: skip
def test_leaves_alone_what_is_no_prose(kind):
    made = document(nodes.paragraph("", "", kind("", "gate")), nodes.paragraph("", "A gate."))
    assert marked(made) == [("glossary.html#term-gate", "gate")]
    assert "xp-term" not in made[0].astext()


def test_leaves_folds_alone():
    fold = [nodes.raw("", "<details><summary>More</summary>", format="html"), nodes.paragraph("", "A gate."),
            nodes.raw("", "</details>", format="html")]  # fmt: skip
    made = document(*fold, nodes.paragraph("", "A key and a gate."))
    assert [word for _, word in marked(made)] == ["key", "gate"]
    assert "xp-term" not in made[1].astext()


def test_terms_are_distinct_and_short():
    known = glossary.terms()
    assert len({term.identity for term in known}) == len(known)
    forms = [form for term in known for form in term.forms]
    assert len(set(forms)) == len(forms)
    for term in known:
        assert term.definition.endswith(".") and term.definition.count(". ") <= 1, term
        assert len(term.definition) <= 180, (term.name, len(term.definition))


def test_what_a_page_pays_for_its_terms():
    """Its links and the script that shows definitions, which are fetched when one is wanted."""
    script = ROOT / "book" / "_ext" / "bookbuilder" / "static" / "explainer" / "terms.js"
    for path in pages.reading_order(ROOT):
        text = "\n\n".join(pages.markdown(path))
        found = [term for term, shown in glossary.first_uses(text, path.stem).items() if shown]
        made = document(*(nodes.paragraph("", term.forms[0]) for term in found))
        before = len(made.astext())
        glossary.mark(made, "glossary.html")
        assert len(made.astext()) - before + script.stat().st_size <= MAX_BYTES, path.stem


def test_no_term_is_used_before_it_is_introduced():
    """In reading order; a use may come earlier where the reader has the definition at hand."""
    assert [row for row in glossary.table(pages.reading_order(ROOT)) if not row.explained] == []


def test_the_page_that_introduces_a_term_uses_it():
    texts = {path.stem: "\n\n".join(pages.markdown(path)) for path in pages.reading_order(ROOT)}
    found = {chapter: set(glossary.first_uses(text, chapter)) for chapter, text in texts.items()}
    absent = {term.name for term in glossary.terms() if term.forms and term not in found.get(term.chapter, ())}
    assert absent == set()


def test_a_bracket_that_opens_no_link_hides_nothing():
    assert [term.name for term in glossary.first_uses("From [0, 1).\n\nA gate.\n\n[A key](x.ipynb)")] == ["gate"]


OTHER_MEANINGS = {
    "floor": r"valley|\*along\*|predictor|functions",
    "key": r"entry|optional|Tab\b",
    "gain": r"nats|tokens|demonstrations|where the gain|label bias",
    "kernel": r"convolution|processor|buttons|models are trained",
    "bias (of a layer)": r"scatter|over all prompts",
    "gate": r"read only if|before the decay|its rate",
    "weight": r"uneven|hump|softmax:|random order|average",
    "value": r"measured|possible|absolute|correlation|random update|counts as often",
    "loss": r"agreement",
}
"""Words beside a term that show that it has another meaning there than in the glossary."""


def test_no_first_use_has_another_meaning():
    wrong = []
    for path in pages.reading_order(ROOT):
        text = glossary._blanked(glossary._NO_SENTENCE, symbols.without_code("\n\n".join(pages.markdown(path))))
        first = {}
        for use in glossary.uses(glossary._blanked(glossary._FOLD, text), path.stem):
            first.setdefault(use.term.name, use)
        for name, other in OTHER_MEANINGS.items():
            if use := first.get(name):
                near = text[max(0, use.start - 45) : use.end + 45].replace("\n", " ")
                wrong += [(path.stem, near)] if re.search(other, near) else []
    assert wrong == []


def test_a_word_is_a_term_on_some_pages_only():
    used = {page: [use.term.name for use in glossary.uses("its floor, a gain", page)] for page in (
        "floor_and_ceiling", "idea_it_inspired", "momentum_attention")}  # fmt: skip
    assert used == {
        "floor_and_ceiling": ["floor"],
        "idea_it_inspired": [],
        "momentum_attention": ["floor", "gain"],
    }


def test_pages_of_a_meaning_exist():
    known = {path.stem for path in pages.reading_order(ROOT)}
    named = {page for term in glossary.terms() for page in (term.chapter, *term.only_on, *term.not_on)}
    assert named - known == set()


def test_marks_no_word_that_means_something_else_on_the_page():
    made = document(nodes.paragraph("", "Along its floor and a key."))
    glossary.mark(made, "glossary.html", "idea_it_inspired")
    assert re.findall('">([^<]+)<', "".join(node.astext() for node in made.findall(nodes.raw))) == ["key"]


def page(folder, name, *cells):
    path = folder / f"{name}.md"
    path.write_text("\n\n".join(cells))
    return path


def test_table_finds_a_term_that_is_used_too_early(tmp_path):
    """Hidden in a fold a term has no definition at hand, in a sentence it has; a heading or a link only names it."""
    late = page(tmp_path, "what_softmax_does", "The *gate*.")
    early = ["# A gate", "See [the gate](x.ipynb).", "`gate` and $gate$"]
    rows = glossary.table([page(tmp_path, "a", *early), late])
    assert glossary.Row("gate", late.stem, late.stem, True) in rows
    rows = glossary.table([page(tmp_path, "a", *early, "A gate."), late])
    assert glossary.Row("gate", late.stem, "a", True) in rows
    rows = glossary.table([page(tmp_path, "a", *early, "<details><summary>S</summary>\n\nA gate.\n\n</details>"), late])
    assert glossary.Row("gate", late.stem, "a", False) in rows
