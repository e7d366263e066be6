"""What every figure shares: the palette, the look of each series, error bars and digits."""

from collections.abc import Iterable
from typing import Any

import numpy as np

# Colour never stands alone: each series also has its own marker and dash.
MARKERS = ("circle", "square", "diamond", "triangle-up", "x", "star")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
GREY = "#808080"
TRAINING, CONTEXT = 2, 3
ROLES = dict.fromkeys(
    ("two contexts", "two contexts (C)", "after the context", "of the context's change", "the change by the context",
     "in context", "ICL"), CONTEXT,
) | dict.fromkeys(
    ("two trainings", "two trainings (F)", "after the training", "of the training's change", "by fine-tuning",
     "fine-tuned", "FT"), TRAINING,
)  # fmt: skip
"""Series that look the same in all chapters: what a context does is purple, what a training does is green."""
LEGEND_ABOVE = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
"""A legend above the figure, where it may have several lines on a phone."""
LEGEND_BELOW = {"orientation": "h", "x": 0, "yanchor": "top"}
"""A legend below the figure; `y` is the height that leaves room for the title of the axis."""
LINES = tuple({"color": colour, "dash": dash} for colour, dash in zip(COLOURS, _DASHES, strict=True))
MARKS = tuple({"color": colour, "symbol": symbol} for colour, symbol in zip(COLOURS, MARKERS, strict=True))
"""The line and the marker of the first six series; the seventh looks as the first."""


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
