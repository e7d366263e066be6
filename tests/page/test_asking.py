"""In a notebook the kernel answers what the worker answers in a page, by the same messages."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest
import torch

from explainer.data import tasks
from explainer.data.tasks import Example
from explainer.errors import CheckpointError
from explainer.models import scoring
from explainer.page import (
    LiveExperiment,
    LiveGPT,
    LivePatch,
    LiveSweep,
    LiveVector,
    live_base,
    live_gpt,
    live_tasks,
)

PATTERN = ["", " ->"]
PAIRS = [["a", "b"], ["c", "d"]]


def answers_to(widget, monkeypatch, checkpoint, *messages):
    """What the widget sends when these messages come one right after the other."""
    sent = []
    monkeypatch.setattr(live_base, "book_checkpoint", lambda: checkpoint)
    monkeypatch.setattr(type(widget), "send", lambda _self, content: sent.append(json.loads(json.dumps(content))))

    async def hear():
        for message in messages:
            widget._handle_custom_msg(message, [])
            await asyncio.sleep(3 * live_base._PAUSE)
        await asyncio.wait([widget._answering])

    with ThreadPoolExecutor(1) as thread:  # a browser of other tests may have a loop running in this one
        thread.submit(asyncio.run, hear()).result()
    return sent


def test_contexts_are_those_of_scoring_and_the_three_best_tokens_are_in_order(checkpoint):
    examples = [Example({"word": x}, y) for x, y in PAIRS]
    expected, _ = scoring.context_ids(checkpoint, tasks.TASKS["capitals"], examples)
    assert list(live_base.context(checkpoint, PATTERN, PAIRS).ids) == expected
    shares = {40: 0.5, 50: 0.25, 60: 0.125, 70: 0.0625}
    p = torch.zeros(len(checkpoint.tokenizer)).index_copy(0, torch.tensor([*shares]), torch.tensor([*shares.values()]))
    assert live_tasks._top_three(checkpoint, p) == [[checkpoint.text([i]), share] for i, share in [*shares.items()][:3]]


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_question_is_answered_as_by_the_package(monkeypatch, checkpoint, in_memory):
    """A checkpoint that is in memory is asked, and no other is loaded."""
    widget, of_book = (LiveGPT(checkpoint), None) if in_memory else (LiveGPT(), checkpoint)
    message = {"ask": 3, "pattern": PATTERN, "demonstrations": PAIRS, "query": "e", "hidden": [1]}
    load, answer = answers_to(widget, monkeypatch, of_book, {"load": True}, message)
    assert load == {"ready": True} and answer["id"] == 3
    assert answer["found"]["with"] == live_gpt.answers(checkpoint, PATTERN, PAIRS, "e", [1])["with"]


def test_a_sweep_counts_and_a_stop_is_heard(monkeypatch, checkpoint):
    queries = [["e", "f"], ["g", "h"]]
    message = {"sweep": 5, "pattern": PATTERN, "curves": [PAIRS, PAIRS[:1]], "queries": queries}
    answers = answers_to(LiveSweep(), monkeypatch, checkpoint, message)
    steps = [(one["curve"], one["k"]) for one in answers[:-1]]
    assert steps == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2)]
    its = {"pattern": PATTERN, "queries": queries, "curves": {"right": PAIRS}}
    assert [sum(one["exact"]) for one in answers if one.get("curve") == 0] == live_tasks._counts(
        checkpoint, its, "right", range(3)
    )
    assert answers[-1] == {"sweep": 5, "done": True}
    long = message | {"curves": [PAIRS * 40]}
    assert len(answers_to(LiveSweep(), monkeypatch, checkpoint, long, {"sweep": 0})) < 81


OF_EXPERIMENT = dict(experiment=7, task="past", lesson="shuffled", scale=1, query="go", pattern=PATTERN)
OF_PATCH = dict(patch=8, task="past", donors=[["go", "went"], ["see", "saw"]], query="run")
OF_VECTOR = dict(vector=9, pattern=PATTERN, demonstrations=PAIRS, query="e")


@pytest.mark.parametrize(
    ("of", "answering", "message", "asked"),
    [
        (LiveExperiment, "live_experiment._answers", OF_EXPERIMENT, ("past", "shuffled", 1, "go")),
        (LivePatch, "live_tasks._patched", OF_PATCH, ("past", 2, "run")),
        (LiveVector, "live_tasks._with_vectors", OF_VECTOR, (PATTERN, PAIRS, "e")),
    ],
)
def test_answers_are_those_of_the_package(monkeypatch, checkpoint, of, answering, message, asked):  # noqa: PLR0917
    given = []
    monkeypatch.setattr(f"explainer.page.{answering}", lambda *these: given.append(these) or {"right": [0, 1, 2]})
    (answer,) = answers_to(of(), monkeypatch, checkpoint, message)
    number = next(iter(message))
    assert answer == {number: message[number], "found": {"right": [0, 1, 2]}}
    assert given == [(checkpoint, *asked)]


@pytest.mark.parametrize(
    ("error", "said"),
    [(CheckpointError("too long; shorten it."), "too long; shorten it."), (KeyError("x"), "KeyError: 'x'")],
)
def test_an_error_reaches_the_view_with_its_number(monkeypatch, checkpoint, error, said):
    monkeypatch.setattr(live_gpt, "answers", Mock(side_effect=error))
    message = {"ask": 4, "pattern": PATTERN, "demonstrations": PAIRS, "query": "e", "hidden": []}
    (answer,) = answers_to(LiveGPT(), monkeypatch, checkpoint, message)
    assert answer == {"failed": said, "id": 4}


NOTEBOOK = """async ([bundle, state]) => {
    const { default: view } = await import("data:text/javascript," + encodeURIComponent(bundle));
    const heard = [], listeners = {};
    window.heard = heard;
    window.answer = (message) => listeners["msg:custom"](message);
    const model = {
        get: (name) => state[name], save_changes() {}, send: (message) => heard.push(message),
        set: (name, value) => { state[name] = value; listeners["change:" + name]?.(); },
        on: (events, listener) => events.split(" ").forEach((event) => { listeners[event] = listener; }), off() {},
    };
    view.render({ model, el: document.body });
}"""


@pytest.mark.slow
@pytest.mark.browser
def test_view_in_a_notebook_asks_the_kernel(browser):
    """A view without the page's host: the same messages, and no word of a download."""
    context = browser.new_context()
    try:
        page = context.new_page()
        widget = LiveExperiment()
        page.evaluate(NOTEBOOK, [widget._esm, widget.state()])
        assert "115 MB" not in page.locator("body").inner_text()
        page.get_by_role("button", name="Ask this notebook's kernel").click()
        assert page.evaluate("heard") == [{"load": True}]
        page.evaluate("answer({ ready: true })")
        page.get_by_role("button", name="Run it").click()
        (message,) = page.evaluate("heard.slice(1)")
        assert {"experiment": 1, "task": "capitals", "lesson": "fine-tuned", "scale": 1}.items() <= message.items()
        cancel = page.get_by_role("button", name="Cancel")
        cancel.click()
        assert page.evaluate("heard.at(-1)") == {"stop": True} and "Stopped." in page.locator("body").inner_text()
        page.get_by_role("button", name="Run it").click()
        found = LiveExperiment.stored()["plurals"]["found"]["shuffled"]
        message = {"experiment": 1, "found": found | {"right": [1, 2, 3]}}
        page.evaluate("(message) => answer(message)", message)
        assert "3 of 30" not in page.locator("body").inner_text() and cancel.is_visible()
        message["experiment"] = 2
        page.evaluate("(message) => answer(message)", message)
        assert "3 of 30" in page.locator("body").inner_text()
        assert "computed in this notebook" in page.locator("body").inner_text() and cancel.is_hidden()
    finally:
        context.close()
