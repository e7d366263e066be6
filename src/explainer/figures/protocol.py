"""Figures and the table of the chapter `comparison_protocol`."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from explainer.analysis import reporting
from explainer.analysis.reporting import by
from explainer.figures.base import COLOURS, DASHES, MARKERS, Table
from explainer.lab.store import Stored
from explainer.theory.statistics import Interval

__all__ = [
    "READINGS",
    "SETTINGS",
    "against_rate",
    "diverged",
    "first",
    "rates",
    "readings",
    "same_queries",
    "shown",
    "stable",
    "traps",
]

RESAMPLES = 500  # the interval's ends are known to about a twentieth of its width
_BELOW = {"orientation": "h", "x": 0, "y": -0.2, "yanchor": "top", "traceorder": "normal"}


# From results to numbers.


def first(values: Sequence[tuple[np.ndarray]], n: int | None) -> list[tuple[np.ndarray]]:
    """The values of the first n queries of each seed, of all for None."""
    return [(array[:n],) for (array,) in values]


def same_queries(a: Sequence[Stored], b: Sequence[Stored]) -> bool:
    """Whether two lists of results have the same seeds and, as far as both go, queries with the same right answers."""

    def seeds(finished: Sequence[Stored]) -> list[int]:
        return [one.identity["cell"]["seed"] for one in finished]

    def labels(one: Stored) -> list[int]:
        return one.result["setting"]["labels"] or []

    pairs = list(zip(a, b, strict=False))
    return seeds(a) == seeds(b) and all(
        x == y for one, two in pairs for x, y in zip(labels(one), labels(two), strict=False)
    )


def shown(estimate: float, low: float, high: float, *_: float, digits: int = 3) -> str:
    """An estimate with the ends of its interval: 0.118 [0.101, 0.134]."""
    estimate, low, high = (round(number, digits) + 0.0 for number in (estimate, low, high))  # no minus zero
    return f"{estimate:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]".replace("-", "\N{MINUS SIGN}")


# The learning rate.

_similarity = partial(reporting.similarity_interval, n_resamples=RESAMPLES)
_prediction = partial(reporting.prediction_interval, n_resamples=RESAMPLES)
READINGS: Mapping[str, Callable[[Sequence[Stored]], Interval]] = {
    "SimAOU": partial(_similarity, measure="sim_aou"),
    "FT accuracy": partial(_prediction, state="ft"),
    "FT AUC": partial(_prediction, state="ft", measure="auc"),
    "size of the update": partial(_similarity, measure="update_norm_ratio"),
}
"""What is read against the learning rate, from results that differ in their seeds; AUC where answers are labels."""


def stable(finished: Sequence[Stored]) -> list[Stored]:
    """The results for which FT did not diverge."""
    return [one for one in finished if one.result["predictions"]["ft"] is not None]


def against_rate(
    finished: Sequence[Stored], reading: Callable[[Sequence[Stored]], Interval]
) -> dict[str, dict[float, Interval]]:
    """A reading for each task and learning rate, over the seeds for which FT did not diverge; none if it always did."""
    return {
        task: {lr: reading(stable(of_rate)) for lr, of_rate in sorted(by(group, "lr").items()) if stable(of_rate)}
        for task, group in by(finished, "task").items()
    }


def diverged(finished: Sequence[Stored]) -> str:
    """Where FT diverged, in words: "sst2 at 0.01: 3 of 5 seeds"; "nowhere" if it did not."""
    places = [
        f"{task} at {lr:g}: {len(of_rate) - len(stable(of_rate))} of {len(of_rate)} seeds"
        for task, group in by(finished, "task").items()
        for lr, of_rate in sorted(by(group, "lr").items())
        if len(stable(of_rate)) < len(of_rate)
    ]
    return "; ".join(places) or "nowhere"


def rates(
    panels: Mapping[str, Mapping[str, Mapping[float, Interval]]], floors: Mapping[str, Mapping[float, Interval]]
) -> go.Figure:
    """A panel for each reading, `panels[reading][task][lr]`, over the learning rate; `floors` belong to the first."""
    figure = make_subplots(rows=len(panels), shared_xaxes=True, subplot_titles=list(panels), vertical_spacing=0.07)
    for row, panel in enumerate(panels.values(), 1):
        for i, (task, of_rate) in enumerate(panel.items()):
            colour = COLOURS[i % 6]
            line = {"color": colour, "dash": DASHES[i % 6]}
            style = {"line": line, "marker": {"symbol": MARKERS[i % 6], "size": 8}, "legendgroup": task}
            figure.add_trace(_curve(of_rate, name=task, showlegend=row == 1, **style), row=row, col=1)
            if row == 1 and task in floors:
                symbol = f"{MARKERS[i % 6]}-open"
                style |= {"line": {"color": colour, "dash": "dot", "width": 1}, "marker": {"symbol": symbol, "size": 6}}
                floor = _curve(floors[task], name=f"{task}, isotropic floor", showlegend=False, **style)
                figure.add_trace(floor, row=1, col=1)
    figure.update_xaxes(type="log", dtick=1, exponentformat="power")
    figure.update_yaxes(type="log", dtick=1, exponentformat="power", row=len(panels))
    figure.update_xaxes(title_text="learning rate η", row=len(panels))
    return figure.update_layout(height=230 * len(panels) + 60, legend=_BELOW | {"y": -0.08})


def _curve(intervals: Mapping[float, Interval], **style) -> go.Scatter:
    estimate, low, high = np.array([interval[:3] for interval in intervals.values()]).reshape(-1, 3).T
    error = {"array": _numbers(high - estimate), "arrayminus": _numbers(estimate - low), "thickness": 1, "width": 3}
    return go.Scatter(x=list(intervals), y=_numbers(estimate), error_y=error, mode="lines+markers", **style)


def _numbers(values: np.ndarray) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


# Readings of the same data, and the table.


def readings(
    measured: Mapping[str, Mapping[str, Interval]],
    x_title: str,
    quoted: Mapping[str, Mapping[str, float]] | None = None,
    zero: bool = True,
) -> go.Figure:
    """Points with intervals, one row for each name in `measured[series]`; quoted numbers are open and have none."""
    figure = go.Figure()
    rows = list(dict.fromkeys(name for series in measured.values() for name in series))
    series = [*measured, *(quoted or {})]
    heights = np.linspace(0.3, -0.3, len(series)) if len(series) > 1 else [0.0]
    for i, (name, height) in enumerate(zip(series, heights, strict=True)):
        style = {"mode": "markers", "name": name}
        marker = {"color": COLOURS[i % 6], "size": 9, "symbol": MARKERS[i % 6]}
        values = measured.get(name)
        if values is None:
            values = {row: value for row, value in quoted[name].items() if row in rows}
            style["marker"] = marker | {"symbol": f"{MARKERS[i % 6]}-open", "line": {"width": 2}}
            x = list(values.values())
        else:
            x, low, high = np.array([interval[:3] for interval in values.values()]).T
            error = {"array": _numbers(high - x), "arrayminus": _numbers(x - low), "thickness": 1, "width": 3}
            style |= {"marker": marker, "error_x": error}
            x = _numbers(x)
        y = [len(rows) - 1 - rows.index(row) + float(height) for row in values]
        figure.add_scatter(x=x, y=y, hovertext=list(values), **style)
    if zero:
        figure.add_vline(x=0, line={"width": 1, "dash": "dot"})
    ticks = {"tickvals": list(range(len(rows)))[::-1], "ticktext": rows, "range": [-0.6, len(rows) - 0.4]}
    figure.update_yaxes(zeroline=False, **ticks)
    # The title stands above, because a legend of several lines on a phone would cover it below.
    title = {"text": x_title, "x": 0, "xanchor": "left", "font": {"size": 14}}
    legend = _BELOW | {"y": -30 / (70 * len(rows))}
    return figure.update_layout(height=190 + 70 * len(rows), title=title, legend=legend, margin={"t": 40, "b": 150})


SETTINGS: Mapping[str, tuple[str, str, str]] = {
    "token at which attention is read": (
        "“the last token”",
        "the first answer word, appended to every query",
        "the last token of the prompt, whose prediction is the answer",
    ),
    "length of h": ("normalised", "normalised", "both, each beside its floor"),
    "random baseline": (
        "“random”",
        "numbers uniform in [0, 1): no random direction, and no part shared with the zero-shot output",
        "random directions of FT’s lengths, added to the zero-shot output",
    ),
    "separator": (
        "not mentioned",
        "end-of-document token after each demonstration, in the context only",
        "the same for the six tasks; a line break for the starter tasks",
    ),
    "seed and learning rate": (
        "best accuracy on the validation set that is reported",
        "the same",
        "fixed rate and mean over seeds; what is chosen is chosen on other queries",
    ),
    "Kendall’s τ": ("τ-a", "τ-b, of scores that went through a softmax", "τ-b of the scores, and τ-a"),
    "queries for Kendall’s τ": ("not mentioned", "the first 100 (<code>debug_n</code>)", "all queries of the cell"),
    "queries in all": ("up to 7600 (AGNews)", "at most 2000", "fewer; stated with every number"),
}
"""What the paper says (Dai et al. 2023, sections 3.2 and 4, tables 1, 3, 5, 8 and 9), what the released code does
(microsoft/LMOps, understand_icl: fs_eval.py, compute_sim.py, compute_training_example_attn.py, fewshot_task.py; read,
not run), and what is done here."""


def traps(effects: Mapping[str, Sequence[str]], caption: str, made: str) -> Table:
    """The table of SETTINGS, each with lines of HTML about its effect, where `effects` has some."""
    cells = []
    for what, columns in SETTINGS.items():
        said = (f"<strong>{who}:</strong> {text}" for who, text in zip(("paper", "code", "here"), columns, strict=True))
        lines = (f'<span style="white-space: nowrap">{line}</span>' for line in effects.get(what, ["not measured"]))
        wide = f'<div style="min-width: 16em">{"<br>".join(said)}</div>'
        cells.append((what, wide, "<br>".join(lines)))
    return Table(("setting", "the paper, its released code, and here", "effect on the number"), cells, caption, made)
