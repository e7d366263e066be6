"""The words around the figures: captions and text alternatives, one TOML file for each chapter in `words/`.

A text is a format string; the numbers in it are given where the figure is drawn, so that a translator needs these
files only, and no number is ever typed into a sentence.
"""

import string
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import plotly.graph_objects as go
from IPython import get_ipython

from explainer.data.assets import CHECKPOINT
from explainer.figures.base import Captioned, Drawing, Table
from explainer.figures.clock import clock, live


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
        return super().format_field(value, format_spec)


@cache
def _texts(chapter: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads((resources.files("explainer.figures") / "words" / f"{chapter}.toml").read_text("utf-8"))


def _filled(text: str, values: Mapping[str, Any]) -> str:
    return _Formatter().vformat(" ".join(text.split()), (), values)


class Texts:
    """The texts of one chapter, put around what it draws.

    `texts = Texts("comparison")`, then `texts.figure("overview", drawn, n=6, provenance=origin)`: `caption`, `alt` and
    `provenance`, where the numbers come from, are those below `[overview]` in `words/comparison.toml`, with {n} filled
    in, and so is `sample`, the second part of a caption, if there is one: how many were measured, and what an interval
    is. Without a `provenance` there, the given one is used, or several of a tuple in a row. Without either the figure
    is live, took what the cells since the last figure took, and says the `facts` of the file, like seeds. Raises
    KeyError for a figure without texts and for a value that a text needs and does not get.
    """

    def __init__(self, chapter: str):
        """Of the notebook with this name, whose cells are timed from here on; outside a notebook, nothing is."""
        self._chapter, shell = chapter, get_ipython()
        self._seconds = clock(shell).read if shell else lambda: 0.0

    def figure(self, name: str, drawn: go.Figure, **values: Any) -> Captioned:
        """A Plotly figure with its caption, its text alternative and its origin."""
        texts = {key: self._text(name, key, values) for key in ("caption", "alt", "sample")}
        return Captioned(drawn, **texts, **self._origin(name, values))

    def drawing(self, name: str, svg: str) -> Drawing:
        """A diagram with its caption and its text alternative."""
        return Drawing(svg, *(self._text(name, key, {}) for key in ("caption", "alt")))

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
        return Table(head or own["head"], rows, **texts, **self._origin(name, values))

    def _text(self, name: str, key: str, values: dict[str, Any]) -> str:
        own = _texts(self._chapter)[name]
        return _filled(own.get(key, "") if key == "sample" else own[key], values)

    def _origin(self, name: str, values: dict[str, Any]) -> dict[str, str]:
        """Where the numbers of a figure come from in words, and the checkpoint of stored ones."""
        own, seconds = _texts(self._chapter)[name], self._seconds()  # of every figure: the next one's begin here
        if "provenance" not in own | values:
            return {"provenance": live(seconds, _filled(own.get("facts", ""), values))}
        given = values.get("provenance", ())
        given = given if isinstance(given, tuple) else (given,)
        text, said = own.get("provenance", "{provenance}"), {"provenance": " ".join(map(str, given))}
        named = CHECKPOINT.name if "{checkpoint}" in text else getattr((*given, "")[0], "checkpoint", "")
        return {"provenance": _filled(text, {"checkpoint": named} | values | said), "checkpoint": named}
