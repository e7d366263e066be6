"""The picture that a shared link shows: a page's title beside its first drawing, or above its first words.

It is an SVG that resvg renders with the fonts of this folder, so that every machine makes the same file and none needs
a browser.
"""

import html
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import resvg_py
from fontTools.ttLib import TTFont

SIZE, COVER = (1200, 630), (1200, 1800)
FONTS = sorted((Path(__file__).parent / "fonts").glob("*.ttf"))
"""DejaVu Sans, its letters and signs that drawings use; a language with others brings a font of its own."""
_FAMILY = "DejaVu Sans"
STYLE = """
svg { color: #14181e }
.explorable-key { color: #0072b2 } .explorable-value { color: #c65300 } .explorable-query { color: #00815e }
.explorable-sum { color: #a8568a } .explorable-paper { fill: #fff }
.explorable-halo { stroke: #fff; stroke-width: 4px; paint-order: stroke; stroke-linejoin: round }
"""
"""What the site's style sheets say of drawings on white."""
_EDGE = 64


def drawings(content: str) -> Iterator[str]:
    """Each SVG of some HTML as it stands there; a drawing may have others inside."""
    depth = begin = 0
    for tag in re.finditer(r"<svg\b|</svg>", content):
        begin = begin if depth else tag.start()
        depth += -1 if tag[0] == "</svg>" else 1
        if not depth:
            yield content[begin : tag.end()]


def card(title: str, words: str, site: str, picture: str = "") -> bytes:
    """The PNG of a page: `picture` is an SVG, and `words` stand below the title where there is none."""
    room = 430 if picture else SIZE[0] - 2 * _EDGE
    size = 44 if picture else 60
    lines = list(_lines(title, size * 1.08, room))
    body = _text(lines, _EDGE, 150, size, "font-weight='700'") + _text([site], _EDGE, SIZE[1] - 50, 24)
    if picture:
        body += _placed(picture, 540, 60, 600, 510)
    else:
        body += _text(list(_lines(words, 30, room)), _EDGE, 190 + len(lines) * size * 1.25, 30)
    return _drawn(body, *SIZE)


def cover(title: str, author: str, picture: str = "") -> bytes:
    """The PNG of a book's cover, with an SVG of its own."""
    width, height = COVER
    room = width - 2 * _EDGE
    body = _text(list(_lines(title, 104, room)), _EDGE, 280, 96, "font-weight='700'")
    body += _placed(picture, _EDGE, 720, room, 720) if picture else ""
    return _drawn(body + _text(list(_lines(author, 36, room)), _EDGE, height - 120, 36), width, height)


def _drawn(body: str, width: int, height: int) -> bytes:
    """The PNG of elements of an SVG on white."""
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="{_FAMILY}">'
        f'<rect width="100%" height="100%" fill="#fff"/><rect width="100%" height="16" fill="#0072b2"/>{body}</svg>'
    )
    fonts = {"font_files": [str(file) for file in FONTS], "font_family": _FAMILY, "sans_serif_family": _FAMILY}
    return resvg_py.svg_to_bytes(svg, skip_system_fonts=True, style_sheet=STYLE, **fonts)


def _placed(picture: str, x: int, y: int, width: int, height: int) -> str:
    """A drawing inside another, as large as the place allows."""
    head, rest = re.match(r"(<svg\b[^>]*)>(.*)", picture, re.DOTALL).groups()
    head = re.sub(r'\s(?:x|y|width|height|style|font-family)="[^"]*"', "", head)
    return f'{head} x="{x}" y="{y}" width="{width}" height="{height}">{rest}'


def _text(lines: list[str], x: int, y: float, size: int, more: str = "") -> str:
    return "".join(
        f'<text x="{x}" y="{y + i * size * 1.25:.0f}" font-size="{size}" {more}>{html.escape(line)}</text>'
        for i, line in enumerate(lines)
    )


def _lines(text: str, size: float, room: float) -> Iterator[str]:
    """A text in lines that fit: broken at spaces, and between the characters of a script that has none."""
    line = ""
    for piece in re.findall(r"[\u2e80-\uffef]|[^\s\u2e80-\uffef]+|\s+", text):
        if line.strip() and _width(line + piece.rstrip()) * size > room:
            yield line.strip()
            line = ""
        line += piece
    if line.strip():
        yield line.strip()


def _width(text: str) -> float:
    """The width of a text in units of its size."""
    known = widths()
    return sum(known.get(ord(sign), 1.0) for sign in text)


@cache
def widths() -> dict[int, float]:
    """The width of each sign that the fonts have, in units of its size, as bold type has it where it does."""
    known = {}
    for file in sorted(FONTS, key=lambda file: "Bold" in file.stem):
        font = TTFont(file)
        names, units = font["hmtx"].metrics, font["head"].unitsPerEm
        known |= {code: names[name][0] / units for code, name in font.getBestCmap().items()}
    return known
