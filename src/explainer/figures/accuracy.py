"""Figures of the chapter `accuracy`."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots
from scipy.stats import binomtest

from explainer.figures.base import COLOURS, DASHES, MARKERS
from explainer.lab.store import Stored
from explainer.theory import statistics
from explainer.theory.statistics import Interval

__all__ = [
    "against_k",
    "answer_rows",
    "answer_shares",
    "answers",
    "binomial_interval",
    "ceiling",
    "content_free_interval",
    "difference_interval",
    "differences",
    "label_groups",
    "overview",
    "points",
    "sizes",
    "solid",
]

Array = np.ndarray

STATES: Mapping[str, str] = {"zsl": "ZSL", "ft": "FT", "icl": "ICL"}
"""The three settings, in the order in which the paper prints them, and their names."""


# Intervals of single shares.


def binomial_interval(share: float, n: int) -> Interval:
    """The nearest share that a whole number of n queries can have, with Wilson's 95 % interval."""
    count = round(share * n)
    interval = binomtest(count, n).proportion_ci(0.95, method="wilson")
    return Interval(count / n, interval.low, interval.high)


def difference_interval(a: float, b: float, n: int) -> Interval:
    """95 % interval of a - b, two shares of n queries each, as if of different queries.

    The distances from a and b to the ends of their own intervals, (l_a, u_a) and (l_b, u_b), add like standard errors:
    [d - sqrt((a - l_a)^2 + (u_b - b)^2), d + sqrt((u_a - a)^2 + (b - l_b)^2)].
    Source: Newcombe 1998, Interval estimation for the difference between independent proportions, method 10.
    """
    (a, low_a, high_a), (b, low_b, high_b) = binomial_interval(a, n), binomial_interval(b, n)
    d = a - b
    return Interval(d, d - np.hypot(a - low_a, high_b - b), d + np.hypot(high_a - a, b - low_b))


def points(interval: Sequence[float], digits: int = 0) -> str:
    """An estimate and its interval in per cent, `61 [58, 65]`, with spaces at which no line breaks."""
    estimate, low, high = (f"{100 * value:.{digits}f}".replace("-", "−") for value in interval[:3])
    return f"{estimate}\N{NO-BREAK SPACE}[{low},\N{NO-BREAK SPACE}{high}]"


def solid(difference: Interval) -> str:
    """As `points`, with one decimal, as HTML in bold where the interval excludes 0."""
    text = points(difference, 1)
    return f"<strong>{text}</strong>" if difference.low > 0 or difference.high < 0 else text


# What stored predictions say beyond `explainer.analysis.reporting`.


def label_groups(finished: Sequence[Stored], state: str, n: int | None = None) -> list[tuple[Array, Array]]:
    """Log-probabilities (n, c) and right labels (n,) of the first n queries of each result, all by default.

    As the groups of `explainer.theory.statistics`.
    """
    rows = [(stored.result["predictions"][state], stored.result["setting"]["labels"]) for stored in finished]
    return [(np.array(row["log_probs"])[:n], np.array(labels)[:n]) for row, labels in rows]


def content_free_interval(finished: Sequence[Stored], state: str, **options) -> Interval:
    """Accuracy after the log-probabilities of a query that says nothing are subtracted, as `prediction_interval`."""
    free = [np.array(stored.result["predictions"][state]["content_free"]) for stored in finished]
    groups = label_groups(finished, state)
    shifted = [(s - b, labels) for (s, labels), b in zip(groups, free, strict=True)]
    return statistics.bootstrap_interval(shifted, statistics.accuracy, **options)


def answer_shares(finished: Sequence[Stored], state: str | None = None) -> Float[Array, "seeds c"]:
    """How often each label is the model's answer in a state, or is right (without a state), for every result."""
    groups = label_groups(finished, state or "zsl")
    chosen = [labels if state is None else log_probs.argmax(1) for log_probs, labels in groups]
    n_labels = groups[0][0].shape[1]
    return np.array([np.bincount(labels, minlength=n_labels) / len(labels) for labels in chosen])


def answer_rows(finished: Sequence[Stored]) -> dict[str, Float[Array, " c"]]:
    """Rows for `answers`: right answers, ZSL and FT as means over results, and ICL for each seed by itself."""
    means = {"right": None, "ZSL": "zsl", "FT": "ft"}
    rows = {name: answer_shares(finished, state).mean(0) for name, state in means.items()}
    of_seed = zip(finished, answer_shares(finished, "icl"), strict=True)
    return rows | {f"ICL {stored.identity['cell']['seed']}": shares for stored, shares in of_seed}


def sizes(results: Mapping[str, Sequence[Stored]]) -> str:
    """Seeds times queries of every task: `5 x 150 (sst2)`."""
    each = {task: (len(finished), finished[0].result["setting"]["n"]) for task, finished in results.items()}
    return ", ".join(f"{seeds} × {n} ({task})" for task, (seeds, n) in each.items())


def ceiling(finished: Sequence[Stored], state: str) -> Float[Array, " seeds"]:
    """The highest accuracy that the given answers allow, in whatever order: sum_c min(p_c, q_c), for every result.

    p are the shares of the model's answers, q those of the right ones. Of label c at most min(p_c, q_c) can be right.
    """
    return np.minimum(answer_shares(finished, state), answer_shares(finished)).sum(1)


# Figures.


def overview(
    panels: Mapping[str, Mapping[str, Mapping[str, Interval]]],
    majority: Mapping[str, Mapping[str, float]],
    quoted: Collection[str] = (),
) -> go.Figure:
    """Accuracies with intervals, `panels[panel][state][task]`, a panel each; open markers in the quoted panels.

    Grey marks stand at `majority[panel][task]`, the accuracy of always giving the commonest right answer.
    """
    tasks = list(dict.fromkeys(t for states in panels.values() for of_task in states.values() for t in of_task))
    place = np.arange(len(tasks))[::-1]
    figure = make_subplots(rows=len(panels), subplot_titles=list(panels), vertical_spacing=0.09, shared_xaxes=True)
    for row, (panel, states) in enumerate(panels.items(), 1):
        figure.add_scatter(
            x=[round(float(share), 4) for share in majority[panel].values()],
            y=[int(place[tasks.index(task)]) for task in majority[panel]],
            name="majority",
            mode="markers",
            marker={"symbol": "line-ns-open", "size": 26, "color": "grey", "line": {"width": 2}},
            hovertext=list(majority[panel]),
            legendgroup="majority",
            showlegend=row == 1,
            row=row,
            col=1,
        )
        for i, (state, of_task) in enumerate(states.items()):
            known = [(y, task, of_task[task]) for y, task in zip(place, tasks, strict=True) if task in of_task]
            marker = {"symbol": MARKERS[i] + "-open" * (panel in quoted), "size": 9, "color": COLOURS[i]}
            values = np.array([interval for *_, interval in known]).round(4)
            figure.add_scatter(
                x=values[:, 0].tolist(),
                y=[round(y + 0.22 * (1 - i), 2) for y, *_ in known],
                name=STATES[state],
                mode="markers",
                marker=marker,
                hovertext=[task for _, task, _ in known],
                legendgroup=state,
                showlegend=row == 1,
                error_x=_bars(*values.T),
                row=row,
                col=1,
            )
    figure.update_yaxes(tickvals=place, ticktext=tasks, range=[-0.6, len(tasks) - 0.4])
    figure.update_xaxes(range=[0, 1.02], tickformat=".0%", showticklabels=True)
    figure.update_xaxes(title_text="accuracy", row=len(panels))
    return figure.update_layout(height=270 * len(panels) + 90, legend=_BELOW | {"y": -0.09})


def answers(panels: Mapping[str, tuple[Sequence[str], Mapping[str, Float[Array, " c"]]]]) -> go.Figure:
    """What is answered how often: `panels[task] = (labels, {row: shares})`, one stacked bar for each row."""
    n_rows = [len(rows) for _, rows in panels.values()]
    figure = make_subplots(
        rows=len(panels), subplot_titles=list(panels), row_heights=n_rows, vertical_spacing=0.24 / len(panels)
    )
    for row, (labels, rows) in enumerate(panels.values(), 1):
        for c, label in enumerate(labels):
            share = [round(float(shares[c]), 3) for shares in rows.values()]
            bar = go.Bar(x=share, y=list(rows), name=label, orientation="h", marker_color=COLOURS[c])
            bar.update(text=[label] * len(share), textposition="inside", insidetextanchor="middle", textangle=0)
            figure.add_trace(bar, row=row, col=1)
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(range=[0, 1.02], tickformat=".0%")
    figure.update_xaxes(title_text="share of the answers", row=len(panels))
    figure.update_layout(barmode="stack", bargap=0.12, showlegend=False, uniformtext={"minsize": 9, "mode": "hide"})
    return figure.update_layout(height=60 * len(panels) + 22 * sum(n_rows) + 60)


def differences(series: Mapping[str, Mapping[str, Interval]], x_title: str) -> go.Figure:
    """Differences with their intervals, `series[name][task]`, beside a line at no difference."""
    tasks = list(dict.fromkeys(task for of_task in series.values() for task in of_task))
    place = dict(zip(tasks, range(len(tasks) - 1, -1, -1), strict=True))
    figure = go.Figure()
    for i, (name, of_task) in enumerate(series.items()):
        values = np.array([interval[:3] for interval in of_task.values()]).round(4)
        offset = 0.16 * ((len(series) - 1) / 2 - i)
        figure.add_scatter(
            x=values[:, 0].tolist(),
            y=[place[task] + offset for task in of_task],
            name=name,
            mode="markers",
            marker={"symbol": MARKERS[i], "size": 9, "color": COLOURS[i]},
            hovertext=list(of_task),
            error_x=_bars(*values.T),
        )
    figure.add_vline(x=0, line={"width": 1, "dash": "dot"})
    figure.update_yaxes(tickvals=list(place.values()), ticktext=tasks, range=[-0.6, len(tasks) - 0.4])
    figure.update_xaxes(title_text=x_title, tickformat="+.0%")
    return figure.update_layout(height=62 * len(tasks) + 130, legend=_BELOW | {"y": -0.28})


def against_k(ks: Sequence[int], panels: Mapping[str, Mapping[str, Sequence[Interval]]]) -> go.Figure:
    """Accuracy against the number of demonstrations, evenly spaced by rank: `panels[task][series]`, a panel each."""
    figure = make_subplots(rows=len(panels), subplot_titles=list(panels), shared_xaxes=True, vertical_spacing=0.06)
    for row, series in enumerate(panels.values(), 1):
        for i, (name, intervals) in enumerate(series.items()):
            values = np.array([interval[:3] for interval in intervals]).round(4)
            style = {"line": {"dash": DASHES[i], "color": COLOURS[i]}, "marker": {"symbol": MARKERS[i], "size": 8}}
            figure.add_scatter(
                x=[rank + 0.06 * (i - 1) for rank in range(len(ks))],
                y=values[:, 0].tolist(),
                name=name,
                mode="lines+markers",
                hovertext=[f"k = {k}" for k in ks],
                legendgroup=name,
                showlegend=row == 1,
                error_y=_bars(*values.T),
                **style,
                row=row,
                col=1,
            )
    figure.update_xaxes(tickvals=list(range(len(ks))), ticktext=[str(k) for k in ks], showticklabels=True)
    figure.update_xaxes(title_text="demonstrations k", row=len(panels))
    figure.update_yaxes(range=[-0.04, 1.04], tickvals=[0, 0.5, 1])
    return figure.update_layout(height=190 * len(panels) + 90, legend=_BELOW | {"y": -0.1})


_BELOW = {"orientation": "h", "x": 0, "yanchor": "top", "traceorder": "normal"}


def _bars(estimate: Array, low: Array, high: Array) -> dict:
    """Error bars from an estimate to the ends of its interval."""
    array, arrayminus = (np.round(ends, 4).tolist() for ends in (high - estimate, estimate - low))
    return {"array": array, "arrayminus": arrayminus, "thickness": 1, "width": 3}
