"""Figures of the chapter `attention_as_weight_update`."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from explainer.figures.base import COLOURS
from explainer.theory import statistics


def log_prob_bars(log_probs: Mapping[str, np.ndarray]) -> go.Figure:
    """One bar with its bootstrap interval for each array of log-probabilities, one per query."""
    intervals = [statistics.bootstrap_interval([(each,)]) for each in log_probs.values()]
    figure = go.Figure(
        go.Bar(
            x=[interval.estimate for interval in intervals],
            y=list(log_probs),
            orientation="h",
            marker={"color": COLOURS[0], "opacity": 0.75},
            error_x={
                "array": [interval.high - interval.estimate for interval in intervals],
                "arrayminus": [interval.estimate - interval.low for interval in intervals],
            },
        )
    )
    figure.update_yaxes(autorange="reversed")
    return figure.update_layout(
        height=70 + 36 * len(log_probs), xaxis_title="mean log-probability of the right answer (nats)"
    )
