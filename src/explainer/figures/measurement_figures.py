"""Measurements with their intervals: over categories, and over a number beside what a formula says."""

import html
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from explainer.figures.figure_base import (
    FLOOR,
    LINES,
    MARKS,
    dotted_lines,
    error_bars,
    log_axis,
    significant_digits,
)
from explainer.theory.statistics import Interval

_Curve = tuple[Sequence[float], Sequence[float]]


def log_dot_plot(
    values: Mapping[str, Mapping[str, Interval]],
    y_title: str,
    *,
    smallest: float,
    floors: Mapping[str, float] | None = None,
) -> go.Figure:
    """Measurements over categories on a log axis: `values[series][category]`, side by side, with their intervals.

    What is below `smallest` is drawn there. `floors`, one value per category, are bars across it.
    """
    figure, categories = go.Figure(), list(dict.fromkeys(name for series in values.values() for name in series))
    if floors:
        marker = {"symbol": "line-ew", "size": 24, "line": {"width": 3, "color": FLOOR}}
        where = [categories.index(name) for name in floors]
        figure.add_scatter(x=where, y=list(floors.values()), name="floor", mode="markers", marker=marker)
    for i, (series, of_category) in enumerate(values.items()):
        shift = 0.62 * ((i + 0.5) / len(values) - 0.5)
        x = [categories.index(name) + shift for name in of_category]
        figure.add_scatter(x=x, name=series, mode="markers", **_marks(i, of_category.values(), smallest))
    figure.update_xaxes(tickvals=list(range(len(categories))), ticktext=[_broken(name) for name in categories])
    figure.update_xaxes(range=[-0.5, len(categories) - 0.5], showgrid=False, zeroline=False, tickangle=0)
    figure.update_yaxes(log_axis(_drawn(figure, "y"), own=False), title_text=y_title)
    return figure.update_layout(height=370)


def points_on_curves(
    curves: Mapping[str, _Curve],
    points: Mapping[str, Mapping[float, Interval]],
    x_title: str,
    y_title: str,
    *,
    levels: Mapping[str, float] | None = None,
    marks: Mapping[str, float] | None = None,
    smallest: float = -math.inf,
    log: str = "xy",
) -> go.Figure:
    """Lines, and measured points with intervals; a name that has both looks the same and stands in the legend once.

    `points[series][x]`; `levels` are horizontal lines with their names, `marks` vertical ones; `log` names the log
    axes. Points below `smallest` are drawn there.
    """
    figure, names = go.Figure(), list(dict.fromkeys([*curves, *points]))
    for i, name in enumerate(names):
        both = name in curves and name in points
        if name in curves:
            x, y = map(significant_digits, curves[name])
            look = {"mode": "lines", "line": LINES[i % 6]}
            figure.add_scatter(x=x, y=y, name=name, legendgroup=name, showlegend=not both, **look)
        if name in points:
            style = _marks(i, points[name].values(), smallest)
            figure.add_scatter(x=list(points[name]), name=name, legendgroup=name, mode="markers", **style)
    for letter in log:
        figure.update_layout({f"{letter}axis": log_axis(_drawn(figure, letter), own=letter == "x")})
    dotted_lines(figure, "y", levels or {})
    dotted_lines(figure, "x", marks or {})
    return figure.update_layout(height=370, xaxis_title=x_title, yaxis_title=y_title)


class _CountAndRange(NamedTuple):
    """How many numbers there are, the smallest and the largest."""

    n: int
    low: float
    high: float


def count_and_range(values: Iterable[Interval | float]) -> _CountAndRange:
    """What a text says of many numbers; of measurements, the estimates."""
    ordered = sorted(value.estimate if isinstance(value, Interval) else value for value in values)
    return _CountAndRange(len(ordered), ordered[0], ordered[-1])


def _marks(i: int, values: Collection[Interval], smallest: float) -> dict:
    """Heights, intervals and look of the i-th series."""
    shown = np.maximum(np.array([*values]).T, smallest)
    bars = error_bars(shown, thickness=1.5, width=4)
    return {"y": significant_digits(shown[0]), "error_y": bars, "marker": MARKS[i % 6] | {"size": 9}}


def _drawn(figure: go.Figure, letter: str) -> list[float]:
    """All values of x or y."""
    return [value for trace in figure.data for value in trace[letter]]


def _broken(name: str) -> str:
    """A category's name in lines of one word each, so that five fit on a phone."""
    return "<br>".join(html.escape(name).split())
