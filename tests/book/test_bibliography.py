"""The bibliography says what was checked of each paper, and every citation in the book agrees with it."""

import calendar
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from conftest import ROOT
from pybtex.database import Entry, parse_file, parse_string
from pybtex.richtext import Text

from bookbuilder import bibliography, pages

FOLDERS = {"book": ("*.ipynb", "*.md"), "src/explainer": ("*.py", "*.toml", "*.md"), "book/_ext": ("*.py", "*.toml")}
TEXTS = [ROOT / "README.md", *sorted(
    path for folder, kinds in FOLDERS.items() for kind in kinds for path in (ROOT / folder).rglob(kind)
)]  # fmt: skip
VERDICTS = ("Checked", "Checked in part", "Not checked")
EXAMPLE = r"""
@article{zhang2024trained, title={Trained}, journal={J}, year={2024}, checked={Checked: its {O}wn page.},
  author={Zhang, Ruiqi and Frei, Spencer and Bartlett, Peter L.}, url={https://arxiv.org/abs/2306.09927}}
@misc{irie2022dual, title={Dual}, author={von Irie, K. and Csord{\'a}s, R{\'o}bert}, year={2022}}
@misc{brown2020language, title={Few}, author={Brown, Tom and others}, year={2020}}
@misc{holm1979simple, title={Simple}, author={Holm, Sture}, year={1979}}
"""


_SURNAME = r"(?:(?:[Vv]on|[Dd]e|[Dd]i|Ben) )?[A-Z][^\W\d_]+(?:[-'][A-Z][^\W\d_]+)*"
_AND = r"(?:, and |, | and | & )"
_MENTION = re.compile(
    rf"(?P<names>\b{_SURNAME}(?:{_AND}{_SURNAME})*)(?P<more>,? et al\.?)?(?:['’]s)?"
    r"[,\]]{0,2} ?[\[(]*(?P<year>1[89]\d\d|20\d\d)\b(?!\.\d)"
)
_LINK = re.compile(r"\[(?P<label>[^\[\]]+)\]\((?P<url>https?://[^\s\"]+?)\)(?!\))")
_ARXIV = re.compile(r"(?:arxiv\.org/(?:abs|pdf)/|arxiv[: ]\s*)(\d{4}\.\d{4,5})", re.IGNORECASE)
_NO_NAMES = {"In", "Since", "ACL", "NAACL", "EMNLP", "ICML", "ICLR", "NeurIPS", *calendar.month_name}


class Mention(NamedTuple):
    """Authors and year as a text names them; `more` where it says "et al."."""

    names: tuple[str, ...]
    more: bool
    year: str

    def __str__(self) -> str:
        return f"{' & '.join(self.names)}{' et al.' if self.more else ''} {self.year}"


def surnames(entry: Entry) -> tuple[str, ...]:
    """Return the surnames of the authors, accents as letters, without "others"."""
    names = (Text.from_latex(" ".join(p.prelast_names + p.last_names)) for p in entry.persons["author"])
    return tuple(str(name) for name in names if str(name) != "others")


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
    many = len(authors) > 2 or len(authors) < len(entry.persons["author"])  # the last of them may be "others"
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


@pytest.fixture(scope="module")
def references():
    return dict(parse_file(str(ROOT / "book" / "references.bib")).entries)


@pytest.fixture(scope="module")
def example():
    return dict(parse_string(EXAMPLE, "bibtex").entries)


def text_of(path):
    return "\n\n".join("".join(cell["source"]) for cell in pages.cells(path))


def test_citations_agree_with_the_bibliography(references):
    found = {str(path.relative_to(ROOT)): complaints(text_of(path), references) for path in TEXTS}
    assert len(found) > 200 and {path: wrong for path, wrong in found.items() if wrong} == {}


def test_every_entry_says_what_was_checked(references):
    """An opening word of the three, and reasons."""
    told = {key: entry.fields.get("checked", "").partition(": ") for key, entry in references.items()}
    assert [key for key, (verdict, _, why) in told.items() if verdict not in VERDICTS or not why] == []


def test_one_entry_for_a_paper(references):
    titles = Counter(re.sub(r"\W", "", entry.fields["title"]).lower() for entry in references.values())
    numbers = Counter(filter(None, map(arxiv, references.values())))
    assert [what for what, times in (titles | numbers).items() if times > 1] == []


def test_authors_and_year_name_one_reading_per_chapter(references):
    """Two entries that "A et al. (year)" cannot tell apart are told apart by a link; none may share all authors too."""
    for one, other in itertools.combinations(references.values(), 2):
        same = surnames(one) == surnames(other)
        assert not (same and one.fields["year"] == other.fields["year"]), one.fields["title"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("Zhang et al.'s (2024) theorem; von Irie and Csordás, 2022; Brown et al. 2020; in December 2022", None),
        ("    Source: Zhang, Frei and\n    Bartlett 2024, section 4", None),
        ("# of Zhang, Frei\n# and Bartlett 2023", "the bibliography has 2024"),
        ("Zhang and Frei (2024)", "no such entry"),
        ("[RetNet](https://arxiv.org/abs/2307.08621)", "arXiv 2307.08621 has no entry"),
        ("[Brown et al., 2020](https://arxiv.org/abs/2306.09927)", "another paper"),
    ],
)
def test_reads_citations_and_complains(text, complaint, example):
    found = complaints(text, example)
    assert any(complaint in one for one in found) if complaint else not found and list(mentions(text))


def test_the_page_shows_what_was_checked(example):
    style = bibliography.Checked()
    shown = style.format_entry("1", example["zhang2024trained"]).text.render_as("html")
    assert shown.endswith(' <em>Checked</em>: its <span class="bibtex-protected">O</span>wn page.')
    assert style.format_entry("2", example["holm1979simple"]).text.render_as("text").endswith("1979.")
