"""The offline book as a PDF: Chromium's print of all chapters, twice.

CSS has no page numbers for the places that a link leads to, in any browser. So the first print tells on which page each
place is, the second has these numbers in its contents and behind its links, and both have to agree.
"""

import html
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pypdf import PdfReader

from bookbuilder.browser import PATIENCE
from bookbuilder.offline.gather import Book, Chapter
from explainer.errors import ExplainerError

_FOLDER = Path(__file__).parent
_PAGE = """<!DOCTYPE html>
<html lang="{language}"><head><meta charset="utf-8"><title>{title}</title>
<style>{style}</style>
{mathjax}
</head><body>{body}</body></html>
"""
_HEAD = """
@page {name} {{ @top-center {{ content: "{title}"; font: 8.5pt sans-serif; color: #444; }} }}
.{name} {{ page: {name}; }}"""
_MATHJAX = re.compile(
    r'<script>window\.MathJax = .*?</script>|<script[^>]* src="([^"]*mathjax/startup\.js)[^>]*></script>'
)
_UNKNOWN = "000"
_TRIES = 4
"""Prints until the page numbers, which take room themselves, are those of the pages."""


def write(book: Book, file: Path, browser: Any, site: Path, lines: Iterable[str]) -> None:
    """Write the PDF; the pictures have to be in its folder, and `lines` stand on its first page.

    Raises: ExplainerError if something is wider than its page, or if the page numbers do not settle.
    """
    source, places = file.with_suffix(".html"), {}
    for _ in range(_TRIES):
        source.write_text(_document(book, site, lines, places), "utf-8")
        _print(browser, source, file)
        before, places = places, _places(file)
        if before == places:
            return
    raise ExplainerError(f"The page numbers of {file.name} did not settle in {_TRIES} prints.")


def _print(browser: Any, source: Path, file: Path) -> None:
    tab = browser.new_page(device_scale_factor=2)  # text is then as wide as in print
    try:
        tab.set_default_timeout(PATIENCE)
        tab.goto(source.resolve().as_uri())
        tab.emulate_media(media="print")
        tab.set_viewport_size({"width": 499, "height": 800})  # 132 mm: the width of the text
        if wide := tab.evaluate((_FOLDER / "print.js").read_text("utf-8")):
            raise ExplainerError(f"Wider than a page of the PDF: {'; '.join(wide[:5])}. Shorten it.")
        tab.pdf(path=str(file), prefer_css_page_size=True, print_background=True, tagged=True, outline=True)
    finally:
        tab.close()


def _places(file: Path) -> dict[str, int]:
    """The page of each place that a link leads to."""
    reader = PdfReader(file)
    return {
        name.lstrip("/"): reader.get_destination_page_number(each) + 1
        for name, each in reader.named_destinations.items()
    }


def _document(book: Book, site: Path, lines: Iterable[str], places: Mapping[str, int]) -> str:
    """All chapters as one HTML page."""
    style = "".join((_FOLDER / name).read_text("utf-8") for name in ("book.css", "print.css"))
    style += "".join(_HEAD.format(name=_css_name(each), title=_css(each.title)) for each in book.chapters)
    first = re.search(r'<img src="([^"]*)"', book.chapters[0].body)
    picture = f'<img src="{first[1]}" alt="">' if first else ""
    said = "".join(f"<p>{html.escape(line)}</p>" for line in lines)
    front = f'<section class="front cover"><h1>{html.escape(book.title)}</h1>{picture}<footer>{said}</footer></section>'
    chapters = (
        f'<div class="chapter {_css_name(each)}">{_with_pages(each.body, places, book.words["page"])}</div>'
        for each in book.chapters
    )
    body = "".join((front, _contents(book, places), *chapters))
    head = {"language": book.language, "title": html.escape(book.title), "style": style, "mathjax": _mathjax(site)}
    return _PAGE.format(body=body, **head)


def _mathjax(site: Path) -> str:
    """The scripts that set formulas on the pages of the site, from any page that has some."""
    for page in sorted(site.glob("book/**/*.html")):
        tags = list(_MATHJAX.finditer(page.read_text("utf-8")))
        if len(tags) == 2:
            place = (page.parent / tags[1][1]).resolve().as_uri()
            return f'{tags[0][0]}<script defer src="{place}"></script>'
    return "<script>MathJax = {startup: {}, typesetPromise() {}}</script>"


def _css_name(chapter: Chapter) -> str:
    return f"chapter-{chapter.page.replace('_', '-')}"


def _css(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"")


def _page_of(place: str, places: Mapping[str, int]) -> str:
    return f"<span>{places.get(place, _UNKNOWN)}</span>"


def _with_pages(body: str, places: Mapping[str, int], said: str) -> str:
    """The page behind each link to a chapter, to an exercise and to its solution, as `said` has it."""

    def numbered(link: re.Match[str]) -> str:
        page = said.format(_page_of(link[1], places))
        return f'{link[0]}<span class="page-of">{page}</span>'

    return re.sub(r'<a class="(?:[^"]* )?to-(?:page|exercise|solution)[^"]*" href="#([^"]*)">.*?</a>', numbered, body)


def _contents(book: Book, places: Mapping[str, int]) -> str:
    def row(place: str, title: str) -> str:
        link = f'<a href="#{place}">{html.escape(title)}</a>'
        return f'<div class="row">{link}<span class="dots"></span>{_page_of(place, places)}</div>'

    rows = []
    for chapter in book.chapters:
        below = "".join(f"<li>{row(identity, head)}</li>" for identity, head in chapter.outline)
        rows.append(f"<li>{row(chapter.page, chapter.title)}{f'<ol>{below}</ol>' if below else ''}</li>")
    return f'<nav class="front"><h1>{book.words["contents"]}</h1><ol>{"".join(rows)}</ol></nav>'
