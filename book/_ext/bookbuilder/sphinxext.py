"""Sphinx extension of the book: boxes, terms, colours, addresses, and the files a page needs to stand alone."""

import json
import os
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_nb.core.render import load_mime_renders
from pybtex.plugin import register_plugin
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

import explainer
from bookbuilder import bibliography, colours, executed, glossary, notation, search, sheets, shown, teaching, vendored
from bookbuilder.directives import contents_of, directive, drawing, environment, executed_copy, executions, explorable
from bookbuilder.explorables import put_stills
from bookbuilder.numbering import numbered, write_pages
from bookbuilder.pages import main_line, path_of, title
from bookbuilder.renderers import PLUGINS
from bookbuilder.repository import branch, public_address, site_address
from bookbuilder.translation import Edition, editions, translated
from explainer.palette import palette_css

_STATIC = Path(__file__).parent / "static"
_BOXES = {  # a block quote that opens with one of these words in bold becomes a box on the page
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
_SCRIPTS = {  # what a page's HTML has, and what then serves it
    'class="math': "wide-math.js",
    "xp-term": "terms.js",
    'class="xp-plotly"': "plotly-host.js",
    'class="xp-widget"': "afm-host.js",
    'id="xp-figures"': "figures.js",
}
_FORMULA_AND_MARK = re.compile(r'(<span class="math[^>]*>[^<]*</span>)([，。：；？！、）.,:;?!)]+)')
"""No line begins with a mark that ends something."""


def edition_of(app: Sphinx) -> Edition | None:
    """The language that is being built, None for English."""
    return Edition(Path(app.config.book_edition)) if app.config.book_edition else None


class Translated(SphinxPostTransform):
    """What Sphinx leaves of a translated page: words in displayed formulas, and links to pages that stay English."""

    default_priority = 8  # before references are resolved

    def run(self, **_: Any) -> None:
        """Replace them in place; a link says that its page is English."""
        edition, root = edition_of(self.app), Path(self.app.srcdir)
        if edition is None:
            return
        formulas = edition.texts("formulas")
        for formula in self.document.findall(nodes.math_block):
            latex = " ".join(formula.astext().split())
            if latex in formulas:
                formula.clear()
                formula.append(nodes.Text(formulas[latex]))
        here = Path(edition.settings["address"], self.env.docname).parent
        for link in list(self.document.findall(addnodes.pending_xref)):
            name = link["reftarget"]
            if link.get("refdomain") == "doc" and name not in self.env.found_docs:
                anchor = f"#{link['reftargetid']}" if link["reftargetid"] else ""
                words = link.children[0].children or [nodes.Text(title(path_of(name, root)))]
                way = f"{os.path.relpath(name, here)}.html{anchor}"
                said = nodes.Text(edition.settings["english"])
                link.replace_self(nodes.reference("", "", *words, said, refuri=way, internal=True))


class Boxes(SphinxPostTransform):
    """Block quotes that open with a bold key word become boxes: plain Markdown in Colab, an admonition on the site."""

    default_priority = 700

    @property
    def boxes(self) -> dict[str, str]:
        """The kinds of boxes by the words that open them in the language of the page."""
        edition = edition_of(self.app)
        return {edition.settings["boxes"][word]: kind for word, kind in _BOXES.items()} if edition else _BOXES

    def run(self, **_: Any) -> None:
        """Replace each such quote in place."""
        for quote in list(self.document.findall(nodes.block_quote)):
            first = quote.next_node(nodes.paragraph)
            while first is not None and first.children and not first[0].astext():
                first.pop(0)  # the parser may leave an empty text before the bold words
            if first is None or not first.children or not isinstance(first[0], nodes.strong):
                continue
            title = first[0].astext().rstrip(".:")
            kind = next((box for word, box in self.boxes.items() if title.startswith(word)), None)
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
            edition = edition_of(self.app)
            page = self.env.docname.rpartition("/")[2]
            glossary.mark(self.document, address, page, edition and edition.folder)


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


def _read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the outputs of a chapter's execution into its source, and say on the page where they are missing."""
    app.env.note_dependency(str(glossary.SOURCE))
    chapter = Path(app.env.doc2path(docname))
    if chapter.suffix != ".ipynb":
        return
    path, notebook = executed_copy(app.env, chapter), json.loads(source[0])
    last = executed.last_execution(path)
    if last and last.made_of.get("code cells") != executed.code_digest(notebook):
        last = None
    if last:
        notebook = executed.with_outputs(notebook, json.loads(path.read_text("utf-8")))
        put_stills(notebook)
    notebook = shown.chapter(notebook, docname, public_address(Path(app.srcdir)))
    if last is None or last.failure:
        notebook = shown.marked(notebook, last and last.failure)
    source[0] = json.dumps(notebook)


def _configure(app: Sphinx, config: Any) -> None:
    config.html_static_path.append(str(_STATIC))
    config.templates_path.append(str(_STATIC.with_name("templates")))
    site = config.html_baseurl or site_address(Path(app.srcdir)) or ""
    config.html_baseurl = f"{site}{edition_of(app).settings['address']}/" if site and config.book_edition else site
    config.ogp_site_url, config.ogp_site_name = config.html_baseurl, config.html_title
    if site:
        config.ogp_image = f"{site}_static/laboratory.png"
        config.sitemap_url_scheme, config.sitemap_excludes = "{link}", ["search.html", "genindex.html"]
    if address := public_address(Path(app.srcdir)):
        config.html_theme_options |= {
            "repository_url": address,
            "repository_branch": branch(),
            "path_to_docs": "",
            "use_repository_button": True,
            "use_edit_page_button": branch() == "main",  # a tag cannot be edited,
            "launch_buttons": {
                "notebook_interface": "jupyterlab",
                "binderhub_url": "https://mybinder.org",
                "colab_url": "https://colab.research.google.com",
            },
        }


def _declare_parallel(app: Sphinx, *_: Any) -> None:
    """Two extensions that Jupyter Book loads do not say that they keep nothing from page to page."""
    for name in ("sphinx_jupyterbook_latex", "sphinx_multitoc_numbering"):
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True


def _page(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """Give a page the scripts that it needs and a button for errors."""
    body, edition = context.get("body", ""), edition_of(app)
    if pagename != teaching.SLIDES:
        body = numbered(body, pagename, Path(app.srcdir), app.config.html_title)
    if edition:
        body = translated(body, edition.said)
    if body:
        context["body"] = body = _FORMULA_AND_MARK.sub(r'<span class="xp-together">\1\2</span>', body)
    app.add_js_file("explainer/print.js", loading_method="defer")  # before what is drawn in the colours of the page
    for mark, script in _SCRIPTS.items():
        if mark in body:
            app.add_js_file(f"explainer/{script}", loading_method="defer")
    if 'class="xp-widget"' in body:  # the still picture needs its colours before, or without, the module
        app.add_css_file("explainer/explorables.css")
        if edition:
            app.add_js_file("explainer/words.js", loading_method="defer")
    if doctree is not None:
        write_pages(app, pagename, context, edition)
        words = edition.settings["report"] if edition else shown.REPORT
        context["report"] = shown.report(pagename, context["title"], public_address(Path(app.srcdir)), words)
        app.add_js_file("explainer/report.js", loading_method="defer")


def _switch(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """Lead from each page to the same one in the other language, or, and say so, to the first where there is none."""
    if doctree is None:
        return
    here, root = edition_of(app), Path(app.srcdir)
    for edition in editions(root):
        ours = set(main_line(root))
        folder, other = edition.settings["address"], pagename if pagename in ours else "book/intro"
        start = Path(folder, pagename).parent if here else Path(pagename).parent
        place = os.path.relpath(Path(*([] if here else [folder]), f"{other}.html"), start)
        tag, name = ("en", "English") if here else (edition.settings["tag"], edition.settings["name"])
        name, why = (name, name) if pagename in ours else (edition.settings["start"], edition.settings["only_english"])
        context["header_buttons"].insert(0, {
            "type": "link", "url": place, "text": name, "tooltip": why, "label": "xp-language", "icon": "",
        })  # fmt: skip
        if pagename in ours:
            link = f'<link rel="alternate" hreflang="{tag}" href="{place}" />'
            context["metatags"] = context.get("metatags", "") + link
        app.add_js_file("explainer/language.js", loading_method="defer")


def _finish(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.format != "html":
        return
    static, edition = Path(app.outdir) / "_static", edition_of(app)
    styles = Path(explainer.__file__).with_name("explorables") / "explorables.css"
    (static / "explainer" / "palette.css").write_text(palette_css(), "utf-8")
    for file in (*(_STATIC / "explainer").iterdir(), styles):  # Sphinx leaves them alone when no page changed
        vendored.copy_if_changed(file, static / "explainer" / file.name)
    for script in (static / "explainer").glob("*.js"):  # what a page loads first has a budget: no line of comment
        script.write_text(re.sub(r"^ *// .*\n", "", script.read_text("utf-8"), flags=re.MULTILINE), "utf-8")
    definitions = {term.identity: term.definition for term in glossary.terms(edition and edition.folder)}
    (static / "explainer" / "glossary.json").write_text(json.dumps(definitions, ensure_ascii=False), "utf-8")
    if edition:
        (static / "explainer" / "words.js").write_text(edition.script(), "utf-8")
    vendored.copy_packages(static)
    vendored.subset_icon_fonts(Path(app.outdir))
    vendored.drop_inline_search(Path(app.outdir))


_DIRECTIVES = {
    "explorable": explorable,
    "drawing": drawing,
    "environment": environment,
    "executions": executions,
    "terms": glossary.terms_of_the_book,
    "contents-of": contents_of,
    "notation": notation.notation,
    "figure-of": teaching.figure_of,
    "problems": sheets.problems,
    "teaching": teaching.teaching,
}


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    plugins = load_mime_renders()  # no entry point, which would reach into every book here: the list itself is kept
    plugins += [ours for ours in PLUGINS if ours not in plugins]
    register_plugin("pybtex.style.formatting", "checked", bibliography.Checked)  # `:style: checked`
    for name, run in _DIRECTIVES.items():
        app.add_directive(name, directive(run))
    for transform in (Translated, Boxes, Definitions, Colours):
        app.add_post_transform(transform)
    app.add_config_value("book_edition", "", "env")
    app.add_search_language(search.English)
    app.add_search_language(search.Chinese)
    app.add_css_file("explainer/palette.css")
    app.add_css_file("explainer/site.css")
    if site_address(Path(app.srcdir)):  # no address is invented
        app.setup_extension("sphinx_sitemap")
    app.connect("config-inited", _configure)
    app.connect("env-before-read-docs", _declare_parallel)
    app.connect("source-read", _read)
    app.connect("html-page-context", _page)
    app.connect("html-page-context", _switch, priority=900)
    app.connect("html-page-context", teaching.as_slides)
    app.connect("build-finished", _finish)
    # Another number reads every page anew: what an older version of this extension made of them is no more valid.
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 6}
