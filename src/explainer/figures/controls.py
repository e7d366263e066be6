"""The figure with demonstrations of the chapter `controls`, and the cells of its tables."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from explainer.analysis.controls import NAMES
from explainer.figures.forms import curve_panels
from explainer.theory.statistics import Interval

_GAP = Interval(np.nan, np.nan, np.nan)


def with_k(panels: Mapping[str, Mapping[str, Mapping[str, Mapping[int, Interval]]]]) -> go.Figure:
    """Measures against the number of demonstrations, task beside task: `panels[title][series][task][k]`.

    One panel below the other; within each, one short line for each task and series.
    """
    series = [each for panel in panels.values() for each in panel.values()]
    tasks = list(dict.fromkeys(task for each in series for task in each))
    ks = sorted({k for each in series for at in each.values() for k in at})
    places = [(task, k) for task in tasks for k in (*ks, None)][:-1]
    lines = {
        title: {
            name: {i: each.get(task, {}).get(k, _GAP) for i, (task, k) in enumerate(places)}
            for name, each in panel.items()
        }
        for title, panel in panels.items()
    }
    figure = curve_panels(lines, "demonstrations k", by_rank=True)
    figure.update_traces(customdata=[f"{task}, k = {k}" for task, k in places], hovertemplate="%{customdata}: %{y:.3f}")
    ticks = {i: str(k) for i, (_, k) in enumerate(places) if k is not None}
    figure.update_xaxes(
        tickvals=list(ticks), ticktext=list(ticks.values()), tickangle=0, showgrid=False, zeroline=False
    )
    figure.update_annotations(x=0, xanchor="left", font_size=13)
    for i, task in enumerate(tasks):
        place = {"x": i * (len(ks) + 1) + (len(ks) - 1) / 2, "y": 1, "yref": "y domain", "yanchor": "bottom"}
        figure.add_annotation(text=f"<b>{task}</b>", showarrow=False, font_size=12, yshift=22, **place)
    above_the_tasks = figure.layout.legend.y + 24 / figure.layout.height
    return figure.update_layout(legend_y=above_the_tasks)


def table_rows(compared: Mapping[tuple[str, str, str], Interval]) -> list[list[str]]:
    """A row for each control of each family: `compared[family, control, measure]`, a dash where there is none."""
    measures = dict.fromkeys(measure for _, _, measure in compared)
    rows = dict.fromkeys((family, control) for family, control, _ in compared)
    return [
        [NAMES[control], family, *(difference_text(compared.get((family, control, m))) for m in measures)]
        for family, control in rows
    ]


def difference_text(difference: Interval | None) -> str:
    """A difference, its interval and its corrected p-value, on three short lines of HTML; a dash for none."""
    if difference is None:
        return "-"
    estimate, ends = f"{difference:+.3f}".split("\N{NO-BREAK SPACE}", 1)
    p = f"p = {difference.p_value:.3f}" if difference.p_value >= 0.001 else "p &lt; 0.001"
    return f"{estimate}<br><small>{ends}<br>{p}</small>".replace(" ", "&nbsp;")
