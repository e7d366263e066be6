"""Figures of the experiment on associative recall in the chapter `fast_weights_tested`."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from explainer.figures.base import COLOURS, MARKERS
from explainer.theory.statistics import Interval

Rows = Mapping[str, tuple[Sequence[float], Interval]]
"""For each comparison the differences of the seeds, and their mean."""


def paired_differences(panels: Mapping[str, Rows], x_title: str) -> go.Figure:
    """Differences of matched pairs, `panels[title][row] = (one of each seed, their mean)`: ticks, and point with bar.

    All panels have the same rows. A dotted line stands at zero.
    """
    figure = make_subplots(1, len(panels), subplot_titles=list(panels), shared_yaxes=True, horizontal_spacing=0.06)
    names = list(dict.fromkeys(name for rows in panels.values() for name in rows))
    for column, rows in enumerate(panels.values(), 1):
        for name, (values, mean) in rows.items():
            i = names.index(name)
            for trace in (_seeds(name, i, values), _mean(name, i, mean)):
                trace.showlegend = column == 1 and i == 0
                figure.add_trace(trace, row=1, col=column)
    figure.add_vline(x=0, line={"dash": "dot", "width": 1.5})
    ticks = {"tickvals": list(range(len(names))), "ticktext": [name.replace(" − ", "<br>− ") for name in names]}
    figure.update_yaxes(**ticks, range=[len(names) - 0.4, -0.6], zeroline=False)
    figure.update_xaxes(title_text=x_title)
    legend = {"orientation": "h", "x": 0, "y": 1 + 40 / (60 * len(names)), "yanchor": "bottom"}
    return figure.update_layout(height=190 + 60 * len(names), legend=legend)


def _seeds(name: str, i: int, values: Sequence[float]) -> go.Scatter:
    tick = {"symbol": "line-ns", "size": 12, "line": {"width": 1.5, "color": COLOURS[5]}}
    places = {"x": _short(values), "y": [i + 0.22] * len(values), "hovertext": name}
    return go.Scatter(**places, name="a seed", legendgroup="a seed", mode="markers", marker=tick)


def _mean(name: str, i: int, mean: Interval) -> go.Scatter:
    ends = {"array": _short([mean.high - mean.estimate]), "arrayminus": _short([mean.estimate - mean.low])}
    point = {"symbol": MARKERS[0], "size": 10, "color": COLOURS[0]}
    places = {"x": _short([mean.estimate]), "y": [i], "hovertext": name}
    bar = ends | {"thickness": 1.5}
    return go.Scatter(**places, name="mean", legendgroup="mean", mode="markers", marker=point, error_x=bar)


def _short(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
