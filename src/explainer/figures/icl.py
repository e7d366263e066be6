"""Figures of the chapter `learning_in_context`."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from explainer import statistics
from explainer.figures.base import COLOURS, curves
from explainer.scoring import Record

Curve = tuple[np.ndarray, np.ndarray, np.ndarray]


def next_words(panels: Mapping[str, Sequence[tuple[str, float]]]) -> go.Figure:
    """The most probable next tokens under each setting, one panel of bars per setting."""
    figure = make_subplots(rows=len(panels), cols=1, subplot_titles=list(panels), vertical_spacing=0.28 / len(panels))
    for row, (name, tokens) in enumerate(panels.items(), 1):
        words, probabilities = zip(*reversed(tokens), strict=True)
        labels = [f"{word!r} " for word in words]
        figure.add_bar(
            x=probabilities, y=labels, orientation="h", name=name, row=row, col=1, marker_color=COLOURS[row % 6]
        )
    figure.update_layout(height=190 * len(panels) + 40, showlegend=False)
    figure.update_xaxes(range=[0, 1])
    figure.update_xaxes(title_text="probability of being the next token", row=len(panels))
    return figure


def interval_curve(records: Sequence[Record], measure) -> Curve:
    """Mean over seeds and a 95 % interval for each k, in increasing k.

    `measure(records of one k)` returns (mean, low, high).
    """
    ks = sorted({record.k for record in records})
    points = [measure([record for record in records if record.k == k]) for k in ks]
    mean, low, high = np.array(points).T
    return mean, low, high
