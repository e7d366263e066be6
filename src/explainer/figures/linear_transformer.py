"""Figures of the chapter `linear_transformer`: the learned matrix, and the ways of a flow and of optimisers to it."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from explainer.figures.base import COLOURS, DASHES, MARKERS
from explainer.theory import statistics

_POINTS = 50
LEVEL = 0.9
"""A direction counts as learned once this share of its optimum is reached."""


def matrices(panels: Mapping[str, np.ndarray]) -> go.Figure:
    """Square matrices below each other on one colour scale, white at zero, with their entries written in."""
    figure = make_subplots(len(panels), 1, shared_xaxes=True, subplot_titles=list(panels), vertical_spacing=0.12)
    bound = float(max(np.abs(matrix).max() for matrix in panels.values()))
    for place, (name, matrix) in enumerate(panels.items(), 1):
        rows, columns = (list(range(1, size + 1)) for size in matrix.shape)
        entries = {"z": np.asarray(matrix).tolist(), "x": columns, "y": rows, "texttemplate": "%{z:.2f}"}
        figure.add_heatmap(**entries, name=name, coloraxis="coloraxis", xgap=2, ygap=2, row=place, col=1)
    figure.update_yaxes(autorange="reversed", dtick=1, showgrid=False)
    figure.update_xaxes(dtick=1, showgrid=False)
    scale = {"colorscale": [[0, "#d55e00"], [0.5, "#ffffff"], [1, "#56b4e9"]], "cmin": -bound, "cmax": bound}
    return figure.update_layout(height=260 * len(panels), coloraxis=scale | {"showscale": False})


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
