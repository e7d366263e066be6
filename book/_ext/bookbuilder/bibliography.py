"""The bibliography: how an entry says what was checked of it, and whether the book's citations agree with it."""

import calendar
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pybtex.database import Entry, parse_file
from pybtex.plugin import register_plugin
from pybtex.richtext import Tag, Text
from pybtex.style import FormattedEntry
from pybtex.style.formatting.plain import Style

REFERENCES = Path("book/references.bib")
STYLE = "checked"
VERDICTS = ("Checked", "Checked in part", "Not checked")
"""What the field `checked` of an entry begins with; a colon and the reasons follow."""

_SURNAME = r"(?:(?:[Vv]on|[Dd]e|[Dd]i|Ben) )?[A-Z][^\W\d_]+(?:[-'][A-Z][^\W\d_]+)*"
_AND = r"(?:, and |, | and | & )"
_MENTION = re.compile(
    rf"(?P<names>\b{_SURNAME}(?:{_AND}{_SURNAME})*)(?P<more>,? et al\.?)?(?:['’]s)?"
    r"[,\]]{0,2} ?[\[(]*(?P<year>1[89]\d\d|20\d\d)\b(?!\.\d)"
)
_LINK = re.compile(r"\[(?P<label>[^\[\]]+)\]\((?P<url>https?://[^\s\"]+?)\)(?!\))")
_ARXIV = re.compile(r"(?:arxiv\.org/(?:abs|pdf)/|arxiv[: ]\s*)(\d{4}\.\d{4,5})", re.IGNORECASE)
_VENUES = {"ACL", "NAACL", "EMNLP", "ICML", "ICLR", "NeurIPS"}
_NO_NAMES = {"In", "Since", *_VENUES, *filter(None, calendar.month_name)}


class Mention(NamedTuple):
    """Authors and year as a text names them; `more` where it says "et al."."""

    names: tuple[str, ...]
    more: bool
    year: str

    def __str__(self) -> str:
        """Return the mention as a complaint shows it."""
        return f"{' & '.join(self.names)}{' et al.' if self.more else ''} {self.year}"


class Checked(Style):
    """The plain style; each entry ends with what was checked of it."""

    def format_entry(self, label: str, entry: Entry, bib_data: Any = None) -> FormattedEntry:
        """Append the field `checked`, its verdict in italics."""
        plain = super().format_entry(label, entry, bib_data=bib_data)
        verdict, _, reasons = entry.fields.get("checked", "").partition(":")
        note = Text(" ", Tag("em", verdict), ": ", Text.from_latex(reasons.strip())) if reasons else ""
        return FormattedEntry(plain.key, Text(plain.text, note), plain.label)


def register() -> None:
    """Make the style known to the directive `bibliography`."""
    register_plugin("pybtex.style.formatting", STYLE, Checked)


@cache
def entries(path: Path = REFERENCES) -> dict[str, Entry]:
    """Return the entries of the bibliography by key."""
    return dict(parse_file(str(path)).entries)


def surnames(entry: Entry) -> tuple[str, ...]:
    """Return the surnames of the authors, accents as letters, without "others"."""
    names = (Text.from_latex(" ".join(p.prelast_names + p.last_names)) for p in entry.persons["author"])
    return tuple(str(name) for name in names if str(name) != "others")


def shortened(entry: Entry) -> bool:
    """Say whether the entry names its first authors only."""
    return "others" in [" ".join(p.last_names) for p in entry.persons["author"]]


def arxiv(entry: Entry) -> str | None:
    """Return the number of the paper on arXiv where its address is there."""
    found = _ARXIV.search(entry.fields.get("url", ""))
    return entry.fields.get("eprint") or (found[1] if found else None)


def mentions(text: str) -> Iterator[Mention]:
    """Yield where a text names authors and a year: "Schlag et al. (2021)", "Lu et al., 2022", "Holm 1979"."""
    for found in _MENTION.finditer(re.sub(r"\s+(?:#:? )?", " ", text)):
        names = tuple(re.split(_AND, found["names"]))
        if found["more"] or len(names) > 1 or names[0] not in _NO_NAMES:
            yield Mention(names, bool(found["more"]), found["year"])


def by_authors(mention: Mention, entry: Entry) -> bool:
    """Say whether a mention names the authors of an entry; words in capitals may stand before the first of them."""
    authors = tuple(name.lower() for name in surnames(entry))
    many = shortened(entry) or len(authors) > 2
    for start in range(len(mention.names)):
        named = tuple(name.lower() for name in mention.names[start:])
        whole = many if mention.more else named == authors
        if named == authors[: len(named)] and whole:
            return True
    return False


def complaints(text: str, references: dict[str, Entry]) -> list[str]:
    """Return what the citations of a text and the bibliography do not agree on."""
    wrong = []
    for mention in mentions(text):
        years = sorted({e.fields["year"] for e in references.values() if by_authors(mention, e)})
        if mention.year not in years:
            wrong.append(f"{mention}: the bibliography has {', '.join(years) or 'no such entry'}")
    known = {number: entry for entry in references.values() if (number := arxiv(entry))}
    wrong += [f"arXiv {number} has no entry" for number in _ARXIV.findall(text) if number not in known]
    for link in _LINK.finditer(text):
        number = _ARXIV.search(link["url"])
        entry = known.get(number[1]) if number else None
        wrong += [
            f"{mention} links to {number[1]}, which is another paper"
            for mention in mentions(link["label"])
            if entry and not (by_authors(mention, entry) and mention.year == entry.fields["year"])
        ]
    return wrong
