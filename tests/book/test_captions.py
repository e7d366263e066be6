"""Captions in two parts, in a browser: the second stands open where there is room, and is folded on a phone."""

import pytest
from conftest import ROOT

from explainer.figures import Table

pytestmark = pytest.mark.browser
CSS = ROOT / "book" / "_ext" / "bookbuilder" / "static" / "explainer" / "site.css"
SAMPLE = "Means over twenty draws."


@pytest.fixture
def opened(browser):
    """A function that opens a page with one table, at a width."""
    contexts = []

    def open_page(width):
        contexts.append(browser.new_context(viewport={"width": width, "height": 740}))
        page = contexts[-1].new_page()
        table = Table(["a"], [["b"]], "What to see.", "Live.", SAMPLE)._repr_mimebundle_()["text/html"]
        page.set_content(f"<style>{CSS.read_text('utf-8')}</style><main class='bd-main'>{table}</main>")
        return page

    yield open_page
    for context in contexts:
        context.close()


def test_where_there_is_room_it_stands_open_and_smaller(opened):
    page = opened(1000)
    assert page.get_by_text(SAMPLE).is_visible() and not page.locator(".xp-sample > summary").is_visible()
    sizes = [
        page.eval_on_selector(of, "element => parseFloat(getComputedStyle(element).fontSize)")
        for of in ("figcaption", ".xp-sample > p")
    ]
    assert sizes[1] < sizes[0]
    assert page.get_by_text(SAMPLE).bounding_box()["height"] > 10


def test_on_a_phone_it_is_folded_and_opens(opened):
    page = opened(390)
    assert not page.get_by_text(SAMPLE).is_visible()
    page.get_by_text("How it was measured").click()
    assert page.get_by_text(SAMPLE).is_visible()
