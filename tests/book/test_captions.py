"""Captions in two parts, in a browser: the second stands open where there is room, and is folded on a phone."""

import pytest
from conftest import ROOT

from explainer.figures import Table

CSS = ROOT / "book" / "_ext" / "bookbuilder" / "static" / "explainer" / "site.css"
SAMPLE = "Means over twenty draws."


@pytest.mark.browser
def test_the_second_part_of_a_caption_is_smaller_and_folded_on_a_phone(browser):
    table = Table(["a"], [["b"]], "What to see.", "Live.", SAMPLE)._repr_mimebundle_()["text/html"]
    page = browser.new_page(viewport={"width": 1000, "height": 740})
    page.set_content(f"<style>{CSS.read_text('utf-8')}</style><main class='bd-main'>{table}</main>")
    sample, summary = page.get_by_text(SAMPLE), page.get_by_text("How it was measured")
    assert sample.is_visible() and not summary.is_visible()
    assert sample.bounding_box()["height"] > 10
    size = "(element) => parseFloat(getComputedStyle(element).fontSize)"
    assert sample.evaluate(size) < page.locator("figcaption").evaluate(size)
    page.set_viewport_size({"width": 390, "height": 740})
    assert not sample.is_visible()
    summary.click()
    assert sample.is_visible()
    page.close()
