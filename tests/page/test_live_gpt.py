"""LiveGPT: stored answers are the checkpoint's, and the model in a real browser gives the same numbers."""

import json
import re
import shutil
from itertools import combinations
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from conftest import ROOT, drawn_again, require_frames, served
from javascript import run_tests

from bookbuilder import directives, model_in_page
from bookbuilder import explorables as builder
from explainer.data import tasks
from explainer.models import circuits, scoring
from explainer.page import LiveAttention, LiveGPT, LiveSweep, live_experiment, live_gpt, live_tasks
from explainer.page.live_base import MORE_TASKS, TASKS, book_checkpoint

pytestmark = drawn_again
WEEKLY = pytest.mark.weekly
PATIENCE = 60
"""Seconds for what takes some on an idle machine: a busy one is slow, not wrong."""


@pytest.fixture(scope="module")
def checkpoint():
    return book_checkpoint()


@pytest.mark.parametrize("file", sorted((ROOT / "tests" / "page" / "js").glob("*.mjs")), ids=lambda file: file.name)
def test_javascript(file, tmp_path):
    assert run_tests(file, tmp_path) > 0


def require_close(found, stored, within):
    """The same tokens in the same order, as far as their probabilities tell them apart, and the same numbers."""
    for name in ("without", "with"):
        stored_p = dict(map(tuple, stored[name]))
        np.testing.assert_allclose([p for _, p in found[name]], list(stored_p.values()), atol=within)
        assert all(abs(p - stored_p.get(token, p)) <= within for token, p in found[name])
        assert found[name][0][0] == stored[name][0][0]
    np.testing.assert_allclose(np.array(found["alone"], float), np.array(stored["alone"], float), atol=within)
    np.testing.assert_allclose(found["looks"], stored["looks"], atol=1)  # in thousandths


@pytest.mark.slow
@pytest.mark.parametrize("name", [TASKS[0], *(pytest.param(name, marks=WEEKLY) for name in (*TASKS[1:], "chinese"))])
def test_stored_answers_are_the_checkpoints(checkpoint, name):
    stored = LiveGPT.stored()[name]
    require_close(live_gpt.answers(checkpoint, *stored["found"]["of"]), stored["found"], 1e-3)


@pytest.mark.slow
def test_marked_heads_are_the_strongest_induction_heads(checkpoint):
    """By the scores of the study `rival`; the tenth is no stronger than the eleventh by 0.01."""
    texts = (circuits.repeated_random_tokens(checkpoint, 50, seed) for seed in range(4))
    scores = sum(circuits.induction_score(circuits.attention_maps(checkpoint, text)) for text in texts) / 4
    tenth = scores.flatten().sort(descending=True).values[9]
    assert len(set(live_gpt._INDUCTION)) == 10
    assert all(scores[head] > tenth - 0.01 for head in live_gpt._INDUCTION)


@pytest.mark.parametrize("of", [LiveGPT, LiveAttention])
def test_default_state_is_the_first_task(of):
    state, first = of().state(), next(iter(of.stored().values()))
    assert all(state[name] == its for name, its in first.items() if name in state)
    assert state["found"]["of"] == [state[name] for name in ("pattern", "demonstrations", "query", "hidden")]


# LiveAttention: every choice of hidden demonstrations


def test_with_all_demonstrations_it_is_what_the_laboratory_has():
    for name, its in LiveGPT.stored().items():
        found = LiveAttention.stored()[name]["found"]
        first, last, shares = found["attention"]
        assert (first, last) == (21, 30)
        np.testing.assert_allclose(shares, live_gpt._seen(its["found"])["attention"][2], atol=0.5)
        assert [token for token, _ in found["with"]] == [token for token, _ in its["found"]["with"]]
        np.testing.assert_allclose(found["alone"], its["found"]["alone"], atol=1e-3)


def test_every_choice_is_stored_and_what_is_hidden_gets_no_attention():
    assert tuple(LiveAttention.stored()) == MORE_TASKS
    for its in LiveAttention.stored().values():
        choices = [hidden for hidden, *_ in its["hiding"]]
        assert choices == [list(each) for size in range(1, 5) for each in combinations(range(4), size)]
        for hidden, _, alone, (_, _, shares) in its["hiding"]:
            assert {i for i in range(4) if shares[i] == 0} == {i for i in range(4) if alone[i] is None} == set(hidden)
            assert sum(shares) < 1000


@pytest.mark.slow
@pytest.mark.parametrize("at", [2, pytest.param(9, marks=pytest.mark.weekly)])
def test_stored_answers_without_some_are_the_checkpoints(at):
    its = LiveAttention.stored()["capitals"]
    hidden, *stored = its["hiding"][at]
    asked = (its[name] for name in ("pattern", "demonstrations", "query"))
    found = live_gpt._seen(live_gpt.answers(book_checkpoint(), *asked, hidden))
    then, alone, (first, last, shares) = stored
    assert [token for token, _ in found["with"]] == [token for token, _ in then]
    np.testing.assert_allclose([p for _, p in found["with"]], [p for _, p in then], atol=1e-3)
    np.testing.assert_allclose(np.array(found["alone"], float), np.array(alone, float), atol=1e-3)
    assert found["attention"][:2] == [first, last]
    np.testing.assert_allclose(found["attention"][2], shares, atol=1)


# The folder of the model


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
        for node in directives.explorable(Mock(), name)
    ]
    page = (
        '<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        '<link rel="icon" href="data:,"><title>Laboratory</title>'
        '<meta name="viewport" content="width=device-width"><script src="_static/explainer/afm-host.js"></script>'
        f"</head><body><main><h1>Laboratory</h1>{''.join(widgets)}</main></body></html>"
    )
    (site / "index.html").write_text(page, "utf-8")
    return site


@pytest.fixture
def address(place):
    with served(place) as address:
        yield address


@pytest.mark.slow
def test_button_says_how_much_is_loaded(place):
    """With the runtime for the processor; that for a graphics processor takes its place, and is 3 MB larger."""
    size = sum(path.stat().st_size for path in (place / model_in_page.PLACE).iterdir() if "jspi" not in path.name)
    assert f'SIZE = "{size / 1e6:.0f} MB"' in LiveGPT()._esm
    assert all(path.stat().st_size <= 25_000_000 for path in (place / model_in_page.PLACE).iterdir())


TOKENIZE = """
import { readFileSync } from "node:fs";
import { Tokenizer } from "@huggingface/tokenizers";
import { LiveModel } from "#page/live_model.js";
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


FEW = 6
"""Queries that the model in the page is asked at once, instead of thirty: each takes the processor a while."""
KEPT_WORKER = f"""window.Worker = class extends Worker {{
    constructor(...given) {{ super(...given); window.kept = this; }}
    postMessage(message) {{
        for (const name of ["queries", "asked"])
            if (message[name]) message = {{ ...message, [name]: message[name].slice(0, {FEW}) }};
        super.postMessage(message);
    }}
}}"""


@pytest.fixture
def open_page(browser):
    contexts = []

    def open_(address):
        # As tall as the explorables together: they mount where they are in view.
        context = browser.new_context(viewport={"width": 1000, "height": 3800})
        contexts.append(context)
        page = context.new_page()
        page.add_init_script(KEPT_WORKER)
        page.set_default_timeout(10_000)  # for what needs no model
        page.complaints, page.asked = [], []
        page.on("console", lambda message: page.complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        context.on("request", lambda request: page.asked.append(request.url))
        page.goto(address)
        require_frames(page)
        until(page, "document.querySelectorAll('.xp-widget[data-ready]').length === 5", "explorables are mounted", 20)
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
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=WEEKLY)])
def test_reader_loads_the_model_asks_it_and_removes_it(open_page, address, place, checkpoint, monkeypatch, every):  # noqa: PLR0917
    """All in one page, because the model takes seconds to start; every explorable is used in the weekly run."""
    monkeypatch.setattr(live_experiment, "QUERIES", FEW)
    monkeypatch.setattr(live_tasks, "QUERIES", live_tasks._DONORS[-1] + FEW)
    page = open_page(address)
    assert not any("model/" in url for url in page.asked)
    stored = described(page)
    require_load_that_survives_faults(page, place / model_in_page.PLACE)
    until_says(page, "computed in this page", ".explorable-answers")
    assert described(page) == stored  # percentages of the same question, stored by Python
    require_gates(page, checkpoint)
    if every:
        require_sweep(page, checkpoint)
        require_experiment(page, checkpoint)
        require_patches(page, checkpoint)
    require_greedy_parity(page, checkpoint, tasks.load("capitals"), 1, FEW)
    assert page.complaints == []
    assert all(url.startswith((address, "blob:")) for url in page.asked)
    page.evaluate("dispatchEvent(new Event('pagehide'))")
    until_says(page, "put away when you left")
    for _ in range(100):  # the browser ends a worker when it has time
        if page.workers:
            page.wait_for_timeout(100)
    assert page.workers == []
    page.locator(".LiveGPT").get_by_role("button", name="Remove it").click()
    until(page, "caches.keys().then((all) => !all.length)", "nothing is kept", 10)


def require_load_that_survives_faults(page, shards):
    """And a reader who stops it; whole shards are asked for once."""
    cut = (shards / "gpt.1.bin").read_bytes()[:1000]
    page.context.route("**/gpt.1.bin*", lambda route: route.fulfill(body=cut))
    load(page)
    until_says(page, "gpt.1.bin is cut short")
    until(page, f"{KEPT}.then((n) => n === 2)", "the tokenizer and the first shard are kept", 10)
    page.context.unroute("**/gpt.1.bin*")
    page.context.route("**/gpt.2.bin*", lambda route: None)  # held back
    load(page)
    until(page, f"{KEPT}.then((n) => n === 3)", "two shards are kept")
    page.locator(".LiveGPT").get_by_role("button", name="Cancel").click()
    until_says(page, "Stopped.", seconds=10)
    page.context.unroute("**/gpt.2.bin*")
    page.asked[:] = []
    load(page)
    until_says(page, "The model is here, on WebAssembly.")
    asked = {Path(url.partition("?")[0]).name for url in page.asked}
    assert {"gpt.2.bin", "gpt.3.bin"} <= asked and not {"gpt.0.bin", "gpt.1.bin"} & asked


def require_gates(page, checkpoint):
    """What it expects with a demonstration hidden, and the gates, are Python's, and one head can be drawn."""
    page.get_by_label("the query sees demonstration 4").uncheck()
    until_says(page, "with 3 of 4")
    default, part = LiveGPT(), page.locator(".LiveGPT")
    prompt = default.query + default.pattern[1]
    seen, owner = live_gpt._seen_context(checkpoint, default.pattern, default.demonstrations, [3])
    shares = live_gpt._shares_of_attention(checkpoint, seen, owner, 4, prompt)
    ((token, p),) = scoring.top_tokens(checkpoint, seen, prompt, 1)
    assert f"“{token.strip()}” ({100 * p:.0f} %) when it sees 3 of 4" in described(page)
    g = shares.sum(-1)
    layer, head = np.unravel_index(g.argmax(), g.shape)
    assert f"Head {head + 1} of layer {layer + 1} has the largest gate: {100 * g.max():.0f} %" in described(page)
    part.get_by_label("attention of").select_option(f"head {head + 1}")
    until_says(page, f"head {head + 1} of each layer", ".LiveGPT")
    until_says(page, f"strongest: {100 * shares[:, head].max():.0f} %", ".LiveGPT")


SWEPT = (
    r"model writes (\d+) answers.*After (\d+) right.* it writes (\d+) .* shuffled answers (\d+), .* another task (\d+)"
)


def require_sweep(page, checkpoint):
    """The first counts are Python's; the button stops what runs."""
    part, live = page.locator(".LiveSweep"), LiveSweep()
    part.get_by_label("task").select_option("plurals")
    until_says(page, "plurals, 30 queries: without", ".LiveSweep p.explorable-status", 10)
    part.get_by_role("button", name="Run it").click()
    until(page, "document.querySelector('.LiveSweep svg').textContent.includes('10 queries')", "the sweep began", 10)
    until_says(page, "at k = 0", ".LiveSweep")
    part.get_by_role("button", name="Stop").click()
    until_says(page, "Stopped.", ".LiveSweep", 10)
    status = part.locator("p.explorable-status")
    until_says(page, "After", ".LiveSweep p.explorable-status", 10)
    its = live.lessons["plurals"] | {"queries": live.lessons["plurals"]["queries"][:FEW]}
    *counts, k = re.search(SWEPT, status.inner_text()).group(1, 3, 4, 5, 2)
    expected = [live_tasks._counts(checkpoint, its, kind, [int(k)])[0] for kind in live_tasks._CURVES]
    assert [int(n) for n in counts] == [live_tasks._counts(checkpoint, its, "right", [0])[0], *expected]


TOLD = (
    r"right are (\d+) without demonstrations, (\d+) in context, and (\d+) .* errors that the context repairs, the "
    r"second condition repairs (\d+)\. The SimAOU of the two changes is (.+), between a .* SimAMΔ is (.+)\. After “.*” "
    r"the model expects (.+), (.+) and (.+)\."
)


def require_experiment(page, checkpoint):
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


PATCHED = (
    r"expects (.+) without .* and (.+) with them\. .* expects (.+) under .* patch, and (.+) under .* queries .* right "
    r"for (\d+) without demonstrations, (\d+) with them, and (\d+) under .*; for (\d+) it is wrong"
)


def require_patches(page, checkpoint):
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
    require_same(live_tasks._patched(checkpoint, "plurals", 2, "box"))


def _named(token):
    text = token.strip()
    if re.search("[\u0590-\u08ff]", text):
        text = f"\u2068{text}\u2069"
    if re.search("[0-9A-F]{2}·|…[0-9A-F]{2}", text):
        return text
    blanks = {"\n": "end of line", " ": "a space"}
    blanks |= {" " * n: f"{n} spaces" for n in range(2, 20)}
    return f"“{text}”" if text else blanks.get(token) or "“" + token.translate({32: "␣", 10: "⏎", 9: "⇥"}) + "”"


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


@pytest.mark.slow
@pytest.mark.browser
def test_without_the_model_one_line_says_why(open_page, address, place):
    page = open_page((place / "index.html").as_uri())
    load(page)
    until_says(page, "A page opened as a file cannot load the model", seconds=10)
    page = open_page(address)
    page.context.route("**/manifest.json", lambda route: route.fulfill(status=404))
    load(page)
    until_says(page, "built without the model", seconds=10)
    page.context.route("**/manifest.json", lambda route: route.abort())
    load(page)
    until_says(page, "The site cannot be reached", seconds=10)
    page.context.route("**/live_model_worker.js", lambda route: route.fulfill(body="", content_type="text/plain"))
    load(page)
    until_says(page, "sends JavaScript as “text/plain”", seconds=10)
