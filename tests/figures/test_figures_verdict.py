"""Figure and table of the verdict: their numbers are those of the results."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from explainer.experiments.comparison import Cell
from explainer.figures import verdict
from explainer.lab.store import Stored

N = 12
MEASURES = [
    "sim_aou",
    "sim_aou_raw",
    "sim_aou_noise",
    "sim_aou_permuted",
    "sim_aou_tangent_uncentred",
    "sim_am",
    "sim_am_zsl",
    "sim_am_delta",
    "kendall_tau_b",
    "example_tau_b",
    "update_cosine",
    "update_cosine_zsl",
]


@pytest.fixture(autouse=True)
def provenance(monkeypatch):
    monkeypatch.setattr(verdict.reporting, "made", lambda finished: f"Stored: {len(finished)} cells.")


def finished(task, control, value):
    results = []
    for seed in (0, 1):
        cell = Cell("m", task, seed, 4, 1e-3, N, control)
        spread = np.linspace(-0.05, 0.05, N)
        wrong, right = [0] * N, [1] * N
        result = {
            "predictions": {s: {"correct": c} for s, c in (("zsl", wrong), ("icl", right), ("ft", [1, 0] * (N // 2)))},
            "similarity": {m: {"queries": (value + i / 100 + spread).tolist()} for i, m in enumerate(MEASURES)},
            "rec2ftp": {"chance": 0.75, "ft_fixes": N // 2},
            "reasons": {},
        }
        results.append(Stored(Path(cell.slug), {"cell": asdict(cell)}, {}, result))
    return results


def by_task(tasks, controls):
    return {t: {c: finished(t, c, 0.1 * i + 0.01 * j) for j, c in enumerate(controls)} for i, t in enumerate(tasks)}


def test_an_interval_is_an_estimate_with_its_ends():
    assert verdict.interval((0.123, -0.05, 0.3)) == "0.12 [-0.05, 0.30]"
    assert verdict.interval((np.nan, np.nan, np.nan, 1.0)) == "- [-, -]"


def test_the_figure_has_a_row_per_control_and_a_marker_per_task():
    results = by_task(("capitals", "plurals"), ("none", "ascent"))
    captioned = verdict.controls(results, "sim_aou")
    first, second = captioned.figure.data
    assert [round(x, 6) for x in first.x] == [0.0, 0.01] and [round(x, 6) for x in second.x] == [0.1, 0.11]
    assert all(0 < half < 0.05 for half in (*first.error_x.array, *first.error_x.arrayminus))
    assert list(captioned.figure.layout.yaxis.ticktext) == ["none", "ascent"]
    assert first.marker.symbol != second.marker.symbol
    assert "none: 0.05." in captioned.alt and "ascent: 0.06." in captioned.alt and captioned.made == "Stored: 8 cells."


def test_the_table_states_every_claim_with_numbers_of_the_results():
    pairs = by_task(("antonyms", "plurals"), verdict.PAIR_CONTROLS)
    six = by_task(("sst2", "cb"), ("none", "untrained"))
    rows = verdict.table(pairs, six).rows
    assert all(len(row) == 4 and all(row) for row in rows)
    assert "12 repairs: 1.00 [1.00, 1.00]" in rows[0][1]
    assert "0.75" in rows[0][2] and "other word pairs FT repairs 12 answers" in rows[0][2]
    # Two tasks, 0.0 and 0.1: mean .05 and Student's t(.975, 1) = 12.706 times .05.
    assert "word pairs 0.05 [-0.59, 0.69]" in rows[1][1] and "FT on another task 0.07" in rows[1][2]
    assert "random update is near zero, 0.11 over 2 draws" in rows[1][1]
    # The measures lie .01 apart, in the order of MEASURES; the fifth is without noise value.
    assert "six tasks 0.09" in rows[2][1] and "untrained 0.10" in rows[2][1] and "untrained 0.06" in rows[2][2]


def test_a_foreign_context_counts_where_fine_tuning_learned():
    pairs = by_task(("antonyms", "plurals"), verdict.PAIR_CONTROLS)
    against = verdict.table(pairs, by_task(("sst2", "cb"), ("none", "untrained"))).rows[1][2]
    assert "on antonyms, which FT learns, 0.04 [" in against and "against 0.00 [" in against


def test_kendall_is_shown_for_other_updates_too():
    pairs = by_task(("antonyms", "plurals"), verdict.PAIR_CONTROLS)
    for_it, against = verdict.table(pairs, by_task(("sst2", "cb"), ("none", "untrained"))).rows[4][1:3]
    assert "0.130 [" in for_it and "ascent 0.180 [" in against and "random update 0.190 [" in against


@pytest.mark.parametrize(("zero_shot", "ahead"), [(-1.0, "4 of 4"), (1.0, "0 of 4")])
def test_tasks_where_the_maps_of_fine_tuning_are_ahead_are_counted(zero_shot, ahead):
    pairs, six = by_task(("antonyms", "plurals"), verdict.PAIR_CONTROLS), by_task(("sst2", "cb"), ("none", "untrained"))
    for by_control in (pairs | six).values():
        for stored in by_control["none"]:
            stored.result["similarity"]["sim_am_zsl"] = {"queries": [zero_shot] * N}
    assert f"ahead of zero-shot on {ahead} tasks" in verdict.table(pairs, six).rows[3][1]
