"""The forms that most figures of results have: dots and curves with intervals."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from explainer.figures.figure_base import (
    COLOURS,
    FLOOR,
    GRID,
    LINES,
    MARKERS,
    ROLES,
    dotted_lines,
    error_bars,
    log_axis,
    significant_digits,
)
from explainer.theory.statistics import Interval

_THIN = {"thickness": 1, "width": 3}
_GREY_MARKERS = ("line-ns", "x-thin", "cross-thin", "asterisk")

Values = Mapping[str, Interval | float]
"""A value for each row of a figure, with its interval where there is one."""

Ends = tuple[np.ndarray, np.ndarray, np.ndarray] | np.ndarray
"""Estimates, lower and upper ends of a curve; of intervals, `np.array(intervals).T`."""

_Curve = Mapping[float, Interval]


def dot_plot(
    measured: Mapping[str, Values],
    x_title: str = "",
    *,
    floors: Mapping[str, Values] | None = None,
    quoted: Mapping[str, Values] | None = None,
    line: float | Mapping[str, float] | None = 0,
) -> go.Figure:
    """A row for each name in `measured[series]`, with a lane for each series; see `dot_panels`."""
    return dot_panels({"": measured}, x_title, floors={"": floors or {}}, quoted={"": quoted or {}}, line=line)


def dot_panels(
    panels: Mapping[str, Mapping[str, Values]],
    x_title: str = "",
    *,
    floors: Mapping[str, Mapping[str, Values]] | None = None,
    quoted: Mapping[str, Mapping[str, Values]] | None = None,
    columns: int = 1,
    line: float | Mapping[str, float] | None = 0,
    order: Iterable[str] = (),
) -> go.Figure:
    """Points with intervals, `panels[title][series][row]`: all panels have the same rows, and lanes of series in them.

    `floors` are grey and `quoted` have open markers, both of the same shape as the panels; they stand in the lane of
    the series of the same name and say what they are, those of another name in a lane of their own. Series without a
    value are left out. A dotted line stands at `line`, or one at each of its values, with its name: {"chance": 0.25}.
    Rows are in the `order` of their names, then as they come.
    """
    floors, quoted = floors or {}, quoted or {}
    series, names = _names(panels, quoted), _names(panels, quoted, floors)
    every = [values for of in (panels, quoted, floors) for panel in of.values() for values in panel.values()]
    given = dict.fromkeys(row for values in every for row in values)
    rows = [row for row in dict.fromkeys([*order, *given]) if row in given]
    inner = len(rows) * max(34, 12 * len(names))
    figure, places = _panels(list(panels), columns, inner, shared="y")
    look = _assign_looks(names)
    for i, name in enumerate(names):
        lane = {row: j + 0.72 * ((i + 0.5) / len(names) - 0.5) for j, row in enumerate(rows)}
        colour, symbol = COLOURS[look[name]], MARKERS[look[name]]
        tick = "line-ns" if name in series else _GREY_MARKERS[(i - len(series)) % 4]
        kinds = ((panels, symbol, colour), (quoted, f"{symbol}-open", colour), (floors, tick, FLOOR))
        first = True
        for title, place in places.items():
            for of, shape, its_colour in kinds:
                if values := of.get(title, {}).get(name):
                    trace = _points(name, values, [lane[row] for row in values], shape, its_colour)
                    trace.showlegend = first and not (of is floors and name in series)
                    first = first and not trace.showlegend
                    if of is floors and name in series:
                        trace.name = f"{name}, floor"
                    elif of is quoted and panels.get(title, {}).get(name):
                        trace.name = f"{name}, quoted"
                    figure.add_trace(trace, **place)
    ticks = {"tickvals": list(range(len(rows))), "ticktext": rows, "range": [len(rows) - 0.5, -0.5]}
    figure.update_yaxes(showgrid=False, zeroline=False, **ticks)
    figure.update_xaxes(title_text=x_title, row=-(-len(panels) // columns))
    lines = line if isinstance(line, Mapping) else {} if line is None else {"": line}
    if any(lines):
        figure.update_annotations(yshift=15)  # titles of panels, above the names of lines
    dotted_lines(figure, "x", lines)
    for each in range(1, len(rows)):
        figure.add_hline(y=each - 0.5, line={"width": 1, "color": GRID})
    layout: Any = figure.layout  # plotly does not say which attributes it has
    return figure.update_layout(height=layout.height + 13 * len(names))


def curves(
    x: Sequence[float],
    series: Mapping[str, Ends | Interval],
    x_title: str,
    y_title: str,
    *,
    y_range: tuple[float, float] | None = None,
    log2: bool = False,
) -> go.Figure:
    """Lines with intervals: `series[name] = (mean, low, high)`, each of length `len(x)`, or an Interval of arrays.

    With `log2`, the x values are evenly spaced by rank (0, 1, 2, 4, ... demonstrations) and keep their own names.
    """
    figure = go.Figure()
    ticks = list(range(len(x))) if log2 else list(x)
    width, look = (len(series) - 1) / 2, _assign_looks(series)
    for i, (name, ends) in enumerate(series.items()):
        figure.add_trace(_line(name, [t + 0.05 * (i - width) for t in ticks] if log2 else ticks, ends, look[name]))
    figure.update_layout(height=380, xaxis_title=x_title, yaxis_title=y_title)
    if log2:
        figure.update_xaxes(tickvals=ticks, ticktext=[str(v) for v in x])
    if y_range:
        figure.update_yaxes(range=y_range)
    return figure


def curve_panels(
    panels: Mapping[str, Mapping[str, _Curve]],
    x_title: str,
    *,
    floors: Mapping[str, Mapping[str, _Curve]] | None = None,
    columns: int = 1,
    by_rank: bool = False,
    line: Mapping[str, float] | None = None,
) -> go.Figure:
    """Lines with intervals, `panels[title][series][x]`; a series looks the same in every panel.

    One that is alone in its panel may have the name "". `floors`, of the same shape, are thin dotted lines with open
    markers in the colour of the series. With `by_rank` the x values are evenly spaced and keep their own names, of
    which at most ten are written; otherwise their axis is logarithmic. A dotted line with its name stands at each value
    of `line`.
    """
    floors = floors or {}
    names, titled = _names(panels), {""}
    look = _assign_looks(names)
    ranks = sorted({x for panel in panels.values() for curve in panel.values() for x in curve})
    figure, places = _panels(list(panels), columns, 170, shared="x")
    for title, i, name in ((title, i, name) for title in panels for i, name in enumerate(names)):
        for of in (panels, floors):
            if curve := dict(sorted(of.get(title, {}).get(name, {}).items())):
                apart = 0.06 * (i - (len(names) - 1) / 2)
                x = [ranks.index(each) + apart for each in curve] if by_rank else list(curve)
                trace = _line(name, x, _ends(curve), look[name])
                trace.update(legendgroup=name, showlegend=name not in titled, hovertext=[f"{each:g}" for each in curve])
                if of is floors:
                    thin = {"line": {"dash": "dot", "width": 1}, "marker_symbol": f"{MARKERS[look[name]]}-open"}
                    trace.update(name=f"{name}, floor", showlegend=False, **thin)
                figure.add_trace(trace, **places[title])
                titled.add(name)
    nth = -(-len(ranks) * columns // 10)
    named = {"tickvals": list(range(0, len(ranks), nth)), "ticktext": [f"{x:g}" for x in ranks[::nth]]}
    figure.update_xaxes(named if by_rank else log_axis(ranks))
    figure.update_xaxes(showticklabels=True)
    dotted_lines(figure, "y", line or {})
    return figure.update_xaxes(title_text=x_title, row=-(-len(panels) // columns))


def _assign_looks(names: Iterable[str]) -> dict[str, int]:
    """The number of the look of each series: that of its role, else the next one; the seventh looks as the first."""
    free = count()
    return {name: ROLES[name] if name in ROLES else next(free) % 6 for name in names}


def _panels(titles: Sequence[str], columns: int, inner: float, *, shared: str) -> tuple[go.Figure, dict[str, dict]]:
    """Panels of this height that share an axis, "x" or "y", and the place of each; the legend stands above.

    There it may have several lines on a phone without covering the title of an axis.
    """
    lines, room = -(-len(titles) // columns), 60
    total = lines * (inner + room) - room
    above = titles if any(titles) else None
    apart: Any = {"vertical_spacing": room / total * (lines > 1), "horizontal_spacing": 0.1 if shared == "x" else 0.06}
    sharing: Any = {"shared_xaxes": shared == "x", "shared_yaxes": shared == "y"}
    figure: Any = make_subplots(lines, columns, subplot_titles=above, **apart, **sharing)
    figure.update_layout(height=total + 150, legend_y=1 + (30 if above else 8) / total)
    wide, font = figure.layout.xaxis.domain[1], {"size": 14, "weight": 600}
    figure.for_each_annotation(lambda name: name.update(x=name.x - wide / 2, xanchor="left", font=font))
    places = np.ndindex(lines, columns)
    return figure, {title: {"row": row + 1, "col": col + 1} for title, (row, col) in zip(titles, places, strict=False)}


def _points(name: str, values: Values, y: Sequence[float], symbol: str, colour: str) -> go.Scatter:
    x, low, high = ends = _ends(values)
    edge = {"line": {"width": 2, "color": colour}} if symbol in _GREY_MARKERS else {}
    return go.Scatter(
        x=x.tolist(),
        y=list(y),
        name=name,
        legendgroup=name,
        customdata=list(values),
        hovertemplate="%{customdata}: %{x:.3g}",
        mode="markers",
        marker={"symbol": symbol, "color": colour, "size": 9, **edge},
        error_x=error_bars(ends, **_THIN, color=colour) if np.any(high > low) else None,
    )


def _line(name: str, x: Sequence[float], ends: Iterable[Any], i: int) -> go.Scatter:
    mean, low, high = map(np.asarray, ends)
    return go.Scatter(
        x=x,
        y=mean.tolist(),
        name=name,
        mode="lines+markers",
        line=LINES[i],
        marker={"symbol": MARKERS[i], "size": 8},
        error_y=error_bars((mean, low, high), **_THIN),
    )


def _ends(values: Mapping[Any, Interval | float]) -> np.ndarray:
    """Estimates, low and high ends, with four significant digits: (3, values); a number alone has no ends, NaN."""
    ends = [tuple(value) if isinstance(value, Iterable) else (value, math.nan, math.nan) for value in values.values()]
    return np.array([significant_digits(each) for each in ends]).T


def _names(*of: Mapping[str, Mapping[str, Mapping]]) -> list[str]:
    """The series that have values in any of the panels, each once."""
    every = (panel for panels in of for panel in panels.values())
    return list(dict.fromkeys(name for panel in every for name, values in panel.items() if values))
