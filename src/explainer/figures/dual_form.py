"""Figures of the chapter `attention_as_gradient_descent`."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots

from explainer.figures.base import COLOURS, DASHES, MARKERS
from explainer.theory.statistics import student

Array = np.ndarray
LAYERS, LENGTHS = (1, 4, 16), (2, 8, 32)


def falling_loss(
    lengths: Sequence[int], head: Float[Array, "tasks lengths layers"], descent: Float[Array, "tasks lengths layers"]
) -> go.Figure:
    """Mean held-out loss against the number of examples and against depth: lines the heads, open markers descent.

    A panel for each, below each other: the first has a line for each of `LAYERS`, the second for each of `LENGTHS`
    among the lengths, from depth 1. Bars are Student's intervals over tasks.
    """
    figure = make_subplots(2, 1, subplot_titles=["More examples", "More layers"], vertical_spacing=0.24)
    depths = range(1, head.shape[2] + 1)
    for i, layers in enumerate(LAYERS):
        name = f"{layers} layer{'s' * (layers > 1)}"
        pair = _pair(i, name, lengths, head[:, :, layers - 1], descent[:, :, layers - 1])
        figure.add_traces(pair, rows=1, cols=1)
    for i, length in enumerate(LENGTHS, len(LAYERS)):
        at = list(lengths).index(length)
        figure.add_traces(_pair(i, f"{length} examples", depths, head[:, at], descent[:, at]), rows=2, cols=1)
    figure.update_xaxes(title_text="number of examples n", type="log", tickvals=[1, 2, 4, 8, 16, 32], row=1)
    figure.update_xaxes(title_text="layers, or steps of descent", dtick=2, row=2)
    figure.update_yaxes(title_text="loss left", range=[0, 1.02], tickformat=".0%")
    return figure.update_layout(height=780, legend={"orientation": "h", "x": 0, "y": -0.14, "yanchor": "top"})


def _pair(i: int, name: str, x: Sequence[int], head: Float[Array, "n x"], descent: Float[Array, "n x"]) -> list:
    """The line of the heads, with intervals, and the markers of descent, in the look of series i."""
    mean, low, high = student(head)
    bars = {"array": (high - mean).tolist(), "arrayminus": (mean - low).tolist(), "thickness": 1}
    line = {"color": COLOURS[i], "dash": DASHES[i]}
    marker = {"color": COLOURS[i], "symbol": f"{MARKERS[i]}-open", "size": 9}
    return [
        go.Scatter(x=list(x), y=np.round(y, 4).tolist(), name=f"{by}, {name}", **looks)
        for y, by, looks in (
            (mean, "heads", {"mode": "lines", "line": line, "error_y": bars}),
            (descent.mean(0), "descent", {"mode": "markers", "marker": marker, "showlegend": False}),
        )
    ]
