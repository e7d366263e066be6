"""The five rows of the verdict, of tables made by hand and of the book's."""

import math

import numpy as np
import pandas as pd
import pytest
from toy_tables import crossed

from explainer.results import new_rule, reporting, verdict, verdict_scale
from explainer.results.published import results

SIMILAR = {
    "own": 0.5,
    "both_other": 0.5,
    "training_other": 0.45,
    "context_other": 0.45,
    "context_foreign": 0.3,
    "contexts": 0.75,
    "trainings": 0.75,
}
LOWER = dict.fromkeys(SIMILAR, 0.9) | {"trainings": 0.95}


def tables():
    """Upper layers as in SIMILAR, lower ones all alike; two draws that agree."""
    similar = {name: lambda layer, name=name: (SIMILAR if layer >= 4 else LOWER)[name] for name in SIMILAR}
    layers = crossed(seed=(0, 1), task="a", layer=range(6), **similar)
    answers = queries(icl=3, vector=2, vector_foreign=1, zsl=0)
    strengths = crossed(seed=(0, 1), cue="suffix", own=0.1, contexts=0.5, trainings=0.32)
    changes = [
        {"seed": s, "cue": "suffix", "k": 16, "strength": n, "kind": kind, "lesson": lesson, "right_a": a, "right_b": b}
        for s in (0, 1)
        for n, kind, lesson, a, b in (
            (16, "ICL", "A", 0.7, 0.0),
            (16, "ICL", "B", 0.0, 0.9),
            (16, "ICL shuffled", "A", 0.2, 0.9),
            (8, "ICL", "A", 0.0, 0.0),
        )
    ]
    return iter((layers, answers, strengths, pd.DataFrame(changes)))


def test_rows_are_shares_between_floor_and_ceiling():
    found = {name: [of.estimate for of in one[:4]] for name, one in verdict.answer_questions(*tables()).items()}
    for name, three in {
        "like training": (0.3, 0.5, 0.75),
        "on these examples": (0, 0.05, 0.5 * 0.25),
        "carried by one vector": (0.25, 0.5, 0.75),
        "new rule: learned": (0.2, 0.8, 1),
        "new rule: like training": (0, 0.1, 0.16**0.5),
    }.items():
        floor, measured, ceiling = three
        assert found.pop(name) == pytest.approx([*three, (measured - floor) / (ceiling - floor)]), name
    assert not found


def test_a_vector_that_answers_less_than_none_does_carries_nothing():
    answers = queries(icl=4, vector=2, vector_foreign=1, zsl=3)
    assert verdict.answer_questions(None, answers, None, None)["carried by one vector"].share.estimate == -1


@pytest.mark.parametrize("number", range(4))
def test_a_question_without_its_table_is_left_out(number):
    given = list(tables())
    left = [name for i in (number, (number + 1) % 4) for name in _ASKED_OF[i]]
    given[number] = given[(number + 1) % 4] = None
    assert set(verdict.answer_questions(*given)) == set(verdict.FOLDERS) - set(left)


_ASKED_OF = (["like training", "on these examples"], ["carried by one vector"], ["new rule: like training"],
             ["new rule: learned"])  # fmt: skip


def test_a_ceiling_that_is_not_settled_above_the_floor_gives_no_share():
    layers = next(tables())
    layers.loc[layers["seed"] == 1, "trainings"] = 0.2
    found = verdict.answer_questions(layers, None, None, None)["like training"]
    assert math.isnan(found.share.estimate) and found.ceiling.estimate == pytest.approx(0.475)


def test_a_question_that_no_draw_has_is_left_out():
    layers = next(tables()).assign(trainings=math.nan)  # all trainings diverged
    assert set(verdict.answer_questions(layers, queries(icl=3, vector=2, vector_foreign=1, zsl=0), None, None)) == {
        "carried by one vector"
    }


def test_one_draw_has_values_and_no_share():
    layers = next(tables())
    found = verdict.answer_questions(layers[layers["seed"] == 0], None, None, None)["like training"]
    assert found.draws == 1 and found.measured.estimate == 0.5 and math.isnan(found.share.estimate)


@pytest.mark.parametrize(("n", "thirds"), [(1, "uuu"[:1]), (2, "lu"), (3, "lmu"), (4, "lmmu"), (6, "llmmuu")])
def test_every_model_has_an_upper_third(n, thirds):
    rows = pd.DataFrame([{"seed": 0, "task": "a", "layer": i, "own": float(i)} for i in range(n)])
    for name, its in verdict_scale.by_thirds(rows, ["own"]).items():
        wanted = [i for i, third in enumerate(thirds) if third == name[0]]
        assert its["own"].tolist() == ([np.mean(wanted)] if wanted else [])


def queries(**right):
    """Two draws that agree, with four queries for each intervention."""
    correct = lambda intervention, number: number < right[intervention]  # noqa: E731
    return crossed(seed=(0, 1), intervention=list(right), number=range(4), task="a", correct=correct)


def test_shares_by_mechanism_are_between_floor_and_ceiling():
    asked = queries(icl=4, vector=2, vector_foreign=1, heads=3, heads_foreign=0, off=1, off_induction=2, off_random=3)
    rules = queries(icl=4, vector=1, vector_foreign=1)
    given, said = "aabb", "aaba"  # three of four agree; by chance half of the queries
    votes = crossed(seed=(0, 1), i=range(4), cue="suffix", rule="A", vote=lambda i: given[i], icl=lambda i: said[i])
    found = verdict.shares_by_mechanism(asked, rules, votes)
    estimates = reporting.estimates(found)
    assert estimates["word pairs"] == pytest.approx(
        {
            "one vector, put in": (2 - 1) / (4 - 1),
            "ten heads, put in": 3 / 4,
            "the ten heads, taken out": (3 - 1) / 3,
            "induction heads, taken out": (3 - 2) / 3,
        }
    )
    carried = {"one vector, put in": 0, "a vote of ten heads": (0.75 - 0.5) / (1 - 0.5)}
    assert estimates["a new rule"] == pytest.approx(carried)


def test_the_scale_of_a_vote_is_that_of_agreement_and_chance():
    votes = new_rule.both_grids("rule-contexts", "answers")
    agree, chance = (of(votes, "vote").estimate for of in (new_rule.agreement, new_rule.agreement_by_chance))
    found = new_rule.agreement_beyond_chance(votes, "vote").estimate
    assert found == pytest.approx((agree - chance) / (1 - chance), abs=0.001)


def test_what_the_pages_say_of_the_rows():
    """Less than half of the way, no examples seen, about half by one vector, half of a new rule and little shared."""
    found = verdict.of_book()
    assert found["word pairs: like training"].low > 0.3 and found["word pairs: like training"].high < 0.5
    assert found["word pairs: on these examples"].low < 0 < found["word pairs: on these examples"].high < 0.1
    assert found["word pairs: carried by one vector"].estimate == pytest.approx(0.48, abs=0.01)
    assert found["new rule: learned"].estimate == pytest.approx(0.54, abs=0.01)
    assert found["new rule: like training"].high < 0.15
    three = verdict.three_of_book()
    assert list(three) == ["word pairs: like training", "word pairs: on these examples", "new rule: learned"]
    assert {name: one.share for name, one in three.items()} == {name: found[name] for name in three}
    changes = new_rule.both_grids("rule-contexts", "changes")
    assert set(changes["seed"]) == set(range(20)) and results("rival")["seed"].nunique() == 5
