"""The rival: vectors and heads are what they say, and are chosen where nothing is reported."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from toy_study import DATA, column

from explainer.compare import controls
from explainer.data import tasks
from explainer.models import architectures, circuits, hooks, interventions, scoring
from explainer_lab import lab_lessons, rival
from explainer_lab.rival import Rival

K, N, M = 3, 5, 4


def setting(directory="model", **changes):
    usual = {"checkpoint": directory, "task": "plurals", "seed": 0, "k": K, "n_queries": N, "n_selection": M}
    return Rival.of(**usual | changes)


OWN, FOREIGN = tasks.load("plurals"), tasks.load("capitals")


@pytest.fixture(scope="module")
def tables(directory):
    return Rival().compute(setting(directory), progress=False).tables


@pytest.fixture(scope="module")
def found(directory, checkpoint):
    return rival._Rival.of(checkpoint, OWN, FOREIGN, setting(directory))


def log_probs(tables, name):
    return column(tables["queries"], "log_prob", intervention=name)


def of(found, logits):
    return logits.float().log_softmax(-1)[range(N), found.asked.answers].tolist()


def test_a_setting_has_the_shares_of_right_answers(tables):
    for name in ("zsl", "icl"):
        right = column(tables["queries"], "correct", intervention=name)
        assert tables["settings"][f"{name}_accuracy"] == pytest.approx(np.mean(right))


def test_selection_queries_are_not_reported(found):
    reported = [query.fields["word"] for query in found.asked.queries]
    own, shuffled, foreign = (found.selected[name].queries for name in ("", "_shuffled", "_foreign"))
    assert own == shuffled and not {q.fields["word"] for q in own} & set(reported)
    assert foreign == tasks.queries(FOREIGN, N + M, 0)[N:]
    shown = {e.fields["word"] for _, examples in found.lessons.values() for e in examples}
    assert not shown & set(reported)
    assert found.lessons["_shuffled"] == controls.LESSONS["shuffled"](OWN, K, 0)


def test_heads_record_what_enters_the_output_projection_and_add_up_to_attention(found):
    outputs, attention = found.asked.after.heads(), found.asked.icl.attention
    added = []
    for i, layer in enumerate(found.layers):
        bias = layer.output.forward(torch.zeros_like(outputs[:, i].flatten(1)))
        added.append(rival._output_projection(layer, outputs[:, i]).sum(-2) + bias)
    torch.testing.assert_close(torch.stack(added, 1), attention, atol=1e-5, rtol=1e-4)


def test_one_head_is_replaced_at_the_last_token_and_no_other(found, checkpoint):
    """The effect, computed once more by changing the weights' input with a hook of its own."""
    layer, head = 1, 2
    right, shuffled = found.selected[""], found.lessons["_shuffled"]
    mean = right.after.heads().mean(0)[layer, head]
    n_heads = architectures.architecture(checkpoint.model).n_heads
    context = lab_lessons.context(checkpoint, *shuffled)
    queries = right.queries[: rival._N_EFFECTS]
    answers = scoring.distinguishing_tokens(checkpoint, OWN.task, queries)
    change = []
    for query, answer in zip(queries, answers, strict=True):
        prefix = scoring.encode(checkpoint, context.ids)
        ids = scoring.prompt_token_ids(checkpoint, prefix, [OWN.task.prompt(query)])[0]

        def replaced(x):
            x = x.unflatten(-1, (n_heads, -1)).clone()
            x[:, -1, head] = mean
            return x.flatten(-2)

        whole = checkpoint.row([*context.ids, *ids])
        with torch.no_grad():
            before = checkpoint.model(input_ids=whole).logits[0, -1].log_softmax(-1)[answer]
            with hooks.inputs([(found.layers[layer].output, replaced)]):
                after = checkpoint.model(input_ids=whole).logits[0, -1].log_softmax(-1)[answer]
        change.append((after - before).item())
    assert rival._effects(found, "")[layer, head].item() == pytest.approx(np.mean(change), abs=1e-4)


def test_the_task_vector_is_the_mean_change_and_its_layer_that_which_is_best_for_others(tables, found):
    change = found.selected[""].stream_change
    accuracy = tables["layers"]["vector_accuracy"]
    layer = tables["settings"]["vector_layer"]
    assert accuracy[layer] == max(accuracy)
    for name in ("", "_shuffled", "_foreign"):
        vector = found.selected[name].stream_change.mean(0)[layer].expand(N, -1)
        logits = found.asked.without.run([interventions.at_last(found.layers[layer].block, vector.add)]).logits
        assert log_probs(tables, f"vector{name}") == pytest.approx(of(found, logits), abs=1e-3), name
    others = torch.stack([torch.cat([change[:i], change[i + 1 :]]).mean(0) for i in range(M)])
    torch.testing.assert_close(lab_lessons.leave_one_out_mean(change), others)


def test_the_vector_of_heads_is_the_sum_of_their_parts(tables, found, checkpoint):
    heads = circuits.strongest_heads(torch.tensor(tables["heads"]["effect"]).view(len(found.layers), -1), 2)
    selected = found.selected[""]
    change, vector = (selected.after.heads() - selected.without.heads()).mean(0), 0
    for layer, head in heads:
        alone, output = torch.zeros_like(change[layer]), found.layers[layer].output
        alone[head] = change[layer, head]
        vector = vector + output.forward(alone.flatten()) - output.forward(torch.zeros_like(alone.flatten()))
    at = tables["settings"]["heads_layer"]
    edits = [interventions.at_last(found.layers[at].block, vector.expand(N, -1).add)]
    assert log_probs(tables, "heads") == pytest.approx(of(found, found.asked.without.run(edits).logits), abs=1e-3)


def test_heads_that_are_off_give_their_mean_output_at_every_token(tables, found, checkpoint):
    effects = torch.tensor(tables["heads"]["effect"]).view(len(found.layers), -1)
    prompts = [OWN.task.prompt(query) for query in found.asked.queries]
    contexts = [scoring.context_ids(checkpoint, *lesson)[0] for lesson in found.lessons.values()]
    with circuits.ablate_heads(
        checkpoint, circuits.strongest_heads(effects, 2), circuits.mean_head_outputs(checkpoint, contexts)
    ):
        prefix = lab_lessons.context(checkpoint, *found.lessons[""])
        logits = interventions.after_context(checkpoint, prefix, prompts).run().logits
    assert log_probs(tables, "off") == pytest.approx(of(found, logits), abs=1e-3)


def test_random_heads_are_of_the_same_layers(found, directory):
    scores = torch.arange(8.0).view(2, 4)
    heads = rival._Heads(scores, -scores, scores)
    assert heads.m == 1 and heads.effective == [(1, 3)] == heads.induction
    off = heads.off(setting(directory))
    assert off["off_no_induction"] == off["off_induction_alone"] == [[]]
    assert all(layer == 1 and head != 3 for ((layer, head),) in off["off_random"])
    assert off["off_foreign"] == [[(0, 0)]]


def test_random_heads_match_half_of_a_layer_at_most():
    """Of three chosen heads of a layer of four the first two are matched; for all three there are not enough others."""
    drawn = rival._random_of_the_same_layers([(0, 1), (0, 2), (1, 0), (1, 3), (1, 2)], 4, seed=0)
    assert [layer for layer, _ in drawn] == [0, 0, 1, 1]
    assert not {(0, 1), (0, 2), (1, 0), (1, 3)} & set(drawn)


def test_a_sum_of_single_effects_is_found_where_it_is_one(monkeypatch, found):
    """Where the change by all is twice the sum of those by single ones, R^2 is 1 with one rate."""
    generator = torch.Generator().manual_seed(0)
    effects = torch.randn(2 * K, M, 2, 8, generator=generator)
    given = iter(effects)

    monkeypatch.setattr(rival.PairedPasses, "of", lambda *_: SimpleNamespace(stream_change=next(given)))
    whole = SimpleNamespace(queries=found.selected[""].queries, stream_change=2 * effects[:K].sum(0))
    put_in, layers = rival._singles(replace(found, selected={"": whole}), at=1)
    assert layers["r2_one_rate"][1] == pytest.approx(1) and layers["cosine_of_sum"][1] == pytest.approx(1)
    assert layers["r2_one_rate_foreign"][1] < 0.9
    layer, (vector,) = put_in["vector_of_singles"]
    assert layer == 1
    torch.testing.assert_close(vector, 2 * effects[:K].sum(0).mean(0)[1])


@pytest.mark.parametrize("task", ["suffix", "toy"])
def test_labels_are_also_judged_among_themselves(directory, checkpoint, task):
    its = setting(directory, task=task, k=4, n_queries=8)
    experiment = Rival(data={"toy": DATA})
    own, foreign = experiment._both(its)
    tables = experiment.compute(its, progress=False).tables
    for name in ("zsl", "icl", "vector_foreign"):
        right = column(tables["queries"], "right_label", intervention=name)
        assert len(right) == 8 and all(0 <= one <= 1 for one in right)
    found = rival._Rival.of(checkpoint, own, foreign, its)
    queries = found.asked.queries
    tokens = [
        scoring.distinguishing_tokens(checkpoint, own.task, [replace(query, answer=label) for query in queries])
        for label in own.task.labels
    ]
    best = found.asked.icl.logits[torch.arange(8)[:, None], torch.tensor(tokens).T].argmax(1).tolist()
    first = column(tables["queries"], "right_label", intervention="icl")
    assert first == [float(one == query.label) for one, query in zip(best, queries, strict=True)]


def test_the_other_rule_stands_for_another_task(directory):
    own, foreign = Rival()._both(setting(directory, task="suffix", k=4, n_queries=4, n_selection=4))
    for a, b in zip((*own.train, *own.test), (*foreign.train, *foreign.test), strict=True):
        assert a.fields == b.fields and a.answer != b.answer
    assert len(own.train) == 4 and len(own.test) == 8
