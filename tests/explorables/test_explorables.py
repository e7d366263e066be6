"""The explorables: the same numbers as Python, pictures that are whole, and a page that can be used in every way."""

import json
import math
import re
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest
import torch
import traitlets
from axe_playwright_python.sync_playwright import Axe
from conftest import ROOT
from javascript import DARK, LIGHT, OVERFLOWS, opened, run_tests

from bookbuilder import explorables as builder
from bookbuilder.renderers import STATE_MIME, WIDGET_MIME, widget_html
from explainer import explorables
from explainer import page as page_room
from explainer.errors import ExplainerError
from explainer.explorables import (
    AgeWeights,
    Bets,
    Contrast,
    Explorable,
    InContextRegression,
    OneStep,
    TwoNeurons,
)
from explainer.page import LiveAttention, LiveExperiment, LiveGPT
from explainer.palette import PALETTE

ALL = [getattr(room, name) for room in (explorables, page_room) for name in room.__all__ if name != "Explorable"]
SOURCES = [file for room in ("explorables", "page") for file in (ROOT / "src/explainer" / room / "js").glob("*.js")]
WORKER = {"live_model", "live_model_worker"}  # modules with an address of their own
MAX_BYTES = 40_000
MODEL_ROW_BYTES = 12_000
LEAST_CONTRAST = 4.5


def starts() -> dict[str, Explorable]:
    """Every explorable as it starts, and the two other pages of bets, by name."""
    pages = {f"bets_{about}": Bets(about=about) for about in ("momentum", "all")}
    return {explorable.name: explorable() for explorable in ALL} | pages


def test_drawing_in_javascript(tmp_path):
    assert run_tests(ROOT / "tests" / "explorables" / "js" / "drawing.test.mjs", tmp_path) > 0


# Sources and the modules that are composed of them


@pytest.fixture(params=ALL, ids=lambda explorable: explorable.name)
def explorable(request):
    return request.param


def test_sources_have_the_form_that_can_be_composed():
    """Imports of one line and of names alone, exports of what is declared, no name twice and none with a dollar."""
    assert len({file.stem for file in SOURCES}) == len(SOURCES)
    assert {file.stem for file in SOURCES if "export default" in file.read_text("utf-8")} == {each.name for each in ALL}
    for file in SOURCES:
        if file.stem not in WORKER:
            text = file.read_text("utf-8")
            others = r'import \{ \w+(, \w+)* \} from "(\./|#explorables/|#page/)\w+\.js";$'
            assert all(re.match(others, line) for line in text.splitlines() if re.search(r"\bimport\b", line)), file
            kinds = r"export (default explorable\(\{$|(const|function|async function|class) )"
            assert all(re.match(kinds, line) for line in text.splitlines() if re.search(r"\bexport\b", line)), file
            assert not re.search(r"\$\w", text), file


SHIPS = """
import { readFileSync } from "node:fs";
import { checkPicture } from "./tests/explorables/js/support.mjs";
const found = [];
for (const { source, state } of JSON.parse(readFileSync(0, "utf8"))) {
  const before = Reflect.ownKeys(globalThis);
  const module = await import(`data:text/javascript,${encodeURIComponent(source)}`); // no address: it imports nothing
  checkPicture(module.default, state);
  const left = Reflect.ownKeys(globalThis).filter((name) => !before.includes(name));
  found.push([Object.keys(module), Object.keys(module.default).sort(), left]);
}
process.stdout.write(JSON.stringify(found));
"""


def test_modules_are_self_contained_and_leave_nothing_behind():
    widgets = [explorable() for explorable in ALL]
    asked = [{"source": widget._esm, "state": widget.state()} for widget in widgets]
    for widget, found in zip(widgets, json.loads(builder.run_module(SHIPS, asked)), strict=True):
        assert found == [["default"], ["describe", "render", "still"], []], widget.name


def test_module_is_small_and_fetches_nothing(explorable):
    source = explorable()._esm.replace('fetch(new URL("live_model_worker.js", base))', "")  # why it did not begin
    most = MAX_BYTES + MODEL_ROW_BYTES * ("modelRow" in source)
    assert len(source.encode()) + len(explorable()._css.encode()) <= most
    assert not re.search(r"^\s*import\b|\bimport\(|\bfetch\(|XMLHttp|requestAnimationFrame", source, re.MULTILINE)
    assert re.findall(r"https?://[^\"]+", source) == ["http://www.w3.org/2000/svg"]
    assert explorable.question in source


def luminance(colour: str) -> float:
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def test_colours_have_contrast_and_stand_in_one_place():
    """Every colour but that of grids is also a text colour; print keeps those of the light page."""
    sheet = OneStep()._css
    assert not re.search(r"animation|transition|@keyframes|url\(", sheet)
    for role, shades in PALETTE.items():
        assert sheet.count(f"--xp-{role}: {shades[0]};") == sheet.count(f"--xp-{role}: {shades[1]};") == 1
        for colour, background in zip(shades, (LIGHT[0], DARK[0]), strict=True):
            high, low = sorted((luminance(colour), luminance(background)), reverse=True)
            assert role == "grid" or (high + 0.05) / (low + 0.05) >= LEAST_CONTRAST, f"{role} {colour} on {background}"
    assert sheet.index("@media screen") < sheet.index(f"--xp-key: {PALETTE['key'][1]}")
    package, site = ROOT / "src/explainer", ROOT / "book/_ext/bookbuilder/static"
    sources = [
        *package.glob("*/js/*.js"),
        *package.glob("*/drawings/*.svg"),
        *package.glob("figures/*.py"),
        *site.rglob("*.*s"),
    ]
    typed = {file.name for file in sources if re.search(r"#[0-9a-f]{6}\b", file.read_text("utf-8"), re.IGNORECASE)}
    assert typed <= {"claim.svg"}, typed


def test_stills_are_drawn_once_for_each_state_that_a_notebook_shows(monkeypatch, tmp_path):
    monkeypatch.setattr(builder, "_STILLS", tmp_path)
    start, moved = OneStep(), OneStep(learning_rate=0.2)
    views = [widget._repr_mimebundle_()[0][WIDGET_MIME] for widget in (start, moved, start)]
    models = {widget.model_id: {"model_module": "anywidget", "state": widget.get_state()} for widget in (start, moved)}
    models["a layout"] = {"model_module": "@jupyter-widgets/base", "state": {}}
    cells = [{"cell_type": "markdown"}, *({"outputs": [{"data": {WIDGET_MIME: view}}]} for view in views)]
    builder.put_stills({"cells": cells, "metadata": {"widgets": {STATE_MIME: {"state": models}}}})
    assert len(list(tmp_path.iterdir())) == 2
    assert "a layout" not in models and len(models) == 2  # nor is anything kept that no page draws with
    assert all({"_esm"} == {key for key in model["state"] if key[0] == "_"} for model in models.values())
    one, two, three = (ElementTree.fromstring(view["explainer"]["fallback"]) for view in views)
    labels = [figure[0].get("aria-label") for figure in (one, two, three)]
    assert labels[0] == labels[2] != labels[1] and one[0].get("role") == "img"
    assert "JavaScript" in one[1].text and all(part in widget_html(views[0]) for part in ("<svg", OneStep.question))


def test_failing_module_is_named():
    with pytest.raises(ExplainerError, match=r"(?s)Node.js says.*missing is not defined"):
        builder.still({"_esm": "export default { still: () => missing };"})


def test_traits_take_arrays_and_copy_defaults():
    assert OneStep(points=np.eye(2)).points == [[1, 0], [0, 1]]
    assert TwoNeurons(query=torch.zeros(2)).query == [0, 0]
    first = OneStep()
    first.points[0][0] = 0.0
    assert OneStep().points[0][0] != 0.0


REFUSED = [
    (AgeWeights, {"momentum": 1.0}, r"momentum.*0\.95"),
    (Bets, {"about": "causal"}, "about"),
    (Contrast, {"points": [[0, 0]] * 3}, r"points has 3 rows; it must have 4 to 4"),
    (Contrast, {"points": [[0, 0]] * 3 + [[0, 3]]}, r"\[0\.0, 3\.0\].*up to 4 and 2"),
    (InContextRegression, {"points": [[0, 0], [0, math.nan]]}, r"\[0\.0, nan\]"),
    (InContextRegression, {"points": [[0, 0], [1, 1, 1]]}, r"\[1\.0, 1\.0, 1\.0\]"),
    (InContextRegression, {"learners": ["ridge", "gpt", "linear", "ols", "descent"]}, r"length"),
    (LiveExperiment, {"task": "rivers"}, "'capitals', 'plurals'"),
    (LiveGPT, {"demonstrations": [["a", "b"]] * 17}, "demonstrations"),
    (LiveGPT, {"demonstrations": [["a"]]}, "demonstrations"),
    (OneStep, {"points": []}, r"0 rows; it must have 1 to 8"),
    (TwoNeurons, {"query": [math.nan, 0]}, r"query = \[nan, 0"),
]


@pytest.mark.parametrize(("of", "traits", "message"), REFUSED)
def test_traits_refuse(of, traits, message):
    with pytest.raises(traitlets.TraitError, match=message):
        of(**traits)


def test_view_says_what_stands_under_its_still(explorable):
    widget = explorable()
    view = widget._repr_mimebundle_()[0][WIDGET_MIME]["explainer"]
    assert view["caption"].startswith(explorable.question) and view["height"] > 300
    given = {name: value for name, value in widget.state().items() if value is not None and not isinstance(value, dict)}
    assert {*given} - {"induction"} <= {*view["traits"]}
    for name, form in view["traits"].items():
        assert name not in given or jsonschema.validate(given[name], form) is None


# In a browser: a page with nothing but two instances of each explorable


@pytest.fixture(scope="module")
def page(browser):
    """One for several tests: it takes seconds to draw."""
    with opened(browser, starts(), width=800) as page:
        yield page


def state_of(page, name):
    return page.evaluate("(name) => stages[name].model.state", name)


def answers(page, name):
    return page.locator(f"#{name} .explorable-answers .explorable-number").all_inner_texts()


def settle(page):
    page.wait_for_timeout(400)  # the spoken result waits for a pause


@pytest.mark.browser
@pytest.mark.parametrize("name", ["one_step", "two_neurons"])
def test_handles_are_dragged(page, name):
    handle = page.locator(f"#{name} .explorable-handle").first
    before, twin = state_of(page, name), state_of(page, f"{name}_2")
    status = page.locator(f"#{name} [role=status]").inner_text()
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 12)  # off its centre: it must not jump there
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 52, steps=5)
    page.mouse.up()
    after, trait = state_of(page, name), {"one_step": "points", "two_neurons": "inputs"}[name]
    moved = np.subtract(after[trait][0], before[trait][0])
    assert moved[0] > 0.2 and moved[1] < -0.2
    centre = handle.bounding_box()
    assert abs(centre["x"] - box["x"] - 40) < 2 and abs(centre["y"] - box["y"] - 40) < 2
    assert len(set(answers(page, name))) == 1 and answers(page, name)[0] not in status
    settle(page)
    assert answers(page, name)[0] in page.locator(f"#{name} [role=status]").inner_text()
    assert state_of(page, f"{name}_2") == twin
    assert page.evaluate("(name) => stages[name].model.saved > 0", name)


@pytest.mark.browser
def test_of_handles_that_overlap_the_nearest_moves(page):
    handles, before = page.locator("#one_step .explorable-handle"), state_of(page, "one_step")
    page.evaluate("""() => {
        const { model } = stages.one_step, [[x, y], , ...rest] = model.get("points");
        model.set("points", [[x, y], [x + 0.1, y], ...rest]);
        model.save_changes();
    }""")
    handles.first.scroll_into_view_if_needed()
    first, second = (handles.nth(k).bounding_box() for k in range(2))
    assert second["x"] < first["x"] + first["width"] / 2, "the second lies on the middle of the first"
    start = state_of(page, "one_step")["points"]
    page.mouse.move(first["x"] + first["width"] / 2 - 1, first["y"] + first["height"] / 2)
    page.mouse.down()
    page.mouse.move(first["x"] - 30, first["y"] + first["height"] / 2, steps=5)
    page.mouse.up()
    first, second, *_ = state_of(page, "one_step")["points"]
    page.evaluate("(points) => stages.one_step.model.set('points', points)", before["points"])
    assert first[0] < start[0][0] - 0.1 and second == start[1]


@pytest.mark.browser
def test_handles_answer_to_arrow_keys(page):
    page.evaluate("""() => {
        window.keys.length = window.spoken = 0;
        const status = document.querySelector("#one_step [role=status]");
        new MutationObserver(() => { spoken += 1; }).observe(status, { childList: true, subtree: true });
    }""")
    for handle in page.locator("#one_step .explorable-handle, #two_neurons .explorable-handle").all():
        handle.focus()
        before = handle.get_attribute("aria-label")
        for key in ("ArrowLeft", "ArrowLeft", "Shift+ArrowRight"):
            page.keyboard.press(key)
        after = handle.get_attribute("aria-label")
        x = [float(re.search(r", \(?(−?[\d.]+)", label)[1].replace("−", "-")) for label in (before, after)]
        assert x[1] - x[0] == pytest.approx(0.15)
        assert handle.evaluate("(node) => node === document.activeElement"), "a redraw took the focus"
        assert handle.evaluate("(node) => getComputedStyle(node).outlineWidth") == "3px"
        assert handle.get_attribute("role") == "slider" and handle.get_attribute("aria-valuetext")
    assert page.evaluate("keys") == [], "JupyterLab would take the keys"
    settle(page)
    assert 1 <= page.evaluate("spoken") <= 10, "21 changes: a screen reader would be flooded"


PRESS = """(node, how) => node.dispatchEvent(
    new KeyboardEvent("keydown", { key: "ArrowLeft", ...how, bubbles: true, cancelable: true }))"""
"""Whether the browser does what a key means to it."""


@pytest.mark.browser
def test_handles_leave_keys_to_the_browser_and_go_to_the_ends(page):
    page.evaluate("() => { keys.length = 0; }")
    for handle in page.locator("#one_step .explorable-handle, #two_neurons .explorable-handle").all():
        before = handle.get_attribute("aria-label")
        assert all(handle.evaluate(PRESS, {f"{key}Key": True}) for key in ("alt", "ctrl", "meta"))
        assert handle.evaluate(PRESS, {"ctrlKey": True, "key": "Home"}) and handle.evaluate(PRESS, {"key": "k"})
        assert handle.get_attribute("aria-label") == before
        for key, end in (("Home", "min"), ("End", "max")):
            assert not handle.evaluate(PRESS, {"key": key})
            assert handle.get_attribute("aria-valuenow") == handle.get_attribute(f"aria-value{end}")
    assert {"ArrowLeft", "Home"} == set(page.evaluate("keys")), "the page's own keys of this kind are its own"


@pytest.mark.browser
def test_sliders_reset_and_kernel(page):
    start = state_of(page, "softmax_bend")
    for label, trait, key, expected in (
        ("logit spread", "spread", "ArrowRight", 2**-0.75),
        ("tokens", "tokens", "ArrowLeft", 32),
    ):
        page.locator("#softmax_bend").get_by_role("slider", name=label).focus()
        page.keyboard.press(key)
        assert state_of(page, "softmax_bend")[trait] == pytest.approx(expected)
    settle(page)
    assert "over 32 tokens" in page.locator("#softmax_bend [role=status]").inner_text()
    page.locator("#softmax_bend button").click()
    assert state_of(page, "softmax_bend") == start
    page.evaluate("stages.one_step.model.set('points', [[1, 1], [2, -1]])")  # as a live kernel does
    assert page.locator("#one_step .explorable-handle").count() == 3
    page.locator("#one_step button").click()
    assert page.locator("#one_step .explorable-handle").count() == 7


MOVING = "document.getAnimations().length"


@pytest.mark.browser
def test_brackets_move_in_steps_and_stand_still_where_motion_is_not_wanted(page):
    its = page.locator("#bracket_move")
    numbers = its.locator(".explorable-panel svg").first.locator("text").all_text_contents()
    its.get_by_role("button", name="Replay").click()
    assert state_of(page, "bracket_move")["step"] == 1 and page.evaluate(MOVING) == 0
    its.get_by_role("button", name="Next").press("Enter")
    assert page.evaluate(MOVING) == 6 * 3, "each of six numbers appears where its two factors meet"
    page.evaluate("document.getAnimations().forEach((each) => each.finish())")
    page.emulate_media(reduced_motion="reduce")
    for _ in range(4):
        its.get_by_role("slider", name="step").press("ArrowRight")
        assert page.evaluate(MOVING) == 0
    page.emulate_media(reduced_motion="no-preference")
    its.get_by_text("is the same vector: (2, −1)").wait_for(state="attached")
    assert its.locator(".explorable-panel svg").first.locator("text").all_text_contents() == numbers
    its.get_by_role("button", name="Back").click()
    assert state_of(page, "bracket_move")["step"] == 5 and page.evaluate(MOVING) == 0


SMALLEST = """(widget) => Math.min(...[...widget.querySelectorAll("svg text")].map((text) =>
    parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getBoundingClientRect().width / 320))"""


@pytest.mark.browser
@pytest.mark.parametrize(("width", "most"), [(390, 760), (768, 620), (1000, 620)])
def test_flow_of_attention_is_one_screen_and_follows_the_ticks(browser, width, most):
    with opened(browser, {"live": LiveAttention(), "linked": LiveAttention(hidden=[1, 3])}, width=width) as page:
        its = page.locator("#live")
        assert its.bounding_box()["height"] <= most and its.evaluate(SMALLEST) >= 11
        text, dimmed = its.locator("svg text"), its.locator("svg [stroke-dasharray]")
        lines = ["France → Paris", "Italy → Rome", "Egypt → Cairo", "China → Beijing"]
        assert "“Tokyo”" in text.all_text_contents() and dimmed.count() == 0
        for i in (3, 1):
            line, tick = its.get_by_text(lines[i], exact=True), its.get_by_role("checkbox", name=lines[i])
            place, area = line.bounding_box(), tick.bounding_box()
            assert area["y"] < place["y"] and place["y"] + place["height"] < area["y"] + area["height"]
            tick.press("Space")
            assert line.bounding_box() == place and text.all_text_contents().count("hidden") == dimmed.count()
        assert dimmed.count() == 2 and state_of(page, "live")["hidden"] == [1, 3]
        stored = {tuple(hidden): found for hidden, found, *_ in LiveAttention.stored()["capitals"]["hiding"]}
        assert f"“{stored[1, 3][0][0].strip()}”" == "“Japan”" in text.all_text_contents()
        page.locator("#linked").get_by_role("button", name="Reset").click()
        assert page.locator("#linked svg text").all_text_contents() == text.all_text_contents()
        its.get_by_role("button", name="plurals").click()
        assert "shelf → shelves" in text.all_text_contents() and dimmed.count() == 0


@pytest.mark.browser
@pytest.mark.parametrize(("theme", "width"), [("dark", 320), pytest.param("light", 800, marks=pytest.mark.weekly)])
def test_page_fits_and_is_accessible(browser, theme, width):
    with opened(browser, starts(), theme, width) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        tops = page.locator("#one_step .explorable-panel").evaluate_all(
            "(all) => all.map((p) => p.getBoundingClientRect().top)"
        )
        assert (tops[0] == tops[1]) == (width == 800), "the panels stack on a phone"
        assert page.evaluate(OVERFLOWS) == []
        extremes = dict(
            one_step=dict(points=[[-2, -2], [2, -2]], learning_rate=1.5, query=2),
            softmax_bend=dict(spread=4, tokens=128),
            three_tokens=dict(token_keys=[[2, 2]] * 3, token_values=[[-2, -2]] * 3, query=[2, 2], attention="linear"),
            one_head=dict(query=[-2, -2], attention="linear"),
            real_head=dict(shift=2),
            ladder=dict(rung=2),
        )
        for name, traits in extremes.items():
            for trait, value in traits.items():
                page.evaluate("([name, trait, value]) => stages[name].model.set(trait, value)", [name, trait, value])
        assert page.evaluate(OVERFLOWS) == []
        assert (
            page.locator(".explorable-handle").first.evaluate("(node) => getComputedStyle(node).touchAction") == "none"
        )
        found = Axe().run(page, context={"exclude": [["[id$='_2']"]]}).response["violations"]
        assert [f"{v['id']}: {v['nodes'][0]['html'][:160]}" for v in found] == []
