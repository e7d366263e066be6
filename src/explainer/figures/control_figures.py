"""The tables of the chapter `controls`, and its figure of random directions."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from explainer.figures.figure_base import COLOURS, GREY, LEGEND_ABOVE, significant_digits
from explainer.theory.statistics import Interval

CONTROL_NAMES: Mapping[str, str] = {
    "none": "real comparison",
    "shuffled-context": "context: shuffled",
    "flipped-context": "context: flipped",
    "foreign-context": "context: foreign",
    "nonsense-context": "context: nonsense",
    "reordered-context": "context: reordered",
    "shuffled-training": "FT: shuffled",
    "flipped-training": "FT: flipped",
    "nonsense-training": "FT: nonsense",
    "reordered-training": "FT: reordered",
    "other-training": "FT: other examples",
    "foreign-training": "FT: foreign",
    "ascent": "FT: ascent",
    "layer-causal": "FT: layer-causal",
    "layer-causal-as-long": "FT: layer-causal, as long",
    "random-direction": "FT: random",
    "untrained": "untrained model",
    "untrained-layers": "untrained layers",
    "permuted-weights": "permuted weights",
}
"""`compare.controls.CONTROLS`, with their names in figures."""


def table_rows(compared: Mapping[tuple[str, str, str], Interval]) -> list[list[str]]:
    """A row for each control of each family: `compared[family, control, measure]`, a dash where there is none."""
    measures = dict.fromkeys(measure for _, _, measure in compared)
    rows = dict.fromkeys((family, control) for family, control, _ in compared)
    return [
        [CONTROL_NAMES[control], family, *(_difference_text(compared.get((family, control, m))) for m in measures)]
        for family, control in rows
    ]


def _difference_text(difference: Interval | None) -> str:
    """A difference, its interval and its corrected p-value, on three short lines of HTML; a dash for none."""
    if difference is None:
        return "-"
    estimate, ends = f"{difference:+.3f}".split("\N{NO-BREAK SPACE}", 1)
    p = f"p = {difference.p_value:.3f}" if difference.p_value >= 0.001 else "p &lt; 0.001"
    return f"{estimate}<br><small>{ends}<br>{p}</small>".replace(" ", "&nbsp;")


def clouds_with_markers(
    values: Mapping[str, Sequence[float]], marked: Mapping[str, Mapping[str, float]], x_title: str
) -> go.Figure:
    """A grey cloud of values in each row, and `marked[name][row]` as one large marker in it."""
    rows = list(values)
    figure = go.Figure()
    for i, row in enumerate(rows):
        heights = i + 0.25 * np.sin(np.arange(len(values[row])) * 2.4)  # spread without chance: a page never changes
        cloud = {"color": GREY, "size": 4, "opacity": 0.7}
        figure.add_scatter(
            x=significant_digits(values[row]),
            y=heights.round(3).tolist(),
            mode="markers",
            marker=cloud,
            name="random updates",
            showlegend=i == 0,
            hovertemplate="%{x:.3f}",
        )
    for i, (name, of_row) in enumerate(marked.items()):
        marker = {"symbol": ("diamond", "circle")[i % 2], "size": 12, "color": COLOURS[i % 6]}
        x = significant_digits(of_row[row] for row in rows)
        figure.add_scatter(x=x, y=list(range(len(rows))), mode="markers", marker=marker, name=name)
    figure.update_yaxes(tickvals=list(range(len(rows))), ticktext=rows, range=[len(rows) - 0.5, -0.5], showgrid=False)
    figure.add_vline(x=0, line={"width": 1, "dash": "dot"})
    return figure.update_layout(height=190 + 60 * len(rows), xaxis_title=x_title, legend=LEGEND_ABOVE | {"y": 1.05})
