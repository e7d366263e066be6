"""What the published comparisons of ZSL, ICL and FT say: controls, depth, label bias, and what FT and ICL repair.

Everything is computed from the tables "queries" and "layers" of `results`. A measure is one of their columns: a
similarity, or whether the answer is right, "icl_correct". Over several tasks means and differences are means over these
tasks. Intervals along the depth are Student's over seeds; where seeds share many queries they are too narrow.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import spearmanr

from explainer.errors import ExperimentError
from explainer.results import published, reporting, table_intervals
from explainer.results.published import TEN_TASKS, results
from explainer.theory import statistics
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

_RESAMPLES = 1000  # of controls: ends of intervals known to a twentieth of their width; hundreds take seconds


def queries_of_ten_tasks(control: str = "none") -> pd.DataFrame:
    """The queries of all ten tasks, or those of the "untrained" model, of the settings whose FT did not diverge."""
    queries = results(TEN_TASKS[control], "queries", control=control)
    return queries[queries["ft_correct"].notna()]


# Controls.


def means_by_control(queries: pd.DataFrame, measures: Iterable[str]) -> dict[str, dict[str, Interval]]:
    """Mean over tasks of each measure under each control that has it, `[control][measure]`; what diverged is left out.

    The bootstrap over seeds and queries (`reporting.similarity_interval`).
    """

    def means(of_control: pd.DataFrame) -> dict[str, Interval]:
        known = of_control.groupby("setting")[list(measures)].transform(lambda column: column.notna().any())
        return {
            measure: reporting.similarity_interval(of_control[known[measure]], measure, n_resamples=_RESAMPLES)
            for measure in measures
            if known[measure].any()
        }

    return table_intervals.by_group(queries, "control", means)


def changes_under_controls(
    frames: Mapping[str, pd.DataFrame],
    controls: Iterable[str] | None = None,
    measures: Iterable[str] = MEASURES,
    *,
    than: str = "none",
) -> dict[tuple[str, str, str], Interval]:
    """What controls change in each frame, for each (frame, control, measure) that there is, all corrected together.

    Each control of the frame, unless some are given, minus the real comparison, or another one, of the same frame:
    paired by query, Student over seeds (`statistics.paired_difference`).
    """
    pairs = {}
    for name, frame in frames.items():
        of = dict(list(frame.groupby("control", sort=False)))
        for control in (control for control in controls or of if control in of and control != than):
            for measure in measures:
                pairs[name, control, measure] = _matched(of[control], of[than], measure)
    return table_intervals.holm_corrected(
        {name: statistics.paired_difference(*both) for name, both in pairs.items() if both}
    )


def _matched(a: pd.DataFrame, b: pd.DataFrame, measure: str) -> tuple[Sample, Sample] | None:
    """The values of A and B for the same queries, of settings that differ in the control only, in pairs.

    None where no setting has a partner. Raises ExperimentError where a query of A has several partners, and where the
    settings of A that have one differ in more than their seeds.
    """
    same = ["checkpoint", "task", "seed", "k", "lr", "n_queries", "position", "split", "query"]
    both = a.merge(b[[*same, measure]], on=same, suffixes=("", "_b")).dropna(subset=[measure, f"{measure}_b"])
    if both.empty:
        return None
    if both.duplicated(["setting", "query"]).any():
        raise ExperimentError(
            f"B has several settings for one of A, with {b['control'].unique().tolist()} as control; choose one."
        )
    return reporting.as_sample(both, measure), reporting.as_sample(both, f"{measure}_b")


# Along the depth, from tables "layers".


def rank_trends(layers: Mapping[str, pd.DataFrame], measure: str, less: str | None = None) -> dict[str, Interval]:
    """Does a measure, less another, rise with depth? Spearman's correlation of layer and value for each task.

    Mean over seeds of the correlation of each. Raises ExperimentError as `published.require_only_seeds_differ`.
    """
    trends = {}
    for task, table in layers.items():
        published.require_only_seeds_differ(table)
        values = table.assign(value=table[measure] - (table[less] if less else 0))
        by_layer = values.pivot(index="setting", columns="layer", values="value")
        rows = by_layer.dropna(how="all").to_numpy()  # without settings whose FT diverged
        # SciPy makes the class of this result when it is imported, where no type checker sees its fields.
        trends[task] = statistics.student(
            [spearmanr(np.arange(len(row)), row, nan_policy="omit").statistic for row in rows]  # pyright: ignore[reportAttributeAccessIssue]
        )
    return trends


# Which of the zero-shot errors FT and ICL repair.

_REPAIR_RESAMPLES = 500  # the interval's ends are known to about a tenth of its width


@dataclass(frozen=True)
class _Repairs:
    """Rec2FTP over all seeds of a task, its chance value, the same within each right answer, and what is above that.

        sum_g f_g c_g / sum_g f_g over groups g, seeds or seeds and labels
    with f_g the repairs of FT and c_g the share of zero-shot errors that ICL repairs in the group. The excess is recall
    minus `within_label`. `n_different` counts the different queries that FT repairs.
    """

    n_errors: int
    n_repaired: int
    n_different: int
    recall: Interval
    chance: Interval
    within_label: Interval
    excess: Interval


def repairs(queries: pd.DataFrame) -> _Repairs:
    """Count what FT and ICL repair, with the intervals of one crossed bootstrap for all shares.

    Answers without labels form one group. Raises ExperimentError where FT diverged.
    """
    known = queries.assign(label=queries["label"].fillna(0) if "label" in queries else 0)
    sample = reporting.as_sample(known, "zsl_correct", "icl_correct", "ft_correct", "label")
    seeds = [(~zsl, ~zsl & icl, ~zsl & ft, labels) for zsl, icl, ft, labels in sample.groups]
    times, drawn = statistics.crossed_draws(sample, n_resamples=_REPAIR_RESAMPLES)
    counts = [times[:, [g]] * drawn[:, numbers].astype(float) for g, numbers in enumerate(sample.queries)]
    resampled = _repair_shares(seeds, counts)
    undefined = float(np.isnan(resampled[0]).mean())
    low, high = np.nanquantile(resampled, (0.025, 0.975), axis=1) if undefined < 1 else np.full((2, 4), np.nan)
    shares = zip(_repair_shares(seeds, [np.ones((1, n)) for n in sample.sizes])[:, 0], low, high, strict=True)
    n_errors, n_repaired = (int(sum(seed[i].sum() for seed in seeds)) for i in (0, 2))
    recall, *others = (Interval(*map(float, ends), undefined=undefined) for ends in shares)
    repaired = [numbers[by_ft] for numbers, (_, _, by_ft, _) in zip(sample.queries, seeds, strict=True)]
    n_different = len(np.unique(np.concatenate(repaired)))
    return _Repairs(n_errors, n_repaired, n_different, statistics.widen_degenerate(recall, n_different), *others)


_Seed = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Over the queries of one seed: wrong under ZSL, repaired by ICL, repaired by FT, label."""


def _repair_shares(seeds: Sequence[_Seed], counts: Sequence[Float[np.ndarray, "r _"]]) -> Float[np.ndarray, "4 r"]:
    """Recall, chance, chance within the label, recall minus the latter; NaN where FT repairs nothing.

    In resample r, query i of seed g counts `counts[g][r, i]` times. Chance is what would be repaired by both if ICL
    repaired any error, or any of a label, at random.
    """
    n_both, by_chance, within_label, n_ft = np.zeros((4, len(counts[0])))
    for (wrong, by_icl, by_ft, labels), times in zip(seeds, counts, strict=True):

        def at_random(group: np.ndarray, times=times, by_icl=by_icl, by_ft=by_ft) -> np.ndarray:
            return (times @ (by_ft & group)) * (times @ (by_icl & group)) / np.maximum(times @ group, 1)

        n_both += times @ (by_icl & by_ft)
        by_chance += at_random(wrong)
        within_label += sum(at_random(wrong & (labels == label)) for label in np.unique(labels))
        n_ft += times @ by_ft
    with np.errstate(invalid="ignore"):
        return np.array([n_both, by_chance, within_label, n_both - within_label]) / n_ft
