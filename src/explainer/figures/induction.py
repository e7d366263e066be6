"""Figures of the chapter `from_tokens_to_examples`: heads by their scores, and attention between named tokens."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from explainer.data.tasks import Example
from explainer.figures.forms import Values, dots
from explainer.models.circuits import Answers
from explainer.theory import statistics
from explainer.theory.statistics import Interval

# From nothing to the blue of keys, so that the page's own background is the zero, light or dark.
SHADES = ((0, "rgba(0, 114, 178, 0)"), (1, "rgba(0, 114, 178, 1)"))
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
    figure.update_yaxes(showgrid=False, dtick=5, tick0=0, range=[0.5, len(scores) + 0.5])
    figure.update_yaxes(title_text="layer", row=1, col=1)
    return figure.update_layout(height=540, showlegend=False, margin=_MARGIN)


def attention(panels: Mapping[str, np.ndarray], tokens: Sequence[str]) -> go.Figure:
    """A panel (T, T) for each head: a row for each token that attends, a column for each that is attended to."""
    figure = make_subplots(rows=len(panels), cols=1, subplot_titles=list(panels), vertical_spacing=0.16)
    places, labels = np.arange(len(tokens)), [repr(token)[1:-1].strip() for token in tokens]
    for row, (name, weights) in enumerate(panels.items(), 1):
        figure.add_trace(_shaded(name, weights, places, places, showscale=row == 1), row=row, col=1)
    ticks = {"tickvals": places, "ticktext": labels, "showgrid": False, "zeroline": False}
    figure.update_xaxes(tickangle=-60, **ticks)
    figure.update_yaxes(autorange="reversed", title_text="this token", **ticks)
    figure.update_xaxes(title_text="attends to", row=len(panels))
    return figure.update_layout(height=400 * len(panels) + 60, margin=_MARGIN)


def _shaded(name: str, z: np.ndarray, x: np.ndarray, y: np.ndarray, *, showscale: bool) -> go.Heatmap:
    bar = {"orientation": "h", "thickness": 10, "y": 1.06, "yanchor": "bottom", "len": 0.6, "outlinewidth": 0}
    hover = "%{y} to %{x}: %{z:.2f}<extra></extra>"
    numbers = np.round(np.asarray(z, dtype=float), 3)  # what a reader can tell apart, in a page that has to be small
    return go.Heatmap(
        name=name, z=numbers, x=x, y=y, zmin=0, zmax=1, colorscale=SHADES, colorbar=bar, showscale=showscale,
        hovertemplate=hover, **_OPEN,
    )  # fmt: skip


def change(after: Sequence[Answers], before: Sequence[Answers], queries: Sequence[Sequence[Example]]) -> Interval:
    """Mean change of log p(right answer), one item for each seed; the bootstrap draws seeds and queries."""
    return _mean([a.log_probs - b.log_probs for a, b in zip(after, before, strict=True)], queries)


def exact(answers: Sequence[Answers], queries: Sequence[Sequence[Example]]) -> Interval:
    """Share of queries answered exactly, one item for each seed; the bootstrap draws seeds and queries."""
    share = _mean([one.correct for one in answers], queries)
    return statistics.with_width(share, len({str(query.fields) for each in queries for query in each}))


def _mean(values: Sequence[np.ndarray], queries: Sequence[Sequence[Example]]) -> Interval:
    ids = [np.array([str(query.fields) for query in each]) for each in queries]
    return statistics.bootstrap_interval(statistics.Sample([(each,) for each in values], ids), np.mean)


def effects(measured: Mapping[str, Values], control: Mapping[str, Values] | None = None) -> go.Figure:
    """Changes of a log-probability, `measured[task][what]`, with the control of each in grey in the same lane."""
    return dots(measured, "change of log p(right answer), nats", floors=control)
