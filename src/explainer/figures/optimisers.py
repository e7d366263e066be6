"""Figures and the table of the study `optimisers_as_attention`."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from explainer.figures.base import MARKERS, error_bars, line_style
from explainer.figures.forms import Ends, ends
from explainer.theory import statistics

_RESAMPLES = 500  # the interval's ends are known to about a hundredth of the estimate
EXACT = 1e-10  # float64 rounding over a few dozen steps stays far below


def bootstrap_curve(samples: np.ndarray, statistic: Callable[..., float] = np.mean) -> Ends:
    """(estimate, low, high) at every point, from samples of shape (draws, points); 95 % bootstrap over draws."""
    columns = np.asarray(samples).T
    return ends(statistics.bootstrap_interval([(each,)], statistic, n_resamples=_RESAMPLES) for each in columns)


def recalled_coefficients(
    weights: np.ndarray, recency: np.ndarray, plain: np.ndarray, heavy: np.ndarray, mu: float
) -> go.Figure:
    """Coefficients of each step under momentum mu, above the recalls (draws, steps) of its example, plain and heavy."""
    names = ["gradient descent", f"heavy ball, μ = {mu}", "last update of heavy ball"]
    formulas = np.ones(len(weights)), weights, recency
    panels = {
        "Coefficient in the dual form": {name: (each,) * 3 for name, each in zip(names, formulas, strict=True)},
        "Recall after all steps": {
            name: bootstrap_curve(samples) for name, samples in zip(names, (plain, heavy), strict=False)
        },
    }
    return stacked_panels(
        range(len(weights)), panels, f"step t ({len(weights) - 1} is the last)", ["coefficient", "recall"]
    )


def stacked_panels(
    x: Sequence[float], panels: Mapping[str, Mapping[str, Ends]], x_title: str, y_titles: Sequence[str]
) -> go.Figure:
    """Panels of curves below each other over the same x; a series looks the same in every panel."""
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    first = {name: row for row, panel in reversed([*enumerate(panels.values(), 1)]) for name in panel}
    figure = make_subplots(rows=len(panels), cols=1, subplot_titles=list(panels), vertical_spacing=0.13)
    for row, panel in enumerate(panels.values(), 1):
        for name, (estimate, low, high) in panel.items():
            i = names.index(name)
            figure.add_scatter(
                x=list(x), y=estimate.tolist(), name=name, mode="lines+markers", legendgroup=name,
                showlegend=row == first[name], line=line_style(i), marker={"symbol": MARKERS[i % 6], "size": 7},
                error_y=error_bars((estimate, low, high), thickness=1) if np.any(high > low) else None, row=row, col=1,
            )  # fmt: skip
        figure.update_yaxes(title_text=y_titles[row - 1], rangemode="tozero", row=row, col=1)
    figure.update_xaxes(title_text=x_title, row=len(panels), col=1)
    return figure.update_layout(height=300 * len(panels), legend={"orientation": "h", "y": -0.12})


def exactness(errors: Mapping[str, Sequence[float]]) -> dict[str, str]:
    """Whether a form is exact, its median and its largest error; exact if no layer's error exceeds rounding."""
    return {name: _exactness(found) for name, found in errors.items()}


def _exactness(errors: Sequence[float]) -> str:
    exact = max(errors) < EXACT
    median, largest = (f"{number:{'.0e' if exact else '.2f'}}" for number in (np.median(errors), max(errors)))
    return f"{'exact' if exact else '<strong>no</strong>'}, {median} ({largest})"
