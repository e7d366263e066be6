"""The built site in a real browser that can reach nothing but the site itself."""

import re
from dataclasses import dataclass, field

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import PATIENCE, ROOT, drawn_again, require_frames

from bookbuilder.pages import main_line, names
from bookbuilder.translation import editions

pytestmark = [pytest.mark.browser, drawn_again]
DRAW_ALL = """async ([parts, patience]) => {
    const end = Date.now() + patience;
    for (const part of document.querySelectorAll(parts)) {
        part.scrollIntoView({ behavior: "instant" });
        while (!part.dataset.ready && Date.now() < end) await new Promise((later) => setTimeout(later, 10));
    }
    window.scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
    return Date.now() < end;
}"""
ONE_OF_EACH_KIND = """() => {
    const seen = new Set();
    const again = (kind) => seen.has(kind) || !seen.add(kind);
    for (const token of document.querySelectorAll(".highlight span[class]"))
        if (again(`${token.className} ${token.closest(".cell_output") ? "in an output" : ""}`))
            token.replaceWith(token.textContent);
    for (const formula of document.querySelectorAll("mjx-container:not([display])")) {
        const colours = [...formula.querySelectorAll("[class*='xp-']")].map((part) => part.className);
        const place = formula.closest("td, .admonition, figcaption, summary, section");
        if (again([...new Set(colours), place?.localName, place?.className].join())) formula.replaceChildren("x");
    }
    for (const drawing of document.querySelectorAll(".xp-plotly .main-svg"))
        if (again(drawing.getAttribute("class"))) drawing.replaceChildren();
}"""
"""Thousands of equal tokens, and the insides of formulas, drawings and entries, take axe most of its time."""
ONLY_VIOLATIONS = {"resultTypes": ["violations"], "preload": False}
PHONE = 360
NOWHERE = {"server": "http://127.0.0.1:9", "bypass": "127.0.0.1"}
"""A proxy that is not there: the browser reaches this machine, past it, and nothing else."""
# Not ours: the theme's header buttons and sidebar labels, and the roles docutils gives to a bibliography's entries.
THEME_PARTS = (
    *(".bd-header", ".bd-sidebar-primary", ".bd-header-article", ".navbar", ".prev-next-footer"),
    *("#pst-search-dialog", ".citation-list"),
)
PAGES = [f"{name}.html" for name in names(ROOT)]
"""Every page of the table of contents, as a path below the site."""
TRANSLATED = [f"{one.settings['address']}/{name}.html" for one in editions(ROOT) for name in main_line(ROOT)]
"""Every page of the book's other languages."""


@dataclass
class Visit:
    """An open page and everything it complained about or asked for."""

    page: object
    complaints: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def scroll(self) -> None:
        """Bring each lazy part before the reader, down to the end of the page, and wait until it is drawn."""
        parts = ".xp-plotly, .xp-widget[data-model]"
        if not self.page.evaluate(DRAW_ALL, [parts, PATIENCE]):
            require_frames(self.page)
            pytest.fail(f"a figure of {self.page.url} is not drawn")


@pytest.fixture(scope="session")
def tabs():
    """Tabs that stay open, each with its options: a browser compiles in a tab once what all pages load."""
    return {}


@pytest.fixture
def visit(browser, address, tabs):
    """A function that opens a page: `visit(path, width=..., scheme=..., base=...)`; the next one takes its place."""
    used = []

    def open_page(path, width=1280, scheme="light", base=address, **options):
        key = (scheme, *options.items())
        if key not in tabs or tabs[key].is_closed():
            context = browser.new_context(color_scheme=scheme, proxy=NOWHERE, **options)
            context.set_default_timeout(PATIENCE)
            tabs[key] = context.new_page()
        page = tabs[key]
        page.set_viewport_size({"width": width, "height": 900})
        result = Visit(page)
        at_home = (base, "blob:", "data:")
        listeners = {
            "console": lambda said: said.type in ("error", "warning") and result.complaints.append(said.text),
            "pageerror": lambda error: result.complaints.append(str(error)),
            "request": lambda asked: asked.url.startswith(at_home) or result.outside.append(asked.url),
        }
        for event, listener in listeners.items():
            page.on(event, listener)
        used.append((page, listeners))
        page.goto(base + path, wait_until="load")
        if options.get("java_script_enabled", True):
            require_frames(page)
        return result

    yield open_page
    for page, listeners in used:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        if not page.is_closed() and page.url != "about:blank":
            page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
            page.goto("about:blank")


DAILY = [*PAGES[:2], *PAGES[2:18:4], *PAGES[18::9], *TRANSLATED[::20]]
"""Introduction and story, every fourth chapter, and some of the other pages, which are of the same kinds."""
ASKED = [(path, i % 5 == 0) for i, path in enumerate(DAILY)]
"""Pages, and whether axe is asked: in the weekly run of all, else of every fifth."""
OTHERS = [path for path in (*PAGES, *TRANSLATED[::3]) if (path, True) not in ASKED]
NAMES_THAT_MEET = """() => [...document.querySelectorAll(".xp-plotly")].flatMap((figure) =>
    [["x", "left", "right"], ["y", "top", "bottom"]].flatMap(([axis, start, end]) => {
        const places = {};
        for (const tick of figure.querySelectorAll(`g[class^='${axis}'][class$='tick']`))
            (places[tick.getAttribute("class")] ??= []).push([tick.textContent, tick.getBoundingClientRect()]);
        return Object.values(places).flatMap((of) => of.sort((a, b) => a[1][start] - b[1][start])
            .filter(([, box], i) => i && box[start] < of[i - 1][1][end] - 1).map(([name]) => name));
    }))"""
"""Names at an axis that begin before the end of the name before them."""
OUTSIDE_THEIR_FIGURE = """() => [...document.querySelectorAll(".xp-plotly")].flatMap((figure) => {
    const { left, right } = figure.getBoundingClientRect();
    return [...figure.querySelectorAll("svg text")].map((text) => [text.textContent, text.getBoundingClientRect()])
        .filter(([text, box]) => text && (box.left < left - 1 || box.right > right + 1)).map(([text]) => text);
})"""


@pytest.mark.parametrize(
    ("path", "axe"), [*ASKED, *(pytest.param(path, True, marks=pytest.mark.weekly) for path in OTHERS)]
)
def test_page_is_whole_accessible_and_fits(visit, path, axe):
    """Nothing broken, nothing from outside, no axe finding, and no page wider than a phone.

    Every second page as on a desk in light, where figures are drawn wide and then fitted to a phone; the others as on
    a phone in the dark; translations the other way.
    """
    english = path[path.index("book/") :]
    scheme, width = (("dark", PHONE), ("light", 1280))[(PAGES.index(english) + (path != english)) % 2]
    seen = visit(path, width=width, scheme=scheme)
    seen.scroll()
    seen.page.wait_for_function("() => !document.querySelector('.math') || document.querySelector('mjx-container')")
    assert seen.complaints == [] and seen.outside == []
    assert seen.page.locator(".xp-widget[data-model] .xp-fallback").count() == 0
    assert "Traceback" not in seen.page.inner_text("body")
    assert seen.page.evaluate("document.documentElement.dataset.theme") == scheme
    seen.page.set_viewport_size({"width": PHONE, "height": 740})
    seen.page.wait_for_function(f"document.documentElement.scrollWidth <= {PHONE}", timeout=30_000)
    if "studies" not in path:
        seen.page.wait_for_function(f"() => ({OUTSIDE_THEIR_FIGURE})().length === 0", timeout=30_000)
        assert seen.page.locator(".xp-plotly").count() == 0 or seen.page.locator("g[class$='tick']").count() > 5
        assert seen.page.evaluate(NAMES_THAT_MEET) == []
    if not axe:
        return
    seen.page.set_viewport_size({"width": width, "height": 900})
    seen.page.evaluate(ONE_OF_EACH_KIND)
    results = Axe().run(seen.page, context={"exclude": [[part] for part in THEME_PARTS]}, options=ONLY_VIOLATIONS)
    assert [
        f"{one['id']}: {[n['html'][:160] for n in one['nodes'][:3]]}" for one in results.response["violations"]
    ] == []


WRONG_FORMULAS = r"""async (pages) => {
    await MathJax.startup.promise;
    const read = async (page) => new DOMParser().parseFromString(await (await fetch(page)).text(), "text/html");
    const formulas = (await Promise.all(pages.map(read))).flatMap((its) => [...its.querySelectorAll(".math")]);
    const texts = formulas.map((formula) => formula.textContent.trim());
    const wrong = (text) => MathJax.tex2mml(text.slice(2, -2), { display: text.startsWith("\\[") }).includes("merror");
    return [texts.length, texts.filter(wrong)];
}"""


def test_every_formula_of_every_page_is_one(visit, address):
    seen = visit("book/story.html")
    count, wrong = seen.page.evaluate(WRONG_FORMULAS, [address + path for path in (*PAGES, *TRANSLATED)])
    assert wrong == [] and count > 2000
    assert seen.page.evaluate("MathJax.tex2mml('x^2^2').includes('merror')")


def test_a_page_in_the_dark_is_printed_as_in_the_light_and_its_buttons_show_the_focus(visit):
    seen = visit("book/chapters/verdict.html", scheme="dark")
    seen.scroll()
    look = "[document.documentElement.dataset.theme, getComputedStyle(document.querySelector('.xp-plotly text')).fill]"
    during = f"(event) => {{ dispatchEvent(new Event(event)); return {look}; }}"
    before, paper, after = (seen.page.evaluate(during, f"{when}print") for when in ("", "before", "after"))
    assert (before[0], paper[0], after[0]) == ("dark", "light", "dark")
    assert paper[1] != before[1]
    buttons = seen.page.locator(".bd-header-article .btn:visible")
    assert buttons.count() > 4
    buttons.first.press("Shift")  # from now on the focus is that of a keyboard
    for button in buttons.all():
        button.focus()
        assert button.evaluate("(button) => getComputedStyle(button).outlineStyle") == "solid"


def test_first_chapter_is_light(visit):
    """What the first chapter transfers before any figure stays within the budget."""
    seen = visit("book/chapters/learning_in_context.html", locale="en")  # in a tab of its own, which keeps no file yet
    seen.page.wait_for_function("() => document.querySelector('mjx-container')")
    weight = seen.page.evaluate(
        """() => ["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind))
        .filter((file) => !file.name.includes("plotly.min.js")).reduce((sum, file) => sum + file.encodedBodySize, 0)"""
    )
    assert 50_000 < weight <= 400_000


@pytest.mark.parametrize("path", ["book/intro.html", "zh/book/chapters/idea_it_inspired.html"])
def test_site_works_from_a_folder_and_explorables_answer_to_the_keyboard(visit, site, path):
    """Opened as a file, without any server: figures and mathematics are there; arrow keys change a text result."""
    seen = visit(path, base=site.as_uri() + "/")
    seen.scroll()
    seen.page.wait_for_function("() => document.querySelector('mjx-container')")
    assert seen.outside == [] and seen.complaints == []
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


def test_page_reads_without_javascript(visit):
    """Text, stills and captions are there when scripts are off."""
    seen = visit("book/intro.html", java_script_enabled=False)
    assert seen.page.locator(".xp-fallback svg").count() >= 1
    assert "gradient" in seen.page.inner_text("main")


# What readers meet elsewhere


RANGES = """() => {
    const { xaxis, yaxis } = document.querySelector(".js-plotly-plot")._fullLayout;
    return [...xaxis.range, ...yaxis.range];
}"""


def test_a_finger_on_a_figure_scrolls_the_page_and_nothing_zooms(visit):
    page = visit("book/chapters/verdict.html", width=PHONE, has_touch=True).page
    place = page.locator(".xp-plotly").first
    place.scroll_into_view_if_needed()
    place.and_(page.locator("[data-ready]")).wait_for()
    place.evaluate("(node) => node.scrollIntoView({ behavior: 'instant', block: 'center' })")
    box = page.locator(".nsewdrag").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before, ranges = page.evaluate("scrollY"), page.evaluate(RANGES)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 50, y + 50, steps=4)
    page.mouse.up()
    finger = page.context.new_cdp_session(page)
    for kind, points in (("Start", [0]), *(("Move", [up]) for up in range(10, 160, 10)), ("End", [])):
        touches = [{"x": x, "y": y - up} for up in points]
        finger.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": touches})
    page.wait_for_function("(before) => scrollY > before + 50", arg=before, timeout=30_000)
    assert page.evaluate(RANGES) == ranges


SEEN_ON_PAPER = """() => [...document.querySelectorAll(".xp-figure:has(.xp-plotly)")].map((figure) => {
    const numbers = figure.querySelector("tbody tr:last-child"), { bottom } = figure.getBoundingClientRect();
    const { height, bottom: last } = numbers.getBoundingClientRect();
    return [numbers.checkVisibility({ contentVisibilityAuto: true }) && height > 5, last <= bottom + 1];
})"""


def test_paper_has_the_numbers_of_figures_that_are_not_drawn_yet(visit):
    page = visit("book/chapters/shared_part.html", locale="en-GB").page
    page.context.route("**/plotly.min.js", lambda route: route.abort())
    page.reload()
    page.emulate_media(media="print")
    found = page.evaluate(SEEN_ON_PAPER)
    assert found and all(map(all, found))
    page.context.close()


@pytest.mark.parametrize(
    ("path", "lacks", "line"),
    [
        ("book/chapters/learning_in_context.html", "Intl.Segmenter", "This figure cannot start in this browser"),
        ("zh/book/intro.html", "AbortController", "此图不能在此浏览器中启动"),
    ],
)
def test_an_explorable_that_cannot_start_says_so_and_keeps_its_picture(visit, path, lacks, line):
    page = visit(path, locale="fr").page
    page.add_init_script(f"delete {lacks}")
    page.reload()
    for place in page.locator(".xp-widget[data-model]").all():
        place.scroll_into_view_if_needed()
        caption = place.locator(".xp-still", has_text=line)
        caption.wait_for()
        assert not re.search("interactive|交互", caption.inner_text())
        assert place.locator("svg").count() == 1
    page.context.close()


CONTRAST = r"""() => {
    const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const light = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map((c) => linear(c / 255))
        .reduce((sum, c, i) => sum + [0.2126, 0.7152, 0.0722][i] * c, 0.05);
    const paper = light(getComputedStyle(document.body).backgroundColor);
    return [...document.querySelectorAll("article svg text")].filter((text) => text.textContent.trim())
        .map((text) => light(getComputedStyle(text).fill) / paper).map((ratio) => Math.max(ratio, 1 / ratio));
}"""


@pytest.mark.parametrize(("path", "scheme"), [("book/intro.html", "dark"), ("book/chapters/verdict.html", "light")])
def test_drawings_are_read_under_a_contrast_theme_of_the_other_kind(visit, path, scheme):
    seen = visit(path, scheme=scheme, forced_colors="active")
    other = {"dark": "light", "light": "dark"}[scheme]
    seen.page.evaluate("(theme) => Object.assign(localStorage, { mode: theme, theme })", other)
    seen.page.reload()
    seen.scroll()
    found = seen.page.evaluate(CONTRAST)
    assert len(found) > 20 and min(found) >= 4.5
