"""What search engines and messengers find, what the site's search finds, and reports of errors."""

import html
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from conftest import drawn_again
from test_browser import tabs, visit  # noqa: F401 - fixtures

from bookbuilder import repository, search, shown

BASE = "https://org.github.io/name/"


@pytest.mark.slow
def test_a_page_says_what_it_is_where_it_is_and_whom_to_tell_of_an_error(small):
    page = (small / "book" / "intro.html").read_text("utf-8")
    tags = dict(re.findall(r'<meta (?:name|property)="([\w:]+)" content="([^"]*)"', page))
    assert tags["og:title"] == "In & out" and tags["og:url"] == f"{BASE}book/intro.html"
    assert tags["og:site_name"] == "Why can GPT learn in-context?" and (small / "_static" / "laboratory.png").exists()
    assert tags["og:image"] == f"{BASE}_static/laboratory.png" and tags["og:description"]
    assert f'<link rel="canonical" href="{BASE}book/intro.html"' in page
    assert "url=book/intro.html" in (small / "index.html").read_text("utf-8")
    listed = re.findall("<loc>(.*?)</loc>", (small / "sitemap.xml").read_text())
    assert set(listed) == {f"{BASE}book/intro.html", f"{BASE}book/status.html"}
    link = html.unescape(re.search(r'<a class="xp-report"[^>]* href="([^"]*)"', page)[1])
    asked = parse_qs(urlsplit(link).query)
    assert link.startswith("https://github.com/org/name/issues/new?")
    assert asked["title"] == ["Error on the page: In & out"]
    assert asked["body"][0].startswith("Page: book/intro\nSection: \n")


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
    english = search.English({})
    assert english.stem(british) == english.stem(american)
    assert [search.folded(word) for word in ("noise", "four", "rise", "vogue")] == ["noise", "four", "rise", "vogue"]


@pytest.mark.browser
@drawn_again
def test_the_search_finds_the_same_pages_for_both_spellings(visit):  # noqa: F811
    results = []
    for word in ("optimiser", "optimizer"):
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
        report = shown.report("book/x", "X", known, shown.REPORT)
        place = "document.querySelector('.page-toc')"
        seen.page.evaluate(f"(html) => {place}.insertAdjacentHTML('beforeend', html)", report)
    seen.page.evaluate("document.querySelector('#one-real-head').scrollIntoView({behavior: 'instant'})")
    seen.page.evaluate("addEventListener('click', (event) => event.preventDefault())")
    for report in seen.page.locator(".page-toc .xp-report").all():
        report.evaluate("(it) => (it.querySelector('summary') ?? it).click()")
    note, link = seen.page.locator(".page-toc .xp-report").all()
    assert note.locator("pre").text_content() == "Page: book/x\nSection: One real head"
    assert "\nSection: One real head\n" in parse_qs(urlsplit(link.get_attribute("href")).query)["body"][0]
