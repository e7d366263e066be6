"""Addresses of the site, what its search finds, and reports of errors."""

from urllib.parse import parse_qs, urlsplit

import pytest
from conftest import drawn_again
from test_browser import tabs, visit  # noqa: F401 - fixtures

from bookbuilder import repository, shown


@pytest.mark.parametrize(
    ("site", "remote", "code", "expected"),
    [
        ("https://book.org/a", "https://github.com/Org/name.git", "https://github.com/Org/name", "https://book.org/a/"),
        ("", "https://github.com/Org/name", "https://github.com/Org/name", "https://org.github.io/name/"),
        ("", "git@github.com:org/org.github.io.git", "https://github.com/org/org.github.io", "https://org.github.io/"),
        ("", "/srv/git/name", None, None),
    ],
)
def test_no_address_is_invented(monkeypatch, site, remote, code, expected):
    monkeypatch.setenv("EXPLAINER_SITE", site)
    monkeypatch.setenv("EXPLAINER_REPOSITORY", remote)
    assert (repository.public_address(), repository.site_address()) == (code, expected)


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
