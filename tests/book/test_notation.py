"""The symbols of the book: how formulas are read, and whether chapters and table agree."""

import pytest
from conftest import ROOT

from bookbuilder import notation
from bookbuilder.colours import PAGES, coloured

CHAPTERS = notation.chapters(ROOT)


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"W_\text{ZSL} + \Delta W_\text{ICL}", [r"W", r"\Delta"]),
        (r"\bar k, k'_i, \hat y, \widetilde F", ["k", "y", "F"]),
        (r"\mathcal Y, \mathcal{T}, Y", [r"\mathcal{Y}", r"\mathcal{T}", "Y"]),
        (r"\sum_{i=1}^{n} e_i^{(t)}\, x_j^\top", ["i", "n", "e", "x"]),
        (r"\sum_s w_s \eta^{t-s}", ["s", "w", r"\eta", "t"]),
        (r"\mathbf 1 + \mathbf{W} + \mathrm{tr}\, A", ["W", "A"]),
        (r"\operatorname{softmax}(l) + \log p + e^{l_i}", ["l", "p"]),
        (r"\begin{gathered} a \\[2pt] b \end{gathered}", ["a", "b"]),
        (r"\varphi(k) \cdot \phi(\ell)", [r"\varphi", "k", r"\phi", r"\ell"]),
        (r"W_{PV}\, E_{q}", ["W", "E"]),
        (r"P^{-1} x^{\!\top}, r^C", ["P", "x", "r", "C"]),
        (r"\operatorname*{mean}_{1 \le i \le n} A_{ts}", ["A"]),
    ],
)
def test_symbols_of_a_formula(latex, expected):
    assert notation.bases(latex) == expected


def test_formulas_of_a_text_without_code_and_prices():
    text = "Take $x$.\n\n$$ y = x $$\n\n`$a$` costs \\$5 and $6.\n\n```python\nb = '$c$'\n```\n$d$"
    found = notation.formulas(text)
    assert found == ["x", " y = x ", "d"]


def test_every_symbol_of_a_chapter_has_a_row_that_holds_there():
    assert list(notation.missing(CHAPTERS, notation.table())) == []


def test_a_new_letter_is_found_in_every_chapter():
    texts = {name: [*cells, r"Let $\mathcal{H}_i$ be new."] for name, cells in CHAPTERS.items()}
    found = list(notation.missing(texts, notation.table()))
    assert [said.split()[:3] for said in found] == [[name, "uses", r"\mathcal{H},"] for name in CHAPTERS]


def test_a_local_meaning_holds_in_its_chapters_only():
    row = notation.Symbol("H", "a matrix", "group", chapters=("first",))
    texts = {"first": ["$H$"], "second": ["$H$"]}
    assert [problem.split()[0] for problem in notation.missing(texts, (row,))] == ["second"]


def test_rows_are_complete_and_name_pages_of_the_book():
    for row in notation.table():
        assert row.bases and row.words, row
        assert set(row.chapters) <= set(CHAPTERS), row


def test_page_has_every_row():
    page = notation.page(ROOT)
    assert page.count("\n| $") == len(notation.table())
    assert all(row.words in page for row in notation.table())


# Colours of keys, values and queries in formulas.


@pytest.mark.parametrize(
    ("plain", "expected"),
    [
        (r"v'_i (k'_i \cdot q)", r"\class{xp-value}{v'_i} (\class{xp-key}{k'_i} \cdot \class{xp-query}{q})"),
        (r"{k'_i}^{\!\top}", r"{\class{xp-key}{k'_i}}^{\!\top}"),
        (r"v_t\, k_t^\top", r"\class{xp-value}{v_t}\, \class{xp-key}{k_t}^\top"),
        (r"q = W_Q\, x_\text{last}", r"\class{xp-query}{q} = W_Q\, x_\text{last}"),
    ],
)
def test_symbols_get_their_class(plain, expected):
    assert coloured(plain) == expected


@pytest.mark.parametrize(
    "plain", [r"W_Q x_q \quad \qquad", r"d_v \times k", r"k_{n+1} + v_\text{last}", r"\text{query}"]
)
def test_other_letters_stay(plain):
    assert coloured(plain) == plain


def test_pages_exist():
    assert all((ROOT / f"{page}.ipynb").exists() for page in PAGES)
