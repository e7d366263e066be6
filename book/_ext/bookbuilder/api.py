"""The page of the package, made of its docstrings, and the way from each chapter and each function to its source.

A source is a page of the site: the lines that made what the page shows, also without a network.
"""

import ast
import html
import inspect
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from IPython.core.inputtransformer2 import TransformerManager
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename

import explainer
from explainer.explorables import Explorable

PACKAGE = Path(explainer.__file__).parent
SOURCES = Path("_static", "explainer", "code")
"""Where the site shows the files of the package."""


# The way to a source.


def address(file: Path, page: str, line: int = 0) -> str:
    """The address of a file of the package, at a line, as a link from a page of the book."""
    at = f"#L-{line}" if line else ""
    return f"{os.path.relpath(SOURCES, Path(page).parent)}/{file.relative_to(PACKAGE).as_posix()}.html{at}"


def write_sources(site: Path) -> None:
    """Show every file of the package that code can be in, with numbered lines, where that page is not up to date."""
    files = [path for kind in ("py", "js") for path in PACKAGE.rglob(f"*.{kind}")]
    pages = {site / SOURCES / f"{file.relative_to(PACKAGE)}.html": file for file in files}
    for page, file in pages.items():
        if not page.exists() or page.stat().st_mtime < file.stat().st_mtime:
            page.parent.mkdir(parents=True, exist_ok=True)
            form = HtmlFormatter(full=True, title=f"explainer/{file.name}", linenos="inline", linespans="L")
            page.write_text(highlight(file.read_text("utf-8"), get_lexer_for_filename(file.name), form), "utf-8")
    for stale in set((site / SOURCES).rglob("*.html")) - set(pages):
        stale.unlink()


# The code of a chapter.


def code_line(notebook: Mapping[str, Any], page: str) -> str:
    """The line "Code: notebook, theory/duality.py, ...", each a link; "" for a notebook without the package.

    Cells that the page does not show, such as those that draw, are in the notebook.
    """
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    plain = "\n".join(map(TransformerManager().transform_cell, cells))  # magics and commands of the shell as calls
    names = sorted(file.relative_to(PACKAGE).as_posix() for file in files_of(plain))
    own = f'<a href="{os.path.relpath("_sources", Path(page).parent)}/{page}.ipynb">the notebook of this page</a>'
    links = own, *(f'<a href="{address(PACKAGE / name, page)}">{name}</a>' for name in names)
    return f'<p class="xp-code">Code: {", ".join(links)}</p>' if names else ""


def files_of(code: str) -> set[Path]:
    """The files of the modules that some code imports from the package, or whose functions it uses."""
    tree, space, found = ast.parse(code), {}, []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and "explainer" in (said := ast.unparse(node)):
            exec(said, space)  # an import of our own committed text
            found.append(sys.modules.get(getattr(node, "module", None)))

    def named(node: ast.AST) -> Any:
        """What a name or an attribute of a module stands for."""
        if isinstance(node, ast.Attribute) and isinstance(owner := named(node.value), ModuleType):
            return getattr(owner, node.attr, None)
        return space.get(node.id) if isinstance(node, ast.Name) else None

    used = [*found, *space.values(), *map(named, ast.walk(tree))]
    explorables = [each for each in used if isinstance(each, type) and issubclass(each, Explorable)]
    drawings = {each.folder / "js" / f"{each.name}.js" for each in explorables}
    return {_file(each) for each in used} - {None} | drawings


def _file(each: Any) -> Path | None:
    """The file of a module of the package, or of the module that defines a function or class."""
    module = each if isinstance(each, ModuleType) else sys.modules.get(getattr(each, "__module__", None))
    inside = module is not None and f"{module.__name__}.".startswith("explainer.")
    return Path(module.__file__) if inside and not hasattr(module, "__path__") else None


# The page of the package.


def api(here: Directive) -> list[nodes.Node]:
    """`{api}`: a section for every room of the package, with its modules and what they offer to others."""
    environment = here.state.document.settings.env
    link = partial(address, page=environment.docname)
    sections = []
    for room, modules in rooms().items():
        title = room.__name__.partition(".")[2] or "explainer"
        body = f"<p>{_inline(_first(room))}</p>" + "".join(_module_html(module, link) for module in modules)
        section = nodes.section("", nodes.title("", title), ids=[f"room-{title}"])
        section += nodes.raw("", body, format="html")
        sections.append(section)
        for module in modules:
            environment.note_dependency(module.__file__)
    return sections


def rooms() -> dict[ModuleType, list[ModuleType]]:
    """Every package of the package with its modules: what is there when the page is made."""
    found = {explainer: []}
    for info in pkgutil.walk_packages([str(PACKAGE)], "explainer."):
        if not info.name.endswith("__main__"):
            module = import_module(info.name)
            if info.ispkg:
                found[module] = []
            else:
                found[import_module(info.name.rpartition(".")[0])].append(module)
    return {room: modules for room, modules in found.items() if modules}


def public(module: ModuleType) -> dict[str, Any]:
    """The functions and classes that a module defines for others, in the order of its source."""
    own = {
        name: each
        for name, each in vars(module).items()
        if (inspect.isfunction(each) or inspect.isclass(each)) and each.__module__ == module.__name__ and name[0] != "_"
    }
    return dict(sorted(own.items(), key=lambda item: _line(item[1])))


def _line(each: Any) -> int:
    return inspect.getsourcelines(each)[1]


def _module_html(module: ModuleType, link: Callable[..., str]) -> str:
    name, file = module.__name__.rpartition(".")[2], Path(module.__file__)
    entries = "".join(
        f'<dt>{_call(n, each)} <a href="{link(file, line=_line(each))}" aria-label="Source of {n}">source</a></dt>'
        f"<dd>{_text(each)}</dd>"
        for n, each in public(module).items()
    )
    head = f'<h3 id="api-{module.__name__}"><a href="{link(file)}"><code>{name}</code></a></h3>'
    return f'{head}<p>{_inline(_first(module))}</p><dl class="xp-api">{entries}</dl>'


def _call(name: str, each: Any) -> str:
    """The call without its annotations, which the docstring says better."""
    if inspect.isclass(each) and issubclass(each, Exception):
        return f"<code>{name}</code>"
    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(each).parameters.values()]
    called = f"{name}{inspect.Signature(parameters)}"
    named = re.sub(r"<function (\S+) at 0x\w+>", r"\1", called)  # its address is another in every build
    return f"<code>{html.escape(named)}</code>"


def _text(each: Any) -> str:
    """The first paragraph, and the rest to unfold."""
    _, _, rest = (inspect.getdoc(each) or "").partition("\n\n")
    more = f"<details><summary>More</summary><pre>{html.escape(rest)}</pre></details>" if rest else ""
    return _inline(_first(each)) + more


def _first(each: Any) -> str:
    return (inspect.getdoc(each) or "").partition("\n\n")[0]


def _inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(" ".join(text.split()), quote=False))
