"""Figures and tables of the chapter `similarity`."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots
from scipy.stats import t as student_t
from scipy.stats import ttest_1samp

from explainer.analysis import reporting
from explainer.figures.base import COLOURS, MARKERS
from explainer.lab.store import Stored
from explainer.theory.statistics import Interval, RatioInterval

__all__ = ["Difference", "Repairs", "difference_over", "dots", "intervals", "mean_over", "repairs", "scatter"]

Array = np.ndarray
Values = Mapping[str, Interval | float]
"""One value for each row of a figure, with its interval where there is one."""

RESAMPLES = 500  # the interval's ends are known to about a tenth of its width
FEWEST_REPAIRS = 20  # with fewer, the interval of a share is wider than 0.4
MOST_UNDEFINED = 0.01


def intervals(finished: Mapping[str, Sequence[Stored]], measure: str) -> dict[str, Interval]:
    """A similarity for each task, with its interval over seeds and queries; tasks without the measure are left out."""
    return {
        task: reporting.similarity_interval(results, measure, n_resamples=RESAMPLES)
        for task, results in finished.items()
        if all((one.result["similarity"] or {}).get(measure) for one in results)
    }


def mean_over(values: Values) -> Interval:
    """Mean over tasks with Student's interval, mean +- t sd / sqrt(tasks): tasks are the sample, whatever their n.

    The ends are NaN for a single task.
    """
    each = np.array([_estimate(value) for value in values.values()])
    n = len(each)
    half = student_t.ppf(0.975, n - 1) * each.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
    return Interval(float(each.mean()), float(each.mean() - half), float(each.mean() + half))


class Difference(NamedTuple):
    """A mean difference over tasks, the ends of its interval, the p-value of none, and how many tasks are above 0."""

    estimate: float
    low: float
    high: float
    p_value: float
    above: int


def difference_over(a: Values, b: Values) -> Difference:
    """A - B task by task, with Student's interval and paired t-test: tasks are the sample, seeds and queries theirs.

    Tasks that only one of the two has are left out.
    """
    each = {task: _estimate(a[task]) - _estimate(b[task]) for task in a if task in b}
    p_value = float(ttest_1samp(list(each.values()), 0).pvalue) if len(each) > 1 else np.nan
    return Difference(*mean_over(each), p_value, sum(value > 0 for value in each.values()))


def _estimate(value: Interval | float) -> float:
    return value[0] if isinstance(value, tuple) else value


class Repairs(NamedTuple):
    """Rec2FTP over all seeds of a task, its chance value, the same within each right answer, and what is above that.

    The chance values weigh seeds and labels as Rec2FTP does, by the errors that FT repairs: sum_g f_g c_g / sum_g f_g
    over the groups g (seeds, or seeds and labels), f_g the repairs of FT and c_g the share of zero-shot errors that ICL
    repairs in the group. Two models that only prefer the same label more often have a Rec2FTP above `chance`, but not
    above `within_label`. The excess is recall minus `within_label`.
    """

    n_errors: int
    n_repaired: int
    recall: RatioInterval
    chance: RatioInterval
    within_label: RatioInterval
    excess: RatioInterval

    @property
    def carries(self) -> bool:
        """Whether FT repairs enough for a share: 20 errors or more, and hardly a resample without any."""
        return self.n_repaired >= FEWEST_REPAIRS and self.recall.undefined <= MOST_UNDEFINED


def repairs(finished: Sequence[Stored]) -> Repairs:
    """Count what FT and ICL repair, with intervals by nested bootstrap over seeds and queries for all shares alike.

    Answers without labels form one group. Raises StudyError where FT diverged.
    """
    by_state = [reporting.prediction_values(finished, state) for state in ("zsl", "icl", "ft")]
    labels = [
        one.result["setting"]["labels"] or [0] * len(zsl) for one, (zsl,) in zip(finished, by_state[0], strict=True)
    ]
    seeds = [
        (~zsl, ~zsl & icl, ~zsl & ft, np.array(y)) for (zsl,), (icl,), (ft,), y in zip(*by_state, labels, strict=True)
    ]
    generator = np.random.default_rng(0)
    resampled = np.array([_shares(_resample(seeds, generator)) for _ in range(RESAMPLES)])
    undefined = float(np.isnan(resampled[:, 0]).mean())
    low, high = np.nanquantile(resampled, (0.025, 0.975), axis=0) if undefined < 1 else np.full((2, 4), np.nan)
    shares = zip(_shares(seeds), low, high, strict=True)
    n_errors, n_repaired = (int(sum(seed[i].sum() for seed in seeds)) for i in (0, 2))
    return Repairs(n_errors, n_repaired, *(RatioInterval(*map(float, ends), undefined) for ends in shares))


Seed = tuple[Array, Array, Array, Array]
"""Over the queries of one seed: wrong under ZSL, repaired by ICL, repaired by FT, label."""


def _resample(seeds: Sequence[Seed], generator: np.random.Generator) -> list[Seed]:
    drawn = [seeds[g] for g in generator.integers(len(seeds), size=len(seeds))]
    rows = [generator.integers(len(seed[0]), size=len(seed[0])) for seed in drawn]
    return [tuple(array[row] for array in seed) for seed, row in zip(drawn, rows, strict=True)]


def _shares(seeds: Sequence[Seed]) -> Float[Array, " 4"]:
    """Recall, chance, chance within the label, recall minus the latter; NaN where FT repairs nothing."""
    both, chance, within_label = (sum(counts) for counts in zip(*(_counts(*seed) for seed in seeds), strict=True))
    n_ft = sum(by_ft.sum() for _, _, by_ft, _ in seeds)
    return np.array([both, chance, within_label, both - within_label]) / n_ft if n_ft else np.full(4, np.nan)


def _counts(wrong: Array, by_icl: Array, by_ft: Array, labels: Array) -> tuple[float, float, float]:
    """Common repairs, and how many there would be if ICL repaired any error, or any of a label, at random."""
    groups = [wrong & (labels == y) for y in np.unique(labels)]
    chance, *of_labels = (by_ft[g].sum() * by_icl[g].mean() if g.any() else 0.0 for g in (wrong, *groups))
    return float((by_icl & by_ft).sum()), chance, sum(of_labels)


def dots(
    measured: Mapping[str, Values],
    floors: Mapping[str, Values],
    quoted: Mapping[str, Values],
    x_title: str,
) -> go.Figure:
    """A row for each task: what was measured (filled), its floors (grey), and what a paper reports (open, red).

    Series without a value are left out.
    """
    groups = ((measured, _filled), (floors, _grey), (quoted, _open))
    rows = list(dict.fromkeys(row for group, _ in groups for values in group.values() for row in values))
    styles = [
        (name, values, style(i)) for group, style in groups for i, (name, values) in enumerate(group.items()) if values
    ]
    figure, n = go.Figure(), len(styles)
    for i, (name, values, marker) in enumerate(styles):
        below = 0.72 * ((i + 0.5) / n - 0.5)
        ends = np.array([v[:3] if isinstance(v, tuple) else (v, v, v) for v in values.values()])
        figure.add_scatter(
            x=np.round(ends[:, 0], 4).tolist(),
            y=[rows.index(row) + below for row in values],
            name=name,
            customdata=list(values),
            hovertemplate="%{customdata}: %{x:.3f}",
            mode="markers",
            marker=marker,
            error_x=_bars(ends, marker["color"]) if np.any(ends[:, 2] > ends[:, 1]) else None,
        )
    figure.add_vline(x=0, line={"width": 1, "dash": "dot"})
    for row in range(1, len(rows)):
        figure.add_hline(y=row - 0.5, line={"width": 1, "color": "rgba(128, 128, 128, 0.25)"})
    ticks = {"tickvals": list(range(len(rows))), "ticktext": rows, "range": [len(rows) - 0.5, -0.5], "showgrid": False}
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal"}
    height = 130 + 13 * n + len(rows) * max(34, 12 * n)
    return figure.update_layout(height=height, xaxis_title=x_title, yaxis=ticks, legend=legend)


def _bars(ends: Float[Array, "rows 3"], colour: str) -> dict:
    value, low, high = np.nan_to_num(np.round(ends, 4)).T
    style = {"thickness": 1.2, "width": 3, "color": colour}
    return {"array": (high - value).tolist(), "arrayminus": (value - low).tolist()} | style


def _filled(i: int) -> dict:
    return {"symbol": MARKERS[i], "color": COLOURS[2 * i], "size": 10}


def _grey(i: int) -> dict:
    return {
        "symbol": ("line-ns", "x-thin", "cross-thin", "asterisk")[i],
        "color": "#808080",
        "size": 9,
        "line": {"width": 2, "color": "#808080"},
    }


def _open(i: int) -> dict:
    return {"symbol": f"{MARKERS[i + 1]}-open", "color": COLOURS[1], "size": 9, "line": {"width": 2}}


def scatter(
    panels: Mapping[str, tuple[Float[Array, " n"], Float[Array, " n"]]],
    sizes: Float[Array, " n"],
    x_title: str,
    y_title: str,
) -> go.Figure:
    """Panels (x, y) of the same n things, each drawn as large as it is; axes are ranks from 1, smallest first."""
    figure = make_subplots(rows=len(panels), cols=1, subplot_titles=list(panels), vertical_spacing=0.16)
    for row, (name, pair) in enumerate(panels.items(), 1):
        x, y = ((np.argsort(np.argsort(values)) + 1).tolist() for values in pair)
        marker = {
            "size": (5 + 20 * np.asarray(sizes) / max(sizes)).round(1).tolist(),
            "color": COLOURS[0],
            "opacity": 0.6,
        }
        text = [f"{size} tokens" for size in np.asarray(sizes).tolist()]
        figure.add_trace(go.Scatter(x=x, y=y, name=name, mode="markers", marker=marker, hovertext=text), row, 1)
        figure.update_yaxes(title_text=y_title, row=row, col=1)
    figure.update_xaxes(title_text=x_title, row=len(panels), col=1)
    return figure.update_layout(height=320 * len(panels), showlegend=False)
