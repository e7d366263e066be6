"""Figures, cells of tables and the readout of the chapter `idea_it_inspired` and the study `momentum_attention`."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from explainer.errors import ShapeError
from explainer.figures.base import COLOURS, GREY, MARKERS, legend_below
from explainer.figures.forms import Ends, curves

_RIDGE = 1e-6  # of the readout, for each position that it is fitted on: it only keeps the fit defined


def readout_by_lag(outputs: np.ndarray, tokens: np.ndarray, lags: Sequence[int], first: int) -> list[float]:
    """Measure how well the best linear readout of the output names the token s positions back: R^2 by lag s.

    The readout maps outputs and a constant to an indicator for each token; it is fitted by least squares on the first
    half of the sequences and tested on the second, at the positions from `first` on. R^2 is the share of the
    indicators' variance that it explains. Raises ShapeError where outputs and tokens do not fit, ValueError for a lag
    outside 1 ... first.
    """
    if outputs.ndim != 3 or tokens.shape != outputs.shape[:2]:
        raise ShapeError(f"outputs {outputs.shape} and tokens {tokens.shape} should be (B, T, d) and (B, T).")
    if not all(1 <= lag <= first for lag in lags):
        raise ValueError(f"lags = {list(lags)} must lie in 1 ... first = {first}: earlier tokens do not exist.")
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


def optimiser_paths(paths: Mapping[str, np.ndarray], kappa: float, levels: Sequence[float]) -> go.Figure:
    """Paths (steps + 1, 2) of optimisers, a panel each, in the valley 1/2 (along^2 + kappa across^2) with contours.

    A grey ellipse joins the points of equal loss, for each of the levels; the minimum is at 0.
    """
    figure = make_subplots(len(paths), 1, shared_xaxes=True, subplot_titles=list(paths), vertical_spacing=0.12)
    halves = [(np.sqrt(2 * level), np.sqrt(2 * level / kappa)) for level in levels]
    for row, (name, path) in enumerate(paths.items(), 1):
        along, across = np.asarray(path).T.round(4).tolist()
        line, marker = {"color": COLOURS[row - 1]}, {"symbol": MARKERS[row - 1], "size": 6}
        its = {"x": along, "y": across, "name": name, "line": line, "marker": marker, "showlegend": False}
        figure.add_scatter(**its, mode="lines+markers", row=row, col=1)
        for a, b in halves:
            ellipse = {"type": "circle", "x0": -a, "x1": a, "y0": -b, "y1": b, "layer": "below"}
            figure.add_shape(**ellipse, line={"color": GREY, "width": 1}, row=row, col=1)
    a, b = (1.05 * max(half) for half in zip(*halves, strict=True))
    figure.update_xaxes(range=[-a, a]).update_xaxes(title_text="along", row=len(paths), col=1)
    figure.update_yaxes(range=[-b, b], title_text="across")
    return figure.update_layout(height=230 * len(paths), margin={"t": 40, "b": 50})


def quoted_rows(table: Mapping[str, Mapping[str, float]], digits: int, scale: float = 1) -> list[tuple[str, ...]]:
    """Rows of a quoted table, one for each model: its name, then its numbers times the scale with these digits."""
    return [
        (f"Transformer{', with momentum attention' * (name == 'momentum')}",
         *(f"{scale * value:.{digits}f}" for value in row.values()))
        for name, row in table.items()
    ]  # fmt: skip


def curves_for_phone(
    x: Sequence[float], series: Mapping[str, Ends], titles: tuple[str, str], *, log_y: bool = False
) -> go.Figure:
    """Curves with intervals, (estimate, low, high) by name, and a legend below that fits a phone."""
    figure = curves(x, series, *titles)
    figure.update_layout(height=460, legend=legend_below(-0.2))
    return figure.update_yaxes(type="log" if log_y else "linear")


def timing_rows(seconds: Mapping[int, Sequence[tuple[float, float]]]) -> list[tuple[str, ...]]:
    """Rows of a table: CPU milliseconds of two ways that were timed in turns, and the ratio of the second to the first.

    `seconds[T]` are the pairs at length T. Cells: median (lower quartile to upper quartile); ratios are taken pair by
    pair.
    """
    rows = []
    for length, pairs in seconds.items():
        plain, other = np.array(pairs).T
        cells = [*(_quartiles(1000 * times, 0) for times in (plain, other)), _quartiles(other / plain, 2)]
        rows.append((f"{length}", *cells))
    return rows


def _quartiles(values: np.ndarray, digits: int) -> str:
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
