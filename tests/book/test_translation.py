"""The book's other languages: what a translation may change, that it is whole, and how its pages are made and found."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from conftest import ROOT, drawn_again, require_frames
from hypothesis import given
from hypothesis import strategies as st

import bookbuilder
from bookbuilder.explorables import run_module
from bookbuilder.pages import main_line
from bookbuilder.translation import (
    EXPLORABLES,
    WORDS,
    editions,
    texts,
    translated,
    with_numbers,
    without_numbers,
)

HAN = re.compile("[\u3400-\u9fff]")


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture(params=editions(ROOT), ids=lambda edition: edition.folder.name)
def edition(request):
    return request.param


# What must be the same in both languages.

DISPLAYED = re.compile(r"\$\$.+?\$\$", re.DOTALL)
WORDS_OF_FORMULA = re.compile(r"(?<!_)(\\text\{)[^}]*(?:[a-z]{3}|[\u3400-\u9fff])[^}]*\}")
"""Words that stand in a displayed formula; those right after an underscore belong to a name."""

SAME = {
    "formula": re.compile(r"\$\$.+?\$\$|\$[^$]+\$", re.DOTALL),
    "code": re.compile(r"`[^`]+`"),
    "address": re.compile(r"\]\(([^)]*)\)"),
    "reference": re.compile(r"\{[a-z:]+\}"),
    "placeholder": re.compile(r"\{(\d+|[A-Za-z])\}"),
    "tag": re.compile(r"</?[a-z][^>]*>"),
    "number": re.compile(r"\d+(?:[.,]\d+)*"),
}


def without_words(formula: re.Match) -> str:
    return WORDS_OF_FORMULA.sub(r"\1}", formula[0])


def differences(english: str, other: str) -> Iterator[str]:
    """What one of two texts has and the other has not, of all that no language changes."""
    english, other = (DISPLAYED.sub(without_words, text) for text in (english, other))
    for kind, pattern in SAME.items():
        one, two = (sorted(" ".join(m.split()) for m in pattern.findall(text)) for text in (english, other))
        if one != two:
            yield f"{kind}: {sorted(set(one) ^ set(two)) or one} in only one of the two"
        english, other = (pattern.sub(" ", text) for text in (english, other))


@given(
    st.lists(
        st.sampled_from(["loss", "0.3", "\N{MINUS SIGN}2", "1e-5", "SST-2", "GPT-2", "10,000", "W_0", "95", "%", "(7)"])
    )
)
def test_numbers_come_back_and_names_keep_their_digits(parts):
    text = " ".join(parts)
    key, numbers = without_numbers(text)
    assert with_numbers(key, numbers) == text
    assert not re.search(r"(?<![\w\-{])\d", key) and key.count("SST-2") == parts.count("SST-2")


# What explorables say.

_SAY = """
import { readFileSync } from "node:fs";
const { script, table, texts } = JSON.parse(readFileSync(0, "utf8"));
const [document, MutationObserver] = [{ querySelectorAll: () => [] }, class {}];
const run = new Function("document", "MutationObserver", "TABLE", `${script}; return sayFrom(TABLE);`);
process.stdout.write(JSON.stringify(texts.map(run(document, MutationObserver, table))));
"""


def spoken(table, texts):
    """What the pages' script makes of each text by a catalogue, or None; parts that nobody translated stay."""
    script = (Path(bookbuilder.__file__).parent / "static" / "words.js").read_text("utf-8")
    return json.loads(run_module(_SAY, {"script": script, "table": table, "texts": texts}))


def test_every_phrase_of_the_catalogue_is_said(edition):
    table = edition.texts(EXPLORABLES)
    example = dict.fromkeys("abcd", "Reset") | dict.fromkeys("ABCD", "Tokyo 3e\N{MINUS SIGN}16")
    filled = [re.sub(r"\{(\w+)\}", lambda place: example.get(place[1], f"1,{place[1]}.5"), key) for key in table]
    assert all(spoken(table, filled))


# The HTML of a page.

BODY = (
    '<p>Prose &amp; more</p><div class="cell_output docutils"><p title="By 3">Loss 0.5</p><pre>print("Loss 0.5")</pre>'
    '<span class="math">\\(Loss\\)</span></div><details><summary>Solution</summary><p>Its text</p></details>'
    '<script type="application/json">{"data":[{"name":"the loss","x":["raw"]}]}</script>'
)


def test_html_stays_the_same_where_nothing_is_said_and_a_translation_is_no_markup():
    assert translated(BODY, lambda text, _: text) == BODY
    assert translated("<p>A word</p>", lambda *_: "<b>&") == "<p>&lt;b&gt;&amp;</p>"


# The catalogues.


def test_catalogues_say_the_same(edition):
    known = {file.stem: texts(file) for file in edition.folder.rglob("*.po")}
    known["formulas"] = {f"$${one}$$": f"$${other}$$" for one, other in known["formulas"].items()}
    wrong = {
        english: said
        for known in known.values()
        for english, other in known.items()
        if (said := list(differences(english, other)))
    }
    assert wrong == {}


def test_words_of_the_built_pages_are_known(edition, site):
    """A number that is written as a word may be another one on another machine: one text in a hundred is let pass."""
    found = {}

    def note(text, ours):
        if ours and not re.fullmatch(r"(?:,? ?[\w/]+\.py)+", text):
            found[without_numbers(text)[0]] = text
        return text

    for name in main_line():
        page = (site / f"{name}.html").read_text("utf-8")
        translated(page[page.index("<article") : page.rindex("</article>")], note)
    known = edition.texts(WORDS)
    missing = [text for text in found if text not in known]
    assert len(missing) <= len(found) / 100, missing


# The built pages.


@pytest.mark.parametrize("name", main_line(ROOT))
def test_page_is_translated(edition, site, name):
    page = (site / edition.settings["address"] / f"{name}.html").read_text("utf-8")
    english = (site / f"{name}.html").read_text("utf-8")
    assert f'lang="{edition.settings["tag"]}"' in page.replace("_", "-")
    ids = [re.findall(r'<section [^>]*id="([^"]+)"', text) for text in (page, english)]
    assert ids[0] == ids[1], "a section has another address"
    body = re.sub(
        r"<(pre|script)\b.*?</\1>", "", page[page.index("<article") : page.index("</article>")], flags=re.DOTALL
    )
    assert "**" not in body, "bold that does not render"
    captions = re.findall(r'class="caption-text">([^<]+)<', page)
    assert captions and not re.search("[A-Za-z]{3}", "".join(captions)), captions
    for element in BeautifulSoup(body, "html.parser").select(".untranslated:not(.math)"):
        for code in element.select("code, .math, a"):
            code.decompose()
        assert not re.search("[A-Za-z]{3}", element.get_text()), element
    for text, other in ((page, english), (english, page)):
        (way,) = re.findall(r'<link rel="alternate" hreflang="[\w-]+" href="([^"]+)"', text)
        start = (site / edition.settings["address"] if text is page else site) / Path(name).parent
        assert (start / way).resolve().read_text("utf-8") == other


def test_links_and_files_of_pages_exist(edition, site):
    for file in (site / edition.settings["address"]).rglob("*.html"):
        for way in re.findall(r'\b(?:href|src)="([^":#?]+)[#?"]', file.read_text("utf-8")):
            assert (file.parent / way).exists(), (file, way)


@pytest.mark.browser
def test_switch_keeps_the_place_and_search_finds(edition, browser, address):
    page = browser.new_page()
    page.goto(f"{address}book/chapters/verdict.html")
    anchor = page.evaluate("document.querySelectorAll('section[id]')[1].id")
    page.goto(f"{address}book/chapters/verdict.html#{anchor}")
    page.click(".btn-xp-language")
    page.wait_for_url(f"**/{edition.settings['address']}/book/chapters/verdict.html#{anchor}")
    assert HAN.search(page.inner_text(f"section#{anchor}"))
    page.goto(f"{address}book/studies/vote.html")  # which has no translation, and the switch says where it leads
    page.click(f".btn-xp-language:has-text('{edition.settings['start']}')")
    page.wait_for_url(f"**/{edition.settings['address']}/book/intro.html")
    page.goto(f"{address}{edition.settings['address']}/search.html?q=元梯度")
    page.wait_for_selector("#search-results li")
    assert "attention_as_weight_update" in page.inner_html("#search-results")
    page.close()


EXPLORED = (
    "intro",
    *("chapters/keys_queries_values", "chapters/gradient_descent_as_attention", "chapters/attention_as_weight_update"),
    "chapters/what_softmax_does",
    *("chapters/agreement", "chapters/new_rule", "chapters/idea_it_inspired", "chapters/verdict"),
    "reference/laboratory",
)
"""Pages that have every explorable of the main line between them."""
USED = """async (widget) => {
  const found = new Set(), wait = (time) => new Promise((later) => setTimeout(later, time));
  const controls = () => widget.querySelectorAll("select, input, button:not(.explorable-download), [role=slider]");
  const read = () => {
    const texts = [], walker = document.createTreeWalker(widget, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
    for (let node = walker.currentNode; node; node = walker.nextNode()) {
      if (node.nodeType === Node.TEXT_NODE) texts.push(node.data);
      else for (const name of ["aria-label", "aria-valuetext", "title", "placeholder"])
        texts.push(node.getAttribute(name));
    }
    for (const text of texts) if (/[A-Za-z]{2}|\\p{Script=Han}/u.test(text ?? "")) found.add(text);
  };
  const use = (control) => {
    const say = (name) => control.dispatchEvent(new Event(name, { bubbles: true }));
    if (control.nodeName === "SELECT") { control.selectedIndex = 0; say("change"); }
    else if (control.type === "range") { control.value = control.min; say("input"); say("change"); }
    else if (control.getAttribute("role") === "slider")
      control.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    else if (control.type !== "text") control.click();
  };
  read();
  for (let place = 0, all = controls().length; place < all; place += 1) {
    const control = controls()[place]; // by its place: a use may have drawn all of them anew
    if (!control || control.disabled || /load|start|download|reset|加载|重置/i.test(control.textContent)) continue;
    use(control);
    await wait(20);
    read();
  }
  await wait(400); // until it has written its result for a screen reader
  read();
  return [...found];
}"""
"""The texts of an explorable: at first, and after a use of each of its controls."""


@pytest.mark.browser
@drawn_again
@pytest.mark.parametrize(
    "pages", [EXPLORED[::5], pytest.param(EXPLORED, marks=pytest.mark.weekly)], ids=["some", "all"]
)
def test_explorables_speak_the_language(edition, browser, address, site, pages):
    """After the first drawing and a use of each control, on their page and alone."""
    page = browser.new_page()
    page.set_default_timeout(100_000)  # a busy machine is slow, not wrong
    page.route(re.compile("mathjax|plotly.min"), lambda route: route.abort())  # no explorable needs them
    left, home = {}, edition.settings["address"]
    alone = [each for name in pages for each in (site / home / "figures").glob(f"{name.rpartition('/')[2]}-*.html")]
    alone = [f"figures/{each.stem}" for each in alone if "data-packed" in each.read_text("utf-8")]
    for name in (*(f"book/{name}" for name in pages), *alone):
        page.goto(f"{address}{home}/{name}.html", wait_until="domcontentloaded")
        require_frames(page)
        page.locator(".xp-widget[data-model]").first.wait_for(state="attached")
        texts = set()
        for widget in page.query_selector_all(".xp-widget[data-model]"):
            widget.scroll_into_view_if_needed()
            page.wait_for_function("(widget) => widget.dataset.ready", arg=widget)
            texts |= set(widget.evaluate(USED))
        assert any(map(HAN.search, texts)), name
        left |= {text: english for text in texts if (english := edition.english(text))}
    page.close()
    assert left == {}
