"""The site's search: in English both spellings of a word are one, in Chinese pairs of characters are the words.

`optimise` and `optimize` become one word before they are stemmed, which Porter's rules alone would keep apart.
"""

import json
import re

from sphinx.search.en import SearchEnglish
from sphinx.search.zh import SearchChinese

RULES = (
    ("^(.{3,})is(ed?|es|ers?|ings?|able|ations?|ational)$", "$1iz$2"),
    ("^(.{2,}l)ys(ed?|es|ers?|ing)$", "$1yz$2"),
    ("^(.{2,})our((?:s|ed|ing|able|al|ally|ites?|hoods?|less|ful)?)$", "$1or$2"),
    ("^(.{2,})ogue(s?)$", "$1og$2"),
)
"""British endings, after so many letters that `rise`, `noise`, `four` and `vogue` are none, and the American ones."""
_HAN = "\u3400-\u9fff"


def folded(word: str) -> str:
    """A word in lower case with American endings: what index and query share."""
    word = word.lower()
    for pattern, ending in RULES:
        word = re.sub(pattern, ending.replace("$", "\\"), word)
    return word


class English(SearchEnglish):
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


class Chinese(SearchChinese):
    """Sphinx's Chinese search without a dictionary: a query finds every page that has its pairs of characters."""

    lang = "zh"
    language_name = "Chinese"
    js_splitter_code = rf"""
var splitQuery = (query) => (query.match(/[{_HAN}]+|[A-Za-z0-9_]+/g) ?? []).flatMap((run) =>
  /[{_HAN}]/.test(run) && run.length > 2 ? [...run].slice(1).map((last, i) => [...run][i] + last) : [run]);
"""

    def split(self, input: str) -> list[str]:
        """The words of a text: Latin ones whole, of the others each pair of neighbours."""
        found = []
        for run in re.findall(rf"[{_HAN}]+|[A-Za-z0-9_]+", input):
            pairs = re.match(f"[{_HAN}]", run) and len(run) > 2
            found += [run[i : i + 2] for i in range(len(run) - 1)] if pairs else [run]
        return found
