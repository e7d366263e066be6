"""The stored studies of the book: complete, undamaged, and what the code of today computes."""

from dataclasses import replace

import numpy as np
import pytest
import samples
import torch

from explainer.analysis import reporting
from explainer.data import tasks
from explainer.experiments import comparison, study
from explainer.experiments.comparison import Cell
from explainer.lab import store
from explainer.lab.store import Store, read, rounded
from explainer.models import checkpoints

GRIDS = study.read_grids(store.published_directory() / store.GRIDS)
OF_ONE_QUERY = ("sim_aou", "sim_aou_noise", "sim_aou_raw", "sim_am", "sim_am_zsl", "sim_am_delta", "kendall_tau_b")
"""Measures of a query that do not depend on the other queries."""
N_COMPUTED_AGAIN = samples.N_QUERIES // 2
STABLE_RATE = 1e-3
"""Training at a higher rate multiplies the last digits in which processors differ."""


@pytest.mark.parametrize("grid", GRIDS)
def test_every_cell_is_stored(grid):
    finished = reporting.stored(grid)
    assert [Cell(**one.identity["cell"]) for one in finished] == GRIDS[grid]
    assert all(one.path.with_suffix(".run").is_file() for one in finished)


def test_nothing_is_stored_that_no_grid_has():
    known = {cell for cells in GRIDS.values() for cell in cells}
    paths = sorted(store.published_directory().glob("*.json"))
    paths.remove(store.published_directory() / "published.json")
    assert [path.name for path in paths if Cell(**read(path).identity["cell"]) not in known] == []


def test_nothing_is_waiting_and_nothing_is_left_over():
    cells = [cell for of in GRIDS.values() for cell in of]
    whole = Store(store.published_directory())
    assert [cell.slug for cell, _, stored in study.plan(cells, whole) if stored is None] == []
    assert whole.remains() == []


def numbers(values):
    """NaN where a value does not exist: one demonstration has no rank among demonstrations."""
    return np.array([np.nan if value is None else value for value in values])


@pytest.fixture(scope="module")
def checkpoint():
    return checkpoints.load(dtype=torch.float32)


def computed_again(checkpoint, data, cell):
    return rounded(comparison.run_cell(comparison.prepare(checkpoint, data, cell), cell))


def require_same_predictions(again, stored, n):
    """Of the first n queries and of every state in `again`; a close decision may flip on another processor."""
    for state, now in again.items():
        then = stored["predictions"][state]
        if then is None:
            assert now is None
            continue
        assert np.sum(np.array(then["correct"][:n]) != now["correct"]) <= max(1, 0.02 * n), state
        if "log_probs" in then:
            np.testing.assert_allclose(now["log_probs"], then["log_probs"][:n], atol=0.02)


def require_same_training(again, stored):
    for name in ("losses", "gradient_norms", "update_norm_keys", "update_norm_values"):
        np.testing.assert_allclose(numbers(again["fine_tuning"][name]), numbers(stored["fine_tuning"][name]), rtol=5e-3)


WEEKLY = pytest.mark.weekly
WHOLE = {grid: cell for grid, cells in GRIDS.items() for cell in cells[:1] if tasks.TASKS[cell.task].hub is None}


@pytest.mark.slow
@pytest.mark.parametrize("grid", [grid if grid == "pairs" else pytest.param(grid, marks=WEEKLY) for grid in WHOLE])
def test_a_cell_computed_again_gives_what_is_stored(grid, checkpoint):
    """To the rounding of another processor."""
    cell = WHOLE[grid]
    (stored,) = [one.result for one in reporting.stored(grid) if Cell(**one.identity["cell"]) == cell]
    again = computed_again(checkpoint, tasks.load(cell.task), cell)
    require_same_predictions(again["predictions"], stored, cell.n_queries)
    require_same_training(again, stored)
    assert stored["similarity"].keys() == again["similarity"].keys()
    for measure, then in stored["similarity"].items():
        now = again["similarity"][measure]
        np.testing.assert_allclose(numbers(now["layers"]), numbers(then["layers"]), atol=0.02, err_msg=measure)
        np.testing.assert_allclose(numbers([now["mean"]]), numbers([then["mean"]]), atol=5e-3, err_msg=measure)


def _sampled():
    """Of the grids whose data are not part of this project: each data set once, else what is furthest from plain."""
    seen = set()
    for grid, cells in GRIDS.items():
        from_hub = [c for c in cells if c.seed == samples.SEED and tasks.TASKS[c.task].hub is not None]
        of_grid = [c for c in from_hub if c.lr <= STABLE_RATE]
        new = {samples.folder(c): c for c in reversed(of_grid) if samples.folder(c) not in seen}
        seen |= set(new)
        for cell in new.values() or of_grid[-1:]:
            yield grid, cell, bool(new)


SAMPLED = list(_sampled())
WHOLE_IN_EVERY_RUN = {"cb", "sst2"}
"""The longest texts and the shortest; fine-tuning takes twenty seconds, so that on the others it is done weekly."""


def _cases(grids_and_cells, often):
    return [
        pytest.param(grid, cell, id=f"{grid}-{cell.task}-{cell.control}", marks=() if often(cell, first) else WEEKLY)
        for grid, cell, first in grids_and_cells
    ]


def of_sample(grid, cell, place):
    """What is stored of a cell, the cell with the queries that are computed again, and its data."""
    stored = next(one.result for one in reporting.stored(grid) if Cell(**one.identity["cell"]) == cell)
    few = replace(cell, n_queries=N_COMPUTED_AGAIN)
    return stored, few, samples.data_of(few, place)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grid", "cell"), _cases(SAMPLED, lambda cell, first: first and cell.task in WHOLE_IN_EVERY_RUN)
)
def test_the_first_queries_of_a_cell_computed_again_give_what_is_stored(grid, cell, checkpoint, tmp_path):
    """On the sample that is kept of each data set: the same demonstrations, the same training, the first queries."""
    stored, few, data = of_sample(grid, cell, tmp_path)
    again = computed_again(checkpoint, data, few)
    require_same_predictions(again["predictions"], stored, few.n_queries)
    require_same_training(again, stored)
    for measure in [name for name in OF_ONE_QUERY if name in (stored["similarity"] or ())]:
        now, then = (of["similarity"][measure]["queries"] for of in (again, stored))
        np.testing.assert_allclose(numbers(now), numbers(then[: few.n_queries]), atol=0.01, err_msg=measure)


@pytest.mark.slow
@pytest.mark.parametrize(("grid", "cell"), _cases([of for of in SAMPLED if of[2]], lambda *_: True))
def test_zsl_and_icl_of_each_data_set_computed_again_give_what_is_stored(grid, cell, checkpoint, tmp_path):
    stored, few, data = of_sample(grid, cell, tmp_path)
    baseline = comparison.prepare(checkpoint, data, few)
    again = {state: vars(getattr(baseline, state)) for state in ("zsl", "icl")}
    require_same_predictions(again, stored, few.n_queries)


def test_every_protocol_has_its_line():
    """Whoever raises a number says what changed."""
    from explainer.experiments import regression_runs  # noqa: PLC0415 - only here
    from explainer.models import training  # noqa: PLC0415 - only here

    text = (store.published_directory() / "PROTOCOLS.md").read_text("utf-8")
    named = {"comparison": comparison, "training": training, "regression": regression_runs}
    for name, module in named.items():
        lines = [line for line in text.splitlines() if line.startswith(f"| {name} | ")]
        assert [int(line.split("|")[2]) for line in lines] == list(range(1, module.PROTOCOL + 1)), name
