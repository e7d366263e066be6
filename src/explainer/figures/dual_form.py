"""Figures of the chapter `what_makes_it_learning`: what heads that learn leave of a loss."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots

from explainer.figures.base import MARKERS, error_bars, legend_below, line_style, marker_style, significant_digits
from explainer.theory.statistics import student

_Array = np.ndarray
_Losses = Mapping[int, tuple[Float[_Array, "tasks lengths"], Float[_Array, "tasks lengths"]]]
"""For each number of layers what the heads leave, and what gradient descent does."""


def falling_loss(lengths: Sequence[int], panels: Mapping[str, _Losses]) -> go.Figure:
    """Mean held-out loss against the number of examples, a panel for each kind of input: lines the heads, open markers
    descent, both with as many layers or steps.

    Bars are Student's intervals over tasks; their lower ends stop at a tenth of the mean, because the axis is
    logarithmic.
    """
    figure = make_subplots(1, len(panels), subplot_titles=list(panels), shared_yaxes=True, horizontal_spacing=0.04)
    for column, losses in enumerate(panels.values(), 1):
        for i, (layers, (heads, descent)) in enumerate(losses.items()):
            pair = _pair(i, f"{layers} layer{'s' * (layers > 1)}", lengths, heads, descent)
            pair[0].showlegend = column == 1
            figure.add_traces(pair, rows=1, cols=column)
    figure.update_xaxes(title_text="examples n", type="log", tickvals=[1, 4, 16, 64, 256])
    ticks = {"tickvals": [1, 0.1, 0.01, 0.001], "ticktext": ["100 %", "10 %", "1 %", "0.1 %"]}
    figure.update_yaxes(type="log", range=[-3.4, 0.05], **ticks)
    figure.update_yaxes(title_text="loss left on new inputs", col=1)
    return figure.update_layout(height=390, legend=legend_below(-0.26))


def _pair(i: int, name: str, x: Sequence[int], head: Float[_Array, "n x"], descent: Float[_Array, "n x"]) -> list:
    """The line of the heads, with intervals, and the markers of descent, in the look of series i."""
    mean, low, high = map(np.asarray, student(head))
    low = np.maximum(low, mean / 10)
    bars = error_bars((mean, low, high), thickness=1)
    marker = marker_style(i, 9, symbol=f"{MARKERS[i]}-open")
    return [
        go.Scatter(x=list(x), y=significant_digits(y, 3), name=f"{by}{name}", **looks)
        for y, by, looks in (
            (mean, "", {"mode": "lines", "line": line_style(i), "error_y": bars}),
            (descent.mean(0), "descent, ", {"mode": "markers", "marker": marker, "showlegend": False}),
        )
    ]
