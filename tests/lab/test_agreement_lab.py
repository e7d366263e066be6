"""explainer_lab.agreement: changes are what the modules below make of their lessons, and pairs are told apart."""

from dataclasses import replace

import numpy as np
import pytest
import tiny_models
import torch
import toy_study
from toy_study import column

from explainer.compare import comparison, controls
from explainer.data import tasks
from explainer.data.files import published_directory, rounded
from explainer.models import finetuning, loading, scoring
from explainer.results import published
from explainer.theory import metrics
from explainer_lab.agreement import Agreement, _AgreementSetting
from explainer_lab.lab_store import Store
from explainer_lab.on_checkpoint import one_label_accuracy

K, N, LR, EPOCHS = 4, 5, 1e-2, 3


@pytest.fixture(scope="module")
def bench(directory):
    return _AgreementSetting(
        checkpoint=directory, task="capitals", seed=0, k=K, lr=LR, epochs=EPOCHS, n_queries=N, n_directions=2
    )


@pytest.fixture(scope="module")
def tables(bench):
    return rounded(Agreement().compute(bench, progress=False).tables)


@pytest.fixture(scope="module")
def below(checkpoint, bench):
    """What the modules below give: outputs after a text with the weights of the moment, the context, the training."""
    data = tasks.load("capitals")
    _, examples = controls.own(data, K, 0)
    prompts = [data.task.prompt(query) for query in comparison.draw_queries(data, bench.comparison)]
    sequences = finetuning.repeat_epochs(finetuning.training_ids(checkpoint, data.task, examples), EPOCHS, 0)

    def outputs(ids=""):
        return tiny_models.record(checkpoint, scoring.encode(checkpoint, ids), prompts).outputs

    context, _ = scoring.context_ids(checkpoint, data.task, examples)
    return outputs, context, finetuning.fine_tune(checkpoint, sequences, LR)


def test_the_main_pair_is_what_the_modules_below_give(below, tables):
    outputs, context, finetuned = below
    zsl, icl = outputs(), outputs(context)
    with finetuned.applied():
        ft = outputs()
    pair = {"a": "ICL own", "b": f"FT own {EPOCHS} {LR:g}"}
    for name in ("sim_aou", "sim_aou_tangent_uncentred", "sim_aou_residual"):
        expected = getattr(metrics, name)(zsl, icl, ft)
        assert column(tables["pairs"], name, **pair) == [pytest.approx(expected.mean().item(), abs=2e-3)]
        by_layer = column(tables["layers"], name, **pair)
        np.testing.assert_allclose(by_layer, expected.mean(0), atol=5e-3)
    change = {"change": pair["b"]}
    assert column(tables["changes"], "loss_after", **change) == [pytest.approx(finetuned.loss_after, rel=1e-3)]


def test_a_measure_can_be_computed_again_from_what_is_kept(bench, tmp_path):
    tables = Agreement().run([bench], store := Store(tmp_path), progress=False)
    kept = {name: torch.from_numpy(its).float() for name, its in store.arrays(Agreement().identity(bench)).items()}
    assert {"ZSL", *tables["changes"]["change"].to_pylist()} == set(kept)
    for pair in tables["pairs"].to_pylist():
        again = metrics.sim_aou(kept["ZSL"], kept[pair["a"]], kept[pair["b"]]).nanmean().item()
        assert again == pytest.approx(pair["sim_aou"], abs=0.02)


def test_of_a_task_with_labels_it_stores_the_columns_that_are_published(directory, bench):
    its = replace(bench, task="toy", lessons="own", n_directions=0)
    toy = toy_study.with_labels("no", "up")
    tables = Agreement(data={"toy": toy}).compute(its, progress=False).tables
    changes = tables["changes"]
    main = [column(changes, "accuracy", change=change)[0] for change in ("ICL own", f"FT own {EPOCHS} {LR:g}")]
    assert [tables["settings"][f"{state}_accuracy"] for state in ("icl", "ft")] == main
    labels = [query.label for query in comparison.draw_queries(toy, its.comparison)]
    assert tables["settings"]["one_label_accuracy"] == labels.count(0) / N
    assert {"setting", *changes} == set(published.read(published_directory() / "agreement")["changes"].column_names)


def test_one_label_is_the_most_frequent_one_of_the_split():
    toy = toy_study.with_labels("no", "up")
    halves = [[e for e in toy.test if comparison.in_split(e, split)] for split in ("selection", "report")]
    fewer, more = sorted(halves, key=len)
    labelled = tuple(replace(e, label=int(e in more), answer=toy.task.labels[e in more]) for e in toy.test)
    split = "report" if fewer == halves[1] else "selection"
    asked = [e for e in labelled if comparison.in_split(e, split)]
    assert one_label_accuracy(replace(toy, test=labelled), asked, 0.2, split) == 1
    assert one_label_accuracy(tasks.load("capitals"), asked, 0.2) == 0.2


def test_descent_at_another_order_is_nearer_than_on_another_task(tables):
    def similarity(lesson):
        return column(tables["pairs"], "sim_aou", a=f"FT own 3 {LR:g}", b=f"FT {lesson} 3 {LR:g}")[0]

    assert similarity("reordered") > max(similarity("past"), similarity("nonsense"))


def test_a_direction_is_a_random_update_as_long_as_that_of_training(below, tables):
    outputs, context, finetuned = below
    with finetuned.randomised(1).scaled(-1).applied():
        moved = outputs()
    expected = metrics.sim_aou(outputs(), outputs(context), moved).mean().item()
    stored = column(tables["directions"], "sim_aou", direction=1, sign=-1, a="ICL own")
    assert stored == [pytest.approx(expected, abs=2e-3)]


def test_a_loss_of_answers_learns_the_answers(bench, tables):
    """Of the demonstrations themselves; the loss after training is that of the first of them."""
    answers = replace(bench, lessons="own", loss="answers", n_directions=0)
    found = rounded(Agreement().compute(answers, progress=False).tables)
    checkpoint, data = loading.load(bench.checkpoint), tasks.load("capitals")
    _, examples = controls.own(data, K, 0)
    lengths = finetuning.answer_lengths(checkpoint, data.task, examples)
    ids = finetuning.training_ids(checkpoint, data.task, examples)
    prompts = [checkpoint.tokenize(data.task.prompt(example)) for example in examples]
    assert list(lengths.values()) == [len(i) - 1 - len(p) for i, p in zip(ids, prompts, strict=True)]
    assert column(found["changes"], "loss_after", kind="FT") != column(
        tables["changes"], "loss_after", kind="FT", lesson="own", rate=LR
    )
    assert answers.slug != replace(answers, loss="text").slug
