"""explainer.figures.induction: what is drawn is what was measured, in the places where it belongs."""

import numpy as np
import pytest

from explainer.data.tasks import Example
from explainer.figures import Texts, drawings, induction
from explainer.models.circuits import Answers


def test_scores_stand_in_their_layer_and_head_and_the_marked_are_ringed():
    scores = {"one": np.arange(6).reshape(3, 2) / 10, "two": np.zeros((3, 2))}
    figure = induction.head_scores(scores, {"one": [(2, 1)], "two": [(0, 0), (1, 0)]})
    shades, rings, other, _ = figure.data
    assert list(shades.y) == [1, 2, 3] and list(shades.x) == [1, 2] and shades.z[2][1] == 0.5
    assert (shades.zmin, shades.zmax) == (other.zmin, other.zmax) == (0, 1)
    assert (list(rings.x), list(rings.y)) == ([2], [3])


def test_attention_is_read_from_left_to_below_and_tokens_that_are_equal_stay_apart():
    weights = np.tril(np.ones((3, 3))) / np.arange(1, 4)[:, None]
    figure = induction.attention({"head": weights}, ["(first)", "\n", "\n"])
    assert figure.data[0].z[2][0] == 0.333 and len(set(figure.data[0].x)) == 3
    assert tuple(figure.layout.xaxis.ticktext) == ("(first)", "\\n", "\\n")
    assert figure.layout.yaxis.autorange == "reversed"


def test_change_and_exact_are_means_over_queries_and_seeds():
    queries = [[Example({"word": w}, "x") for w in words] for words in ("ab", "bc")]
    before = [Answers(np.array([True, True]), np.array([-1.0, -2.0])), Answers(np.array([True, False]), np.zeros(2))]
    after = [Answers(np.array([False, False]), np.array([-2.0, -4.0])), Answers(np.array([False] * 2), np.zeros(2))]
    change, share = induction.change(after, before, queries), induction.exact(before, queries)
    assert change.estimate == -0.75 and change.low <= -0.75 <= change.high and change.low < change.high
    assert share.estimate == 0.75
    none = induction.exact(after, queries)  # all wrong: Wilson's interval of the three different queries
    assert none.estimate == none.low == 0 and none.high == pytest.approx(0.5615, abs=1e-3)


def test_effects_show_the_control_beside_each():
    measured, control = {"capitals": {"a": -2.0, "b": -1.0}}, {"capitals": {"a": -0.5, "b": -0.75}}
    own, beside = induction.effects(measured, control).data
    assert list(own.x) == [-2, -1] and list(beside.x) == [-0.5, -0.75] and list(own.y) == list(beside.y)
    assert len(induction.effects(measured).data) == 1


@pytest.mark.parametrize("name", ["example_or_token", "two_steps"])
def test_the_drawings_have_words(name):
    assert drawings.drawing(name).alt and drawings.drawing(name).caption


def test_the_words_of_the_chapter_need_no_other_numbers_than_the_chapter_gives():
    measured = {"both": (-1.0, -2.0), "before": (-0.1, 0.0)}
    figure = induction.effects({"capitals": {"both": -1.0}})
    drawn = Texts("from_tokens_to_examples").figure("cut", figure, k=8, seeds=2, n=12, made="Live.", **measured)
    assert "capitals -1.0" in drawn.alt and "8 demonstrations" in drawn.caption
