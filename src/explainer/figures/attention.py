"""Figures of the chapter `keys_queries_values`."""

from collections.abc import Collection, Sequence

import plotly.graph_objects as go
from jaxtyping import Float
from torch import Tensor

from explainer.figures.base import COLOURS, legend_below


def bar_per_token(tokens: Sequence[str], weights: Float[Tensor, " T"], marked: Collection[int], name: str) -> go.Figure:
    """Attention weights of one query, a bar for each token in the order of the text; `name` is of the marked ones."""
    shares, rows = [round(weight, 4) for weight in weights.tolist()], range(len(tokens))
    figure = go.Figure()
    looks = {
        name: (marked, {"color": COLOURS[1]}),
        "other tokens": ([i for i in rows if i not in marked], {"color": COLOURS[0], "pattern_shape": "/"}),
    }
    for label, (places, marker) in looks.items():
        x, y, text = ([of[i] for i in places] for of in (shares, rows, tokens))
        figure.add_bar(x=x, y=y, hovertext=text, orientation="h", name=label, marker=marker)
    labels = [repr(token)[1:-1] for token in tokens]
    figure.update_yaxes(tickvals=list(rows), ticktext=labels, autorange="reversed", tickfont={"family": "monospace"})
    figure.update_xaxes(title_text="attention weight", rangemode="tozero")
    return figure.update_layout(height=22 * len(tokens) + 150, legend=legend_below(-0.13), bargap=0.25)
