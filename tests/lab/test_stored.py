"""The published results of the book: complete, undamaged, and what the code of today computes."""

import importlib
from dataclasses import fields, replace

import numpy as np
import pytest
import samples
import torch
from published_grids import EXPERIMENTS, grids
from published_grids import stored as rows_of

from explainer.compare import comparison
from explainer.data import tasks
from explainer.data.files import published_directory, rounded
from explainer.models import loading, memory
from explainer.results.published import results
from explainer_lab.comparison import Comparison
from explainer_lab.lab_store import Published, Store
from explainer_lab.language_models import LanguageModels

GRIDS = grids(Comparison)
OF_ONE_QUERY = ("sim_aou", "sim_aou_noise", "sim_aou_raw", "sim_am", "sim_am_zsl", "sim_am_delta", "kendall_tau_b")
"""Measures of a query that do not depend on the other queries."""
N_COMPUTED_AGAIN = samples.N_QUERIES // 2
STABLE_RATE = 1e-3
"""Training at a higher rate multiplies the last digits in which processors differ."""


OF_SOME = {
    "agreement": {"directions", "layers", "pairs"},
    "minimal_pairs": {"interventions"},
    "shared_part": {"queries"},
    "new_rule": {"answers", "interventions", "layers", "strengths"},
    "trained_control": {"swaps"},
    "vote": {"calibrated", "edits", "heads", "queries"},
    "label_lines": {"exchanges", "kernels", "layers", "lines"},
}
"""Tables in which not every setting has rows: a training diverged, or a grid, or a part, does not measure it."""

EVERY_GRID = [(experiment, name) for experiment in EXPERIMENTS for name in grids(experiment)]


@pytest.mark.parametrize(("experiment", "grid"), EVERY_GRID)
def test_every_setting_is_published_in_the_order_of_its_grid(experiment, grid):
    found = results(grid)
    names = [f.name for f in fields(experiment.setting)]
    assert [experiment.setting(**row) for row in found[names].to_dict("records")] == grids(experiment)[grid]
    assert found["setting"].is_unique


def test_queries_stand_in_the_order_of_the_grid_and_of_their_setting():
    queries = results("word-pairs", "queries")
    assert queries["setting"].unique().tolist() == results("word-pairs")["setting"].tolist()
    assert (queries.groupby("setting").cumcount() == queries["query"]).all()


def test_grids_have_names_of_their_own():
    names = [name for _, name in EVERY_GRID]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_nothing_is_published_that_no_grid_has_and_every_row_has_its_setting(experiment):
    known = {experiment().key(one).key for of in grids(experiment).values() for one in of}
    tables = Published(published_directory() / experiment.name).tables()
    of_settings = {name: set(table["setting"].to_pylist()) for name, table in tables.items()}
    assert {name for name, of in of_settings.items() if of != known} == OF_SOME.get(experiment.name, set())
    assert all(of <= known for of in of_settings.values())


@pytest.mark.parametrize("experiment", [one for one in EXPERIMENTS if one is not LanguageModels])  # its texts are large
def test_nothing_is_waiting(experiment, tmp_path):
    """Weights, data and draws that are here are those that the results were made of."""
    study, settings = experiment(), [setting for of in grids(experiment).values() for setting in of]
    planned = study.plan(settings, Store(tmp_path), Published(published_directory() / study.name))
    assert [setting.slug for setting, _, state in planned if state != "published"] == []


def test_a_query_has_one_id_in_all_settings_that_ask_it():
    asked = results("classification", "queries", task="sst2")
    assert (asked.groupby(["seed", "query"])["query_id"].nunique() == 1).all()
    assert asked.groupby("seed")["query_id"].nunique().eq(150).all()
    assert asked.groupby("setting")["update_cosine"].count().eq(memory.N_MAPS).all()
    shared = asked.drop_duplicates(["seed", "query_id"])["query_id"].value_counts()
    assert shared.max() > 1, "seeds draw from the same queries, so that some are drawn twice"


def test_halves_are_those_of_the_published_queries():
    """A query's id begins with the byte that decides."""
    asked, odd = results("selection", "queries"), lambda name: int(name[:2], 16) % 2 == 1
    assert (asked["query_id"].map(odd) == (asked["split"] == "selection")).all()
    for query in tasks.load("capitals").test:
        assert comparison.in_split(query, "selection") == odd(comparison.query_id(query))


def require_close(now, then, what, **within):
    """Both with NaN where a value does not exist: one demonstration has no rank among demonstrations."""
    np.testing.assert_allclose(np.array(now, float), np.array(then, float), err_msg=what, **within)


@pytest.fixture(scope="module")
def checkpoint():
    return loading.load(dtype=torch.float32)


def computed_again(checkpoint, data, setting):
    return rounded(comparison.run_comparison(comparison.prepare(checkpoint, data, setting), setting))


class Stored:
    """The published rows of one setting: `setting` a row, `queries` and `layers` frames."""

    def __init__(self, grid, setting):
        (self.setting,) = rows_of(grid, setting).to_dict("records")
        self.queries, self.layers = (rows_of(grid, setting, table) for table in ("queries", "layers"))


def require_same_predictions(again, stored, n):
    """Of the first n queries and of every state in `again`; a close decision may flip on another processor."""
    for state, (correct, log_probs) in again.items():
        then = stored.queries[f"{state}_correct"][:n]
        if then.isna().all():
            assert correct is None
            continue
        assert np.sum(then.to_numpy(bool) != correct) <= max(1, 0.02 * n), state
        if log_probs is not None:
            expected = np.stack(stored.queries[f"{state}_log_probs"][:n])
            np.testing.assert_allclose(log_probs, expected, atol=0.02)


def predictions(again):
    queries = again["queries"]
    states = ("zsl", "icl", "ft")
    return {state: (queries.get(f"{state}_correct"), queries.get(f"{state}_log_probs")) for state in states}


def require_same_training(again, stored):
    for name in ("losses", "gradient_norms"):
        require_close(again["settings"][name], stored.setting[name], name, rtol=5e-3)
    for name in ("update_norm_keys", "update_norm_values"):
        require_close(again["layers"][name], stored.layers[name], name, rtol=5e-3)


WHOLE = {
    grid: setting
    for grid, settings in GRIDS.items()
    for setting in settings[:1]
    if tasks.TASKS[setting.task].hub is None
}


@pytest.mark.slow
@pytest.mark.weekly
@pytest.mark.parametrize("grid", WHOLE)
def test_a_setting_computed_again_gives_what_is_stored(grid, checkpoint):
    """To the rounding of another processor."""
    setting = WHOLE[grid]
    stored = Stored(grid, setting)
    again = computed_again(checkpoint, tasks.load(setting.task), setting)
    require_same_predictions(predictions(again), stored, setting.n_queries)
    require_same_training(again, stored)
    assert again["queries"]["query_id"] == stored.queries["query_id"].tolist()
    for measure, now in again["layers"].items():
        if measure in again["queries"]:
            require_close(now, stored.layers[measure], measure, atol=0.02)
            require_close(again["settings"][measure], stored.setting[measure], measure, atol=5e-3)


def _sampled():
    """Of the grids whose data are not part of this project: each data set once, else what is furthest from plain."""
    seen = set()
    for grid, settings in GRIDS.items():
        from_hub = [c for c in settings if c.seed == samples.SEED and tasks.TASKS[c.task].hub is not None]
        of_grid = [c for c in from_hub if c.lr <= STABLE_RATE]
        new = {samples.folder(c): c for c in reversed(of_grid) if samples.folder(c) not in seen}
        seen |= set(new)
        for setting in new.values() or of_grid[-1:]:
            yield pytest.param(grid, setting, id=f"{grid}-{setting.task}-{setting.control}", marks=pytest.mark.weekly)


@pytest.mark.slow
@pytest.mark.parametrize(("grid", "setting"), [("word-pairs", WHOLE["word-pairs"]), *_sampled()])
def test_the_first_queries_of_a_setting_computed_again_give_what_is_stored(grid, setting, checkpoint, tmp_path):
    """The same demonstrations, the same training, the first queries; of other data sets on the sample that is kept."""
    stored, few = Stored(grid, setting), replace(setting, n_queries=N_COMPUTED_AGAIN)
    own = tasks.TASKS[setting.task].hub is None
    data = tasks.load(setting.task) if own else samples.data_of(few, tmp_path)
    again = computed_again(checkpoint, data, few)
    require_same_predictions(predictions(again), stored, few.n_queries)
    require_same_training(again, stored)
    for measure in [name for name in OF_ONE_QUERY if stored.queries[name].notna().any()]:
        require_close(again["queries"][measure], stored.queries[measure][: few.n_queries], measure, atol=0.01)


SIZES = {
    "explainer_lab.agreement": {"_N_MAPS": 4, "_N_FOREIGN_CONTEXTS": 3, "_SLOW": 0.1},
    "explainer_lab.lab_lessons": {"N_RANDOM": 5},
    "explainer_lab.shared_part": {"N_SELECTION": 16},
    "explainer_lab.new_rule": {"N_HEADS": 10},
    "explainer_lab.blocking": {"_BATCH": 4},
    "explainer_lab.vote": {
        "MAIN": {"all": 10, "ten": 10, "one": 1},
        "DOSES": (0.05, 0.1, 0.2, 0.5, 1.0),
        "_LOOKS": 0.01,
    },
    "explainer_lab.label_lines": {"TAUS": (2, 4, 8, 16, 32), "_EVERY": 3},
    "explainer_lab.rival": {"N_HEADS": 10, "_N_EFFECTS": 8, "_N_REPEATED": 50},
    "explainer_lab.recall": {"_BETA_2": 0.98, "_SNAPSHOTS": 10},
    "explainer_lab.llama_training": {"EVERY": 100},
    "explainer_lab.language_models": {"FINAL_BLOCKS": 200, "WEIGHT_DECAY": 0.1, "BETAS": (0.9, 0.98)},
    "explainer.models.finetuning": {"_OUTGROWN": 10.0, "_DIVERGED": 1.5},
    "explainer.models.fast_weight_model": {
        **{"_ETA": 0.5, "_FIRST_OF_HEADS": {"sharpness": 8.0, "slope": 0.1}},
        "_FIRST": {"rate": 0.5, "retention": 0.98, "momentum": 0.5},
    },
    "explainer.models.in_context_gpt": {"LINE_NOISE": 0.3, "TASK_NOISE": 0.5, "N_TEST_PROMPTS": 1000},
}
"""Numbers of the published protocols that no column of a table tells: others would be other results."""


@pytest.mark.parametrize("module", SIZES)
def test_a_size_changes_with_the_protocol(module):
    of = vars(importlib.import_module(module))
    assert {name: of[name] for name in SIZES[module]} == SIZES[module], "raise the protocol"


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_protocol_has_its_line(experiment):
    """Whoever raises a number says what changed."""
    text = (published_directory() / "PROTOCOLS.md").read_text("utf-8")
    lines = [line for line in text.splitlines() if line.startswith(f"| {experiment.name} | ")]
    assert [int(line.split("|")[2]) for line in lines] == list(range(1, experiment.protocol + 1))
