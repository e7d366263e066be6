"""What stands on a page in braces: `{drawing}`, `{explorable}`, `{contents-of}`, `{environment}`, `{executions}`."""

import html
import inspect
import os
import platform
import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

import explainer
from bookbuilder import executed, pages
from bookbuilder.explorables import fallback
from bookbuilder.renderers import STATE_MIME, WIDGET_MIME, script_json, widget_html
from explainer.figures import drawings

_PACKAGES = ("torch", "transformers", "datasets", "numpy", "plotly", "anywidget", "jupyter-book", "icl-explainer")
_QUESTION = re.compile(r"^> \*\*The question\.\*\* (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[([^][]+)\]\([^)]*\)")


def directive(run: Callable[..., list[nodes.Node]]) -> type[Directive]:
    """The directive that a function of itself and of the words behind its name computes."""
    number = len(inspect.signature(run).parameters) - 1
    its = {
        "required_arguments": number,
        "final_argument_whitespace": True,
        "run": lambda self: run(self, *self.arguments),
    }
    return type(run.__name__, (Directive,), its | {"__doc__": run.__doc__})


def parsed(here: Directive, text: str) -> list[nodes.Node]:
    """The nodes that a text of Markdown becomes where a directive stands."""
    inside = nodes.section()
    inside.document = here.state.document
    here.state.nested_parse(StringList(text.splitlines(), "generated"), here.content_offset, inside)
    return inside.children


def _html(text: str) -> list[nodes.Node]:
    return [nodes.raw(text=text, format="html")]


def explorable(here: Directive, name: str) -> list[nodes.Node]:
    """`{explorable} ClassName`: an explorable with its default state, for pages that run no code."""
    from explainer import explorables, page  # noqa: PLC0415 - slow to import, and most pages need none

    widget = getattr(explorables if hasattr(explorables, name) else page, name)()
    scripts = Path(explainer.__file__).parent.glob("*/js/*.js")
    for path in (*widget.folder.glob(f"{widget.name}.json"), *scripts):
        here.state.document.settings.env.note_dependency(str(path))  # else the page stays as it was
    bundle = widget._repr_mimebundle_()
    view = (bundle[0] if isinstance(bundle, tuple) else bundle)[WIDGET_MIME]
    state = {k: v for k, v in widget.get_state().items() if not k.endswith("_id") and k != "layout"}
    view["explainer"]["fallback"] = fallback(state)
    model = {"model_name": "AnyModel", "model_module": "anywidget", "model_module_version": "*", "state": state}
    tag = f'<script type="{STATE_MIME}">{script_json({"state": {view["model_id"]: model}})}</script>'
    return _html(tag + widget_html(view))


def drawing(_here: Directive, name: str) -> list[nodes.Node]:
    """`{drawing} name`: one of the diagrams of `explainer.figures.drawings`, as inline SVG with its caption."""
    return _html(drawings.drawing(name)._repr_mimebundle_()["text/html"])


def contents_of(here: Directive, caption: str) -> list[nodes.Node]:
    """`{contents-of} Caption`: a row for each page of a part: its title, its question, its minutes."""
    environment = here.state.document.settings.env
    root = Path(environment.srcdir)
    for path in pages.reading_order(root):
        environment.note_dependency(str(path))
    rows = rows_of(root, Path(environment.docname), caption)
    return parsed(here, "\n".join(["| page | question | minutes |", "|---|---|---|", *rows]))


def rows_of(root: Path, here: Path, caption: str) -> list[str]:
    """The rows as Markdown; raises KeyError for a caption that the table of contents does not have."""
    found = {path.with_suffix("").relative_to(root).as_posix(): path for path in pages.reading_order(root)}
    ways, rows = pages.addresses(root, here), []
    for path in (found[name] for name in dict(pages.parts(root))[caption] if name != str(here)):
        question = _QUESTION.search("\n".join(pages.markdown(path)))
        asked = _LINK.sub(r"\1", question[1]).replace("|", r"\|") if question else ""
        link = f"[{pages.title(path)}]({ways[path.stem]}{path.suffix})"
        rows.append(f"| {link} | {asked} | {pages.minutes(pages.cells(path))} |")
    return rows


def environment(_here: Directive) -> list[nodes.Node]:
    """`{environment}`: versions and machine of this build."""
    rows = {"Python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    rows |= {"processors": str(os.cpu_count())} | {name: metadata.version(name) for name in _PACKAGES}
    body = "".join(f'<tr><th scope="row">{name}</th><td>{value}</td></tr>' for name, value in rows.items())
    return _html(f'<table class="table"><tbody>{body}</tbody></table>')


def executions(here: Directive) -> list[nodes.Node]:
    """`{executions}`: each chapter's execution, what did not hold, and all findings by chapter in folds."""
    env = here.state.document.settings.env
    root, rows, fails, folds = Path(env.srcdir), [], [], []
    ways = pages.addresses(root, Path(env.docname))
    for name, path in ((chapter.stem, executed_copy(env, chapter)) for chapter in executed.chapters(root)):
        last, found = executed.last_execution(path), executed.findings_of(path)
        state = "no" if last is None else f"FAILED, {last.failure}" if last.failure else "yes"
        hold = f"{sum(one.holds for one in found)} of {len(found)} hold" if found else "none"
        cells = (html.escape(cell) for cell in (state, f"{last.seconds:.0f}" if last else "", hold))
        link = f'<a href="{ways[name]}.html">{name}</a>'
        rows.append(f'<tr><th scope="row">{link}</th><td>{"</td><td>".join(cells)}</td></tr>')
        fails += [f"{name}: {one.statement}: {one.comparison}" for one in found if not one.holds]
        said = "".join(f"<li>{html.escape(f'{one.statement}: {one.comparison}.')}</li>" for one in found)
        summary = f"<summary>{name}: {len(found)} findings</summary>"
        folds += [f'<details class="xp-findings">{summary}<ul>{said}</ul></details>'] if found else []
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("chapter", "executed", "seconds", "findings"))
    head, body = f"<thead><tr>{heads}</tr></thead>", f"<tbody>{''.join(rows)}</tbody>"
    items = "".join(f'<li class="xp-fails">{html.escape(one)}</li>' for one in fails)
    below = f"<p>These did not hold on this machine:</p><ul>{items}</ul>" if fails else "<p>All findings hold.</p>"
    return _html(f'<table class="table xp-executions">{head}{body}</table>{below}{"".join(folds)}')


def executed_copy(env: Any, chapter: Path) -> Path:
    """The executed copy of a chapter; a page that shows it is built again when it changes."""
    path = Path(env.srcdir) / executed.FOLDER / chapter.name
    env.note_dependency(str(path))
    return path
