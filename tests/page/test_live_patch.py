"""LivePatch: stored answers are the checkpoint's, shares the study's; the view says to what its answers belong."""

import pytest
from javascript import told

from explainer.page import LivePatch, LiveSweep, asking, live_patch, live_sweep
from explainer.page.asking import TASKS, book_checkpoint

WEEKLY = pytest.mark.weekly


def test_what_is_stored_belongs_to_the_study_and_to_the_texts():
    stored = LivePatch.stored()
    assert tuple(stored) == TASKS == tuple(LivePatch().lessons)
    for name, its in stored.items():
        assert its["study"] == asking.shares_of_study("causal-tests", name, live_patch._STUDIED)
        assert its["study"]["foreign"] < its["study"]["mean"] < its["study"]["icl"]
        assert [int(n) for n in its["found"]] == list(live_patch._DONORS)
        for n, found in its["found"].items():
            assert (found["task"], str(found["n"]), found["of"]) == (name, n, 22)
            assert found["query"] == asking.QUERY[name]
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
    [("plurals", 2), *(pytest.param(name, n, marks=WEEKLY) for name in TASKS for n in live_patch._DONORS)],
)
def test_stored_answers_are_the_checkpoints(name, n):
    require_close(live_patch._answers(book_checkpoint(), name, n), LivePatch.stored()[name]["found"][str(n)])


def test_view_says_to_which_choice_its_answers_belong():
    state = LivePatch().state()
    patches = [{}, {"donors": 2}, {"query": "Peru"}, {"found": state["found"] | {"error": 0, "n": 1}, "donors": 1}]
    belongs, words = told("live_patch", "n", state, patches)
    assert belongs == [[True, 8], [False, 2], [False, None], [True, 1]]
    zsl, icl, moved = state["found"]["right"]
    assert f"right for {zsl} without demonstrations, {icl} with them, and {moved} under the mean patch of 8" in words[0]
    assert words[1].startswith("Of an earlier choice: ")
    assert "the patch of another query" in words[3] and "more than 0." in words[3]


def test_the_mean_patch_is_never_asked_of_its_donors():
    for its in LiveSweep.stored().values():
        words = [x for x, _ in its["queries"]]
        assert len(set(words)) == live_sweep.QUERIES > max(live_patch._DONORS)
