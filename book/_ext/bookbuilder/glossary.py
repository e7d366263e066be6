"""The terms of the book: where each is first used on a page, and its definition there.

`glossary.toml` is the one source. `{terms}` makes the page of the glossary of it; `mark` turns the first use of each
term on every other page into a link to its definition, which `static/explainer/terms.js` shows in place.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from docutils.parsers.rst import Directive

from bookbuilder.directives import parsed
from bookbuilder.pages import reading_order
from bookbuilder.translation import Edition

SOURCE = Path(__file__).parent / "glossary.toml"
PAGE = "book/reference/glossary"
_NO_PROSE = (
    nodes.title, nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.reference, nodes.raw,
    nodes.caption, nodes.target, nodes.image, nodes.term,
)  # fmt: skip
"""Nodes whose words are left alone: headings and titles of boxes, code, mathematics, links, captions."""
_PASSED = re.compile(r"<(/?)(?:details|a)\b")


class Term(NamedTuple):
    """A term, the words that stand for it, and what it means."""

    name: str
    definition: str
    chapter: str
    english: str
    forms: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    only_on: tuple[str, ...] = ()
    not_on: tuple[str, ...] = ()

    def meant_on(self, page: str) -> bool:
        """Say whether the word has this meaning on a page; without a page, that it has it somewhere."""
        return not page or ((not self.only_on or page in self.only_on) and page not in self.not_on)

    @property
    def identity(self) -> str:
        """The name, without what stands in brackets, as it is written in addresses."""
        return re.sub(r"\W+", "-", self.english.partition(" (")[0].lower()).strip("-")


@cache
def terms(edition: Path | None = None) -> tuple[Term, ...]:
    """All terms, in English or in the language of an edition's folder."""
    pages = tomllib.loads(SOURCE.read_text("utf-8"))
    rows = [{"chapter": page} | row for page, introduced in pages.items() for row in introduced]
    known = [{"forms": [row["name"], f"{row['name']}s"], "english": row["name"]} | row for row in rows]
    if edition:
        said = Edition(edition).texts("terms")
        known = [_in_other_words(row, said) for row in known if row["name"] in said]
    return tuple(Term(**{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}) for row in known)


def _in_other_words(row: dict[str, Any], said: Mapping[str, str]) -> dict[str, Any]:
    """A row in another language; a name of one character is a part of too many words to be recognised."""
    name = said[row["name"]]
    short = re.split(r"[(\N{FULLWIDTH LEFT PARENTHESIS}]", name)[0].strip()
    words = {"name": name, "definition": said[row["definition"]], "forms": [short] * (len(short) > 1)}
    return {key: value for key, value in row.items() if key != "unless"} | words


@cache
def _pattern(edition: Path | None) -> tuple[re.Pattern[str], tuple[Term | None, ...]]:
    """One pattern for all words, long ones first, and what each of its groups stands for: a term, or nothing."""
    every = terms(edition)
    known = {form: term for term in every for form in term.forms}
    known = {form: None for term in every for form in term.unless if form not in known} | known
    ordered = sorted(known, key=len, reverse=True)
    alternatives = "|".join(f"({_whole(form)})" for form in ordered)
    return re.compile(alternatives), tuple(known[form] for form in ordered)


def _whole(form: str) -> str:
    """A form as a pattern that matches no part of a longer word, in writing that has spaces between words."""
    begin, end = (r"(?<![\w-])" * form[0].isascii(), r"(?![\w-])" * form[-1].isascii())
    return f"{begin}{_either_case(form)}{end}"


def _either_case(form: str) -> str:
    """A form as a pattern; a form in lower case may begin a sentence, and a line may end within it."""
    pattern = r"\s+".join(re.escape(word) for word in form.split(" "))
    return f"[{form[0]}{form[0].upper()}]{pattern[1:]}" if form.islower() and form[0].isalpha() else pattern


def uses(text: str, page: str = "", edition: Path | None = None) -> Iterator[tuple[Term, re.Match[str]]]:
    """Every use of a term in a text of a page, in its order, where the word has the meaning of the glossary."""
    pattern, meant = _pattern(edition)
    for found in pattern.finditer(text):
        if (term := meant[(found.lastindex or 0) - 1]) and term.meant_on(page):
            yield term, found


def mark(document: nodes.document, address: str, page: str = "", edition: Path | None = None) -> None:
    """Make the first use of each term in the prose of `page` a link to its definition, but not in folds and links."""
    depth, seen = 0, set()
    for node in list(document.findall(lambda n: isinstance(n, nodes.Text | nodes.raw))):
        if isinstance(node, nodes.raw):
            depth += sum(-1 if closing else 1 for closing in _PASSED.findall(node.astext()))
        elif depth == 0 and not within(node, _NO_PROSE):
            _mark_text(node, address, seen, list(uses(node.astext(), page, edition)))


def within(node: nodes.Node, kinds: tuple[type, ...]) -> bool:
    """Whether a node stands inside one of these kinds."""
    return node.parent is not None and (isinstance(node.parent, kinds) or within(node.parent, kinds))


def _mark_text(node: nodes.Text, address: str, seen: set[Term], used: list[tuple[Term, re.Match[str]]]) -> None:
    text, parts, done = node.astext(), [], 0
    for term, found in used:
        if term not in seen:
            seen.add(term)
            way = f"{address}#term-{term.identity}"
            link = nodes.reference("", found[0], refuri=way, internal=True, classes=["xp-term"])
            parts += [nodes.Text(text[done : found.start()]), link]
            done = found.end()
    if parts:
        node.parent.replace(node, [part for part in [*parts, nodes.Text(text[done:])] if part.astext()])


def terms_of_the_book(here: Directive) -> list[nodes.Node]:
    """`{terms}`: all terms by their English names, each with its definition and the chapter that introduces it."""
    environment = here.state.document.settings.env
    root, folder = Path(environment.srcdir), environment.config.book_edition
    edition = Edition(Path(folder)) if folder else None
    before, after = edition.settings["brackets"] if edition else (" (", ")")
    ways = {path.stem: os.path.relpath(path, root / Path(PAGE).parent) for path in reading_order(root)}
    listed = nodes.definition_list(classes=["xp-terms"])
    for term in sorted(terms(edition and edition.folder), key=lambda term: re.sub(r"\W", "", term.english.lower())):
        name = nodes.term("", term.name, ids=[f"term-{term.identity}"])
        text = nodes.paragraph("", term.definition)
        if term.chapter in ways:
            (title,) = parsed(here, f"[]({ways[term.chapter]})")
            text += [nodes.Text(before), *title.children, nodes.Text(after)]
        listed += nodes.definition_list_item("", name, nodes.definition("", text))
    return [listed]
