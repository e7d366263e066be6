"""The built site in a real browser that can reach nothing but the site itself."""

import re
from dataclasses import dataclass, field

import pytest
from conftest import ROOT, drawn_again, require_frames

from bookbuilder import locale
from bookbuilder.pages import names

pytestmark = [pytest.mark.browser, drawn_again]
MAX_BYTES_BEFORE_FIGURES = 400_000
ONE_TOKEN_OF_EACH_KIND = """() => {
    const seen = new Set();
    for (const token of document.querySelectorAll(".highlight span[class]")) {
        const kind = `${token.className} ${token.closest(".cell_output") ? "in an output" : ""}`;
        if (seen.has(kind)) token.replaceWith(token.textContent);
        seen.add(kind);
    }
}"""
"""The contrast of thousands of equal tokens takes axe ten seconds a page."""
ONLY_VIOLATIONS = {"resultTypes": ["violations"], "preload": False}
PATIENCE = 300_000
"""Milliseconds for what takes a second or two on an idle machine: a busy one is slow, not wrong."""
PHONE = 360
# Not ours: the theme's header buttons and sidebar labels, and the roles docutils gives to a bibliography's entries.
THEME_PARTS = (
    ".bd-header",
    ".bd-sidebar-primary",
    ".bd-header-article",
    ".navbar",
    ".prev-next-footer",
    "#pst-search-dialog",
    ".citation-list",
)


def pages() -> list[str]:
    """Every page of the table of contents, as a path below the site."""
    return [f"{name}.html" for name in names(ROOT)]


def translated() -> list[str]:
    """Every page of the book's other languages."""
    editions = [edition.folder.name for edition in locale.editions(ROOT)]
    return [f"{edition}/{name}.html" for edition in editions for name in locale.main_line(ROOT)]


@dataclass
class Visit:
    """An open page and everything it complained about or asked for."""

    page: object
    complaints: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)

    def hear(self, message: object) -> None:
        """Keep an error or a warning of the console."""
        if message.type in {"error", "warning"}:
            self.complaints.append(f"{message.text} {message.location['url']}")

    def scroll(self) -> None:
        """Go through the page as a reader does, so that lazy parts appear, and wait for them.

        Figures are drawn from 600 pixels before they are seen, so that steps of 1200 pass none. Two frames for each
        step: in the first a busy machine lays out, in the second it tells what is near. Frames that do not come and
        pages that grow without end fail a test; neither stops it.
        """
        for step in range(200):
            top = 1200 * step
            if top >= self.page.evaluate("document.documentElement.scrollHeight"):
                break
            self.page.evaluate("(top) => window.scrollTo({top, behavior: 'instant'})", top)
            require_frames(self.page)
        else:
            pytest.fail(f"{self.page.url} grows while it is scrolled: it is longer than {top} pixels")
        for kind in ("xp-plotly", "xp-widget[data-model]"):
            name = kind.partition("[")
            selector = f".{name[0]}{name[1]}{name[2]}:not([data-ready])"
            self.page.wait_for_function("(s) => !document.querySelector(s)", arg=selector)


@pytest.fixture
def visit(browser, address):
    """A function that opens a page: `visit(path, width=..., scheme=..., base=...)`."""
    contexts = []

    def open_page(path, width=1280, scheme="light", base=address, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        result = Visit(context.new_page())

        def route(request_route):
            url = request_route.request.url
            if url.startswith((base, "blob:", "data:")):
                request_route.continue_()
            else:
                result.outside.append(url)
                request_route.abort()

        result.page.route("**/*", route)
        result.page.on("console", result.hear)
        result.page.on("pageerror", lambda e: result.complaints.append(str(e)))
        result.page.on("requestfinished", lambda r: result.sizes.__setitem__(r.url, r.sizes()["responseBodySize"]))
        result.page.goto(base + path, wait_until="load")
        if options.get("java_script_enabled", True):
            require_frames(result.page)
        return result

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("path", [*pages(), *translated()])
def test_page_is_whole_accessible_and_fits(visit, path):
    """Nothing broken, nothing from outside, no axe finding, and no page wider than a phone.

    Every second page as on a desk in light, the others as on a phone in the dark: both for each would take minutes. A
    translation is seen the other way.
    """
    english = path[path.index("book/") :]
    scheme, width = (("dark", PHONE), ("light", 1280))[(pages().index(english) + (path != english)) % 2]
    seen = visit(path, width=width, scheme=scheme)
    require_whole(seen)
    require_accessible(seen, scheme)
    seen.page.set_viewport_size({"width": PHONE, "height": 740})
    seen.page.wait_for_function(f"document.documentElement.scrollWidth <= {PHONE}", timeout=30_000)


NAMES_THAT_MEET = """() => [...document.querySelectorAll(".xp-plotly")].flatMap((figure) => {
    const places = {};
    for (const tick of figure.querySelectorAll("g[class^='y'][class$='tick']"))
        (places[tick.getAttribute("class")] ??= []).push([tick.textContent, tick.getBoundingClientRect()]);
    return Object.values(places).flatMap((of) => of.sort((a, b) => a[1].top - b[1].top)
        .filter(([, box], i) => i && box.top < of[i - 1][1].bottom - 1).map(([name]) => name));
})"""
"""Names of rows that begin above the end of the name before them."""


@pytest.mark.parametrize("page", ["book/story.html", "book/chapters/what_makes_it_learning.html"])
@pytest.mark.parametrize("folder", ["", "zh/"])
def test_names_of_rows_do_not_meet_on_a_phone(visit, folder, page):
    seen = visit(folder + page, width=PHONE)
    seen.scroll()
    assert seen.page.locator("g[class^='y'][class$='tick']").count() > 5
    assert seen.page.evaluate(NAMES_THAT_MEET) == []


def require_whole(seen: Visit) -> None:
    """No console error, nothing from outside, figures drawn, explorables mounted, mathematics set."""
    seen.scroll()
    seen.page.wait_for_function("() => !document.querySelector('.math') || document.querySelector('mjx-container')")
    assert seen.complaints == []
    assert seen.outside == []
    assert seen.page.locator("mjx-merror").count() == 0
    assert seen.page.locator(".xp-widget[data-model] .xp-fallback").count() == 0
    assert "Traceback" not in seen.page.inner_text("body")


def require_accessible(seen: Visit, scheme: str) -> None:
    """axe-core finds nothing in the parts that are ours."""
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415 - only here

    assert seen.page.evaluate("document.documentElement.dataset.theme") == scheme

    seen.page.evaluate(ONE_TOKEN_OF_EACH_KIND)
    results = Axe().run(seen.page, context={"exclude": [[part] for part in THEME_PARTS]}, options=ONLY_VIOLATIONS)
    results = results.response
    found = [f"{v['id']}: {[n['html'][:160] for n in v['nodes'][:3]]}" for v in results["violations"]]
    assert found == []


def test_first_chapter_is_light(visit):
    """What the first chapter transfers before any figure stays within the budget."""
    seen = visit("book/chapters/learning_in_context.html")
    seen.page.wait_for_function("() => document.querySelector('mjx-container')")
    weight = sum(size for url, size in seen.sizes.items() if "plotly.min.js" not in url)
    assert 50_000 < weight <= MAX_BYTES_BEFORE_FIGURES


@pytest.mark.parametrize("path", ["book/intro.html", "zh/book/intro.html"])
def test_explorable_answers_to_the_keyboard(visit, path):
    """On the intro page: the default shows the equality; arrow keys on a slider change the text result."""
    seen = visit(path)
    seen.scroll()
    result = seen.page.locator(".xp-view [role=status]").first
    before = result.inner_text()
    slider = seen.page.locator(".xp-view input[type=range]").first
    slider.focus()
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    seen.page.wait_for_function(
        "([s, t]) => document.querySelector(s).innerText !== t", arg=[".xp-view [role=status]", before]
    )
    assert re.search(r"\d", before)


def test_site_works_from_a_folder(visit, site):
    """Opened as a file, without any server: explorable, figures and mathematics are there."""
    for path in ("book/intro.html", "book/chapters/learning_in_context.html", "zh/book/intro.html"):
        seen = visit(path, base=site.as_uri() + "/")
        seen.scroll()
        seen.page.wait_for_function("() => document.querySelector('mjx-container')")
        assert seen.outside == []
        assert seen.complaints == []


def test_search_finds_a_chapter(visit):
    """The site's own search finds a word of the first chapter."""
    seen = visit("search.html?q=demonstrations")
    seen.page.wait_for_selector("#search-results li a")
    links = seen.page.locator("#search-results li a").evaluate_all(
        "(links) => links.map((a) => a.getAttribute('href'))"
    )
    assert any("learning_in_context" in link for link in links)
    assert seen.complaints == []


def test_page_reads_without_javascript(visit):
    """Text, stills and captions are there when scripts are off."""
    seen = visit("book/intro.html", java_script_enabled=False)
    assert seen.page.locator(".xp-fallback svg").count() >= 1
    assert "gradient" in seen.page.inner_text("main")


def test_theme_switch_redraws_figures(visit):
    """Switching from light to dark changes the figures' text colour."""
    seen = visit("book/chapters/learning_in_context.html")
    seen.scroll()
    colour = "() => getComputedStyle(document.querySelector('.xp-plotly .xtick text')).fill"
    light = seen.page.evaluate(colour)
    seen.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    seen.page.wait_for_function(f"(light) => ({colour})() !== light", arg=light)


def test_keys_values_and_queries_have_their_colours_in_formulas(visit):
    seen = visit("book/chapters/attention_as_weight_update.html")
    seen.page.wait_for_function("() => document.querySelector('mjx-container .xp-key')")
    colours = [
        seen.page.evaluate(f"getComputedStyle(document.querySelector('mjx-container .xp-{kind}')).color")
        for kind in ("key", "value", "query")
    ]
    text = seen.page.evaluate("getComputedStyle(document.body).color")
    assert len({*colours, text}) == 4
