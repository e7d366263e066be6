"""The package's three floors: a module imports only from its own floor or below."""

import ast

from conftest import ROOT

PACKAGE = ROOT / "src" / "explainer"
GROUND = {
    "errors",
    "duality",
    "statistics",
    "checks",
    "metrics",
    "momentum",
    "linear_transformer",
    "quoted",
    "regression_prompts",
}
MIDDLE = {
    "assets",
    "package_index",
    "tasks",
    "checkpoints",
    "scoring",
    "heads",
    "families",
    "finetuning",
    "recording",
    "results",
    "interventions",
    "comparison",
    "engines",
    "study",
    "reporting",
    "momentum_models",
    "in_context_gpt",
    "deep_linear",
    "corpora",
    "mixture",
    "training",
    "runs",
    "regression_runs",
}
TOP = {"cli", "figures", "widgets", "controls", "site", "bench", "findings"}
FLOORS = (GROUND, MIDDLE, TOP)
FLOOR = {name: floor for floor, names in enumerate(FLOORS) for name in names}
MODULES = {path: path.relative_to(PACKAGE).with_suffix("").parts[0] for path in PACKAGE.rglob("*.py")}
OUTSIDE = {"transformers", "datasets", "requests", "pathlib", "os", "plotly", "IPython"}
"""What reads files, models or notebooks."""


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
    return {name.split(".")[1] for name in names if name.startswith("explainer.")} & FLOOR.keys()


def test_every_module_has_one_floor():
    assert set(MODULES.values()) - {"__init__"} == set(FLOOR)
    assert sum(map(len, FLOORS)) == len(FLOOR)


def test_imports_are_found():
    source = "import explainer.study\ndef f():\n    from explainer import metrics\n    from explainer.site.x import y\n"
    assert of_the_package(imported(source)) == {"study", "metrics", "site"}


def test_modules_import_only_downward():
    upward = {
        f"{path.relative_to(PACKAGE)} imports {name} from a floor above"
        for path, module in MODULES.items()
        for name in of_the_package(imported(path.read_text("utf-8")))
        if module in FLOOR and FLOOR[name] > FLOOR[module]
    }
    assert upward == set()


def test_ground_floor_reads_no_files_and_no_models():
    touched = {
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path, module in MODULES.items()
        if module in GROUND
        for name in imported(path.read_text("utf-8"))
        if name.partition(".")[0] in OUTSIDE
    }
    assert touched == set()
