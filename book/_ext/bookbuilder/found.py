"""What search engines, messengers and assistants find of a page: tags, a preview, Markdown, `llms.txt`, a sitemap.

`tags` is asked for each page that is written. `write` then goes over the finished pages of one edition of the site, and
`write_site` over all editions. No address is invented: without the site's own, links are relative, and there is no
sitemap.
"""

import html
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin

from docutils import nodes

from bookbuilder import cards, pages, twins

CARDS = "_static/cards"
_ENOUGH = 200
"""Characters of a description: what a search engine shows of it."""
_SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z“‘])|(?<=[。？！])")
_NO_PROSE = (nodes.table, nodes.list_item, nodes.definition_list)
_TAG = re.compile(r"<[^>]+>")


# What stands in the head of a page.


def description(document: nodes.document) -> str:
    """The first sentences of a page, as many as fit, at least one; those with LaTeX commands are passed over."""
    said = ""
    for paragraph in document.findall(nodes.paragraph):
        for sentence in [] if pages.within(paragraph, _NO_PROSE) else _SENTENCE.split(_plain(paragraph)):
            if said and len(said) + len(sentence) >= _ENOUGH:
                return said
            if sentence and "\\" not in sentence and sentence[-1] not in ":：":
                said = f"{said} {sentence}".strip()
    return said


def _plain(paragraph: nodes.paragraph) -> str:
    """The text of a paragraph without tags and without the bold words that name what it is."""
    texts = filter(None, paragraph.findall(nodes.Text))
    words = [_TAG.sub("", text) if isinstance(text.parent, nodes.raw) else str(text) for text in texts]
    first = next(iter(paragraph.findall(nodes.strong)), None)
    named = first is not None and words[0] == first.astext() and words[0].endswith((".", "。"))
    return html.unescape(" ".join("".join(words[named:]).split()))


def tags(page: str, context: Mapping[str, Any], document: nodes.document, cards_at: str = "") -> str:
    """Description and OpenGraph tags of a page, and the way to its Markdown; Twitter reads both.

    `cards_at` is the way from this edition of the site to the one whose previews it shows: the cards' font is Latin.
    """
    title, said = _text(context["title"]), description(document)
    address, card = context.get("pageurl"), f"{CARDS}/{page}.png"
    if address:
        picture = urljoin(address.removesuffix(f"{page}.html"), cards_at + card)
    else:
        picture = os.path.relpath(cards_at + card, Path(page).parent)
    graph = {"title": title, "description": said, "type": "article", "site_name": context["docstitle"], "url": address}
    graph |= {"image": picture, "image:alt": title, "image:width": cards.SIZE[0], "image:height": cards.SIZE[1]}
    known = {"description": said, "twitter:card": "summary_large_image"}
    known |= {f"og:{name}": value for name, value in graph.items()}
    return f'{_meta(known)}<link rel="alternate" type="text/markdown" href="{Path(page).name}.md" />\n'


def _text(fragment: str) -> str:
    """The text of some HTML."""
    return html.unescape(_TAG.sub("", fragment))


def _meta(known: Mapping[str, Any]) -> str:
    """The tags of what is known, by name; only OpenGraph calls a name a property."""
    return "".join(
        f'<meta {"property" if name.startswith("og:") else "name"}="{name}" content="{html.escape(str(value))}" />\n'
        for name, value in known.items()
        if value
    )


def report(page: str, title: str, repository: str | None, words: Mapping[str, str]) -> str:
    """The button of an error report: an issue with page and section filled in, or what to tell whom.

    `title` is HTML. `static/explainer/report.js` writes the section that is on the screen behind the colon.
    """
    place = f"{words['page']} {page}\n{words['section']} "
    known = f'class="xp-report" data-section="{words["section"]}"'
    if repository is None:
        body = f"<p>{words['tell']}</p><pre>{html.escape(place)}</pre>"
        return f"<details {known}><summary>{words['report']}</summary>{body}</details>"
    gitlab = "gitlab" in repository
    head, text = ("issue[title]", "issue[description]") if gitlab else ("title", "body")
    query = urlencode({head: f"{words['error']} {_text(title)}", text: f"{place}\n\n{words['what']}\n"})
    address = f"{repository}/{'-/' * gitlab}issues/new?{query}"
    return f'<a {known} href="{html.escape(address)}">{words["report"]}</a>'


WORDS = {
    "report": "Report an error on this page",
    "tell": "No public repository of this copy is known. Tell whoever gave it to you, with these lines and with what "
    "the page should say:",
    "page": "Page:",
    "section": "Section:",
    "error": "Error on the page:",
    "what": "What is wrong, and what should the page say?",
    "twins": "Each link leads to the text of a page as Markdown: formulas in dollars, code, and for every figure its "
    "caption, its description and its numbers.",
}
"""What is said here; another language has its own words in `edition.toml`."""


# Beside the finished pages.


def write(site: Path, contents: Path, words: Mapping[str, str], *, with_cards: bool = True) -> None:
    """Write Markdown and preview of every page of an edition in `site`, and its `llms.txt`.

    `contents` is the folder of the table of contents.
    """
    known = [name for name in pages.names(contents) if (site / f"{name}.html").exists()]
    for name in known:
        page, twin, card = site / f"{name}.html", site / f"{name}.md", site / CARDS / f"{name}.png"
        if not _newer(page, twin, _TWINS):
            twin.write_text(twins.markdown(twins.article(page)), "utf-8")
        if with_cards and not _newer(page, card, _CARDS):
            head, picture = tags_of(page), next(cards.drawings(twins.article(page)), "")
            card.parent.mkdir(parents=True, exist_ok=True)
            card.write_bytes(cards.card(head["og:title"], head.get("description", ""), head["og:site_name"], picture))
    (site / "llms.txt").write_text(_listed(site, contents, words), "utf-8")


_TWINS, _CARDS = [Path(twins.__file__)], [Path(cards.__file__), *cards.FONTS]


def _newer(page: Path, made: Path, makers: list[Path]) -> bool:
    """Whether a file is newer than the page and the programs that it is made of."""
    return made.exists() and made.stat().st_mtime > max(file.stat().st_mtime for file in (page, *makers))


def tags_of(page: Path) -> dict[str, str]:
    """What the head of a finished page says of it, by the name of the tag."""
    head = page.read_text("utf-8").partition("</head>")[0]
    found = re.findall(r'<meta (?:name|property)="(description|(?:og|twitter):[\w:]+)" content="([^"]*)"', head)
    return {name: html.unescape(value) for name, value in found}


def _listed(site: Path, contents: Path, words: Mapping[str, str]) -> str:
    """The pages by parts, as llmstxt.org has them."""
    parts = pages.parts(contents)
    front = parts[0][1][0]
    root = tags_of(site / f"{front}.html")
    base = root.get("og:url", "").removesuffix(f"{front}.html")
    lines = [f"# {root['og:site_name']}", "", f"> {root.get('description', '')}", "", words["twins"]]
    for caption, names in parts:
        lines += ["", *([f"## {caption}", ""] if caption else [])]
        for name, page in ((name, site / f"{name}.html") for name in names):
            if page.exists():
                its = tags_of(page)
                lines.append(f"- [{its['og:title']}]({base}{name}.md): {its.get('description', '')}")
    return "\n".join(lines) + "\n"


def write_site(site: Path, contents: Path, base: str | None) -> None:
    """Write the sitemap of all editions, robots.txt, and the page that the address of the site opens."""
    editions = [site, *(file.parent for file in site.glob("*/llms.txt"))]
    found = [edition / f"{name}.html" for edition in editions for name in pages.names(contents)]
    addresses = [f"{base}{page.relative_to(site).as_posix()}" for page in found if page.exists()]
    sitemap = site / "sitemap.xml"
    sitemap.unlink(missing_ok=True)
    if base:
        rows = "".join(f"<url><loc>{html.escape(address)}</loc></url>\n" for address in addresses)
        sitemap.write_text(f"{_SITEMAP}{rows}</urlset>\n", "utf-8")
    lines = ["User-agent: *", "Allow: /", *([f"Sitemap: {base}sitemap.xml"] if base else [])]
    (site / "robots.txt").write_text("\n".join(lines) + "\n", "utf-8")
    (site / "index.html").write_text(_front(site, pages.names(contents)[0], base), "utf-8")


_SITEMAP = '<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'


def _front(site: Path, name: str, base: str | None) -> str:
    """A page that leads to the first one, with its tags: messengers follow no such way."""
    place, known = f"{name}.html", tags_of(site / f"{name}.html")
    known["og:image"] = f"{base or ''}{CARDS}/{name}.png"
    title = html.escape(known["og:site_name"])
    canonical = f'<link rel="canonical" href="{base}{place}" />\n' if base else ""
    head = f'<meta charset="utf-8" />\n<title>{title}</title>\n{_meta(known)}{canonical}'
    way = f'<meta http-equiv="refresh" content="0; url={place}" />'
    return f'<!DOCTYPE html>\n<html><head>{head}{way}</head><body><a href="{place}">{title}</a></body></html>\n'
