"""Bets: results are those that the chapters tell, and what the reader bets is kept where a browser keeps anything."""

import json
import re

import pytest
from conftest import ROOT
from javascript import computed, page_of, run_tests

from explainer.explorables import Bets, measured_explorables

STARTS = [Bets(about=about).state() for about in ("comparison", "momentum", "all")]
GIVEN = dict(agreement=0.6, floor=0.0, ceiling=1.0, others="floor", lowest="previous", lasting="grows")


def test_javascript(tmp_path):
    """It takes starts, and states with some and all bets, shown or not."""
    some = {"agreement": 0.50, "others": "stays", "lowest": "momentum"}
    changes = [{}, some, GIVEN, GIVEN | {"shown": ["agreement", "lowest"]}, GIVEN | {"shown": list(GIVEN)}]
    states = [start | change for start in STARTS for change in changes]
    computed("bets", states, "{}")  # every state has a picture that says it in words
    known = dict(
        starts=STARTS, states=states, choices=measured_explorables._CHOICES, numbers=measured_explorables._NUMBERS
    )
    (tmp_path / "bets.json").write_text(json.dumps(known), "utf-8")
    assert run_tests(ROOT / "tests" / "explorables" / "js" / "bets.test.mjs", tmp_path) > 0


# What is stored


def test_numbers_that_the_chapters_tell():
    """Of the bets in words: 0.50 between 0.30 and 0.78; -0.06, 0.15 and 0.03 nats."""
    stored = Bets.stored()
    assert [round(stored[name][0], 2) for name in measured_explorables._NUMBERS] == [0.50, 0.30, 0.78]
    assert [round(gain[1], 2) for gain in stored["lasting"]["gains"]] == [-0.06, 0.15, 0.03]


def test_chapters_that_ask_and_that_answer_are_those_of_the_contents():
    """The numbers in the JavaScript are the places of the pages in the table of contents."""
    chapters = re.findall(r"book/chapters/(\w+)", (ROOT / "_toc.yml").read_text("utf-8"))
    script = (ROOT / "src/explainer/explorables/js/bets.js").read_text("utf-8")
    answers = dict(re.findall(r"^  (\w+): question\(\"\w+\", (\d+),", script, re.MULTILINE))
    pages = dict.fromkeys(("agreement", "floor", "ceiling"), "agreement") | {"others": "agreement"}
    pages |= dict.fromkeys(("lowest", "lasting"), "idea_it_inspired")
    assert {key: chapters[int(n) - 1] for key, n in answers.items()} == pages
    asks = dict(re.findall(r"(\w+): (\d+)", re.search(r"const FIRST = {(.*?)}", script)[1]))
    for about, n in asks.items():
        assert f'Bets(about=\\"{about}\\")' in (ROOT / f"book/chapters/{chapters[int(n) - 1]}.ipynb").read_text("utf-8")


# In a browser that keeps, and in one that does not


@pytest.fixture
def visit(browser):
    """Open pages of one site, each with the Bets of one start, in one context."""
    context, complaints = browser.new_context(viewport={"width": 360, "height": 800}), []

    def serve(route):
        about = route.request.url.rpartition("/")[2]
        route.fulfill(body=page_of({about: Bets(about=about)}), content_type="text/html")

    context.route("**/*", serve)

    def open_(about, script=""):
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.add_init_script(script)
        page.goto(f"http://book.test/{about}")
        page.wait_for_function("window.ready")
        return page

    yield open_
    assert complaints == []
    context.close()


def state(page, about):
    return page.evaluate("(name) => stages[name].model.state", about)


def view(page, about):
    return page.locator(f"#{about}")


@pytest.mark.browser
def test_bets_are_kept_from_page_to_page_and_forgotten(visit):
    page = visit("comparison")
    slider = view(page, "comparison").get_by_role("slider", name="change by a context")
    assert slider.get_attribute("aria-valuetext") == "none yet"
    box = slider.bounding_box()
    page.mouse.click(box["x"] + 2, box["y"] + box["height"] / 2)  # where the thumb rests
    assert state(page, "comparison")["agreement"] == 0
    page.keyboard.press("ArrowRight")
    view(page, "comparison").get_by_role("combobox").select_option("it stays")
    svg = "#comparison .explorable-panel svg"
    shown = page.locator(svg).first.text_content
    assert "the answer is in chapter 9" in shown() and "Result" not in shown()
    view(page, "comparison").get_by_role("button", name="Show the results now").press("Enter")
    assert (
        "result 0.50" in shown()
        and "Result: 95 %" in shown()
        and "Result" not in page.locator(svg).nth(1).text_content()
    )
    view(page, "comparison").get_by_role("button", name="Hide the results").click()
    assert "Result" not in shown()
    assert "stay in this browser" in view(page, "comparison").locator(".explorable-hint").text_content()

    momentum = visit("momentum")
    assert state(momentum, "momentum")["agreement"] is None, "it asks of momentum only"
    momentum.locator("#momentum [data-choice=grows]").click()
    last = visit("all")
    found = state(last, "all")
    assert (found["agreement"], found["others"], found["lasting"], found["floor"]) == (0.01, "stays", "grows", None)
    assert view(last, "all").get_by_role("slider").count() == view(last, "all").get_by_role("combobox").count() == 0
    view(last, "all").get_by_role("status").filter(has_text="your bet 0.01, result 0.50").wait_for()
    assert state(visit("comparison"), "comparison")["agreement"] == 0.01

    view(last, "all").get_by_role("button", name="Forget my bets").click()
    assert state(visit("momentum"), "momentum")["lasting"] is None
    page.wait_for_function("stages.comparison.model.state.agreement === null")  # the other tab hears of it
    assert view(page, "comparison").get_by_role("button", name="results").count() == 0


@pytest.mark.browser
def test_without_storage_it_works_on_its_page(visit):
    page = visit("momentum", "Object.defineProperty(window, 'localStorage', { get() { throw new Error('denied'); } })")
    choice = view(page, "momentum").get_by_role("combobox", name="lowest loss")
    choice.select_option("plain attention")
    assert state(page, "momentum")["lowest"] == "plain"
    assert "as long as this page" in view(page, "momentum").locator(".explorable-hint").text_content()
    page.evaluate("dispatchEvent(new Event('pageshow'))")
    assert state(page, "momentum")["lowest"] == "plain"
    view(page, "momentum").get_by_role("button", name="Forget my bets").click()
    assert state(page, "momentum")["lowest"] is None and choice.input_value() == "choose"
