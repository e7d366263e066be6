"""Figures of the pages `what_makes_it_learning` and `head_circuits`: heads by their scores, and what cuts cost."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from explainer.figures.forms import Values, dot_plot

# From nothing to the blue of keys, so that the page's own background is the zero, light or dark.
_SHADES = ((0, "rgba(0, 114, 178, 0)"), (1, "rgba(0, 114, 178, 1)"))
_MARGIN = {"l": 60, "r": 15, "t": 90, "b": 50}  # above, the scale
_OPEN, _MARK = {"xgap": 1, "ygap": 1}, {"symbol": "circle-open", "size": 11, "color": "#d55e00", "line": {"width": 2}}


def head_scores(panels: Mapping[str, np.ndarray], marked: Mapping[str, Sequence[tuple[int, int]]]) -> go.Figure:
    """A panel (layers, heads) for each score, shaded from 0 to 1, with rings around the marked (layer, head)."""
    figure = make_subplots(rows=1, cols=len(panels), subplot_titles=list(panels), shared_yaxes=True)
    for column, (name, scores) in enumerate(panels.items(), 1):
        layers, heads = (np.arange(size) + 1 for size in scores.shape)
        shades = _shaded(name, scores, heads, layers, showscale=column == len(panels))
        figure.add_trace(shades, row=1, col=column)
        y, x = np.array(marked[name]).T + 1
        ring = go.Scatter(x=x, y=y, mode="markers", marker=_MARK, name=f"strongest, {name}", hoverinfo="skip")
        figure.add_trace(ring, row=1, col=column)
    figure.update_xaxes(title_text="head", dtick=2, showgrid=False)
    figure.update_yaxes(showgrid=False, dtick=5, tick0=0, range=[0.5, max(map(len, panels.values())) + 0.5])
    figure.update_yaxes(title_text="layer", row=1, col=1)
    return figure.update_layout(height=540, showlegend=False, margin=_MARGIN)


def _shaded(name: str, z: np.ndarray, x: np.ndarray, y: np.ndarray, *, showscale: bool) -> go.Heatmap:
    bar = {"orientation": "h", "thickness": 10, "y": 1.06, "yanchor": "bottom", "len": 0.6, "outlinewidth": 0}
    hover = "%{y} to %{x}: %{z:.2f}<extra></extra>"
    numbers = np.round(np.asarray(z, dtype=float), 3)  # what a reader can tell apart, in a page that has to be small
    return go.Heatmap(
        name=name, z=numbers, x=x, y=y, zmin=0, zmax=1, colorscale=_SHADES, colorbar=bar, showscale=showscale,
        hovertemplate=hover, **_OPEN,
    )  # fmt: skip


def log_prob_changes(
    measured: Mapping[str, Values], control: Mapping[str, Values] | None = None, *, of: str = "change"
) -> go.Figure:
    """Changes of a log-probability, `measured[task][what]`, with the control of each in grey in the same lane."""
    return dot_plot(measured, f"{of} of log p(right answer), nats", floors=control)
