"""The published tables: what other code finds in them, what was chosen and where, and what a training must reach."""

import numpy as np
import pandas as pd
import pytest
from published_grids import INTERVENTIONS, grids

from explainer.results import agreement_results
from explainer.results.agreement_results import UpdateFilter
from explainer.results.published import results
from explainer.results.thirds import layer_thirds
from explainer_lab import lab_lessons, language_models, minimal_pairs, recall, rival, shared_part
from explainer_lab.causal_tests import CausalTests
from explainer_lab.language_models import LanguageModels
from explainer_lab.minimal_pairs import MinimalPairs
from explainer_lab.recall import Recall
from explainer_lab.reversal import Reversal

PAIR = ["a_kind", "a_lesson", "b_kind", "b_lesson"]
DRAWS = grids(Reversal)["reversal"]
RUNS = [run for name in ("recall", "recall-ascent") for run in grids(Recall)[name]]
SHARES = ["kept", "revised", "stale"]

UPPER = layer_thirds(30)["upper third"].start


def test_every_pair_is_of_two_changes_of_its_setting():
    every = results("agreement", "changes").groupby("setting")["change"].agg(set)
    for setting, of in results("agreement", "pairs").groupby("setting"):
        assert set(of["a"]) | set(of["b"]) <= every[setting]


@pytest.mark.parametrize("grid", grids(CausalTests))
def test_a_query_with_its_own_patch_answers_as_in_context(grid):
    """Up to the rounding of float32 in logits of some tens."""
    assert results(grid)["patch_error"].max() < 1e-3
    assert results(grid, "queries").query("intervention == 'patch_own'")["agrees"].all()


def test_as_many_heads_are_chosen_as_today():
    assert set(results("rival")["n_heads"]) == {rival.N_HEADS}


@pytest.mark.parametrize("grid", ["rival", "shared-part"])
def test_as_many_random_directions_are_drawn_as_today(grid):
    """What is stored is the share of them after which an answer is right."""
    queries = results(grid, "queries")
    right = queries[queries["intervention"].str.contains("random")]["correct"].astype(float) * lab_lessons.N_RANDOM
    np.testing.assert_allclose(right, right.round(), atol=1e-3)


# Minimal pairs.


def test_there_are_ten_seeds_of_five_pairs_and_two_draws_lack_a_training():
    settings = results("minimal-pairs")
    assert settings.groupby("pair")["seed"].nunique().to_dict() == dict.fromkeys(settings["pair"].unique(), 10)
    assert settings["pair"].nunique() == 5
    assert settings["own"].isna().sum() == (settings["note"] != "").sum() == 2


def test_what_the_chapter_says_of_minimal_pairs():
    """Own, other words, the yardstick and the examples, computed once more from the table of layers."""
    layers = results("minimal-pairs", "layers")
    means = layers.groupby("pair")[["own", "other", "contexts", "trainings", "examples"]].mean().mean()
    own, other, C, F, examples = means
    assert own == pytest.approx(0.117, abs=2e-3) and examples == pytest.approx(0.009, abs=1e-3)
    assert own - other == pytest.approx(0.1 * own * ((1 - C) * (1 - F)) ** 0.5, abs=2e-3)
    assert own / (C * F) ** 0.5 == pytest.approx(0.25, abs=0.01)
    upper = layers[layers["layer"] >= UPPER].groupby("pair")[["own", "contexts", "trainings"]].mean().mean()
    assert upper["own"] == pytest.approx(0.26, abs=0.01)
    assert upper["own"] / (upper["contexts"] * upper["trainings"]) ** 0.5 == pytest.approx(0.44, abs=0.01)


def test_means_of_layers_are_those_of_the_settings_and_the_strengths():
    """Up to the four digits that are stored."""
    keys, epochs = ["pair", "seed"], grids(MinimalPairs)["minimal-pairs"][0].epochs
    layers, settings = results("minimal-pairs", "layers"), results("minimal-pairs").set_index(keys)
    strengths = results("minimal-pairs", "strengths").query("shots == k")
    last = strengths[strengths["epochs"] == epochs].set_index(keys)
    thirds = layers[layers["layer"] >= UPPER].groupby(keys)
    for name in minimal_pairs.SIMILARITIES:
        for part, within, expected in (
            (layers.groupby(keys)[name].mean(), 1e-3, settings[name]),
            (last[last["layers"] == "all"][name], 1e-4, settings[name]),
            (last[last["layers"] == "upper third"][name], 1e-3, thirds[name].mean().loc[settings.index]),
        ):
            np.testing.assert_allclose(part.loc[settings.index], expected, atol=within)


# Shared part.


def test_of_a_shared_part_no_more_is_missing_than_trainings_on_other_examples():
    for grid in grids(shared_part.SharedPart):
        assert all(note == "" or note.endswith("on other") for note in results(grid)["note"]), grid
    assert set(results("shared-part", "queries")["intervention"]) == set(INTERVENTIONS["shared_part"])


def test_similarities_are_those_of_the_agreement():
    """The same demonstrations, queries and trainings, computed side by side with others."""
    ours = results("shared-part", "pairs")
    own = ours[(ours["a_lesson"] == "own") & (ours["b_kind"] == "FT") & (ours["b_lesson"] == "own")]
    theirs = agreement_results.pairs_between(
        agreement_results.pairs("agreement"), UpdateFilter("ICL"), UpdateFilter("FT", epochs=10)
    )
    keys = ["task", "seed"]
    both = own.set_index(keys)["sim_aou"].to_frame("ours").join(theirs.set_index(keys)["sim_aou"], how="inner")
    assert len(both) == len(own)
    apart = (both["ours"] - both["sim_aou"]).abs()
    assert (apart < 0.02).sum() >= len(apart) - 1 and apart.max() < 0.06  # on past tense trainings are near divergence


def test_answers_of_fine_tuning_are_those_of_the_agreement():
    """There whole answers count, here their first tokens, so that these are at least as many."""
    changes = results("shared-part", "changes").query("kind == 'FT' and lesson == 'own'").set_index(["task", "seed"])
    first = results("shared-part", "queries").query("intervention == 'ft'").groupby(["task", "seed"])["correct"].mean()
    assert (first - changes["accuracy"]).min() > -1e-4  # stored with four digits


def test_means_of_layers_are_those_of_the_pairs():
    pairs = results("shared-part", "pairs").set_index(["task", "seed", *PAIR])["sim_aou"]
    means = results("shared-part", "layers").groupby(["task", "seed"])[list(shared_part.CORNERS)].mean()
    known = set(pairs.index.get_level_values("a_lesson")) & set(pairs.index.get_level_values("b_lesson"))
    for column, (a, b) in shared_part.CORNERS.items():
        if {a[1], b[1]} <= known:  # else a mean over several tasks
            of = pairs.xs((*a, *b), level=PAIR)
            np.testing.assert_allclose(means[column].loc[of.index], of, atol=1e-3)


# Reversal.


def test_rate_and_epochs_were_chosen_on_another_draw():
    """By what the trainings answer after the lesson "both", in both directions; one that diverged answers nothing."""
    tried = results("choose-reversal").fillna({"ft_both_forward": 0, "ft_both_backward": 0})
    best = tried.loc[(tried["ft_both_forward"] + tried["ft_both_backward"]).idxmax()]
    assert {(draw.lr, draw.epochs) for draw in DRAWS} == {(best["lr"], best["epochs"])}
    assert not set(tried["seed"]) & {draw.seed for draw in DRAWS}


def test_shares_of_settings_are_means_of_answers():
    answers, settings = results("reversal", "answers"), results("reversal").set_index("seed")
    for kind, lesson, direction in [("icl", "both", "backward"), ("ft", "forward", "forward")]:
        of = answers.query("kind == @kind and lesson == @lesson and direction == @direction")
        np.testing.assert_allclose(of.groupby("seed")["correct"].mean(), settings[f"{kind}_{lesson}_{direction}"])


# Trainings.


def test_rates_are_those_that_the_selection_chose():
    tried = pd.concat([results("recall-rates"), results("recall-ascent-rates")])
    accuracy = tried.groupby(["rule", "learning_rate"])["accuracy"].mean()
    assert {rule: accuracy[rule].idxmax() for rule in tried["rule"].unique()} == recall.CHOSEN
    assert not set(tried["seed"]) & {run.seed for run in RUNS}


def test_shares_are_shares_and_right_answers_are_not_stale():
    curve = pd.concat(results(name, "curve") for name in ("recall", "recall-ascent"))
    assert curve[SHARES].to_numpy().min() >= 0 and (curve["revised"] + curve["stale"]).max() < 1.001  # rounded


def test_linear_attention_and_ascent_are_at_the_floor():
    """The first cannot know which value is newer, the second takes tiny steps; 256 sequences leave some noise."""
    curves = results("recall", "curve", rule="linear"), results("recall-ascent", "curve")
    linear, ascent = (curve.query("step == steps") for curve in curves)
    assert max(linear["revised"].max(), ascent["revised"].max()) < 0.5 + 0.05
    assert ascent["rate"].max() < 0.05  # learned, it began at one half


@pytest.mark.parametrize("grid", grids(LanguageModels))
def test_losses_are_numbers_and_sizes_are_those_of_today(grid):
    curve, blocks = results(grid, "curve"), results(grid, "blocks")
    assert np.isfinite(curve[["train", "held_out"]].to_numpy()).all()
    assert set(blocks.groupby(["setting", "tokens"]).size()) == {language_models.FINAL_BLOCKS}
    assert set(results(grid)["weight_decay"]) == {language_models.WEIGHT_DECAY}
