"""LiveSweep: stored counts are the checkpoint's, its texts the book's, its intervals Wilson's."""

import json

import pytest
from conftest import ROOT
from scipy.stats import binomtest

from bookbuilder import explorables as builder
from explainer.page import LiveSweep, live_sweep
from explainer.page.asking import MORE_TASKS, book_checkpoint


def test_texts_are_those_of_the_controls():
    stored = LiveSweep.stored()
    assert tuple(stored) == MORE_TASKS
    for name, its in stored.items():
        assert live_sweep._lesson(name) == {part: its[part] for part in ("pattern", "curves", "queries")}
        asked = {x for x, _ in its["queries"]}
        assert len(asked) == 30 and not asked & {x for x, _ in its["curves"]["right"]}
        assert sorted(y for _, y in its["curves"]["shuffled"]) == sorted(y for _, y in its["curves"]["right"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["plurals", *(pytest.param(n, marks=pytest.mark.weekly) for n in MORE_TASKS if n != "plurals")]
)
def test_stored_counts_are_the_checkpoints(name):
    """One query of thirty may turn on the last digit."""
    its = LiveSweep.stored()[name]
    for kind, ks in (("right", (0, 3)), ("shuffled", (3,)), ("foreign", (1,))):
        found = live_sweep._counts(book_checkpoint(), its, kind, ks)
        assert all(abs(x - its["counts"][kind][k]) <= 1 for x, k in zip(found, ks, strict=True))


def test_chinese_words_are_translated_as_well_after_shuffled_answers():
    """The laboratory says how many stored answers are right, and that right and shuffled pairs do not differ much."""
    right, shuffled = (LiveSweep.stored()["chinese"]["counts"][kind][-1] for kind in ("right", "shuffled"))
    said = (ROOT / "book" / "reference" / "laboratory.md").read_text("utf-8")
    assert f"translates {right} of 30, and also {shuffled} of 30 when" in said
    assert abs(right - shuffled) / 30 < 0.1


WILSON = """
import { readFileSync } from "node:fs";
import sweep from "#page/live_sweep.js";
import { wilson } from "#page/live_parts.js";
const { cases, states } = JSON.parse(readFileSync(0, "utf8"));
const found = { intervals: cases.map(([x, n]) => wilson(x, n)), told: states.map(sweep.describe) };
process.stdout.write(JSON.stringify(found));
"""


def test_intervals_are_wilsons_and_a_sweep_that_runs_says_how_far_it_is():
    cases = [(0, 30), (1, 10), (17, 30), (30, 30)]
    begun = LiveSweep().found | {"counts": {"right": [], "shuffled": [], "foreign": []}}
    partly = begun | {"counts": {"right": [1, 8], "shuffled": [1, 7], "foreign": [1]}}
    states = [{"found": begun}, {"found": partly}, LiveSweep().state()]
    result = json.loads(builder.run_module(WILSON, {"cases": cases, "states": states}))
    for (x, n), interval in zip(cases, result["intervals"], strict=True):
        known = binomtest(x, n).proportion_ci(0.95, method="wilson")
        assert interval == pytest.approx([known.low, known.high], abs=1e-6)
    assert result["told"][0] == "The sweep over 30 queries of capitals begins."
    assert "After 0 right demonstrations it writes 1 (95 %" in result["told"][1]
    last = {kind: its[-1] for kind, its in LiveSweep.stored()["capitals"]["counts"].items()}
    assert f"After 16 right demonstrations it writes {last['right']} (" in result["told"][2]
    assert f"shuffled answers {last['shuffled']}, and after 16 of another task {last['foreign']}." in result["told"][2]
