"""The main line in another language: a folder of `book/locale`, and the words that are no Markdown of a page.

Sphinx translates a page's Markdown by its gettext catalogue. What code, figures and the builder put on a page is
translated in its HTML, word for word with the numbers taken out, so that one execution serves all languages.
"""

import json
import re
import tomllib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from babel.messages.pofile import read_po
from bs4 import BeautifulSoup, NavigableString, Tag

WORDS = "words"
"""The catalogue of what is no Markdown of a page."""
EXPLORABLES = "explorables"
"""The catalogue of what explorables write while a reader uses them."""

_SCRIPT = Path(__file__).with_name("static") / "words.js"
_WORD = re.compile(r"[A-Za-z]{2}")

# Texts without their numbers.

_NUMBER = re.compile(r"(?<![\w\-.{])[-+\N{MINUS SIGN}]?\d+(?:[.,]\d+)*(?:e[-+]?\d+| × 10[⁻¹²³⁰-⁹]+)?(?!\w)", re.ASCII)


def without_numbers(text: str) -> tuple[str, list[str]]:
    """A text whose numbers are {0}, {1} and so on, and these numbers."""
    numbers: list[str] = []

    def number(found: re.Match) -> str:
        numbers.append(found[0])
        return f"{{{len(numbers) - 1}}}"

    return _NUMBER.sub(number, " ".join(text.split())), numbers


def with_numbers(text: str, numbers: list[str]) -> str:
    """The text whose {0}, {1} and so on are these numbers."""
    return re.sub(r"\{(\d+)\}", lambda found: numbers[int(found[1])], text)


# The HTML of a page.

_SAID_BY = ("aria-label", "alt", "title", "placeholder")
_KEYS = {"text", "name", "title", "ticktext", "label", "hovertemplate", "header", "values", "legendgroup"}
_SILENT = re.compile(r"(?:pre|code|math)\b|.*\b(?:math|highlight)\b")
_OURS = re.compile(r"summary\b|.*\b(?:cell_output|xp-(?!terms?\b|box\b|spare\b))")
"""Name and classes of an element whose texts are left alone, or are not of the page's Markdown."""


def translated(body: str, said: Callable[[str, bool], str]) -> str:
    """HTML whose texts, alternative texts and figures' words are what `said` makes of each.

    `said(text, ours)` gets the text and whether code, a figure or the builder made it, not the page's Markdown. Code
    and formulas are left alone.
    """
    page = BeautifulSoup(body, "html.parser")
    _translate(page, said, False)
    return page.decode(formatter="minimal")


def _translate(element: Tag, said: Callable[[str, bool], str], ours: bool) -> None:
    for node in list(element.children):
        if type(node) is NavigableString:  # no comment, script or style
            node.replace_with(_spoken(node, said, ours))
        elif isinstance(node, Tag):
            what = " ".join([node.name, *node.get("class", ())])
            if _SILENT.match(what):
                continue
            inside = ours or bool(_OURS.match(what))
            for name in filter(node.has_attr, _SAID_BY):
                node[name] = _spoken(node[name], said, inside or "xp-" in str(node.attrs))
            if node.get("type") == "application/json":
                drawing = _figure(json.loads(node.string), lambda text: said(text, True))
                node.string = json.dumps(drawing, separators=(",", ":")).replace("<", "\\u003c")
            else:
                _translate(node, said, inside)


def _spoken(text: str, said: Callable[[str, bool], str], ours: bool) -> str:
    plain = text.strip()
    return text.replace(plain, said(plain, ours), 1) if _WORD.search(plain) else text


def _figure(part: Any, said: Callable[[str], str], key: str = "") -> Any:
    """A Plotly figure with its words translated: names, titles, labels and notes, not its data."""
    if isinstance(part, dict):
        return {name: _figure(value, said, name) for name, value in part.items()}
    if isinstance(part, list):
        return [_figure(value, said, key) for value in part]
    if isinstance(part, str) and key in _KEYS and _WORD.search(part):
        return said(part)
    return part


# An edition.

_LATIN = re.compile(r"[A-Za-z]{2,}")
_KEPT = re.compile(r"“[^”]*?(?:”|…)|\S+ (?:->|→)(?: \S+)?|-> \S+")
"""Tokens of a model, whole or cut; demonstrations."""


class Edition:
    """The book in one other language: a folder of `book/locale` with its catalogues and `edition.toml`."""

    def __init__(self, folder: Path):
        """Of the folder that is named as Sphinx names the language."""
        self.folder = folder

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Its address, title, and the words that the builder looks for in its pages."""
        return tomllib.loads((self.folder / "edition.toml").read_text("utf-8"))

    def texts(self, name: str) -> dict[str, str]:
        """English to the other language by a catalogue, what is translated and still fits."""
        return texts(self.folder / f"{name}.po")

    def script(self, used: str = "") -> str:
        """What puts explorables into this language: with all words, or with those that `used`, a source, can make."""
        table = self.texts(EXPLORABLES)
        needed = [key for key in table if all(word.removesuffix("s") in used for word in _LATIN.findall(key))]
        kept = {key: table[key] for key in needed} if used else table
        return f"const TABLE = {json.dumps(kept, ensure_ascii=False)};\n{_SCRIPT.read_text('utf-8')}"

    def english(self, text: str) -> list[str]:
        """The English words of a text, without what every language keeps and the names that this one does."""
        return [word for word in _LATIN.findall(_KEPT.sub(" ", text)) if word not in self.settings["names"]]

    @cached_property
    def _words(self) -> dict[str, str]:
        return self.texts(WORDS)

    def said(self, text: str, _ours: bool = True) -> str:
        """What a text that is no Markdown is in this language; the text itself where nobody has translated it."""
        key, numbers = without_numbers(text)
        return with_numbers(self._words[key], numbers) if key in self._words else text


def texts(catalogue: Path) -> dict[str, str]:
    """What a gettext file translates."""
    with catalogue.open("rb") as file:
        return {message.id: message.string for message in read_po(file) if message.string and not message.fuzzy}


def editions(root: Path = Path()) -> list[Edition]:
    """The languages that the book has besides English."""
    return [Edition(path.parent) for path in sorted(root.glob("book/locale/*/edition.toml"))]
