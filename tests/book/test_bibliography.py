"""The bibliography says what was checked of each paper, and has each paper that the book cites once."""

import re
from collections import Counter

import pytest
from conftest import ROOT
from pybtex.database import parse_file

from bookbuilder import pages

VERDICTS = ("Checked", "Checked against notes", "Checked in part", "Not checked")
ARXIV = re.compile(r"(?:arxiv\.org/(?:abs|pdf)/|arxiv[: ]\s*)(\d{4}\.\d{4,5})", re.IGNORECASE)
CITED = re.compile(r"\{cite:\w+\}`([^`]+)`")


@pytest.fixture(scope="module")
def references():
    return dict(parse_file(str(ROOT / "book" / "references.bib")).entries)


def arxiv(entry):
    found = ARXIV.search(entry.fields.get("url", ""))
    return entry.fields.get("eprint") or (found[1] if found else None)


def test_what_is_cited_has_an_entry(references):
    code = [*(ROOT / "src" / "explainer").rglob("*.py"), *(ROOT / "book" / "_ext").rglob("*.toml"), ROOT / "README.md"]
    book = ["\n".join(pages.markdown(path)) for path in pages.reading_order(ROOT)]
    texts = "\n".join([*book, *(path.read_text("utf-8") for path in code)])
    cited = {key.strip() for keys in CITED.findall(texts) for key in keys.split(",")}
    assert len(cited) > 20 and cited - set(references) == set()
    assert set(ARXIV.findall(texts)) - set(map(arxiv, references.values())) == set()


def test_every_entry_says_what_was_checked(references):
    """An opening word of the four, and reasons."""
    told = {key: entry.fields.get("checked", "").partition(": ") for key, entry in references.items()}
    assert [key for key, (verdict, _, why) in told.items() if verdict not in VERDICTS or not why] == []


def test_one_entry_for_a_paper(references):
    titles = Counter(re.sub(r"\W", "", entry.fields["title"]).lower() for entry in references.values())
    numbers = Counter(filter(None, map(arxiv, references.values())))
    assert [what for what, times in (titles | numbers).items() if times > 1] == []
