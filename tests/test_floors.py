"""The package's three floors: a module imports only from its own floor or below."""

import ast

import pytest
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
TOP = {"cli", "figures", "widgets", "controls", "site", "bench"}
FLOOR = dict.fromkeys(GROUND, 0) | dict.fromkeys(MIDDLE, 1) | dict.fromkeys(TOP, 2)
FILES = sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def _module(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def _imported(path):
    """Names of our own modules that a file imports, at any depth of nesting."""
    for node in ast.walk(ast.parse(path.read_text("utf8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "explainer":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("explainer."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("explainer."))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_module_imports_only_downward(path):
    own = FLOOR[_module(path)]
    for name in _imported(path):
        if name in FLOOR:
            assert FLOOR[name] <= own, f"{path.name} imports {name} from a floor above"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_ground_floor_reads_no_files_and_no_models(path):
    if FLOOR[_module(path)] == 0:
        roots = {
            alias.name.split(".")[0]
            for n in ast.walk(ast.parse(path.read_text("utf8")))
            if isinstance(n, ast.Import)
            for alias in n.names
        }
        roots |= {
            n.module.split(".")[0]
            for n in ast.walk(ast.parse(path.read_text("utf8")))
            if isinstance(n, ast.ImportFrom) and n.module
        }
        assert not roots & {"transformers", "datasets", "requests", "pathlib", "os", "plotly", "IPython"}
