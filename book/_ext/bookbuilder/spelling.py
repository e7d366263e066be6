"""The site's search finds a word in both its spellings: index and query are folded by the same rules.

`optimise` and `optimize` become one word before they are stemmed, which Porter's rules alone would keep apart.
"""

import json
import re

from sphinx.search.en import SearchEnglish

RULES = (
    ("^(.{3,})is(ed?|es|ers?|ings?|able|ations?|ational)$", "$1iz$2"),
    ("^(.{2,}l)ys(ed?|es|ers?|ing)$", "$1yz$2"),
    ("^(.{2,})our((?:s|ed|ing|able|al|ally|ites?|hoods?|less|ful)?)$", "$1or$2"),
    ("^(.{2,})ogue(s?)$", "$1og$2"),
)
"""British endings, after so many letters that `rise`, `noise`, `four` and `vogue` are none, and the American ones."""


def folded(word: str) -> str:
    """A word in lower case with American endings: what index and query share."""
    word = word.lower()
    for pattern, ending in RULES:
        word = re.sub(pattern, ending.replace("$", "\\"), word)
    return word


class Search(SearchEnglish):
    """Sphinx's English search, with words folded before they are stemmed, here and in the page."""

    js_stemmer_code = (
        SearchEnglish.js_stemmer_code
        + f"""
Stemmer = ((Plain) => function () {{
  const plain = new Plain(), rules = {json.dumps(RULES)};
  const american = (word, [pattern, ending]) => word.replace(new RegExp(pattern), ending);
  this.stemWord = (word) => plain.stemWord(rules.reduce(american, word.toLowerCase()));
}})(Stemmer);
"""
    )

    def stem(self, word: str) -> str:
        """The stem of a word's American spelling."""
        return super().stem(folded(word))
