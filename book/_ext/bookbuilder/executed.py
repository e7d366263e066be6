"""The executed copies of the chapters: what became of each, its findings, its outputs, and the record of the book.

`make findings` writes the record anew: which findings the pages of the published book showed, with their numbers, and
how long each page took. Pages quote it where a finding does not hold, and the longest chapters are executed first.
"""

import hashlib
import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bookbuilder.pages import reading_order
from explainer import findings
from explainer.data.files import replace_file

FOLDER = Path("_build", "executed")
KEY = "explainer"
"""What a copy's metadata call what is known of its execution."""
RECORD = Path("src", "explainer", "published", findings.RECORD)


@dataclass(frozen=True)
class Execution:
    """A chapter's last execution: what it was made of, how long it took, and why it failed, if it did."""

    made_of: Mapping[str, str]
    seconds: float
    failure: str | None


def chapters(root: Path = Path()) -> list[Path]:
    """The notebooks of the table of contents, in its order."""
    return [path for path in reading_order(root) if path.suffix == ".ipynb"]


def code_digest(notebook: Mapping[str, Any]) -> str:
    """Digest of the code cells: a change of a text executes nothing."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return digest(json.dumps([["".join(cell["source"]), cell["metadata"].get("tags", [])] for cell in cells]).encode())


def digest(content: bytes) -> str:
    """What tells contents apart."""
    return hashlib.sha256(content).hexdigest()[:16]


def last_execution(path: Path) -> Execution | None:
    """What an executed copy says of itself; None if there is none that can be read."""
    try:
        return Execution(**json.loads(path.read_text("utf-8"))["metadata"][KEY])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def failure(notebook: Mapping[str, Any], said: str) -> str:
    """Why a copy failed, by its outputs and by what nbmake says of it: the cell, the error, the remedy."""
    errors = [
        (number, output)
        for number, cell in enumerate(notebook["cells"])
        for output in cell.get("outputs", ())
        if output["output_type"] == "error"
    ]
    if errors:
        number, error = errors[-1]
        # An assert without words names itself by its line.
        trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error["traceback"]))
        line = re.search(r"^-+> \d+ (.*)$", trace, re.MULTILINE)
        what = error["evalue"] or (line[1].strip() if line else "no message")
        return f"cell {number}: {error['ename']}: {what.removesuffix('.')}. Mend what it names, or the cell (make lab)."
    if "died" in said or "crashed" in said:
        return "Its process was killed, most likely because memory ran out. Free memory, or run make book WORKERS=1."
    lines = [line for line in re.sub(r"\x1b\[[0-9;]*m", "", said).splitlines() if line.strip()]
    return f"{lines[min(1, len(lines) - 1)] if lines else 'no message'} (log.txt beside its copy may say more)."


def findings_of(path: Path) -> list[findings.Finding]:
    """The findings that an executed copy shows; none where there is no copy."""
    cells = json.loads(path.read_text("utf-8"))["cells"] if path.exists() else []
    bundles = (output.get("data", {}) for cell in cells for output in cell.get("outputs", ()))
    return [findings.Finding(**bundle[findings.MIME]) for bundle in bundles if findings.MIME in bundle]


def summary(copies: Iterable[Path], *, strict: bool) -> int:
    """Name what failed and the findings that do not hold, and return the exit code."""
    last = {path: last_execution(path) for path in copies}
    failed = [
        f"FAILED {path.stem}: {its.failure if its else 'not executed'}"
        for path, its in last.items()
        if not its or its.failure
    ]
    found = [(path.stem, one) for path in last for one in findings_of(path)]
    fails = [f"  {name}: {one.statement}: {one.comparison}" for name, one in found if not one.holds]
    heading = [f"{len(fails)} findings did not hold on this machine:"] * bool(fails)
    print("\n".join([*failed, *heading, *fails]), end="\n" * bool(failed or fails), file=sys.stderr)
    return int(bool(failed) or (strict and bool(fails)))


def with_outputs(source: Mapping[str, Any], copy: Mapping[str, Any]) -> dict[str, Any]:
    """A notebook with the outputs of its executed copy: texts may have changed since, code cells have not."""
    ran = (cell for cell in copy["cells"] if cell["cell_type"] == "code")
    cells = [
        cell | {name: its for name, its in next(ran).items() if name in ("outputs", "execution_count")}
        if cell["cell_type"] == "code"
        else cell
        for cell in source["cells"]
    ]
    widgets = {name: its for name, its in copy["metadata"].items() if name == "widgets"}
    return {**source, "cells": cells, "metadata": {**source["metadata"], **widgets}}


# The record.


def record() -> dict[str, Any]:
    """The record of the published book; an empty one where there is none."""
    return json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {"chapters": {}}


def expected_seconds() -> dict[str, float]:
    """How long each chapter takes: as measured here, else as recorded."""
    recorded = {name: chapter["seconds"] for name, chapter in record()["chapters"].items()}
    here = {path.stem: last_execution(path) for path in FOLDER.glob("*.ipynb")}
    return recorded | {name: one.seconds for name, one in here.items() if one and not one.failure}


def new_record() -> dict[str, Any]:
    """A record of what was executed here; raises ValueError where a chapter failed or a statement is made twice."""
    chapters_, statements, made_of = {}, set(), {}
    for path in (FOLDER / chapter.name for chapter in chapters()):
        last, found = last_execution(path), findings_of(path)
        if last is None or last.failure:
            raise ValueError(f"{path.stem} was not executed, or failed; mend it (make book), then record.")
        for one in found:
            if one.statement in statements:
                raise ValueError(f"{one.statement!r} is said twice; each finding needs a statement of its own.")
            statements.add(one.statement)
        # Four significant digits: more would differ from machine to machine.
        rounded = [asdict(f) | {name: float(f"{getattr(f, name):.4g}") for name in ("value", "bound")} for f in found]
        chapters_[path.stem] = {"seconds": last.seconds, "findings": rounded}
        made_of = last.made_of
    return {"processor": made_of.get("processor"), "versions": made_of.get("versions"), "chapters": chapters_}


if __name__ == "__main__":
    replace_file(RECORD, json.dumps(new_record(), indent=1, ensure_ascii=False) + "\n")
    print(f"{RECORD}: {sum(len(chapter['findings']) for chapter in record()['chapters'].values())} findings")
