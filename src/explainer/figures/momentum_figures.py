"""Figures, cells of tables and the readout of the pages on momentum attention."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from explainer.figures.figure_base import COLOURS, FLOOR, MARKERS, error_bars, significant_digits
from explainer.figures.figure_forms import Ends
from explainer.theory import statistics

_RESAMPLES = 500  # the interval's ends are known to about a hundredth of the estimate
_RIDGE = 1e-6  # of the readout, for each position that it is fitted on: it only keeps the fit defined


def bootstrap_curve(samples: np.ndarray, statistic: Callable[..., float] = np.mean) -> Ends:
    """(estimate, low, high) at every point, from samples of shape (draws, points); 95 % bootstrap over draws."""
    columns = np.asarray(samples).T
    return np.array([statistics.bootstrap_interval([(each,)], statistic, n_resamples=_RESAMPLES) for each in columns]).T


def readout_by_lag(outputs: np.ndarray, tokens: np.ndarray, lags: Sequence[int], first: int) -> list[float]:
    """Measure how well the best linear readout of the output names the token s positions back: R^2 by lag s.

    The readout maps outputs and a constant to an indicator for each token; it is fitted by least squares on the first
    half of the sequences and tested on the second, at the positions from `first` on. R^2 is the share of the
    indicators' variance that it explains.
    """
    (B, T), indicator = tokens.shape, np.eye(tokens.max() + 1)
    features = np.concatenate([outputs, np.ones((B, T, 1))], -1)[:, first:]
    fitted, tested = (half.reshape(-1, half.shape[-1]) for half in (features[: B // 2], features[B // 2 :]))
    penalty = _RIDGE * len(fitted) * np.eye(fitted.shape[1])
    solve = np.linalg.solve(fitted.T @ fitted + penalty, fitted.T)
    explained = []
    for lag in lags:
        named = indicator[tokens[:, first - lag : T - lag]]
        right = named[B // 2 :].reshape(len(tested), -1)
        missed = right - tested @ (solve @ named[: B // 2].reshape(len(fitted), -1))
        explained.append(float(1 - (missed**2).sum() / ((right - right.mean(0)) ** 2).sum()))
    return explained


def quoted_rows(table: Mapping[str, Mapping[str, float]], digits: int, scale: float = 1) -> list[tuple[str, ...]]:
    """Rows of a quoted table, one for each model: its name, then its numbers times the scale with these digits."""
    return [
        (f"Transformer{', with momentum attention' * (name == 'momentum')}",
         *(f"{scale * value:.{digits}f}" for value in row.values()))
        for name, row in table.items()
    ]  # fmt: skip


def effect_sizes(rows: Mapping[str, tuple[Sequence[float], statistics.Interval]], title: str) -> go.Figure:
    """Differences of pairs: `rows[name]` are those of the seeds, and their mean with its interval."""
    figure = go.Figure()
    for i, (values, mean) in enumerate(rows.values()):
        seeds = {"x": significant_digits(values, 3), "y": [i + 0.22] * len(values), "name": "a seed"}
        tick = {"symbol": "line-ns", "size": 12, "line": {"width": 1.5, "color": FLOOR}}
        figure.add_scatter(**seeds, marker=tick, mode="markers", showlegend=i == 0)
        bars = {"error_x": error_bars(np.array([mean]).T, thickness=1.5)} if len(values) > 1 else {}
        point = {"symbol": MARKERS[0], "size": 10, "color": COLOURS[0]}
        middle = {"x": significant_digits([mean.estimate], 3), "y": [i], "name": "mean"}
        figure.add_scatter(**middle, marker=point, mode="markers", showlegend=i == 0, **bars)
    figure.add_vline(x=0, line={"dash": "dot", "width": 1.5})
    names = [name.replace(", ", ",<br>", 1) for name in rows]
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=names, autorange="reversed", zeroline=False)
    figure.update_xaxes(title_text=title)
    return figure.update_layout(height=150 + 55 * len(names))
