"""Figures and the table of the chapter `controls`."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from explainer.analysis import reporting
from explainer.analysis.reporting import Comparison, by
from explainer.figures.base import COLOURS, DASHES, MARKERS
from explainer.lab.store import Stored
from explainer.theory import statistics
from explainer.theory.statistics import Interval, PairedDifference

MEASURES: Mapping[str, str] = {
    "sim_aou": "SimAOU",
    "sim_aou_raw": "not normalised",
    "sim_aou_tangent": "tangent",
    "sim_aou_residual": "residual",
    "sim_am_delta": "SimAMΔ",
    "update_cosine": "cos(ΔW, ΔW)",
}
"""Measures of the stored results, with their names in the figures."""

NAMES: Mapping[str, str] = {
    "none": "real comparison",
    "shuffled-context": "context: shuffled",
    "flipped-context": "context: flipped",
    "foreign-context": "context: foreign",
    "reordered-context": "context: reordered",
    "shuffled-training": "FT: shuffled",
    "flipped-training": "FT: flipped",
    "reordered-training": "FT: reordered",
    "other-training": "FT: other examples",
    "foreign-training": "FT: foreign",
    "ascent": "FT: ascent",
    "layer-causal": "FT: layer-causal",
    "random-direction": "FT: random",
    "untrained": "untrained model",
    "untrained-layers": "untrained layers",
    "permuted-weights": "permuted weights",
}
"""The controls of `explainer.experiments.controls`, with their names in the figures."""

Values = Sequence[np.ndarray]
"""One array of values per query for each result, NaN where a value does not exist."""


# Intervals of many means at once.


class Resamples:
    """Draws of the nested bootstrap for groups of given sizes, shared by everything that is compared on them.

    The same scheme as `explainer.statistics.bootstrap_interval` (groups with replacement, then examples within each),
    for means only: a resampled mean is then a product with the counts of the draw, and hundreds of comparisons take
    seconds. For the same groups, seed and number the draws are always the same.
    """

    def __init__(self, sizes: Sequence[int], n_resamples: int = 2000, seed: int = 0):
        """Draw for groups of these sizes."""
        generator = np.random.default_rng(seed)
        owners = generator.integers(len(sizes), size=(n_resamples, len(sizes)))
        self.n_resamples, self.sizes = n_resamples, tuple(sizes)
        self._rows = [np.nonzero(owners == group)[0] for group in range(len(sizes))]
        self._counts = [
            generator.multinomial(n, np.full(n, 1 / n), size=len(rows)).astype(np.float32)
            for n, rows in zip(sizes, self._rows, strict=True)
        ]

    def means(self, values: Values) -> np.ndarray:
        """Mean over groups of the mean over examples, without NaN, in every resample: (n_resamples,)."""
        total = np.zeros(self.n_resamples)
        for rows, counts, one in zip(self._rows, self._counts, values, strict=True):
            known = ~np.isnan(one)
            drawn = len(one) if known.all() else counts @ known.astype(np.float32)
            with np.errstate(invalid="ignore"):
                mean = (counts @ np.where(known, one, 0).astype(np.float32)) / drawn
            total += np.bincount(rows, mean, minlength=self.n_resamples)
        return total / len(self.sizes)


_resamples = lru_cache(maxsize=4)(Resamples)  # the draws of one size serve a whole figure


def mean_of(values: Values) -> float:
    """Mean over groups of the mean over examples."""
    return float(np.mean([np.nanmean(one) for one in values]))


def mean_interval(values: Values) -> Interval:
    """`mean_of` with its 95 % interval over groups and examples."""
    resampled = _resamples(tuple(len(one) for one in values)).means(values)
    return Interval(mean_of(values), *map(float, np.nanquantile(resampled, (0.025, 0.975))))


def mean_differences(pairs: Mapping[Any, tuple[Values, Values]], n_resamples: int = 0) -> dict[Any, Comparison]:
    """What `explainer.reporting.comparisons` gives for means, fast enough for hundreds of them in a chapter."""
    n_resamples = n_resamples or max(2000, 100 * len(pairs))
    differences = {}
    for name, (a, b) in pairs.items():
        draw = _resamples(tuple(len(one) for one in a), n_resamples)
        differences[name] = _difference(mean_of(a) - mean_of(b), draw.means(a) - draw.means(b))
    adjusted = statistics.holm(np.array([difference.p_value for difference in differences.values()]))
    return {name: Comparison(d, float(p)) for (name, d), p in zip(differences.items(), adjusted, strict=True)}


def _difference(estimate: float, resampled: np.ndarray) -> PairedDifference:
    defined = resampled[~np.isnan(resampled)]
    tails = (1 + (defined <= 0).sum(), 1 + (defined >= 0).sum())
    low, high = np.quantile(defined, (0.025, 0.975))
    return PairedDifference(estimate, float(low), float(high), float(min(1, 2 * min(tails) / (1 + len(defined)))))


# From stored results to values.


def measured(finished: Sequence[Stored], measure: str) -> list[Stored]:
    """Those of the results that have the measure: one whose FT diverged has none."""
    return [one for one in finished if (one.result["similarity"] or {}).get(measure)]


def values_of(finished: Sequence[Stored], measure: str) -> Values:
    """A similarity of each query, or "icl" or "ft" for whether its answer is right."""
    if measure in ("zsl", "icl", "ft"):
        return [values.astype(float) for (values,) in reporting.prediction_values(finished, measure)]
    return [values for (values,) in reporting.similarity_values(finished, measure)]


def interval_of(finished: Sequence[Stored], measure: str) -> Interval:
    """Mean and interval of `values_of` the results that have the measure."""
    kept = finished if measure in ("zsl", "icl", "ft") else measured(finished, measure)
    return mean_interval(values_of(kept, measure))


def matched(a: Sequence[Stored], b: Sequence[Stored], measure: str, over: str = "control") -> tuple[Values, Values]:
    """The values of the results A and B that saw the same queries: their cells differ in `over` only.

    A result without a partner is left out.
    """
    sides = [a, b] if measure in ("zsl", "icl", "ft") else [measured(side, measure) for side in (a, b)]
    a_by, b_by = ({_except(over, one): one for one in side} for side in sides)
    common = [key for key in a_by if key in b_by]
    return values_of([a_by[key] for key in common], measure), values_of([b_by[key] for key in common], measure)


def _except(over: str, stored: Stored) -> tuple:
    return tuple(sorted((key, value) for key, value in stored.identity["cell"].items() if key != over))


def against_real(
    families: Mapping[str, Sequence[Stored]], measures: Sequence[str] = tuple(MEASURES)
) -> dict[tuple[str, str, str], Comparison]:
    """Control minus the real comparison for each (family, control, measure), all corrected together.

    A family is a list of results with several controls, "none" among them; each (task, seed) is one group of the
    bootstrap.
    """
    pairs = {}
    for family, finished in families.items():
        real, *others = _real_first(by(finished, "control"))
        for control, results in others:
            for measure in measures:
                a, b = matched(results, real[1], measure)
                if a:
                    pairs[family, control, measure] = (a, b)
    return mean_differences(pairs)


def _real_first(controls: Mapping[str, list[Stored]]) -> list[tuple[str, list[Stored]]]:
    return [("none", controls["none"]), *((name, each) for name, each in controls.items() if name != "none")]


def table_rows(compared: Mapping[tuple[str, str, str], Comparison]) -> list[list[str]]:
    """A row for each control of each family: difference with interval, and the corrected p-value below it."""
    measures = list(dict.fromkeys(measure for _, _, measure in compared))
    rows = dict.fromkeys((family, control) for family, control, _ in compared)
    return [
        [NAMES[control], family, *(_cell(compared.get((family, control, measure))) for measure in measures)]
        for family, control in rows
    ]


def _cell(comparison: Comparison | None) -> str:
    return "-" if comparison is None else difference_text(comparison)


def difference_text(comparison: Comparison) -> str:
    """A difference, its interval and its corrected p-value, on three short lines of HTML."""
    (estimate, low, high, _), p = comparison
    p_text = f"p = {p:.3f}" if p >= 0.001 else "p &lt; 0.001"
    small = f"[{low:+.3f}, {high:+.3f}]<br>{p_text}".replace(" ", "&nbsp;")
    return f"{estimate:+.3f}<br><small>{small}</small>".replace("-", "\u2212")


# Figures.


def levels(
    panels: Mapping[str, Mapping[str, Mapping[str, Interval]]],
    floors: Mapping[str, Mapping[str, Mapping[str, float]]] | None = None,
    quoted: Mapping[str, Mapping[str, Mapping[str, float]]] | None = None,
) -> go.Figure:
    """Means with intervals side by side: `panels[title][series][row]`, one row of markers for each row name.

    Two panels stand abreast, further ones below them.

    `floors` are thin vertical ticks beside the markers of the same panel, series and row; `quoted` are open markers.
    """
    floors, quoted = floors or {}, quoted or {}
    rows = list(dict.fromkeys(row for panel in panels.values() for each in panel.values() for row in each))
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    columns, lines = min(2, len(panels)), -(-len(panels) // 2)
    height = max(26, 9 * len(names)) * len(rows)
    figure = make_subplots(
        lines,
        columns,
        shared_yaxes=True,
        subplot_titles=list(panels),
        horizontal_spacing=0.03,
        vertical_spacing=0 if lines == 1 else 60 / (lines * height + 60),
    )
    for k, (title, panel) in enumerate(panels.items()):
        place = {"row": k // columns + 1, "col": k % columns + 1}
        for name, intervals in panel.items():
            i = names.index(name)
            y = {row: rows.index(row) + 0.7 * ((i + 0.5) / len(names) - 0.5) for row in rows}
            style = {"color": COLOURS[i % 6], "symbol": MARKERS[i % 6]}
            figure.add_trace(_points(name, intervals, y, style, first=k == 0), **place)
            if marks := floors.get(title, {}).get(name):
                figure.add_trace(
                    _marks("noise value", marks, y, {"symbol": "line-ns-open", "size": 11}, style), **place
                )
            if marks := quoted.get(title, {}).get(name):
                open_ = {"symbol": f"{style['symbol']}-open", "size": 9}
                figure.add_trace(_marks(f"{name} (quoted)", marks, y, open_, style), **place)
    figure.update_yaxes(tickvals=list(range(len(rows))), ticktext=rows, range=[len(rows) - 0.4, -0.6], showgrid=False)
    figure.update_xaxes(zeroline=True, zerolinewidth=2, tickangle=0, nticks=4)
    figure.update_annotations(font_size=13)
    for i in range(1, len(rows)):
        figure.add_hline(y=i - 0.5, line={"width": 1, "color": "rgba(128,128,128,0.25)"})
    inner = lines * height + 60 * (lines - 1)
    legend = {"orientation": "h", "y": -30 / inner, "yanchor": "top"}
    return figure.update_layout(height=inner + 130, legend=legend, margin={"t": 40, "r": 10, "b": 90, "l": 10})


def _points(
    name: str, intervals: Mapping[str, Interval], y: Mapping[str, float], style: Mapping[str, str], first: bool
) -> go.Scatter:
    estimate, low, high = (np.array(part) for part in zip(*intervals.values(), strict=True))
    return go.Scatter(
        x=estimate.tolist(),
        y=[y[row] for row in intervals],
        customdata=list(intervals),
        hovertemplate="%{customdata}: %{x:.3f}",
        name=name,
        legendgroup=name,
        showlegend=first,
        mode="markers",
        marker={**style, "size": 7},
        error_x={"array": (high - estimate).tolist(), "arrayminus": (estimate - low).tolist(), "thickness": 1},
    )


def _marks(
    name: str, values: Mapping[str, float], y: Mapping[str, float], marker: Mapping, style: Mapping[str, str]
) -> go.Scatter:
    return go.Scatter(
        x=list(values.values()),
        y=[y[row] for row in values],
        customdata=list(values),
        hovertemplate="%{customdata}: %{x:.3f}",
        name=name,
        showlegend=False,
        mode="markers",
        marker={**marker, "color": style["color"], "line": {"width": 2, "color": style["color"]}},
    )


def rates(panels: Mapping[str, Mapping[str, Mapping[float, Interval]]]) -> go.Figure:
    """Lines with intervals against the learning rate, `panels[title][series][rate]`, one panel beside the other."""
    figure = make_subplots(1, len(panels), subplot_titles=list(panels), horizontal_spacing=0.08)
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    for column, panel in enumerate(panels.values(), 1):
        for name, at in panel.items():
            rates_ = sorted(at)
            trace = _line(name, rates_, [at[rate] for rate in rates_], names.index(name), first=column == 1)
            figure.add_trace(trace, row=1, col=column)
    figure.update_xaxes(type="log", title="learning rate", dtick=1, exponentformat="power")
    figure.update_yaxes(zeroline=True, zerolinewidth=2)
    return figure.update_layout(height=380, legend={"orientation": "h", "y": -0.25}, margin={"r": 10, "l": 40})


def _line(name: str, x: Sequence[float], intervals: Sequence[Interval], i: int, *, first: bool) -> go.Scatter:
    estimate, low, high = (np.array(part) for part in zip(*intervals, strict=True))
    return go.Scatter(
        x=list(x),
        y=estimate.tolist(),
        name=name,
        legendgroup=name,
        showlegend=first,
        mode="lines+markers",
        line={"dash": DASHES[i % 6], "color": COLOURS[i % 6]},
        marker={"symbol": MARKERS[i % 6], "size": 7},
        error_y={
            "array": (high - estimate).tolist(),
            "arrayminus": (estimate - low).tolist(),
            "thickness": 1,
            "width": 3,
        },
    )


def with_k(panels: Mapping[str, Mapping[str, Mapping[str, Mapping[int, Interval]]]]) -> go.Figure:
    """Measures against the number of demonstrations, task beside task: `panels[title][series][task][k]`.

    One panel below the other; within each, one short line for each task and series.
    """
    series = next(iter(panels.values()))
    tasks = list(next(iter(series.values())))
    ks = sorted({k for each in series.values() for at in each.values() for k in at})
    start = {task: i * (len(ks) + 1) for i, task in enumerate(tasks)}
    figure = make_subplots(len(panels), 1, shared_xaxes=True, subplot_titles=list(panels), vertical_spacing=0.06)
    for row, panel in enumerate(panels.values(), 1):
        for i, (name, each) in enumerate(panel.items()):
            for task, at in each.items():
                x = [start[task] + ks.index(k) for k in sorted(at)]
                first = row == 1 and task == tasks[0]
                trace = _line(name, x, [at[k] for k in sorted(at)], i, first=first)
                trace.update(
                    customdata=[f"{task}, k = {k}" for k in sorted(at)], hovertemplate="%{customdata}: %{y:.3f}"
                )
                figure.add_trace(trace, row=row, col=1)
    middle = (len(ks) - 1) / 2
    ticks = [(start[task] + j, str(k)) for task in tasks for j, k in enumerate(ks)]
    figure.update_xaxes(
        tickvals=[x for x, _ in ticks], ticktext=[k for _, k in ticks], tickangle=0, showgrid=False, tickfont_size=11
    )
    figure.update_yaxes(zeroline=True, zerolinewidth=2)
    figure.update_xaxes(title="demonstrations k", row=len(panels), col=1)
    figure.update_annotations(x=0, xanchor="left", font_size=13)
    for task in tasks:
        place = {"x": start[task] + middle, "y": 1, "yref": "y domain", "yanchor": "bottom", "yshift": 22}
        figure.add_annotation(text=f"<b>{task}</b>", showarrow=False, font_size=12, **place)
    return figure.update_layout(
        height=90 + 160 * len(panels), legend={"orientation": "h", "y": -0.1}, margin={"t": 80, "r": 10, "l": 45}
    )
