"""Figures of the study `language_models`: gaps of pairs.

Curves are data frames, tokens seen x seeds.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from explainer.figures.base import COLOURS, MARKERS, error_bars, legend_below, line_style, significant_digits
from explainer.figures.forms import ends
from explainer.theory.statistics import Interval, student

_BAR_EVERY = 4  # points of a curve: bars at all of them would hide it
_BELOW = legend_below(-0.22) | {"traceorder": "normal"}
_OVER_TOKENS = {"xaxis": {"title": {"text": "tokens seen, millions"}, "rangemode": "tozero"}, "legend": _BELOW}


def gap_curves(groups: Mapping[str, pd.DataFrame]) -> go.Figure:
    """`gaps` against tokens: thin lines for seeds, their mean, and Student's 95 % interval where several."""
    figure = go.Figure()
    for i, (name, gaps) in enumerate(groups.items()):
        mean, _, high = map(np.asarray, student(gaps.T))
        shown = [None if (j + 1) % _BAR_EVERY else half for j, half in enumerate(significant_digits(high - mean))]
        bars = {"error_y": {"array": shown, "thickness": 1, "width": 3}} if gaps.shape[1] > 1 else {}
        _add_curves(figure, i, name, gaps, **bars)
    figure.add_hline(y=0, line={"dash": "dot", "width": 1.5})
    return figure.update_layout(height=420, yaxis_title="loss of plain − loss, nats per token", **_OVER_TOKENS)


def effect_sizes(rows: Mapping[str, tuple[Sequence[float], Interval]], title: str) -> go.Figure:
    """Differences of pairs: `rows[name]` are those of the seeds, and their mean with its interval."""
    figure = go.Figure()
    for i, (values, mean) in enumerate(rows.values()):
        seeds = {"x": significant_digits(values, 3), "y": [i + 0.22] * len(values), "name": "a seed"}
        tick = {"symbol": "line-ns", "size": 12, "line": {"width": 1.5, "color": COLOURS[5]}}
        figure.add_scatter(**seeds, marker=tick, mode="markers", showlegend=i == 0)
        bars = {"error_x": error_bars(ends([mean]), thickness=1.5)} if len(values) > 1 else {}
        point = {"symbol": MARKERS[0], "size": 10, "color": COLOURS[0]}
        middle = {"x": significant_digits([mean.estimate], 3), "y": [i], "name": "mean"}
        figure.add_scatter(**middle, marker=point, mode="markers", showlegend=i == 0, **bars)
    figure.add_vline(x=0, line={"dash": "dot", "width": 1.5})
    names = [name.replace(", ", ",<br>", 1) for name in rows]
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=names, autorange="reversed", zeroline=False)
    figure.update_xaxes(title_text=title)
    return figure.update_layout(height=150 + 55 * len(names), legend=_BELOW | {"y": -0.3})


def _add_curves(figure: go.Figure, i: int, name: str, curves: pd.DataFrame, **bars: Mapping) -> None:
    x = significant_digits(curves.index / 1e6)
    for pair, (_, curve) in enumerate(curves.items() if curves.shape[1] > 1 else (), 1):
        look = {"mode": "lines", "line": line_style(i, width=1), "opacity": 0.45, "showlegend": False}
        figure.add_scatter(x=x, y=significant_digits(curve), name=f"{name}, pair {pair}", **look)
    look = {"mode": "lines+markers", "line": line_style(i, width=2.5), "marker": {"symbol": MARKERS[i % 6], "size": 7}}
    figure.add_scatter(x=x, y=significant_digits(curves.mean(axis=1)), name=name, **look, **bars)
