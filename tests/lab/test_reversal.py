"""Reversal: pairs that nobody can know, lessons in one direction, answers scored against chance."""

import numpy as np
import pytest
import torch

from explainer_lab import reversal
from explainer_lab.reversal import _ReversalSetting


def draw(directory, **changes):
    return _ReversalSetting(**{"checkpoint": directory, "n_pairs": 4, "lr": 0.1, "epochs": 2, "seed": 0} | changes)


def test_pairs_are_all_different_and_drawn_anew_by_each_seed():
    pairs, again, other = reversal._draw_pairs(8, 0), reversal._draw_pairs(8, 0), reversal._draw_pairs(8, 1)
    assert pairs == again != other
    assert len({word for pair in pairs for word in pair}) == 16
    assert not {a for a, _ in pairs} & {a for a, _ in other}


def test_lessons():
    pairs = reversal._draw_pairs(8, 0)
    assert reversal.lesson(pairs, "forward", 0) == pairs
    assert reversal.lesson(pairs, "both", 0) == pairs + [(b, a) for a, b in pairs]
    shuffled = reversal.lesson(pairs, "shuffled", 0)
    assert [a for a, _ in shuffled] == [a for a, _ in pairs]
    assert sorted(b for _, b in shuffled) == sorted(b for _, b in pairs)
    assert sum(x == y for x, y in zip(shuffled, pairs, strict=True)) < 4


def test_an_answer_is_right_where_it_is_the_most_probable():
    log_probs = np.array([[-1.0, -5, -9], [-1, -4, -9], [-1, -5, -2]])
    scored = reversal._scored(log_probs)
    assert scored["correct"].tolist() == [True, False, False]
    assert scored["calibrated"].tolist() == [True, True, True]
    assert scored["log_prob"].tolist() == [-1, -4, -2]


def test_answers_are_those_of_the_whole_text(checkpoint):
    """Against log p of the text, token by token."""
    pairs = reversal._draw_pairs(3, 5)
    found = reversal._answer_log_probs(checkpoint, pairs[:1], pairs)
    (a_0, b_0), (_, b_2) = pairs[0], pairs[2]
    context = [checkpoint.first_token_id, *checkpoint.tokenize(f"{a_0} -> {b_0}\n")]
    prompt, answer = checkpoint.tokenize(f"{b_2} ->"), checkpoint.tokenize(f" {a_0}")
    ids = torch.tensor([[*context, *prompt, *answer]])
    with torch.no_grad():
        log_p = checkpoint.model(ids).logits[0, :-1].log_softmax(-1)
    expected = log_p[range(len(ids[0]) - 1), ids[0, 1:]][-len(answer) :].sum().item()
    assert found["backward"][2, 0] == pytest.approx(expected, abs=1e-3)
