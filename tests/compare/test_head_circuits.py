"""compare.head_circuit_comparison: the cuts and their controls, what is stored, and what the stored numbers say."""

import numpy as np
import pytest

from explainer.compare import head_circuit_comparison
from explainer.data.tasks import Example
from explainer.models.circuits import Answers, TokenSpans

TWO = TokenSpans((0,) * 10, answers=(4, 8), ends=(1, 6, 10))  # input of two tokens, then one


def test_the_clean_cut_hides_the_input_from_arrow_and_answer_and_keeps_the_arrow():
    pairs = head_circuit_comparison.CUTS["input"](TWO)
    assert sorted(pairs) == [(3, 1), (3, 2), (4, 1), (4, 2), (5, 1), (5, 2), (7, 6), (8, 6), (9, 6)]
    arrows = {answer - 1 for answer in TWO.answers}
    assert not arrows & {s for _, s in pairs}  # the earlier edition's "both" cut the arrow, too
    assert sorted(head_circuit_comparison.CUTS["input, one before"](TWO)) == [(t, s) for t in (7, 8, 9) for s in (1, 2)]


def test_change_and_exact_are_means_over_queries_and_sets():
    queries = [[Example({"word": w}, "x") for w in words] for words in ("ab", "bc")]
    before = [Answers(np.array([True, True]), np.array([-1.0, -2.0])), Answers(np.array([True, False]), np.zeros(2))]
    after = [Answers(np.array([False, False]), np.array([-2.0, -4.0])), Answers(np.array([False] * 2), np.zeros(2))]
    found = head_circuit_comparison._StoredAnswers(queries, {"before": before, "after": after})
    change, share = found.change("after", "before"), found.exact("before")
    assert change.estimate == -0.75 and change.low <= -0.75 <= change.high and change.low < change.high
    assert share.estimate == 0.75
    none = found.exact("after")  # all wrong: Wilson's interval of the three different queries
    assert none.estimate == none.low == 0 and none.high == pytest.approx(0.5615, abs=1e-3)


# What is stored.


@pytest.fixture(scope="module", params=head_circuit_comparison.TASKS)
def stored(request):
    return head_circuit_comparison.stored(request.param)


def test_every_condition_is_stored_with_all_sets_and_queries(stored):
    shape = len(head_circuit_comparison.SETS), head_circuit_comparison.QUERIES
    for name, each in stored.answers.items():
        assert np.shape([one.log_probs for one in each]) == shape, name
        assert np.shape([one.correct for one in each]) == shape, name
    for kind in head_circuit_comparison.KINDS:
        names = [f"off: {kind}", *(f"random: {kind}, {draw}" for draw in range(head_circuit_comparison.DRAWS))]
        assert {*names, *(f"{name}, alone" for name in names)} <= set(stored.answers)


def test_a_head_that_is_off_is_judged_against_its_own_zero_demonstrations(stored):
    """The control that an earlier edition lacked: part of the loss is there without any demonstration."""
    loss, alone = stored.change("off: previous token"), stored.change("off: previous token, alone", "alone")
    gain, kept = stored.gain(), stored.gain("off: previous token")
    assert loss.estimate == pytest.approx(kept.estimate - gain.estimate + alone.estimate, abs=1e-9)
    assert alone.estimate < -1  # the prompt without demonstrations loses as well
    assert kept.low > 0  # and some of the gain is left: columns still learn what stands before them


def test_the_input_is_needed_and_not_always_its_own():
    """An earlier edition said that an answer's column must know what it is the answer to; on capitals it need not."""
    capitals, plurals = map(head_circuit_comparison.stored, head_circuit_comparison.TASKS)
    for one in (capitals, plurals):
        assert one.change("cut: input").high < -1 < one.change("cut: input, one before").low
        assert one.change("cut, shuffled", "cut: input").low > -0.5  # no pair is left to be spoiled
    assert capitals.change("shuffled", "cut: input").low > 1  # wrong countries are much better than none
    assert plurals.change("shuffled").high < -2  # here the pair counts
