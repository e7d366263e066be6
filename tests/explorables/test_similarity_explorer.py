"""The explorable of the stored similarities: its data, what its JavaScript should read from them, its lists."""

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
ISOTROPIC = [
    f"{name}_isotropic" for name in similarity_explorer._MEASURES if name not in ("update_cosine", "kendall_tau_b")
]
ALL = [*similarity_explorer._MEASURES, "sim_aou_noise", *FLOORS, *ISOTROPIC]
MOST_BYTES = 200_000


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
        "untrained": table(control="untrained", absent=("update_cosine",)),
        "ascent": table(control="ascent", seeds=SEEDS[:2]),
    }
    records = {control: similarity_explorer._record(each, control) for control, each in finished.items()}
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
            cases.append({"control": control, "measure": name, "curve": curve, "first": rows[0].tolist()})
    rng = np.random.default_rng(0)
    ranked = [rng.normal(size=30).tolist(), [0.0, 0.0, 1.0, 1.0, 2.0], list(range(9, 0, -1))]
    floors = {
        name: similarity_explorer._layer_rows(finished["none"], name).mean(0).tolist()
        for name in ["sim_aou_noise", *FLOORS]
    }
    return {
        "data": data,
        "cases": json.loads(json.dumps(cases).replace("NaN", "null")),
        "floors": floors,
        "floorOf": similarity_explorer._MEASURES,
        "spearman": [[values, stats.spearmanr(range(len(values)), values).statistic] for values in ranked],
    }


def reporting_curve(rows: np.ndarray) -> dict[str, list[float]]:
    """Mean and half-width per layer, and of the mean over layers, by scipy's own interval."""
    columns = [*rows.T, rows.mean(1)]
    ends = [stats.t.interval(0.95, len(c) - 1, c.mean(), stats.sem(c)) for c in columns]
    return {"mean": [float(c.mean()) for c in columns], "half": [float((high - low) / 2) for low, high in ends]}


def test_javascript(tmp_path):
    (tmp_path / "similarity_explorer.json").write_text(json.dumps(similarity_explorer_fixture()), "utf-8")
    assert run_tests(ROOT / "tests" / "explorables" / "js" / "similarity_explorer.test.mjs", tmp_path) > 0


# The data


def test_numbers_are_in_thousandths():
    values = np.array([-1.0, -0.9996, 0.0, 0.12345, 1.0, np.nan])
    assert similarity_explorer._thousandths(values) == [-1000, -1000, 0, 123, 1000, None]


def test_every_condition_is_that_of_the_first_grid_that_has_it():
    """And what the page holds is small enough for it."""
    data = SimilarityExplorer.stored()
    assert tuple(data["tasks"]) == TASKS and data["layers"] == LAYERS
    for task, control in (("sst2", "none"), ("capitals", "shuffled-context")):
        settings = {grid: published.results(grid) for grid in similarity_explorer._SOURCES}
        grid = next(g for g, its in settings.items() if ((its["task"] == task) & (its["control"] == control)).any())
        layers = published.results(grid, "layers", task=task, control=control)
        assert data["tasks"][task][control] == similarity_explorer._record(layers, control)
    assert len(json.dumps(data, separators=(",", ":"))) <= MOST_BYTES


def diverged(layers: pd.DataFrame, *seeds: int) -> pd.DataFrame:
    """The table with an FT that diverged for these seeds."""
    layers.loc[layers["seed"].isin(seeds), ALL] = np.nan
    return layers


def test_diverged_seeds_are_left_out():
    kept = similarity_explorer._record(diverged(table(), 1), "none")
    assert kept["of"][3] == [0, 2, 3, 4] and len(kept["singles"]) == 4
    assert similarity_explorer._record(diverged(table(), 1, 2, 3, 4), "none") == "fine-tuning diverged"


def test_undefined_layers_stay_undefined_and_means_are_over_the_others():
    layers = table()
    layers.loc[(layers["seed"] == 2) & (layers["layer"] == 7), "sim_aou"] = np.nan
    layers.loc[layers["layer"] == 0, ["sim_am_delta", "sim_am_delta_isotropic"]] = np.nan
    record = similarity_explorer._record(layers, "none")
    curves = dict(zip(similarity_explorer._MEASURES, record["curves"], strict=True))
    assert [i for i, value in enumerate(curves["sim_aou"][0]) if value is None] == [7]
    values, halves = curves["sim_am_delta"]
    assert values[0] is halves[0] is None and None not in (*values[1:], *halves[1:])
    mean = similarity_explorer._layer_rows(layers, "sim_am_delta")[:, 1:].mean()
    assert values[LAYERS] == pytest.approx(1000 * mean, abs=1)
    assert None not in record["isotropic"][:5] and record["isotropic"][6] is not None


# The traits and the pictures


def small(**changes) -> SimilarityExplorer:
    return SimilarityExplorer(data=similarity_explorer_fixture()["data"], **changes)


DESCRIBED = (
    ({}, "SimAOU, normalised on sst2"),
    ({"normalised": False}, "SimAOU, not normalised on sst2"),
    ({"against": "flipped-context"}, "ICL: wrong labels: not computed yet"),
    ({"control": "other-training"}, "FT: other examples: not part of the study"),
    ({"seed": 3}, "n = 150, seed 3;"),
    ({"seed": 9}, "n = 150, seeds 0 1 2 3 4;"),
    ({"control": "untrained", "measure": "update_cosine"}, "untrained model: not measured"),
)


def test_every_state_is_described_and_has_a_picture():
    start = small().state()
    data = start.pop("data")
    states = [start | changes for changes, _ in DESCRIBED]
    for measure, control, seed in product(similarity_explorer._MEASURES, data["tasks"]["sst2"], (-1, 0)):
        shown = {"measure": measure.removesuffix("_raw"), "normalised": not measure.endswith("_raw")}
        against = "" if control == "none" else "none"
        states.append(start | shown | {"control": control, "against": against, "seed": seed})
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
    assert page.evaluate("stages.explorer.model.get('measure')") == "sim_aou_tangent" and answer() != before
    assert view.get_by_label("outputs").locator("option").evaluate_all("(all) => all.every((o) => o.disabled)")
    view.get_by_label("seed").select_option("3")
    assert "seed 3" in view.locator("svg").first.text_content()
    view.get_by_label("show").select_option("FT: gradient ascent")
    wrong = view.get_by_label("beside").locator("option", has_text="ICL: wrong labels")
    assert wrong.is_disabled() and "not computed yet" in wrong.inner_text()
    view.get_by_role("button", name="Reset").click()
    assert view.get_by_label("show").input_value() == "the comparison itself" and answer() == before
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
