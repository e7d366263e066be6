"""The page of the verdict for a reader's models, beside the checkpoint of the book."""

import html
from collections.abc import Iterable, Mapping, Sequence

import plotly.graph_objects as go

from explainer.figures.figure_base import TEMPLATE
from explainer.figures.figure_forms import dot_plot
from explainer.results import scorecard, verdict
from explainer.results.verdict import Row, Rows

COLUMNS = ("floor", "measured", "ceiling", "share of the way", "draws")
_CAPTION = (
    "Each row is a question to a model: 0 is its floor and 1 its ceiling. Points: means over tasks; bars: 95 % "
    "(Student over seeds). A row without a point is told below."
)


_STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:75rem;margin:auto;padding:0 1rem}li{overflow-wrap:anywhere}"
    "table,body>div{display:block;overflow-x:auto}.plotly-graph-div{min-width:40rem}"
    "th,td{padding:.2rem .5rem;min-width:7rem;text-align:left;vertical-align:top}"
)
"""A phone scrolls a table or a figure, not the page."""


def row_positions(found: Mapping[str, Rows]) -> go.Figure:
    """How far from floor, 0, to ceiling, 1: a row for each question, a lane for each checkpoint."""
    shares = {html.escape(name): {row: one.share for row, one in rows.items()} for name, rows in found.items()}
    drawn = dot_plot(shares, "share of the way", line={"floor": 0, "ceiling": 1})
    return drawn.update_layout(showlegend=len(shares) > 1, template=TEMPLATE)


def table_cells(one: Row) -> list[str]:
    """The numbers of a row as they are printed, in the order of COLUMNS."""
    return [*(f"{each:.2f}" for each in one[:4]), str(one.draws)]


def verdict_page(
    found: Mapping[str, Rows],
    ten: Mapping[str, Rows],
    cards: scorecard.Cards,
    lacking: Mapping[str, Sequence[str]],
    told: Sequence[str] = (),
) -> str:
    """A web page that needs no other file: answers and their sentences, what to run, ten finer rows, the scorecard.

    `told` are sentences below the ten rows.
    """
    body = [f"<h1>How far from floor to ceiling?</h1>{row_positions(found).to_html(full_html=False)}<p>{_CAPTION}</p>"]
    for question in verdict.FOLDERS:
        its = {name: rows[question] for name, rows in found.items() if question in rows}
        body.append(f"<h2>{question}</h2>")
        body.append(_table(("model", *COLUMNS), ([name, *table_cells(one)] for name, one in its.items())))
        body.append(_list(f"{name}: {one.sentence.removeprefix(f'{name}: ')}" for name, one in its.items()))
    if commands := [f"{name}: {line}" for name, lines in lacking.items() for line in lines]:
        body.append(f"<h2>To have the others</h2>{_list(commands)}")
    drawn = row_positions(ten).to_html(full_html=False, include_plotlyjs=False)
    body.append(f"<h2>Ten finer rows, which the page All claims explains</h2>{drawn}")
    rows = ([name, row, *table_cells(one)[:4]] for name, its in ten.items() for row, one in its.items())
    body.append(_table(("model", "row", *COLUMNS[:4]), rows) + _list(told))
    claims = next(iter(cards.values())).claims
    entries = ([c, scorecard.quoted_values(c), *(": ".join(card.claims[c]) for card in cards.values())] for c in claims)
    notes = _list(f"{name}: {card.note}." for name, card in cards.items())
    table = _table(("claim", "the paper", *cards), entries)
    body.append(f"<h2>The paper's ten claims, under its protocol</h2>{notes}{table}")
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>The verdict, redrawn</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body>{''.join(body)}</body></html>"
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    names = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in head)
    lines = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody><tr>{'</tr><tr>'.join(lines)}</tr></tbody></table>"


def _list(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>"
