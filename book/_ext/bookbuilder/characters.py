"""The site's search in a language that writes no spaces: pairs of characters are its words."""

import re

from sphinx.search.zh import SearchChinese

_HAN = "\u3400-\u9fff"


class Characters(SearchChinese):
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
