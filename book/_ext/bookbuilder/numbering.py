"""The number and the address of every figure and table, and a page of its own for each figure that can stand alone."""

import base64
import gzip
import json
import os
import re
from pathlib import Path
from typing import Any, cast

from myst_nb.sphinx_ import NbMetadataCollector, SphinxEnvType
from sphinx.application import Sphinx

import explainer
from bookbuilder.pages import names
from bookbuilder.renderers import STATE_MIME, script_json
from bookbuilder.translation import Edition
from explainer.data.files import replace_file
from explainer.palette import palette_css

FOLDER = "figures"
"""Where a site has the pages of single figures."""
_FIGURE = re.compile(r'<figure class="(xp-[\w -]+)"(?: id="fig-(\w+)")?>(.*?)</figure>', re.DOTALL)
_ALONE = re.compile(
    r'<figure class="[^"]+" data-alone="([^"]+)" id="([^"]+)">.*?<b class="xp-number">([^<]+)</b>.*?</figure>',
    re.DOTALL,
)
_MODEL = re.compile(r'"model_id":\s*"(\w+)"')
_STATES = re.compile(rf'<script type="{re.escape(STATE_MIME)}">(.*?)</script>', re.DOTALL)
_STILL = re.compile(r'(?<=<div class="explorable">)<svg .*?</svg>\s*(?=<p class="xp-still">)', re.DOTALL)
_STATIC = Path(__file__).with_name("static") / "explainer"
_STYLES = (_STATIC / "site.css", Path(explainer.__file__).with_name("explorables") / "explorables.css")
_TOOLS = {
    "link": ("link", "Copy the address of this, as it stands now"),
    "svg": ("SVG", "Save this picture, as it stands now, with lines that stay sharp"),
    "png": ("PNG", "Save this picture, as it stands now, in pixels"),
    "embed": ("embed", "Copy a line of HTML that shows this, as it stands now, in slides or on another page"),
}
"""What a reader takes away of a figure: the word on the button, and what it does."""


def place_of(page: str, root: Path) -> str:
    """What stands before the numbers of a page's figures: "9." in a chapter, "S4." in a study, else nothing."""
    folder = page.rpartition("/")[0]
    mark = {"book/chapters": "", "book/studies": "S"}.get(folder)
    same = [one for one in names(root) if one.startswith(f"{folder}/")] if mark is not None else []
    return f"{mark}{same.index(page) + 1}." if page in same else ""


def numbered(body: str, page: str, root: Path, book: str) -> str:
    """The HTML of a page whose figures have numbers, addresses, and what their buttons say; `book` is its title."""
    place, counts, taken = place_of(page, root), {"Figure": 0, "Table": 0}, dict[str, int]()

    def number(found: re.Match) -> str:
        classes, name, inside = found.groups()
        kind = "Table" if classes == "xp-table" else "Figure"
        counts[kind] += 1
        name = name or f"{kind.lower()}{counts[kind]}"
        taken[name] = taken.get(name, 0) + 1
        name += f"-{taken[name]}" if taken[name] > 1 else ""
        alone = "" if kind == "Table" else f' data-alone="{page.rpartition("/")[2]}-{name}"'
        said = f'<figcaption><b class="xp-number">{kind} {place}{counts[kind]}</b> '
        return f'<figure class="{classes}"{alone} id="fig-{name}">{inside.replace("<figcaption>", said, 1)}</figure>'

    body = _FIGURE.sub(number, body)
    if not any(counts.values()):
        return body
    words = {name: {"label": label, "title": title} for name, (label, title) in _TOOLS.items()}
    words |= {"done": {"text": "copied"}, "source": {"book": book, "text": "MIT License"}}
    folder = os.path.relpath(FOLDER, Path(page).parent)
    words["page"] = {"is": page.rpartition("/")[2], "folder": f"{folder}/"}
    return f'{body}<script type="application/json" id="xp-figures">{script_json(words)}</script>'


def write_pages(app: Sphinx, page: str, context: dict[str, Any], edition: Edition | None) -> None:
    """Write a page for each figure of a numbered page that can stand alone, and remove those that it had before."""
    folder, short = Path(app.outdir, FOLDER), page.rpartition("/")[2]
    made = {found[1]: found for found in _ALONE.finditer(context["body"])}
    for stale in set(folder.glob(f"{short}-*.html")) - {folder / f"{name}.html" for name in made}:
        stale.unlink()
    files = NbMetadataCollector.get_js_files(cast(SphinxEnvType, app.env), page).values() if made else ()
    texts = [more["body"] for _, more in files if more.get("type") == STATE_MIME]
    states = [json.loads(text)["state"] for text in (*texts, *_STATES.findall(context["body"]))]
    models = {name: model for state in states for name, model in state.items()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in made.items():
        its = _alone(figure, models, context["title"], edition)
        its |= {"page": f"{os.path.relpath(page, FOLDER)}.html"}
        its |= {"language": (app.config.language or "en").replace("_", "-")}
        text = app.builder.templates.render("alone.html", its)
        if "state" in its:  # a page that unpacks itself, at a third of the size
            packed = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
            text = app.builder.templates.render("packed.html", its | {"packed": packed})
        if not (file := folder / f"{name}.html").exists() or file.read_text("utf-8") != text:
            replace_file(file, text)


def _alone(found: re.Match, models: dict[str, Any], title: str, edition: Edition | None) -> dict[str, Any]:
    """What the template needs of a figure: an explorable has its module and its host in the page."""
    figure, _, identity, number = found.group(0, 1, 2, 3)
    lines = "".join(file.read_text("utf-8") for file in _STYLES).splitlines(keepends=True)
    css = palette_css() + "".join(line for line in lines if _used(line.partition("{")[0], figure))
    its = {"figure": _STILL.sub("", figure), "id": identity, "number": number, "title": title, "css": css}
    its |= {"plotly": "xp-plotly" in figure}
    for name in _MODEL.findall(figure):
        if name not in models:  # a chapter that failed keeps none
            continue
        state = {key: value for key, value in models[name]["state"].items() if key != "_css"}
        host = (_STATIC / "afm-host.js").read_text("utf-8")
        its |= {"host": host, "needs_model": "afm-host.js" in state["_esm"]}  # it finds the model beside its host
        its |= {"words": edition and edition.script(host + json.dumps(state)), "mime": STATE_MIME}
        its |= {"state": script_json({"state": {name: models[name] | {"state": state}}})}
    return its


def _used(selector: str, figure: str) -> bool:
    """Whether a figure alone needs a line of the styles: one without a class, or with a class of its own."""
    names = re.findall(r"\.([a-z][\w-]+)", selector)
    return not names or any(name in figure or re.match("explorable|xp-alone", name) for name in names)
