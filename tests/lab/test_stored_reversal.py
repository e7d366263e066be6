"""The published reversals: what the code of today computes, and a rate that was chosen on another draw."""

import numpy as np
import pytest
import torch
from published_grids import grids

from explainer.models import loading
from explainer.results.published import results
from explainer_lab import reversal
from explainer_lab.reversal import Reversal

DRAWS = grids(Reversal)["reversal"]


def test_rate_and_epochs_were_chosen_on_another_draw():
    """By what the trainings answer after the lesson "both", in both directions; one that diverged answers nothing."""
    tried = results("choose-reversal").fillna({"ft_both_forward": 0, "ft_both_backward": 0})
    best = tried.loc[(tried["ft_both_forward"] + tried["ft_both_backward"]).idxmax()]
    assert {(draw.lr, draw.epochs) for draw in DRAWS} == {(best["lr"], best["epochs"])}
    assert not set(tried["seed"]) & {draw.seed for draw in DRAWS}


def test_shares_of_settings_are_means_of_answers():
    answers, settings = results("reversal", "answers"), results("reversal").set_index("seed")
    for kind, lesson, direction in [("icl", "both", "backward"), ("ft", "forward", "forward")]:
        of = answers.query("kind == @kind and lesson == @lesson and direction == @direction")
        np.testing.assert_allclose(of.groupby("seed")["correct"].mean(), settings[f"{kind}_{lesson}_{direction}"])


@pytest.mark.slow
def test_a_context_answers_as_it_did():
    """One of eight answers may turn on the last digit."""
    checkpoint, draw = loading.load(dtype=torch.float32, device="cpu"), DRAWS[0]
    pairs, stored = reversal.draw_pairs(draw.n_pairs, draw.seed), results("reversal", "answers", seed=draw.seed)
    for lesson in reversal.LESSONS:
        found = reversal.answers(checkpoint, reversal.lesson(pairs, lesson, draw.seed), pairs)
        for direction, log_probs in found.items():
            of = stored[(stored["kind"] == "icl") & (stored["lesson"] == lesson)]
            then = of[of["direction"] == direction]
            now = reversal._scored(log_probs)
            np.testing.assert_allclose(now["log_prob"], then["log_prob"].astype(float), atol=0.02)
            assert (now["correct"] != then["correct"].to_numpy(bool)).sum() <= 1
