"""Figures, cells of tables and the readout of the pages on optimisers as attention and on momentum attention."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from explainer.errors import ShapeError
from explainer.figures.figure_base import COLOURS, GREY, LEGEND_BELOW, LINES, MARKERS, error_bars, significant_digits
from explainer.figures.figure_forms import Ends
from explainer.theory import statistics

_RESAMPLES = 500  # the interval's ends are known to about a hundredth of the estimate
_RIDGE = 1e-6  # of the readout, for each position that it is fitted on: it only keeps the fit defined
_BAR_EVERY = 4  # points of a curve: bars at all of them would hide it
_BELOW = LEGEND_BELOW | {"y": -0.22, "traceorder": "normal"}


# Optimisers as attention.


def bootstrap_curve(samples: np.ndarray, statistic: Callable[..., float] = np.mean) -> Ends:
    """(estimate, low, high) at every point, from samples of shape (draws, points); 95 % bootstrap over draws."""
    columns = np.asarray(samples).T
    return np.array([statistics.bootstrap_interval([(each,)], statistic, n_resamples=_RESAMPLES) for each in columns]).T


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
                showlegend=row == first[name], line=LINES[i % 6], marker={"symbol": MARKERS[i % 6], "size": 7},
                error_y=error_bars((estimate, low, high), thickness=1) if np.any(high > low) else None, row=row, col=1,
            )  # fmt: skip
        figure.update_yaxes(title_text=y_titles[row - 1], rangemode="tozero", row=row, col=1)
    figure.update_xaxes(title_text=x_title, row=len(panels), col=1)
    return figure.update_layout(height=300 * len(panels), legend={"orientation": "h", "y": -0.12})


# Momentum attention.


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


# Language models: curves are data frames, tokens seen x seeds.


def gap_curves(groups: Mapping[str, pd.DataFrame]) -> go.Figure:
    """`gaps` against tokens: thin lines for seeds, their mean, and Student's 95 % interval where several."""
    figure = go.Figure()
    for i, (name, gaps) in enumerate(groups.items()):
        mean, _, high = map(np.asarray, statistics.student(gaps.T))
        shown = [None if (j + 1) % _BAR_EVERY else half for j, half in enumerate(significant_digits(high - mean))]
        bars = {"error_y": {"array": shown, "thickness": 1, "width": 3}} if gaps.shape[1] > 1 else {}
        _add_curves(figure, i, name, gaps, **bars)
    figure.add_hline(y=0, line={"dash": "dot", "width": 1.5})
    figure.update_xaxes(title_text="tokens seen, millions", rangemode="tozero")
    return figure.update_layout(height=420, yaxis_title="loss of plain − loss, nats per token", legend=_BELOW)


def effect_sizes(rows: Mapping[str, tuple[Sequence[float], statistics.Interval]], title: str) -> go.Figure:
    """Differences of pairs: `rows[name]` are those of the seeds, and their mean with its interval."""
    figure = go.Figure()
    for i, (values, mean) in enumerate(rows.values()):
        seeds = {"x": significant_digits(values, 3), "y": [i + 0.22] * len(values), "name": "a seed"}
        tick = {"symbol": "line-ns", "size": 12, "line": {"width": 1.5, "color": COLOURS[5]}}
        figure.add_scatter(**seeds, marker=tick, mode="markers", showlegend=i == 0)
        bars = {"error_x": error_bars(np.array([mean]).T, thickness=1.5)} if len(values) > 1 else {}
        point = {"symbol": MARKERS[0], "size": 10, "color": COLOURS[0]}
        middle = {"x": significant_digits([mean.estimate], 3), "y": [i], "name": "mean"}
        figure.add_scatter(**middle, marker=point, mode="markers", showlegend=i == 0, **bars)
    figure.add_vline(x=0, line={"dash": "dot", "width": 1.5})
    names = [name.replace(", ", ",<br>", 1) for name in rows]
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=names, autorange="reversed", zeroline=False)
    figure.update_xaxes(title_text=title)
    return figure.update_layout(height=150 + 55 * len(names), legend=_BELOW | {"y": -0.3})


def _add_curves(figure: go.Figure, i: int, name: str, curves: pd.DataFrame, **bars: Mapping) -> None:
    x = significant_digits(curves.index / 1e6)
    for pair, (_, curve) in enumerate(curves.items() if curves.shape[1] > 1 else (), 1):
        look = {"mode": "lines", "line": LINES[i % 6] | {"width": 1}, "opacity": 0.45, "showlegend": False}
        figure.add_scatter(x=x, y=significant_digits(curve), name=f"{name}, pair {pair}", **look)
    look = {
        "mode": "lines+markers",
        "line": LINES[i % 6] | {"width": 2.5},
        "marker": {"symbol": MARKERS[i % 6], "size": 7},
    }
    figure.add_scatter(x=x, y=significant_digits(curves.mean(axis=1)), name=name, **look, **bars)
