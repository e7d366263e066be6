"""What every figure shares: caption, alternative text, origin, and the palette."""

import html
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from IPython.display import display

PLOTLY_MIME = "application/vnd.plotly.v1+json"
CAPTION_MIME = "application/vnd.explainer.caption+json"
STATIC_MIME = "application/vnd.explainer.static+json"
# Colour never stands alone: each series also has its own marker and dash.
MARKERS = ("circle", "square", "diamond", "triangle-up", "x", "star")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
KINDS = ("Live", "Stored", "Quoted")
_SAMPLE = "How it was measured"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
GREY = "#808080"
TRAINING, CONTEXT = 2, 3
ROLES = dict.fromkeys(
    ("two contexts", "two contexts (C)", "after the context", "of the context's change", "the change by the context",
     "in context", "ICL"), CONTEXT,
) | dict.fromkeys(
    ("two trainings", "two trainings (F)", "after the training", "of the training's change", "by fine-tuning",
     "fine-tuned", "FT"), TRAINING,
)  # fmt: skip
"""Series that look the same in all chapters: what a context does is purple, what a training does is green."""
LEGEND_ABOVE = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
"""A legend above the figure, where it may have several lines on a phone."""
LEGEND_BELOW = {"orientation": "h", "x": 0, "yanchor": "top"}
"""A legend below the figure; `y` is the height that leaves room for the title of the axis."""
LINES = tuple({"color": colour, "dash": dash} for colour, dash in zip(COLOURS, _DASHES, strict=True))
MARKS = tuple({"color": colour, "symbol": symbol} for colour, symbol in zip(COLOURS, MARKERS, strict=True))
"""The line and the marker of the first six series; the seventh looks as the first."""


def error_bars(ends: Iterable[Any], **look: Any) -> dict[str, Any]:
    """Error bars to the ends of intervals: estimates, low and high ends in three arrays; None where an end is NaN.

    A bar of no length would read as an interval, "0.3 to 0.3", in the table of the figure's numbers. Where all draws
    agree, it is one.
    """
    estimate, low, high = map(np.asarray, ends)
    array, arrayminus = (
        [float(length) if np.isfinite(length) else None for length in side]
        for side in (high - estimate, estimate - low)
    )
    return {"array": array, "arrayminus": arrayminus, **look}


def significant_digits(values: Iterable[float], digits: int = 4) -> list[float]:
    """Numbers with so many significant digits, which is what a page has to carry."""
    return [float(f"{value:.{digits}g}") for value in values]


def _of_checkpoint(name: str) -> str:
    """What a result that is stored of a checkpoint says where $EXPLAINER_MODEL asks for another; else nothing."""
    return f", computed with {name}" if name and os.environ.get("EXPLAINER_MODEL", "") not in ("", name) else ""


def badge(provenance: str, checkpoint: str = "") -> str:
    """The origin of a figure as a badge, Live, Stored or Quoted, whose details show on hover and focus.

    What is stored of another `checkpoint` than the reader's says so. `provenance` is one of these words, a colon and
    the details. Raises ValueError for any other beginning.
    """
    kind, details = re.findall(r"\A(\w*)[:.]?\s*(.*)", provenance, re.DOTALL)[0]  # every text matches
    if kind not in KINDS:
        raise ValueError(
            f"{provenance!r} does not say where numbers come from; begin it with {', '.join(KINDS)} and a colon."
        )
    more = f'<span class="xp-badge-more">{html.escape(details)}</span>' if details else ""
    of = html.escape(_of_checkpoint(checkpoint))
    return f'<span class="xp-badge xp-{kind.lower()}" tabindex="0">{kind}{of}{more}</span>'


def figcaption(provenance: str, caption: str, sample: str = "", checkpoint: str = "") -> str:
    """A caption in two parts: origin and what to see, then, smaller and folded on a phone, how it was measured."""
    below = f'<details class="xp-sample"><summary>{_SAMPLE}</summary><p>{html.escape(sample)}</p></details>'
    origin = badge(provenance, checkpoint) if provenance else ""
    return f"<figcaption>{origin} {html.escape(caption)}{below if sample else ''}</figcaption>"


@dataclass(frozen=True)
class Captioned:
    """A Plotly figure with its caption, its text alternative and where its numbers come from.

    `sample` is the second part of the caption: how many were measured, and what an interval is. `checkpoint` is that of
    stored numbers.
    """

    figure: go.Figure
    caption: str
    alt: str
    provenance: str
    sample: str = ""
    checkpoint: str = ""

    def _ipython_display_(self) -> None:
        meta = {"explainer": {name: text for name, text in vars(self).items() if name != "figure"}}
        display(go.Figure(self.figure).update_layout(meta=meta))
        other = _of_checkpoint(self.checkpoint)
        bold = other and f"<strong>Stored{html.escape(other)}.</strong> "
        below = f" <small>{html.escape(self.sample)}</small>" if self.sample else ""
        text = f"{bold}{html.escape(self.caption)}{below} <em>{html.escape(self.provenance)}</em>"
        text = f'<p class="xp-caption">{text}</p>'
        display({"text/html": text, "text/plain": self.caption, CAPTION_MIME: {}}, raw=True)


@dataclass(frozen=True)
class Drawing:
    """A diagram as inline SVG with caption and text alternative; `currentColor` lets it follow the page's colours."""

    svg: str
    caption: str
    alt: str

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        picture = self.svg.replace("<svg ", f'<svg role="img" aria-label="{html.escape(self.alt, quote=True)}" ', 1)
        body = (
            f'<figure class="xp-figure xp-svg">{picture}<figcaption>{html.escape(self.caption)}</figcaption></figure>'
        )
        return {STATIC_MIME: {"html": body}, "text/html": body, "text/plain": self.alt}


@dataclass(frozen=True)
class Table:
    """A table of results with caption and origin; head and cells are HTML, so that they may hold formulas."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str
    provenance: str
    sample: str = ""
    checkpoint: str = ""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        head = "".join(f'<th scope="col">{name}</th>' for name in self.head)
        body = "".join(
            f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
            for first, *cells in self.rows
        )
        body = body.replace("\N{NO-BREAK SPACE}[", " [")  # an interval may stand below its estimate
        caption = figcaption(self.provenance, self.caption, self.sample, self.checkpoint)
        table = (
            '<figure class="xp-table"><div class="pst-scrollable-table-container" tabindex="0"><table class="table">'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{caption}</figure>"
        )
        return {STATIC_MIME: {"html": table}, "text/html": table, "text/plain": self.caption}
