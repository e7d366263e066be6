"""Figures of `linear_transformer` and its studies: what a trained layer predicts, its matrix, and the ways there."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from explainer.figures.base import COLOURS, DASHES, MARKERS
from explainer.theory import statistics

_POINTS = 50
LEVEL = 0.9
"""A direction counts as learned once this share of its optimum is reached."""


def agreement(step: np.ndarray, predictions: Mapping[str, np.ndarray]) -> go.Figure:
    """Predictions of layers (B,) by name against those of one gradient step (B,) on the same prompts, and y = x."""
    figure, bound = go.Figure(), float(np.abs(step).max()) * 1.05
    figure.add_scatter(x=[-bound, bound], y=[-bound, bound], mode="lines", line={"color": "#888888"}, name="equal")
    for k, (name, values) in enumerate(predictions.items()):
        mark = {"color": COLOURS[1 - k % 2], "symbol": MARKERS[4 * (1 - k % 2)], "size": 7}
        x, y = np.asarray(step).tolist(), np.asarray(values).tolist()
        figure.add_scatter(x=x, y=y, mode="markers", marker=mark, name=name)
    figure.update_xaxes(title="one gradient step on the prompt's examples")
    figure.update_yaxes(title="the layer's prediction")
    return figure.update_layout(height=300, legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"})


def valley(imbalances: Sequence[float], curvatures: Mapping[str, Sequence[float]]) -> go.Figure:
    """The largest curvature at the optimum of each imbalance, one line a setting, with a mark where it is least."""
    figure = go.Figure()
    for k, (name, values) in enumerate(curvatures.items()):
        look = {"color": COLOURS[k], "dash": DASHES[k], "width": 2}
        figure.add_scatter(x=list(imbalances), y=list(values), mode="lines", line=look, name=name)
        least = int(np.argmin(values))
        mark = {"color": COLOURS[k], "symbol": MARKERS[k], "size": 11}
        x, y = [imbalances[least]], [values[least]]
        figure.add_scatter(x=x, y=y, mode="markers", marker=mark, name=f"{name}, flattest", showlegend=False)
    figure.update_xaxes(title="imbalance u² − ‖U‖² of the optimum")
    figure.update_yaxes(title="largest curvature", rangemode="tozero")
    return figure.update_layout(height=320, legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"})


def matrices(panels: Mapping[str, np.ndarray]) -> go.Figure:
    """Square matrices below each other on one colour scale, white at zero, with their entries written in."""
    figure = make_subplots(len(panels), 1, shared_xaxes=True, subplot_titles=list(panels), vertical_spacing=0.14)
    bound = float(max(np.abs(matrix).max() for matrix in panels.values()))
    for place, (name, matrix) in enumerate(panels.items(), 1):
        rows, columns = (list(range(1, size + 1)) for size in matrix.shape)
        entries = {"z": np.asarray(matrix).tolist(), "x": columns, "y": rows, "texttemplate": "%{z:.2f}"}
        figure.add_heatmap(**entries, name=name, coloraxis="coloraxis", xgap=2, ygap=2, row=place, col=1)
    figure.update_yaxes(autorange="reversed", dtick=1, showgrid=False)
    figure.update_xaxes(dtick=1, showgrid=False)
    scale = {"colorscale": [[0, "#d55e00"], [0.5, "#ffffff"], [1, "#56b4e9"]], "cmin": -bound, "cmax": bound}
    return figure.update_layout(height=190 * len(panels), coloraxis=scale | {"showscale": False})


def _log_spaced(times: Sequence[float], n: int) -> list[int]:
    """Indices of the start and of at most n recorded times, evenly spaced on a logarithmic axis, the last included."""
    numbers = np.asarray(times, dtype=float)
    wanted = np.geomspace(numbers[1], numbers[-1], n)
    nearest = np.abs(numbers[:, None] - wanted).argmin(0)
    return [0, *dict.fromkeys(nearest.tolist())]


def learning_curves(
    times: Sequence[float], shares: np.ndarray, reached: Sequence[float], eigenvalues: Sequence[float]
) -> go.Figure:
    """The learned share of each direction (T, d) on a logarithmic time axis, with a mark where it reaches `LEVEL`."""
    figure, chosen = go.Figure(), _log_spaced(times, _POINTS)[1:]
    for k, eigenvalue in enumerate(eigenvalues):
        look = {"color": COLOURS[k % 6], "dash": DASHES[k % 6], "width": 2}
        x, y = [float(times[i]) for i in chosen], shares[chosen, k].tolist()
        figure.add_scatter(x=x, y=y, mode="lines", line=look, name=f"λ = {eigenvalue:g}")
        mark = {"symbol": MARKERS[k % 6], "size": 10, "color": COLOURS[k % 6]}
        figure.add_scatter(
            x=[float(reached[k])],
            y=[LEVEL],
            mode="markers+text",
            text=[f"{reached[k]:.2g}"],
            textposition=("top left", "bottom right")[k % 2],
            marker=mark,
            name=f"λ = {eigenvalue:g} reaches {LEVEL:.0%}",
            showlegend=False,
        )
    figure.update_xaxes(type="log", title="time of the flow", tickvals=[0.1, 1, 10, 100])
    figure.update_yaxes(title="share learned", range=[0, 1.1])
    return figure.update_layout(height=350, legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"})


def decay(times: Sequence[float], missing: np.ndarray, rate: float, eigenvalues: Sequence[float]) -> go.Figure:
    """What is missing along each direction (T, d), its size on a logarithmic axis, and a line that falls at a rate."""
    figure = go.Figure()
    chosen = np.linspace(0, len(times) - 1, min(len(times), 2 * _POINTS)).round().astype(int)
    x = np.asarray(times, dtype=float)[chosen]
    for k, eigenvalue in enumerate(eigenvalues):
        look = {"color": COLOURS[k % 6], "dash": DASHES[k % 6], "width": 2}
        y = np.abs(missing[chosen, k]).tolist()
        figure.add_scatter(x=x.tolist(), y=y, mode="lines", line=look, name=f"λ = {eigenvalue:g}")
    y = np.exp(-rate * x).tolist()
    figure.add_scatter(x=x.tolist(), y=y, mode="lines", line={"color": "#888888"}, name="slowest rate")
    figure.update_xaxes(title="time of the flow")
    figure.update_yaxes(type="log", title="share missing", exponentformat="power", dtick=2)
    return figure.update_layout(height=330, legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"})


def drift(runs: Mapping[str, Sequence[np.ndarray]]) -> go.Figure:
    """What gradient flow conserves, along runs of several kinds; x is the share of the run that is done.

    `runs[kind]` holds one array of values for each seed; all seeds of a kind share colour, dash and legend entry.
    """
    figure = go.Figure()
    for k, (kind, seeds) in enumerate(runs.items()):
        for first, values in enumerate(seeds):
            chosen = np.linspace(0, len(values) - 1, min(len(values), _POINTS)).round().astype(int)
            figure.add_scatter(
                x=(chosen / (len(values) - 1)).tolist(),
                y=np.asarray(values)[chosen].tolist(),
                mode="lines",
                line={"color": COLOURS[k], "dash": DASHES[k], "width": 2},
                name=kind,
                legendgroup=kind,
                showlegend=first == 0,
            )
    figure.update_xaxes(title="share of the run", tickformat=".0%")
    figure.update_yaxes(title="u² − ‖U‖²")
    return figure.update_layout(height=350, legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"})


def spread(values: Sequence[float]) -> str:
    """Values over seeds in a cell of a table, "0.12 (0.08 to 0.16)", the interval Student's; a single one as it is."""
    if len(values) == 1:
        return f"{values[0]:.2f}" if values[0] > 0.005 else f"{values[0]:.0e}"
    mean, low, high = statistics.student(values)
    return f"{mean:.2f} ({low:.2f} to {high:.2f})"
