"""LivePatch: stored answers are the checkpoint's, shares the study's; the view says to what its answers belong."""

import json

import pytest
import torch
import traitlets

from bookbuilder import explorables as builder
from explainer.explorables import LivePatch, live_experiment, live_patch, live_sweep
from explainer.models import checkpoints

TASKS = ("capitals", "plurals", "past", "antonyms")
WEEKLY = pytest.mark.weekly


def test_traits_refuse():
    with pytest.raises(traitlets.TraitError, match="one of capitals, plurals"):
        LivePatch(task="rivers")
    with pytest.raises(traitlets.TraitError, match="donors"):
        LivePatch(donors=3)


def test_what_is_stored_belongs_to_the_study_and_to_the_texts():
    stored = live_patch.stored()
    assert tuple(stored) == TASKS == tuple(live_sweep.lessons())
    for name, its in stored.items():
        assert its["study"] == live_patch.shares(name)
        assert its["study"]["foreign"] < its["study"]["mean"] < its["study"]["icl"]
        assert [int(n) for n in its["found"]] == list(live_patch.DONORS)
        for n, found in its["found"].items():
            assert (found["task"], str(found["n"]), found["of"]) == (name, n, 22)
            assert found["query"] == live_experiment.own_query(name)
            assert found["error"] < 1e-3


def require_close(found, stored):
    """An answer of twenty-two may turn on the last digits."""
    for ours, theirs in zip((*found["right"], found["carried"]), (*stored["right"], stored["carried"]), strict=True):
        assert abs(ours - theirs) <= 1
    assert found["error"] < 1e-3
    for ours, theirs in zip(found["answers"], stored["answers"], strict=True):
        assert ours[0][1] == pytest.approx(theirs[0][1], abs=0.02)
    assert found["answers"][1] == [[token, pytest.approx(p, abs=1e-3)] for token, p in found["answers"][2]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n"),
    [("plurals", 2), *(pytest.param(name, n, marks=WEEKLY) for name in TASKS for n in live_patch.DONORS)],
)
def test_stored_answers_are_the_checkpoints(name, n):
    checkpoint = checkpoints.load(dtype=torch.float32, device="cpu")
    require_close(live_patch.measured(checkpoint, name, n), live_patch.stored()[name]["found"][str(n)])


VIEW = """
import { readFileSync } from "node:fs";
import view, { isCurrent, storedFor } from "#page/live_patch.js";
const { state, patches } = JSON.parse(readFileSync(0, "utf8"));
const told = patches.map((patch) => {
  const now = { ...state, ...patch }, kept = storedFor(now);
  return [isCurrent(now), kept ? kept.n : null, view.describe(now)];
});
process.stdout.write(JSON.stringify(told));
"""


def test_view_says_to_which_choice_its_answers_belong():
    state = LivePatch().state()
    patches = [{}, {"donors": 2}, {"query": "Peru"}, {"found": state["found"] | {"error": 0, "n": 1}, "donors": 1}]
    told = json.loads(builder.run_module(VIEW, {"state": state, "patches": patches}))
    assert [one[:2] for one in told] == [[True, 8], [False, 2], [False, None], [True, 1]]
    zsl, icl, moved = state["found"]["right"]
    assert (
        f"right for {zsl} without demonstrations, {icl} with them, and {moved} under the mean patch of 8" in told[0][2]
    )
    assert told[1][2].startswith("Of an earlier choice: ")
    assert "the patch of another query" in told[3][2] and "more than 0." in told[3][2]


def test_the_mean_patch_is_never_asked_of_its_donors():
    for its in live_sweep.lessons().values():
        words = [x for x, _ in its["queries"]]
        assert len(set(words)) == live_sweep.QUERIES > max(live_patch.DONORS)
