"""The terms of the book: where each is first used on a page, and its definition there.

`glossary.toml` is the one source. `{terms}` makes the page of the glossary of it; `mark` turns the first use of each
term on every other page into a link to its definition, which `static/explainer/terms.js` shows in place; and
`python -m bookbuilder.glossary book` prints where each term is introduced and where it is first used.
"""

import argparse
import html
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from docutils.parsers.rst import Directive

from bookbuilder import symbols
from bookbuilder.pages import address, markdown, reading_order, title

SOURCE = Path(__file__).parent / "glossary.toml"
PAGE = "book/reference/glossary"
NO_PROSE = (
    nodes.title, nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.reference, nodes.raw,
    nodes.caption, nodes.target, nodes.image, nodes.term,
)  # fmt: skip
"""Nodes whose words are left alone: headings and titles of boxes, code, mathematics, links, captions."""
_FOLDS = re.compile(r"<(/?)details\b")
_FOLD = re.compile(r"<details\b.*?</details>|<[^>]+>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_NO_SENTENCE = re.compile(r"^#+ .*$|^> \*\*[^*]+\*\*|!?\[(?:[^][\n]|\n(?!\n))*\]\([^)]*\)", re.MULTILINE)


class Term(NamedTuple):
    """A term, the words that stand for it, and what it means."""

    name: str
    definition: str
    chapter: str
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
        return re.sub(r"\W+", "-", self.name.partition(" (")[0].lower()).strip("-")


class Use(NamedTuple):
    """A first use in a text, and its place."""

    term: Term
    start: int
    end: int


@cache
def terms() -> tuple[Term, ...]:
    """All terms, in the order of the source."""
    rows = tomllib.loads(SOURCE.read_text("utf-8"))["term"]
    known = [{"forms": [row["name"]]} | row for row in rows]
    return tuple(Term(**{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}) for row in known)


def definitions() -> dict[str, str]:
    """What each term means, by the identity that addresses it."""
    return {term.identity: term.definition for term in terms()}


@cache
def _pattern() -> tuple[re.Pattern[str], tuple[Term | None, ...]]:
    """One pattern for all words, long ones first, and what each of its groups stands for: a term, or nothing."""
    known = {form: term for term in terms() for form in term.forms}
    known = {form: None for term in terms() for form in term.unless if form not in known} | known
    ordered = sorted(known, key=len, reverse=True)
    alternatives = "|".join(f"({_either_case(form)})" for form in ordered)
    return re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w-])"), tuple(known[form] for form in ordered)


def _either_case(form: str) -> str:
    """A form as a pattern; a form in lower case may begin a sentence, and a line may end within it."""
    pattern = r"\s+".join(re.escape(word) for word in form.split(" "))
    return f"[{form[0]}{form[0].upper()}]{pattern[1:]}" if form.islower() and form[0].isalpha() else pattern


def uses(text: str, page: str = "") -> Iterator[Use]:
    """Every use of a term in a text of a page, in its order, where the word has the meaning of the glossary."""
    pattern, meant = _pattern()
    for found in pattern.finditer(text):
        if (term := meant[(found.lastindex or 0) - 1]) and term.meant_on(page):
            yield Use(term, found.start(), found.end())


def mark(document: nodes.document, address: str, page: str = "") -> None:
    """Make the first use of each term in the prose of `page` a link to its definition; folds are passed over."""
    depth, seen = 0, set()
    for node in list(document.findall(lambda n: isinstance(n, nodes.Text | nodes.raw))):
        if isinstance(node, nodes.raw):
            depth += sum(-1 if closing else 1 for closing in _FOLDS.findall(node.astext()))
        elif depth == 0 and not _within(node, NO_PROSE):
            _mark_text(node, address, page, seen)


def _within(node: nodes.Node, kinds: tuple[type, ...]) -> bool:
    while node := node.parent:
        if isinstance(node, kinds):
            return True
    return False


def _mark_text(node: nodes.Text, address: str, page: str, seen: set[Term]) -> None:
    text, parts, done = node.astext(), [], 0
    for use in uses(text, page):
        if use.term in seen:
            continue
        seen.add(use.term)
        word = html.escape(text[use.start : use.end])
        link = f'<a class="xp-term" href="{address}#term-{use.term.identity}">{word}</a>'
        parts += [nodes.Text(text[done : use.start]), nodes.raw("", link, format="html")]
        done = use.end
    if parts:
        node.parent.replace(node, [part for part in [*parts, nodes.Text(text[done:])] if part.astext()])


class Terms(Directive):
    """`{terms}`: all terms in alphabetical order, each with its definition and the chapter that introduces it."""

    def run(self) -> list[nodes.Node]:
        """Return a definition list whose terms can be addressed."""
        environment = self.state.document.settings.env
        environment.note_dependency(str(SOURCE))
        root = Path(environment.srcdir)
        titles = {path.stem: title(path) for path in reading_order(root)}
        listed = nodes.definition_list(classes=["xp-terms"])
        for term in sorted(terms(), key=lambda term: re.sub(r"\W", "", term.name.lower())):
            name = nodes.term("", term.name, ids=[f"term-{term.identity}"])
            text = nodes.paragraph("", term.definition)
            if term.chapter in titles:
                place = f"{address(term.chapter, root, Path(PAGE))}.html"
                link = nodes.reference("", titles[term.chapter], refuri=place, internal=True)
                text += [nodes.Text(" ("), link, nodes.Text(")")]
            listed += nodes.definition_list_item("", name, nodes.definition("", text))
        return [listed]


class Row(NamedTuple):
    """Where a term is introduced and where it is first used, as names of pages."""

    term: str
    introduced: str
    first_used: str | None
    explained: bool
    """Whether the page of the first use comes not before the introduction, or its first use has the definition."""


def table(pages: list[Path]) -> list[Row]:
    """A row for each term that is introduced on one of the pages or used there, in the order of the glossary."""
    order = [path.stem for path in pages]
    first = {}
    for path in pages:
        for term, marked in first_uses("\n\n".join(markdown(path)), path.stem).items():
            first.setdefault(term, (path.stem, marked))
    rows = []
    for term in terms():
        used, marked = first.get(term, (None, True))
        if term.chapter not in order and used is None:
            continue
        early = used and (term.chapter not in order or order.index(used) < order.index(term.chapter))
        rows.append(Row(term.name, term.chapter, used, not early or marked))
    return rows


def first_uses(text: str, page: str = "") -> dict[Term, bool]:
    """For each term that a page's text uses in sentences: whether its first use can be marked, as it cannot in folds.

    Headings, the bold words that open a box, links, code and mathematics are names or signs, and no uses.
    """
    text = symbols.without_code(text)
    for one in symbols.formulas(text):
        text = text[: one.start] + " " * one.length + text[one.start + one.length :]
    shown = _blanked(_NO_SENTENCE, text)
    markable = {}
    for use in uses(_blanked(_FOLD, shown), page):
        markable.setdefault(use.term, use.start)
    found = {}
    for use in uses(_blanked(_TAG, shown), page):
        found.setdefault(use.term, use.start)
    return {term: markable.get(term) == start for term, start in found.items()}


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    """The text with blanks for what a pattern finds, so that places stay as they are."""
    return pattern.sub(lambda found: re.sub(r"\S", " ", found[0]), text)


def main(arguments: list[str] | None = None) -> int:
    """Print the table of the whole book."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, nargs="?", default=Path())
    rows = table(reading_order(parser.parse_args(arguments).root))
    for row in rows:
        note = "" if row.explained else "  <- used before it is introduced, without its definition"
        print(f"{row.term}: introduced in {row.introduced}, first used in {row.first_used}{note}")
    return int(not all(row.explained for row in rows))


if __name__ == "__main__":
    sys.exit(main())
