"""Figures one can point at: numbers, addresses that open a state, pictures, and pages that other pages embed."""

import html
import re
import shutil
from urllib.parse import quote, unquote
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from conftest import PATIENCE, ROOT, drawn_again
from test_browser import NOWHERE, PAGES, TRANSLATED

from bookbuilder.pages import names

NUMBERED = [page for page in (*PAGES, *TRANSLATED) if "/slides" not in page]
EXPLORABLE, PLOT, DRAWING = "chapters/agreement", "chapters/three_predictions", "intro"
CLIPBOARD = """() => {{
    Object.defineProperty(navigator, "clipboard", {{ configurable: true, value: {{ writeText(text) {{ {}; }} }} }});
}}"""
READY = "document.querySelector('{} :is(.xp-widget, .xp-plotly)').dataset.ready"


@pytest.mark.parametrize("page", NUMBERED)
def test_every_figure_has_a_number_in_order_and_an_address_of_its_own(site, page):
    read = BeautifulSoup((site / page).read_text("utf-8"), "html.parser")
    figures = read.select("figure:is(.xp-figure, .xp-table)")
    assert len(figures) == len(read.select(".xp-plotly, .xp-widget, .xp-svg, .xp-table"))
    ids = [figure.get("id", "") for figure in figures]
    assert len({*ids}) == len(ids) and all(re.fullmatch(r"fig-\w+(-\d)?", one) for one in ids)
    name = page[page.index("book/") :].removesuffix(".html")
    order = [one for one in names(ROOT) if one.rpartition("/")[0] == name.rpartition("/")[0]]
    mark = next((mark for part, mark in {"/chapters/": "", "/studies/": "S"}.items() if part in name), None)
    place = "" if mark is None else f"{mark}{order.index(name) + 1}."
    kinds = (
        {"xp-figure": "图", "xp-table": "表"}
        if page != name + ".html"
        else {"xp-figure": "Figure", "xp-table": "Table"}
    )
    for kind, word in kinds.items():
        numbers = [figure.select_one("figcaption > .xp-number").text for figure in figures if kind in figure["class"]]
        assert numbers == [f"{word} {place}{i}" for i in range(1, len(numbers) + 1)]


@pytest.fixture
def opened(browser):
    """A function that opens an address in a browser that reaches this machine only, and at last sees no complaint."""
    used = []

    def tab(address, scheme="light", **options):
        context = browser.new_context(color_scheme=scheme, proxy=NOWHERE, **options)
        context.set_default_timeout(PATIENCE)
        page, complaints = context.new_page(), []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: said.type == "error" and complaints.append(said.text))
        used.append((context, complaints))
        page.goto(address)
        return page

    yield tab
    for context, complaints in used:
        context.close()
        assert complaints == []


def drawn(page, figure):
    """The state and the still of an explorable, once it is drawn."""
    page.locator(figure).scroll_into_view_if_needed()
    page.wait_for_function(READY.format(figure))
    return page.evaluate(
        f"(({{ explorable: it }}) => [it.changed(), it.still()])(document.querySelector('{figure} .xp-widget'))"
    )


def taken(page, figure, button):
    """What a button of a figure gives where the clipboard is refused: the text that it shows to be copied."""
    page.evaluate(CLIPBOARD.format("throw 0"))
    page.locator(f"{figure} .xp-tools").get_by_text(button, exact=True).press("Enter")
    return page.locator(f"{figure} .xp-copy").input_value()


@pytest.mark.browser
@drawn_again
@pytest.mark.parametrize("served", [pytest.param(True, marks=pytest.mark.weekly), False])
def test_a_link_opens_the_state_that_a_reader_left(opened, site, address, served):
    start = f"{address if served else site.as_uri() + '/'}book/{EXPLORABLE}.html"
    page = opened(start)
    default = drawn(page, "#fig-swap")
    assert default[0] == [] and taken(page, "#fig-swap", "link") == f"{start}#fig-swap"
    page.locator("#fig-swap select").last.select_option(index=3)
    link = taken(page, "#fig-swap", "link")
    changed = drawn(page, "#fig-swap")
    assert changed[0] == [["lesson", "shuffled"]] and changed[1] != default[1]
    assert unquote(link) == f'{start}?swap={{"lesson":"shuffled"}}#fig-swap'
    assert drawn(opened(link), "#fig-swap") == changed
    older = quote('{"seed":3,"lesson":"shuffled"}')  # of a trait that is gone
    assert drawn(opened(f"{start}?swap={older}"), "#fig-swap") == changed
    page.evaluate(CLIPBOARD.format("window.kept = text"))
    page.locator("#fig-swap .xp-tools button").first.click()
    page.locator("#fig-swap [role=status]", has_text="copied").wait_for()
    assert page.evaluate("kept") == link


@pytest.mark.browser
@drawn_again
def test_answers_follow_the_task_that_a_link_chooses(opened, address):
    asked = quote('{"task":"past"}')
    page = opened(f"{address}book/reference/laboratory.html?live_sweep={asked}")
    state, still = drawn(page, "#fig-live_sweep")
    assert state == [["task", "past"]] and "Exact match: past" in still


THREE = "[0,1],[0,1],[0,1]"
BAD = {
    "swap": [
        '{"lesson":"<img src=x>"}',
        '{"similarity":{}}',
        '{"lesson":["own"]}',
        '{"lesson"',
        "7",
        '{"__proto__":1}',
    ],
    "yardstick": ['{"own":1.01}', '{"own":null}', '{"own":1e999}', '{"own":"0.5"}'],
    "contrast": [f'{{"points":[{THREE}]}}', f'{{"points":[[9,0],{THREE}]}}', '{"exchanged":1}', '{"points":1}'],
}


@pytest.mark.weekly
@pytest.mark.browser
@drawn_again
def test_a_state_that_is_none_opens_the_default(opened, address):
    page = opened(f"{address}book/{EXPLORABLE}.html")
    for name, states in BAD.items():
        default = drawn(page, f"#fig-{name}")
        for state in states:
            page.goto(f"{address}book/{EXPLORABLE}.html?{name}={quote(state)}")
            assert drawn(page, f"#fig-{name}") == default, state
    assert default[0] == []


CAPTION = """(caption) => [...caption.childNodes].filter((part) => !/badge|sample/.test(part.className))
    .map((part) => part.textContent).join("")"""


@pytest.mark.browser
@drawn_again
@pytest.mark.parametrize(("where", "figure"), [(EXPLORABLE, "swap"), (PLOT, "reversal"), (DRAWING, "claim")])
def test_a_picture_has_the_colours_of_the_page_its_caption_and_its_licence(opened, address, where, figure):
    pictures = []
    for scheme in ("light", "dark"):
        page = opened(f"{address}book/{where}.html", scheme)
        page.locator(f"#fig-{figure}").scroll_into_view_if_needed()
        if where != DRAWING:
            page.wait_for_function(READY.format(f"#fig-{figure}"))
        for button in ("SVG", "PNG"):
            with page.expect_download() as found:
                page.locator(f"#fig-{figure} .xp-tools").get_by_text(button, exact=True).click()
            assert found.value.suggested_filename == f"{where.split('/')[-1]}-{figure}.{button.lower()}"
            content = found.value.path().read_bytes()
            if button == "PNG":
                width = int.from_bytes(content[16:20], "big")
                assert content[:4] == b"\x89PNG" and width == 2 * float(pictures[-1].get("width"))
                continue
            assert not re.search(r"var\(|currentColor|class=\"explorable", content.decode())
            pictures.append(ElementTree.fromstring(content))
            said = " ".join(" ".join("".join(part.itertext()) for part in pictures[-1].findall(".//{*}text")).split())
            caption = " ".join(page.locator(f"#fig-{figure} figcaption").evaluate(CAPTION).split())
            assert caption.startswith("Figure ") and caption in said and "· MIT License" in said
            assert figure != "swap" or "swap: the context; it gets: other examples of the task" in said
    papers = [picture.find("{*}rect").get("fill") for picture in pictures]
    inks = [picture.findall("{*}g")[-1].get("fill") for picture in pictures]
    assert len({*papers, *inks}) == 4 and all(colour.startswith("rgb(") for colour in (*papers, *inks))


@pytest.mark.browser
@drawn_again
@pytest.mark.parametrize(("where", "figure"), [(EXPLORABLE, "swap"), (PLOT, "reversal"), (DRAWING, "claim")])
def test_a_bare_page_embeds_a_figure(opened, site, tmp_path, where, figure):
    page = opened(f"{site.as_uri()}/book/{where}.html")
    if figure == "swap":
        drawn(page, "#fig-swap")
        page.locator("#fig-swap select").last.select_option(index=3)
    line = taken(page, f"#fig-{figure}", "embed")
    if figure != "reversal":  # no other file is needed
        folder, name = re.search(r'src="([^"]*/)([^"?]+)', line).groups()
        shutil.copy(site / "figures" / name, tmp_path)
        line = line.replace(folder, "")
    (tmp_path / "slides.html").write_text(f"<!doctype html><title>Slides</title>{line}")
    frame = opened((tmp_path / "slides.html").as_uri(), "dark").locator("iframe").content_frame
    frame.locator(
        {"swap": "[data-ready] .explorable-panel svg", "claim": "svg"}.get(figure, "[data-ready] .main-svg")
    ).first.wait_for()
    assert frame.locator("html").get_attribute("data-theme") == "dark" and frame.locator(".xp-tools").count() == 0
    assert frame.locator(".xp-number").inner_text() in line and frame.locator("p > a").count() == 1
    assert figure != "swap" or frame.locator("select").last.evaluate("(node) => node.selectedIndex") == 3
    fits = "(html) => html.scrollWidth <= html.clientWidth && html.scrollHeight <= html.clientHeight"
    assert frame.locator("html").evaluate(fits)
    left = "(html) => html.clientHeight - html.querySelector('main').getBoundingClientRect().bottom"
    assert figure != "swap" or frame.locator("html").evaluate(left) < 100
    about = html.unescape(re.search('title="[^:]+: ([^"]+)"', line)[1])
    assert about in " ".join(frame.locator("figcaption").inner_text().split())


def test_an_embedded_explorable_is_small(site):
    alone = [page for page in site.glob("**/figures/*.html") if "data-packed" in page.read_text("utf-8")]
    assert len(alone) >= 50 and max(page.stat().st_size for page in alone) <= 60_000


@pytest.mark.browser
@drawn_again
@pytest.mark.parametrize(
    ("width", "height"),
    [(1280, 720), *(pytest.param(*size, marks=pytest.mark.weekly) for size in ((1024, 768), (1920, 1080)))],
)
def test_each_slide_fits_a_screen(opened, site, width, height):
    page = opened(f"{site.as_uri()}/book/reference/slides.html", viewport={"width": width, "height": height})
    for figure in page.query_selector_all(".xp-widget, .xp-plotly"):
        figure.scroll_into_view_if_needed()
        page.wait_for_function("(figure) => figure.dataset.ready", arg=figure)
    slides = page.evaluate("[...document.querySelectorAll('section section')].map((slide) => slide.clientHeight)")
    assert len(slides) == 18 and max(slides) <= height
    slider = page.locator("input[type=range]").first
    slider.scroll_into_view_if_needed()
    slider.focus()
    value, top = slider.input_value(), page.evaluate("scrollY")
    page.keyboard.press("PageDown")
    page.wait_for_function("(top) => scrollY > top", arg=top)
    assert slider.input_value() == value
