"""The main line in another language: `python -m bookbuilder.locale` brings the catalogues up to date with the English.

A language is a folder of `book/locale`. Its pages are made of the English ones, their executed copies and its
catalogues; whatever is not translated stays English.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from babel.messages import Catalog
from babel.messages.pofile import write_po

from bookbuilder import glossary, notation
from bookbuilder.pages import main_line, markdown
from bookbuilder.translation import (
    EXPLORABLES,
    WORDS,
    Edition,
    blocks,
    differences,
    is_prose,
    translated,
    without_numbers,
)

LOCALE = Path("book", "locale")
_SITE = Path("_build", "html")
_FILE = re.compile(r"[\w/]+\.(?:py|js)")


def editions(root: Path = Path()) -> list[Edition]:
    """The languages that the book has besides English."""
    return [Edition(path.parent) for path in sorted((root / LOCALE).glob("*/edition.toml"))]


def path_of(name: str, root: Path = Path()) -> Path:
    """The source of a page."""
    return next(path for end in (".ipynb", ".md") if (path := root / f"{name}{end}").exists())


# Catalogues.


def messages(name: str) -> list[str]:
    """The blocks of a page that a translator has to translate, each once."""
    found = [block for text in markdown(path_of(name)) for block in blocks(text) if is_prose(block)]
    if name.endswith("/glossary"):
        found += [text for term in glossary.terms() for text in (term.name, term.definition)]
    if name.endswith("/notation"):
        found += notation.HEADS
        found += [text for row in notation.table() for text in (row.group, row.words, row.shape) if is_prose(text)]
    return list(dict.fromkeys(found))


def words(site: Path = _SITE) -> dict[str, str]:
    """What code, figures and the builder say on the main line's pages, without numbers, and an example of each."""
    found: dict[str, str] = {}

    def note(text: str, ours: bool) -> str:
        if ours and not _FILE.fullmatch(text):
            found.setdefault(without_numbers(text)[0], " ".join(text.split()))
        return text

    for name in main_line():
        page = (site / f"{name}.html").read_text("utf-8")
        translated(page[page.index("<article") : page.rindex("</article>")], note)
    return found


def update(edition: Edition) -> None:
    """Bring a language's catalogues up to date: new texts empty, changed ones fuzzy, translations kept."""
    for name in main_line():
        write_catalogue(edition, Path(name).name, {message: "" for message in messages(name)})
    kept = {message.id: "" for message in edition.catalogue(WORDS) if message.id and message.string}
    write_catalogue(edition, WORDS, kept | words())  # a site that lacks a page takes no translation away


def write_catalogue(edition: Edition, name: str, found: dict[str, str]) -> None:
    """Write a catalogue of these texts, each with an example: what is translated stays, changed texts are fuzzy."""
    fresh = Catalog()
    for text, example in found.items():
        fresh.add(text, auto_comments=[example] if example and example != text else [])
    known = edition.catalogue(name)
    known.update(fresh)
    known.obsolete.clear()
    with (edition.folder / f"{name}.po").open("wb") as file:
        write_po(file, known, width=0, omit_header=True, ignore_obsolete=True)


def complaints(edition: Edition) -> Iterator[str]:
    """What keeps an edition from being whole: texts without a translation, or with one that is not of this text."""
    for name in main_line():
        page = Path(name).name
        known = edition.texts(page)
        for text in messages(name):
            if text not in known:
                yield f"{page}: no translation of: {text}"
            else:
                yield from (f"{page}: {said}, in: {text}" for said in differences(text, known[text]))
    for name in (WORDS, EXPLORABLES):
        for text, other in edition.texts(name).items():
            yield from (f"{name}: {said}, in: {text}" for said in differences(text, other))


def main(arguments: list[str] | None = None) -> int:
    """Update the catalogues, and print what is left to translate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args(arguments)
    found = []
    for edition in editions():
        if not options.check:
            update(edition)
        found += complaints(edition)
    print("\n".join(found) or "Everything is translated.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
