"""How much of the code that a reader sees is plumbing, chapter by chapter: `python -m bookbuilder.plumbing book`.

Counted are the lines of visible cells (no tag hide-input, hide-cell or remove-*) that are neither blank nor a comment.
A line is plumbing if the simple statement it belongs to

- imports something;
- lays out or describes a figure or a table: it calls a function of `LAYOUT` or a method of a chapter's `Texts`, or
  it gives a value to nothing but names like `title` and `caption` (`DESCRIBING`). A data frame is a result and does
  not count;
- prints with padding: a format with a width or an alignment, a run of three spaces, `ljust` and the like;
- reaches for paths, files or a file of grids (`FILES`); which stored results are compared says what a chapter is about;
- sets up progress bars, threads, warnings or clocks (`SETTINGS`).

A statement with any such call counts with all its lines; of compound statements only the bodies are looked at, since
their heads say what is done. `--lines` shows what was found.
"""

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BAR = 0.1
LAYOUT = frozenset({
    "Captioned", "Texts", "drawing", "live", "Figure", "Table", "make_subplots", "for_each_trace", "set_caption",
    "update_layout", "update_xaxes", "update_yaxes", "update_traces", "update_annotations", "add_annotation",
    "add_trace", "add_traces", "add_scatter", "add_bar", "add_heatmap", "add_hline", "add_vline", "add_hrect",
    "add_vrect", "add_shape",
})  # fmt: skip
DESCRIBING = re.compile(r"(?:\w+_)?(?:titles?|captions?|alts?|made|origins?|ticktext|tickvals)")
FILES = frozenset({
    "Path", "open", "read_text", "write_text", "exists", "glob", "load", "loads", "read_grids",
    "published_directory", "Store", "getenv",
})  # fmt: skip
SETTINGS = frozenset({
    "tqdm", "trange", "perf_counter", "process_time", "time", "set_num_threads", "set_num_interop_threads",
    "filterwarnings", "simplefilter", "set_option", "set_printoptions", "set_verbosity_error",
    "disable_progress_bar",
})  # fmt: skip
NOT_FILES = frozenset({"checkpoints", "tasks", "corpora", "exercises"})
"""Modules whose `load` says what a chapter is about, not where it lies."""
_PADS = re.compile(r".?[<>^=]|[+\- ]?#?0?[1-9]")
_COMPOUND = (ast.For, ast.While, ast.If, ast.With, ast.Try, ast.FunctionDef, ast.ClassDef, ast.Match, ast.AsyncFor)


class Count(NamedTuple):
    """The visible lines of code of a chapter, and those that are plumbing as (cell's id, line)."""

    lines: int
    plumbing: list[tuple[str, str]]

    @property
    def share(self) -> float:
        """Plumbing among all lines."""
        return len(self.plumbing) / self.lines if self.lines else 0.0


def visible(cell: dict) -> bool:
    """Whether a reader of the site sees the code of a cell."""
    tags = cell["metadata"].get("tags", [])
    return cell["cell_type"] == "code" and not any(t.startswith(("hide-input", "hide-cell", "remove-")) for t in tags)


def count(notebook: dict) -> Count:
    """Count the visible lines of a notebook (as parsed JSON)."""
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    described = {name for cell in code for name in _texts(_parsed(cell))}
    total, found = 0, []
    for cell in filter(visible, code):
        lines = "".join(cell["source"]).split("\n")
        written = {i for i, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")}
        total += len(written)
        statements = [s for s in _simple_statements(_parsed(cell)) if _is_plumbing(s, described)]
        its = {i for s in statements for i in range(s.lineno, s.end_lineno + 1)} & written
        found += [(cell.get("id", ""), lines[i - 1]) for i in sorted(its)]
    return Count(total, found)


def _parsed(cell: dict) -> ast.Module:
    """The code of a cell; magics are no Python and stand as comments."""
    return ast.parse(re.sub(r"^(\s*)[%!].*", r"\1pass", "".join(cell["source"]), flags=re.MULTILINE))


def _simple_statements(tree: ast.AST) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not isinstance(node, _COMPOUND):
            yield node


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _calls(node: ast.AST) -> list[ast.Call]:
    return [each for each in ast.walk(node) if isinstance(each, ast.Call)]


def _texts(tree: ast.Module) -> list[str]:
    """Names that hold the texts of a chapter."""
    given = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)]
    return [target.id for node in given if _name(node.value.func) == "Texts" for target in node.targets]


def _is_plumbing(statement: ast.stmt, described: set[str]) -> bool:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    if isinstance(statement, ast.Assign) and all(
        isinstance(target, ast.Name) and DESCRIBING.fullmatch(target.id) for target in statement.targets
    ):
        return True
    return any(_is_plumbing_call(call, described) for call in _calls(statement))


def _is_plumbing_call(call: ast.Call, described: set[str]) -> bool:
    name, owner = _name(call.func), _name(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if name in LAYOUT or owner in described:
        return True
    if name in SETTINGS or (name in FILES and owner not in NOT_FILES):
        return True
    return name == "print" and _pads(call)


def _pads(call: ast.Call) -> bool:
    """Whether a print sets columns."""
    for node in ast.walk(call):
        if isinstance(node, ast.FormattedValue) and node.format_spec and node.format_spec.values:
            first = node.format_spec.values[0]
            if isinstance(first, ast.Constant) and _PADS.match(first.value):
                return True
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "   " in node.value:
            return True
        if isinstance(node, ast.Call) and _name(node.func) in ("ljust", "rjust", "center", "zfill"):
            return True
    return False


def chapters(folder: Path) -> dict[str, Count]:
    """The counts of the notebooks in a folder, by their names."""
    return {path.stem: count(json.loads(path.read_text("utf-8"))) for path in sorted(folder.glob("*.ipynb"))}


def main(arguments: list[str] | None = None) -> int:
    """Print the share of plumbing of every chapter in a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lines", action="store_true", help="show the lines that were found")
    options = parser.parse_args(arguments)
    for name, its in chapters(options.folder).items():
        print(f"{name}: {len(its.plumbing)} of {its.lines} lines, {its.share:.1%}")
        if options.lines:
            print("".join(f"    {cell}: {line}\n" for cell, line in its.plumbing), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
