"""`make portability`: do the chapters and the numerical tests hold elsewhere?

Each *row* is an environment: other vector instructions, other numbers of threads, the oldest packages that
`pyproject.toml` admits, other seeds. In each, all chapters run to their end, no assert fails, and every finding holds;
for other seeds, in all but one of twenty. The report says by how much each finding moved.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from bookbuilder import execute
from bookbuilder.repository import edition

FOLDER = Path("_build", "portability")
_AVX2 = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
_SSE4 = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"}
_NUMERICAL = (
    "theory", "models", "compare/test_comparison.py", "lab/test_stored.py", "lab/test_stored_training.py",
    "book/test_docs.py", "book/test_exercises.py", "book/test_solutions.py",
)  # fmt: skip
"""Tests whose outcome depends on arithmetic."""
_SEED_SHIFT = '''\
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

_FINDING = "chapter", "finding", "bound"


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
    one, all_of_them = {"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": str(os.cpu_count())}
    return [
        Row("best instructions", all_of_them),
        Row("one thread", one),
        Row("AVX2", _AVX2 | all_of_them),
        Row("SSE4 one thread", _SSE4 | one),
        *([Row("oldest packages", one | _own_cache(oldest), oldest)] if oldest else []),
        *(Row(f"seeds + {1000 * n}", one, shift=1000 * n) for n in range(1, seeds + 1)),
    ]


def _own_cache(python: str) -> dict[str, str]:
    """What these packages fetched and converted, beside their environment."""
    return {"EXPLAINER_CACHE": str(Path(python).absolute().parents[1] / "cache")}


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
            (startup / "00-seeds.py").write_text(_SEED_SHIFT.format(shift=row.shift), "utf-8")
            sets["IPYTHONDIR"] = profile
        command = [row.python, "-m", "bookbuilder.execute", row.folder, workers, *waiting]
        subprocess.run([str(word) for word in command], env=os.environ | sets, check=False)


def _is_old(executed: Path, now: Mapping[str, str]) -> bool:
    last = execute.last_execution(executed)
    return last is None or any(last.made_of.get(name) != now[name] for name in _SAME_IN_ALL_ROWS)


def _run_tests(row: Row, workers: int) -> str:
    """Run the numerical tests in the row's environment and return the last line of pytest's report."""
    files = [f"tests/{name}" for name in _NUMERICAL]
    command = [row.python, "-m", "pytest", "-q", "--numprocesses", str(workers), "--dist", "loadfile", *files]
    done = subprocess.run(command, env=os.environ | row.sets, capture_output=True, text=True, check=False)
    row.folder.mkdir(parents=True, exist_ok=True)
    (row.folder / "tests.txt").write_text(done.stdout + done.stderr, "utf-8")
    return (done.stdout.strip() or done.stderr.strip() or "no output").splitlines()[-1].strip("= ")


def table(all_rows: Sequence[Row], chapters: Iterable[Path]) -> pd.DataFrame:
    """A line for each finding of each row's executed chapters: row, shifted, chapter, finding, bound, value, holds."""
    lines = [
        (
            row.name,
            bool(row.shift),
            chapter.stem,
            one.statement,
            f"{one.relation} {one.bound:.4g}",
            one.value,
            one.holds,
        )
        for row in all_rows
        for chapter in chapters
        for one in execute.findings_of(row.folder / chapter.name)
    ]
    return pd.DataFrame(lines, columns=["row", "shifted", *_FINDING, "value", "holds"])


def report(all_rows: Sequence[Row], chapters: Sequence[Path], tests: Mapping[str, str]) -> tuple[str, bool]:
    """The report as Markdown, and whether everything holds; for other seeds, all but one of twenty are enough."""
    found = table(all_rows, chapters)
    wrong = [f"{name}: {said}" for name, said in tests.items() if "failed" in said or "error" in said]
    for row in all_rows:
        for chapter in chapters:
            last = execute.last_execution(row.folder / chapter.name)
            if last is None or last.failure:
                wrong.append(f"{row.name} {chapter.stem}: {last.failure if last else 'not executed'}")
    for (*key, shifted), share in found.groupby([*_FINDING, "shifted"], sort=False).holds.mean().items():
        if share < (0.95 if shifted else 1):
            wrong.append(f"does not hold: {': '.join(key[:2])} ({share:.0%})")
    moves = found.pivot_table("value", list(_FINDING), "row", sort=False)
    moves["largest move"] = moves.max(axis=1) - moves.min(axis=1)
    lines = [
        f"# Portability\n\nEdition {edition()}, {len(chapters)} chapters. Processor: {execute.processor()}.\n",
        *(f"- {r.name}: {(found.row == r.name).sum()} findings; {tests.get(r.name, 'no tests')}" for r in all_rows),
        "\n## What does not hold\n",
        *(f"- {line}" for line in wrong or ["nothing: everything holds"]),
        f"\n## Findings\n\n```text\n{moves.to_csv(sep='|', float_format='%.4g')}```\n",
    ]
    return "\n".join(lines), not wrong


def main() -> int:
    """Run the matrix, or some of it, and write the report; 1 if anything does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="+", metavar="NAME", help="default: all")
    parser.add_argument("--seeds", type=int, default=0, metavar="N", help="other seeds to try (default: 0)")
    parser.add_argument("--oldest", metavar="PYTHON", help="a Python with the oldest packages")
    parser.add_argument("--chapters", nargs="+", type=Path, help="default: all")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="side by side (default: 2)")
    parser.add_argument("--no-tests", action="store_true", help="chapters only")
    parser.add_argument("--report", type=Path, default=Path("reports", "portability.md"), help="default: %(default)s")
    options = parser.parse_args()
    chapters = options.chapters or execute.chapters()
    chosen = [r for r in rows(options.oldest, options.seeds) if not options.rows or r.name in options.rows]
    tests = {}
    for row in chosen:
        print(f"{row.name}:", flush=True)
        run_chapters(row, chapters, options.workers)
        if not options.no_tests and not row.shift:
            tests[row.name] = _run_tests(row, options.workers)
    text, sound = report(chosen, chapters, tests)
    options.report.parent.mkdir(parents=True, exist_ok=True)
    options.report.write_text(text, "utf-8")
    print(f"{'All holds' if sound else 'Something does not hold'}: see {options.report}")
    return int(not sound)


if __name__ == "__main__":
    sys.exit(main())
