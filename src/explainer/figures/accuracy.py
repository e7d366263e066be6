"""The figure of the chapter `accuracy` that no other has, and its bold numbers."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots

from explainer.figures.base import COLOURS
from explainer.theory.statistics import Interval


def answers(panels: Mapping[str, tuple[Sequence[str], Mapping[str, Float[Sequence, " c"]]]]) -> go.Figure:
    """What is answered how often: `panels[task] = (labels, {row: shares})`, one stacked bar for each row."""
    n_rows = [len(rows) for _, rows in panels.values()]
    figure = make_subplots(
        rows=len(panels), subplot_titles=list(panels), row_heights=n_rows, vertical_spacing=0.24 / len(panels)
    )
    for row, (labels, rows) in enumerate(panels.values(), 1):
        for c, label in enumerate(labels):
            share = [round(float(shares[c]), 3) for shares in rows.values()]
            bar = go.Bar(x=share, y=list(rows), name=label, orientation="h", marker_color=COLOURS[c])
            bar.update(text=[label] * len(share), textposition="inside", insidetextanchor="middle", textangle=0)
            figure.add_trace(bar, row=row, col=1)
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(range=[0, 1.02], tickformat=".0%")
    figure.update_xaxes(title_text="share of the answers", row=len(panels))
    figure.update_layout(barmode="stack", bargap=0.12, showlegend=False, uniformtext={"minsize": 9, "mode": "hide"})
    return figure.update_layout(height=60 * len(panels) + 22 * sum(n_rows) + 60)


def solid(difference: Interval) -> str:
    """A difference in points with its interval, as HTML in bold where the interval excludes 0."""
    text = f"{100 * difference:.1f}"
    return f"<strong>{text}</strong>" if difference.excludes_zero else text
