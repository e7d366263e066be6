"""Definitions in place, by mouse, keyboard and touch, and captions in two parts, in a browser."""

import json

import pytest
from conftest import ROOT

from explainer.figures import Table

pytestmark = pytest.mark.browser
STATIC = ROOT / "book" / "_ext" / "bookbuilder" / "static" / "explainer"
ADDRESS = "http://book.test/"
DEFINITION = "The share of a head's attention that goes to the demonstrations. " * 3
PAGE = """<!doctype html><html lang="en"><title>Page</title><link rel="stylesheet" href="explainer/site.css">
<script defer src="explainer/terms.js"></script><main class="bd-article">
<p style="text-align: right">A <a class="xp-term" href="glossary.html#term-gate">gate</a></p>
<p style="margin-top: 60vh"><a class="xp-term" href="glossary.html#term-none">unknown</a> and
<a class="xp-term" href="glossary.html#term-key">key</a></p></main></html>"""
FILES = {
    "page.html": ("text/html", PAGE),
    "glossary.html": ("text/html", "<!doctype html><title>Glossary</title>"),
    "explainer/site.css": ("text/css", (STATIC / "site.css").read_text("utf-8")),
    "explainer/terms.js": ("text/javascript", (STATIC / "terms.js").read_text("utf-8")),
    "explainer/glossary.json": ("application/json", json.dumps({"gate": DEFINITION, "key": "A vector."})),
}


@pytest.fixture
def opened(browser):
    """A function that opens the page: `opened(width=..., has_touch=...)`; `page.asked` are the files it asked for."""
    contexts = []

    def open_page(width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 740}, **options)
        contexts.append(context)
        page, page.asked = (made := context.new_page()), []

        def answer(route):
            name = route.request.url.removeprefix(ADDRESS).partition("#")[0]
            made.asked.append(name)
            kind, body = FILES.get(name, ("text/plain", ""))
            route.fulfill(status=200 if name in FILES else 404, content_type=kind, body=body)

        page.route("**/*", answer)
        page.goto(ADDRESS + "page.html", wait_until="load")
        return page

    yield open_page
    for context in contexts:
        context.close()


def shown(page, text):
    """The definition, when it is there."""
    page.wait_for_function("(t) => document.querySelector('.xp-definition')?.innerText.startsWith(t)", arg=text[:20])
    return page.locator(".xp-definition")


def test_mouse(opened):
    page = opened()
    assert "explainer/glossary.json" not in page.asked
    page.get_by_text("gate").hover()
    box = shown(page, DEFINITION)
    assert box.get_attribute("role") == "tooltip"
    box.hover()  # it stays while it is read
    page.wait_for_timeout(500)
    assert box.is_visible()
    page.mouse.move(5, 400)
    box.wait_for(state="hidden")
    page.get_by_text("key").hover()
    shown(page, "A vector.")
    assert page.asked.count("explainer/glossary.json") == 1
    page.get_by_text("key").click()
    page.wait_for_url("**/glossary.html#term-key")


def test_keyboard(opened):
    page = opened()
    page.keyboard.press("Tab")
    box, term = shown(page, DEFINITION), page.get_by_text("gate")
    assert term.get_attribute("aria-describedby") == box.get_attribute("id")
    page.keyboard.press("Escape")
    assert not box.is_visible()
    assert term.get_attribute("aria-describedby") is None
    page.keyboard.press("Tab")  # a term without a definition shows nothing
    page.keyboard.press("Tab")
    shown(page, "A vector.")
    page.keyboard.press("Enter")
    page.wait_for_url("**/glossary.html#term-key")


def test_touch_on_a_phone(opened):
    page = opened(width=360, has_touch=True)
    page.get_by_text("gate").tap()
    box = shown(page, DEFINITION)
    place = box.bounding_box()
    assert page.url.endswith("page.html")
    assert place["x"] >= 0
    assert place["x"] + place["width"] <= 360
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.touchscreen.tap(20, 400)
    assert not box.is_visible()
    page.get_by_text("key").tap()
    assert shown(page, "A vector.").bounding_box()["y"] >= 0
    page.get_by_text("key").tap()  # the second touch follows the link
    page.wait_for_url("**/glossary.html#term-key")


def test_the_second_part_of_a_caption_is_smaller_and_folded_on_a_phone(browser):
    table = Table(["a"], [["b"]], "What to see.", "Live.", "Means over twenty draws.")._repr_mimebundle_()["text/html"]
    page = browser.new_page(viewport={"width": 1000, "height": 740})
    page.set_content(f"<style>{(STATIC / 'site.css').read_text('utf-8')}</style><main class='bd-main'>{table}</main>")
    sample, summary = page.get_by_text("Means over twenty draws."), page.get_by_text("How it was measured")
    assert sample.is_visible() and not summary.is_visible()
    assert sample.bounding_box()["height"] > 10
    size = "(element) => parseFloat(getComputedStyle(element).fontSize)"
    assert sample.evaluate(size) < page.locator("figcaption").evaluate(size)
    page.set_viewport_size({"width": 390, "height": 740})
    assert not sample.is_visible()
    summary.click()
    assert sample.is_visible()
    page.close()
