"""The explorable of the stored similarities: its data, what its JavaScript should read from them, its lists."""

import gzip
import json
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from javascript import computed, run_tests, show
from scipy import stats

from bookbuilder.explorables import still
from bookbuilder.renderers import script_json
from explainer.compare.controls import CONTROLS
from explainer.errors import ExperimentError, ResultsError
from explainer.explorables import SimilarityExplorer, similarity_explorer
from explainer.results import published, reporting
from explainer.theory.statistics import Interval

LAYERS = 30
SEEDS = (0, 1, 2, 3, 4)
TASKS = ("sst2", "sst5", "mr", "subj", "agnews", "cb", "capitals", "plurals", "past", "antonyms")
FLOORS = [floor for floor in similarity_explorer._MEASURES.values() if floor]
ISOTROPIC = [
    f"{name}_isotropic" for name in similarity_explorer._MEASURES if name not in ("update_cosine", "kendall_tau_b")
]
ALL = [*similarity_explorer._MEASURES, "sim_aou_noise", *FLOORS, *ISOTROPIC]
MOST_BYTES = 150_000


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


@pytest.fixture
def studies(monkeypatch, tmp_path) -> Callable:
    """Make `stored` read given grids, in which some settings are stored."""

    def make(grids: dict[str, dict[str, list[str]]], missing: set = frozenset()) -> dict:
        def settings_of(grid):
            if grid not in grids:
                raise ExperimentError("no such grid")
            rows = [(t, c, s) for t, controls in grids[grid].items() for c in controls for s in SEEDS]
            return "comparison", pd.DataFrame(rows, columns=["task", "control", "seed"])

        def read(grid, name, *, task, control):
            assert name == "layers"
            if (grid, task, control) in missing:
                raise ExperimentError("not stored")
            return table(task, control)

        monkeypatch.setattr(similarity_explorer, "published_directory", lambda: tmp_path)
        monkeypatch.setattr(published, "settings_of", settings_of)
        monkeypatch.setattr(published, "results", read)
        monkeypatch.setattr(
            reporting, "provenance", lambda *used: f"Stored: {pd.concat(used)['setting'].nunique()} settings."
        )
        similarity_explorer._data.cache_clear()
        return SimilarityExplorer.stored()

    yield make
    similarity_explorer._data.cache_clear()


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


def unpack(text: str, width: int) -> list[int]:
    places = [len(similarity_explorer._ALPHABET) ** place for place in reversed(range(width))]
    groups = [text[i : i + width] for i in range(0, len(text), width)]
    return [
        sum(p * similarity_explorer._ALPHABET.index(c) for p, c in zip(places, group, strict=True)) for group in groups
    ]


def test_numbers_are_packed_to_three_digits():
    values = np.array([-1.0, -0.9996, 0.0, 0.12345, 1.0, 7.0])
    assert unpack(similarity_explorer._pack(values), 2) == [0, 0, 1000, 1123, 2000, 2000]
    assert unpack(similarity_explorer._pack(np.array([np.nan])), 2) == [len(similarity_explorer._ALPHABET) ** 2 - 1]
    half = np.array([0.0, 0.0123, 0.3, 0.301, 0.36, 99.0])
    packed = unpack(similarity_explorer._pack_with_width(Interval(values, values - half, values + half)), 3)
    assert [code % 2001 for code in packed] == [0, 0, 1000, 1123, 2000, 2000]
    assert [code // 2001 for code in packed] == [0, 12, 300, 301, 303, 368]
    assert len(similarity_explorer._ALPHABET) ** 3 - 1 > 368 * 2001 + 2000, (
        "the largest number means that there is none"
    )
    assert not set(similarity_explorer._ALPHABET) & set('"\\<\x7f') and len(set(similarity_explorer._ALPHABET)) == 91


def test_full_size_fits_and_stands_in_a_page(studies):
    """Ten tasks, thirteen controls (more than any stored task has), thirty layers, eight measures, five seeds."""
    controls = list(CONTROLS)[:13]
    assert len(similarity_explorer._MEASURES) == 8
    data = studies({"classification": {task: controls for task in TASKS}})
    assert sum(isinstance(one, dict) for each in data["tasks"].values() for one in each.values()) == 130
    text = script_json(data)
    assert len(text.encode()) <= MOST_BYTES
    assert len(gzip.compress(text.encode())) <= 0.85 * MOST_BYTES
    assert len(json.dumps(data).encode()) <= MOST_BYTES, "a notebook's file has spaces after the commas"
    assert "<" not in text.replace("\\u003c", "")


def test_missing_results_are_named(studies):
    data = studies(
        {
            "classification": {"sst2": ["none", "untrained"], "mr": ["none"]},
            "controls": {"sst2": ["none", "ascent"], "mr": ["none"]},
        },
        missing={("classification", "sst2", "untrained"), ("classification", "mr", "none")},
    )
    assert data["tasks"]["sst2"]["untrained"] == "not computed yet"
    assert data["tasks"]["mr"]["none"]["of"] == [150, 32, 1e-3, list(SEEDS)], "another grid has it"
    assert data["made"] == "Stored: 15 settings.", "a condition is read once"
    assert set(data["tasks"]["mr"]) == {"none"}


def test_nothing_stored_is_no_error(studies):
    data = studies({"classification": {"sst2": ["none"]}}, missing={("classification", "sst2", "none")})
    assert data == {"layers": 1, "made": "Stored: nothing yet.", "tasks": {"sst2": {"none": "not computed yet"}}}


def test_without_studies(monkeypatch, tmp_path):
    def nowhere():
        raise ResultsError("there are no stored studies")

    monkeypatch.setattr(similarity_explorer, "published_directory", nowhere)
    with pytest.raises(ResultsError):
        SimilarityExplorer()
    assert SimilarityExplorer(data={"layers": 1, "made": "", "tasks": {}}).data["layers"] == 1


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
    codes = unpack(similarity_explorer._record(layers, "ascent")["curves"], 3)
    first = list(similarity_explorer._MEASURES).index("sim_am_delta") * (LAYERS + 1)
    undefined = [i for i, code in enumerate(codes) if code == len(similarity_explorer._ALPHABET) ** 3 - 1]
    assert undefined == [7, first], "neither mean over layers is undefined"
    mean = similarity_explorer._layer_rows(layers, "sim_am_delta")[:, 1:].mean()
    assert codes[first + LAYERS] % 2001 == round((mean + 1) * 1000)
    isotropic = unpack(similarity_explorer._record(layers, "none")["isotropic"], 2)
    assert (
        isotropic[list(similarity_explorer._MEASURES).index("sim_am_delta")]
        != len(similarity_explorer._ALPHABET) ** 2 - 1
    )


# The traits and the pictures


def small(**changes) -> SimilarityExplorer:
    return SimilarityExplorer(data=similarity_explorer_fixture()["data"], **changes)


DESCRIBED = (
    ({}, "SimAOU, normalised on sst2"),
    ({"normalised": False}, "SimAOU, not normalised on sst2"),
    ({"measure": "sim_am", "normalised": False}, "SimAM on sst2"),
    ({"against": ""}, "the comparison itself: "),
    ({"against": "flipped-context"}, "ICL: wrong labels: not computed yet"),
    ({"control": "other-training"}, "FT: other examples: not part of the study"),
    ({"task": "nonsense"}, "the comparison itself: not part of the study"),
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


def test_default_state_answers():
    """The stored results of the book: SimAOU on SST-2, its noise value, and the untrained model."""
    widget = SimilarityExplorer()
    words = still(widget.get_state()).split('aria-label="')[1].split('"')[0]
    assert "SimAOU, normalised on sst2" in words and "noise value 0." in words and "untrained model: 0." in words


# In a browser


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    complaints = show(page, {"explorer": small()})
    yield page
    assert complaints == []
    context.close()


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
    assert task.evaluate("(node) => node === document.activeElement"), "a redraw took the focus"
    assert view.get_by_label("outputs").locator("option").evaluate_all("(all) => all.every((o) => o.disabled)")
    view.get_by_label("measure").select_option("SimAOU")
    view.get_by_label("outputs").select_option("as they are")
    assert page.evaluate("stages.explorer.model.get('normalised')") is False
    view.get_by_label("seed").select_option("3")
    assert (
        page.evaluate("stages.explorer.model.get('seed')") == 3 and "seed 3" in view.locator("svg").first.text_content()
    )
    view.get_by_label("show").select_option("FT: gradient ascent")
    disabled = view.get_by_label("seed").locator("option[disabled]")
    assert "kept for the comparison itself" in disabled.inner_text()
    wrong = view.get_by_label("beside").locator("option", has_text="ICL: wrong labels")
    assert wrong.is_disabled() and "not computed yet" in wrong.inner_text()
    view.get_by_role("button", name="Reset").click()
    assert view.get_by_label("show").input_value() == "the comparison itself" and answer() == before
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
