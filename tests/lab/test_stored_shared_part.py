"""The published shared parts: what the code of today computes, and that the fine-tuning is the one that is reported."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from published_grids import grids

from explainer.data import tasks
from explainer.models import loading
from explainer.results import agreement
from explainer.results.agreement import UpdateFilter
from explainer.results.published import results
from explainer_lab import shared_part
from explainer_lab.shared_part import INTERVENTIONS, SharedPart

GRIDS = grids(SharedPart)
PAIR = ["a_kind", "a_lesson", "b_kind", "b_lesson"]


def _diverged(settings):
    """Notes of trainings on other examples: such a draw lacks these and no more."""
    return [note for note in settings["note"] if note.endswith("on other")]


def test_none_is_missing():
    for grid, planned in GRIDS.items():
        settings = results(grid)
        assert len(settings) == len(planned)
        assert settings["note"].isin(["", *_diverged(settings)]).all(), grid
    assert set(results("shared-part", "queries")["intervention"]) == set(INTERVENTIONS)


def test_similarities_are_those_of_the_agreement():
    """The same demonstrations, queries and trainings, computed side by side with others."""
    ours = results("shared-part", "pairs")
    own = ours[(ours["a_lesson"] == "own") & (ours["b_kind"] == "FT") & (ours["b_lesson"] == "own")]
    theirs = agreement.between(agreement.pairs("agreement"), UpdateFilter("ICL"), UpdateFilter("FT", epochs=10))
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
    layers, pairs = (
        results("shared-part", "layers"),
        results("shared-part", "pairs").set_index(["task", "seed", *PAIR])["sim_aou"],
    )
    means = layers.groupby(["task", "seed"])[list(shared_part.CORNERS)].mean()
    known = set(pairs.index.get_level_values("a_lesson")) & set(pairs.index.get_level_values("b_lesson"))
    for column, (a, b) in shared_part.CORNERS.items():
        if not {a[1], b[1]} <= known:
            continue  # a mean over several tasks
        of = pairs.xs((*a, *b), level=PAIR)
        np.testing.assert_allclose(means[column].loc[of.index], of, atol=1e-3)


@pytest.mark.slow
@pytest.mark.weekly
def test_contexts_computed_again_give_what_is_stored():
    """Without trainings, which take minutes; to the rounding of another processor."""
    setting = replace(GRIDS["shared-part"][0], tasks="plurals")
    checkpoint = loading.load(setting.checkpoint, dtype=torch.float32)
    task = shared_part._task(checkpoint, tasks.load, setting, "plurals")
    found = shared_part._of_task(task, {})
    then = results("shared-part", "pairs", seed=setting.seed)
    then = then[(then["task"] == "plurals") & (then["b_kind"] == "ICL")].set_index(PAIR)["sim_aou"]
    for row in found["pairs"]:
        assert row["sim_aou"] == pytest.approx(then[tuple(row[name] for name in PAIR)], abs=0.01)
    stored = results("shared-part", "queries", seed=setting.seed)
    stored = stored[stored["task"] == "plurals"].set_index(["intervention", "query"])["log_prob"]
    for row in found["queries"]:
        assert row["log_prob"] == pytest.approx(stored[row["intervention"], row["query"]], abs=0.1)


@pytest.mark.slow
@pytest.mark.weekly
def test_a_draw_computed_again_gives_what_is_stored():
    """Weekly only: it takes minutes. A close decision may flip on another processor."""
    setting = GRIDS["shared-part"][0]
    again = SharedPart().compute(setting, progress=False).tables
    then = results("shared-part", "queries", seed=setting.seed)
    assert again["queries"]["intervention"] == then["intervention"].to_list()
    assert np.abs(np.array(again["queries"]["correct"]) - then["correct"].to_numpy()).mean() < 0.03
    np.testing.assert_allclose(
        again["pairs"]["sim_aou"], results("shared-part", "pairs", seed=setting.seed)["sim_aou"], atol=0.02
    )
