"""The published minimal pairs: what the code of today computes, and numbers that other code finds in the tables."""

import numpy as np
import pytest
from published_grids import grids

from explainer.data import tasks
from explainer.models import loading
from explainer.results.published import results
from explainer_lab import minimal_pairs
from explainer_lab.minimal_pairs import LESSONS, MinimalPairs

SETTINGS = grids(MinimalPairs)["minimal-pairs"]


def stored(table, setting, **where):
    rows = results("minimal-pairs", table, pair=setting.pair, seed=setting.seed)
    for name, value in where.items():
        rows = rows[rows[name] == value]
    return rows


def test_there_are_ten_seeds_of_five_pairs_and_two_draws_lack_a_training():
    settings = results("minimal-pairs")
    assert settings.groupby("pair")["seed"].nunique().to_dict() == dict.fromkeys(settings["pair"].unique(), 10)
    assert settings["pair"].nunique() == 5
    assert settings["own"].isna().sum() == (settings["note"] != "").sum() == 2


def test_what_the_chapter_says_in_words():
    """Own, other words, the yardstick and the examples, computed once more from the table of layers."""
    layers = results("minimal-pairs", "layers")
    means = layers.groupby("pair")[["own", "other", "contexts", "trainings", "examples"]].mean().mean()
    own, other, C, F, examples = means
    assert own == pytest.approx(0.117, abs=2e-3) and examples == pytest.approx(0.009, abs=1e-3)
    assert own - other == pytest.approx(0.1 * own * ((1 - C) * (1 - F)) ** 0.5, abs=2e-3)
    assert own / (C * F) ** 0.5 == pytest.approx(0.25, abs=0.01)
    upper = layers[layers["layer"] >= 20].groupby("pair")[["own", "contexts", "trainings"]].mean().mean()
    assert upper["own"] == pytest.approx(0.26, abs=0.01)
    assert upper["own"] / (upper["contexts"] * upper["trainings"]) ** 0.5 == pytest.approx(0.44, abs=0.01)


def test_means_of_layers_are_those_of_the_settings_and_the_strengths():
    """Up to the four digits that are stored."""
    keys = ["pair", "seed"]
    layers, settings = results("minimal-pairs", "layers"), results("minimal-pairs").set_index(keys)
    strengths = results("minimal-pairs", "strengths").query("shots == k")
    last = strengths[(strengths["epochs"] == SETTINGS[0].epochs)].set_index(keys)
    thirds = layers[layers["layer"] >= 20].groupby(keys)
    for name in minimal_pairs.SIMILARITIES:
        by_layer = layers.groupby(keys)[name].mean()
        np.testing.assert_allclose(by_layer.loc[settings.index], settings[name], atol=1e-3)
        np.testing.assert_allclose(last[last["layers"] == "all"][name].loc[settings.index], settings[name], atol=1e-4)
        np.testing.assert_allclose(
            last[last["layers"] == "upper third"][name].loc[settings.index],
            thirds[name].mean().loc[settings.index],
            atol=1e-3,
        )


@pytest.mark.slow
@pytest.mark.weekly
def test_contexts_of_a_pair_computed_again_give_what_is_stored(monkeypatch):
    """The whole ones, without parts of them and without trainings, which the test below has."""
    setting = SETTINGS[0]
    monkeypatch.setattr(MinimalPairs.setting, "shots", [setting.k])
    checkpoint, data = loading.load(setting.checkpoint), {name: tasks.load(name) for name in setting.tasks}
    pair = minimal_pairs._Pair(setting, checkpoint, data, minimal_pairs.draw_words(checkpoint, data, setting))
    outputs, rows = minimal_pairs._every_change(pair, {lesson: {} for lesson in LESSONS})
    found = minimal_pairs.similarities(outputs, setting.k, setting.epochs)
    then = stored("strengths", setting, shots=setting.k, epochs=setting.epochs, layers="all").iloc[0]
    for name in ("contexts", "reordered"):
        assert found[name].nanmean().item() == pytest.approx(then[name], abs=0.01), name
    answers = stored("changes", setting).set_index(["kind", "strength", "lesson", "words"]).sort_index()
    for row in rows[1:]:  # the first is without a lesson
        then = answers.loc[tuple(row[name] for name in answers.index.names)]
        for name in ("right_a", "right_b"):
            assert abs(row[name] - then[name]) < 0.07, row  # one answer of sixteen may flip


@pytest.mark.slow
@pytest.mark.weekly
def test_a_whole_pair_computed_again_gives_what_is_stored():
    """Weekly only: it takes minutes. Ten epochs amplify the rounding of another processor."""
    whole = SETTINGS[0]
    tables = MinimalPairs().compute(whole, progress=False).tables
    settings = stored("settings", whole).iloc[0]
    for name in ("own", "other", "contexts", "trainings", "examples"):
        assert tables["settings"][name] == pytest.approx(settings[name], abs=0.03), name
    then = stored("interventions", whole)
    assert tables["interventions"]["intervention"] == then["intervention"].to_list()
    np.testing.assert_allclose(tables["interventions"]["log_odds"], then["log_odds"], atol=0.5)
