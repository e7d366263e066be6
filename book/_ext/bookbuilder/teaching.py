"""What *Teach this* and its slides compute: `{teaching} chapters`, `{teaching} weeks` and `{figure-of}`."""

import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

from bookbuilder import pages
from bookbuilder.directives import executed_copy, parsed
from bookbuilder.renderers import PLUGINS
from explainer.figures import PLOTLY_MIME

SLIDES = "book/reference/slides"
SOURCE = Path(__file__).with_name("teach.toml")


def source() -> dict[str, Any]:
    """Needs, goals and questions of each chapter by its name, in the order of the book, and `weeks`."""
    return tomllib.loads(SOURCE.read_text("utf-8"))


def teaching(here: Directive, what: str) -> list[nodes.Node]:
    """`{teaching} chapters` or `{teaching} weeks`: a table, and for chapters a fold below it for each."""
    environment = here.state.document.settings.env
    root = Path(environment.srcdir)
    for path in (SOURCE, *pages.reading_order(root)):
        environment.note_dependency(str(path))
    made = {"chapters": _chapters, "weeks": _weeks}[what]
    return parsed(here, made(root, Path(environment.docname)))


def _chapters(root: Path, here: Path) -> str:
    ways, rows, folds = pages.addresses(root, here), ["| no. | chapter | minutes | needs |", "|---|---|---|---|"], []
    for number, (name, said) in enumerate(_by_chapter().items(), 1):
        path = pages.path_of(f"book/chapters/{name}", root)
        content, title = pages.cells(path), pages.title(path)
        rows.append(f"| {number} | [{title}]({ways[name]}.ipynb) | {pages.minutes(content)} | {said['needs']} |")
        sections = " · ".join(f"{heading or 'Opening'} {n}" for heading, n in pages.sections(content).items())
        heads = {"goals": "Goals", "questions": "Questions"}
        lists = (f"**{head}**\n\n- " + "\n- ".join(said[key]) for key, head in heads.items())
        inside = "\n\n".join([*lists, f"**Minutes.** {sections}."])
        folds.append(f"<details><summary>{number}. {title}</summary>\n\n{inside}\n\n</details>")
    return "\n\n".join(["\n".join(rows), *folds])


def _weeks(root: Path, here: Path) -> str:
    numbers = {name: number for number, name in enumerate(_by_chapter(), 1)}
    rows = ["| week | before class | in class | after class |", "|---|---|---|---|"]
    for number, week in enumerate(source()["weeks"], 1):
        content = [pages.cells(pages.path_of(f"book/chapters/{name}", root)) for name in week["chapters"]]
        way = pages.addresses(root, here)
        read = ", ".join(f"[{numbers[name]}]({way[name]}.ipynb)" for name in week["chapters"])
        total = sum(map(pages.minutes, content))
        rows.append(f"| {number} | {week['before'].format(read)} ({total} min) | {week['inside']} | {week['after']} |")
    return "\n".join(rows)


def _by_chapter() -> dict[str, Any]:
    return {name: said for name, said in source().items() if name != "weeks"}


def figure_of(here: Directive, said: str) -> list[nodes.Node]:
    """`{figure-of} chapter name`: a figure of a chapter as its execution left it; a link where it was not executed."""
    environment = here.state.document.settings.env
    chapter, name = said.split()
    path = executed_copy(environment, pages.path_of(f"book/chapters/{chapter}", Path(environment.srcdir)))
    cells = json.loads(path.read_text("utf-8"))["cells"] if path.exists() else []
    for cell in cells:
        if re.search(rf"texts\.figure\(\s*\"{name}\"", "".join(cell["source"])):
            found = [one["data"][PLOTLY_MIME] for one in cell.get("outputs", ()) if PLOTLY_MIME in one.get("data", {})]
            data = SimpleNamespace(mime_type=PLOTLY_MIME, content=found[0])
            return PLUGINS[0].handle_mime(None, data, False) or []
    return parsed(here, f"[](../chapters/{chapter}.ipynb) was not executed.")


def as_slides(_app: Any, pagename: str, *_: Any) -> str | None:
    """The template of the slides, for their page."""
    return "slides.html" if pagename == SLIDES else None
