"""Contrasts of lessons: minimal pairs and new rules, of small tables whose entries are known."""

import numpy as np
import pandas as pd
import pytest
from toy_tables import assert_student, crossed

from explainer.results import contrast_results
from explainer.results.published import results

SEEDS = (0, 1, 2)


def rows(**columns):
    """A row for each draw of two cues."""
    return crossed(cue=(0, 1), seed=SEEDS, **columns)


# Right answers.


def told(kind, strength, lesson, right):
    """Rows of "changes": what is right by the lesson's own rule; by the other one nothing is."""
    own, other = ("right_b", "right_a") if lesson == "B" else ("right_a", "right_b")
    return rows(kind=kind, strength=strength, lesson=lesson, **{own: right, other: 0.0})


def by_strength(changes, kind):
    right = changes.assign(right=contrast_results.accuracy_by_own_rule(changes))
    return contrast_results.mean_by(right[right["kind"] == kind], "strength")


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
    found = by_strength(changes, "ICL")
    assert list(found) == [4, 8] and all(type(strength) is int for strength in found)
    assert_student(found[4], [(0.125 + 0.25 * seed) / 2 for seed in SEEDS])  # means over lessons and cues
    assert tuple(found[8]) == (1, 1, 1)
    assert by_strength(changes, "ICL shuffled")[8].estimate == 0.5
    assert by_strength(changes, "FT")[4].estimate == 0.75


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
    shares(contrast_results.agreement(answers, "vote")["agreement"], (2 + 2, 3), (8, 4))
    shares(contrast_results.agreement(answers, "vote", wrong=True)["agreement"], (1 + 1, 1), (3, 1))
    assert contrast_results.agreement(answers, "icl")["agreement"].estimate == 1
    assert contrast_results.agreement(answers, "right", wrong=True)["agreement"].estimate == 0
    gain = contrast_results.agreement(answers, "vote")["gain"]
    assert tuple(gain) == (0, 0, 0)  # each right label stands once in a draw and rule, so the label alone says all


def test_the_floor_of_an_agreement_is_what_another_query_of_the_same_right_label_is_given(answers):
    """Votes of (0, A) for right label 0: 0, 0, where 0, 1 are answered; for 1: 1, 2, where 1, 3 are; and so on."""
    found = contrast_results.agreement(answers.assign(right=answers["right"] // 2), "vote")
    shares(found["floor"], ((1 + 0 + 0 + 0) + (1 + 1 + 0 + 0), 0), (8, 4))
    shares(found["gain"], (4 - 3, 3 - 0), (8, 4))


def test_who_knows_the_right_label_alone_gains_nothing(answers):
    both = pd.concat([answers.assign(right=answers["right"] // 2), answers.assign(cue="category", vote=3)])
    found = contrast_results.agreement(both.assign(vote=both["right"]), "vote")
    assert tuple(found["floor"]) == pytest.approx(tuple(found["agreement"]))


# Contrasts.


NAMES = ("own", "other", "contexts", "trainings", "examples", "reordered")


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
    for layers, more in (("all", 0.0), ("upper third", 0.05)):
        its = interventions[interventions["layers"] == layers]
        found = contrast_results.mean_by(its, "intervention")
        assert list(found) == (["context"] if layers == "all" else []) + ["along_ft", "along_near"]
        assert_student(found["along_ft"], [0.5 + more + 0.05 + 0.01 + 0.01 * seed for seed in SEEDS])
        assert contrast_results.mean_by(its, "intervention", "log_odds")["along_near"].estimate == pytest.approx(0.4)


# Lines and layers.


def test_a_line_over_another_at_its_place():
    written = {"new": 2.0, "repeated": 1.0, "wrong": 3.0}
    lines = rows(
        place=("early", "late"), form=list(written), written=lambda place, form: written[form] * (1 + (place == "late"))
    )
    assert contrast_results.line_over(lines, "written", "late", "repeated").estimate == pytest.approx(1 / 2)
    assert contrast_results.line_over(lines, "written", "early", "wrong", "repeated").estimate == pytest.approx(3)


def test_attention_that_goes_a_part_of_the_way():
    before = rows(before_answer=0.7, before_next=0.1)
    for way in (0.0, 0.5, 1.0):
        moved = contrast_results.attention_moved(before.assign(after_next=0.1 + 0.6 * way))
        assert moved.estimate == pytest.approx(way)


def test_what_an_ablation_loses_is_of_the_same_draw():
    held = contrast_results.ablation_losses("ablations")
    assert (held.loc[held["part"] == "none", "lost"] == 0).all()
    its = held[(held["task"] == "suffix") & (held["seed"] == 11)].set_index(["part", "layer"])
    none = its.loc["none", "right_label"].item()
    assert its.loc[("MLP", 0), "lost"].item() == pytest.approx(none - its.loc[("MLP", 0), "right_label"].item())
    assert set(held.loc[held["kind"] == "word pairs", "task"]) == {"antonyms", "capitals", "past", "plurals"}


# Minimal pairs.


def table(**columns):
    """Rows for two pairs and three seeds."""
    return crossed(pair=(0, 1), seed=(0, 1, 2), **columns)


def test_similarities_with_floor_ceilings_and_yardstick():
    values = {"own": 0.2, "other": 0.18, "contexts": 0.64, "trainings": 0.25, "examples": 0.01, "reordered": 0.5}
    frame = table(**{name: lambda seed, of=of: of + 0.001 * (seed - 1) for name, of in values.items()})
    found = contrast_results.similarities(frame)
    assert found["own"].estimate == pytest.approx(0.2)
    assert found["own - other"].estimate == pytest.approx(0.02)
    assert found["yardstick"].estimate == pytest.approx(0.2 * (0.36 * 0.75) ** 0.5, abs=1e-4)
    assert found["own / sqrt(C F)"].estimate == pytest.approx(0.2 / (0.64 * 0.25) ** 0.5, abs=1e-3)


def test_two_trainings_that_disagree_have_no_corrected_value():
    others = dict.fromkeys(("own", "other", "contexts", "examples", "reordered"), 0.5)
    frame = table(**others, trainings=-0.1)
    assert np.isnan(contrast_results.similarities(frame)["own / sqrt(C F)"].estimate)


@pytest.fixture
def put_in():
    """Log odds from -4 with one lesson to 4 with the other, and parts in between."""
    odds = {"context": -4, "context_whole": 4, "ft": -2, "ft_whole": 2, "context_along_ft": -2, "ft_along_icl": 0}
    names = results("minimal-pairs", "interventions")["intervention"].unique().tolist()
    log_odds = lambda pair, intervention: odds.get(intervention, -3 + pair)  # noqa: E731
    return table(intervention=names, towards=["A", "B"], right=0.5, log_odds=log_odds)


def test_the_share_of_the_whole_change(put_in):
    found = contrast_results.share_of_the_whole(put_in)
    assert found["context_along_ft"].estimate == pytest.approx(2 / 8)
    assert found["ft_along_icl"].estimate == pytest.approx(2 / 4)
    assert found["context_along_near"].estimate == pytest.approx(1.5 / 8)
    assert contrast_results.mean_by(put_in, "intervention")["context"].estimate == 0.5
