"""Execute the chapters that need it: nbmake runs copies of them side by side, and each is kept when it is finished.

`python -m bookbuilder.execute FOLDER WORKERS [NOTEBOOK ...]` fails where a finding does not hold, in any environment.
"""

import itertools
import json
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterable
from contextlib import chdir
from importlib import metadata
from pathlib import Path

import pytest

import explainer
from bookbuilder import executed, notebooks
from explainer.data.files import replace_file

_VARIABLES = (
    "EXPLAINER_MODEL", "EXPLAINER_DATA", "EXPLAINER_RESULTS", "EXPLAINER_WEIGHTS",
    "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS",
)  # fmt: skip
_PACKAGES = ("torch", "transformers", "numpy", "plotly", "anywidget")
_OPTIONS = """--nbmake --overwrite --nbmake-timeout=1800 --dist=load --maxschedchunk=1 --reruns=1
    --only-rerun=before.replying --verbose --tb=no --no-header --no-summary"""
"""A kernel whose port another one took a moment before does not answer; it is started once more."""


def surroundings() -> dict[str, str]:
    """What the outputs of all chapters depend on, by the name that a message gives it."""
    package = Path(explainer.__file__).parent
    files = {path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    stored = {path for path in files if package / "published" in path.parents}
    told = Path("/proc/cpuinfo").read_text("utf-8") if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"^model name\s*: (.*)$", told, re.MULTILINE)
    best = [flag for flag in ("amx_bf16", "avx512f", "avx2", "sse4_2", "asimd") if re.search(rf"\b{flag}\b", told)]
    return {
        "package": _digest_of_files(files - stored),
        "stored results": _digest_of_files(path for path in stored if path.name != "findings.json"),
        "versions": ", ".join(f"{name} {metadata.version(name)}" for name in _PACKAGES),
        "processor": f"{model[1] if model else platform.machine()} ({', '.join(best)})",
        "settings": ", ".join(f"{name}={os.environ[name]}" for name in _VARIABLES if os.environ.get(name)),
    }


def _digest_of_files(files: Iterable[Path]) -> str:
    contents = (f"{file.parent.name}/{file.name}\0".encode() + file.read_bytes() for file in sorted(files))
    return executed.digest(b"\0".join(contents))


def run(chapters: Iterable[Path], *, workers: int, into: Path = executed.FOLDER) -> None:
    """Execute the chapters whose copy in the folder `into` is not what would come out, the longest first.

    The copies say what they were made of and why they failed; raises KeyboardInterrupt, and the finished are kept.
    """
    shared, seconds, sources, reasons = surroundings(), executed.expected_seconds(), {}, {}
    for path in chapters:
        sources[path.name] = notebook = json.loads(path.read_text("utf-8"))
        made_of = {"code cells": executed.code_digest(notebook), **shared}
        last = executed.last_execution(into / path.name)
        changed = [name for name in made_of if last and last.made_of.get(name) != made_of[name]]
        if last is None or last.failure or changed:
            reason = f"changed: {', '.join(changed)}" if changed else "it failed" if last else "it was not executed"
            reasons.setdefault(reason, []).append(path.name)
            notebook["metadata"][executed.KEY] = {"made_of": made_of}
            setup = notebook["cells"][0]
            if notebooks.is_setup(setup):  # the kernel has the package, and asking pip takes two seconds
                setup["metadata"]["tags"] = ["skip-execution"]
    if not reasons:
        return
    for reason, names in reasons.items():
        print(f"To execute, because {reason}: {', '.join(names)}", flush=True)
    waiting = sorted(itertools.chain(*reasons.values()), key=lambda name: -seconds.get(Path(name).stem, 60))
    into.mkdir(parents=True, exist_ok=True)
    (into / "log.txt").write_text("", "utf-8")
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
    keeper, few = _Keeper(into.resolve()), len(waiting) <= 4 * workers
    with tempfile.TemporaryDirectory(prefix="chapters-") as folder, chdir(folder):  # nbmake passes over any _build
        Path("pytest.ini").touch()
        for name in waiting:
            Path(name).write_text(json.dumps(sources[name]), "utf-8")
        forked = [] if few else ["-p", "bookbuilder.kernels"]  # which imports more than few chapters do
        code = pytest.main([*_OPTIONS.split(), *forked, f"--numprocesses={workers}", *waiting], plugins=[keeper])
    if code == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise OSError(f"pytest ended with exit code {int(code)}")


class _Keeper:
    """A plugin of pytest that moves each copy, when it is finished, to where executed copies are."""

    def __init__(self, into: Path):
        self.into = into

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or (report.passed and report.when == "call"):
            name = report.nodeid.partition("::")[0]
            notebook = json.loads(Path(name).read_text("utf-8"))
            failure = executed.failure(notebook, report.longreprtext) if report.failed else None
            notebook["metadata"][executed.KEY] |= {"seconds": round(report.duration, 1), "failure": failure}
            replace_file(self.into / name, json.dumps(notebook))
            with (self.into / "log.txt").open("a", encoding="utf-8") as log:
                log.write(f"{name}: {failure or 'done'} ({report.duration:.0f} s)\n{report.capstderr}\n")

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        said = f"{report.outcome} in {report.duration:.0f} s"
        return (report.outcome, "", said) if report.when == "call" and report.outcome != "rerun" else None


if __name__ == "__main__":
    into, workers, *named = sys.argv[1:]
    chosen = [Path(name) for name in named] or executed.chapters()
    run(chosen, workers=int(workers), into=Path(into))
    sys.exit(executed.summary([Path(into, chapter.name) for chapter in chosen], strict=True))
