"""Figures of the chapter `what_softmax_does` and of the study `softmax_in_detail`."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from explainer.figures.base import COLOURS, MARKERS, legend_below, line_style

_Array = np.ndarray
_BELOW = legend_below(-0.27) | {"traceorder": "normal"}


def _bands(
    x: Sequence[float],
    series: Mapping[str, Float[_Array, "x heads"]],
    x_title: str,
    y_title: str,
) -> go.Figure:
    """Median over heads with a band from the lower to the upper quartile, against x."""
    figure = go.Figure()
    for i, (name, values) in enumerate(series.items()):
        low, median, high = np.round(np.quantile(values, (0.25, 0.5, 0.75), axis=1), 4).tolist()
        edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
        fill = {"fill": "tonexty", "fillcolor": f"rgba({_rgb(COLOURS[i])}, 0.16)"}
        figure.add_scatter(x=list(x), y=low, name=f"{name}, lower quartile", **edge)
        figure.add_scatter(x=list(x), y=high, name=f"{name}, upper quartile", **edge, **fill)
        style = {"line": line_style(i), "marker": {"symbol": MARKERS[i], "size": 7}}
        figure.add_scatter(x=list(x), y=median, name=name, mode="lines+markers", **style)
    return figure.update_layout(height=420, xaxis_title=x_title, yaxis_title=y_title, legend=_BELOW)


def error_by_logit_spread(spreads: Sequence[float], series: Mapping[str, Float[_Array, "x heads"]]) -> go.Figure:
    """Relative error against the logit spread to which the queries were rescaled, both log."""
    figure = _bands(spreads, series, "logit spread of every head", "relative error")
    figure.update_xaxes(type="log", tickvals=spreads, ticktext=[str(Fraction(spread)) for spread in spreads])
    return _percent(figure, {1e-4: "0.01 %", 1e-3: "0.1 %", 0.01: "1 %", 0.1: "10 %", 1: "100 %"})


def error_by_features(sizes: Sequence[int], series: Mapping[str, Float[_Array, "x heads"]]) -> go.Figure:
    """Relative error against the number of random features, both log."""
    figure = _bands(sizes, series, "number of random features r", "relative error")
    figure.update_xaxes(type="log", tickvals=sizes)
    return _percent(figure, {0.03: "3 %", 0.1: "10 %", 0.3: "30 %", 1: "100 %", 3: "300 %"})


def _percent(figure: go.Figure, ticks: Mapping[float, str]) -> go.Figure:
    return figure.update_yaxes(type="log", tickvals=list(ticks), ticktext=list(ticks.values()))


def zero_shot_drift(by_layer: Mapping[str, Float[_Array, "layers heads"]]) -> go.Figure:
    """Relative difference of the zero-shot part of each layer's heads from a zero-shot run, by layer from 1."""
    layers = range(1, len(next(iter(by_layer.values()))) + 1)
    return _bands(layers, by_layer, "layer", "relative difference").update_yaxes(range=[0, 2.5])


def gate_by_layer(dots: Float[_Array, "layers heads"], medians: Mapping[str, Float[_Array, " layers"]]) -> go.Figure:
    """The gate of every head (dots), by layer from 1, with the median of each task over heads and prompts (lines)."""
    figure = go.Figure()
    layers = np.arange(1, len(dots) + 1)
    marker = {"color": COLOURS[0], "size": 6, "opacity": 0.5}
    x, y = np.repeat(layers, dots.shape[1]).tolist(), np.round(dots.flatten(), 4).tolist()
    figure.add_scatter(x=x, y=y, name="one head, capitals", mode="markers", marker=marker)
    for i, (name, median) in enumerate(medians.items()):
        look = {"mode": "lines", "line": line_style(i, width=2.5)}
        figure.add_scatter(x=layers.tolist(), y=np.round(median, 4).tolist(), name=f"{name}, median", **look)
    figure.update_yaxes(range=[-0.03, 1.03], title_text="gate g")
    return figure.update_layout(height=340, xaxis_title="layer", legend=_BELOW)


def _rgb(colour: str) -> str:
    return ", ".join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))
