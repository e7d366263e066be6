"""Execute the chapters: each once, side by side, and again only when something that it depends on has changed.

nbmake runs them, on copies; each executed copy is kept in `_build/executed` as soon as it is finished, whole or not at
all, and the site shows the outputs of these copies. A chapter that fails stops no other.
"""

import argparse
import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

import pytest

import explainer
from bookbuilder.pages import reading_order

EXECUTED = Path("_build", "executed")
CELL_SECONDS = 1800
"""The longest that a cell may take: many times what the slowest needs on an idle machine."""

PACKAGE = Path(explainer.__file__).parent
_KEY = "explainer"
_VERSIONS = ("torch", "transformers", "numpy", "plotly", "anywidget")
_SETTINGS = ("EXPLAINER_MODEL", "EXPLAINER_DATA", "EXPLAINER_RESULTS", "EXPLAINER_WEIGHTS")
_INSTRUCTIONS = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS")
_NO_KERNEL = "Kernel died before replying|Kernel didn't respond"
_FLAGS = ("amx_bf16", "avx512f", "avx2", "sse4_2", "asimd")


@dataclass(frozen=True)
class Failure:
    """Why a chapter has no complete execution: the cell (its number among all, None if unknown), error and remedy."""

    cell: int | None
    error: str
    remedy: str

    def __str__(self):
        """As one sentence and its remedy."""
        where = "" if self.cell is None else f"cell {self.cell}: "
        return f"{where}{self.error}. {self.remedy}"


@dataclass(frozen=True)
class Execution:
    """What is known of a chapter's last execution: what it was made of, how long it took, and its failure if any."""

    made_of: Mapping[str, str]
    seconds: float
    failure: Failure | None = None


# What an execution depends on.


def chapters(root: Path = Path()) -> list[Path]:
    """The notebooks of the table of contents, in its order."""
    return [path for path in reading_order(root) if path.suffix == ".ipynb"]


def made_of(chapter: Path, surroundings: Mapping[str, str]) -> dict[str, str]:
    """What determines the outputs of a chapter, by the name that a message gives it."""
    return {"code cells": code_digest(json.loads(chapter.read_text("utf-8"))), **surroundings}


def code_digest(notebook: Mapping[str, Any]) -> str:
    """Digest of the code cells: a change of a text executes nothing."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    code = [["".join(cell["source"]), cell["metadata"].get("tags", [])] for cell in cells]
    return _sha256(json.dumps(code).encode())


def surroundings() -> dict[str, str]:
    """What all chapters depend on."""
    stored = PACKAGE / "published"
    return {
        "package": _digest(p for p in _files(PACKAGE) if stored not in p.parents),
        "stored results": _digest(p for p in _files(stored) if p.name != "findings.json"),
        "versions": ", ".join(f"{name} {metadata.version(name)}" for name in _VERSIONS),
        "processor": processor(),
        "settings": ", ".join(f"{name}={os.environ[name]}" for name in _SETTINGS if os.environ.get(name)),
    }


def _files(folder: Path) -> Iterable[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.parent.name}/{file.name}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def processor() -> str:
    """The processor, its best vector instructions and what the environment allows of them: it decides last digits."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
        name = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
        flags = set(re.search(r"^(?:flags|Features)\s*: (.*)$", text, re.MULTILINE)[1].split())
        name = f"{name[1] if name else platform.machine()} ({', '.join(f for f in _FLAGS if f in flags)})"
    except (OSError, TypeError):  # TypeError: no such line
        name = platform.processor() or platform.machine()
    return " ".join([name, *(f"{key}={os.environ[key]}" for key in _INSTRUCTIONS if os.environ.get(key))])


def last_execution(path: Path) -> Execution | None:
    """What an executed copy says of itself; None if there is none that can be read."""
    try:
        known = dict(json.loads(path.read_text("utf-8"))["metadata"][_KEY])
        failure = known.pop("failure")
        return Execution(**known, failure=failure and Failure(**failure))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def reason_to_execute(chapter: Path, now: Mapping[str, str]) -> str | None:
    """Why a chapter that is `made_of` this has to be executed, or None if its executed copy is what would come out."""
    last = last_execution(EXECUTED / chapter.name)
    if last is None:
        return "it was not executed here before"
    if last.failure:
        return "it failed the last time"
    changed = [name for name, value in now.items() if last.made_of.get(name) != value]
    if changed == ["processor"]:
        return f"it was executed on another processor, {last.made_of.get('processor')}"
    return f"changed: {', '.join(changed)}" if changed else None


# Executing.


@dataclass(eq=False)  # pytest keeps plugins in a set
class _Watch:
    """A pytest plugin that takes each chapter as soon as nbmake is done with it, and says how far all of them are."""

    sources: Mapping[str, Path]
    made_of: Mapping[str, Mapping[str, str]]
    stage: Path
    into: Path
    workers: int
    expected: Mapping[str, float]
    news: TextIO
    begun: dict[str, float] = field(default_factory=dict)
    finished: dict[str, Execution] = field(default_factory=dict)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A worker begins with a chapter."""
        self.begun[_name(nodeid)] = time.perf_counter()
        self._say(f"{_name(nodeid)}: running")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A chapter is done, or its worker is gone."""
        name = _name(report.nodeid)
        if report.outcome == "rerun":
            kernel = re.search(_NO_KERNEL, str(report.longrepr))
            self._say(f"{name}: its {'kernel did not start' if kernel else 'process was killed'}; once more")
            return
        if name in self.finished or not (report.failed or report.when == "call"):
            return
        seconds = time.perf_counter() - self.begun.get(name, time.perf_counter())
        staged, source = self.stage / f"{name}.ipynb", self.sources[name]
        failure = _failure(staged, str(report.longrepr)) if report.failed else None
        execution = Execution(self.made_of[name], round(seconds, 1), failure)
        try:
            _keep(staged, source, self.into / f"{name}.ipynb", execution)
        except OSError as error:
            failure = Failure(None, f"what it computed cannot be kept ({error})", "Free some space and run again")
            execution = Execution(execution.made_of, execution.seconds, failure)
        self.finished[name] = execution
        self._say(f"{name}: {'FAILED' if failure else 'done'} in {seconds:.0f} s")
        if failure:
            self._say(f"{name}: {failure}")

    def _say(self, news: str) -> None:
        left = self.remaining_seconds()
        about = f", about {max(1, round(left / 60))} min left" if left else ""
        print(f"[{len(self.finished)} of {len(self.sources)} done{about}] {news}", file=self.news, flush=True)

    def remaining_seconds(self) -> float:
        """Estimate from the seconds that chapters took before, and from how fast this machine was so far."""
        done = [name for name in self.finished if name in self.expected]
        before = sum(self.expected[name] for name in done)
        pace = sum(self.finished[name].seconds for name in done) / before if before else 1.0
        left = sum(pace * self.expected.get(name, 0.0) for name in self.sources if name not in self.finished)
        now = time.perf_counter()
        running = sum(now - start for name, start in self.begun.items() if name not in self.finished)
        return max(0.0, left - running) / self.workers


def _name(nodeid: str) -> str:
    return Path(nodeid.split("::", maxsplit=1)[0]).stem


def run(
    waiting: Mapping[Path, Mapping[str, str]], *, workers: int, expected: Mapping[str, float], into: Path = EXECUTED
) -> dict[str, Execution]:
    """Execute chapters, `workers` at a time, the longest first; returns what became of each, by its name.

    `waiting` says of each chapter what it is `made_of`, `expected` how many seconds it takes, by name, where that is
    known. The executed copies go to the folder `into`, and what the tools print to `log.txt` there.
    """
    order = sorted(waiting, key=lambda chapter: -expected.get(chapter.stem, 0.0))
    into.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
    sources = {chapter.stem: chapter.absolute() for chapter in order}
    with tempfile.TemporaryDirectory(prefix="chapters-") as folder, _output_to(into / "log.txt") as news:
        stage = Path(folder).resolve()
        parts = {path.stem: its for path, its in waiting.items()}
        watch = _Watch(sources, parts, stage, into, workers, expected, news)
        code = pytest.main(_options(stage, workers, [shutil.copy(path, stage) for path in order]), [watch])
    if code == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    lost = Failure(None, f"nbmake did not execute it (see {into / 'log.txt'})", "Run again")
    return {name: watch.finished.get(name, Execution({}, 0.0, lost)) for name in sources}


@contextlib.contextmanager
def _output_to(log: Path) -> Iterator[TextIO]:
    """Send what this process and its children print to a file; yields what still reaches the reader."""
    with log.open("w", encoding="utf-8") as file, os.fdopen(os.dup(2), "w") as news:
        kept = [(number, os.dup(number)) for number in (1, 2)]
        try:
            for number, _ in kept:
                os.dup2(file.fileno(), number)
            yield news
        finally:
            for number, copy in kept:
                os.dup2(copy, number)
                os.close(copy)


def _options(stage: Path, workers: int, copies: Iterable[Path]) -> list[str]:
    """What nbmake is called with: nothing of the project's own test settings reaches it."""
    nbmake = ["--nbmake", "--overwrite", f"--nbmake-timeout={CELL_SECONDS}", "--quiet", "--capture=no"]
    side_by_side = ["--numprocesses", str(workers), "--maxschedchunk", "1"]
    alone = ["--rootdir", str(stage), "--confcutdir", str(stage), "-p", "no:cacheprovider"]
    # Of kernels that start at the same moment and pick the same port, one dies: no fault of its chapter.
    once_more = ["--reruns", "1", "--only-rerun", _NO_KERNEL]
    return [*nbmake, *side_by_side, *alone, *once_more, *map(str, copies)]


_REMEDIES = (
    (_NO_KERNEL, "its kernel did not start, nor when it was tried again",
     "The reason is in log.txt beside it; make lab starts the same kernel"),
    (r"DeadKernelError|Kernel died|worker '.*' crashed", "its process was killed, most likely because memory ran out",
     "Free memory, or run fewer chapters side by side: make book WORKERS=1"),
    (r"No space left on device", "the disk is full", "Free some space and run again"),
    (r"CellTimeoutError|Cell execution timed out|A cell timed out", f"a cell took longer than {CELL_SECONDS} s",
     "Run again on a machine that is less busy"),
)  # fmt: skip


def _failure(staged: Path, report: str) -> Failure:
    """Name the cell, the error and the remedy, from the executed copy and from what nbmake reports."""
    cell, error = None, None
    for i, each in enumerate(json.loads(staged.read_text("utf-8"))["cells"]):
        for output in each.get("outputs", ()):
            if output["output_type"] == "error":
                cell, error = (
                    i,
                    f"{output['ename']}: {output['evalue'] or _line(output['traceback'])}".removesuffix("."),
                )
    if error is None:
        for pattern, meaning, remedy in _REMEDIES:
            if re.search(pattern, report):
                return Failure(None, meaning, remedy)
        return Failure(
            None, (report.strip() or "no report").splitlines()[-1], "The whole report is in log.txt beside it"
        )
    return Failure(cell, error, "Mend what it names, or the cell (make lab), and run again")


def _line(traceback: list[str]) -> str:
    """The line of the cell that failed, for an error that does not name itself."""
    found = re.search(r"^-+> \d+ (.*)$", re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(traceback)), re.MULTILINE)
    return found[1].strip() if found else "no message"


def _keep(staged: Path, source: Path, target: Path, execution: Execution) -> None:
    """Move an executed copy to its place, with what is known of its execution; without outputs if it has none."""
    try:
        notebook = json.loads(staged.read_text("utf-8"))
    except (OSError, ValueError):  # its process was killed while writing
        notebook = json.loads(source.read_text("utf-8"))
    notebook["metadata"][_KEY] = asdict(execution)
    fresh = target.with_suffix(".part")
    try:
        fresh.write_text(json.dumps(notebook, ensure_ascii=False), "utf-8")
        os.replace(fresh, target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


# Reading.


def with_outputs(source: Mapping[str, Any], executed: Mapping[str, Any]) -> dict[str, Any]:
    """A notebook with the outputs of its executed copy: texts may have changed since, code cells have not."""
    ran = (cell for cell in executed["cells"] if cell["cell_type"] == "code")

    def shown(cell: Mapping[str, Any]) -> dict[str, Any]:
        taken = {k: v for k, v in next(ran).items() if k in ("outputs", "execution_count")}
        return {**cell, **taken}

    cells = [shown(cell) if cell["cell_type"] == "code" else cell for cell in source["cells"]]
    widgets = {k: v for k, v in executed["metadata"].items() if k == "widgets"}
    return {**source, "cells": cells, "metadata": {**source["metadata"], **widgets}}


def marked(notebook: Mapping[str, Any], failure: Failure | None) -> dict[str, Any]:
    """A notebook that says below its title that it failed, or that it was not executed."""
    text = "> **This chapter was not executed.** Its outputs are missing: `make book` executes it."
    if failure:
        what = re.sub(r"([\\`*_{}\[\]<>#$|])", r"\\\1", " ".join(str(failure).split()))
        text = f"> **This chapter failed.** What follows is incomplete. {what}."
    cell = {"cell_type": "markdown", "id": "failure", "metadata": {}, "source": text}
    title = next((i for i, each in enumerate(notebook["cells"]) if each["cell_type"] == "markdown"), 0)
    return {**notebook, "cells": [*notebook["cells"][: title + 1], cell, *notebook["cells"][title + 1 :]]}


def main() -> int:
    """Execute chapters into a folder, whether they need it or not: `... execute FOLDER book/a.ipynb book/b.ipynb`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the executed copies go")
    parser.add_argument("chapters", nargs="*", type=Path, help="default: all")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="chapters side by side (default: 2)")
    options = parser.parse_args()
    shared = surroundings()
    waiting = {chapter: made_of(chapter, shared) for chapter in options.chapters or chapters()}
    done = run(waiting, workers=options.workers, expected={}, into=options.folder)
    return int(any(execution.failure for execution in done.values()))


if __name__ == "__main__":
    sys.exit(main())
