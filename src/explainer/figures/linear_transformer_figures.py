"""Figures of `linear_transformer` and its studies: what a trained layer predicts, its matrix, and the ways there."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from explainer.figures.figure_base import FLOOR, LINES, MARKS

_POINTS = 50
_LEVEL = 0.9  # a direction counts as learned once this share of its optimum is reached


def layer_against_step(step: np.ndarray, predictions: Mapping[str, np.ndarray]) -> go.Figure:
    """Predictions of layers (B,) by name against those of one gradient step (B,) on the same prompts, and y = x."""
    figure, bound = go.Figure(), float(np.abs(step).max()) * 1.05
    figure.add_scatter(x=[-bound, bound], y=[-bound, bound], mode="lines", line={"color": FLOOR}, name="equal")
    for k, (name, values) in enumerate(predictions.items()):
        look = MARKS[1 - k % 2] | {"size": 7, "symbol": ("x", "circle")[k % 2]}
        x, y = np.asarray(step).tolist(), np.asarray(values).tolist()
        figure.add_scatter(x=x, y=y, mode="markers", marker=look, name=name)
    figure.update_xaxes(title="one gradient step on the prompt's examples")
    figure.update_yaxes(title="the layer's prediction")
    return figure.update_layout(height=300)


def _spaced(length: int, n: int) -> np.ndarray:
    """Indices of at most n of so many values, evenly spaced, both ends included."""
    return np.linspace(0, length - 1, min(length, n)).round().astype(int)


def _log_spaced(times: Sequence[float], n: int) -> list[int]:
    """Indices of the start and of at most n recorded times, evenly spaced on a logarithmic axis, the last included."""
    numbers = np.asarray(times, dtype=float)
    wanted = np.geomspace(numbers[1], numbers[-1], n)
    nearest = np.abs(numbers[:, None] - wanted).argmin(0)
    return [0, *dict.fromkeys(nearest.tolist())]


def learning_curves(
    times: Sequence[float], shares: np.ndarray, reached: Sequence[float], eigenvalues: Sequence[float]
) -> go.Figure:
    """The learned share of each direction (T, d); a mark and the name of the curve say when it reaches `_LEVEL`."""
    figure, chosen = go.Figure(), _log_spaced(times, _POINTS)[1:]
    for k, eigenvalue in enumerate(eigenvalues):
        x, y = [float(times[i]) for i in chosen], shares[chosen, k].tolist()
        name = f"λ = {eigenvalue:g}: {reached[k]:.2g}"
        figure.add_scatter(x=x, y=y, mode="lines", line=LINES[k % 6] | {"width": 2}, name=name)
        figure.add_scatter(
            x=[float(reached[k])],
            y=[_LEVEL],
            mode="markers",
            marker=MARKS[k % 6] | {"size": 10},
            name=f"λ = {eigenvalue:g} reaches {_LEVEL:.0%}",
            showlegend=False,
        )
    figure.update_xaxes(type="log", title="time of the flow", tickvals=[0.1, 1, 10, 100])
    figure.update_yaxes(title="share learned", range=[0, 1.1])
    return figure.update_layout(height=350)


def conserved_over_training(runs: Mapping[str, Sequence[np.ndarray]]) -> go.Figure:
    """What gradient flow conserves, along runs of several kinds; x is the share of the run that is done.

    `runs[kind]` holds one array of values for each seed; all seeds of a kind share colour, dash and legend entry.
    """
    figure = go.Figure()
    for k, (kind, seeds) in enumerate(runs.items()):
        for first, values in enumerate(seeds):
            chosen = _spaced(len(values), _POINTS)
            figure.add_scatter(
                x=(chosen / (len(values) - 1)).tolist(),
                y=np.asarray(values)[chosen].tolist(),
                mode="lines",
                line=LINES[k % 6] | {"width": 2},
                name=kind,
                legendgroup=kind,
                showlegend=first == 0,
            )
    figure.update_xaxes(title="share of the run", tickformat=".0%")
    figure.update_yaxes(title="u² − ‖U‖²")
    return figure.update_layout(height=350)
