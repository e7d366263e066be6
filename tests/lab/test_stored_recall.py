"""The published runs of associative recall: what the code of today computes, and what a training must reach."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from published_grids import grids

from explainer.data import associative_recall
from explainer.models import fast_weight_model
from explainer.models.fast_weight_model import RULES
from explainer.results.published import results
from explainer_lab import recall
from explainer_lab.recall import Recall

GRID = {run: name for name in ("recall", "recall-ascent") for run in grids(Recall)[name]}
RUNS = [*GRID]
SHARES = ["kept", "revised", "stale"]
WEEKLY = pytest.mark.weekly


def at_end(curve):
    return curve[curve["step"] == curve["steps"]]


def published(run, table="curve"):
    return results(GRID[run], table, **{f.name: getattr(run, f.name) for f in fields(run)})


def test_rates_are_those_that_the_selection_chose():
    tried = pd.concat([results("recall-rates"), results("recall-ascent-rates")])
    accuracy = tried.groupby(["rule", "learning_rate"])["accuracy"].mean()
    assert {rule: accuracy[rule].idxmax() for rule in tried["rule"].unique()} == recall.CHOSEN
    assert not set(tried["seed"]) & {run.seed for run in RUNS}


def test_shares_are_shares_and_right_answers_are_not_stale():
    curve = pd.concat(results(name, "curve") for name in ("recall", "recall-ascent"))
    assert curve[SHARES].to_numpy().min() >= 0 and (curve["revised"] + curve["stale"]).max() < 1.001  # rounded


def begun(rule):
    """The snapshots of a stored run, and the run."""
    run = next(one for one in RUNS if one.rule == rule)
    return run, fast_weight_model.train(run, associative_recall.N_KEYS, progress=False)


@pytest.mark.parametrize("rule", RULES)
def test_a_run_begins_with_the_model_with_which_it_did(rule):
    """Before the training, to the digits that are kept."""
    run, snapshots = begun(rule)
    model, first = next(snapshots).model, published(run).query("step == 0")
    for (_, row), n in zip(first.iterrows(), associative_recall.N_KEYS, strict=True):
        again = recall._outcomes(model, associative_recall.test_sequences(n))
        np.testing.assert_allclose([again[name] for name in SHARES], row[SHARES].astype(float), atol=5e-3)


@pytest.mark.parametrize("rule", [r if r == "delta-momentum" else pytest.param(r, marks=WEEKLY) for r in RULES])
def test_the_first_steps_of_a_run_lower_the_loss_as_they_did(rule):
    """Within the rounding of a processor."""
    run, snapshots = begun(rule)
    _, first = next(snapshots), next(snapshots)
    assert np.mean(first.losses) == pytest.approx(published(run, "settings")["losses"].item()[0], abs=0.02)


@pytest.mark.slow
@pytest.mark.weekly
def test_a_training_comes_out_as_it_did():
    """Another processor trains to other weights, and as good ones."""
    run = next(one for one in RUNS if one.rule == "delta")
    *_, (_, model, _) = fast_weight_model.train(run, associative_recall.N_KEYS, progress=False)
    stored = at_end(published(run)).set_index("n_keys")
    for n in associative_recall.N_KEYS:
        again = recall._outcomes(model, associative_recall.test_sequences(n))
        np.testing.assert_allclose([again[name] for name in SHARES], stored.loc[n, SHARES].astype(float), atol=0.05)


def test_ascent_takes_tiny_steps_and_is_at_the_floor_of_linear_attention():
    """256 sequences leave some noise, and the learned rate began at one half."""
    last = at_end(results("recall-ascent", "curve"))
    assert last["revised"].max() < 0.5 + 0.05
    assert last["rate"].max() < 0.05


def test_linear_attention_is_at_its_floor():
    """It cannot know which value is newer; 256 sequences leave some noise."""
    last = at_end(results("recall", "curve", rule="linear"))
    assert last["revised"].max() < 0.5 + 0.05
