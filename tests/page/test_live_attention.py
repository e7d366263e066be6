"""LiveAttention: what is stored is the checkpoint's, for every choice of hidden demonstrations."""

from itertools import combinations

import numpy as np
import pytest
from conftest import drawn_again

from explainer.page import LiveAttention, LiveGPT, live_gpt
from explainer.page.asking import MORE_TASKS, book_checkpoint

pytestmark = drawn_again


def test_default_state_is_the_first_task():
    state, first = LiveAttention().state(), next(iter(LiveAttention.stored().values()))
    assert {name: state[name] for name in first if name != "hiding"} == {
        name: its for name, its in first.items() if name != "hiding"
    }
    assert state["found"]["of"] == [state[name] for name in ("pattern", "demonstrations", "query", "hidden")]


def test_with_all_demonstrations_it_is_what_the_laboratory_has():
    for name, its in LiveGPT.stored().items():
        found = LiveAttention.stored()[name]["found"]
        first, last, shares = found["attention"]
        assert (first, last) == (21, 30)
        np.testing.assert_allclose(shares, live_gpt._attention(its["found"]["looks"])[2], atol=0.5)
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


def test_hiding_one_lowers_the_answer_to_what_was_said_before():
    """`alone` of the whole context is the probability that the stored answer without this demonstration has."""
    for its in LiveAttention.stored().values():
        answer = its["found"]["with"][0][0]
        for (hidden, then, *_), alone in zip(its["hiding"], its["found"]["alone"], strict=False):
            assert len(hidden) == 1
            assert dict(map(tuple, then)).get(answer, alone) == pytest.approx(alone, abs=1e-5)


def test_attention_is_a_mean_over_heads_of_the_upper_third():
    looks = [[[0, 0], [0, 0]], [[9, 9], [9, 9]], [[100, 300], [200, 500]]]
    assert live_gpt._attention(looks) == [3, 3, [150.0, 400.0]]


@pytest.mark.slow
@pytest.mark.parametrize("at", [2, pytest.param(9, marks=pytest.mark.weekly)])
def test_stored_answers_are_the_checkpoints(at):
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
