"""The explorable of the stored similarities: its data, what its JavaScript should read from them, its lists."""

import gzip
import json
from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from javascript import computed, opened, run_tests
from scipy import stats

from explainer.explorables import SimilarityExplorer, similarity_explorer
from explainer.results import published

LAYERS = 30
SEEDS = (0, 1, 2, 3, 4)
TASKS = ("sst2", "sst5", "mr", "subj", "agnews", "cb", "capitals", "plurals", "past", "antonyms")
FLOORS = [floor for floor in similarity_explorer._MEASURES.values() if floor]
ISOTROPIC = "sim_aou_raw_isotropic"
ALL = [*similarity_explorer._MEASURES, "sim_aou_noise", *FLOORS, ISOTROPIC]
MOST_BYTES = 20_000
"""Of all numbers, compressed: with the module and its host a page of less than 60 kB."""


def table(
    task: str = "sst2", control: str = "none", *, seeds: Sequence[int] = SEEDS, absent: Sequence[str] = ()
) -> pd.DataFrame:
    """A table "layers" whose numbers use all digits that are kept; some measures may be absent."""
    setting = {"task": task, "control": control, "k": 32, "lr": 1e-3, "n_queries": 150}
    parts = []
    for seed in seeds:
        rng = np.random.default_rng(sum(map(ord, task + control)) * 100 + seed)
        values = {name: rng.uniform(-0.999, 0.999, LAYERS).round(4) for name in ALL}
        known = {name: each for name, each in values.items() if name not in absent}
        key = f"{task}-{control}-{seed}"
        parts.append(pd.DataFrame({"setting": key, **setting, "seed": seed, "layer": range(LAYERS), **known}))
    return pd.concat(parts)


def similarity_explorer_fixture() -> dict:
    """What Python knows of a few states, for tests/explorables/js/similarity_explorer.test.mjs."""
    finished = {
        "none": table(),
        "untrained": table(control="untrained", absent=("kendall_tau_b",)),
        "ascent": table(control="ascent", seeds=SEEDS[:2]),
    }
    records = {control: similarity_explorer._record(each) for control, each in finished.items()}
    data = {
        "layers": LAYERS,
        "made": "Stored: somewhere.",
        "tasks": {"sst2": {**records, "flipped-context": "not computed yet"}},
    }
    cases = []
    for control, each in finished.items():
        for name in similarity_explorer._MEASURES:
            rows = similarity_explorer._layer_rows(each, name)
            curve = None if np.isnan(rows).any() else reporting_curve(rows)
            cases.append({"control": control, "measure": name, "curve": curve})
    floors = {
        name: similarity_explorer._layer_rows(finished["none"], name).mean(0).tolist()
        for name in ["sim_aou_noise", *FLOORS, ISOTROPIC]
    }
    return {
        "data": data,
        "cases": cases,
        "floors": floors,
        "floorOf": similarity_explorer._MEASURES,
    }


def reporting_curve(rows: np.ndarray) -> dict:
    """Mean and half-width per layer, and of the mean over layers, by scipy's own interval, and Spearman's.

    Without ties the rank correlation is 1 - 6 sum d^2 / (n (n^2 - 1)), with the differences d of the ranks.
    """
    columns = [*rows.T, rows.mean(1)]
    ends = [stats.t.interval(0.95, len(c) - 1, c.mean(), stats.sem(c)) for c in columns]
    n, d = rows.shape[1], np.arange(rows.shape[1]) - rows.mean(0).argsort().argsort()
    trend = 1 - 6 * float(d @ d) / (n * (n * n - 1))
    half = [float((high - low) / 2) for low, high in ends]
    return {"mean": [float(c.mean()) for c in columns], "half": half, "trend": trend}


def test_javascript(tmp_path):
    (tmp_path / "similarity_explorer.json").write_text(json.dumps(similarity_explorer_fixture()), "utf-8")
    assert run_tests(ROOT / "tests" / "explorables" / "js" / "similarity_explorer.test.mjs", tmp_path) > 0


# The data


def test_numbers_are_in_hundredths():
    """Without an end: half-widths of few seeds are wide."""
    values = np.array([-1.0, -0.996, 0.0, 0.1234, 1.0, 12.7, np.nan])
    assert [*map(ord, similarity_explorer._hundredths(values))] == [1, 1, 101, 113, 201, 1371, 0]


def test_every_condition_is_that_of_the_first_grid_that_has_it():
    """And what the page holds is small enough for it."""
    data = SimilarityExplorer.stored()
    assert tuple(data["tasks"]) == TASKS and data["layers"] == LAYERS
    for task, control in (("sst2", "none"), ("capitals", "shuffled-context")):
        settings = {grid: published.results(grid) for grid in similarity_explorer._SOURCES}
        grid = next(g for g, its in settings.items() if ((its["task"] == task) & (its["control"] == control)).any())
        layers = published.results(grid, "layers", task=task, control=control)
        assert data["tasks"][task][control] == similarity_explorer._record(layers)
    assert len(gzip.compress(json.dumps(data).encode())) <= MOST_BYTES


def diverged(layers: pd.DataFrame, *seeds: int) -> pd.DataFrame:
    """The table with an FT that diverged for these seeds."""
    layers.loc[layers["seed"].isin(seeds), ALL] = np.nan
    return layers


def test_diverged_seeds_are_left_out():
    kept = similarity_explorer._record(diverged(table(), 1))
    assert kept["seeds"] == [0, 2, 3, 4]
    assert similarity_explorer._record(diverged(table(), 1, 2, 3, 4)) == "fine-tuning diverged"


def test_undefined_layers_stay_undefined_and_leave_no_mean():
    layers = table()
    layers.loc[(layers["seed"] == 2) & (layers["layer"] == 7), "sim_aou"] = np.nan
    found = similarity_explorer._record(layers)
    for numbers, others in zip(found["curves"]["sim_aou"], found["curves"]["sim_am"], strict=True):
        assert [i for i, number in enumerate(numbers) if number == "\0"] == [7] and "\0" not in others
    assert found["means"]["sim_aou"] == [None] * 3 and None not in found["means"]["sim_am"]


# The traits and the pictures


def small(**changes) -> SimilarityExplorer:
    return SimilarityExplorer(data=similarity_explorer_fixture()["data"], **changes)


DESCRIBED = (
    ({}, "SimAOU, normalised on sst2"),
    ({"normalised": False}, "SimAOU, not normalised on sst2"),
    ({"against": "flipped-context"}, "ICL: wrong labels: not computed yet"),
    ({"control": "other-training"}, "FT: other examples: not part of the study"),
    ({"control": "ascent"}, "n = 150, seeds 0 1;"),
    ({"control": "untrained", "measure": "kendall_tau_b"}, "untrained model: not measured"),
)


def test_every_state_is_described_and_has_a_picture():
    start = small().state()
    data = start.pop("data")
    states = [start | changes for changes, _ in DESCRIBED]
    for measure, control in product(similarity_explorer._MEASURES, data["tasks"]["sst2"]):
        shown = {"measure": measure.removesuffix("_raw"), "normalised": not measure.endswith("_raw")}
        against = "" if control == "none" else "none"
        states.append(start | shown | {"control": control, "against": against})
    found = computed("similarity_explorer", states, "{}", data=data).results
    for (_, expected), each in zip(DESCRIBED, found, strict=False):
        assert expected in each["still"]


# In a browser


@pytest.fixture
def page(browser):
    with opened(browser, {"explorer": small()}) as page:
        yield page


@pytest.mark.browser
def test_lists_choose(page):
    view = page.locator("#explorer")

    def answer() -> str:
        return view.locator(".explorable-answers .explorable-number").inner_text()

    task = view.get_by_label("measure")
    before = answer()
    assert "Stored: somewhere." in view.locator(".explorable-hint").inner_text()
    task.focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("stages.explorer.model.get('measure')") == "sim_am" and answer() != before
    assert view.get_by_label("outputs").locator("option").evaluate_all("(all) => all.every((o) => o.disabled)")
    view.get_by_label("show").select_option("FT: gradient ascent")
    assert "seeds 0 1" in view.locator("svg").first.text_content()
    wrong = view.get_by_label("beside").locator("option", has_text="ICL: wrong labels")
    assert wrong.is_disabled() and "not computed yet" in wrong.inner_text()
    view.get_by_role("button", name="Reset").click()
    assert view.get_by_label("show").input_value() == "the comparison itself" and answer() == before
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
