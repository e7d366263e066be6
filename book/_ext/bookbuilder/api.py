"""The page of the package: what each module of a room offers, from its docstrings."""

import html
import inspect
import pkgutil
import re
from importlib import import_module
from types import ModuleType
from typing import Any


def room_html(room: str) -> str:
    """The modules of a room with their public functions and classes, as HTML."""
    return "".join(_module_html(import_module(f"explainer.{room}.{name}")) for name in modules(room))


def modules(room: str) -> list[str]:
    """The names of the modules of a room."""
    return sorted(found.name for found in pkgutil.iter_modules(import_module(f"explainer.{room}").__path__))


def public(module: ModuleType) -> dict[str, Any]:
    """The functions and classes that a module defines for others, in the order of its source."""
    own = {
        name: each
        for name, each in vars(module).items()
        if (inspect.isfunction(each) or inspect.isclass(each)) and each.__module__ == module.__name__ and name[0] != "_"
    }
    return dict(sorted(own.items(), key=lambda item: inspect.getsourcelines(item[1])[1]))


def _module_html(module: ModuleType) -> str:
    name = module.__name__.rpartition(".")[2]
    entries = "".join(f"<dt>{_call(n, each)}</dt><dd>{_text(each)}</dd>" for n, each in public(module).items())
    return (
        f'<h3 id="api-{name}"><code>{name}</code></h3><p>{_inline(_first(module))}</p><dl class="xp-api">{entries}</dl>'
    )


def _call(name: str, each: Any) -> str:
    """The call without its annotations, which the docstring says better."""
    if inspect.isclass(each) and issubclass(each, Exception):
        return f"<code>{name}</code>"
    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(each).parameters.values()]
    call = str(inspect.Signature(parameters))
    return f"<code>{html.escape(name + call)}</code>"


def _text(each: Any) -> str:
    """The first paragraph, and the rest to unfold."""
    first, _, rest = inspect.getdoc(each).partition("\n\n")
    more = f"<details><summary>More</summary><pre>{html.escape(rest)}</pre></details>" if rest else ""
    return f"{_inline(first)}{more}"


def _first(each: Any) -> str:
    return inspect.getdoc(each).partition("\n\n")[0]


def _inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(" ".join(text.split()), quote=False))
