"""The comparison of small models that only learn in context: what differs from the comparison, and what does not."""

import numpy as np
import pytest

from explainer.compare import comparison, controls
from explainer.data import tasks
from explainer_lab import llama_training, trained_control, training_words
from explainer_lab.llama_training import LlamaSetting
from explainer_lab.trained_control import TrainedControl

TINY = LlamaSetting(n_examples=4, layers=2, width=16, heads=2, inner=16, steps=4, batch=4)


@pytest.fixture(autouse=True)
def tiny(monkeypatch, tmp_path):
    monkeypatch.setenv("EXPLAINER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(trained_control._MODELS, "tiny", TINY)
    for module in (llama_training, trained_control):
        monkeypatch.setattr(module, "EVERY", 2)


def setting(**values):
    return TrainedControl.of(**{"checkpoint": "tiny", "seed": 0, "lr": 0.1, "n_queries": 6} | values)


def data_of(seed):
    return training_words.data(training_words.directions(seed)[0])


def demonstrations(one):
    asked = one.changes.context, one.changes.training
    return (examples(data_of(one.seed), one.k, one.seed)[1] for examples in asked)


def test_the_numbers_are_those_of_the_comparison():
    experiment, one = TrainedControl(), setting()
    tables = experiment.compute(one, progress=False).tables
    plain = comparison.ComparisonSetting(one.checkpoint, one.task, one.seed, one.k, one.lr, one.n_queries)
    checkpoint = experiment._load(one, progress=False)
    expected = comparison.run_comparison(comparison.prepare(checkpoint, data_of(0), plain), plain)
    assert set(expected) == set(tables) - {"swaps"}
    assert set(tables["layers"]) - set(expected["layers"]) == {"sim_aou_icl"}
    for name, values in expected["layers"].items():
        np.testing.assert_array_equal(tables["layers"][name], values, err_msg=name)
    assert set(tables["queries"]) == set(expected["queries"])


def test_foreign_demonstrations_have_the_same_words_and_answers_of_another_direction():
    differing = []
    for seed in range(20):
        context, training = demonstrations(setting(control="foreign-context", seed=seed, k=4))
        assert [e.fields for e in context] == [e.fields for e in training]
        assert training == tasks.demonstrations(data_of(seed), 4, seed)
        differing += [a.label != b.label for a, b in zip(context, training, strict=True)]
    assert 0.3 < np.mean(differing) < 0.7


def test_two_lessons_on_one_task_are_compared_on_words_that_neither_has():
    one, experiment = setting(), TrainedControl()
    own, _ = demonstrations(one)
    data = data_of(one.seed)
    other, asked = controls.LESSONS["other"](data, one.k, one.seed)[1], comparison.draw_queries(data, one)
    words = [example.fields["word"] for example in (*own, *other, *asked)]
    assert len(set(words)) == 2 * one.k + one.n_queries
    tables = experiment.compute(one, progress=False).tables
    in_layers, mean = (tables[name]["sim_aou_icl"] for name in ("layers", "settings"))
    assert mean == pytest.approx(in_layers.mean().item()) and (in_layers.abs() < 1).all()


def test_both_sides_are_swapped_where_nothing_is_changed():
    one, experiment = setting(), TrainedControl()
    tables = experiment.compute(one, progress=False).tables
    swaps = {name: np.array(values) for name, values in tables["swaps"].items()}
    np.testing.assert_allclose(swaps["own"], tables["layers"]["sim_aou"], atol=1e-5)
    np.testing.assert_allclose(swaps["contexts"], tables["layers"]["sim_aou_icl"], atol=1e-5)
    for control, column in (("other-training", "training_other"), ("reordered-context", "context_reordered")):
        changed = experiment.compute(setting(control=control), progress=False).tables
        np.testing.assert_allclose(swaps[column], changed["layers"]["sim_aou"], atol=1e-5)
        assert "swaps" not in changed
    assert abs(swaps["own"] - swaps["training_other"]).max() > 1e-3
