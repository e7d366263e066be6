"""Figures of the chapter `training_with_momentum`: learning curves, gaps of pairs, accuracies in context."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots
from torch import Tensor

from explainer.analysis.reporting import student_interval
from explainer.figures.base import COLOURS, DASHES, MARKERS
from explainer.lab.store import Stored
from explainer.models.training import Setting, StudyError
from explainer.theory import statistics
from explainer.theory.statistics import Interval, PairedDifference

Array = np.ndarray
Curve = tuple[Sequence[float], Sequence[float]]

_BAR_EVERY = 4  # points of a curve: bars at all of them would hide it
_BELOW = {"orientation": "h", "x": 0, "y": -0.22, "yanchor": "top", "traceorder": "normal"}


# What pairs of runs say


def matched(variant: Sequence[Stored], plain: Sequence[Stored]) -> list[tuple[Stored, Stored]]:
    """The runs of a variant, each with the plain run that differs from it in average and eta alone.

    Raises StudyError for a run without its counterpart.
    """
    of_setting = {_without_average(one): one for one in plain}
    missing = [one.path.name for one in variant if _without_average(one) not in of_setting]
    if missing:
        raise StudyError(f"{', '.join(missing)} has no plain run with the same seed and setting; train it too.")
    return [(one, of_setting[_without_average(one)]) for one in variant]


def _without_average(one: Stored) -> tuple:
    cell = one.identity["cell"]
    return tuple(cell[f.name] for f in fields(Setting) if f.name not in ("average", "eta"))


def curve(one: Stored) -> Curve:
    """Tokens seen and the held-out loss there, in nats per token."""
    return one.result["curve"]["tokens"], one.result["curve"]["held_out"]


def gaps(variant: Sequence[Stored], plain: Sequence[Stored]) -> tuple[Array, Float[Array, "seeds points"]]:
    """Tokens seen (points,), and how much lower the held-out loss of the variant is there, in nats per token.

    gap_s(t) = loss_s^plain(t) - loss_s^variant(t) for the pair of seed s.
    """
    pairs = matched(variant, plain)
    held_out = np.array([[one.result["curve"]["held_out"] for one in pair] for pair in pairs])
    return np.array(variant[0].result["curve"]["tokens"]), held_out[:, 1] - held_out[:, 0]


def documents(one: Stored, context: int) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Sum of the negative log-likelihoods of the blocks that begin in a held-out document, and their number."""
    _, index = np.unique(one.result["held_out"]["documents"], return_inverse=True)
    return np.bincount(index, one.result["held_out"]["nll"][str(context)]), np.bincount(index).astype(float)


def mean_nll(total: Float[Array, " n"], count: Float[Array, " n"]) -> float:
    """Nats per token, from the sums and counts of `documents`."""
    return float(total.sum() / count.sum())


def perplexity(total: Float[Array, " n"], count: Float[Array, " n"]) -> float:
    """Exponential of `mean_nll`."""
    return float(np.exp(mean_nll(total, count)))


def perplexity_interval(finished: Sequence[Stored], context: int) -> Interval:
    """Mean over seeds of the perplexity, bootstrap over documents nested in seeds."""
    return statistics.bootstrap_interval([documents(one, context) for one in finished], perplexity)


def perplexity_change(variant: Sequence[Stored], plain: Sequence[Stored], context: int) -> PairedDifference:
    """Paired difference of the nats per token, variant - plain, bootstrap over documents nested in seeds.

    Negative where the variant is better; `per_cent` turns it into a change of the perplexity.
    """
    sides = zip(*matched(variant, plain), strict=True)
    a, b = ([documents(one, context) for one in side] for side in sides)
    return statistics.paired_difference(a, b, mean_nll)


def seed_changes(variant: Sequence[Stored], plain: Sequence[Stored], context: int) -> Float[Array, " seeds"]:
    """Difference of the nats per token, variant - plain, of each pair."""
    return np.array(
        [mean_nll(*documents(a, context)) - mean_nll(*documents(b, context)) for a, b in matched(variant, plain)]
    )


def over_seeds(values: Float[Array, " seeds"]) -> Interval:
    """Mean with Student's 95 % interval; a single seed has no interval, NaN."""
    if len(values) == 1:
        return Interval(float(values[0]), float("nan"), float("nan"))
    return Interval(*(float(end) for end in student_interval(np.asarray(values))))


def per_cent(nats: float) -> float:
    """A difference of log-perplexities as a change of the perplexity, 100 (e^nats - 1)."""
    return 100 * float(np.expm1(nats))


def tokens_to_reach(curve: Curve, loss: float) -> float:
    """Tokens after which a falling curve first is at `loss`, linear between its points; NaN if it never is."""
    tokens, losses = (np.asarray(side, dtype=float) for side in curve)
    below = np.flatnonzero(losses <= loss)
    if not len(below):
        return float("nan")
    i = below[0]
    if i == 0:
        return float(tokens[0])
    share = (losses[i - 1] - loss) / (losses[i - 1] - losses[i])
    return float(tokens[i - 1] + share * (tokens[i] - tokens[i - 1]))


def counting_nll(stream: Tensor, rows: Tensor, last: int, vocabulary: int) -> float:
    """Nats per token of counting: what follows the `last` tokens before it in a stream, on rows of held-out tokens.

    p(w | h) = (c(h w) + n(h) p(w | h')) / (c(h) + n(h)) with c the counts, n(h) the number of different tokens after
    h, and h' the history h without its oldest token; without history, uniform (Witten and Bell 1991, interpolated).
    Shapes: stream (n,), rows (m, T); the first `last` tokens of a row are only read.
    """
    seen, asked = (part.numpy().reshape(-1, part.shape[-1]) for part in (stream, rows))
    p = np.full(asked[:, last:].shape, 1 / vocabulary)
    for n in range(last + 1):
        grams, counts = np.unique(_grams(seen, n, vocabulary), return_counts=True)
        wanted = _grams(asked, n, vocabulary)[:, last - n :]
        histories, index = np.unique(grams // vocabulary, return_inverse=True)
        c_h = _looked_up(histories, np.bincount(index, counts), wanted // vocabulary)
        n_h = _looked_up(histories, np.bincount(index), wanted // vocabulary)
        known = c_h > 0
        estimate = (_looked_up(grams, counts, wanted) + n_h * p) / np.where(known, c_h + n_h, 1)
        p = np.where(known, estimate, p)
    return float(-np.log(p).mean())


def _grams(rows: Array, n: int, vocabulary: int) -> Array:
    """Each token with the n before it, as one number."""
    width = rows.shape[1] - n
    return sum(rows[:, i : i + width].astype(np.int64) * vocabulary ** (n - i) for i in range(n + 1))


def _looked_up(keys: Array, values: Array, wanted: Array) -> Array:
    """The values of sorted keys, 0 for one that is not there."""
    place = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], 0)


# Text


def made(finished: Sequence[Stored], command: str) -> str:
    """Where stored training runs come from: seeds, device, versions, CPU seconds, and how to train them again."""
    cells = [one.identity["cell"] for one in finished]
    seeds = sorted({cell["seed"] if "seed" in cell else cell["setting"]["seed"] for cell in cells})
    provenance = finished[0].provenance
    seconds = sum(speed(one)["cpu_seconds"] for one in finished)
    return (
        f"Stored: {len(finished)} runs, seeds {', '.join(map(str, seeds))}; {provenance['device']}, "
        f"{provenance['threads']} thread, torch {provenance['versions']['torch']}; {seconds:.0f} CPU seconds; "
        f"trained by: {command}"
    )


def speed(one: Stored) -> Mapping[str, float]:
    """What the `.run` file beside a result says: seconds, tokens and operations per second."""
    return json.loads(one.path.with_suffix(".run").read_text("utf-8"))


def text(value: Sequence[float], digits: int = 2) -> str:
    """`estimate [low, high]`, or the estimate alone if there is no interval."""
    shown = [f"{number:.{digits}f}".replace("-", "−") for number in value[:3]]
    return shown[0] if np.isnan(value[1]) else f"{shown[0]} [{shown[1]}, {shown[2]}]"


def change_text(nats: Sequence[float]) -> str:
    """A difference in nats with its interval as a change of the perplexity in per cent."""
    return text([per_cent(end) for end in nats[:3]], 1) + " %"


def direction(change: Sequence[float]) -> str:
    """What an interval of a loss's change says: better, worse, or not decided."""
    _, low, high = change[:3]
    return "better" if high < 0 else "worse" if low > 0 else "not decided"


# Figures


def learning_curves(
    groups: Mapping[str, Sequence[Curve]], y_title: str, *, levels: Mapping[str, float] | None = None
) -> go.Figure:
    """Loss against tokens: `groups[variant]` has a curve for each seed, drawn thin, and their mean, drawn with marks.

    `levels` are horizontal lines with their names.
    """
    figure = go.Figure()
    for i, (name, curves) in enumerate(groups.items()):
        tokens = [float(f"{t / 1e6:.4g}") for t in curves[0][0]]
        losses = np.array([curve[1] for curve in curves])
        _add_seeds(figure, i, name, tokens, losses)
        figure.add_scatter(x=tokens, y=_short(losses.mean(0)), name=name, mode="lines+markers", **_look(i))
    for name, level in (levels or {}).items():
        line = {"dash": "dot", "width": 1.5}
        figure.add_hline(y=level, line=line, annotation_text=name, annotation_position="bottom left")
        figure.update_yaxes(autorangeoptions={"include": min(levels.values()) - 0.3})
    figure.update_xaxes(title_text="tokens seen, millions", rangemode="tozero")
    return figure.update_layout(height=440, yaxis_title=y_title, legend=_BELOW)


def gap_curves(groups: Mapping[str, tuple[Array, Float[Array, "seeds points"]]]) -> go.Figure:
    """`gaps` against tokens: thin lines for seeds, their mean, and Student's 95 % interval where several."""
    figure = go.Figure()
    for i, (name, (tokens, values)) in enumerate(groups.items()):
        x = [float(f"{t / 1e6:.4g}") for t in tokens]
        error = {}
        if len(values) > 1:
            mean, _, high = student_interval(values)
            shown = [half if j % _BAR_EVERY == _BAR_EVERY - 1 else None for j, half in enumerate(_short(high - mean))]
            error = {"error_y": {"array": shown, "thickness": 1, "width": 3}}
            _add_seeds(figure, i, name, x, values)
        figure.add_scatter(x=x, y=_short(values.mean(0)), name=name, mode="lines+markers", **_look(i), **error)
    figure.add_hline(y=0, line={"dash": "dot", "width": 1.5})
    figure.update_xaxes(title_text="tokens seen, millions", rangemode="tozero")
    return figure.update_layout(height=420, yaxis_title="loss of plain − loss, nats per token", legend=_BELOW)


def effects(rows: Mapping[str, Float[Array, " seeds"]]) -> go.Figure:
    """Changes of the perplexity in per cent, from `rows[variant]` in nats: seeds, and their mean with its interval."""
    figure, names = go.Figure(), list(rows)
    for i, values in enumerate(rows.values()):
        interval = [per_cent(end) for end in over_seeds(values)]
        error = {"array": [interval[2] - interval[0]], "arrayminus": [interval[0] - interval[1]], "thickness": 1.5}
        shown = {"error_x": error} if len(values) > 1 else {}
        seeds = [float(f"{per_cent(value):.3g}") for value in values]
        marker = {"symbol": "line-ns", "size": 12, "line": {"width": 1.5, "color": COLOURS[5]}}
        figure.add_scatter(
            x=seeds, y=[i + 0.22] * len(seeds), name="a seed", marker=marker, mode="markers", showlegend=i == 0
        )
        mean = {"symbol": MARKERS[0], "size": 10, "color": COLOURS[0]}
        figure.add_scatter(
            x=[float(f"{interval[0]:.3g}")], y=[i], name="mean", marker=mean, mode="markers", showlegend=i == 0, **shown
        )
    figure.add_vline(x=0, line={"dash": "dot", "width": 1.5})
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=names, autorange="reversed", zeroline=False)
    figure.update_xaxes(title_text="change of perplexity, %")
    return figure.update_layout(height=150 + 55 * len(names), legend=_BELOW | {"y": -0.3})


def in_context(
    finished: Mapping[str, Sequence[Stored]], k: int
) -> tuple[list[int], dict[str, tuple[Array, Array, Array]]]:
    """Numbers of examples, and the accuracies of Bayes' rule and of each variant: mean, low, high over seeds."""
    found = {name: [one.result["in_context"][f"k={k}"] for one in each] for name, each in finished.items()}
    first = next(iter(found.values()))[0]
    best = np.array(first["bayes"])
    curves = {name: student_interval(np.array([one["model"] for one in each])) for name, each in found.items()}
    return first["examples"], {"Bayes' rule": (best, best, best)} | curves


def in_context_changes(finished: Mapping[str, Sequence[Stored]], k: int) -> tuple[dict[str, Interval], Interval]:
    """Accuracy with the most examples minus without any, of each variant, and momentum's minus plain's with the most.

    Means with Student's 95 % interval over seeds, for the variants `plain` and `momentum`.
    """
    found = {
        name: np.array([one.result["in_context"][f"k={k}"]["model"] for one in each]) for name, each in finished.items()
    }
    rises = {name: over_seeds(values[:, -1] - values[:, 0]) for name, values in found.items()}
    return rises, over_seeds(found["momentum"][:, -1] - found["plain"][:, -1])


def panels(columns: Mapping[str, tuple[Sequence[int], Mapping[str, tuple]]], x_title: str, y_title: str) -> go.Figure:
    """One panel below the other, each with curves and intervals over numbers of examples, evenly spaced by rank."""
    figure = make_subplots(len(columns), 1, shared_xaxes=True, subplot_titles=list(columns), vertical_spacing=0.07)
    for row, (x, series) in enumerate(columns.values(), 1):
        for i, (name, (mean, low, high)) in enumerate(series.items()):
            error = {"array": _short(high - mean), "arrayminus": _short(mean - low), "thickness": 1, "width": 3}
            place = {"x": [rank + 0.06 * (i - 1) for rank in range(len(x))], "y": _short(mean), "error_y": error}
            shared = {"name": name, "legendgroup": name, "showlegend": row == 1, "mode": "lines+markers"}
            figure.add_scatter(**place, **shared, **_look(i), row=row, col=1)
        figure.update_yaxes(title_text=y_title, row=row, col=1)
    longest = max((x for x, _ in columns.values()), key=len)
    figure.update_xaxes(tickvals=list(range(len(longest))), ticktext=list(map(str, longest)))
    figure.update_xaxes(title_text=x_title, row=len(columns), col=1)
    return figure.update_layout(height=140 + 220 * len(columns), legend=_BELOW | {"y": -0.1})


def _add_seeds(figure: go.Figure, i: int, name: str, x: Sequence, rows: Float[Array, "seeds points"]) -> None:
    if len(rows) == 1:
        return
    for seed, row in enumerate(rows):
        line = {"color": COLOURS[i % 6], "dash": DASHES[i % 6], "width": 1}
        label = f"{name}, pair {seed + 1}"
        figure.add_scatter(x=x, y=_short(row), mode="lines", line=line, opacity=0.45, name=label, showlegend=False)


def _look(i: int) -> dict:
    return {
        "line": {"color": COLOURS[i % 6], "dash": DASHES[i % 6], "width": 2.5},
        "marker": {"symbol": MARKERS[i % 6], "size": 7},
    }


def _short(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
