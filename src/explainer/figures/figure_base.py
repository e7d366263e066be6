"""What every figure shares: the template, the look of each series, error bars, dotted lines and digits."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go

from explainer.data.numbers import raised
from explainer.palette import PALETTE

TRAINING, CONTEXT = 6, 7
MARKERS = ("circle", "square", "x", "triangle-down", "cross", "star", "diamond", "triangle-up")
"""Colour never stands alone: each series also has its own marker and dash."""
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "dash", "solid")
_WIDTHS = (2, 2, 2, 3, 3, 3, 2, 2)  # of two curves of one tone, one is bold
_TONES = ("ink", "slate", "stone", "ink", "stone", "slate", "training", "context")
COLOURS = tuple(PALETTE[role][0] for role in _TONES)
FLOOR, INK, GRID = (PALETTE[role][0] for role in ("stone", "ink", "grid"))
ROLES = dict.fromkeys(
    ("two contexts", "two contexts (C)", "after the context", "of the context's change", "the change by the context",
     "in context", "ICL", "two contexts of the task"), CONTEXT,
) | dict.fromkeys(
    ("two training runs", "two training runs (F)", "after the training", "of the training's change", "by fine-tuning",
     "fine-tuned", "FT"), TRAINING,
)  # fmt: skip
"""Series that look the same in all chapters: what a context does, and what a training does."""
LINES = tuple(
    {"color": colour, "dash": dash, "width": width}
    for colour, dash, width in zip(COLOURS, _DASHES, _WIDTHS, strict=True)
)
MARKS = tuple({"color": colour, "symbol": symbol} for colour, symbol in zip(COLOURS, MARKERS, strict=True))
"""The line and the marker of the first six series, of a training and of a context."""
_AXIS = {
    "gridcolor": GRID, "linecolor": INK, "zerolinecolor": INK, "zerolinewidth": 1, "tickcolor": INK, "ticks": "outside",
    "ticklen": 4, "title": {"standoff": 8, "font": {"size": 13}}, "automargin": True,
    "fixedrange": True,  # a finger scrolls the page, and nobody gets lost
}  # fmt: skip
TEMPLATE = {
    "layout": {
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "colorway": COLOURS, "dragmode": False,
        "font": {"color": INK, "family": "system-ui, sans-serif", "size": 13},
        "xaxis": _AXIS | {"showgrid": False, "showline": True, "zeroline": False},
        "yaxis": _AXIS | {"ticks": "", "ticklabelstandoff": 4, "zeroline": False},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
        "margin": {"l": 50, "r": 12, "t": 36, "b": 44},
        "shapedefaults": {"line": {"color": INK}},
    }
}  # fmt: skip
"""How every plot looks: no box, no lines but those that a reader reads numbers by."""


def error_bars(ends: Iterable[Any], **look: Any) -> dict[str, Any]:
    """Error bars to the ends of intervals: estimates, low and high ends in three arrays; None where an end is NaN.

    A bar of no length would read as an interval, "0.3 to 0.3", in the table of the figure's numbers. Where all draws
    agree, it is one.
    """
    estimate, low, high = map(np.asarray, ends)
    array, arrayminus = (
        [float(length) if np.isfinite(length) else None for length in side]
        for side in (high - estimate, estimate - low)
    )
    return {"array": array, "arrayminus": arrayminus, **look}


def dotted_lines(figure: go.Figure, letter: str, places: Mapping[str, float]) -> None:
    """Dotted lines in all panels at values of x or of y, each with its name, which may be "", at its end."""
    add, end = (figure.add_vline, "top") if letter == "x" else (figure.add_hline, "right")
    for name, at in places.items():
        # Plotly places texts, unlike lines, on a logarithmic axis by the power of ten.
        where = math.log10(at) if figure.layout[f"{letter}axis"]["type"] == "log" else at
        text = {"annotation": {"text": name, "font": {"size": 12}, letter: where}, "annotation_position": end}
        add(at, line={"dash": "dot", "width": 1.5}, **(text if name else {}))
    if letter == "y" and any(places):
        figure.update_layout(margin_r=8 * max(map(len, places)))


def log_axis(values: Iterable[float], *, own: bool = True) -> dict[str, Any]:
    """A logarithmic axis with ticks at few of its `own` values, each at least twice the one before.

    Where they are many, or measured, the ticks are powers of ten, and 1, 2 and 5 times these where all is within two.
    """
    drawn, ticks = sorted({value for value in values if value > 0}), []
    for value in drawn:
        ticks += [value] * (not ticks or value >= 2 * ticks[-1])
    names = [f"{tick:g}" for tick in ticks]
    if not own or len(ticks) > 6:
        powers = range(math.floor(math.log10(drawn[0])), math.ceil(math.log10(drawn[-1])) + 1)
        times = (1,) if drawn[-1] > 100 * drawn[0] else (1, 2, 5)
        ticks = [each * 10.0**power for power in powers for each in times]
        names = [f"{tick:g}" if times[1:] or tick in (1, 10) else f"10{raised(f'{tick:e}'[9:])}" for tick in ticks]
    return {"type": "log", "tickvals": ticks, "ticktext": names, "tickangle": 0}


def significant_digits(values: Iterable[float], digits: int = 4) -> list[float]:
    """Numbers with so many significant digits, which is what a page has to carry."""
    return [float(f"{value:.{digits}g}") for value in values]
