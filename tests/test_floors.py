"""The package's rooms on their floors: a module imports from its own room or from below, and never in a circle."""

import ast
import graphlib
import re
import subprocess
import sys

import pytest
from conftest import ROOT

PACKAGE = ROOT / "src" / "explainer"
FLOORS = (
    {"errors", "palette"},
    {"theory", "data"},
    {"models"},
    {"compare"},
    {"results"},
    {"figures", "findings", "exercises"},
    {"explorables"},
    {"page"},
    {"command_answers"},
    {"commands"},
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
OUTSIDE = {"transformers", "datasets", "requests", "pathlib", "os", "plotly", "IPython"}
"""What reads files, models or notebooks."""


def modules() -> dict[str, str]:
    """The source of each module of a room, by its dotted name below the package."""
    paths = {path.relative_to(PACKAGE).with_suffix("").parts: path for path in PACKAGE.rglob("*.py")}
    paths.pop(("__init__",))
    return {".".join(p for p in parts if p != "__init__"): path.read_text("utf-8") for parts, path in paths.items()}


SOURCES = modules()
LAB = ROOT / "src" / "explainer_lab"
LAB_SOURCES = {path.stem: path.read_text("utf-8") for path in sorted(LAB.glob("*.py"))}


def imported(source: str) -> set[str]:
    """Dotted names that a source imports, at any depth of nesting."""
    nodes = list(ast.walk(ast.parse(source)))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {
        f"{node.module}.{alias.name}"
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def of_the_package(names: set[str]) -> set[str]:
    """The modules of rooms among dotted names: the longest part of each that is one."""
    below = [name.removeprefix("explainer.") for name in names if name.startswith("explainer.")]
    return {module for name in below if (module := name if name in SOURCES else name.rpartition(".")[0]) in SOURCES}


def test_a_module_imports_only_from_its_room_or_from_below():
    above = {
        (name, other)
        for name, source in SOURCES.items()
        for other in of_the_package(imported(source))
        if (room := other.partition(".")[0]) != (own := name.partition(".")[0]) and FLOOR[room] >= FLOOR[own]
    }
    assert above == set()


def test_the_package_and_the_notebooks_stand_without_the_laboratory():
    texts = {path.name: path.read_text("utf-8") for path in (ROOT / "book").rglob("*.ipynb")} | SOURCES
    of_the_lab = {name for name, text in texts.items() if re.search(r"(from|import) explainer_lab", text)}
    assert len(texts) > 100 and of_the_lab == set()


def test_there_are_no_circles():
    graph = {name: of_the_package(imported(source)) - {name} for name, source in SOURCES.items()}
    assert len(list(graphlib.TopologicalSorter(graph).static_order())) == len(SOURCES)
    lab = {
        name: {m for n in imported(source) for m in LAB_SOURCES if n.startswith(f"explainer_lab.{m}")} - {name}
        for name, source in LAB_SOURCES.items()
    }
    assert len(list(graphlib.TopologicalSorter(lab).static_order())) == len(LAB_SOURCES)


@pytest.mark.parametrize("name", [name for name in SOURCES if name.startswith("theory.") or name == "errors"])
def test_theory_reads_no_files_and_no_models(name):
    assert {n for n in imported(SOURCES[name]) if n.partition(".")[0] in OUTSIDE} == set()


def test_torch_is_imported_by_no_module_of_the_results_and_by_no_explorable_or_help():
    """Where nothing is estimated, nor is scipy."""
    results = ", ".join(f"explainer.{name}" for name in SOURCES if name.startswith("results."))
    light = ("explainer", "explainer.explorables", "explainer.commands", "explainer_lab.cli")
    for modules in (results, *light):
        code = f"import sys, {modules}; print({{'torch', 'scipy'}} & set(sys.modules))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == ("{'scipy'}\n" if modules == results else "set()\n")
