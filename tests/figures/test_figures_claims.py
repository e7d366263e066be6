"""The table of all claims: its words are in a file, its numbers are those of the results."""

import pytest

from explainer.figures import Texts
from explainer.theory.statistics import Interval

MEASURES = ("SimAOU", "cos(t, t)", "residual", "SimAMΔ", "cos ΔW")
EFFECTS = ("icl", "ft", "across_ft", "across_near", "along_ft", "patch_own", "patch_other", "patch_mean")
EFFECTS += ("ft_across_icl", "ft_across_near")
R2 = ("icl_own", "icl_foreign", "icl_mean", "descent_own", "descent_foreign")


def around(value):
    return Interval(value, value - 0.01, value + 0.01)


def of_measures(first):
    """A tenth apart."""
    return {name: around(first + 0.1 * i) for i, name in enumerate(MEASURES)}


@pytest.fixture
def rows():
    sides = ("made_up", "same", "ceiling", "another_task", "contexts", "trainings", "made_up_context")
    values = {
        "recall": {"capitals": 0.83},
        "chance": {"capitals": 0.34},
        "shuffled": {"capitals": 0.77},
        "training": {"capitals": 0.62},
        "beyond": {"capitals": around(1.2)},
        "first": 9,
        "settings": 16,
        "expected": 1.6,
        "controls": {
            "none": {"kendall_tau_b": around(0.031), "sim_am_delta": around(0.21)},
            "ascent": {"kendall_tau_b": around(0.032), "sim_aou": around(-0.08), "sim_am_delta": around(-0.2)},
            "untrained": {"sim_am_delta": around(0.05)},
            "foreign-training": {"sim_am_delta": around(0.15)},
        },
        "effect": {name: 0.9 - 0.1 * i for i, name in enumerate(EFFECTS)} | {"across_ft_other": 0.45},
        "r2": {name: 0.05 + 0.1 * i for i, name in enumerate(R2)},
        "layer_causal": {"at 0.001": 0.34},
        "answers": 0.0,
        "draws": {"the same": 20, "other examples of the task": 18, "shuffled answers": 19},
        "shared": 10,
        "seeds": 5,
        "provenance": "Stored: 8 cells.",
    }
    values |= {side: of_measures(0.01 * (i + 1)) for i, side in enumerate(sides)}
    table = Texts("claims").table("claims", **values)
    assert table.provenance == "Stored: 8 cells."
    assert "Student over 20 draws (18 where" in table.caption and "bootstrap over 5 draws" in table.caption
    return [
        [cell.replace("\N{NO-BREAK SPACE}", " ").replace("\N{MINUS SIGN}", "-") for cell in row] for row in table.rows
    ]


def test_a_similarity_stands_between_its_floor_and_its_ceiling(rows):
    assert rows[0][1].startswith(
        "chance capitals 0.34; measured capitals 0.83; repairs of a draw beyond chance capitals 1.2 ["
    )
    assert rows[0][1].endswith("capitals 0.77; by training on other examples capitals 0.62")
    assert rows[1][1] == "0.01 [0.00, 0.02] (context swapped 0.07 [0.06, 0.08]), 0.02 [0.01, 0.03], 0.03 [0.02, 0.04]"
    assert "one epoch of ascent -0.08 [" in rows[1][2] and "another task: 0.04 [" in rows[1][3]
    assert rows[7][1].startswith("0.41 [") and "0.42 [" in rows[7][1] and "0.44 [" in rows[7][3]


def test_causal_tests_are_shown_beside_their_floors(rows):
    assert "ICL 0.90; without its component along FT 0.70" in rows[8][1] and "same cosine 0.60" in rows[8][1]
    assert "FT 0.80; without its component along ICL 0.10; random 0.00" in rows[8][1]
    assert rows[8][2].startswith("removing it loses more answers") and "ICL keeps 0.45" in rows[8][3]
    assert "gives 0.50" in rows[8][3]
    assert rows[9][1] == "its own patch 0.40, another query's 0.30, the mean patch 0.20"
    assert "own steps 0.05, another task's 0.15; mean change of other queries 0.25; ceiling 0.35" in rows[11][1]
    assert "one draw: at 0.001 0.34" in rows[10][1] and "answers is 0.00 at each" in rows[10][3]
