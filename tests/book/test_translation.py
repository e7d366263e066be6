"""The book's other languages: what a translation may change, that it is whole, and how its pages are made and found."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import spoken
from bs4 import BeautifulSoup
from conftest import ROOT, drawn_again, require_frames
from hypothesis import given
from hypothesis import strategies as st

from bookbuilder.pages import main_line
from bookbuilder.search import Chinese
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


@pytest.mark.parametrize(
    ("english", "other", "kind"),
    [
        ("Half of $x$ in `f(x)`, 12 %, [here](a.ipynb).", "`f(x)` 中 $x$ 的一半，12 %，见[这里](a.ipynb)。", None),
        ("$x$ grows", "$y$ 增大", "formula"),
        ("$$x_{\\text{loss}}$$", "$$x_{\\text{损失}}$$", None),
        ("$$x_{\\text{loss}}$$", "$$y_{\\text{损失}}$$", "formula"),
        ("in `f`", "在 `g` 中", "code"),
        ("[here](a.ipynb)", "[这里](b.ipynb)", "address"),
        ("10,000 and 5", "1 万和 5", "number"),
        ("0.30 below", "低于 0.3", "number"),
        ("{0} of {1}", "{0} 中的 {0}", "placeholder"),
        ("<em>a</em>", "甲", "tag"),
        ("{cite:t}`a`", "甲 `a`", "reference"),
    ],
)
def test_what_no_language_changes(english, other, kind):
    found = [said.partition(":")[0] for said in differences(english, other)]
    assert found == ([kind] if kind else [])


# Words with numbers.


@given(
    st.lists(
        st.sampled_from(["loss", "0.3", "\N{MINUS SIGN}2", "1e-5", "SST-2", "GPT-2", "10,000", "W_0", "95", "%", "(7)"])
    )
)
def test_numbers_come_back(parts):
    text = " ".join(parts)
    key, numbers = without_numbers(text)
    assert with_numbers(key, numbers) == text
    assert not re.search(r"(?<![\w\-{])\d", key)


def test_names_keep_their_digits():
    assert without_numbers("SST-2 at 0.5, W_0, x2, \N{MINUS SIGN}3") == (
        "SST-2 at {0}, W_0, x2, {1}",
        ["0.5", "\N{MINUS SIGN}3"],
    )


# What explorables say.

TABLE = {
    "Reset": "重置", "floor": "下限", "another task": "另一任务", "n = {0}": "n = {0}", "the mean": "平均",
    "It ends": "结束了", "{a}, {0} queries": "{a}，{0} 个查询", "Weights: {a}": "权重：{a}",
    "After “{A}” it expects {b}": "“{A}”之后预期 {b}", "Loss {0} of {1}": "{1} 中的 {0}",
}  # fmt: skip
SPOKEN = {
    "Reset": "重置",
    " Reset\n": "重置",
    "Loss 0.3 of \N{MINUS SIGN}2": "\N{MINUS SIGN}2 中的 0.3",
    "Weights: floor": "权重：下限",
    "Weights: unknown": "权重：unknown",
    "another task, 30 queries": "另一任务，30 个查询",
    "After “floor” it expects the mean.": "“floor”之后预期平均。",
    "After “Ends. It” it expects “a; floor”": "“Ends. It”之后预期“a; floor”",
    "It ends. another task, 2 queries; floor: n = 5.": "结束了。另一任务，2 个查询；下限：n = 5。",
    "It ends. Who knows?": "结束了。Who knows？",
    "Who knows?": None,
    "constructor": None,
    "“floor”": None,
    "cold → hot": None,
    "a": None,
}


def test_phrases():
    assert dict(zip(SPOKEN, spoken.said(TABLE, list(SPOKEN)), strict=True)) == SPOKEN


def test_every_phrase_of_the_catalogue_is_said(edition):
    table = edition.texts(EXPLORABLES)
    example = dict.fromkeys("abcd", "Reset") | dict.fromkeys("ABCD", "Tokyo 3e\N{MINUS SIGN}16")
    filled = [re.sub(r"\{(\w+)\}", lambda place: example.get(place[1], f"1,{place[1]}.5"), key) for key in table]
    assert all(spoken.said(table, filled))


# The HTML of a page.

BODY = (
    '<p>Prose &amp; more</p><div class="cell_output docutils"><p title="By 3">Loss 0.5</p><pre>print("Loss 0.5")</pre>'
    '<span class="math">\\(Loss\\)</span></div><details><summary>Solution</summary><p>Its text</p></details>'
    '<script type="application/json">{"data":[{"name":"the loss","x":["raw"]}]}</script>'
)


def test_html_stays_the_same_where_nothing_is_said():
    assert translated(BODY, lambda text, _: text) == BODY


def test_what_of_a_page_is_said():
    heard = []
    translated(BODY, lambda text, ours: heard.append((text, ours)) or text)
    assert heard == [
        ("Prose & more", False),
        ("By 3", True),
        ("Loss 0.5", True),
        ("Solution", True),
        ("Its text", False),
        ("the loss", True),
    ]


def test_a_translation_is_no_markup():
    assert translated("<p>A word</p>", lambda *_: "<b>&") == "<p>&lt;b&gt;&amp;</p>"


def test_search_splits_a_text_into_pairs():
    search = Chinese({})
    assert search.split("用元梯度, SGD") == ["用元", "元梯", "梯度", "SGD"]


# The catalogues.


def catalogues(edition):
    known = {file.stem: texts(file) for file in edition.folder.rglob("*.po")}
    return known | {"formulas": {f"$${one}$$": f"$${other}$$" for one, other in known["formulas"].items()}}


def test_catalogues_say_the_same(edition):
    wrong = {
        english: said
        for known in catalogues(edition).values()
        for english, other in known.items()
        if (said := list(differences(english, other)))
    }
    assert wrong == {}


def test_spaces_of_chinese_are_uniform():
    """One between characters and words or numbers of another script, none before a percent sign."""
    (edition,) = [one for one in editions(ROOT) if one.settings["tag"] == "zh-CN"]
    said = [text for known in catalogues(edition).values() for text in known.values()]
    wrong = re.compile(r"[\d}] %|[\u3400-\u9fff][A-Za-z\d$`]|[A-Za-z\d$`%][\u3400-\u9fff]|(?<=[\u3400-\u9fff])\{\d")
    assert [found[0] for text in said for found in wrong.finditer(text)] == []


def words(site):
    """What code, figures and the builder say on the main line's pages, without numbers."""
    found = {}

    def note(text, ours):
        if ours and not re.fullmatch(r"[\w/]+\.(?:py|js)", text):
            found[without_numbers(text)[0]] = text
        return text

    for name in main_line():
        page = (site / f"{name}.html").read_text("utf-8")
        translated(page[page.index("<article") : page.rindex("</article>")], note)
    return found


def test_words_of_the_built_pages_are_known(edition, site):
    """A number that is written as a word may be another one on another machine: one text in a hundred is let pass."""
    known, found = edition.texts(WORDS), words(site)
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
    page.goto(f"{address}{edition.settings['address']}/search.html?q=元梯度")
    page.wait_for_selector("#search-results li")
    assert "attention_as_weight_update" in page.inner_html("#search-results")
    page.close()


EXPLORED = (
    "intro",
    *("chapters/keys_queries_values", "chapters/gradient_descent_as_attention", "chapters/attention_as_weight_update"),
    *("chapters/linear_transformer", "chapters/how_far_it_reaches", "chapters/what_softmax_does"),
    *("chapters/agreement", "chapters/idea_it_inspired", "chapters/verdict"),
    "reference/laboratory",
)
"""Pages that have every explorable of the main line between them."""


@pytest.mark.browser
@drawn_again
def test_explorables_speak_the_language(edition, browser, address):
    """After the first drawing and a use of each control."""
    page = browser.new_page()
    page.set_default_timeout(100_000)  # a busy machine is slow, not wrong
    left = {}
    for name in EXPLORED:
        page.goto(f"{address}{edition.settings['address']}/book/{name}.html", wait_until="domcontentloaded")
        require_frames(page)
        texts = spoken.of_page(page, most=1, quiet=20)
        assert any(map(HAN.search, texts)), name
        left |= {text: english for text in texts if (english := edition.english(text))}
    page.close()
    assert left == {}
