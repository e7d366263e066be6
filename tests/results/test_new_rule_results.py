"""A rule that nobody could know: shares, votes by chance and parts, of small tables whose entries are known."""

import pandas as pd
import pytest
from toy_tables import assert_student, crossed

from explainer.results import minimal_pairs, new_rule

SEEDS = (0, 1, 2)


def rows(**columns):
    """A row for each draw of two cues."""
    return crossed(cue=(0, 1), seed=SEEDS, **columns)


# Right answers.


def told(kind, strength, lesson, right):
    """Rows of "changes": what is right by the lesson's own rule; by the other one nothing is."""
    own, other = ("right_b", "right_a") if lesson == "B" else ("right_a", "right_b")
    return rows(kind=kind, strength=strength, lesson=lesson, **{own: right, other: 0.0})


def test_answers_count_by_the_rule_of_their_lesson():
    changes = pd.concat(
        [
            told("ICL", 4, "A", lambda cue: 0.25 * cue),
            told("ICL", 4, "B", lambda seed: 0.25 * seed),
            told("ICL", 8, "B", 1.0),
            told("ICL shuffled", 8, "A", 0.5),
            told("FT", 4, "A", 0.75),
        ]
    )
    found = new_rule.accuracy_by_strength(changes, "ICL")
    assert list(found) == [4, 8] and all(type(strength) is int for strength in found)
    assert_student(found[4], [(0.125 + 0.25 * seed) / 2 for seed in SEEDS])  # means over lessons and cues
    assert tuple(found[8]) == (1, 1, 1)
    assert new_rule.accuracy_by_strength(changes, "ICL shuffled")[8].estimate == 0.5
    assert new_rule.accuracy_by_strength(changes, "FT")[4].estimate == 0.75


# Votes.


GIVEN = {  # (seed, rule): label that is right, that is answered, and that is voted for
    (0, "A"): [(0, 0, 0), (1, 1, 0), (2, 1, 1), (3, 3, 2)],
    (0, "B"): [(0, 1, 1), (1, 1, 1), (2, 2, 1), (3, 0, 1)],
    (1, "A"): [(0, 2, 2), (1, 1, 3), (2, 2, 2), (3, 3, 3)],
}


@pytest.fixture
def answers():
    return pd.DataFrame(
        [
            {"seed": seed, "cue": "suffix", "rule": rule, "query": i, "right": right, "icl": icl, "vote": vote}
            for (seed, rule), its in GIVEN.items()
            for i, (right, icl, vote) in enumerate(its)
        ]
    )


def shares(found, hits, n):
    """A ratio of sums over draws, with the interval of the jackknife."""
    whole = sum(hits) / sum(n)
    left = [(sum(hits) - h) / (sum(n) - m) for h, m in zip(hits, n, strict=True)]
    assert_student(found, [len(hits) * whole - (len(hits) - 1) * each for each in left])


def test_votes_agree_with_the_answers_right_or_wrong(answers):
    shares(new_rule.agreement(answers, "vote"), (2 + 2, 3), (8, 4))
    shares(new_rule.agreement(answers, "vote", wrong=True), (1 + 1, 1), (3, 1))
    assert new_rule.agreement(answers, "icl").estimate == 1
    assert new_rule.agreement(answers, "right", wrong=True).estimate == 0


def test_by_chance_a_query_has_the_vote_of_any_query_of_its_draw_and_rule(answers):
    """Votes of (0, A): 0, 0, 1, 2; of (0, B): 1 four times; of (1, A): 2, 3, 2, 3. Of wrong answers, by all queries."""
    of_each = {(0, "A"): (0.5, 0.25, 0.25, 0), (0, "B"): (1, 1, 0, 0), (1, "A"): (0.5, 0, 0.5, 0.5)}
    hits = [sum(of_each[0, "A"] + of_each[0, "B"]), sum(of_each[1, "A"])]
    shares(new_rule.agreement_by_chance(answers, "vote"), hits, (8, 4))
    shares(new_rule.agreement_by_chance(answers, "vote", wrong=True), (0.25 + 1 + 0, 0.5), (3, 1))


def test_chance_is_that_of_each_cue(answers):
    """With the same votes whatever the query, chance is the agreement; with those of another cue it would not be."""
    other = answers.assign(cue="category", vote=3)
    both = pd.concat([answers.assign(vote=1), other])
    assert tuple(new_rule.agreement_by_chance(both, "vote")) == pytest.approx(tuple(new_rule.agreement(both, "vote")))


# Contrasts.


NAMES = ("own", "other", "contexts", "trainings", "examples", "reordered")


def test_cues_stand_where_the_contrasts_have_pairs():
    columns = {name: lambda cue, seed, n=n: 0.1 * n + 0.02 * cue + 0.01 * seed for n, name in enumerate(NAMES, 1)}
    settings = rows(**columns)
    expected = minimal_pairs.similarities(settings.rename(columns={"cue": "pair"}))
    assert new_rule.similarities(settings) == expected
    assert_student(expected["own"], [0.11 + 0.01 * seed for seed in SEEDS])


@pytest.fixture
def interventions():
    """Two parts and their random direction in all layers and in a third; passes as they are have all layers only."""
    usual = {"context": 0.9, "along_ft": 0.5, "along_near": 0.2}

    def right(cue, seed, intervention, layers, towards):
        more = 0.1 * (towards == "B") + 0.05 * (layers != "all") + 0.02 * cue
        return usual[intervention] + more + 0.01 * seed * (intervention == "along_ft")

    kinds = {"intervention": list(usual), "layers": ("all", "upper third"), "towards": ("A", "B")}
    table = rows(**kinds, right=right, log_odds=lambda intervention: usual[intervention] * 2)
    return table[(table["intervention"] != "context") | (table["layers"] == "all")]


def test_parts_by_what_is_put_in_where(interventions):
    everywhere, third = (
        new_rule.accuracy_after_parts(interventions),
        new_rule.accuracy_after_parts(interventions, "log_odds", "upper third"),
    )
    assert list(everywhere) == ["context", "along_ft", "along_near"]
    assert everywhere["context"].estimate == pytest.approx(0.9 + 0.05 + 0.01)
    assert_student(everywhere["along_ft"], [0.5 + 0.05 + 0.01 + 0.01 * seed for seed in SEEDS])
    assert third["context"].estimate == pytest.approx(1.8)
    one_third = new_rule.accuracy_after_parts(interventions[interventions["layers"] != "all"], layers="upper third")
    assert list(one_third) == ["along_ft", "along_near"]
    assert one_third["along_near"].estimate == pytest.approx(0.2 + 0.05 + 0.05 + 0.01)


@pytest.mark.parametrize("layers", ["all", "upper third"])
def test_a_part_is_compared_with_a_random_one_of_the_same_layers(interventions, layers):
    its = interventions.assign(right=interventions["right"].where(interventions["layers"] == layers, 7.0))
    found = new_rule.part_minus_random(its, "along_ft", "along_near", layers)
    assert_student(found, [0.3 + 0.01 * seed for seed in SEEDS])


def test_a_grid_is_read_with_its_fellow_of_categories(monkeypatch):
    read = {("rule", "settings"): "suffix", ("rule-category", "settings"): "category", ("rule", "heads"): "first word"}
    monkeypatch.setattr(new_rule, "results", lambda grid, name: pd.DataFrame({"cue": [read.get((grid, name), "none")]}))
    both = new_rule.both_grids("rule")
    assert both["cue"].tolist() == ["suffix", "category"] and both.index.tolist() == [0, 1]
    assert new_rule.both_grids("rule", "heads")["cue"].tolist() == ["first word", "none"]
