"""The table of the verdict: its words are in a file, its numbers are those of the results."""

import numpy as np
import pandas as pd
import pytest

from explainer.analysis import controls
from explainer.figures import Texts
from explainer.theory.statistics import Interval

N = 12
MEASURES = [
    "sim_aou",
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
SHOWN = ("none", "foreign-training", "shuffled-context", "foreign-context", "ascent", "random-direction", "untrained")


def frame(tasks, shown):
    """Two seeds of each task, a tenth apart, and control, a hundredth apart; measures are a thousandth apart."""
    spread = np.linspace(-0.05, 0.05, N)
    return pd.concat(
        pd.DataFrame(
            {"cell": f"{task}{control}{seed}", "task": task, "control": control, "seed": seed}
            | {"query_id": [f"{task}{i}" for i in range(N)]}
            | {m: 0.1 * i + 0.01 * j + 0.001 * k + spread for k, m in enumerate(MEASURES)}
        )
        for i, task in enumerate(tasks)
        for j, control in enumerate(shown)
        for seed in (0, 1)
    )


@pytest.fixture
def rows():
    values = {
        "pairs": controls.over_tasks(frame(("antonyms", "plurals"), SHOWN), MEASURES),
        "six": controls.over_tasks(frame(("sst2", "cb"), ("none", "untrained")), MEASURES),
        "antonyms": {"none": Interval(0.27, 0.26, 0.28), "foreign-context": Interval(0.15, 0.1, 0.2)},
        "rec2ftp": Interval(1, 1, 1),
        "chance": 0.75,
        "repairs": (12, 3),
        "random": "0.05",
        "draws": 2,
        "ahead": 4,
        "tasks": 4,
        "notes": "ascent: FT ascends",
        "made": "Stored: 8 cells.",
    }
    table = Texts("verdict").table("verdict", **values)
    assert table.made == "Stored: 8 cells." and table.caption.endswith("ascent: FT ascends.")
    return [
        [cell.replace("\N{NO-BREAK SPACE}", " ").replace("\N{MINUS SIGN}", "-") for cell in row] for row in table.rows
    ]


def test_every_claim_has_numbers_of_the_results(rows):
    assert all(len(row) == 4 and all(row) for row in rows)
    assert "12 repairs: 1.00 [1.00, 1.00]" in rows[0][1]
    assert "0.75" in rows[0][2] and "other word pairs FT repairs 3 answers" in rows[0][2]
    # Two tasks, 0.0 and 0.1, which are fixed: only their queries, -.05 to .05, are drawn.
    assert "word pairs 0.05 [0.04, 0.06]" in rows[1][1] and "FT on another task 0.06" in rows[1][2]
    assert "random update is near zero, 0.05 over 2 draws" in rows[1][1]
    assert "six tasks 0.05" in rows[2][1] and "untrained 0.06" in rows[2][1]
    assert "FT is ahead of zero-shot on 4 of 4 tasks" in rows[3][1]


def test_a_foreign_context_counts_where_fine_tuning_learned(rows):
    assert "on antonyms, which FT learns, 0.15 [0.10, 0.20] against 0.27 [0.26, 0.28]" in rows[1][2]


def test_kendall_is_shown_for_other_updates_too(rows):
    assert "0.057 [" in rows[4][1] and "ascent 0.097 [" in rows[4][2] and "random update 0.107 [" in rows[4][2]
