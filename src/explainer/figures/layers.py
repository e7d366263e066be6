"""Figures and statistics of the chapter `layer_by_layer`: similarities along the depth of a model."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
from scipy.stats import spearmanr, t

from explainer.analysis import reporting
from explainer.experiments import study
from explainer.experiments.comparison import StudyError
from explainer.figures.base import COLOURS, DASHES, MARKERS
from explainer.lab.store import GRIDS, Stored, published_directory
from explainer.theory import statistics

Rows = np.ndarray
"""Values in the layers, (seeds, layers) or (queries, layers), layer 0 next to the input; NaN where there is none."""

DEUTCH_LAYERS: Mapping[int, float] = {0: 0.166, 1: 0.012, 13: 0.297, 19: 0.069, 23: 0.294}
"""SimAOU (normalised) of FT by gradient descent in layers of the 24 of fairseq 1.3B, mean over six tasks.

Source: output of scripts/analysis.ipynb in GiilDe/ft-vs-icl, the code of Deutch et al. (2024).
"""
DEUTCH_N_LAYERS = 24


MAIN_GRIDS = ("classification", "agnews", "cb", "pairs")
"""Grids of the stored studies with the comparison itself and the untrained model."""


def by_task(control: str, grids: Sequence[str] = MAIN_GRIDS) -> dict[str, list[Stored]]:
    """The stored results of a control in the given grids, for every task of which all seeds are there.

    A study that is still running thus gives fewer tasks, never fewer seeds. Raises ResultsError without any studies.
    """
    known, found = study.read_grids(published_directory() / GRIDS), {}
    for grid in grids:
        for task in dict.fromkeys(cell.task for cell in known.get(grid, ()) if cell.control == control):
            try:
                finished = reporting.stored(grid, task=task, control=control)
            except StudyError:
                continue
            if sum(one.result["similarity"] is not None for one in finished) > 1:
                found[task] = finished
    return found


def layer_rows(finished: Sequence[Stored], measure: str) -> Rows:
    """A similarity in each layer, mean over queries, (seeds, layers); seeds whose FT diverged are left out."""
    return np.array([row for one in finished if (row := _layers(one, measure))], dtype=float)


def _layers(one: Stored, measure: str) -> list[float | None] | None:
    return one.result["similarity"] and one.result["similarity"][measure]["layers"]


def mean_over_tasks(found: Mapping[str, Sequence[Stored]], measure: str) -> Rows:
    """A similarity in each layer, mean over tasks, (seeds, layers), for the seeds that every task has."""
    rows = [{one.identity["cell"]["seed"]: row for one in f if (row := _layers(one, measure))} for f in found.values()]
    seeds = sorted(set.intersection(*map(set, rows)))
    return np.array([[each[seed] for seed in seeds] for each in rows], dtype=float).mean(0)


class Estimate(NamedTuple):
    """A mean over seeds, the ends of Student's 95 % interval, and the two-sided p-value of a mean of zero."""

    mean: float
    low: float
    high: float
    p_value: float


def over_seeds(values: Sequence[float]) -> Estimate:
    """Mean of one number per seed: mean +- t sd / sqrt(n), p from t = mean / (sd / sqrt(n)) with n - 1 degrees.

    Queries are many and seeds are few, so that the spread over seeds decides; unlike the bootstrap over so few, it
    keeps its level where the numbers are normal. Raises ValueError for fewer than two seeds.
    """
    numbers = np.asarray(values, dtype=float)
    n = len(numbers)
    if n < 2:
        raise ValueError(f"an interval over seeds needs at least 2 of them, there are {n}.")
    mean, error = numbers.mean(), numbers.std(ddof=1) / np.sqrt(n)
    half = t.ppf(0.975, n - 1) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        p_value = 2 * t.sf(abs(mean) / error, n - 1)
    return Estimate(float(mean), float(mean - half), float(mean + half), float(p_value))


def rank_trend(rows: Rows) -> Estimate:
    """Does a similarity rise with depth? Spearman's rank correlation of layer and value, seed by seed.

    1 if every layer is above the one below it, -1 if below, 0 without a trend. The layers of one curve depend on each
    other, so the p-value of a single rank correlation would be far too small: only the spread over seeds is used.
    """
    return over_seeds([spearmanr(np.arange(rows.shape[1]), row, nan_policy="omit").statistic for row in rows])


def rise(rows: Rows) -> Estimate:
    """By how much? Mean of the last third of the layers minus that of the first third, seed by seed."""
    third = rows.shape[1] // 3
    return over_seeds(np.nanmean(rows[:, -third:], 1) - np.nanmean(rows[:, :third], 1))


def adjusted(estimates: Mapping[str, Estimate]) -> dict[str, float]:
    """p-values of the estimates, corrected for their number by Holm's procedure."""
    return dict(zip(estimates, statistics.holm(np.array([e.p_value for e in estimates.values()])), strict=True))


def verdict(estimates: Mapping[str, Estimate], level: float = 0.05) -> str:
    """In how many of the estimates the sign is settled after Holm's correction, in words."""
    p_values = adjusted(estimates)
    rises = sum(p_values[name] < level and e.mean > 0 for name, e in estimates.items())
    falls = sum(p_values[name] < level and e.mean < 0 for name, e in estimates.items())
    return (
        f"rises in {rises}, falls in {falls}, undecided in {len(estimates) - rises - falls} of {len(estimates)} tasks"
    )


def settled(rows: Rows, level: float = 0.05) -> list[bool]:
    """Layers whose mean over seeds is above zero after Holm's correction for the number of layers."""
    each = [over_seeds(column) for column in rows.T]
    p_values = statistics.holm(np.array([e.p_value for e in each]))
    return [bool(p < level and e.mean > 0) for e, p in zip(each, p_values, strict=True)]


def boxes(values: Mapping[str, Rows], y_title: str) -> go.Figure:
    """A box over the queries in each layer for each measure, (queries, layers); the whiskers end at 5 and 95 %."""
    figure = go.Figure()
    for i, (name, rows) in enumerate(values.items()):
        low, q1, median, q3, high = np.nanquantile(rows, (0.05, 0.25, 0.5, 0.75, 0.95), axis=0)
        figure.add_box(
            x=list(range(rows.shape[1])),
            lowerfence=low.tolist(),
            q1=q1.tolist(),
            median=median.tolist(),
            q3=q3.tolist(),
            upperfence=high.tolist(),
            name=name,
            marker={"color": COLOURS[i]},
            line={"width": 1.5},
            fillcolor="rgba(0,0,0,0)" if i else None,
        )
    figure.update_layout(height=380, boxmode="group", xaxis_title="layer", yaxis_title=y_title)
    return figure.update_layout(legend={"x": 0, "y": 1.12, "orientation": "h"})


def seed_curves(curves: Mapping[str, Rows], y_title: str) -> go.Figure:
    """One thin line per seed and a thick one with markers for their mean, for each name."""
    figure = go.Figure()
    for i, (name, rows) in enumerate(curves.items()):
        layers, dash = list(range(rows.shape[1])), DASHES[i]
        for row in rows:
            line = {"width": 1, "color": COLOURS[i], "dash": dash}
            figure.add_scatter(
                x=layers, y=row.tolist(), mode="lines", line=line, opacity=0.4, showlegend=False, name=name
            )
        figure.add_scatter(
            x=layers,
            y=rows.mean(0).tolist(),
            name=name,
            mode="lines+markers",
            line={"width": 2.5, "color": COLOURS[i], "dash": dash},
            marker={"symbol": MARKERS[i], "size": 7},
        )
    figure.update_layout(height=400, xaxis_title="layer", yaxis_title=y_title)
    return figure.update_layout(legend={"x": 0, "y": 1.12, "orientation": "h"})


def depth_profile(curves: Mapping[str, Rows], published: Mapping[int, float] = DEUTCH_LAYERS) -> go.Figure:
    """Means over seeds with Student's intervals along the relative depth, beside the published layers (open)."""
    figure = go.Figure()
    for i, (name, rows) in enumerate(curves.items()):
        each = [over_seeds(column) for column in rows.T]
        figure.add_scatter(
            x=np.linspace(0, 1, rows.shape[1]).tolist(),
            y=[e.mean for e in each],
            error_y={
                "array": [e.high - e.mean for e in each],
                "arrayminus": [e.mean - e.low for e in each],
                "thickness": 1,
                "width": 2,
            },
            name=name,
            mode="lines+markers",
            line={"color": COLOURS[i], "dash": DASHES[i]},
            marker={"symbol": MARKERS[i], "size": 7},
        )
    figure.add_scatter(
        x=[layer / (DEUTCH_N_LAYERS - 1) for layer in published],
        y=list(published.values()),
        name="quoted: fairseq 1.3B, its layer",
        mode="markers+text",
        text=[f"{layer}" for layer in published],
        textposition="top center",
        marker={"symbol": "star-open", "size": 13, "color": COLOURS[3], "line": {"width": 2}},
    )
    titles = {"xaxis_title": "relative depth", "yaxis_title": "SimAOU, normalised"}
    return figure.update_layout(height=420, legend={"x": 0, "y": 1.14, "orientation": "h"}, **titles)


def trends(estimates: Mapping[str, Mapping[str, Estimate]], x_title: str) -> go.Figure:
    """A row for each task with an estimate and its interval for each condition: `estimates[condition][task]`."""
    figure = go.Figure()
    rows = list(dict.fromkeys(task for each in estimates.values() for task in each))
    for i, (name, each) in enumerate(estimates.items()):
        offset = 0.13 * (i - (len(estimates) - 1) / 2)
        figure.add_scatter(
            x=[e.mean for e in each.values()],
            y=[rows.index(task) + offset for task in each],
            error_x={
                "array": [e.high - e.mean for e in each.values()],
                "arrayminus": [e.mean - e.low for e in each.values()],
                "thickness": 1.5,
                "width": 3,
            },
            name=name,
            mode="markers",
            marker={"symbol": MARKERS[i % 6], "size": 9, "color": COLOURS[i % 6]},
        )
    figure.update_xaxes(zeroline=True, zerolinewidth=2)
    figure.update_yaxes(tickvals=list(range(len(rows))), ticktext=rows, range=[len(rows) - 0.5, -0.5], zeroline=False)
    figure.update_layout(height=140 + 84 * len(rows), xaxis_title=x_title)
    return figure.update_layout(legend={"x": 0, "y": 1.02, "yanchor": "bottom", "orientation": "h"})


def layer_map(found: Mapping[str, Mapping[str, Sequence[bool]]]) -> go.Figure:
    """A mark for each layer of each task with a property: `found[property][task][layer]`, two properties at most."""
    figure, looks = go.Figure(), (("square-open", 11, 2), ("circle", 6, 0))
    tasks = list(dict.fromkeys(task for each in found.values() for task in each))
    for i, (name, each) in enumerate(found.items()):
        places = [(layer, task) for task, there in each.items() for layer, yes in enumerate(there) if yes]
        symbol, size, width = looks[i]
        figure.add_scatter(
            x=[layer for layer, _ in places],
            y=[task for _, task in places],
            name=name,
            mode="markers",
            marker={"symbol": symbol, "size": size, "color": COLOURS[i], "line": {"width": width}},
        )
    layers = max(len(there) for each in found.values() for there in each.values())
    figure.update_yaxes(categoryorder="array", categoryarray=tasks[::-1], range=[-0.5, len(tasks) - 0.5])
    figure.update_xaxes(range=[-0.5, layers - 0.5], title="layer")
    return figure.update_layout(
        height=190 + 34 * len(tasks), legend={"x": 0, "y": 1.02, "yanchor": "bottom", "orientation": "h"}
    )
