"""explainer.analysis.reporting: what many results say together."""

import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import tiny_models
from toy_study import cell, start

from explainer.analysis import reporting
from explainer.experiments import comparison, study
from explainer.experiments.comparison import Cell, StudyError
from explainer.lab.store import GRIDS, ResultsError, Store, Stored
from explainer.theory import statistics


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return str(tiny_models.save("llama", tmp_path_factory.mktemp("tiny")))


def stored(split, seed, lr, icl, ft):
    """A result as `run` returns it, with accuracies `icl` and `ft` of ten queries; None is an FT that diverged."""
    one = Cell("m", "toy", seed, 3, lr, 10, split=split)
    diverged = ft is None
    row = None if diverged else {"correct": [int(i < 10 * ft) for i in range(10)], "accuracy": ft}
    result = {
        "predictions": {"icl": {"accuracy": icl}, "ft": row},
        "setting": {"labels": None},
        "reasons": {"ft": "diverged"} if diverged else {},
        "similarity": None if diverged else {"sim_aou": {"queries": [0.1, 0.3, None]}},
    }
    return Stored(Path(one.slug), {"cell": asdict(one)}, {}, result)


def test_selection_on_other_queries_and_on_the_same():
    finished = [
        stored("selection", 0, 1e-3, 0.5, 0.9),
        stored("selection", 1, 1e-3, 0.8, 0.4),
        stored("selection", 1, 2e-3, 0.8, 0.6),
        stored("selection", 1, 3e-3, 0.8, 0.6),
        stored("selection", 1, 9e-3, 0.8, None),
        stored("report", 0, 1e-3, 0.9, 0.7),
        stored("report", 1, 1e-3, 0.6, 0.9),
        stored("report", 1, 2e-3, 0.6, 0.5),
        stored("report", 1, 3e-3, 0.6, 0.7),
    ]
    assert reporting.selected(finished) is finished[7]
    assert reporting.selected(finished, "report") is finished[5]
    with pytest.raises(StudyError, match="not among the results"):
        reporting.selected(finished[:5])
    with pytest.raises(StudyError, match="none of the results"):
        reporting.selected(finished[4:], "selection")


def test_intervals_over_seeds_and_queries():
    finished = [stored("all", 0, 1e-3, 0.5, 0.9), stored("all", 1, 1e-3, 0.5, 0.5)]
    estimate, low, high = reporting.prediction_interval(finished, "ft", n_resamples=200)
    assert estimate == 0.7 and 0.2 <= low < 0.6 and 0.8 < high <= 1
    assert reporting.similarity_interval(finished, "sim_aou", n_resamples=50).estimate == pytest.approx(0.2)
    for call in (
        lambda: reporting.prediction_interval([stored("all", 0, 1e-3, 0.5, None)], "ft"),
        lambda: reporting.prediction_interval(finished, "ft", "auc"),
        lambda: reporting.prediction_interval(finished, "ft", "beauty"),
        lambda: reporting.similarity_interval(finished, "beauty"),
        lambda: reporting.similarity_interval([stored("all", 0, 1e-3, 0.5, None)], "sim_aou"),
    ):
        with pytest.raises(StudyError):
            call()


def test_intervals_of_label_tasks(directory, tmp_path):
    finished = start([cell(directory, seed=s) for s in (0, 1)], Store(tmp_path))
    for measure in ("accuracy", "calibrated_accuracy", "macro_f1", "auc"):
        expected = np.mean([s.result["predictions"]["icl"][measure] for s in finished])
        interval = reporting.prediction_interval(finished, "icl", measure, n_resamples=20)
        assert interval.estimate == pytest.approx(expected, abs=1e-4)


# --- the stored studies of the book ----------------------------------------------------------------------------

GRID = """
[toy]
checkpoints = ["{directory}"]
tasks = ["capitals"]
ks = [3]
n_queries = 6
seeds = [0, 1]
controls = ["none", "ascent"]
"""


@pytest.fixture(scope="module")
def studied(directory, tmp_path_factory):
    place = tmp_path_factory.mktemp("results")
    (place / GRIDS).write_text(GRID.format(directory=directory))
    study.run(study.read_grids(place / GRIDS)["toy"], Store(place), progress=False)
    return place


@pytest.fixture
def place(studied, monkeypatch):
    monkeypatch.setenv("EXPLAINER_RESULTS", str(studied))
    return studied


def test_stored_results_are_found_by_their_setting(place):
    found = reporting.stored("toy", control="ascent")
    assert [(s.identity["cell"]["seed"], s.identity["cell"]["control"]) for s in found] == [
        (0, "ascent"),
        (1, "ascent"),
    ]
    assert len(reporting.stored("toy")) == 4
    text = reporting.made(found)
    assert text.startswith("Stored: 2 cells, seeds 0, 1, 6 queries each, k = 3; ") and "CPU seconds" in text


@pytest.mark.parametrize(
    ("grid", "where", "message"),
    [("no", {}, "no grid 'no'.*it has toy"), ("toy", {"seed": 7}, "no cell of the grid 'toy' has .*7")],
)
def test_what_is_not_in_the_grids_is_refused(place, grid, where, message):
    with pytest.raises(StudyError, match=message):
        reporting.stored(grid, **where)


def test_a_cell_that_is_missing_or_of_another_protocol_says_what_to_do(place, tmp_path, monkeypatch):
    shutil.copytree(place, tmp_path / "copy")
    monkeypatch.setenv("EXPLAINER_RESULTS", str(tmp_path / "copy"))
    (one,) = reporting.stored("toy", control="ascent", seed=0)
    with monkeypatch.context() as patch:
        patch.setattr(comparison, "PROTOCOL", 7)
        with pytest.raises(ResultsError, match="computed by protocol 1, this version computes protocol 7"):
            reporting.stored("toy")
    one.path.unlink()
    with pytest.raises(StudyError, match=r"not stored in .*explainer study --grid"):
        reporting.stored("toy")


def test_comparisons_are_paired_and_corrected(place):
    plain, ascent = (reporting.stored("toy", control=control) for control in ("none", "ascent"))
    values = {m: [reporting.similarity_values(f, m) for f in (plain, ascent)] for m in ("sim_aou", "sim_am")}
    compared = reporting.comparisons(values)
    raw = [c.difference.p_value for c in compared.values()]
    assert [c.p_adjusted for c in compared.values()] == pytest.approx(statistics.holm(np.array(raw)).tolist())
    expected = np.mean([np.nanmean(a[0] - b[0]) for a, b in zip(*values["sim_aou"], strict=True)])
    assert compared["sim_aou"].difference.estimate == pytest.approx(expected)
    same = reporting.comparisons({"same": (values["sim_aou"][0],) * 2})["same"]
    assert same.difference.estimate == 0 and same.p_adjusted == 1


def test_layer_curves_have_students_interval_over_seeds(place):
    finished = reporting.stored("toy", control="none")
    curve = reporting.layer_curve(finished, "sim_aou")
    rows = np.array([s.result["similarity"]["sim_aou"]["layers"] for s in finished])
    np.testing.assert_allclose(curve.mean, rows.mean(0))
    # Two seeds: t(.975, 1) = 12.706, and the standard error is half the difference.
    np.testing.assert_allclose(curve.high - curve.mean, 12.7062 * abs(rows[0] - rows[1]) / 2, rtol=1e-4)
    with pytest.raises(StudyError, match="at least 2"):
        reporting.layer_curve(finished[:1], "sim_aou")
    with pytest.raises(StudyError, match="has no 'beauty'"):
        reporting.layer_curve(finished, "beauty")


def test_rec2ftp_is_the_ratio_of_all_queries(place):
    def fake(zsl, icl, ft):
        rows = {name: value and {"correct": value} for name, value in (("zsl", zsl), ("icl", icl), ("ft", ft))}
        return Stored(Path("x"), {}, {}, {"predictions": rows, "reasons": {}})

    finished = [fake([0, 0, 1, 0], [1, 0, 1, 0], [1, 1, 1, 0]), fake([0, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 0])]
    assert reporting.rec2ftp_interval(finished, n_resamples=100).estimate == pytest.approx(2 / 3)
    with pytest.raises(StudyError, match="no predictions of 'ft'"):
        reporting.rec2ftp_interval([fake([0, 1], [1, 1], None)])
