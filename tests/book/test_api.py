"""The page of the package and the way to the code: every module, once, and links that lead to the right line."""

import inspect
import re
from functools import cached_property
from types import ModuleType
from typing import get_args, get_origin

import pytest
from small_book import code_cell, notebook_of

from bookbuilder import api
from explainer.theory import duality

HERE = "book/chapters/page"


def test_public_are_the_functions_and_classes_that_a_module_defines_in_the_order_of_its_source():
    names = list(api.public(duality))
    assert names[:2] == ["linear_attention", "gradient_descent_update"]
    assert not {name for name in names if name[0] == "_" or name in ("Tensor", "NamedTuple")}


def test_every_module_is_on_the_page():
    """What a folder has is what the page has; nothing is listed by hand."""
    shown = {module.__file__ for modules in api.rooms().values() for module in modules}
    written = {str(path) for path in api.PACKAGE.rglob("*.py") if path.stem not in ("__init__", "__main__")}
    assert shown == written


def _own_classes(annotation, module):
    """The classes of the package that an annotation names."""
    if isinstance(annotation, str):  # of a class that is defined further down
        annotation = eval(annotation, vars(module))
    kind = get_origin(annotation) or annotation
    own = {kind} if inspect.isclass(kind) and kind.__module__.startswith("explainer.") else set()
    return own.union(*(_own_classes(each, module) for each in get_args(annotation)))


def _offered(module):
    """The functions and methods that a module offers to others."""
    for name, each in api.public(module).items():
        yield from [(name, each)] if inspect.isfunction(each) else _methods(name, each)


def _methods(name, kind):
    for inner, each in vars(kind).items():
        made = each.fget if isinstance(each, property) else each.func if isinstance(each, cached_property) else each
        function = getattr(made, "__func__", made)  # of a class method
        if inspect.isfunction(function) and inner[0] != "_":
            yield f"{name}.{inner}", function


def _hidden(modules):
    """What is returned and is not on the page, by the function that returns it."""
    shown = {each for module in modules for each in api.public(module).values()}
    return {
        f"{module.__name__}.{name}": kinds
        for module in modules
        for name, each in _offered(module)
        if (kinds := _own_classes(inspect.signature(each).return_annotation, module) - shown)
    }


def test_what_is_returned_to_others_is_on_the_page():
    made_up = ModuleType("explainer.made_up")
    exec("class _Kept: ...\nclass Shown:\n @property\n def kept(self) -> list['_Kept']: ...", vars(made_up))
    ((name, kept),) = _methods("Shown", made_up.Shown)
    assert name == "Shown.kept"
    assert _own_classes(inspect.signature(kept).return_annotation, made_up) == {made_up._Kept}
    modules = [module for modules in api.rooms().values() for module in modules]
    assert len([name for module in modules for name, _ in _offered(module)]) > 300
    assert _hidden(modules) == {}


def test_a_docstring_is_text():
    module = ModuleType("explainer.theory.made_up", "A <b> & `code`.")
    module.__file__ = "made_up.py"
    text = api._module_html(module, lambda file, line=0: "there")
    assert text.endswith('<p>A &lt;b&gt; &amp; <code>code</code>.</p><dl class="xp-api"></dl>')


def test_a_default_that_is_a_function_has_its_name():
    assert api._call("f", lambda x, by=_offered: ...) == "<code>f(x, by=_offered)</code>"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("from explainer.theory import duality", {"theory/duality.py"}),
        ("from explainer.theory.duality import linear_attention as f", {"theory/duality.py"}),
        ("import explainer.theory.duality as d", {"theory/duality.py"}),
        ("import explainer.theory.duality\nexplainer.theory.duality.linear_attention", {"theory/duality.py"}),
        ("import explainer, torch\ntorch.zeros(1)", set()),
        ("from explainer import figures\nfigures.curves(x)", {"figures/forms.py"}),
        ("from explainer.figures import PLOTLY_MIME, curves", {"figures/forms.py"}),
        ("from explainer.explorables import OneStep", {"explorables/computed.py", "explorables/js/one_step.js"}),
    ],
)
def test_files_of_code(code, expected):
    assert {path.relative_to(api.PACKAGE).as_posix() for path in api.files_of(code)} == expected


def test_the_line_of_a_chapter_leads_to_the_source():
    notebook = notebook_of(
        [code_cell("%pip list\nout = !ls \\\n    -l\nfrom explainer.theory import duality"), code_cell("duality.f()")]
    )
    own = f'<a href="../../_sources/{HERE}.ipynb">the notebook of this page</a>'
    file = '<a href="../../_static/explainer/code/theory/duality.py.html">theory/duality.py</a>'
    assert api.code_line(notebook, HERE) == f'<p class="xp-code">Code: {own}, {file}</p>'
    assert api.code_line(notebook_of([code_cell("1")]), HERE) == ""


def test_links_of_the_site_lead_to_their_lines(site):
    """Of the page of the package and of a chapter; every source is there, and every line of it."""
    for name in ("reference/api", "chapters/linear_transformer"):
        page = site / "book" / f"{name}.html"
        found = re.findall(r'href="([^"#]*_static/explainer/code/[^"#]+)(?:#([^"]+))?"', page.read_text("utf-8"))
        assert found
        texts = {path: (page.parent / path).read_text("utf-8") for path in {path for path, _ in found}}
        assert all(not line or f'id="{line}"' in texts[path] for path, line in found)
