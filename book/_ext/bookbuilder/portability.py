"""`make portability`: do the chapters and the numerical tests hold elsewhere?

Each *row* is an environment: other vector instructions, other numbers of threads, the oldest packages that
`pyproject.toml` admits, other seeds. In each, all chapters run to their end, no assert fails, and every finding holds;
for other seeds, in all but one of twenty. The report says by how much each finding moved.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bookbuilder import execute
from explainer import findings
from explainer.findings import Finding

REPORT = Path("reports", "portability.md")
FOLDER = Path("_build", "portability")

_AVX2 = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
_SSE4 = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"}

NUMERICAL = (
    "theory", "models", "experiments/test_comparison.py", "experiments/test_stored.py",
    "experiments/test_stored_training.py", "book/test_docs.py", "book/test_exercises.py", "book/test_solutions.py",
)  # fmt: skip
"""Tests whose outcome depends on arithmetic."""

SEED_SHIFT = '''\
"""Every seed of a kernel, moved by {shift}: other draws, the same code."""
import numpy as _np
import torch as _torch

_manual_seed, _default_rng = _torch.manual_seed, _np.random.default_rng


class _Generator(_torch.Generator):
    def manual_seed(self, seed):
        return super().manual_seed(seed + {shift})


def _shifted(seed=None, *more):
    if seed is None or isinstance(seed, (_np.random.Generator, _np.random.BitGenerator)):
        return _default_rng(seed, *more)
    return _default_rng(_np.atleast_1d(seed) + {shift}, *more)


_torch.Generator, _torch.manual_seed = _Generator, lambda seed: _manual_seed(seed + {shift})
_np.random.default_rng = _shifted
'''


_SAME_IN_ALL_ROWS = "code cells", "package", "stored results"
"""Of what a chapter is made of: a row sets processor, versions and settings itself."""


@dataclass(frozen=True)
class Row:
    """An environment: its name, what it sets, the Python that runs it, and by how much seeds are moved."""

    name: str
    sets: Mapping[str, str] = field(default_factory=dict)
    python: str = sys.executable
    shift: int = 0

    @property
    def folder(self) -> Path:
        """Where its executed chapters go."""
        return FOLDER / self.name.replace(" ", "-")


def rows(oldest: str | None, seeds: int) -> list[Row]:
    """All rows; `oldest` is a Python with the oldest packages, `seeds` the number of other seeds."""
    cores = str(os.cpu_count())
    return [
        Row("best instructions", {"OMP_NUM_THREADS": cores}),
        Row("one thread", {"OMP_NUM_THREADS": "1"}),
        Row("AVX2", {**_AVX2, "OMP_NUM_THREADS": cores}),
        Row("SSE4 one thread", {**_SSE4, "OMP_NUM_THREADS": "1"}),
        *([Row("oldest packages", {"OMP_NUM_THREADS": "1"}, oldest)] if oldest else []),
        *(Row(f"seeds + {1000 * n}", {"OMP_NUM_THREADS": "1"}, shift=1000 * n) for n in range(1, seeds + 1)),
    ]


def run_chapters(row: Row, chapters: Sequence[Path], workers: int) -> None:
    """Execute chapters in the row's environment, those that were not yet and those that changed since."""
    shared = execute.surroundings()
    waiting = [c for c in chapters if _is_old(row.folder / c.name, execute.made_of(c, shared))]
    if not waiting:
        return
    with tempfile.TemporaryDirectory() as profile:
        sets = dict(row.sets)
        if row.shift:
            startup = Path(profile, "profile_default", "startup")
            startup.mkdir(parents=True)
            (startup / "00-seeds.py").write_text(SEED_SHIFT.format(shift=row.shift), "utf-8")
            sets["IPYTHONDIR"] = profile
        command = [row.python, "-m", "bookbuilder.execute", row.folder, *waiting, "--workers", str(workers)]
        subprocess.run([str(word) for word in command], env=os.environ | sets, check=False)


def _is_old(executed: Path, now: Mapping[str, str]) -> bool:
    last = execute.last_execution(executed)
    return last is None or any(last.made_of.get(name) != now[name] for name in _SAME_IN_ALL_ROWS)


def run_tests(row: Row, workers: int) -> str:
    """Run the numerical tests in the row's environment and return the last line of pytest's report."""
    files = [f"tests/{name}" for name in NUMERICAL]
    command = [row.python, "-m", "pytest", "-q", "--numprocesses", str(workers), "--dist", "loadfile", *files]
    done = subprocess.run(command, env=os.environ | row.sets, capture_output=True, text=True, check=False)
    row.folder.mkdir(parents=True, exist_ok=True)
    (row.folder / "tests.txt").write_text(done.stdout + done.stderr, "utf-8")
    return (done.stdout.strip() or done.stderr.strip() or "no output").splitlines()[-1].strip("= ")


def found_in(row: Row, chapters: Iterable[Path]) -> dict[tuple[str, str], Finding]:
    """The findings of a row's executed chapters, by chapter and statement."""
    paths = [row.folder / chapter.name for chapter in chapters]
    notebooks = {path.stem: json.loads(path.read_text("utf-8")) for path in paths if path.exists()}
    return {(name, one.statement): one for name, book in notebooks.items() for one in findings.of_notebook(book)}


def failures_in(row: Row, chapters: Iterable[Path]) -> dict[str, execute.Failure]:
    """What failed in a row, by chapter."""
    last = {chapter.stem: execute.last_execution(row.folder / chapter.name) for chapter in chapters}
    missing = execute.Failure(None, "it was not executed", "Run again")
    return {name: one.failure if one else missing for name, one in last.items() if one is None or one.failure}


def report(all_rows: Sequence[Row], chapters: Sequence[Path], tests: Mapping[str, str]) -> tuple[str, bool]:
    """The report as Markdown, and whether everything holds."""
    fixed, moved = [r for r in all_rows if not r.shift], [r for r in all_rows if r.shift]
    failed = {row.name: failures_in(row, chapters) for row in all_rows}
    found = {row.name: found_in(row, chapters) for row in all_rows}
    lines = ["# Portability", "", f"Processor: {execute.processor()}.", "", *_row_table(all_rows, failed, found, tests)]
    keys = list(dict.fromkeys(key for of in found.values() for key in of))
    heads = ["chapter", "finding", "bound", *(row.name for row in fixed), "largest move"]
    heads += ["other seeds", "holds in"] * bool(moved)
    lines += ["", "## Findings", "", _line(heads), _line(["---"] * len(heads))]
    sound = not any(failed.values()) and all("failed" not in text and "error" not in text for text in tests.values())
    for key in keys:
        at = {name: of[key] for name, of in found.items() if key in of}
        cells, holds = _finding_cells(key, at, [r.name for r in fixed], [r.name for r in moved])
        sound &= holds
        lines.append(_line(cells))
    return "\n".join(lines) + "\n", sound


def _finding_cells(
    key: tuple[str, str], at: Mapping[str, Finding], fixed: Sequence[str], moved: Sequence[str]
) -> tuple[list[str], bool]:
    first = next(iter(at.values()))
    values = [at[name].value for name in fixed if name in at]
    cells = [key[0], key[1].replace("|", "\\|"), f"{first.relation} {first.bound:.4g}"]
    cells += [_value(at.get(name)) for name in fixed]
    cells.append(f"{max(values) - min(values):.2g}" if values else "")
    holds = all(at[name].holds for name in fixed if name in at)
    if moved:
        seeds = [at[name] for name in moved if name in at]
        kept = sum(one.holds for one in seeds)
        ends = [one.value for one in seeds]
        cells += [f"{min(ends):.3g} to {max(ends):.3g}" if ends else "", f"{kept} of {len(seeds)}"]
        holds &= kept >= 0.95 * len(seeds)
    return cells, holds


def _value(one: Finding | None) -> str:
    return "" if one is None else f"{one.value:.4g}" + ("" if one.holds else " **fails**")


def _row_table(all_rows, failed, found, tests) -> list[str]:
    heads = ["environment", "chapters that failed", "findings that hold", "numerical tests"]
    lines = [_line(heads), _line(["---"] * len(heads))]
    for row in all_rows:
        fails = "; ".join(f"{name} ({why})" for name, why in failed[row.name].items()) or "none"
        hold = f"{sum(one.holds for one in found[row.name].values())} of {len(found[row.name])}"
        lines.append(_line([row.name, fails, hold, tests.get(row.name, "")]))
    return lines


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()) for cell in cells) + " |"


def main() -> int:
    """Run the matrix, or some of it, and write the report; 1 if anything does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="+", metavar="NAME", help="default: all")
    parser.add_argument("--seeds", type=int, default=0, metavar="N", help="other seeds to try (default: 0)")
    parser.add_argument("--oldest", metavar="PYTHON", help="a Python with the oldest packages")
    parser.add_argument("--chapters", nargs="+", type=Path, help="default: all")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="side by side (default: 2)")
    parser.add_argument("--no-tests", action="store_true", help="chapters only")
    parser.add_argument("--report", type=Path, default=REPORT, help="default: %(default)s")
    options = parser.parse_args()
    chapters = options.chapters or execute.chapters()
    chosen = [r for r in rows(options.oldest, options.seeds) if not options.rows or r.name in options.rows]
    tests = {}
    for row in chosen:
        print(f"{row.name}:", flush=True)
        run_chapters(row, chapters, options.workers)
        if not options.no_tests and not row.shift:
            tests[row.name] = run_tests(row, options.workers)
    text, sound = report(chosen, chapters, tests)
    options.report.parent.mkdir(parents=True, exist_ok=True)
    options.report.write_text(text, "utf-8")
    print(f"{'All holds' if sound else 'Something does not hold'}: see {options.report}")
    return int(not sound)


if __name__ == "__main__":
    sys.exit(main())
