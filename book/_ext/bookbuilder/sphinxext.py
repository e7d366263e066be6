"""Sphinx extension of the book: directives, boxes, addresses, and the files a page needs to stand alone."""

import html
import json
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive
from myst_nb.core.render import load_mime_renders
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

import explainer
from bookbuilder import bibliography, colours, contents, execute, glossary, notation, pages, shown, vendored
from bookbuilder.renderers import (
    STATE_MIME,
    WIDGET_MIME,
    CaptionMime,
    FigureMime,
    FrameMime,
    StaticMime,
    WidgetMime,
    script_json,
    widget_html,
)
from bookbuilder.repository import public_address
from explainer.figures import drawings
from explainer.findings import of_notebook

PACKAGE = Path(explainer.__file__).parent
STATIC = Path(__file__).parent / "static"
STORY = "Is in-context learning gradient descent in disguise? Why it is exact, where it breaks, and what we measured."
BOXES = {  # a block quote that opens with one of these words in bold becomes a box on the page
    "Takeaway": "tip",
    "The question": "important",
    "Before you read": "note",
    "What this does not show": "warning",
    "Exercise": "hint",
    "Exact": "note",
    "Approximation": "warning",
    "Analogy": "attention",
    "This chapter failed": "danger",
    "This chapter was not executed": "danger",
}


class Explorable(Directive):
    """`{explorable} ClassName`: an explorable with its default state, for pages that run no code."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the widget's state and view, as a notebook's output would hold them."""
        from bookbuilder.explorables import ALL  # noqa: PLC0415 - slow to import, and most pages need none

        (widget,) = (explorable() for explorable in ALL if explorable.__name__ == self.arguments[0])
        bundle = widget._repr_mimebundle_()
        view = (bundle[0] if isinstance(bundle, tuple) else bundle)[WIDGET_MIME]
        state = {k: v for k, v in widget.get_state().items() if not k.endswith("_id") and k != "layout"}
        model = {"model_name": "AnyModel", "model_module": "anywidget", "model_module_version": "*", "state": state}
        tag = f'<script type="{STATE_MIME}">{script_json({"state": {view["model_id"]: model}})}</script>'
        return [nodes.raw(text=tag + widget_html(view), format="html")]


class DrawingDirective(Directive):
    """`{drawing} name`: one of the diagrams of `explainer.figures.drawings`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the diagram as inline SVG with its caption."""
        drawing = drawings.drawing(self.arguments[0])
        return [nodes.raw(text=drawing._repr_mimebundle_()["text/html"], format="html")]


class Api(Directive):
    """`{api} room`: what the modules of a room offer, from their docstrings."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the modules with their functions and classes."""
        from bookbuilder import api  # noqa: PLC0415 - it imports every module of the room

        return [nodes.raw(text=api.room_html(self.arguments[0]), format="html")]


class Environment(Directive):
    """`{environment}`: versions and machine of this build."""

    packages: ClassVar = [
        "torch",
        "transformers",
        "datasets",
        "numpy",
        "plotly",
        "anywidget",
        "jupyter-book",
        "explainer",
    ]

    def run(self) -> list[nodes.Node]:
        """Return a definition table."""
        rows = {"Python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
        rows |= {"processors": str(os.cpu_count())} | {name: metadata.version(name) for name in self.packages}
        body = "".join(f'<tr><th scope="row">{name}</th><td>{value}</td></tr>' for name, value in rows.items())
        return [nodes.raw(text=f'<table class="table"><tbody>{body}</tbody></table>', format="html")]


class Boxes(SphinxPostTransform):
    """Block quotes that open with a bold key word become boxes: plain Markdown in Colab, an admonition on the site."""

    default_priority = 700

    def run(self, **_: Any) -> None:
        """Replace each such quote in place."""
        for quote in list(self.document.findall(nodes.block_quote)):
            first = quote.next_node(nodes.paragraph)
            while first is not None and first.children and not first[0].astext():
                first.pop(0)  # the parser may leave an empty text before the bold words
            if first is None or not first.children or not isinstance(first[0], nodes.strong):
                continue
            title = first[0].astext().rstrip(".:")
            kind = next((box for word, box in BOXES.items() if title.startswith(word)), None)
            if kind is None:
                continue
            first.pop(0)
            if first.children and isinstance(first[0], nodes.Text):
                first[0] = nodes.Text(first[0].astext().lstrip(" .:"))
            box = nodes.admonition("", nodes.title(title, title), *quote.children, classes=[kind, "xp-box"])
            quote.replace_self(box)


class Definitions(SphinxPostTransform):
    """The first use of each term on a page becomes a link to its definition; boxes have their titles by then."""

    default_priority = 710

    def run(self, **_: Any) -> None:
        """Mark the page, if the book has a glossary."""
        if glossary.PAGE in self.env.found_docs and self.env.docname != glossary.PAGE:
            address = self.app.builder.get_relative_uri(self.env.docname, glossary.PAGE)
            glossary.mark(self.document, address, self.env.docname.rpartition("/")[2])


class Colours(SphinxPostTransform):
    """Keys, values and queries in formulas have their colours on the pages of `colours.PAGES`."""

    default_priority = 720

    def run(self, **_: Any) -> None:
        """Replace the LaTeX of the page's formulas."""
        if self.env.docname in colours.PAGES and self.app.builder.format == "html":
            for formula in self.document.findall(lambda node: isinstance(node, nodes.math | nodes.math_block)):
                latex = formula.astext()
                formula.clear()
                formula.append(nodes.Text(colours.coloured(latex)))


class Executions(Directive):
    """`{executions}`: each chapter's execution, and its findings in folds."""

    def run(self) -> list[nodes.Node]:
        """Return one table, the findings that did not hold or a sentence, and all findings by chapter."""
        environment = self.state.document.settings.env
        rows, fails, folds = [], [], []
        for chapter in execute.chapters(Path(environment.srcdir)):
            path = _executed(environment, chapter)
            last = execute.last_execution(path)
            found = of_notebook(json.loads(path.read_text("utf-8"))) if last else []
            address = pages.address(chapter.stem, Path(environment.srcdir), Path(environment.docname))
            rows.append(_execution_row(chapter.stem, address, last, found))
            fails += [f"{chapter.stem}: {one.statement}: {one.comparison}" for one in found if not one.holds]
            folds += [_findings_list(chapter.stem, found)] if found else []
        heads = "".join(f'<th scope="col">{head}</th>' for head in ("chapter", "executed", "seconds", "findings"))
        table = (
            f'<table class="table xp-executions"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
        )
        items = "".join(f'<li class="xp-fails">{html.escape(one)}</li>' for one in fails)
        below = f"<p>These did not hold on this machine:</p><ul>{items}</ul>" if fails else "<p>All findings hold.</p>"
        return [nodes.raw(text=table + below + "".join(folds), format="html")]


def _findings_list(name: str, found: list) -> str:
    items = "".join(f"<li>{html.escape(f'{one.statement}: {one.comparison}.')}</li>" for one in found)
    return f'<details class="xp-findings"><summary>{name}: {len(found)} findings</summary><ul>{items}</ul></details>'


def _execution_row(name: str, address: str, last: execute.Execution | None, found: list) -> str:
    state = "no" if last is None else f"FAILED, {last.failure}" if last.failure else "yes"
    hold = f"{sum(one.holds for one in found)} of {len(found)} hold" if found else "none"
    cells = [state, f"{last.seconds:.0f}" if last else "", hold]
    body = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
    return f'<tr><th scope="row"><a href="{address}.html">{name}</a></th>{body}</tr>'


def _executed(environment: Any, chapter: Path) -> Path:
    """The executed copy of a chapter; a page that shows it is built again when it changes."""
    path = Path(environment.srcdir) / execute.EXECUTED / chapter.name
    environment.note_dependency(str(path))
    return path


def _show_outputs(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the outputs of a chapter's execution into its source, and say on the page where they are missing."""
    chapter = Path(app.env.doc2path(docname))
    if chapter.suffix != ".ipynb":
        return
    path, notebook = _executed(app.env, chapter), json.loads(source[0])
    last = execute.last_execution(path)
    if last and last.made_of.get("code cells") != execute.code_digest(notebook):
        last = None
    if last:
        notebook = execute.with_outputs(notebook, json.loads(path.read_text("utf-8")))
    notebook = shown.chapter(notebook, docname)
    if last is None or last.failure:
        notebook = execute.marked(notebook, last and last.failure)
    source[0] = json.dumps(notebook)


def _note_terms(app: Sphinx, docname: str, source: list[str]) -> None:
    """A page is built again when a term changes."""
    app.env.note_dependency(str(glossary.SOURCE))


def _configure(app: Sphinx, config: Any) -> None:
    config.html_static_path.append(str(STATIC))
    if address := public_address(Path(app.srcdir)):
        config.html_theme_options |= {
            "repository_url": address,
            "repository_branch": os.environ.get("EXPLAINER_BRANCH", "main"),
            "path_to_docs": "",
            "use_repository_button": True,
            "use_edit_page_button": True,
            "use_issues_button": True,
            "launch_buttons": {
                "notebook_interface": "jupyterlab",
                "binderhub_url": "https://mybinder.org",
                "colab_url": "https://colab.research.google.com",
            },
        }


def _preview(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """The picture and the words that a shared link to the story shows."""
    if pagename != "book/story":
        return
    base = app.config.html_baseurl
    picture = f"{base.rstrip('/')}/_static/story.png" if base else context["pathto"]("_static/story.png", resource=True)
    said = {"title": f"{app.config.project}", "description": STORY, "type": "article", "image": picture}
    tags = "".join(f'<meta property="og:{k}" content="{html.escape(v, quote=True)}" />' for k, v in said.items())
    context["metatags"] = context.get("metatags", "") + tags


def _hosts(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    body = context.get("body", "")
    if 'class="math' in body:
        app.add_js_file("explainer/wide-math.js", loading_method="defer")
    if "xp-term" in body:
        app.add_js_file("explainer/terms.js", loading_method="defer")
    if 'class="xp-plotly"' in body:
        app.add_js_file("explainer/plotly-host.js", loading_method="defer")
    if 'class="xp-widget"' in body:
        app.add_js_file("explainer/afm-host.js", loading_method="defer")
        app.add_css_file(
            "explainer/explorables.css"
        )  # the still picture needs its colours before, or without, the module


def _finish(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    for file in (STATIC / "explainer").iterdir():  # Sphinx leaves static files alone when no page changed
        vendored.copy_if_changed(file, static / "explainer" / file.name)
    vendored.copy_if_changed(PACKAGE / "explorables" / "explorables.css", static / "explainer" / "explorables.css")
    (static / "explainer" / "glossary.json").write_text(json.dumps(glossary.definitions(), ensure_ascii=False), "utf-8")
    vendored.copy_plotly(static)
    vendored.copy_mathjax(static)
    vendored.subset_icon_fonts(Path(app.outdir))
    vendored.drop_inline_search(Path(app.outdir))


def _add_renderers() -> None:
    """Without an entry point, which would reach into every book on the machine: the list is cached where it is made."""
    plugins = load_mime_renders()
    plugins += [ours for ours in (FigureMime, CaptionMime, StaticMime, FrameMime, WidgetMime) if ours not in plugins]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    _add_renderers()
    bibliography.register()
    app.add_directive("explorable", Explorable)
    app.add_directive("drawing", DrawingDirective)
    app.add_directive("environment", Environment)
    app.add_directive("api", Api)
    app.add_directive("executions", Executions)
    app.add_directive("terms", glossary.Terms)
    app.add_directive("contents-of", contents.ContentsOf)
    app.add_directive("notation", notation.Notation)
    app.add_post_transform(Boxes)
    app.add_post_transform(Definitions)
    app.add_post_transform(Colours)
    app.add_css_file("explainer/site.css")
    app.connect("config-inited", _configure)
    app.connect("source-read", _show_outputs)
    app.connect("source-read", _note_terms)
    app.connect("html-page-context", _hosts)
    app.connect("html-page-context", _preview)
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
