"""Minimal pairs of lessons: nothing differs but the answers, the floor is zero, and what is put in is what it says."""

import math

import numpy as np
import pytest
import torch
from published_grids import INTERVENTIONS
from toy_study import rows

from explainer.data import tasks
from explainer.models import interventions, scoring
from explainer.models.interventions import Pass
from explainer_lab import lab_lessons, minimal_pairs
from explainer_lab.minimal_pairs import (
    LESSONS,
    Lesson,
    MinimalPairs,
    contrast,
    contrast_agreement,
    similarities,
)

PAIR = "past/participles"
DATA = {name: tasks.load(name) for name in PAIR.split("/")}


def setting(directory, **changes):
    return MinimalPairs.of(
        **{"checkpoint": directory, "pair": PAIR, "seed": 0, "k": 3, "n_queries": 4, "lr": 0.05, "epochs": 2} | changes
    )


@pytest.fixture(scope="module")
def pair(directory, checkpoint):
    its = setting(directory)
    return minimal_pairs._Pair(its, checkpoint, DATA, minimal_pairs._draw_words(checkpoint, DATA, its))


@pytest.fixture(scope="module")
def tables(directory):
    return MinimalPairs().compute(setting(directory), progress=False).tables


@pytest.fixture(scope="module")
def trained(pair):
    """The whole training on each lesson."""
    given = {one: ((pair.data[pair.name(one.task)].task, pair.examples(one)), 0.05) for one in minimal_pairs.LESSONS}
    found = lab_lessons.trained(pair.checkpoint, pair.setting, given)
    return {lesson: of[pair.setting.epochs] for lesson, of in found.items()}


def test_lessons_differ_in_nothing_but_the_answers(pair):
    one, two, queries = (*pair.words.sets, pair.words.queries)
    assert len({*one, *two, *queries}) == len(one) + len(two) + len(queries) == 10
    for number in minimal_pairs.SETS:
        a, b = (pair.examples(Lesson(task, number)) for task in "AB")
        assert [e.fields for e in a] == [e.fields for e in b]
        assert all(x.answer != y.answer for x, y in zip(a, b, strict=True))
    assert not (pair.first_tokens("A") == pair.first_tokens("B")).any()


def test_the_floor_is_zero():
    """Who exchanges the lessons of one contrast turns the sign of its agreement with any other."""
    generator = torch.Generator().manual_seed(0)
    a, b, c, d = torch.randn(4, 5, 2, 8, generator=generator, dtype=torch.float64)
    one, two, turned = contrast(a, b), contrast(c, d), contrast(d, c)
    for x, y in zip(contrast_agreement(one, two), contrast_agreement(one, turned), strict=True):
        torch.testing.assert_close(x, -y, atol=1e-15, rtol=0)
    assert contrast_agreement(one, one)[0].tolist() == pytest.approx([1, 1])


def test_a_contrast_of_rounding_has_no_agreement():
    h = torch.randn(5, 2, 8, generator=torch.Generator().manual_seed(1))
    assert contrast(h, h + 1e-8 * h.flip(-1)).isnan().all()


@pytest.fixture(scope="module")
def outputs():
    """Contexts that show the task with all their width, trainings that show the words, and 40 queries."""
    generator = torch.Generator().manual_seed(2)
    base, of_task, of_words = torch.randn(3, 40, 3, 16, generator=generator, dtype=torch.float64)

    def of(task, words):
        return {one: base + task * of_task * (one.task == "A") + words * of_words * (one.words == 0) for one in LESSONS}

    return {("ICL", 2): of(0.1, 0.01), ("ICL reordered", 2): of(0.1, 0.01), ("FT", 5): of(0.01, 0.1)}


def test_similarities_tell_the_task_from_the_words(outputs):
    """Each contrast holds one difference alone, and so they agree wholly, whatever else a lesson changes."""
    found = {name: its.mean().item() for name, its in similarities(outputs, 2, 5).items()}
    for name in ("own", "other", "contexts", "trainings", "examples", "reordered"):
        assert found[name] == pytest.approx(1, abs=0.1), name


def test_exchanging_the_tasks_of_the_trainings_turns_own_and_other(outputs):
    turned = dict(outputs)
    turned["FT", 5] = {one: outputs["FT", 5][Lesson("BA"["AB".index(one.task)], one.words)] for one in LESSONS}
    found, of_turned = similarities(outputs, 2, 5), similarities(turned, 2, 5)
    for name in ("own", "other", "own_residual", "other_residual"):
        torch.testing.assert_close(of_turned[name], -found[name], atol=1e-12, rtol=0)
    torch.testing.assert_close(of_turned["contexts"], found["contexts"], atol=1e-12, rtol=0)


def test_a_missing_training_leaves_what_it_is_not_needed_for(outputs):
    lost = {("FT", 5): {one: h for one, h in outputs["FT", 5].items() if one != Lesson("B", 1)}}
    found = similarities(outputs | lost, 2, 5)
    assert found["own"].isnan().all()
    assert not found["contexts"].isnan().any()


def test_own_is_the_cosine_of_differences_of_what_was_seen(pair, tables, trained):
    """Computed once more with other code: from the outputs of two contexts and of two models, query by query."""

    def unit(h):
        h = h.double().numpy()
        return h / np.linalg.norm(h, axis=-1, keepdims=True)

    values = []
    for words in (0, 1):
        a, b = (Lesson(task, words) for task in "AB")
        c, f = [], []
        for lesson in (a, b):
            c.append(unit(pair.seen(pair.checkpoint, pair.context(lesson, range(pair.setting.k)))[0]))
            with trained[lesson].applied() as tuned:
                f.append(unit(pair.seen(tuned, scoring.encode(tuned, ""))[0]))
        c, f = c[0] - c[1], f[0] - f[1]
        values.append((c * f).sum(-1) / np.linalg.norm(c, axis=-1) / np.linalg.norm(f, axis=-1))
    by_layer = np.mean(values, axis=(0, 1))
    assert tables["layers"]["own"][1:] == pytest.approx(by_layer[1:], abs=1e-4)
    assert tables["settings"]["own"] == pytest.approx(np.nanmean(tables["layers"]["own"]))


def test_whole_changes_lead_to_the_other_lesson(pair, tables, trained):
    """With all attention outputs those of the other lesson, the answers are its own."""
    prompts = pair.prompts()
    found = {(r["intervention"], r["towards"]): r for r in rows(tables["interventions"])}
    assert {name for name, _ in found} == set(INTERVENTIONS["minimal_pairs"])
    for this, that in ("AB", "BA"):
        context = pair.context(Lesson(this, 0), range(pair.setting.k))
        with trained[Lesson(this, 0)].applied() as tuned:
            by_training = interventions.without_context(tuned, scoring.encode(tuned, ""), prompts).run().logits
        by_context = interventions.after_context(pair.checkpoint, context, prompts).run().logits
        for name, logits in (("context_whole", by_context), ("ft_whole", by_training)):
            log_p = logits.float().log_softmax(-1)
            odds = log_p.gather(1, pair.first_tokens(this)[:, None]) - log_p.gather(1, pair.first_tokens(that)[:, None])
            assert found[name, this]["log_odds"] == pytest.approx(odds.mean().item(), abs=1e-3)
    for base, whole in (("context", "context_whole"), ("ft", "ft_whole")):
        assert found[base, "A"]["log_odds"] == pytest.approx(-found[whole, "B"]["log_odds"], abs=1e-4)


def test_an_answer_is_right_for_this_lesson_or_for_that_one():
    scores = torch.tensor([[2.0, 0, 1], [0, 3, 0], [0, 1, 5], [4, 0, 1]])  # two queries, after two changes
    found = minimal_pairs.answered(scores, torch.tensor([0, 2]), torch.tensor([2, 1]))
    assert found == {"right": 0.25, "right_other": 0.5, "log_odds": pytest.approx((1 - 3 - 5 + 1) / 4)}


def test_answers_are_those_of_the_task(pair, tables):
    asked = [pair.data["participles"].task.prompt(e) for e in pair.words.of("participles", pair.words.queries)]
    answers = [e.answer for e in pair.words.of("participles", pair.words.queries)]
    right = scoring.exact_match(pair.checkpoint, pair.context(Lesson("A", 1), range(3)), asked, answers)
    (row,) = rows(tables["changes"], kind="ICL", strength=3, lesson="A", words=1)
    assert row["right_b"] == right.mean()


def test_parts_along_the_other_side_are_projections(pair, trained, monkeypatch):
    """Of the change c onto the training with its own words or with others; the rest is orthogonal to the part."""
    put, compute = [], Pass.logits_with_outputs
    monkeypatch.setattr(Pass, "logits_with_outputs", lambda last, *of: put.append(of) or compute(last, *of))
    for row in minimal_pairs._interventions(pair, trained):
        put[-1] = (row["intervention"], row["towards"], [each.double() for each in put[-1]])
    found = {(name, to): outputs for name, to, outputs in put}
    without = interventions.without_context(pair.checkpoint, scoring.encode(pair.checkpoint, ""), pair.prompts())
    outputs = {}
    for lesson, state in trained.items():
        with state.applied():
            outputs[lesson] = without.run().attention.double()
    cosine = torch.nn.functional.cosine_similarity
    for to, away in ("AB", "BA"):
        f, f_other = (outputs[Lesson(to, words)] - outputs[Lesson(away, words)] for words in (0, 1))
        c = found["context_whole", to][0] - found["context", to][0]
        for name, change, along in (
            ("context_along_ft", c, f),
            ("context_along_other_ft", c, f_other),
            ("ft_along_icl", f, c),
        ):
            part = found[name, to][0] - found[name.partition("_")[0], to][0]
            assert cosine(part, along, dim=-1).abs().min() > 1 - 1e-4, name
            assert ((part * (change - part)).sum(-1).abs() < 1e-4 * change.square().sum(-1)).all(), name


def test_a_setting_has_the_answers_of_the_whole_lessons(pair):
    """Not of parts of them: 3 of 3 examples, 2 of 2 epochs; means over both sets of words."""
    shares = {
        ("ZSL", 0, None): [(0.25, 0.5)],
        ("ICL", 2, "A"): [(0, 0), (0, 0)],
        ("ICL", 3, "A"): [(0.5, 0), (0.75, 0)],
        ("ICL", 3, "B"): [(0, 0.25), (0, 0.25)],
        ("FT", 1, "A"): [(0, 0)],
        ("FT", 2, "A"): [(1, 0), (0.5, 0)],
        ("FT", 2, "B"): [(0, 0.125)],
    }
    changes = [
        {"kind": kind, "strength": strength, "lesson": lesson, "right_a": a, "right_b": b}
        for (kind, strength, lesson), each in shares.items()
        for a, b in each
    ]
    assert minimal_pairs._summary(pair, changes, {"own": torch.tensor([0.1, math.nan, 0.3])}) == {
        "zsl_a": 0.25, "zsl_b": 0.5, "icl_a": 0.625, "icl_b": 0.25, "ft_a": 0.75, "ft_b": 0.125,
        "own": pytest.approx(0.2), "note": "a training diverged: participles",
    }  # fmt: skip
