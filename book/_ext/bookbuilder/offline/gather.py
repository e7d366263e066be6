"""The chapters of the offline book: pages of the built site without scripts, and their pictures as files."""

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bookbuilder import cards, pages
from bookbuilder.browser import PATIENCE
from bookbuilder.locale import editions

_FOLDER = Path(__file__).parent
WIDTH = 900
"""Pixels: as wide as the text of the site is, so that figures are drawn for it."""
WORDS = {
    "figure": "Figure",
    "table": "Table",
    "exercise": "Exercise",
    "solution": "Solution",
    "solutions": "Solutions",
    "contents": "Contents",
    "page": " (page\N{NO-BREAK SPACE}{})",
    "edition": "Edition {}",
    "scripted": "With JavaScript, this figure is interactive",
    "interactive": "On the site this figure is interactive; here it shows its starting state.",
}
"""What is said here, and what is looked for on the pages; another language has its own words in `edition.toml`."""


@dataclass(frozen=True)
class Chapter:
    """A page of the site: its key, its title, its XHTML, and the titles of its sections by their identities."""

    page: str
    title: str
    body: str
    outline: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Book:
    """The chapters in their order and their pictures by file name."""

    title: str
    author: str
    language: str
    words: Mapping[str, str]
    chapters: tuple[Chapter, ...]
    pictures: Mapping[str, bytes]


def gathered(browser: Any, site: Path, contents: Path, base: str | None) -> Book:
    """The book of an edition in `site`, with the solutions of all exercises as its last chapter but the back matter.

    `base` is where links to what is not in the book lead, `contents` the folder with the table of contents.
    """
    names = [name for name in pages.main_line(contents) if (site / f"{name}.html").exists()]
    known = {name: name.rpartition("/")[2] for name in names}
    language, title, author = _said(site / f"{names[0]}.html")
    others = {edition.settings["tag"]: edition.settings["offline"] for edition in editions(contents)}
    words, numbers = others.get(language, WORDS), {"figures": 0, "tables": 0}
    chapters, solutions, pictures = [], {}, {}
    for name in names:
        made = _collected(
            browser, site / f"{name}.html", {"name": name, "known": known, "base": base, "words": words} | numbers
        )
        numbers = {key: made[key] for key in numbers}
        chapters.append(Chapter(made["page"], made["title"], made["body"], tuple(map(tuple, made["outline"]))))
        pictures |= {file: _picture(said, site) for file, said in made["pictures"].items()}
        solutions |= {made["title"]: made["solutions"]} if made["solutions"] else {}
    place = next((i for i, chapter in enumerate(chapters) if chapter.page in pages.REFERENCE[1:]), len(chapters))
    if solutions:
        chapters.insert(place, _solutions(words["solutions"], solutions))
    return Book(title, author, language, words, tuple(chapters), pictures)


def _said(page: Path) -> tuple[str, str, str]:
    """Language, title of the book and author, as a page says them."""
    text = page.read_text("utf-8")
    language = re.search(r'<html[^>]* lang="([\w-]+)"', text)[1]
    title = re.search(r'property="og:site_name" content="([^"]*)"', text)[1]
    author = re.search(r'class="component-author">\s*(?:By )?(.*?)\s*</p>', text, re.DOTALL)
    return language, html.unescape(title), html.unescape(author[1]) if author else ""


def _collected(browser: Any, page: Path, setup: Mapping[str, Any]) -> dict[str, Any]:
    """What `collect.js` makes of a page; explorables keep their stills, because what would mount them is not loaded."""
    tab = browser.new_page(viewport={"width": WIDTH, "height": 1000}, color_scheme="light")
    try:
        tab.set_default_timeout(PATIENCE)
        tab.route("**/afm-host.js*", lambda route: route.abort())
        tab.goto(page.resolve().as_uri())
        return tab.evaluate((_FOLDER / "collect.js").read_text("utf-8"), setup)
    finally:
        tab.close()


def _solutions(title: str, by_chapter: Mapping[str, list[str]]) -> Chapter:
    parts = (
        f'<section id="solutions.{i}"><h2>{html.escape(head)}</h2>{"".join(each)}</section>'
        for i, (head, each) in enumerate(by_chapter.items())
    )
    body = f'<section xmlns="http://www.w3.org/1999/xhtml" id="solutions"><h1>{title}</h1>{"".join(parts)}</section>'
    return Chapter("solutions", title, body, tuple((f"solutions.{i}", head) for i, head in enumerate(by_chapter)))


_GROUND = '<rect width="100%" height="100%" fill="#fff"/>'
_FAMILY = '"DejaVu Sans", Verdana, "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif'


def _picture(said: str | Mapping[str, str], site: Path) -> bytes:
    """A picture as a file: the SVG on white and with its own style, or a file of the site."""
    if not isinstance(said, str):
        return (site / said["from"]).read_bytes()
    svg = re.sub(r"font-family: [^;]*;|\sdata-[\w-]+=\"[^\"]*\"|\sfont-family=\"[^\"]*\"", "", said)
    head, rest = re.match(r"(<svg\b[^>]*>)(.*)", svg, re.DOTALL).groups()
    if "width=" not in head:
        head = re.sub(r'viewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"', r'\g<0> width="\1" height="\2"', head)
    style = f"<style>{cards.STYLE}svg {{ font-family: {_FAMILY} }}</style>"
    return f"{head}{style}{_GROUND}{rest}".encode()
