"""The offline book as an EPUB 3: its chapters as XHTML with MathML, its pictures, a table of contents, no script."""

import html
import re
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from bookbuilder import cards
from bookbuilder.offline.gather import Book, Chapter
from explainer.errors import ExplainerError

_CONTAINER = """<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="book/book.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>
"""
_PAGE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" lang="{language}" \
xml:lang="{language}">
<head><title>{title}</title><link rel="stylesheet" type="text/css" href="book.css"/></head>
<body>{body}</body>
</html>
"""
_OPF = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="identity" xml:lang="{language}">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="identity">urn:uuid:{identity}</dc:identifier>
<dc:title>{title}</dc:title>
<dc:creator>{author}</dc:creator>
<dc:language>{language}</dc:language>
<meta property="dcterms:modified">{modified}</meta>
<meta property="schema:accessMode">textual</meta>
<meta property="schema:accessMode">visual</meta>
<meta property="schema:accessModeSufficient">textual</meta>
<meta property="schema:accessibilityFeature">alternativeText</meta>
<meta property="schema:accessibilityFeature">MathML</meta>
<meta property="schema:accessibilityFeature">structuralNavigation</meta>
<meta property="schema:accessibilityHazard">none</meta>
<meta name="cover" content="cover"/>
</metadata>
<manifest>
{manifest}
</manifest>
<spine>
{spine}
</spine>
</package>
"""
_KINDS = {".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg"}


def write(book: Book, file: Path, when: float) -> None:
    """Write the EPUB; `when` is the moment of the site that it is made of, in seconds, and all that dates it.

    Raises: ExplainerError if a link leads nowhere.
    """
    moment = datetime.fromtimestamp(when, UTC)
    with zipfile.ZipFile(file, "w") as target:
        for name, content in _files(book, moment.strftime("%Y-%m-%dT%H:%M:%SZ")):
            entry = zipfile.ZipInfo(name, moment.timetuple()[:6])
            entry.compress_type = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            target.writestr(entry, content)


def _files(book: Book, modified: str) -> Iterator[tuple[str, str | bytes]]:
    """Each file of the EPUB; the first says what the others are."""
    style = Path(__file__).with_name("book.css").read_text("utf-8")
    picture = next((said.decode() for name, said in book.pictures.items() if name.endswith(".svg")), "")
    yield "mimetype", "application/epub+zip"
    yield "META-INF/container.xml", _CONTAINER
    yield "book/book.opf", _package(book, modified)
    yield "book/book.css", style
    yield "book/cover.png", cards.cover(book.title, book.author, picture)
    yield (
        "book/cover.xhtml",
        _page(book, book.title, f'<img class="cover" src="cover.png" alt="{html.escape(book.title)}"/>'),
    )
    yield "book/nav.xhtml", _page(book, book.words["contents"], _contents(book))
    places = {identity: f"{chapter.page}.xhtml" for chapter in book.chapters for identity in _identities(chapter)}
    for chapter in book.chapters:
        body = re.sub(r'href="#([^"]*)"', lambda link: f'href="{_place(link[1], places)}"', chapter.body)
        yield f"book/{chapter.page}.xhtml", _page(book, chapter.title, body)
    for name, content in book.pictures.items():
        yield f"book/{name}", content


def _place(identity: str, places: Mapping[str, str]) -> str:
    if identity not in places:
        raise ExplainerError(f"A link of the book leads to {identity}, which is in no chapter: mend it on the site.")
    return f"{places[identity]}#{identity}"


def _identities(chapter: Chapter) -> list[str]:
    return re.findall(r'\sid="([^"]*)"', chapter.body)


def _page(book: Book, title: str, body: str) -> str:
    return _PAGE.format(language=book.language, title=html.escape(title), body=body)


def _package(book: Book, modified: str) -> str:
    items = [
        '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>',
        '<item id="style" href="book.css" media-type="text/css"/>',
        '<item id="cover" href="cover.png" media-type="image/png" properties="cover-image"/>',
        '<item id="front" href="cover.xhtml" media-type="application/xhtml+xml"/>',
    ]
    for chapter in book.chapters:
        formulas = ' properties="mathml"' * ("<math" in chapter.body)
        items.append(
            f'<item id="{chapter.page}" href="{chapter.page}.xhtml" media-type="application/xhtml+xml"{formulas}/>'
        )
    for i, name in enumerate(book.pictures):
        items.append(f'<item id="picture-{i}" href="{name}" media-type="{_KINDS[Path(name).suffix]}"/>')
    spine = "\n".join(f'<itemref idref="{name}"/>' for name in ("front", "nav", *(each.page for each in book.chapters)))
    return _OPF.format(
        language=book.language,
        identity=uuid.uuid5(uuid.NAMESPACE_URL, f"{book.title} {book.language}"),
        title=html.escape(book.title),
        author=html.escape(book.author),
        modified=modified,
        manifest="\n".join(items),
        spine=spine,
    )


def _contents(book: Book) -> str:
    """The table of contents, which is a page of the book and what its reader navigates by."""

    def entry(place: str, title: str, below: str = "") -> str:
        return f'<li><a href="{place}">{html.escape(title)}</a>{f"<ol>{below}</ol>" if below else ""}</li>'

    rows = (
        entry(
            f"{chapter.page}.xhtml",
            chapter.title,
            "".join(entry(f"{chapter.page}.xhtml#{identity}", head) for identity, head in chapter.outline),
        )
        for chapter in book.chapters
    )
    return f'<nav epub:type="toc" id="toc"><h1>{book.words["contents"]}</h1><ol>{"".join(rows)}</ol></nav>'
