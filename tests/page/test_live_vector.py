"""LiveVector: stored answers are the checkpoint's, shares the study's; the view reads lines, one for each pair."""

import json

import pytest
import torch
from javascript import told

from bookbuilder.explorables import run_module
from explainer.data import tasks
from explainer.models import interventions
from explainer.page import LiveVector, asking, live_vector
from explainer.page.asking import TASKS, book_checkpoint
from explainer.page.live_sweep import SEED

WEEKLY = pytest.mark.weekly
PATTERN = ["", " ->"]
PAIRS = [["a", "b"], ["c", "d"], ["e", "f"]]


def test_what_is_stored_belongs_to_the_study_and_to_the_demonstrations():
    stored = LiveVector.stored()
    assert tuple(stored) == TASKS
    for name, its in stored.items():
        assert its["study"] == asking.shares_of_study("rival", name, live_vector._STUDIED)
        assert its["study"]["shuffled"] < its["study"]["vector"] < its["study"]["icl"]
        shown = tasks.demonstrations(tasks.load(name), live_vector._DEMONSTRATIONS, SEED)
        pairs = [[one.fields["word"], one.answer] for one in shown]
        assert its["found"]["demonstrations"] == pairs and its["found"]["query"] == its["query"]
        assert its["query"] not in [x for x, _ in pairs]


def test_the_vector_is_the_mean_of_what_the_others_change(checkpoint):
    """Each demonstration is asked after all the others; added to all layers but one it changes nothing of that one."""
    changes = []
    for i, (x, _) in enumerate(PAIRS):
        prefix = asking.context(checkpoint, PATTERN, [pair for pair in PAIRS if pair[0] != PAIRS[i][0]])
        after, without = (of(checkpoint, prefix, [f"{x} ->"]).run().stream for of in
                          (interventions.after_context, interventions.without_context))  # fmt: skip
        changes.append((after - without)[0])
    vectors = live_vector._vectors(checkpoint, PATTERN, PAIRS)
    torch.testing.assert_close(vectors, sum(changes) / 3)
    empty = interventions.without_context(checkpoint, asking.context(checkpoint, PATTERN, PAIRS), ["g ->"])
    for number, logits in enumerate(live_vector._plus_each(empty, vectors)):
        edit = interventions.with_added_to_stream(empty.layers[number], vectors[number][None])
        torch.testing.assert_close(logits, empty.run(edit).logits[0], atol=1e-4, rtol=1e-4)


def test_answers_name_the_token_of_the_context_and_its_probabilities(checkpoint):
    found = live_vector._answers(checkpoint, PATTERN, PAIRS, "g")
    zsl, icl, own, moved = found["p"]
    assert icl == found["with"][0][1] and len(own) == len(moved) == len(found["layers"])
    for top, p in zip(found["layers"], own, strict=True):
        assert p == pytest.approx(dict(map(tuple, top)).get(found["with"][0][0], p)) and p <= top[0][1] + 1e-6
    assert own != moved, "answers that moved on are another lesson"
    assert zsl <= found["without"][0][1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["plurals", *(pytest.param(name, marks=WEEKLY) for name in TASKS if name != "plurals")]
)
def test_stored_answers_are_the_checkpoints(name):
    its = LiveVector.stored()[name]
    found = live_vector._answers(book_checkpoint(), PATTERN, its["found"]["demonstrations"], its["query"])
    for ours, theirs in zip(found["p"], its["found"]["p"], strict=True):
        assert ours == pytest.approx(theirs, abs=1e-3)
    assert [top[0][0] for top in found["layers"]] == [top[0][0] for top in its["found"]["layers"]]


def test_lines_are_read_as_demonstrations():
    lessons = [
        "a -> b\n\n  c d->e ",
        "a -> b",
        "a -> b\nc",
        "a -> b\n -> c",
        "\n".join(["a -> b"] * 17),
        "a -> b -> c\nd -> e",
    ]
    script = """
import { readFileSync } from "node:fs";
import { demonstrationsOf } from "#page/live_vector.js";
process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(demonstrationsOf)));
"""
    assert json.loads(run_module(script, lessons)) == [[["a", "b"], ["c d", "e"]], *[None] * 5]


def test_view_says_to_which_demonstrations_its_answers_belong():
    widget = LiveVector()
    state = widget.state()
    spaced = state["lesson"].replace(" -> ", "->") + "\n"
    belongs, words = told("live_vector", "query", state, [{}, {"lesson": spaced}, {"query": "Peru"}, {"layer": 1}])
    assert belongs == [[True, "bus"], [True, "bus"], [False, None], [True, "bus"]]
    own = state["found"]["p"][2]
    assert words[0].endswith(f"The vector does most after layer {own.index(max(own)) + 1}: {100 * max(own):.0f} %.")
    assert words[2].startswith("Of an earlier text: ") and "added after layer 1, it expects" in words[3]
