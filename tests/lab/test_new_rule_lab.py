"""A rule that nobody could know: what differs between two rules, what a head votes, what is put in and taken out."""

from collections import Counter

import numpy as np
import pytest
import torch
from published_grids import INTERVENTIONS
from toy_study import column, rows

from explainer.compare import cued_words
from explainer.compare.cued_words import CUES, LABELS, TASK
from explainer.data import tasks
from explainer.models import circuits, interventions, scoring
from explainer_lab import minimal_pairs, new_rule
from explainer_lab.minimal_pairs import LESSONS, Lesson
from explainer_lab.new_rule import NewRule, _Rules

K, N = 4, 8


def setting(directory="model", **changes):
    usual = {"checkpoint": directory, "cue": "suffix", "seed": 0, "k": K, "n_queries": N, "lr": 0.05, "epochs": 2}
    return NewRule.of(**usual | {"training": "answers"} | changes)


@pytest.fixture(scope="module")
def rules(directory, checkpoint):
    return _Rules(setting(directory), checkpoint)


@pytest.fixture(scope="module")
def tables(directory):
    return NewRule().compute(setting(directory), progress=False).tables


@pytest.fixture(scope="module")
def trained(rules):
    """Outputs after the whole training on each lesson."""
    states = new_rule._trained(rules, [], False)
    return {lesson: rules.see(tuned, scoring.encode(tuned, ""))[0] for lesson, n, tuned in states if n == 2}


@pytest.fixture(scope="module")
def of_contexts(directory):
    return NewRule().compute(setting(directory, training="none"), progress=False).tables


@pytest.mark.parametrize("cue", CUES)
def test_every_cue_has_one_label_under_each_rule_and_no_word_twice(cue):
    rules = _Rules(setting(cue=cue, k=16, n_queries=12), None)
    words = [word for each in rules.words for word, _ in each]
    assert len(set(words)) == len(words) == 2 * 16 + 12
    labels = {rule: {} for rule in "AB"}
    for rule, given in labels.items():
        for each in rules.words:
            for (_, cue_number), example in zip(each, rules.examples(rule, each), strict=True):
                assert given.setdefault(cue_number, example.label) == example.label
                assert example.answer == LABELS[example.label]
        assert sorted(given.values()) == [0, 1, 2, 3]
    assert all(labels["A"][cue_number] != labels["B"][cue_number] for cue_number in range(4))
    for each in rules.words:
        for i in range(0, len(each), 4):
            assert {cue_number for _, cue_number in each[i : i + 4]} == {0, 1, 2, 3}


def test_the_cue_is_what_words_of_a_label_have_in_common():
    of_suffix, of_first, of_category, _ = (_Rules(setting(cue=cue, k=16, n_queries=12), None).words[0] for cue in CUES)
    assert all(word.endswith(cued_words.SUFFIXES[cue]) and " " not in word for word, cue in of_suffix)
    assert all(word.split(" ")[0] == cued_words.FIRST_WORDS[cue] for word, cue in of_first)
    categories = {e.fields["word"]: e.answer for e in tasks.load("categories").train}
    assert len({(categories[word], cue) for word, cue in of_category}) == 4


def test_the_assignment_is_drawn_anew_by_each_seed():
    drawn = Counter(tuple(cued_words.draw_labels("suffix", seed)[0]) for seed in range(40))
    assert len(drawn) > 12 and max(drawn.values()) < 8
    assert _Rules(setting(), None).words == _Rules(setting(training="text"), None).words
    assert "batch" in setting(training="all weights", batch=2).slug and "batch" not in setting().slug


def test_shuffled_labels_say_nothing():
    """Each cue has each label as often as every other."""
    rules = _Rules(setting(k=16), None)
    seen = Counter((cue, e.label) for (_, cue), e in zip(rules.words[0], rules.shuffled(), strict=True))
    assert set(seen.values()) == {1} and len(seen) == 16


def test_a_vote_is_the_attention_to_the_answers_with_a_label(rules, checkpoint):
    """Summed once more, from the attention weights that the model itself returns."""
    examples = rules.demonstrations(LESSONS[0])
    shown = circuits.TokenSpans.of(checkpoint, cued_words.TASK, examples)
    found = new_rule._label_votes(checkpoint, examples, rules.prompts)
    for i in (0, N - 1):
        stem = scoring.answer_prefixes(checkpoint, rules.prompts, LABELS)[i]
        ids = [*shown.ids, *checkpoint.tokenize(rules.prompts[i]), *stem]
        maps = circuits.attention_maps(checkpoint, ids)[:, :, -1]
        for label in range(4):
            places = [
                place
                for example, start, end in zip(examples, shown.answers, shown.ends[1:], strict=True)
                if example.label == label
                for place in range(start, end - 1)  # without the newline
            ]
            torch.testing.assert_close(found[i, :, :, label], maps[:, :, places].sum(-1), atol=1e-5, rtol=1e-4)


def test_heads_are_chosen_on_words_that_are_not_reported(rules, of_contexts):
    shown, others = rules.demonstrations(LESSONS[0]), [*map(TASK.prompt, rules.demonstrations(Lesson("A", 1)))]
    answers = torch.from_numpy(rules.see(rules.checkpoint, rules.context(shown), others)[1])
    votes, asked = (new_rule._label_votes(rules.checkpoint, shown, its) for its in (others, rules.prompts))
    agree = (votes.argmax(-1) == answers[:, None, None]).float().mean(0).flatten()
    chosen = agree.argsort(descending=True)[: new_rule.N_HEADS]
    voted = asked.flatten(1, 2)[:, chosen].sum(1).argmax(-1)
    assert column(of_contexts["answers"], "vote", rule="A") == voted.tolist()


def test_similarities_are_those_of_minimal_pairs(tables, rules, checkpoint, trained):
    """With contexts and models of the two rules, by the code that is tested there."""
    outputs = {("ICL", K): {}, ("FT", 2): trained, ("ICL reordered", K): {}}
    order = np.random.default_rng([0, 3]).permutation(K)
    for lesson in LESSONS:
        examples = rules.demonstrations(lesson)
        outputs["ICL", K][lesson] = rules.see(checkpoint, rules.context(examples))[0]
        outputs["ICL reordered", K][lesson] = rules.see(checkpoint, rules.context([examples[i] for i in order]))[0]
    for name, its in minimal_pairs.similarities(outputs, K, 2).items():
        np.testing.assert_allclose(tables["layers"][name], its, atol=1e-6, err_msg=name)
        assert tables["settings"][name] == pytest.approx(its.nanmean().item(), abs=1e-6)
    last = rows(tables["strengths"], epochs=2, layers="all")[0]
    assert last["own"] == pytest.approx(tables["settings"]["own"])


def test_answers_are_the_most_probable_labels(tables, rules, checkpoint):
    lesson = Lesson("B", 1)
    log_probs = scoring.candidate_log_probs(
        checkpoint, rules.context(rules.demonstrations(lesson)), rules.prompts, LABELS
    )
    given = {name: column(tables["answers"], name, rule="B") for name in ("icl_other", "right", "word")}
    assert given["icl_other"] == log_probs.argmax(1).tolist()
    assert given["right"] == rules.right("B").tolist()
    assert given["word"] == [word for word, _ in rules.words[2]]


def telling(rules):
    """The token of each label that tells it from the others."""
    asked = [cued_words.label_words([("", 0)], [label]) for label in range(4)]
    return [scoring.distinguishing_tokens(rules.checkpoint, cued_words.TASK, each)[0] for each in asked]


def test_what_is_put_in_and_taken_out(tables, rules, checkpoint, trained):
    """The whole, and a third of the layers, computed once more with other code."""
    found = {(r["intervention"], r["towards"], r["layers"]): r for r in rows(tables["interventions"])}
    assert {name for name, _, _ in found} == set(INTERVENTIONS["new_rule"])
    a, b = (rules.see(checkpoint, rules.context(rules.demonstrations(Lesson(rule, 0))))[0] for rule in "AB")
    f_a, f_b, other_a, other_b = (trained[Lesson(rule, words)] for words in (0, 1) for rule in "AB")
    c, f, f_other = a - b, f_a - f_b, other_a - other_b

    def along(change, of):
        return (change * of).sum(-1, keepdim=True) / (of * of).sum(-1, keepdim=True) * of

    part = along(c, f)
    upper = part.clone()
    upper[:, : round(2 / 3 * c.shape[1])] = 0
    without = interventions.without_context(checkpoint, scoring.encode(checkpoint, ""), rules.prompts, LABELS)
    tokens = telling(rules)
    for (name, layers), outputs in {
        ("context", "all"): a,
        ("context_other_rule", "all"): b,
        ("context_along_ft", "all"): b + part,
        ("context_across_ft", "all"): a - part,
        ("context_across_ft", "upper third"): a - upper,
        ("context_along_other_ft", "all"): b + along(c, f_other),
        ("ft", "all"): f_a,
        ("ft_other_rule", "all"): f_b,
        ("ft_along_icl", "all"): f_b + along(f, c),
        ("ft_across_icl", "all"): f_a - along(f, c),
    }.items():
        pairs = zip(without.layers, outputs.unbind(1), strict=True)
        held = [interventions.at_last(layer.output, lambda _, v=v: v) for layer, v in pairs]
        logits = without.run(held).logits[:, tokens]
        this, that = (logits[range(N), rules.right(rule)] for rule in "AB")
        row = found[name, "A", layers]
        assert row["log_odds"] == pytest.approx((this - that).mean().item(), abs=2e-3), name
        assert row["right"] == pytest.approx((logits.argmax(1).numpy() == rules.right("A")).mean(), abs=1e-6)
