"""A rule in contexts and trainings of many orders: means of unit vectors, what is exchanged, and what is counted."""

import itertools
from dataclasses import replace

import pytest
import tiny_models
import torch
from published_grids import INTERVENTIONS
from toy_study import column, rows

from explainer.compare import cued_words
from explainer.compare.cued_words import LABELS, TASK
from explainer.errors import CheckpointError
from explainer.models import finetuning, interventions, scoring
from explainer_lab import lab_lessons, rule_orders
from explainer_lab.minimal_pairs import LESSONS, Lesson
from explainer_lab.rule_orders import RuleOrders

K, N, ORDERS = 8, 8, 4


@pytest.fixture(scope="module")
def setting(directory):
    return RuleOrders.of(checkpoint=directory, cue="suffix", seed=0, k=K, n_queries=N, orders=ORDERS, epochs=1, lr=1e-3)


@pytest.fixture(scope="module")
def tables(setting):
    return RuleOrders().compute(setting, progress=False).tables


def drawn(seed, noise=1.0):
    """Outputs of both rules on both sets of words: what belongs to a lesson, and noise of every order."""
    generator = torch.Generator().manual_seed(seed)
    own = {one: torch.randn(1, 6, 3, 40, generator=generator, dtype=torch.float64) for one in LESSONS}
    return {one: its + noise * torch.randn(8, *its.shape[1:], generator=generator) for one, its in own.items()}


def test_a_training_that_is_the_context_agrees_with_it_as_contexts_do():
    its = drawn(0)
    found = rule_orders._similarities(its, its)
    torch.testing.assert_close(found["own"], torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(found["other"], found["contexts"])
    torch.testing.assert_close(found["trainings"], found["contexts"])


def test_the_mean_over_orders_agrees_more_than_one_order_and_halves_tell_how_much():
    """With noise as long as what is shared, r = 1 / 2 of one order becomes 4 / 5 for four of them."""
    found = rule_orders._similarities(drawn(1), drawn(2))
    assert found["own"].abs().max() < 0.2
    assert (found["halves"] - 0.8).abs().max() < 0.1 and found["halves_other"].abs().max() < 0.2


def test_exchanging_the_rules_of_trainings_turns_the_sign():
    icl, ft = drawn(3), drawn(4)
    turned = {Lesson("BA"["AB".index(one.task)], one.words): its for one, its in ft.items()}
    torch.testing.assert_close(
        rule_orders._similarities(icl, turned)["own"], -rule_orders._similarities(icl, ft)["own"]
    )


def test_a_part_along_itself_is_the_whole_and_another_rule_is_about_other_labels():
    its, right = drawn(5), {"A": torch.tensor([0, 1, 2, 3, 0, 1]), "B": torch.tensor([1, 2, 3, 0, 1, 2])}
    found = dict(rule_orders._exchanged(its, its, right, "B", torch.Generator().manual_seed(0)))
    b, a = (its[Lesson(rule, 0)].mean(0) for rule in "BA")
    for name in ("context", "context_along_ft", "ft", "ft_along_icl"):
        torch.testing.assert_close(found[name][0], b)
    torch.testing.assert_close(found["context_other_rule"][0], a)
    of_others = (b - a)[[2]]  # of the queries with the labels 0 and 1, which are not about 2 and 3
    part = found["context_along_other_rule"][0][0] - a[0]
    assert torch.nn.functional.cosine_similarity(part, of_others[0], dim=-1).abs().min() == pytest.approx(1)
    lengths = (found["installed"][0] - found["installed_other_rule"][0]).norm(dim=-1)
    torch.testing.assert_close(lengths, (b - a).norm(dim=-1))


def test_answers_are_those_of_each_training_by_itself(tables, setting, checkpoint):
    right, empty = [], scoring.encode(checkpoint, "")
    for rule in "AB":
        data = cued_words.data("suffix", 0, rule, 2 * K, N)
        labels = torch.tensor([query.label for query in data.test])
        prompts = [TASK.prompt(query) for query in data.test]
        tokens = torch.tensor(scoring.label_tokens(checkpoint, TASK, data.test))
        for shown in (data.train[:K], data.train[K:]):
            asked = finetuning.answer_lengths(checkpoint, TASK, shown)
            for examples, seed in rule_orders._ordered(setting, shown):
                assert sorted(map(str, examples)) == sorted(map(str, shown))
                ids = finetuning.repeat_epochs(finetuning.training_ids(checkpoint, TASK, examples), 1, seed)
                (state,) = finetuning.fine_tune_runs(checkpoint, [finetuning.Run(ids, setting.lr, asked)], [K])
                with state[K].applied():
                    logits = interventions.without_context(checkpoint, empty, prompts, LABELS).run().logits
                right.append((logits.gather(1, tokens).argmax(-1) == labels).float().mean())
    assert tables["settings"]["ft_accuracy"] == pytest.approx(torch.stack(right).mean().item(), abs=0.02)


def test_every_intervention_stands_in_both_directions_and_a_whole_one_answers_as_the_other_way(tables):
    found = rows(tables["interventions"])
    assert column(tables["interventions"], "intervention") == 2 * list(INTERVENTIONS["rule_orders"])
    for name in ("context", "ft"):
        (to,) = (row for row in found if row["intervention"] == name and row["towards"] == "A")
        (away,) = (row for row in found if row["intervention"] == f"{name}_other_rule" and row["towards"] == "B")
        assert to["log_odds"] == pytest.approx(-away["log_odds"], abs=1e-5) and to["right"] == away["right_other"]


def test_weights_that_are_matched_come_nearer_to_the_context_and_the_model_keeps_its_own(setting, checkpoint):
    data, empty = cued_words.data("suffix", 0, "A", K, 6 * K + N), scoring.encode(checkpoint, "")
    context = lab_lessons.context(checkpoint, TASK, data.train)
    (*prompts,) = (TASK.prompt(query) for query in data.test)
    before = {name: W.clone() for name, W in checkpoint.model.named_parameters()}
    state = rule_orders._matched(checkpoint, context, prompts[N:], replace(setting, lr=0.01))
    assert all(torch.equal(W, before[name]) for name, W in checkpoint.model.named_parameters())
    assert not any(W.requires_grad for W in checkpoint.model.parameters()) and len(state.losses) == 6
    t = interventions.after_context(checkpoint, context, prompts[:N], LABELS).run().attention
    without = interventions.without_context(checkpoint, empty, prompts[:N], LABELS)

    def distance():
        return ((without.run().attention - t).square().sum(-1) / t.square().sum(-1)).mean()

    far = distance()
    with state.applied():
        assert distance() < 0.9 * far
    fused = tiny_models.random_checkpoint(tiny_models.CONFIGS["gpt2"])
    with pytest.raises(CheckpointError, match="without its queries"):
        rule_orders._matched(fused, context, prompts, setting)


def test_a_cache_is_tuned_by_each_line_on_all_others(setting, checkpoint):
    shown, tuning = cued_words.data("suffix", 0, "A", K, N).train, replace(setting, lr=0.05, epochs=5)
    context = lab_lessons.context(checkpoint, TASK, shown)
    before = [K_l.clone() for K_l in context.keys]
    tuned = rule_orders._tuned(checkpoint, context, shown, tuning)
    assert all(map(torch.equal, context.keys, before)) and not any(x.requires_grad for x in tuned.keys + tuned.values)
    answers = torch.tensor(scoring.distinguishing_tokens(checkpoint, TASK, shown))
    ends = scoring.context_ids(checkpoint, TASK, shown)[1]

    def loss(prefix):
        asked = interventions.after_context(checkpoint, prefix, [*map(TASK.prompt, shown)], LABELS)
        for i, line in enumerate(itertools.pairwise(ends)):
            asked.mask[i, slice(*line)] = 0
        return torch.nn.functional.cross_entropy(asked.run().logits, answers).item()

    assert loss(tuned) < loss(context) - 0.1
    alone = lab_lessons.context(checkpoint, TASK, shown[:1])
    of_one = rule_orders._tuned(checkpoint, alone, shown[:1], tuning)  # nothing but the first token is left to see
    for now, then in zip(of_one.values, alone.values, strict=True):
        assert torch.equal(now[:, :, ends[0] :], then[:, :, ends[0] :]) and not torch.equal(now, then)


def test_what_a_tuned_cache_adds_is_its_contrast_less_that_of_the_context():
    """Were all other parts equal, tuning that doubles the contrast would agree with it, and one that halves it not."""
    icl = drawn(6, noise=0.0)
    middle = {words: (icl[Lesson("A", words)] + icl[Lesson("B", words)]) / 2 for words in (0, 1)}
    for factor, sign in ((1.5, 1), (0.5, -1)):
        ft = {one: middle[one.words] + factor * (its - middle[one.words]) for one, its in icl.items()}
        assert (sign * rule_orders._similarities(icl, ft, added=True)["own"]).min() > 0.8
        assert rule_orders._similarities(icl, ft)["own"].min() > 0.8


def test_the_second_half_of_a_training_stands_beside_its_first(setting, checkpoint):
    """With one order of each lesson's lines: both states are those of the training that is stopped there."""
    halved = replace(setting, loss="second half", orders=1, epochs=2, lr=0.05)
    found, seen, runs = RuleOrders().compute(halved, progress=False).tables, {K: {}, 2 * K: {}}, []
    for lesson in LESSONS:
        data = cued_words.data("suffix", 0, lesson.task, 2 * K, N)
        shown = data.train[lesson.words * K : (lesson.words + 1) * K]
        ((examples, seed),) = rule_orders._ordered(halved, shown)
        ids = finetuning.repeat_epochs(finetuning.training_ids(checkpoint, TASK, examples), 2, seed)
        runs.append(finetuning.Run(ids, 0.05, finetuning.answer_lengths(checkpoint, TASK, shown)))
    prompts = [TASK.prompt(query) for query in data.test]
    without = interventions.without_context(checkpoint, scoring.encode(checkpoint, ""), prompts, LABELS)
    for n, of in seen.items():
        stopped = [replace(run, sequences=run.sequences[:n]) for run in runs]
        for lesson, its in zip(LESSONS, finetuning.fine_tune_runs(checkpoint, stopped, [n]), strict=True):
            with its[n].applied():
                of[lesson] = without.run().attention[None]
    expected = rule_orders._similarities(seen[K], seen[2 * K], added=True)["own"]
    torch.testing.assert_close(torch.tensor(found["layers"]["own"]).double(), expected, atol=1e-3, rtol=1e-2)
