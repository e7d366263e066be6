"""The symbols of the book: how formulas are read, and whether chapters and table agree."""

import pytest
from conftest import ROOT

from bookbuilder import notation
from bookbuilder.colours import coloured

CHAPTERS = notation.chapters(ROOT)


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"W_\text{ZSL} + \Delta W_\text{ICL}", [r"W", r"\Delta"]),
        (r"\bar k, k'_i, \hat y, \widetilde F", ["k", "y", "F"]),
        (r"\sum_{i=1}^{n} e_i^{(t)}\, x_j^\top", ["i", "n", "e", "x"]),
        (r"\mathbf 1 + \mathbf{W} + \mathrm{tr}\, A", ["W", "A"]),
        (r"\operatorname{softmax}(l) + \log p + e^{l_i}", ["l", "p"]),
        (r"\begin{gathered} a \\[2pt] b \end{gathered}", ["a", "b"]),
        (r"\varphi(k) \cdot \phi(\ell)", [r"\varphi", "k", r"\phi", r"\ell"]),
        (r"W_{PV}\, E_{q}", ["W", "E"]),
        (r"\operatorname*{mean}_{1 \le i \le n} A_{ts}", ["A"]),
    ],
)
def test_symbols_of_a_formula(latex, expected):
    assert notation.bases(latex) == expected


def test_every_symbol_of_a_chapter_has_a_row_that_holds_there():
    assert list(notation.missing(CHAPTERS, notation.table())) == []
    assert all(set(row.chapters) <= set(CHAPTERS) for row in notation.table())
    texts = {name: [*cells, r"Let $\mathcal{H}_i$ be new."] for name, cells in CHAPTERS.items()}
    found = list(notation.missing(texts, notation.table()))
    assert [said.split()[:3] for said in found] == [[name, "uses", r"\mathcal{H},"] for name in CHAPTERS]
    row = notation.Symbol("H", "a matrix", "group", chapters=("first",))
    found = notation.missing({"first": ["$H$"], "second": ["$H$"]}, (row,))
    assert [said.split()[0] for said in found] == ["second"]


@pytest.mark.parametrize(
    ("plain", "expected"),
    [
        (r"v'_i (k'_i \cdot q)", r"\class{xp-value}{v'_i} (\class{xp-key}{k'_i} \cdot \class{xp-query}{q})"),
        (r"{k'_i}^{\!\top}", r"{\class{xp-key}{k'_i}}^{\!\top}"),
        (r"q = W_Q\, x_\text{last}", r"\class{xp-query}{q} = W_Q\, x_\text{last}"),
        (r"d_v \times k_{n+1}", r"d_v \times k_{n+1}"),
    ],
)
def test_keys_values_and_queries_of_a_formula_get_their_class(plain, expected):
    assert coloured(plain) == expected
