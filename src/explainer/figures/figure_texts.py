"""The words around the figures: captions, text alternatives, origins, from one TOML file for each chapter; questions.

A text is a format string; the numbers in it are given where the figure is drawn, so that a translator needs these
files only, and no number is ever typed into a sentence.
"""

import html
import os
import re
import string
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from time import perf_counter
from typing import Any
from zlib import crc32

import plotly.graph_objects as go
from IPython import get_ipython
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from explainer.data.assets import CHECKPOINT
from explainer.data.numbers import in_powers
from explainer.figures.figure_base import TEMPLATE
from explainer.palette import PALETTE

PLOTLY_MIME = "application/vnd.plotly.v1+json"
CAPTION_MIME = "application/vnd.explainer.caption+json"
STATIC_MIME = "application/vnd.explainer.static+json"
KINDS = ("Live", "Stored", "Quoted")
_SAMPLE = "How it was measured"
_PHONE = 342  # pixels that a drawing has on a phone of 390; one whose smallest letters have 11 there is not scrolled


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


def figcaption(provenance: str, caption: str, sample: str = "", checkpoint: str = "", title: str = "") -> str:
    """A caption in two parts: origin, title, what to see; then, smaller and folded on a phone, how it was measured."""
    below = f'<details class="xp-sample"><summary>{_SAMPLE}</summary><p>{html.escape(sample)}</p></details>'
    origin = badge(provenance, checkpoint) if provenance else ""
    bold = f'<strong class="xp-title">{html.escape(title)}</strong> ' if title else ""
    return f"<figcaption>{origin} {bold}{html.escape(caption)}{below if sample else ''}</figcaption>"


def figure_tag(name: str, classes: str) -> str:
    """The opening tag of a figure, whose address on its page is its name: `#fig-<name>`."""
    return f'<figure class="{classes}"' + (f' id="fig-{name}">' if name else ">")


@dataclass(frozen=True)
class _Captioned:
    """A Plotly figure with its title, its caption, its text alternative and where its numbers come from.

    `sample` is the second part of the caption: how many were measured, and what an interval is. `checkpoint` is that of
    stored numbers.
    """

    figure: go.Figure
    title: str
    caption: str
    alt: str
    provenance: str
    sample: str = ""
    checkpoint: str = ""
    name: str = ""

    def _ipython_display_(self) -> None:
        meta = {"explainer": {name: text for name, text in vars(self).items() if name != "figure"}}
        display(go.Figure(self.figure).update_layout(meta=meta, template=TEMPLATE))
        other = _of_checkpoint(self.checkpoint)
        stored = other and f"<strong>Stored{html.escape(other)}.</strong> "
        below = f" <small>{html.escape(self.sample)}</small>" if self.sample else ""
        said = f"<strong>{html.escape(self.title)}</strong> {html.escape(self.caption)}"
        text = f"{stored}{said}{below} <em>{html.escape(self.provenance)}</em>"
        text = f'<p class="xp-caption">{text}</p>'
        display({"text/html": text, "text/plain": f"{self.title} {self.caption}", CAPTION_MIME: {}}, raw=True)


@dataclass(frozen=True)
class _Drawing:
    """A diagram as inline SVG with caption and text alternative; `currentColor` lets it follow the page's colours."""

    svg: str
    caption: str
    alt: str
    name: str = ""

    @property
    def least(self) -> int:
        """The width, in pixels, at which the smallest letters have 11."""
        (width,) = re.findall(r'<svg viewBox="\S+ \S+ (\S+)', self.svg)
        smallest = min(map(float, re.findall(r'font-size[:=]"?\s*([\d.]+)', self.svg)))
        return round(11 / smallest * float(width))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        light = re.sub(r"var\(--xp-(\w+)", lambda role: f"{role[0]}, {PALETTE[role[1]][0]}", self.svg)  # for notebooks
        picture = light.replace("<svg ", f'<svg role="img" aria-label="{html.escape(self.alt, quote=True)}" ', 1)
        if self.least > _PHONE:
            picture = picture.replace("<svg ", f'<svg style="min-width:{self.least}px" ', 1)
            picture = f'<div class="pst-scrollable-table-container" tabindex="0">{picture}</div>'
        tag = figure_tag(self.name, "xp-figure xp-svg")
        body = f"{tag}{picture}<figcaption>{html.escape(self.caption)}</figcaption></figure>"
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
    name: str = ""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        head = "".join(f'<th scope="col">{name}</th>' for name in self.head)
        body = "".join(
            f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
            for first, *cells in zip(*map(_aligned, zip(*self.rows, strict=True)), strict=True)
        )
        body = body.replace("\N{NO-BREAK SPACE}[", " [")  # an interval may stand below its estimate
        caption = figcaption(self.provenance, self.caption, self.sample, self.checkpoint)
        table = (
            f'{figure_tag(self.name, "xp-table")}<div class="pst-scrollable-table-container" tabindex="0">'
            '<table class="table">'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{caption}</figure>"
        )
        return {STATIC_MIME: {"html": table}, "text/html": table, "text/plain": self.caption}


_NUMBER = re.compile(r"^[-+−]?\d[\d.,]*(?=$|\s?[\[%±×][^A-Za-z]*$)")


def _aligned(column: Sequence[str]) -> Sequence[str]:
    """Cells of a column whose numbers, also those of an interval or a unit, end below each other."""
    lengths = {len(number[0]) for cell in column if (number := _NUMBER.match(cell))}
    if len(lengths) < 2:
        return column
    span = f'<span class="xp-aligned" style="min-width:{max(lengths)}ch">'
    return [_NUMBER.sub(rf"{span}\g<0></span>", cell) for cell in column]


class _Formatter(string.Formatter):
    """Formats what is in a mapping or a list one by one: `{errors:.2f}` becomes "GD 0.10, GD++ 0.02"."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, Mapping):
            nested = any(isinstance(each, Mapping | list | tuple) for each in value.values())
            return ("; " if nested else ", ").join(
                f"{name} {self.format_field(each, format_spec)}" for name, each in value.items()
            )
        if type(value) in (list, tuple):
            return ", ".join(self.format_field(each, format_spec) for each in value)
        return in_powers(re.sub(r"^-(0[.0]*)$", r"\1", super().format_field(value, format_spec)))


@cache
def _texts(chapter: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads((resources.files("explainer.figures") / "words" / f"{chapter}.toml").read_text("utf-8"))


def _filled(text: str, values: Mapping[str, Any]) -> str:
    return _Formatter().vformat(" ".join(text.split()), (), values)


class Texts:
    """The texts of one chapter, put around what it draws.

    `texts = Texts("comparison")`, then `texts.figure("overview", drawn, n=6, provenance=origin)`: `title`, a sentence
    that says what one sees, `caption`, `alt` and `provenance`, where the numbers come from, are those below
    `[overview]` in `words/comparison.toml`, with {n} filled in, and so is `sample`, the second part of a caption, if
    there is one: how many were measured, and what an interval is. Without a `provenance` there, the given one is used,
    or several of a tuple in a row. Without either the figure is live, took what the cells since the last figure took,
    and says the `facts` of the file, like seeds. Raises KeyError for a figure without texts and for a value that a text
    needs and does not get.
    """

    def __init__(self, chapter: str):
        """Of the notebook with this name, whose cells are timed from here on; outside a notebook, nothing is."""
        self._chapter, shell = chapter, get_ipython()
        self._seconds = _clock(shell).read if shell else lambda: 0.0

    def figure(self, name: str, drawn: go.Figure, **values: Any) -> _Captioned:
        """A Plotly figure with its title, its caption, its text alternative and its origin."""
        texts = {key: self._text(name, key, values) for key in ("title", "caption", "alt", "sample")}
        return _Captioned(drawn, **texts, **self._origin(name, values), name=name)

    def drawing(self, name: str, svg: str) -> _Drawing:
        """A diagram with its caption and its text alternative."""
        return _Drawing(svg, *(self._text(name, key, {}) for key in ("caption", "alt")), name=name)

    def table(
        self,
        name: str,
        head: Sequence[str] | None = None,
        rows: Sequence[Sequence[str]] | None = None,
        **values: Any,
    ) -> Table:
        """A table with its caption and its origin; head and rows are those of the file where none are given."""
        own = _texts(self._chapter)[name]
        rows = [[_filled(cell, values) for cell in row] for row in own["rows"]] if rows is None else rows
        texts = {key: self._text(name, key, values) for key in ("caption", "sample")}
        return Table(head or own["head"], rows, **texts, **self._origin(name, values), name=name)

    def _text(self, name: str, key: str, values: dict[str, Any]) -> str:
        own = _texts(self._chapter)[name]
        return _filled(own.get(key, "") if key == "sample" else own[key], values)

    def _origin(self, name: str, values: dict[str, Any]) -> dict[str, str]:
        """Where the numbers of a figure come from in words, and the checkpoint of stored ones."""
        own, seconds = _texts(self._chapter)[name], self._seconds()  # of every figure: the next one's begin here
        if "provenance" not in own | values:
            return {"provenance": _live(seconds, _filled(own.get("facts", ""), values))}
        given = values.get("provenance", ())
        given = given if isinstance(given, tuple) else (given,)
        text, said = own.get("provenance", "{provenance}"), {"provenance": " ".join(map(str, given))}
        named = CHECKPOINT.name if "{checkpoint}" in text else getattr((*given, "")[0], "checkpoint", "")
        return {"provenance": _filled(text, {"checkpoint": named} | values | said), "checkpoint": named}


# How long the computation of a live figure took, by a clock that stands still between the cells of a notebook.


class _Clock:
    """The seconds that cells have run since the last figure."""

    def __init__(self):
        """From now, which is inside a cell."""
        self._before, self._began = 0.0, perf_counter()

    def go(self, _cell: Any = None) -> None:
        """A cell begins."""
        self._began = perf_counter()

    def stand(self, _cell: Any = None) -> None:
        """A cell ends."""
        self._before += perf_counter() - self._began

    def read(self) -> float:
        """The seconds; from here, it counts for the next figure."""
        now = perf_counter()
        seconds = self._before + now - self._began
        self._before, self._began = 0.0, now
        return seconds


@cache
def _clock(shell: InteractiveShell) -> _Clock:
    """The one clock of a running notebook, which runs while a cell does."""
    its = _Clock()
    shell.events.register("pre_run_cell", its.go)
    shell.events.register("post_run_cell", its.stand)
    return its


def _live(seconds: float, facts: str) -> str:
    """Origin of a result computed in this page: how long that took from one second on, on what, with which settings."""
    import torch  # noqa: PLC0415 - the site's build needs this module without torch

    took = f" in {seconds:.0f} s" if seconds >= 1 else ""
    threads = torch.get_num_threads()
    return f"Live: computed in this page{took} on {threads} thread{'s' * (threads > 1)}{facts and f', {facts}'}."


# A question before a figure.


@dataclass(frozen=True)
class _Prediction:
    """A question, and for each answer that a reader may choose the reply. Plain HTML: it needs no script."""

    question: str
    replies: Mapping[str, str]

    def _repr_html_(self) -> str:
        group = f"predict-{crc32(self.question.encode()):08x}"
        answers = "".join(
            f'<details name="{group}"><summary>{html.escape(answer)}</summary><p>{html.escape(reply)}</p></details>'
            for answer, reply in self.replies.items()
        )
        question = f'<p id="{group}"><strong>Predict first.</strong> {html.escape(self.question)}</p>'
        return f'<div class="explainer-predict" role="group" aria-labelledby="{group}">{question}{answers}</div>'


def predict(question: str, replies: Mapping[str, str]) -> _Prediction:
    """Ask before the figure is seen: each answer opens its reply, which says what was found and why.

    Plain text, escaped; a reply quotes numbers from the cells above it. One answer is open at a time.
    """
    return _Prediction(question, replies)
