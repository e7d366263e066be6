"""Mime types of the notebooks' outputs -> HTML of the static page, as plugins of myst-nb."""

import base64
import html
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
from docutils import nodes

from explainer.data.numbers import in_powers
from explainer.figures import CAPTION_MIME, PLOTLY_MIME, STATIC_MIME
from explainer.figures.figure_texts import KINDS, badge, figcaption, figure_tag
from explainer.palette import PALETTE

WIDGET_MIME = "application/vnd.jupyter.widget-view+json"
STATE_MIME = "application/vnd.jupyter.widget-state+json"
_MAX_ROWS = 400
_LONG = re.compile(r"(?<=[\[,:])-?\d+\.\d{6,}(?:e-?\d+)?")
_ROLES = {shades[0]: role for role, shades in PALETTE.items()}


def script_json(data: Any) -> str:
    """JSON that may stand inside a `<script>` element: no `<` survives, so no text can close it."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _six_digits(number: re.Match) -> str:
    """More are seen on no screen."""
    return f"{float(number[0]):.6g}"


def by_role(text: str) -> str:
    """The text with each colour of the palette as the CSS variable of its role, which the scheme decides."""
    return re.sub("|".join(_ROLES), lambda found: f"var(--xp-{_ROLES[found[0]]})", text)


def _values(data: Any) -> list:
    """Plotly's arrays: a list, or a typed array in base64."""
    if isinstance(data, Mapping) and "bdata" in data:
        shape = [int(n) for n in str(data.get("shape", "-1")).split(",")]
        return np.frombuffer(base64.b64decode(data["bdata"]), dtype=data["dtype"]).reshape(shape).tolist()
    return [] if data is None else list(data)


def _text(value: Any, decimals: int | None = None) -> str:
    if isinstance(value, float):
        return in_powers(f"{value:.4g}" if decimals is None else f"{value:z,.{decimals}f}").replace("-", "−")
    return html.escape("" if value is None else re.sub("<br ?/?>", " ", str(value)))


def _axis(trace: Mapping, layout: Mapping, letter: str) -> Mapping:
    """What the layout says of a trace's axis: that of "x2" is "xaxis2"."""
    return layout.get(f"{letter}axis{trace.get(f'{letter}axis', letter)[1:]}") or {}


def _panel(trace: Mapping, layout: Mapping) -> str:
    """The title of the trace's subplot, which stands at the left of its upper edge; "" where there is none."""
    x, y = (_axis(trace, layout, letter).get("domain", (np.nan, np.nan)) for letter in "xy")
    for note in layout.get("annotations") or ():
        on_paper = note.get("xref") == note.get("yref") == "paper"
        if on_paper and np.allclose((note["x"], note["y"]), (x[0], y[1])):
            return note["text"]
    return ""


def _places(axis: Mapping) -> list[str]:
    """The names of an axis's places 0, 1, 2, ..., those of the same name numbered; none of an axis that is a scale."""
    names = [str(name).strip() for name in _values(axis.get("ticktext"))]
    if _values(axis.get("tickvals")) != list(range(len(names))):
        return []
    return [name if names.count(name) == 1 else f"{name} ({i})" for i, name in enumerate(names, 1)]


def _told(value: Any, places: list[str]) -> Any:
    """The name of the place near which the value is drawn, the value itself where there is none."""
    if isinstance(value, str) or value is None:
        return value
    return next((name for i, name in enumerate(places) if abs(value - i) < 0.5), value)


def _coordinates(trace: Mapping, layout: Mapping, letter: str) -> list:
    """The trace's coordinates as a reader finds them on the axis; one with error bars is a scale."""
    places = [] if trace.get(f"error_{letter}") else _places(_axis(trace, layout, letter))
    return [_told(value, places) for value in _values(trace.get(letter))]


def _decimals(numbers: Iterable[float]) -> int | None:
    """How many decimals a column has: of its largest number four digits; None where powers of ten are shorter."""
    sizes = [abs(number) for number in numbers if number]
    if not sizes or max(sizes) < 1e-3:
        return None
    needed = max(len(f"{size:.4g}".partition(".")[2]) for size in sizes)
    return min(needed, max(0, 4 - math.ceil(math.log10(max(sizes)))))


def _written(rows: list[list[Any]], layout: Mapping) -> list[list[str]]:
    """Rows whose numbers in a column of a panel have as many decimals; those of logarithmic axes, as many digits."""
    logs = {2 + (key[0] == "y") for key, axis in layout.items() if key[1:5] == "axis" and axis.get("type") == "log"}
    for panel, column in product({row[0] for row in rows}, (2, 3, 4)):
        its = [row for row in rows if row[0] == panel]
        ends = [row[5] for row in its if row[5] and row[5][0] == column]
        numbers = [row[column] for row in its if isinstance(row[column], float)]
        decimals = None if column in logs else _decimals([*numbers, *(end for _, *two in ends for end in two)])
        for row in its:
            row[column] = _text(row[column], decimals)
            if row[5] in ends:
                row[5] = " to ".join(_text(end, decimals) for end in row[5][1:])
    return rows


def _rows(figure: Mapping) -> Iterator[list[Any]]:
    layout = figure.get("layout") or {}
    for trace in figure["data"]:
        begin = [_text(_panel(trace, layout)), _text(trace.get("name") or trace.get("type", ""))]
        x, y = (_coordinates(trace, layout, letter) for letter in "xy")
        if "z" in trace:
            z = _values(trace["z"])
            for line, cells in zip(y or range(len(z)), z, strict=True):
                for column, cell in zip(x or range(len(z[0])), cells, strict=True):
                    yield [*begin, column, line, cell, ""]
            continue
        axis = "error_x" if trace.get("error_x") else "error_y"
        error = trace.get(axis) or {}
        up, down = _values(error.get("array")), _values(error.get("arrayminus"))
        for i, (a, b) in enumerate(zip(x, y, strict=False)):
            value = a if axis == "error_x" else b
            if a is None or b is None:  # not a number, so not drawn
                continue
            ends = ((down or up)[i], up[i]) if up else (None, None)
            interval = "" if None in ends else (3 - (axis == "error_x"), value - ends[0], value + ends[1])
            yield [*begin, a, b, "", interval]


def _title(layout: Mapping, letter: str) -> str:
    """The titles of all x or y axes, each once."""
    axes = (axis for key, axis in layout.items() if re.fullmatch(rf"{letter}axis\d*", key))
    titles = dict.fromkeys((axis.get("title") or {}).get("text") for axis in axes)
    return "; ".join(filter(None, titles)) or letter


def data_table(figure: Mapping) -> str:
    """The figure's numbers as a folded HTML table, for readers who do not see the drawing."""
    layout = figure.get("layout") or {}
    rows = _written(list(_rows(figure)), layout)
    heads = ["panel", "series", _title(layout, "x"), _title(layout, "y"), "value", "95 % interval"]
    used = [i for i in range(len(heads)) if any(row[i] for row in rows)]
    if not rows or len(rows) > _MAX_ROWS:
        return ""
    head = "".join(f'<th scope="col">{_text(heads[i])}</th>' for i in used)
    body = "".join("<tr>" + "".join(f"<td>{row[i]}</td>" for i in used) + "</tr>" for row in rows)
    return (
        '<details class="xp-data"><summary>The numbers</summary>'
        '<div class="xp-scroll" tabindex="0" role="region" aria-label="Data table">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></details>"
    )


def _figure_html(data: Any) -> str:
    """A Plotly figure: its data in the page, drawn lazily by plotly.js from the site's own folder."""
    figure = dict(data.content)
    layout = dict(figure.get("layout") or {})
    meta = (layout.pop("meta", None) or {}).get("explainer", {})
    drawing = {"data": figure["data"], "layout": layout, "frames": figure.get("frames")}
    alt = html.escape(meta.get("alt", "Interactive figure"), quote=True)
    parts = ("provenance", "caption", "sample", "checkpoint", "title")
    return (
        f'{figure_tag(meta.get("name", ""), "xp-figure")}<div class="xp-plotly" role="group" aria-label="{alt}" '
        f'style="min-height:{int(layout.get("height") or 450)}px"><p class="xp-wait">{alt}</p>'
        f'<script type="application/json">{by_role(_LONG.sub(_six_digits, script_json(drawing)))}</script></div>'
        f"{figcaption(*(meta.get(part, '') for part in parts))}"
        f"{data_table(drawing)}</figure>"
    )


def widget_html(view: Mapping) -> str:
    """The place of an explorable, which the host script fills: fallback, reserved height and the standard view tag."""
    extra = view.get("explainer") or {}
    fallback = extra.get("fallback") or "<p>This control needs a running notebook.</p>"
    tag = {k: v for k, v in view.items() if k != "explainer"}
    place = (
        f'<div class="xp-widget" style="min-height:{int(extra.get("height", 0))}px" '
        f'data-traits="{html.escape(json.dumps(extra.get("traits", {}), separators=(",", ":")))}">'
        f'<div class="xp-fallback">{fallback}</div>'
        f'<script type="{WIDGET_MIME}">{script_json(tag)}</script></div>'
    )
    if "name" not in extra:
        return place
    caption = figcaption(*(extra[part] for part in ("provenance", "caption")), checkpoint=extra["checkpoint"])
    return f"{figure_tag(extra['name'], 'xp-figure xp-explorable')}{place}{caption}</figure>"


def frame_html(table: str) -> str:
    """The table of a data frame without frame and style of its own; a corner without a name is no header."""
    table = re.sub(r"<style scoped>.*?</style>\s*", "", table, flags=re.DOTALL)
    return table.replace("<th></th>", "<td></td>").replace(' border="1"', "")


def _frame(_renderer: Any, data: Any, _inline: bool) -> list[nodes.Node] | None:
    """A data frame: its table as HTML, live unless a tag of its cell, `stored` or `quoted`, says otherwise."""
    if data.mime_type != "text/html" or 'class="dataframe"' not in data.string:
        return None
    tags = data.cell_metadata.get("tags", [])
    kind = next((kind for kind in KINDS if kind.lower() in tags), "Live: computed by the cell above.")
    table = f"{frame_html(data.string)}<p>{badge(kind)}</p>"
    return [nodes.raw(text=table, format="html", classes=["output", "text_html"])]


def _plugin(mime: str, priority: int, body: Callable[[Any], str]) -> SimpleNamespace:
    """What myst-nb asks for the nodes of an output; None leaves another mime type to others."""

    def handle_mime(_renderer: Any, data: Any, _inline: bool) -> list[nodes.Node] | None:
        if data.mime_type != mime:
            return None
        return [nodes.raw(text=body(data), format="html", classes=["output"])]

    # For "*", every builder: that of linkcheck would warn otherwise.
    return SimpleNamespace(mime_priority_overrides=[("*", mime, priority)], handle_mime=handle_mime)


PLUGINS = (
    _plugin(PLOTLY_MIME, 5, _figure_html),
    _plugin(CAPTION_MIME, 1, lambda data: ""),  # on the page it stands inside the figure already
    _plugin(STATIC_MIME, 1, lambda data: data.content["html"]),
    _plugin(WIDGET_MIME, 3, lambda data: widget_html(data.content)),
    SimpleNamespace(mime_priority_overrides=(), handle_mime=_frame),
)
