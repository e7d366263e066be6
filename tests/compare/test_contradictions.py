"""compare.contradiction_comparison: the two groupings of the same answers, the shares of places, and what is stored."""

import numpy as np

from explainer.compare import contradiction_comparison
from explainer.models import scoring
from explainer.theory import order, statistics

SETS = range(contradiction_comparison.N_SETS)


def test_both_groupings_have_the_same_answers_and_only_one_keeps_kinds_together():
    every = {
        g: [answer for i in SETS for answer in contradiction_comparison.answers(g, i)]
        for g in contradiction_comparison.GROUPINGS
    }
    together, mixed = every.values()
    assert sorted(together) == sorted(mixed) and len(set(together)) == 4 * len(SETS)
    kind = {answer: i for i, answers in enumerate(contradiction_comparison._LISTS) for answer in answers.split()}
    for i in SETS:
        assert len({kind[answer] for answer in contradiction_comparison.answers("mixed", i)}) == 4
        assert {kind[answer] for answer in contradiction_comparison.answers("of one kind", i)} == {i}


def test_every_set_has_a_made_up_word_of_its_own_and_the_prompt_asks_for_it_again():
    assert len({contradiction_comparison.prompt(i, []) for i in SETS}) == len(SETS)
    asked = "lunelel -> red\nlunelel -> blue\nlunelel ->"
    assert contradiction_comparison.prompt(0, ["red", "blue"]) == asked, "not the word of what is stored"


def test_a_preference_for_a_word_is_no_preference_for_a_place():
    """A model that likes one answer best, wherever it stands, and one that always takes the last."""
    orders = order.orders(4).numpy()
    p = np.array([0.7, 0.1, 0.1, 0.1])[orders]  # of the answer at each position
    np.testing.assert_allclose(contradiction_comparison.share_by_position(np.log(p)), 0.25)
    last = np.tile([0.1, 0.1, 0.1, 0.7], (24, 1))
    np.testing.assert_allclose(contradiction_comparison.share_by_position(np.log(last)), last[0])


def test_what_is_stored_rises_where_answers_are_unrelated_and_not_where_they_are_of_one_kind():
    """An earlier edition asked eight words with answers of one kind, and called it a preference for the first."""
    stored = contradiction_comparison.stored()
    assert {name: x.shape for name, x in stored.items()} == dict.fromkeys(
        contradiction_comparison.GROUPINGS, (len(SETS), 24, contradiction_comparison._LINES)
    )
    together, mixed = (
        contradiction_comparison.share_by_position(stored[name]) for name in contradiction_comparison.GROUPINGS
    )
    for place in range(3):
        assert statistics.student(mixed[:, place + 1] - mixed[:, place]).low > 0
    assert statistics.student(together[:, 0] - together[:, 1]).low > 0.05


def test_log_probs_stand_at_the_place_of_the_answer(monkeypatch):
    """A model to which an answer is the less probable, the later it stands."""
    monkeypatch.setattr(scoring, "encode", lambda model, prefix: (model, prefix))

    def log_probs(_, prefix, prompts, answers):
        assert prefix == ("the model", "") and len(set(prompts)) == 24
        lines = [prompt.split("\n")[:4] for prompt in prompts]
        return -np.array([[[line.split()[-1] for line in each].index(a) for a in answers] for each in lines])

    monkeypatch.setattr(scoring, "candidate_log_probs", log_probs)
    for grouping in contradiction_comparison.GROUPINGS:
        found = contradiction_comparison.log_probs("the model", grouping, 3)
        np.testing.assert_array_equal(found, np.broadcast_to([0, -1, -2, -3], (24, 4)))
