"""The record of the published book: which findings its pages showed, with their numbers, and how long each page took.

`make findings` writes it anew from the chapters that `make book` executed. Pages quote it where a finding does not
hold, and the build orders the chapters by it.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bookbuilder import execute
from explainer import findings
from explainer.data.files import replace_file

PATH = Path("src", "explainer", "published", findings.RECORD)


def read() -> dict[str, Any]:
    """The record; an empty one where there is none."""
    return json.loads(PATH.read_text("utf-8")) if PATH.exists() else {"chapters": {}}


def expected_seconds() -> dict[str, float]:
    """How long each chapter takes: as measured here, else as recorded."""
    recorded = {name: chapter["seconds"] for name, chapter in read()["chapters"].items()}
    here = {path.stem: execute.last_execution(path) for path in execute.EXECUTED.glob("*.ipynb")}
    return recorded | {name: one.seconds for name, one in here.items() if one and not one.failure}


def executed_findings() -> dict[str, list[findings.Finding]]:
    """The findings of every executed chapter, by its name, in the order of the book."""
    paths = [execute.EXECUTED / chapter.name for chapter in execute.chapters()]
    return {path.stem: execute.findings_of(path) for path in paths if path.exists()}


def of_executed() -> dict[str, Any]:
    """A record of what was executed here; raises FindingError unless every statement is made once."""
    found = executed_findings()
    statements = [one.statement for chapter in found.values() for one in chapter]
    for statement in statements:
        if statements.count(statement) > 1:
            raise findings.FindingError(f"{statement!r} is said twice; each finding needs a statement of its own.")
    last = {name: execute.last_execution(execute.EXECUTED / f"{name}.ipynb") for name in found}
    for name, execution in last.items():
        if execution.failure:
            raise findings.FindingError(f"{name} failed ({execution.failure}); mend it, then record.")
    made = next(iter(last.values())).made_of if last else {}
    chapters = {name: {"seconds": last[name].seconds, "findings": [_numbers(f) for f in found[name]]} for name in found}
    return {"processor": made.get("processor"), "versions": made.get("versions"), "chapters": chapters}


def _numbers(finding: findings.Finding) -> Mapping[str, Any]:
    """Four significant digits: more would differ from machine to machine."""
    rounded = {name: float(f"{getattr(finding, name):.4g}") for name in ("value", "bound")}
    return asdict(finding) | rounded


if __name__ == "__main__":
    replace_file(PATH, json.dumps(of_executed(), indent=1, ensure_ascii=False) + "\n")
    print(f"{PATH}: {sum(map(len, executed_findings().values()))} findings")
