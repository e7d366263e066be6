"""LiveGPT: stored answers are the checkpoint's, and the model in a real browser gives the same numbers."""

import functools
import http.server
import json
import shutil
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import traitlets
from conftest import ROOT, _Handler

from bookbuilder import explorables as builder
from bookbuilder import sphinxext, web_model
from explainer.data import tasks
from explainer.errors import ExplainerError
from explainer.explorables import LiveGPT, live_gpt
from explainer.models import checkpoints

PATIENCE = 60_000
READY = "() => document.querySelector('.explorable').textContent.includes('The model is here')"
COMPUTED = "() => document.querySelector('.explorable-answers').textContent.includes('computed in this page')"


@pytest.fixture(scope="module")
def checkpoint():
    return checkpoints.load(dtype=torch.float32, device="cpu")


def test_traits_refuse():
    with pytest.raises(traitlets.TraitError, match="at most 16 pairs"):
        LiveGPT(demonstrations=[["a", "b"]] * 17)
    with pytest.raises(traitlets.TraitError, match="pairs of texts"):
        LiveGPT(demonstrations=[["a"]])


def test_default_state_is_the_first_task():
    state, first = LiveGPT().state(), next(iter(json.loads(live_gpt.STORED.read_text("utf-8")).values()))
    assert {name: state[name] for name in first} == first
    assert state["found"]["of"] == [state[name] for name in ("pattern", "demonstrations", "query", "hidden")]


def require_close(found, stored, within):
    """The same tokens in the same order, as far as their probabilities tell them apart, and the same numbers."""
    for name in ("without", "with"):
        stored_p = dict(map(tuple, stored[name]))
        np.testing.assert_allclose([p for _, p in found[name]], list(stored_p.values()), atol=within)
        assert all(abs(p - stored_p.get(token, p)) <= within for token, p in found[name])
        assert found[name][0][0] == stored[name][0][0]
    for name in ("alone", "looks"):
        np.testing.assert_allclose(np.array(found[name], float), np.array(stored[name], float), atol=within)


@pytest.mark.slow
def test_stored_answers_are_the_checkpoints(checkpoint):
    for name, stored in json.loads(live_gpt.STORED.read_text("utf-8")).items():
        require_close(live_gpt.answers(checkpoint, *stored["found"]["of"]), stored["found"], 1e-3)
        data = tasks.load(name)
        written = {(example.fields["word"], example.answer) for example in data.train}
        assert {tuple(pair) for pair in stored["demonstrations"]} <= written


# The folder of the model


def test_missing_runtime_is_said_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(web_model, "ROOT", tmp_path)
    (tmp_path / "site" / web_model.PLACE).mkdir(parents=True)
    line = web_model.place_or_say_why(tmp_path / "site")
    assert line == (
        "The site has no model in its pages: ort.wasm.min.mjs is missing: "
        "npm could not install what package-lock.json names."
    )
    assert not (tmp_path / "site" / web_model.PLACE).exists()
    with pytest.raises(ExplainerError):
        web_model.place(tmp_path)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A site of one page with the explorable, and with the model."""
    site = tmp_path_factory.mktemp("live") / "site"
    web_model.place(site)
    static = site / "_static" / "explainer"
    shutil.copy(ROOT / "book" / "_ext" / "bookbuilder" / "static" / "explainer" / "afm-host.js", static)
    (widget,) = sphinxext.Explorable.run(SimpleNamespace(arguments=["LiveGPT"]))
    page = (
        '<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        '<link rel="icon" href="data:,"><title>Laboratory</title>'
        '<meta name="viewport" content="width=device-width"><script src="_static/explainer/afm-host.js"></script>'
        f"</head><body><main><h1>Laboratory</h1>{widget.astext()}</main></body></html>"
    )
    (site / "index.html").write_text(page, "utf-8")
    return site


@pytest.fixture(scope="module")
def server(place):
    handler = functools.partial(_Handler, directory=str(place))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.mark.slow
def test_button_says_how_much_is_loaded(place):
    size = sum(path.stat().st_size for path in (place / web_model.PLACE).iterdir())
    assert f'SIZE = "{size / 1e6:.0f} MB"' in LiveGPT()._esm
    assert all(path.stat().st_size <= 25_000_000 for path in (place / web_model.PLACE).iterdir())


TOKENIZE = """
import { readFileSync } from "node:fs";
import { Tokenizer } from "@huggingface/tokenizers";
const { file, texts } = JSON.parse(readFileSync(0, "utf8"));
const tokenizer = new Tokenizer(JSON.parse(readFileSync(file, "utf8")), {});
const encoded = texts.map((text) => tokenizer.encode(text, { add_special_tokens: false }).ids);
const options = { skip_special_tokens: false, clean_up_tokenization_spaces: false };
const decoded = encoded.flat().map((id) => tokenizer.decode([id], options));
process.stdout.write(JSON.stringify({ encoded, decoded }));
"""


@pytest.mark.slow
def test_tokenizer_of_the_page_is_that_of_python(place, checkpoint):
    pairs = [tasks.load(name) for name in ("capitals", "plurals", "past", "antonyms")]
    texts = [data.task.demonstration(example) + "\n" for data in pairs for example in data.train[:40]]
    texts += [data.task.prompt(example) for data in pairs for example in data.train[:40]]
    texts += [example.fields["text"] for example in tasks.load("reviews").train[:200]]
    texts += [
        "",
        " ",
        "  two  spaces ",
        "東京 -> 日本",
        "naïve café",
        "🙂 -> 🙁",
        "<|im_start|>user",
        "a\tb",
        "1234 -> 5",
        "<b>&amp;",
    ]
    file = place / web_model.PLACE / "tokenizer.json"
    found = json.loads(builder.run_module(TOKENIZE, {"file": str(file), "texts": texts}))
    expected = [checkpoint.tokenize(text) for text in texts]
    assert found["encoded"] == expected
    assert found["decoded"] == [checkpoint.tokenizer.decode([token]) for ids in expected for token in ids]


# In a browser that reaches nothing but the site


@pytest.fixture
def open_page(browser):
    contexts = []

    def open_(address, **options):
        contexts.append(browser.new_context(viewport={"width": 1000, "height": 900}, **options))
        page = contexts[-1].new_page()
        page.set_default_timeout(PATIENCE)
        page.complaints, page.outside = [], []
        page.on("console", lambda message: page.complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        contexts[-1].on("request", lambda request: page.outside.append(request.url))
        page.goto(address)
        page.wait_for_selector(".xp-widget[data-ready]")
        return page

    yield open_
    for context in contexts:
        context.close()


def load(page):
    page.get_by_role("button", name="Load the model").click()


def found(page):
    """The state of the page's explorable, by way of its text: answers in words."""
    page.wait_for_timeout(400)
    return page.locator("p.explorable-status").inner_text()


@pytest.mark.slow
@pytest.mark.browser
def test_model_answers_in_the_page_as_in_python(open_page, server, checkpoint):
    page = open_page(server)
    before = list(page.outside)
    assert not any("model/" in url for url in before)
    stored = found(page)
    load(page)
    page.wait_for_function(READY)
    page.wait_for_function(COMPUTED)
    assert found(page) == stored  # percentages of the same question, stored by Python
    page.get_by_label("the query sees demonstration 4").uncheck()
    page.wait_for_function("() => document.querySelector('.explorable').textContent.includes('with 3 of 4')")
    default = LiveGPT()
    expected = live_gpt.answers(checkpoint, default.pattern, default.demonstrations, default.query, [3])
    token, p = expected["with"][0]
    assert f"“{token.strip()}” ({100 * p:.0f} %) when it sees 3 of 4" in found(page)
    page.get_by_label("query", exact=True).fill("<img src=x onerror=alert(1)>")
    page.wait_for_function("() => document.querySelector('p.explorable-status').textContent.includes('onerror')")
    assert page.locator("main img").count() == 0
    assert page.complaints == []
    assert all(url.startswith((server, "blob:")) for url in page.outside)


WORKER = """async ([texts, hidden]) => {
    const base = new URL("_static/explainer/model/", location.href).href;
    const ort = await import(base + "ort.wasm.min.mjs"), { Tokenizer } = await import(base + "tokenizers.min.mjs");
    const { LiveModel, fetchShards } = await import(base + "live_gpt_core.js");
    const manifest = await (await fetch(base + "manifest.json")).json();
    const bytes = await fetchShards(base, manifest.shards, await caches.open("test"), () => {});
    ort.env.wasm.numThreads = 1;
    ort.env.wasm.wasmPaths = base;
    const session = await ort.InferenceSession.create(bytes, { executionProviders: ["wasm"] });
    const words = await (await fetch(base + "tokenizer.json")).json();
    const model = new LiveModel(ort, session, new Tokenizer(words, {}), manifest), answers = [];
    const { logits } = await model.next(...texts, ...hidden); // in one run
    for (const [i, out] of hidden.entries()) answers.push([[...logits[i]], (await model.next(...texts, out)).looks]);
    return answers;
}"""


@pytest.mark.slow
@pytest.mark.browser
def test_logits_in_the_browser_are_those_of_python(open_page, server, checkpoint):
    default = LiveGPT()
    page = open_page(server)
    hidden = [[], [0, 2]]
    answers = page.evaluate(WORKER, [[default.pattern, default.demonstrations, default.query], hidden])
    for (ours, looks), without in zip(answers, hidden, strict=True):
        z = torch.tensor(ours)
        expected = live_gpt.log_probabilities(checkpoint, *default.found["of"][:3], without)
        np.testing.assert_allclose(z.log_softmax(-1).numpy(), expected, atol=1e-3)
        shares = live_gpt.shares_of_attention(checkpoint, *default.found["of"][:3], without)
        np.testing.assert_allclose(looks, shares, atol=1e-4)
        assert (shares[:, without] == 0).all() and shares[:, 1].max() > 0.01


@pytest.mark.slow
@pytest.mark.browser
def test_stopped_load_goes_on_and_is_removed(open_page, server):
    page = open_page(server)
    load(page)
    page.wait_for_function("() => document.querySelector('progress').value > 30e6")
    page.get_by_role("button", name="Cancel").click()
    kept = "async () => (await (await caches.open('explainer-model')).keys()).length"
    assert page.evaluate(kept) >= 2
    page.outside.clear()
    load(page)
    page.wait_for_function(READY)
    assert not any("gpt.0.bin" in url for url in page.outside)
    page.get_by_role("button", name="Remove it").click()
    page.wait_for_function("async () => !(await caches.keys()).length")


@pytest.mark.slow
@pytest.mark.browser
def test_a_flipped_bit_is_refused_by_name(open_page, server):
    page = open_page(server)

    def flip(route):
        body = bytearray(route.fetch().body())
        body[1000] ^= 1
        route.fulfill(body=bytes(body))

    page.context.route("**/gpt.0.bin*", flip)
    load(page)
    page.wait_for_selector("text=gpt.0.bin did not arrive as it was sent")
    assert page.evaluate("async () => (await (await caches.open('explainer-model')).keys()).length") <= 1


@pytest.mark.slow
@pytest.mark.browser
def test_without_the_model_one_line_says_why(open_page, server, place):
    page = open_page((place / "index.html").as_uri())
    load(page)
    page.wait_for_selector("text=A page opened as a file cannot load the model")
    page = open_page(server)
    page.context.route("**/manifest.json", lambda route: route.fulfill(status=404))
    load(page)
    page.wait_for_selector("text=built without the model")
    page.context.unroute_all()
    page.context.route("**/manifest.json", lambda route: route.abort())
    load(page)
    page.wait_for_selector("text=The site cannot be reached")


@pytest.mark.slow
@pytest.mark.browser
def test_link_brings_the_readers_text(open_page, server):
    page = open_page(server)
    page.get_by_role("button", name="antonyms").click()
    page.get_by_label("the query sees demonstration 2").uncheck()
    page.get_by_role("button", name="link to this").click()
    other = open_page(page.url)
    assert other.get_by_label("the query sees demonstration 2").is_checked() is False
    assert other.get_by_label("query", exact=True).input_value() == page.get_by_label("query", exact=True).input_value()
