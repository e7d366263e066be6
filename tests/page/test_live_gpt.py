"""LiveGPT: stored answers are the checkpoint's, and the model in a real browser gives the same numbers."""

import base64
import functools
import http.server
import json
import re
import shutil
import threading
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from conftest import ROOT, _Handler, drawn_again, find_browser, require_frames
from javascript import run_tests

from bookbuilder import explorables as builder
from bookbuilder import model_in_page, sphinxext
from explainer.data import tasks
from explainer.errors import ExplainerError
from explainer.models import circuits, scoring
from explainer.page import (
    LiveGPT,
    LiveSweep,
    live_experiment,
    live_gpt,
    live_patch,
    live_sweep,
)
from explainer.page.asking import MORE_TASKS, TASKS, book_checkpoint

pytestmark = drawn_again
PATIENCE = 60
"""Seconds for what takes some on an idle machine: a busy one is slow, not wrong."""


@pytest.fixture(scope="module")
def checkpoint():
    return book_checkpoint()


@pytest.mark.parametrize("file", sorted((ROOT / "tests" / "page" / "js").glob("*.mjs")), ids=lambda file: file.name)
def test_javascript(file, tmp_path):
    assert run_tests(file, tmp_path) > 0


def test_default_state_is_the_first_task():
    state, first = LiveGPT().state(), next(iter(LiveGPT.stored().values()))
    assert {name: state[name] for name in first} == first
    assert state["found"]["of"] == [state[name] for name in ("pattern", "demonstrations", "query", "hidden")]


def require_close(found, stored, within):
    """The same tokens in the same order, as far as their probabilities tell them apart, and the same numbers."""
    for name in ("without", "with"):
        stored_p = dict(map(tuple, stored[name]))
        np.testing.assert_allclose([p for _, p in found[name]], list(stored_p.values()), atol=within)
        assert all(abs(p - stored_p.get(token, p)) <= within for token, p in found[name])
        assert found[name][0][0] == stored[name][0][0]
    np.testing.assert_allclose(np.array(found["alone"], float), np.array(stored["alone"], float), atol=within)
    np.testing.assert_allclose(found["looks"], stored["looks"], atol=1)  # in thousandths


WEEKLY = pytest.mark.weekly


@pytest.mark.slow
@pytest.mark.parametrize("name", [TASKS[0], "chinese", *(pytest.param(name, marks=WEEKLY) for name in TASKS[1:])])
def test_stored_answers_are_the_checkpoints(checkpoint, name):
    stored = LiveGPT.stored()[name]
    require_close(live_gpt.answers(checkpoint, *stored["found"]["of"]), stored["found"], 1e-3)


@pytest.mark.slow
def test_marked_heads_are_the_strongest_induction_heads(checkpoint):
    """By the scores of the chapter `head_circuits`; the tenth is no stronger than the eleventh by 0.01."""
    texts = (circuits.repeated_random_tokens(checkpoint, 50, seed) for seed in range(4))
    scores = sum(circuits.induction_score(circuits.attention_maps(checkpoint, text)) for text in texts) / 4
    tenth = scores.flatten().sort(descending=True).values[9]
    assert len(set(live_gpt._INDUCTION)) == 10
    assert all(scores[head] > tenth - 0.01 for head in live_gpt._INDUCTION)


def test_stored_demonstrations_are_the_books():
    for name, stored in LiveGPT.stored().items():
        written = {(example.fields["word"], example.answer) for example in tasks.load(name).train}
        assert {tuple(pair) for pair in stored["demonstrations"]} <= written


# The folder of the model


def test_missing_runtime_is_said_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(model_in_page, "ROOT", tmp_path)
    (tmp_path / "site" / model_in_page.PLACE).mkdir(parents=True)
    line = model_in_page.put(tmp_path / "site")
    assert line == (
        "The site has no model in its pages: ort.wasm.min.mjs is missing: "
        "npm could not install what package-lock.json names."
    )
    assert not (tmp_path / "site" / model_in_page.PLACE).exists()
    with pytest.raises(ExplainerError):
        model_in_page.place(tmp_path)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A site of one page with the explorable, and with the model."""
    site = tmp_path_factory.mktemp("live") / "site"
    model_in_page.place(site)
    static = site / "_static" / "explainer"
    shutil.copy(ROOT / "book" / "_ext" / "bookbuilder" / "static" / "explainer" / "afm-host.js", static)
    widgets = [
        f"<section class={name}>{node.astext()}</section>"
        for name in ("LiveGPT", "LiveSweep", "LiveExperiment", "LivePatch", "LiveVector")
        for node in sphinxext.explorable(Mock(), name)
    ]
    page = (
        '<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        '<link rel="icon" href="data:,"><title>Laboratory</title>'
        '<meta name="viewport" content="width=device-width"><script src="_static/explainer/afm-host.js"></script>'
        f"</head><body><main><h1>Laboratory</h1>{''.join(widgets)}</main></body></html>"
    )
    (site / "index.html").write_text(page, "utf-8")
    return site


def test_a_page_is_made_anew_where_a_bundle_or_stored_answers_changed():
    here = Mock()
    sphinxext.explorable(here, "LiveGPT")
    noted = here.state.document.settings.env.note_dependency.call_args_list
    assert {"live_gpt.js", "live_gpt.json"} <= {Path(call.args[0]).name for call in noted}


class Host(_Handler):
    """A host on which a file can be cut short, flipped or held back: `server.faults` has the fault of each name."""

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        self.server.asked.append(path.name)
        fault = self.server.faults.get(path.name)
        if fault is None:
            super().do_GET()
        elif fault == "missing":
            self.send_error(404)
        else:
            self.send_faulty(path.read_bytes(), fault)

    def send_faulty(self, content, fault):
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if fault == "held back":
            self.server.released.wait(PATIENCE)
        elif fault == "flipped":
            self.wfile.write(content[:1000] + bytes([content[1000] ^ 1]) + content[1001:])
        else:
            self.wfile.write(content[: len(content) // 2])


@pytest.fixture
def server(place):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Host, directory=str(place)))
    server.faults, server.asked, server.released = {}, [], threading.Event()
    server.address = f"http://127.0.0.1:{server.server_port}/"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.released.set()
    server.shutdown()


@pytest.mark.slow
def test_button_says_how_much_is_loaded(place):
    """With the runtime for the processor; that for a graphics processor takes its place, and is 3 MB larger."""
    size = sum(path.stat().st_size for path in (place / model_in_page.PLACE).iterdir() if "jspi" not in path.name)
    assert f'SIZE = "{size / 1e6:.0f} MB"' in LiveGPT()._esm
    assert all(path.stat().st_size <= 25_000_000 for path in (place / model_in_page.PLACE).iterdir())


TOKENIZE = """
import { readFileSync } from "node:fs";
import { Tokenizer } from "@huggingface/tokenizers";
import { LiveModel } from "#page/live_gpt_core.js";
const { file, texts } = JSON.parse(readFileSync(0, "utf8"));
const tokenizer = new Tokenizer(JSON.parse(readFileSync(file, "utf8")), {});
const encoded = texts.map((text) => tokenizer.encode(text, { add_special_tokens: false }).ids);
const text = (ids) => LiveModel.prototype.text.call({ tokenizer }, ids);
const all = Array.from({ length: tokenizer.model.vocab.length }, (_, id) => text([id]));
process.stdout.write(JSON.stringify({ encoded, decoded: encoded.map(text), all }));
"""


@pytest.mark.slow
def test_tokenizer_of_the_page_is_that_of_python(place, checkpoint):
    pairs = [tasks.load(name) for name in MORE_TASKS]
    texts = [data.task.demonstration(example) + "\n" for data in pairs for example in data.train[:40]]
    texts += [data.task.prompt(example) for data in pairs for example in data.train[:40]]
    texts += [example.fields["text"] for example in tasks.load("reviews").train[:200]]
    texts += ["", " ", "  two  spaces ", "東京 -> 日本", "naïve café", "🙂 -> 🙁"]
    texts += ["热 -> 冷\nقطة -> cat", "👩🏽‍🔬👍🏽 🇨🇳 -> e\u0301", "שלום mixed 世界 🙂‍↔️", "\ufeffmark"]
    texts += ["<|im_start|>user", "a\tb", "1234 -> 5", "<b>&amp;"]
    file = place / model_in_page.PLACE / "tokenizer.json"
    found = json.loads(builder.run_module(TOKENIZE, {"file": str(file), "texts": texts}))
    expected = [checkpoint.tokenize(text) for text in texts]
    assert found["encoded"] == expected
    assert found["decoded"] == texts
    assert found["all"] == [checkpoint.text([token]) for token in range(len(checkpoint.tokenizer))]
    assert "\ufffd" not in "".join(found["all"])


# In a browser that reaches nothing but the site


KEEP_THE_WORKER = (
    "window.Worker = class extends Worker { constructor(...given) { super(...given); window.kept = this; } }"
)


@pytest.fixture
def open_page(browser):
    contexts = []

    def open_(address, context=None):
        if context is None:  # as tall as the explorables together: they mount where they are in view
            context = browser.new_context(viewport={"width": 1000, "height": 3800})
            contexts.append(context)
        page = context.new_page()
        page.add_init_script(KEEP_THE_WORKER)
        page.set_default_timeout(10_000)  # for what needs no model
        page.complaints, page.outside = [], []
        page.on("console", lambda message: page.complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        context.on("request", lambda request: page.outside.append(request.url))
        page.goto(address)
        require_frames(page)
        until(
            page, "document.querySelectorAll('.xp-widget[data-ready]').length === 5", "the explorables are mounted", 20
        )
        return page

    yield open_
    for context in contexts:
        context.close()


def until(page, holds, what, seconds=PATIENCE):
    """Wait for something that is to hold in a page; asked by the clock, which needs no frame."""
    true = page.evaluate(
        """async ([holds, seconds]) => {
            const test = new Function("return " + holds), end = Date.now() + 1000 * seconds;
            while (!(await test()) && Date.now() < end) await new Promise((later) => setTimeout(later, 50));
            return !!(await test()); }""",
        [holds, seconds],
    )
    shown = page.locator("main").inner_text() if not true else ""
    assert true, f"not within {seconds} seconds: {what}. The page shows: {shown}; its complaints: {page.complaints}"


def until_says(page, text, where=".explorable", seconds=PATIENCE):
    until(page, f"document.querySelector({where!r}).textContent.includes({text!r})", f"{where} says {text!r}", seconds)


def load(page):
    page.locator(".LiveGPT").get_by_role("button", name="Load the model").click()


KEPT = "caches.open('explainer-model').then((cache) => cache.keys()).then((all) => all.length)"


def described(page):
    page.wait_for_timeout(400)  # the live region waits until nothing changes
    return page.locator(".LiveGPT p.explorable-status").inner_text()


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.flaky(reruns=1)  # it waits by the clock for a model that computes, on a machine that may be busy
@pytest.mark.parametrize("further", [False, pytest.param(True, marks=WEEKLY)])
def test_reader_loads_the_model_asks_it_and_removes_it(open_page, server, checkpoint, further):
    """All in one page, because the model takes seconds to start; in weekly runs each part in more of its ways."""
    page = open_page(server.address)
    assert not any("model/" in url for url in page.outside)
    stored = described(page)
    require_load_that_survives_faults(page, server, ("flipped", "cut") if further else ("cut",))
    until_says(page, "computed in this page", ".explorable-answers")
    assert described(page) == stored  # percentages of the same question, stored by Python
    if further:
        require_second_tab(page, open_page, server)
    require_hidden_demonstration(page, checkpoint)
    require_gates(page, checkpoint)
    require_text_that_stays_text(page)
    require_every_script(page, checkpoint)
    require_sweep(page, checkpoint)
    require_experiment(page, checkpoint, further)
    require_patches(page, checkpoint, further)
    for name in ("capitals", "antonyms")[: 1 + further]:
        require_greedy_parity(page, checkpoint, tasks.load(name), 1, 10)
    assert [text for text in page.complaints if "ERR_CONTENT_LENGTH_MISMATCH" not in text] == []
    assert all(url.startswith((server.address, "blob:")) for url in page.outside)
    page.evaluate("dispatchEvent(new Event('pagehide'))")
    until_says(page, "put away when you left")
    for _ in range(100):  # the browser ends a worker when it has time
        if page.workers:
            page.wait_for_timeout(100)
    assert page.workers == []
    page.locator(".LiveGPT").get_by_role("button", name="Remove it").click()
    until(page, "caches.keys().then((all) => !all.length)", "nothing is kept", 10)


FAULTS = {"flipped": "gpt.1.bin did not arrive as it was sent", "cut": "The connection broke"}


def require_load_that_survives_faults(page, server, faults):
    """And a reader who stops it; whole shards are asked for once."""
    for fault in faults:
        server.faults = {"gpt.1.bin": fault}
        load(page)
        until_says(page, FAULTS[fault])
        until(page, f"{KEPT}.then((n) => n === 2)", "the tokenizer and the first shard are kept", 10)
    server.faults = {"gpt.2.bin": "held back"}
    load(page)
    until(page, f"{KEPT}.then((n) => n === 3)", "two shards are kept")
    page.locator(".LiveGPT").get_by_role("button", name="Cancel").click()
    until_says(page, "Stopped.", seconds=10)
    server.faults, server.asked[:] = {}, []
    load(page)
    until_says(page, "The model is here, on WebAssembly.")
    assert {"gpt.2.bin", "gpt.3.bin"} <= set(server.asked)
    assert not {"gpt.0.bin", "gpt.1.bin"} & set(server.asked)


def require_second_tab(page, open_page, server):
    """It has the model from what the browser keeps, and both answer at once."""
    server.asked[:] = []
    other = open_page(server.address, page.context)
    load(other)
    until_says(other, "The model is here, on WebAssembly.")
    assert not [name for name in server.asked if name.startswith("gpt.")]
    for tab, n in ((page, 1), (other, 2)):
        tab.get_by_label(f"the query sees demonstration {n}").uncheck()
    for tab in (page, other):
        until_says(tab, "with 3 of 4")
        until_says(tab, "computed in this page", ".explorable-answers")
    assert described(page) != described(other)
    assert other.complaints == []
    other.close()
    page.get_by_label("the query sees demonstration 1").check()
    until_says(page, "with 4 of 4")


def require_hidden_demonstration(page, checkpoint):
    page.get_by_label("the query sees demonstration 4").uncheck()
    until_says(page, "with 3 of 4")
    default = LiveGPT()
    kept = live_gpt._without(checkpoint, default.pattern, default.demonstrations, [3])
    ((token, p),) = scoring.top_tokens(checkpoint, kept, default.query + default.pattern[1], 1)
    assert f"“{token.strip()}” ({100 * p:.0f} %) when it sees 3 of 4" in described(page)


def require_gates(page, checkpoint):
    """The gates in the page are Python's, and one head can be drawn."""
    default, part = LiveGPT(), page.locator(".LiveGPT")
    shares = live_gpt._shares_of_attention(checkpoint, default.pattern, default.demonstrations, default.query, [3])
    g = shares.sum(-1)
    layer, head = np.unravel_index(g.argmax(), g.shape)
    assert f"Head {head + 1} of layer {layer + 1} has the largest gate: {100 * g.max():.0f} %" in described(page)
    part.get_by_label("attention of").select_option(f"head {head + 1}")
    until_says(page, f"head {head + 1} of each layer", ".LiveGPT")
    until_says(page, f"strongest: {100 * shares[:, head].max():.0f} %", ".LiveGPT")


def require_text_that_stays_text(page):
    page.get_by_label("query", exact=True).fill("<img src=x onerror=alert(1)>")
    until_says(page, "onerror", "p.explorable-status")
    assert page.locator("main img").count() == 0


def asks(page, demonstrations, query):
    """Texts come by a link; what Python answers to them, when the page has answered."""
    texts = [["", " ->"], demonstrations, query, []]
    page.evaluate("(texts) => { location.hash = '#gpt=' + encodeURIComponent(JSON.stringify(texts)); }", texts)
    until(page, f"document.querySelector('.LiveGPT p.explorable-status').textContent.includes({query!r})", "it asked")
    until(
        page, "!document.querySelector('.LiveGPT .explorable-panels').textContent.includes('(earlier)')", "it answered"
    )
    return live_gpt.answers(book_checkpoint(), *texts)


X_OF_LETTER = """(given) => {
    const rows = [...document.querySelectorAll(".LiveGPT svg text")].map((row) => [row, row.textContent]);
    const [row, text] = rows.find(([, text]) => text.includes("→ ") && text.includes(given));
    return row.getExtentOfChar(text.indexOf(given)).x;
}"""


def require_every_script(page, checkpoint):
    """Parts of characters are said as Python says them, and what runs from right to left moves nothing else."""
    found = asks(page, [["热", "冷"], ["大", "小"], ["高", "低"]], "长")
    shown = page.locator(".LiveGPT svg text").all_text_contents()
    for token, _ in (*found["without"], *found["with"]):
        assert _named(token) in shown
    (token, p), part = found["with"][0], r"\s*((?:[0-9A-F]{2})+)(·+) \((.)\)"
    bytes_, dots, whole = re.fullmatch(part, token).groups()
    n = len(bytes_) // 2
    words = f"of {n + len(dots)} bytes of “{whole}” ({100 * p:.0f} %) when it sees 3 of 3"
    assert f"the first {f'{n} ' if n > 1 else ''}{words}" in described(page)
    found = asks(page, [["قطة", "كلب"], ["👩🏽‍🔬", "🇨🇳"]], "שלום")
    assert "“\u2068שלום\u2069 →” the model expects" in described(page)
    assert page.evaluate(X_OF_LETTER, "قطة") < page.evaluate(X_OF_LETTER, "كلب")
    ways = "(label) => getComputedStyle(document.querySelector(`[aria-label='${label}']`)).direction"
    assert [page.evaluate(ways, label) for label in ("query", "demonstration 1", "demonstration 2")] == [
        "rtl",
        "rtl",
        "ltr",
    ]
    assert "\ufffd" not in page.locator("main").inner_text()
    assert {_named(token) for token, _ in found["with"]} <= set(page.locator(".LiveGPT svg text").all_text_contents())


def require_sweep(page, checkpoint):
    """The first counts are Python's; a question of the other explorable stops what runs; and so does the button."""
    part, live = page.locator(".LiveSweep"), LiveSweep()
    part.get_by_label("task").select_option("plurals")
    until_says(page, "plurals, 30 queries: without", ".LiveSweep p.explorable-status", 10)
    part.get_by_role("button", name="Run it").click()
    until(page, "document.querySelector('.LiveSweep svg').textContent.includes('10 queries')", "the sweep began", 10)
    until_says(page, "at k = 0", ".LiveSweep")
    part.get_by_role("button", name="Stop").click()
    until_says(page, "Stopped.", ".LiveSweep", 10)
    its = live.lessons["plurals"]
    its = its | {"queries": its["queries"][:10]}
    until(
        page, "!!document.querySelector('.LiveSweep p.explorable-status').textContent.match(/After/)", "it is told", 10
    )
    told = part.locator("p.explorable-status").inner_text()
    k = int(re.search(r"After (\d+) right", told)[1])
    numbers = [live_sweep._counts(checkpoint, its, kind, [k])[0] for kind in live_sweep._CURVES]
    zero = live_sweep._counts(checkpoint, its, "right", [0])[0]
    found = re.search(
        r"model writes (\d+) answers.* it writes (\d+) .* shuffled answers (\d+), .* another task (\d+)", told
    )
    assert [int(number) for number in found.groups()] == [zero, *numbers]
    part.get_by_role("button", name="Run it").click()
    page.get_by_label("the query sees demonstration 2").uncheck()
    until_says(page, "this page asked something else", ".LiveSweep")
    part.get_by_role("button", name="Run it").click()
    part.get_by_role("combobox", name="queries").select_option("20")
    part.get_by_role("button", name="Reset").click()
    page.wait_for_timeout(1500)  # in which a sweep that went on would add to what is stored
    assert "stored with the book" in part.locator(".explorable-answers").inner_text()
    assert part.get_by_role("button", name="Run it").is_visible()
    assert part.get_by_role("combobox", name="queries").input_value() == "10"


TOLD = (
    r"right are (\d+) without demonstrations, (\d+) in context, and (\d+) .* errors that the context repairs, the "
    r"second lesson repairs (\d+)\. The SimAOU of the two changes is (.+), between a .* SimAMΔ is (.+)\. After “.*” "
    r"the model expects (.+), (.+) and (.+)\."
)


def require_experiment(page, checkpoint, further):
    """The page measures what Python measures: with half of the update, with none of it, and for another context."""
    part, said = page.locator(".LiveExperiment"), ".LiveExperiment p[role=status].explorable-hint"

    def told():
        until_says(page, "Done.", said)
        page.wait_for_timeout(400)  # the live region waits until nothing changes
        return re.search(TOLD, part.locator("p.explorable-status").inner_text()).groups()

    def require_same(numbers, found):
        np.testing.assert_allclose([int(n) for n in numbers[:4]], [*found["right"], found["repaired"][2]], atol=1)
        both = [float(number) for number in numbers[4:6]]
        np.testing.assert_allclose(both, [np.mean(found["sim_aou"]), found["sim_am_delta"]], atol=0.011)
        assert list(numbers[6:]) == [f"“{top[0][0].strip()}”" for top in found["answers"]]

    part.get_by_label("update times").fill("0.5")
    part.get_by_label("your own query").fill("Peru")
    part.get_by_role("button", name="Run it").click()
    require_same(told(), live_experiment._answers(checkpoint, "capitals", "fine-tuned", 0.5, "Peru"))
    if not further:
        return
    part.get_by_label("update times").fill("0")
    until_says(page, "of 3 lessons", said)
    zsl, _, after, both, *similar = told()[:6]
    assert (after, both, similar) == (zsl, "0", ["not defined", "not defined"])
    part.get_by_label("update times").fill("1")
    part.get_by_label("second lesson").select_option(label="context, foreign")
    until_says(page, "of 3 lessons", said)
    require_same(told(), live_experiment._answers(checkpoint, "capitals", "foreign", query="Peru"))


PATCHED = (
    r"expects (.+) without .* and (.+) with them\. .* expects (.+) under .* patch, and (.+) under .* queries .* right "
    r"for (\d+) without demonstrations, (\d+) with them, and (\d+) under .*; for (\d+) it is wrong"
)


def require_patches(page, checkpoint, further):
    """The page makes the patches that Python makes: the mean of two, and that of one, which carries its answer over."""
    part, said = page.locator(".LivePatch"), ".LivePatch p[role=status].explorable-hint"

    def require_same(found):
        until_says(page, "Done.", said)
        page.wait_for_timeout(400)  # the live region waits until nothing changes
        told = part.locator("p.explorable-status").inner_text()
        assert re.search("no logit from that in context by more than 10⁻[³⁴⁵⁶]", told)
        *tokens, zsl, icl, moved, carried = re.search(PATCHED, told).groups()
        assert [token.split(" (")[0] for token in tokens] == [_named(top[0][0]) for top in found["answers"]]
        counts = [int(number) for number in (zsl, icl, moved, carried)]
        np.testing.assert_allclose(counts, [*found["right"], found["carried"]], atol=1)

    part.get_by_label("task").select_option("plurals")
    part.get_by_label("patches of").select_option("2 queries, mean")
    part.get_by_label("your own query").fill("box")
    part.get_by_role("button", name="Run it").click()
    require_same(live_patch._answers(checkpoint, "plurals", 2, "box"))
    if further:
        part.get_by_label("patches of").select_option("1 query")
        until_says(page, "of 2 runs", said)
        require_same(live_patch._answers(checkpoint, "plurals", 1, "box"))


def _named(token):
    text = token.strip()
    if re.search("[\u0590-\u08ff]", text):
        text = f"\u2068{text}\u2069"
    if re.search("[0-9A-F]{2}·|…[0-9A-F]{2}", text):
        return text
    return f"“{text}”" if text else "end of line" if "\n" in token else "a space"


SWEEP = """(message) => new Promise((answer, fail) => {
    const found = [];
    setTimeout(() => fail(new Error("no answer of the worker within a minute")), 60000);
    window.kept.addEventListener("message", ({ data }) => {
        if (data.failed) fail(new Error(data.failed));
        if (data.sweep === message.sweep) data.done ? answer(found) : found.push(data);
    });
    window.kept.postMessage(message);
})"""


def require_greedy_parity(page, checkpoint, data, k, n):
    """The most probable tokens after 0 ... k demonstrations are Python's, their log p to 1e-3, and so is the match."""
    shown, asked = tasks.demonstrations(data, k, seed=1), tasks.queries(data, n, seed=1)
    before, after = data.task.template.split("{word}")
    pairs = [[[one.fields["word"], one.answer] for one in examples] for examples in (shown, asked)]
    message = dict(sweep=data.task.name, pattern=[before, after], curves=[pairs[0]], queries=pairs[1])
    prompts, answers = [data.task.prompt(one) for one in asked], [one.answer for one in asked]
    for step in page.evaluate(SWEEP, message):
        prefix = scoring.encode(checkpoint, scoring.context_ids(checkpoint, data.task, shown[: step["k"]])[0])
        ids = scoring.prompt_token_ids(checkpoint, prefix, prompts)
        rows = [(its, [token for token, *_ in answer[:-1]]) for its, answer in zip(ids, step["answers"], strict=True)]
        for i, logits in scoring.row_logits(checkpoint, prefix, rows):
            log_p, best = logits.log_softmax(-1).max(-1)
            assert [token for _, token, _ in step["answers"][i]] == best.tolist()
            np.testing.assert_allclose([p for *_, p in step["answers"][i]], log_p.cpu(), atol=1e-3)
        assert step["exact"] == scoring.exact_match(checkpoint, prefix, prompts, answers).tolist()


MODEL = """async ([file, backend]) => {
    const base = new URL("_static/explainer/model/", location.href).href;
    const ort = await import(base + file), { Tokenizer } = await import(base + "tokenizers.min.mjs");
    const { fetchShards, modelOn } = await import(base + "live_gpt_core.js");
    const manifest = await (await fetch(base + "manifest.json")).json();
    const bytes = await fetchShards(base, manifest.shards, await caches.open("test"), () => {});
    const words = await (await fetch(base + "tokenizer.json")).json();
    window.model = await modelOn(ort, backend, base, bytes, new Tokenizer(words, {}), manifest);
    const [stored] = Object.values(await (await fetch(base + "live_gpt.json")).json());
    return window.model.differsFrom(stored);
}"""
ASK = """async ([texts, out]) => {
    const { logits: [z], looks } = await window.model.next(...texts, out), bytes = new Uint8Array(z.slice().buffer);
    let text = "";
    for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
    return [btoa(text), looks];
}"""


@WEEKLY
@pytest.mark.slow
@pytest.mark.browser
def test_webgpu_gives_the_stored_answer_and_is_taken_where_it_is_quick(browser, server):
    """Chromium can compute WebGPU on the processor: the numbers are the same, and a page does not take it."""
    arguments = ["--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"]
    with_gpu = browser.browser_type.launch(executable_path=find_browser(), args=arguments)
    try:
        page = with_gpu.new_page()
        page.set_default_timeout(1000 * 5 * PATIENCE)
        page.goto(server.address)
        if not page.evaluate("navigator.gpu?.requestAdapter().then((its) => !!its)"):
            pytest.skip("this Chromium has no WebGPU that runs without a graphics processor")
        assert page.evaluate(MODEL, ["ort.jspi.min.mjs", "webgpu"]) < 0.01
        server.asked[:] = []
        page.goto(server.address + "?again")
        load(page)
        until_says(page, "The model is here, on WebAssembly.")
        assert not [name for name in server.asked if "jspi" in name]
    finally:
        with_gpu.close()


@pytest.mark.weekly
@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("name", [*TASKS, "reviews"])
def test_logits_in_the_browser_are_those_of_python(open_page, server, checkpoint, name):
    """All logits of 40 prompts of a task to 1e-3, demonstrations hidden in every second one; and where it looks."""
    page, data = open_page(server.address), tasks.load(name)
    assert page.evaluate(MODEL, ["ort.wasm.min.mjs", "wasm"]) < 1e-3
    before, after = data.task.template.split("{text}" if name == "reviews" else "{word}")
    shown = [[next(iter(one.fields.values())), one.answer] for one in tasks.demonstrations(data, 4, seed=0)]
    for i, query in enumerate(tasks.queries(data, 40, seed=0)):
        texts, out = [[before, after], shown, next(iter(query.fields.values()))], [0, 2] if i % 2 else []
        z, looks = page.evaluate(ASK, [texts, out])
        ours = torch.tensor(np.frombuffer(base64.b64decode(z), np.float32)).log_softmax(-1).numpy()
        expected = live_gpt._log_probabilities(checkpoint, *texts, out)
        assert ours.argmax() == expected.argmax(), query
        np.testing.assert_allclose(ours, expected, atol=1e-3)
        if i < 2:
            shares = live_gpt._shares_of_attention(checkpoint, *texts, out)
            np.testing.assert_allclose(looks, shares, atol=1e-4)
            assert (shares[..., out] == 0).all() and shares[..., 1].max() > 0.01


@pytest.mark.slow
@pytest.mark.browser
def test_without_the_model_one_line_says_why(open_page, server, place):
    page = open_page((place / "index.html").as_uri())
    load(page)
    until_says(page, "A page opened as a file cannot load the model", seconds=10)
    page = open_page(server.address)
    server.faults = {"manifest.json": "missing"}
    load(page)
    until_says(page, "built without the model", seconds=10)
    page.context.route("**/manifest.json", lambda route: route.abort())
    load(page)
    until_says(page, "The site cannot be reached", seconds=10)


@pytest.mark.slow
@pytest.mark.browser
def test_link_brings_the_readers_text(open_page, server):
    page = open_page(server.address)
    page.get_by_role("button", name="antonyms").click()
    page.get_by_label("the query sees demonstration 2").uncheck()
    page.get_by_role("button", name="link to this").click()
    other = open_page(page.url)
    assert other.get_by_label("the query sees demonstration 2").is_checked() is False
    assert other.get_by_label("query", exact=True).input_value() == page.get_by_label("query", exact=True).input_value()


KILLED = "addEventListener('pagehide', (event) => window.killed && event.stopImmediatePropagation(), true)"
ENDED = "The browser ended this page while it had the model"


@pytest.mark.slow
@pytest.mark.browser
def test_killed_tab_offers_the_stored_answers(open_page, server, browser):
    """And one that the reader left does not; a phone is told before what loading takes."""
    server.faults = {"gpt.0.bin": "held back"}
    context = browser.new_context(viewport={"width": 390, "height": 9000}, has_touch=True, is_mobile=True)
    try:
        context.add_init_script(KILLED)
        page = open_page(server.address, context)
        part = page.locator(".LiveGPT")
        assert "takes a download of 115 MB, once, and 1 GB of memory" in part.inner_text()
        load(page)
        until_says(page, "The model is loading")
        page.reload()
        until_says(page, "takes a download of 115 MB")
        load(page)
        until_says(page, "The model is loading")
        page.evaluate("window.killed = true")
        page.reload()
        until_says(page, ENDED)
        assert "stored with the book" in part.locator(".explorable-answers").inner_text()
        assert page.workers == [] and part.get_by_role("button", name="Load the model again").is_visible()
        part.get_by_role("button", name="Keep the stored answers").click()
        assert ENDED not in page.locator("main").inner_text()
        assert part.get_by_role("button", name="Load the model (115 MB)").is_visible()
        page.reload()
        until_says(page, "takes a download of 115 MB")
    finally:
        context.close()
