"""Curves of the chapter `learning_in_context` and of its study, `label_bias`."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from explainer.errors import TaskError
from explainer.figures.forms import Ends, curves
from explainer.models.scoring import Record
from explainer.theory import statistics

_RESAMPLES = 500  # the interval's ends are known to about a hundredth, the width of a marker


def against_k(ks: Sequence[int], series: Mapping[str, Ends], y_title: str, y_range: tuple[float, float]) -> go.Figure:
    """Curves with intervals against the number of demonstrations, evenly spaced by rank."""
    return curves(ks, series, "demonstrations k", y_title, y_range=y_range, log2=True)


def _curve(records: Sequence[Record], groups: Callable[[Record], tuple], statistic: Callable[..., float]) -> Ends:
    """(mean, low, high) for every k in increasing order; the bootstrap draws seeds and queries."""
    intervals = []
    for k in sorted({record.k for record in records}):
        of_k = [record for record in records if record.k == k]
        sample = statistics.Sample(list(map(groups, of_k)), [np.array(record.prompts) for record in of_k])
        intervals.append(statistics.bootstrap_interval(sample, statistic, n_resamples=_RESAMPLES))
    return np.array(intervals).T


def exact_match(records: Sequence[Record]) -> Ends:
    """Share of queries answered exactly, against k."""
    return _curve(records, lambda record: (record.correct,), np.mean)


def classification_measures(records: Sequence[Record]) -> dict[str, Ends]:
    """Raw accuracy, calibrated accuracy and AUC, against k."""
    measures = {
        "accuracy": statistics.accuracy,
        "calibrated": statistics.calibrated_accuracy,
        "AUC": statistics.macro_auc,
    }
    return {
        name: _curve(records, lambda record: (record.log_probs, record.labels), measure)
        for name, measure in measures.items()
    }


def predicted_share(records: Sequence[Record], label: int) -> Ends:
    """Share of queries for which the model chooses one label, against k."""

    def chosen(record: Record) -> tuple[np.ndarray]:
        if record.log_probs is None:
            raise TaskError(f"the answers of task {record.task!r} are free; there is no label to choose.")
        return (record.log_probs.argmax(1) == label,)

    return _curve(records, chosen, np.mean)
