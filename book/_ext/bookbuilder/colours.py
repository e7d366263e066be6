"""Keys, values and queries have their colours in formulas, too, as in drawings and explorables.

The chapters keep plain LaTeX, which every notebook shows. The colours are added when a page of the site is made.
"""

import re

PAGES = frozenset(
    f"book/{name}"
    for name in (
        "chapters/keys_queries_values", "chapters/attention_as_weight_update", "chapters/what_makes_it_learning",
        "chapters/what_softmax_does", "studies/softmax_in_detail",
    )
)  # fmt: skip
"""The pages on which k_i, v_i and q are a key, a value and a query wherever they stand."""

_SYMBOL = re.compile(
    r"""(?<![A-Za-z\\_^])  # neither a part of a word nor an index
    (?: (?P<key>k) '? _(?:[a-z](?![A-Za-z])|\{[a-z]\})
      | (?P<value>v) '? _(?:[a-z](?![A-Za-z])|\{[a-z]\})
      | (?P<query>q) (?![A-Za-z_']) )""",
    re.VERBOSE,
)


def coloured(latex: str) -> str:
    r"""LaTeX in which keys, values and queries have a class: `k'_i` becomes `\class{xp-key}{k'_i}`."""
    return _SYMBOL.sub(lambda found: rf"\class{{xp-{found.lastgroup}}}{{{found[0]}}}", latex)
