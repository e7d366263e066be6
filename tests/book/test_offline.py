"""The offline book: an EPUB and a PDF of the main line, made of the built site."""

import re
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from conftest import ROOT, SITE
from pypdf import PdfReader

from bookbuilder import pages
from bookbuilder.offline import __main__ as offline
from bookbuilder.offline import gather
from explainer.figures import Table

pytestmark = pytest.mark.browser
XHTML = "{http://www.w3.org/1999/xhtml}"
MATH = "{http://www.w3.org/1998/Math/MathML}math"


def require_sound_epub(file):
    """What epubcheck looks for first: its order, its manifest, well-formed pages, and links that lead somewhere."""
    with zipfile.ZipFile(file) as packed:
        assert packed.infolist()[0].filename == "mimetype" and packed.infolist()[0].compress_type == zipfile.ZIP_STORED
        content = {
            name.removeprefix("book/"): packed.read(name) for name in packed.namelist() if name.startswith("book/")
        }
    items = ElementTree.fromstring(content["book.opf"]).iter("{http://www.idpf.org/2007/opf}item")
    items = {item.get("href"): item.get("properties", "") for item in items}
    assert set(items) == set(content) - {"book.opf"}
    trees = {name: ElementTree.fromstring(text) for name, text in content.items() if name.endswith((".xhtml", ".svg"))}
    names = {name: [each.get("id") for each in tree.iter() if each.get("id")] for name, tree in trees.items()}
    assert all(len(set(each)) == len(each) for name, each in names.items() if name.endswith(".xhtml"))
    for name, tree in ((name, tree) for name, tree in trees.items() if name.endswith(".xhtml")):
        assert ("mathml" in items[name]) == any(True for _ in tree.iter(MATH))
        assert not list(tree.iter(f"{XHTML}script"))
        assert all(image.get("alt") and image.get("src") in content for image in tree.iter(f"{XHTML}img"))
        links = [link.get("href") for link in tree.iter(f"{XHTML}a") if not link.get("href").startswith("http")]
        for page, _, place in (link.partition("#") for link in links):
            assert page in content and (not place or place in names[page])
    return trees


def require_pages_of_contents(file, titles):
    """The number behind a title in the contents is that of the page on which it is a heading."""
    pages_ = [re.sub(r"\s+", " ", page.extract_text()) for page in PdfReader(file).pages]
    for title in titles:
        found = re.search(rf"{re.escape(title)} ?(\d+)", " ".join(pages_[1:]))  # first in the contents
        assert title in pages_[int(found[1]) - 1], title


@pytest.fixture(scope="module")
def made(small, browser, tmp_path_factory):
    """The EPUB and the PDF of a small book, whose first page has a table with a caption in two parts."""
    book = tmp_path_factory.mktemp("offline")
    shutil.copytree(small.parents[1], book, dirs_exist_ok=True)
    site = book / "_build" / "html"
    first = site / "book" / "intro.html"
    table = Table(["a"], [["b"]], "See this.", "Live.", "20 draws.")._repr_mimebundle_()["text/html"]
    before, tag, article = first.read_text("utf-8").partition("<article")
    first.write_text(before + tag + article.replace("</h1>", f"</h1>{table}", 1), "utf-8")
    return offline.write(site, book, browser, tmp_path_factory.mktemp("written"))


@pytest.mark.slow
def test_the_epub_of_a_small_book_is_sound(made):
    trees = require_sound_epub(made[0])
    page = ElementTree.tostring(trees["intro.xhtml"], "unicode")
    assert len(list(trees["intro.xhtml"].iter(MATH))) == 4
    assert "Figure 1. " in page and "Figure 2. " in page and page.count("Table 1. ") == 1
    assert "On the site this figure is interactive" in page and "With JavaScript" not in page
    assert '<small class="sample">20 draws.</small>' in page.replace("html:", "") and "How it was measured" not in page
    assert "In two lines" in page and "Forty-two" not in page
    solutions = ElementTree.tostring(trees["solutions.xhtml"], "unicode")
    (formula,) = [each for each in trees["solutions.xhtml"].iter(f"{XHTML}span") if each.get("class") == "xp-together"]
    assert "".join(formula.itertext()) == "42."
    assert "Forty-two" in solutions and "intro.xhtml#intro.exercise-1" in solutions


@pytest.mark.slow
def test_the_pdf_of_a_small_book_has_the_pages_of_its_contents(made):
    require_pages_of_contents(made[1], ["In & out", "More of it", "Solutions", "Status"])
    printed = PdfReader(made[1])
    text = " ".join(page.extract_text() for page in printed.pages)
    assert re.search(r"Solution \(page\s\d\)", text) and "20 draws." in text and printed.outline


@pytest.mark.slow
def test_what_is_wider_than_a_page_is_an_error_and_leaves_nothing(small, browser, tmp_path, monkeypatch):
    whole = gather.gathered

    def widened(*arguments):
        book = whole(*arguments)
        first, *others = book.chapters
        wide = replace(first, body=first.body.replace("<h1>", '<div style="width: 2000px">far</div><h1>'))
        return replace(book, chapters=(wide, *others))

    monkeypatch.setattr(offline, "gathered", widened)
    with pytest.raises(offline.ExplainerError, match=r"Wider than a page.*far"):
        offline.write(small, small.parents[1], browser, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_main_line_has_no_studies():
    names = pages.main_line(ROOT)
    assert names[:2] == ["book/intro", "book/story"] and sum("/chapters/" in name for name in names) == 16
    assert [Path(name).name for name in names[18:]] == ["laboratory", "notation", "glossary"]


def test_without_site_or_browser_it_says_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert offline.main([]) == 1 and "make book" in capsys.readouterr().err
    (tmp_path / SITE.relative_to(ROOT)).mkdir(parents=True)
    (tmp_path / SITE.relative_to(ROOT) / "llms.txt").touch()
    monkeypatch.setattr(offline.browser, "find_browser", lambda: None)
    assert offline.main([]) == 1 and "apt install chromium" in capsys.readouterr().err


@pytest.mark.weekly
@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("site")
def test_the_whole_book(browser, tmp_path, monkeypatch):
    """Every chapter and solution; epubcheck has the last word where it is installed."""
    monkeypatch.chdir(ROOT)
    epub, pdf = offline.write(SITE.relative_to(ROOT), Path(), browser, tmp_path)
    trees = require_sound_epub(epub)
    names = [Path(name).name for name in pages.main_line(ROOT)]
    assert {f"{name}.xhtml" for name in names} < set(trees)
    sources = [cell for path in pages.reading_order(ROOT) if path.stem in names for cell in pages.markdown(path)]
    asked = sum("<summary>Solution</summary>" in source for source in sources)
    assert len(re.findall('class="solution"', zipfile.ZipFile(epub).read("book/solutions.xhtml").decode())) == asked
    require_pages_of_contents(pdf, ["2. Keys, queries, values", "One real head", "16. The verdict", "Glossary"])
    if shutil.which("epubcheck"):
        assert offline.check(epub) == 0
