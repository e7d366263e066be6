"""The picture of the chapter `verdict`, for the checkpoint of the book and for others."""

import html
from collections.abc import Mapping

import plotly.graph_objects as go

from explainer.figures.base import LEGEND_ABOVE
from explainer.figures.forms import dot_plot
from explainer.theory.statistics import Interval

_SHARE = "share of the way"
_CAPTION = (
    "Each row is a question to a checkpoint: 0 is its floor and 1 its ceiling, which the page All claims explains. "
    "Points: means over tasks; bars: 95 % (Student over seeds, none for a single seed)."
)

_Ways = Mapping[str, Mapping[str, Mapping[str, Interval]]]
"""What `results.floors.verdict` gives: by checkpoint and row, floor, measured, ceiling and share of the way."""


def normalised_positions(found: _Ways) -> go.Figure:
    """How far from floor, 0, to ceiling, 1: a row for each question, a lane for each checkpoint."""
    shares = {html.escape(name): {row: its[_SHARE] for row, its in rows.items()} for name, rows in found.items()}
    drawn = dot_plot(shares, "0: floor, 1: ceiling")
    drawn.add_vline(x=1, line={"width": 1, "dash": "dot"})
    return drawn.update_layout(showlegend=len(shares) > 1, legend=LEGEND_ABOVE)


def page(found: _Ways) -> str:
    """A web page that needs no other file: the picture and its numbers."""
    columns = next((list(its) for rows in found.values() for its in rows.values()), [])
    head = "".join(f'<th scope="col">{name}</th>' for name in ("model", "row", *columns))
    body = "".join(
        f'<tr><td>{html.escape(name)}</td><th scope="row">{html.escape(row)}</th>'
        f"{''.join(f'<td>{one:.2f}</td>' for one in its.values())}</tr>"
        for name, rows in found.items()
        for row, its in rows.items()
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>The verdict, redrawn</title></head>'
        f"<body><h1>How far from floor to ceiling?</h1>{normalised_positions(found).to_html(full_html=False)}"
        f"<p>{_CAPTION}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></body></html>"
    )
