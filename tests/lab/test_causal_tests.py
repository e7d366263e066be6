"""explainer_lab.causal_tests: what is put in, taken out and combined is what names say."""

import numpy as np
import pytest
import torch
import toy_study
from published_grids import INTERVENTIONS
from toy_study import ALIKE

from explainer.compare import comparison
from explainer.data import tasks
from explainer.data.files import rounded
from explainer.models import finetuning, interventions, scoring
from explainer.theory import projections, weight_patches
from explainer_lab import causal_tests
from explainer_lab.causal_tests import CausalTests

N, K = 6, 3
OWN, FOREIGN = tasks.load("capitals"), tasks.load("plurals")


def case(directory, **changes):
    setting = {"checkpoint": directory, "task": "capitals", "seed": 0, "k": K, "n_queries": N, "n_selection": 4}
    return CausalTests.of(**setting | {"epochs": 2, "rate": 1e-4} | changes)


@pytest.fixture(scope="module")
def result(directory):
    return rounded(CausalTests().compute(case(directory), progress=False).tables)


@pytest.fixture(scope="module")
def asked(checkpoint):
    """Queries, answers, context and both passes of the case, from the modules below."""
    queries = tasks.queries(OWN, N, 0)
    ids, _ = scoring.context_ids(checkpoint, OWN.task, tasks.demonstrations(OWN, K, 0))
    prefix, prompts = scoring.encode(checkpoint, ids), [OWN.task.prompt(query) for query in queries]
    after, without = (
        f(checkpoint, prefix, prompts) for f in (interventions.after_context, interventions.without_context)
    )
    answers = [checkpoint.tokenize(f" {query.answer}")[0] for query in queries]
    return queries, answers, prefix, after, without


def of(result, intervention, column):
    return toy_study.column(result["queries"], column, intervention=intervention)


def log_probs(logits, answers):
    return rounded(logits.float().log_softmax(-1)[range(len(answers)), answers])


def near(ours, expected):
    np.testing.assert_allclose(ours, expected, atol=2e-3, rtol=1e-3)


def test_tables_have_every_intervention_for_every_query(result, asked):
    each = result["queries"]
    assert each["intervention"] == [name for name in INTERVENTIONS["causal_tests"] for _ in range(N)]
    assert each["query"] == list(range(N)) * len(INTERVENTIONS["causal_tests"])
    assert each["query_id"][:N] == [comparison.query_id(query) for query in asked[0]]
    for name in ("zsl", "icl", "ft"):
        assert result["settings"][f"{name}_accuracy"] == pytest.approx(np.mean(of(result, name, "correct")), abs=1e-4)
    assert result["layers"]["layer"] == [0, 1, 2] == list(range(result["settings"]["n_layers"]))
    assert result["settings"]["note"] == ""


def test_zsl_and_icl_are_those_of_scoring(result, asked, checkpoint):
    queries, answers, prefix, *_ = asked
    for name, seen in (("icl", prefix), ("zsl", prefix.masked(1))):
        ids = scoring.prompt_token_ids(checkpoint, prefix, [OWN.task.prompt(query) for query in queries])
        rows = [(prompt, []) for prompt in ids]
        logits = torch.cat([logits for _, logits in scoring.row_logits(checkpoint, seen, rows)])
        near(of(result, name, "log_prob"), log_probs(logits, answers))
        assert of(result, name, "correct") == (logits.argmax(-1) == torch.tensor(answers)).float().tolist()
    assert of(result, "icl", "agrees") == [1] * N


def test_labels_that_begin_alike_are_judged_where_they_part(directory, checkpoint):
    result = rounded(CausalTests(data={"toy": ALIKE}).compute(case(directory, task="toy"), progress=False).tables)
    ids, _ = scoring.context_ids(checkpoint, ALIKE.task, tasks.demonstrations(ALIKE, K, 0))
    queries = tasks.queries(ALIKE, N, 0)
    prompts = [f"{ALIKE.task.prompt(query)} un" for query in queries]
    logits = interventions.after_context(checkpoint, scoring.encode(checkpoint, ids), prompts).run().logits
    right = [checkpoint.tokenize(f" {query.answer}")[3] for query in queries]
    near(of(result, "icl", "log_prob"), log_probs(logits, right))


def test_a_query_with_its_own_patch_answers_as_in_context(result):
    assert result["settings"]["patch_error"] < 1e-3
    near(of(result, "patch_own", "log_prob"), of(result, "icl", "log_prob"))
    assert of(result, "patch_own", "agrees") == [1] * N


def test_the_patch_of_another_query_is_that_of_the_next_one(result, asked):
    _, answers, _, after, without = asked
    of_each = interventions.context_weight_patches(after, without)
    following = [*range(1, N), 0]
    moved = [
        weight_patches.Patch(
            tuple(weight_patches.LowRank(*(side[following] for side in part)) for part in patch.inputs),
            weight_patches.LowRank(*(side[following] for side in patch.output)),
        )
        for patch in of_each
    ]
    logits = without.run(interventions.with_weight_patches(without.layers, moved, torch.eye(N))).logits
    near(of(result, "patch_other", "log_prob"), log_probs(logits, answers))
    copied = logits.argmax(-1) == torch.tensor(answers)[following]
    assert result["settings"]["patch_other_copied"] == pytest.approx(copied.float().mean().item(), abs=1e-3)


@pytest.fixture(scope="module")
def finetuned(checkpoint, directory):
    sequences = finetuning.training_ids(checkpoint, OWN.task, tasks.demonstrations(OWN, K, 0))
    return finetuning.fine_tune(checkpoint, finetuning.repeat_epochs(sequences, 2, seed=0), case(directory).lr)


def test_ft_answers_without_context(result, asked, finetuned):
    _, answers, _, _, without = asked
    with finetuned.applied():
        ft = without.run()
    near(of(result, "ft", "log_prob"), log_probs(ft.logits, answers))
    length = (ft.attention - without.run().attention).norm(dim=-1).mean(0)
    np.testing.assert_allclose(result["layers"]["ft_norm"], length, rtol=1e-2)


def test_the_task_vector_is_the_mean_change_of_queries_that_are_not_reported(result, asked, checkpoint):
    _, answers, prefix, _, without = asked
    prompts = [OWN.task.prompt(query) for query in tasks.queries(OWN, N + 4, 0)[N:]]
    streams = [
        f(checkpoint, prefix, prompts).run().stream
        for f in (interventions.after_context, interventions.without_context)
    ]
    change = streams[0] - streams[1]
    layer = result["settings"]["task_vector_layer"]
    vector = change.mean(0)[layer].expand(N, -1)
    logits = without.run([interventions.at_last(without.layers[layer].block, vector.add)]).logits
    near(of(result, "task_vector", "log_prob"), log_probs(logits, answers))
    accuracy, log_prob = (result["layers"][f"task_vector_{name}"] for name in ("accuracy", "log_prob"))
    assert (accuracy[layer], log_prob[layer]) == max(zip(accuracy, log_prob, strict=True))


def test_gradient_descent_is_a_combination_of_its_own_steps_and_little_else_is(result):
    settings = result["settings"]
    assert settings["r2_descent_own"] > 0.99
    assert settings["r2_descent_equal"] == pytest.approx(settings["r2_descent_own"], abs=0.02)
    assert max(settings["r2_icl_own"], settings["r2_descent_random"]) < settings["r2_descent_own"]
    for column, value in settings.items():
        if column.startswith("r2_"):
            assert value == pytest.approx(np.mean(result["layers"][column]), rel=2e-3, abs=1e-3)


def test_rates_are_not_fitted_to_the_queries_that_they_are_judged_on():
    """Effects that are noise explain nothing of noise on other queries; fitted to the same, they would explain some."""
    generator = torch.Generator().manual_seed(0)
    effects = torch.randn(8, 5, 1, 10, generator=generator)
    change = torch.randn(8, 1, 10, generator=generator)
    same = projections._combine(effects, projections.least_squares_rates(effects, change))
    assert projections.sums_of_squares(change, same).explained > 0.02
    assert projections.sums_of_squares(change, projections.cross_fitted(change, effects)).explained < 0
    assert torch.equal(causal_tests._mean_of_other_half(change)[0], change[1::2].mean(0))
