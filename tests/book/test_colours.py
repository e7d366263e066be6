"""Colours of keys, values and queries in formulas."""

import pytest
from conftest import ROOT

from bookbuilder.colours import PAGES, coloured


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
