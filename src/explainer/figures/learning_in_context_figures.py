"""Curves of the chapter `learning_in_context` and of the study `label_tasks`."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from explainer.figures.figure_forms import Ends, curves
from explainer.models.scoring import Record
from explainer.theory import statistics

_RESAMPLES = 500  # the interval's ends are known to about a hundredth, the width of a marker


def against_k(ks: Sequence[int], series: Mapping[str, Ends], y_title: str, y_range: tuple[float, float]) -> go.Figure:
    """Curves with intervals against the number of demonstrations, evenly spaced by rank."""
    return curves(ks, series, "demonstrations k", y_title, y_range=y_range, log2=True)


def measured(records: Sequence[Record], statistic: Callable[..., float], of: Callable[[Record], tuple]) -> Ends:
    """(estimate, low, high) of a statistic of each record's arrays, for every k in increasing order.

    The bootstrap draws seeds and queries.
    """
    intervals = []
    for k in sorted({record.k for record in records}):
        of_k = [record for record in records if record.k == k]
        sample = statistics.Sample(list(map(of, of_k)), [np.array(record.prompts) for record in of_k])
        intervals.append(statistics.bootstrap_interval(sample, statistic, n_resamples=_RESAMPLES))
    return np.array(intervals).T
