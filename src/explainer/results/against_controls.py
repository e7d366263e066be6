"""Each control beside the real comparison: means over queries and seeds, and differences over the same queries.

Everything is computed from the table "queries" of `results`. A measure is one of its columns: a similarity,
or whether the answer is right, "icl_correct". Over several tasks means and differences are means over these tasks.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd

from explainer.compare.comparison import ComparisonSetting
from explainer.compare.controls import CONTROLS
from explainer.errors import ExperimentError
from explainer.results import aggregate, reporting
from explainer.results.published import results
from explainer.theory.statistics import Interval, Sample

MEASURES: Mapping[str, str] = {
    "sim_aou": "SimAOU",
    "sim_aou_raw": "not normalised",
    "sim_aou_tangent": "tangent",
    "sim_aou_residual": "residual",
    "sim_am_delta": "SimAMΔ",
    "update_cosine": "cos(ΔW, ΔW)",
}
"""The measures that controls are judged by, with their names in figures."""

NAMES: Mapping[str, str] = {name: control.short for name, control in CONTROLS.items()}
"""The controls, with their names in figures."""

_RESAMPLES = 1000  # ends of intervals known to a twentieth of their width, and hundreds of intervals take seconds


def queries(*grids: str) -> pd.DataFrame:
    """The queries of some grids, each setting once, with the short name of the control in a column `name`."""
    frame = pd.concat([results(grid, "queries") for grid in grids]).drop_duplicates(["setting", "query"])
    return frame.assign(name=frame["control"].map(NAMES))


def _interval(frame: pd.DataFrame, measure: str) -> Interval:
    """Mean over tasks of the mean over their settings of the mean over queries."""
    has = frame[measure].notna().groupby(frame["setting"]).transform("any")
    return reporting.similarity_interval(frame[has], measure, n_resamples=_RESAMPLES)


def _matched(a: pd.DataFrame, b: pd.DataFrame, measure: str) -> tuple[Sample, Sample] | None:
    """The values of A and B for the same queries, of settings that differ in the control only, in pairs.

    None where no setting has a partner. Raises ExperimentError where a query of A has several partners, and where the
    settings of A that have one differ in more than their seeds.
    """
    same = [*(field.name for field in fields(ComparisonSetting) if field.name != "control"), "query"]
    both = a.merge(b[[*same, measure]], on=same, suffixes=("", "_b")).dropna(subset=[measure, f"{measure}_b"])
    if both.empty:
        return None
    if both.duplicated(["setting", "query"]).any():
        raise ExperimentError(
            f"B has several settings for one of A, with {b['control'].unique().tolist()} as control; choose one."
        )
    return reporting.sample(both, measure), reporting.sample(both, f"{measure}_b")


def tasks_learned(frame: pd.DataFrame, state: str) -> list[str]:
    """Tasks of which a state, "ft" or "icl", answers more than ZSL does, settled over seeds (p < 0.05 after Holm)."""
    real = frame[(frame["control"] == "none") & frame[f"{state}_correct"].notna()]
    gains = reporting.column_differences(real, f"{state}_correct", "zsl_correct", np.mean)
    return [task for task, gain in gains.items() if gain.estimate > 0 and gain.p_value < 0.05]


def as_table(compared: Mapping[Any, Interval]) -> pd.DataFrame:
    """A row for each difference, with its interval and its p-value, and the names of controls as in figures."""
    rows = {name: {"difference": f"{d:+.3f}", "p (Holm)": f"{d.p_value:.3f}"} for name, d in compared.items()}
    return pd.DataFrame(rows).T.rename(index=NAMES)


def changes_under_controls(
    frames: Mapping[str, pd.DataFrame],
    controls: Iterable[str] | None = None,
    measures: Iterable[str] = MEASURES,
    *,
    than: str = "none",
) -> dict[tuple[str, str, str], Interval]:
    """What controls change in each frame, for each (frame, control, measure) that there is, all corrected together.

    Each control of the frame, unless some are given, minus the real comparison, or another one, of the same frame.
    """
    pairs = {}
    for name, frame in frames.items():
        of = aggregate.split(frame, "control")
        for control in (control for control in controls or of if control in of and control != than):
            for measure in measures:
                pairs[name, control, measure] = _matched(of[control], of[than], measure)
    return reporting.comparisons({name: both for name, both in pairs.items() if both})


def over_tasks(frame: pd.DataFrame, measures: Iterable[str]) -> dict[str, dict[str, Interval]]:
    """Mean over tasks of each measure under each control, `[control][measure]`, where there is one."""

    def means(its: pd.DataFrame) -> dict[str, Interval]:
        return {measure: _interval(its, measure) for measure in measures if its[measure].notna().any()}

    return aggregate.by_group(frame, "control", means)
