"""The figure of the chapter `training_tokens` that no other has."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots

from explainer.figures.base import COLOURS

Array = np.ndarray


def scatter(
    panels: Mapping[str, tuple[Float[Array, " n"], Float[Array, " n"]]],
    sizes: Float[Array, " n"],
    x_title: str,
    y_title: str,
) -> go.Figure:
    """Panels (x, y) of the same n things, each drawn as large as it is; axes are ranks from 1, smallest first."""
    figure = make_subplots(rows=len(panels), cols=1, subplot_titles=list(panels), vertical_spacing=0.16)
    for row, (name, pair) in enumerate(panels.items(), 1):
        x, y = ((np.argsort(np.argsort(values)) + 1).tolist() for values in pair)
        marker = {
            "size": (5 + 20 * np.asarray(sizes) / max(sizes)).round(1).tolist(),
            "color": COLOURS[0],
            "opacity": 0.6,
        }
        text = [f"{size} tokens" for size in np.asarray(sizes).tolist()]
        figure.add_trace(go.Scatter(x=x, y=y, name=name, mode="markers", marker=marker, hovertext=text), row, 1)
        figure.update_yaxes(title_text=y_title, row=row, col=1)
    figure.update_xaxes(title_text=x_title, row=len(panels), col=1)
    return figure.update_layout(height=320 * len(panels), showlegend=False)
