"""Figures of attention: the tokens that a query sees, softmax and its forms.

They are those of the chapters on keys, queries and values, on the weight update and on softmax, and of their studies.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from torch import Tensor

from explainer.figures.figure_base import COLOURS, FLOOR, INK, LINES, MARKERS

_Array = np.ndarray


def bar_per_token(tokens: Sequence[str], weights: Float[Tensor, " T"], marked: Collection[int], name: str) -> go.Figure:
    """Attention weights of one query, a bar for each token in the order of the text.

    The marked ones are dark and have their weights, and the longest of them the `name` that all of them have.
    """
    shares, rows = [round(weight, 4) for weight in weights.tolist()], range(len(tokens))
    figure = go.Figure()
    longest = max(marked, key=lambda i: shares[i])
    ends = {i: f"{name} {shares[i]:.2f}" if i == longest else f"{shares[i]:.2f}" for i in marked}
    looks = {
        name: (marked, {"color": INK}),
        "other tokens": ([i for i in rows if i not in marked], {"color": FLOOR}),
    }
    for label, (places, marker) in looks.items():
        x, y, text = ([of[i] for i in places] for of in (shares, rows, tokens))
        at_end = {"text": [ends[i] for i in places if i in ends], "textangle": 0, "insidetextanchor": "end"}
        figure.add_bar(x=x, y=y, hovertext=text, orientation="h", name=label, marker=marker, **at_end)
    labels = [repr(token)[1:-1] for token in tokens]
    figure.update_yaxes(tickvals=list(rows), ticktext=labels, autorange="reversed", tickfont={"family": "monospace"})
    figure.update_xaxes(title_text="attention weight", rangemode="tozero")
    return figure.update_layout(height=26 * len(tokens) + 100, bargap=0.12, showlegend=False)


def quartile_bands(
    x: Sequence[float],
    series: Mapping[str, Float[_Array, "x heads"]],
    x_title: str,
    y_title: str,
    percent: Sequence[float] = (),
) -> go.Figure:
    """Median over heads with a band from the lower to the upper quartile, against x.

    With `percent`, the ticks of y, both axes are logarithmic, with a tick at each x.
    """
    figure = go.Figure()
    for i, (name, values) in enumerate(series.items()):
        low, median, high = np.round(np.quantile(values, (0.25, 0.5, 0.75), axis=1), 4).tolist()
        edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
        fill = {"fill": "tonexty", "fillcolor": f"{COLOURS[i]}29"}
        figure.add_scatter(x=list(x), y=low, name=f"{name}, lower quartile", **edge)
        figure.add_scatter(x=list(x), y=high, name=f"{name}, upper quartile", **edge, **fill)
        style = {"line": LINES[i % 6], "marker": {"symbol": MARKERS[i], "size": 7}}
        figure.add_scatter(x=list(x), y=median, name=name, mode="lines+markers", **style)
    if percent:
        figure.update_xaxes(type="log", tickvals=x)
        figure.update_yaxes(type="log", tickvals=percent, ticktext=[f"{100 * share:g} %" for share in percent])
    return figure.update_layout(height=420, xaxis_title=x_title, yaxis_title=y_title)
