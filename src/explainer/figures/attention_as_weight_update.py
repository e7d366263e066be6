"""Figures of the chapter `attention_as_weight_update`."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from explainer.figures.base import COLOURS, error_bars
from explainer.figures.forms import ends
from explainer.theory import statistics


def log_prob_bars(log_probs: Mapping[str, np.ndarray]) -> go.Figure:
    """One bar with its bootstrap interval for each array of log-probabilities, one per query."""
    bars = ends(statistics.bootstrap_interval([(each,)]) for each in log_probs.values())
    look = {"orientation": "h", "marker": {"color": COLOURS[0], "opacity": 0.75}}
    figure = go.Figure(go.Bar(x=bars[0].tolist(), y=list(log_probs), error_x=error_bars(bars), **look))
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(title_text="mean log-probability of the right answer (nats)")
    return figure.update_layout(height=70 + 36 * len(log_probs))
