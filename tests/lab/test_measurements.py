"""Few shots, head circuits and contradictions: what their commands write, and that the model still gives it."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import ROOT

from explainer import compare
from explainer.compare.few_shot_comparison import SWEEPS
from explainer.compare.head_circuit_comparison import CUTS, SETS, answer_queries
from explainer.data import tasks
from explainer.data.files import published_json
from explainer.data.tasks import Example
from explainer.models import circuits, loading
from explainer_lab import cli, contradictions, few_shots, head_circuits

WORDS = [name.replace("-", "_") for name in cli._MEASUREMENTS]


@pytest.mark.parametrize("name", WORDS)
def test_a_command_measures_the_starter_checkpoint_and_writes_what_is_published(name, tmp_path, monkeypatch):
    loaded, given = [], published_json(name)
    monkeypatch.setattr(loading, "load", lambda *args, **how: loaded.append((args, how)) or "the model")
    monkeypatch.setattr(f"explainer_lab.{name}.measure", lambda model: given if model == "the model" else None)
    assert cli.main([name.replace("_", "-"), "--publish", str(tmp_path / "mine")]) == 0
    assert loaded == [((loading.STARTER,), {"device": "cpu"})]
    published = ROOT / "src" / "explainer" / "published" / f"{name}.json"
    assert (tmp_path / "mine" / f"{name}.json").read_bytes() == published.read_bytes()


def test_few_shots_are_measured_to_four_places_as_they_are_read(monkeypatch):
    def answers(model, data, ks, seed, n):
        for one in compare.few_shot_comparison.stored(data.task.name):
            assert one.k in ks and len(one.prompts) == n
            if one.seed == seed:
                yield one if one.log_probs is None else replace(one, log_probs=one.log_probs + 4e-5)

    monkeypatch.setattr(few_shots, "_answers", answers)
    assert few_shots.measure("the model") == published_json("few_shots")


def test_contradictions_are_measured_to_four_places_as_they_are_read(monkeypatch):
    stored = compare.contradiction_comparison.stored()
    monkeypatch.setattr(contradictions, "log_probs", lambda model, grouping, i: stored[grouping][i] + 4e-5)
    assert contradictions.measure("the model") == published_json("contradictions")


def test_shuffled_answers_are_the_same_answers_and_none_stays():
    examples = tasks.demonstrations(tasks.load("capitals"), 8, 0)
    for seed in range(5):
        mixed = head_circuits._shuffled_answers(examples, seed)
        assert [one.fields for one in mixed] == [one.fields for one in examples]
        assert sorted(one.answer for one in mixed) == sorted(one.answer for one in examples)
        assert all(a.answer != b.answer for a, b in zip(mixed, examples, strict=True))
    assert mixed == head_circuits._shuffled_answers(examples, 4)


@pytest.mark.parametrize(("answers", "mixed"), [("xy", "yx"), ("xxyy", "yyxx")])
def test_answers_of_which_one_is_half_have_one_order_in_which_none_stays(answers, mixed):
    found = head_circuits._shuffled_answers([Example({"word": a}, a) for a in answers], 0)
    assert "".join(one.answer for one in found) == mixed


def test_every_condition_of_head_circuits_is_asked_as_it_is_named(checkpoint, monkeypatch):
    asked = {kind: [(i, i), (i, i + 1)] for i, kind in enumerate(compare.head_circuit_comparison.KINDS)}
    monkeypatch.setattr(head_circuits, "_strongest_heads", lambda _: asked)
    monkeypatch.setattr(
        head_circuits, "answer_queries", lambda _, bench, cut=None, off=(), means=None: (bench, cut, off, means)
    )
    found = head_circuits._answers(checkpoint, "plurals")
    assert set(found) == set(compare.head_circuit_comparison.stored("plurals").answers)
    whole, mixed = found["whole"][0], head_circuits._shuffled(found["whole"][0])
    for name, (bench, cut, off, means) in found.items():
        demonstrations = ((),) * len(SETS) if name.endswith("alone") else whole.demonstrations
        assert bench.demonstrations == (mixed.demonstrations if "shuffled" in name else demonstrations), name
        assert cut == {"cut, shuffled": CUTS["input"], **{f"cut: {way}": its for way, its in CUTS.items()}}.get(name)
        way, _, kind = name.partition(": ")
        heads = asked.get(kind.partition(",")[0], [])
        if way == "random":
            assert not {*off} & {*heads} and [layer for layer, _ in off] == [layer for layer, _ in heads]
        else:
            assert [*off] == heads
        assert (means is None) == (not off)


# The model still gives what is stored. Logits move in the last digits from processor to processor.


@pytest.fixture(scope="module")
def starter():
    return loading.load(loading.STARTER, device="cpu")


@pytest.mark.slow
@pytest.mark.weekly  # what scores is tested in `test_scoring.py`
def test_a_sample_of_contradictions_is_computed_again(starter, monkeypatch):
    monkeypatch.setattr(contradictions, "N_SETS", 1)
    for grouping, found in contradictions.measure(starter).items():
        np.testing.assert_allclose(found, compare.contradiction_comparison.stored()[grouping][:1], atol=2e-2)


@pytest.mark.slow
@pytest.mark.weekly  # as above
def test_a_sample_of_few_shots_is_computed_again(starter, monkeypatch):
    smaller = {"plurals": replace(SWEEPS["plurals"], ks=(0, 1, 2, 4), seeds=(1,)),
               "reviews": replace(SWEEPS["reviews"], ks=(0, 2), seeds=(1,))}  # fmt: skip
    monkeypatch.setattr(few_shots, "SWEEPS", smaller)
    for task, found in few_shots.measure(starter).items():
        stored = {(row["seed"], row["k"]): row for row in published_json("few_shots")[task]}
        for row in found:
            before = stored[row["seed"], row["k"]]
            if "correct" in row:  # an answer on the edge may change
                assert np.not_equal(row["correct"], before["correct"]).sum() <= 1
            else:
                np.testing.assert_allclose(row["log_probs"], before["log_probs"], atol=2e-2)


@pytest.mark.slow
def test_a_sample_of_head_circuits_is_computed_again(starter):
    one, every = (compare.head_circuit_comparison.Bench.draw("plurals", sets) for sets in ([0], SETS))
    alone = compare.head_circuit_comparison.Bench.draw("plurals", [0], demonstrations=0)
    off = head_circuits._strongest_heads(starter)["answer"]
    means = circuits.mean_head_outputs(starter, [columns.ids for columns in every.columns(starter)])
    for name, found in (
        ("cut: input", answer_queries(starter, one, CUTS["input"])),
        ("shuffled", answer_queries(starter, head_circuits._shuffled(one))),
        ("off: answer, alone", answer_queries(starter, alone, off=off, means=means)),
    ):
        stored = compare.head_circuit_comparison.stored("plurals").answers[name][0]
        np.testing.assert_allclose(found[0].log_probs, stored.log_probs, atol=2e-2)
