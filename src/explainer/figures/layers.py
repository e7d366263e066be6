"""Figures of the chapter `layer_by_layer`: similarities along the depth of a model."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from explainer.analysis.layers import Rows
from explainer.analysis.papers import DEUTCH_LAYERS, DEUTCH_N_LAYERS
from explainer.figures.base import COLOURS, DASHES, MARKERS
from explainer.figures.forms import curves
from explainer.theory import statistics

_ABOVE = {"x": 0, "y": 1.02, "yanchor": "bottom", "orientation": "h"}


def boxes(values: Mapping[str, Rows], y_title: str) -> go.Figure:
    """A box over the queries in each layer for each measure, (queries, layers); the whiskers end at 5 and 95 %."""
    figure = go.Figure()
    for i, (name, rows) in enumerate(values.items()):
        low, q1, median, q3, high = np.nanquantile(rows, (0.05, 0.25, 0.5, 0.75, 0.95), axis=0)
        figure.add_box(
            x=list(range(rows.shape[1])),
            lowerfence=low.tolist(),
            q1=q1.tolist(),
            median=median.tolist(),
            q3=q3.tolist(),
            upperfence=high.tolist(),
            name=name,
            marker={"color": COLOURS[i]},
            line={"width": 1.5},
            fillcolor="rgba(0,0,0,0)" if i else None,
        )
    return figure.update_layout(height=380, boxmode="group", xaxis_title="layer", yaxis_title=y_title, legend=_ABOVE)


def seed_curves(means: Mapping[str, Rows], y_title: str) -> go.Figure:
    """One thin line per seed and a thick one with markers for their mean, for each name."""
    figure = go.Figure()
    for i, (name, rows) in enumerate(means.items()):
        layers, looks = list(range(rows.shape[1])), {"color": COLOURS[i], "dash": DASHES[i]}
        for row in rows:
            figure.add_scatter(
                x=layers,
                y=row.tolist(),
                mode="lines",
                line=looks | {"width": 1},
                opacity=0.4,
                showlegend=False,
                name=name,
            )
        figure.add_scatter(
            x=layers,
            y=rows.mean(0).tolist(),
            name=name,
            mode="lines+markers",
            line=looks | {"width": 2.5},
            marker={"symbol": MARKERS[i], "size": 7},
        )
    return figure.update_layout(height=400, xaxis_title="layer", yaxis_title=y_title, legend=_ABOVE)


def depth_profile(means: Mapping[str, Rows], published: Mapping[int, float] = DEUTCH_LAYERS) -> go.Figure:
    """Means over seeds with Student's intervals along the relative depth, beside the published layers (open)."""
    depth = np.linspace(0, 1, len(next(iter(means.values())).T)).tolist()
    each = {name: statistics.student(rows) for name, rows in means.items()}
    figure = curves(depth, each, "relative depth", "SimAOU, normalised")
    figure.add_scatter(
        x=[layer / (DEUTCH_N_LAYERS - 1) for layer in published],
        y=list(published.values()),
        name="quoted: fairseq 1.3B, its layer",
        mode="markers+text",
        text=[f"{layer}" for layer in published],
        textposition="top center",
        marker={"symbol": "star-open", "size": 13, "color": COLOURS[3], "line": {"width": 2}},
    )
    return figure.update_layout(height=420, legend=_ABOVE)


def layer_map(found: Mapping[str, Mapping[str, Sequence[bool]]]) -> go.Figure:
    """A mark for each layer of each task with a property: `found[property][task][layer]`, two properties at most."""
    figure, looks = go.Figure(), (("square-open", 11, 2), ("circle", 6, 0))
    tasks = list(dict.fromkeys(task for each in found.values() for task in each))
    for i, (name, each) in enumerate(found.items()):
        places = [(layer, task) for task, there in each.items() for layer, yes in enumerate(there) if yes]
        symbol, size, width = looks[i]
        figure.add_scatter(
            x=[layer for layer, _ in places],
            y=[task for _, task in places],
            name=name,
            mode="markers",
            marker={"symbol": symbol, "size": size, "color": COLOURS[i], "line": {"width": width}},
        )
    layers = max(len(there) for each in found.values() for there in each.values())
    figure.update_yaxes(categoryorder="array", categoryarray=tasks[::-1], range=[-0.5, len(tasks) - 0.5])
    figure.update_xaxes(range=[-0.5, layers - 0.5], title="layer")
    return figure.update_layout(height=190 + 34 * len(tasks), legend=_ABOVE)
