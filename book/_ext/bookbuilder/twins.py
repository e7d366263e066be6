"""The Markdown twin of a page: what `page.html` says, as `page.md`, for readers that take no HTML.

It is made of the finished page, so that outputs, figures and tables are in it: text, formulas in dollars, code, and for
each figure its caption, its text alternative and its numbers.
"""

import re
from pathlib import Path

from bs4 import BeautifulSoup, Tag
from markdownify import ATX, MarkdownConverter

_ARTICLE = re.compile(r'<article class="bd-article">(.*)</article>', re.DOTALL)
_NO_TEXT = "script, style, a.headerlink, p.xp-minutes, p.xp-wait, .above-input > summary, .toctree-wrapper"
_PRE, _SPAN = re.compile(r"<pre\b.*?</pre>", re.DOTALL), re.compile(r"</?span\b[^>]*>")
"""The colours of code are half of a page's elements, and nothing of its text."""
_COLOUR = re.compile(r"\\class\{xp-\w+\}")
_DELIMITERS = re.compile(r"^\s*(?:\\\(|\\\[)(.*?)(?:\\\)|\\\])\s*$", re.DOTALL)


def article(page: Path) -> str:
    """The HTML of what a page says, without navigation; "" for a page that has no article."""
    found = _ARTICLE.search(page.read_text("utf-8"))
    return found[1] if found else ""


def markdown(content: str) -> str:
    """The Markdown of an article's HTML."""
    soup = BeautifulSoup(_PRE.sub(lambda pre: _SPAN.sub("", pre[0]), content), "html.parser")
    for element in soup.select(_NO_TEXT):
        element.decompose()
    text = _Converter(heading_style=ATX, bullets="-", code_language_callback=_language).convert_soup(soup)
    return re.sub(r"[ \t]+$|\n{3,}", lambda found: found[0].strip(" \t")[:2], text, flags=re.MULTILINE).strip() + "\n"


def _language(pre: Tag) -> str:
    """The language of a block of code, which Sphinx names in the class of a box around it."""
    box = pre.find_parent("div", class_=re.compile("^highlight-"))
    found = box and re.search(r"highlight-(\w+)", " ".join(box["class"]))
    return found[1] if found and found[1] in ("python", "bash", "toml", "bibtex") else ""


def _classes(element: Tag) -> list[str]:
    return element.get("class") or []


class _Converter(MarkdownConverter):
    """What this book's pages have beside plain HTML."""

    def convert_a(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """A link to another page leads to its twin; one to the glossary is a word."""
        if "xp-term" in _classes(el):
            return text
        if "internal" in _classes(el):
            el["href"] = re.sub(r"\.html(?=#|$)", ".md", el["href"])
        return super().convert_a(el, text, parent_tags)

    def convert_div(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """A box is a quote that opens with its title, as in the notebook; a drawing is its alternative."""
        if "math" in _classes(el):
            return f"\n\n$$\n{_latex(el)}\n$$\n\n"
        if "admonition" in _classes(el):
            return "\n" + self.convert_blockquote(el, text, parent_tags)
        if "xp-plotly" in _classes(el):
            return _alternative(el)
        return super().convert_div(el, text, parent_tags)

    def convert_span(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """A formula in dollars; an origin in brackets."""
        if "math" in _classes(el):
            return f"${_latex(el)}$"
        if "xp-badge-more" in _classes(el):
            return f": {text}"
        return f"[{text}] " if "xp-badge" in _classes(el) else text

    def convert_svg(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """A drawing is its text alternative."""
        return _alternative(el)

    def convert_p(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """The title of a box is its bold first words."""
        if "admonition-title" in _classes(el):
            return f"**{text.strip()}.** "
        if (before := el.find_previous_sibling()) and "admonition-title" in _classes(before):
            return f"{text.strip()}\n\n"
        return super().convert_p(el, text, parent_tags)

    def convert_summary(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """What opens a fold is its title."""
        return f"\n\n**{text.strip()}**\n\n"

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """A bar in a cell would end it."""
        return super().convert_td(el, text.replace("|", r"\|"), parent_tags)

    convert_th = convert_td


def _latex(el: Tag) -> str:
    text = el.get_text()
    return _COLOUR.sub("", _DELIMITERS.sub(r"\1", text)).strip()


def _alternative(el: Tag) -> str:
    said = el.get("aria-label")
    return f"\n\n*Figure: {' '.join(said.split())}*\n\n" if said else ""
