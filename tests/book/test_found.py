"""What search engines, messengers and assistants find: tags, previews, sitemap, llms.txt, Markdown, search, reports."""

import html
import re
import struct
from collections import Counter
from urllib.parse import parse_qs, urlsplit

import pytest
from bs4 import BeautifulSoup
from conftest import drawn_again
from test_browser import pages, tabs, visit  # noqa: F401 - fixtures

from bookbuilder import cards, found, repository, spelling, twins

BASE = "https://org.github.io/name/"


def head_of(page):
    return found.tags_of(page), page.read_text("utf-8").partition("</head>")[0]


@pytest.mark.slow
def test_a_page_says_what_it_is_and_has_a_preview(small):
    tags, head = head_of(small / "book" / "intro.html")
    assert tags["og:title"] == "In & out"
    assert tags["description"] == tags["og:description"] == "Does a “context” of W_V teach? It has 32 lines."
    assert tags["og:url"] == f"{BASE}book/intro.html" and tags["twitter:card"] == "summary_large_image"
    assert f'<link rel="canonical" href="{BASE}book/intro.html"' in head
    assert '<link rel="alternate" type="text/markdown" href="intro.md"' in head
    picture = small / tags["og:image"].removeprefix(BASE)
    assert struct.unpack(">II", picture.read_bytes()[16:24]) == cards.SIZE
    front, head = head_of(small / "index.html")
    assert front == tags and f'<link rel="canonical" href="{BASE}book/intro.html"' in head
    assert '<meta http-equiv="refresh" content="0; url=book/intro.html" />' in head


@pytest.mark.slow
def test_sitemap_and_llms_name_every_page_and_nothing_else(small):
    names = {"book/intro", "book/status"}
    assert set(re.findall("<loc>(.*)</loc>", (small / "sitemap.xml").read_text())) == {f"{BASE}{n}.html" for n in names}
    assert f"Sitemap: {BASE}sitemap.xml" in (small / "robots.txt").read_text()
    listed = re.findall(r"\]\((.*?)\)", (small / "llms.txt").read_text())
    assert set(listed) == {f"{BASE}{name}.md" for name in names}
    assert all((small / place.removeprefix(BASE)).exists() for place in listed)


@pytest.mark.slow
def test_the_twin_of_a_page_is_its_markdown(small):
    twin = (small / "book" / "intro.md").read_text("utf-8")
    assert twin.startswith("# In & out\n\n> **The question.** Does a “context” of $W_V$ teach?")
    assert "$$\ny = \\sum_i v_i \\, (k_i \\cdot q)\n$$" in twin
    assert "```python\nanswer = 6 * 7\n```" in twin
    assert r"| $\|x\|$ | 0.25 |" in twin
    assert "*Figure: Two formulas above each other. One gradient step" in twin
    assert "[the next page](status.md)" in twin and "<" not in twin.replace("<br>", "")


@pytest.mark.slow
def test_a_report_has_the_page_and_room_for_the_section(small):
    page = (small / "book" / "intro.html").read_text("utf-8")
    link = html.unescape(re.search(r'<a class="xp-report"[^>]* href="([^"]*)"', page)[1])
    asked = parse_qs(urlsplit(link).query)
    assert link.startswith("https://github.com/org/name/issues/new?")
    assert asked["title"] == ["Error on the page: In & out"]
    assert asked["body"][0].startswith("Page: book/intro\nSection: \n")


@pytest.mark.parametrize(
    ("repository_url", "expected"),
    [("https://gitlab.com/a/b", "https://gitlab.com/a/b/-/issues/new?issue%5Btitle%5D"), (None, "<pre>Page: book/x")],
)
def test_a_report_elsewhere(repository_url, expected):
    assert expected in found.report("book/x", "X", repository_url, found.WORDS)


@pytest.mark.parametrize(
    ("site", "remote", "code", "expected"),
    [
        ("https://book.org/a", "https://github.com/Org/name.git", "https://github.com/Org/name", "https://book.org/a/"),
        ("", "https://github.com/Org/name", "https://github.com/Org/name", "https://org.github.io/name/"),
        ("", "git@github.com:org/org.github.io.git", "https://github.com/org/org.github.io", "https://org.github.io/"),
        ("", "ssh://git@gitlab.com/org/name", "https://gitlab.com/org/name", None),
        ("", "/srv/git/name", None, None),
        ("", "file:///srv/name", None, None),
    ],
)
def test_no_address_is_invented(monkeypatch, site, remote, code, expected):
    monkeypatch.setenv("EXPLAINER_SITE", site)
    monkeypatch.setenv("EXPLAINER_REPOSITORY", remote)
    assert (repository.public_address(), repository.site_address()) == (code, expected)


@pytest.mark.parametrize("path", pages())
def test_every_page_has_its_tags_and_every_number_of_its_prose_in_markdown(site, path):
    page = site / path
    tags, twin = found.tags_of(page), page.with_suffix(".md").read_text("utf-8")
    assert 40 < len(tags["description"]) <= 250 and tags["og:title"] and (site / found.CARDS / path).with_suffix(".png")
    soup = BeautifulSoup(twins.article(page), "html.parser")
    for element in soup.select("script, svg, pre, .xp-minutes, .xp-wait, .xp-report"):
        element.decompose()
    said, kept = (Counter(re.findall(r"\d+(?:\.\d+)?", text)) for text in (soup.get_text(" "), twin))
    assert said - kept == Counter()
    assert not re.search(
        r"</?(?:span|div|p|td|svg|figure|details)\b", re.sub(r"```.*?```|`[^`]+`", "", twin, flags=re.S)
    )


def test_a_preview_is_the_same_each_time_and_its_fonts_have_every_sign(site):
    assert cards.card("A title", "Words.", "Site") == cards.card("A title", "Words.", "Site")
    signs = set()
    for path in pages():
        tags = found.tags_of(site / path)
        picture = next(cards.drawings(twins.article(site / path)), "")
        signs |= set(tags["og:title"] + tags["description"]) | set(html.unescape(re.sub("<[^>]+>", "", picture)))
    assert {sign for sign in signs if ord(sign) not in cards.widths() and not sign.isspace()} == set()


@pytest.mark.parametrize(
    ("british", "american"),
    [
        ("optimisers", "optimizers"),
        ("generalisation", "generalization"),
        ("behavioural", "behavioral"),
        ("Neighbours", "neighbors"),
        ("analysed", "analyzed"),
        ("catalogue", "catalog"),
    ],
)
def test_both_spellings_have_one_stem(british, american):
    search = spelling.Search({})
    assert search.stem(british) == search.stem(american)
    assert [spelling.folded(word) for word in ("noise", "four", "rise", "vogue")] == ["noise", "four", "rise", "vogue"]


@pytest.mark.browser
@drawn_again
@pytest.mark.parametrize("words", [("optimiser", "optimizer"), ("behaviour", "behavior"), ("neighbour", "neighbor")])
def test_the_search_finds_the_same_pages_for_both_spellings(visit, words):  # noqa: F811
    results = []
    for word in words:
        page = visit(f"search.html?q={word}").page
        page.wait_for_function("() => /\\d+ page|match any/.test(document.querySelector('.search-summary')?.innerText)")
        links = page.locator("#search-results ul.search > li > a")
        results.append(set(links.evaluate_all("(all) => all.map((a) => a.getAttribute('href').split(/[?#]/)[0])")))
    assert results[0] == results[1] and results[0]


@pytest.mark.browser
@drawn_again
def test_a_report_names_the_section_on_the_screen(visit):  # noqa: F811
    seen = visit("book/chapters/keys_queries_values.html")
    for known in (None, "https://github.com/org/name"):
        report = found.report("book/x", "X", known, found.WORDS)
        seen.page.evaluate(
            "(html) => document.querySelector('.page-toc').insertAdjacentHTML('beforeend', html)", report
        )
    seen.page.evaluate("document.querySelector('#one-real-head').scrollIntoView({behavior: 'instant'})")
    seen.page.evaluate("addEventListener('click', (event) => event.preventDefault())")
    for report in seen.page.locator(".page-toc .xp-report").all():
        report.evaluate("(it) => (it.querySelector('summary') ?? it).click()")
    note, link = seen.page.locator(".page-toc .xp-report").all()
    assert note.locator("pre").text_content() == "Page: book/x\nSection: One real head"
    assert "\nSection: One real head\n" in parse_qs(urlsplit(link.get_attribute("href")).query)["body"][0]
