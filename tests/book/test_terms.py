"""Definitions in place, by mouse, keyboard and touch, in a browser."""

import json

import pytest
from conftest import drawn_again
from test_browser import PHONE, tabs, visit  # noqa: F401 - fixtures

pytestmark = [pytest.mark.browser, drawn_again]
PAGE = "book/chapters/shared_part.html"


@pytest.fixture(scope="module")
def definitions(site):
    """The definition of each term, by its name in the address of the glossary."""
    return json.loads((site / "_static" / "explainer" / "glossary.json").read_text("utf-8"))


def shown(page, term, definitions):
    """The box below a term, when it holds the term's definition."""
    words = definitions[term.get_attribute("href").partition("#term-")[2]]
    page.wait_for_function(
        "(t) => document.querySelector('.xp-definition:not([hidden])')?.textContent === t", arg=words
    )
    return page.locator(".xp-definition")


def test_mouse_and_keyboard(visit, definitions):  # noqa: F811
    page = visit(PAGE).page
    assert "glossary.json" not in page.evaluate(
        "performance.getEntriesByType('resource').map((one) => one.name).join()"
    )
    first, second = page.locator("main a.xp-term").all()[:2]
    first.hover()
    box = shown(page, first, definitions)
    assert box.get_attribute("role") == "tooltip"
    box.hover()  # it stays while it is read
    page.wait_for_timeout(500)
    assert box.is_visible()
    page.mouse.move(5, 5)
    box.wait_for(state="hidden")
    second.hover()
    shown(page, second, definitions)
    page.mouse.move(5, 5)
    box.wait_for(state="hidden")
    term = first
    term.focus()
    box = shown(page, term, definitions)
    assert term.get_attribute("aria-describedby") == box.get_attribute("id")
    page.keyboard.press("Escape")
    assert not box.is_visible() and term.get_attribute("aria-describedby") is None
    page.keyboard.press("Enter")
    page.wait_for_url("**/glossary.html#term-*")


def test_touch_on_a_phone(visit, definitions):  # noqa: F811
    page = visit(PAGE, width=PHONE, has_touch=True).page
    term = page.locator("main a.xp-term:visible").first
    term.tap()  # the first touch shows the definition, the second follows the link
    place = shown(page, term, definitions).bounding_box()
    assert page.url.endswith(PAGE)
    assert place["x"] >= 0 and place["x"] + place["width"] <= PHONE and place["y"] >= 0
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE
    term.tap()
    page.wait_for_url("**/glossary.html#term-*")
