"""What every figure shares: the template, the look of each series, error bars and digits."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from explainer.palette import PALETTE

TRAINING, CONTEXT = 6, 7
MARKERS = ("circle", "square", "x", "triangle-down", "cross", "star", "diamond", "triangle-up")
"""Colour never stands alone: each series also has its own marker and dash."""
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "dash", "solid")
_TONES = ("ink", "slate", "stone")
COLOURS = tuple(PALETTE[role][0] for role in (*_TONES, *_TONES, "training", "context"))
FLOOR, INK, GRID = (PALETTE[role][0] for role in ("stone", "ink", "grid"))
ROLES = dict.fromkeys(
    ("two contexts", "two contexts (C)", "after the context", "of the context's change", "the change by the context",
     "in context", "ICL", "two contexts of the task"), CONTEXT,
) | dict.fromkeys(
    ("two training runs", "two training runs (F)", "after the training", "of the training's change", "by fine-tuning",
     "fine-tuned", "FT"), TRAINING,
)  # fmt: skip
"""Series that look the same in all chapters: what a context does, and what a training does."""
LINES = tuple({"color": colour, "dash": dash} for colour, dash in zip(COLOURS, _DASHES, strict=True))
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


def significant_digits(values: Iterable[float], digits: int = 4) -> list[float]:
    """Numbers with so many significant digits, which is what a page has to carry."""
    return [float(f"{value:.{digits}g}") for value in values]
