"""Execute the chapters: each once, side by side, and again only when something that it depends on has changed.

nbclient runs them. Each executed copy is kept in `_build/executed` as soon as it is finished, whole or not at all, and
the site shows the outputs of these copies. A chapter that fails keeps the outputs that it has and stops no other.
"""

import asyncio
import hashlib
import json
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

import explainer
from bookbuilder import notebooks
from explainer.data.files import replace_file
from explainer.findings import Finding, of_notebook

EXECUTED = Path("_build", "executed")
_CELL_SECONDS = 1800
"""The longest that a cell may take: many times what the slowest needs on an idle machine."""

PACKAGE = Path(explainer.__file__).parent
_KEY = "explainer"
_VERSIONS = ("torch", "transformers", "numpy", "plotly", "anywidget")
_SETTINGS = ("EXPLAINER_MODEL", "EXPLAINER_DATA", "EXPLAINER_RESULTS", "EXPLAINER_WEIGHTS")
_INSTRUCTIONS = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS")
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
    from bookbuilder.pages import reading_order  # noqa: PLC0415 - a host that only executes has no docutils

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
        "package": _digest(path for path in PACKAGE.rglob("*") if stored not in path.parents),
        "stored results": _digest(path for path in stored.rglob("*") if path.name != "findings.json"),
        "versions": ", ".join(f"{name} {metadata.version(name)}" for name in _VERSIONS),
        "processor": processor(),
        "settings": ", ".join(f"{name}={os.environ[name]}" for name in _SETTINGS if os.environ.get(name)),
    }


def _digest(files: Iterable[Path]) -> str:
    named = sorted(file for file in files if file.is_file() and "__pycache__" not in file.parts)
    return _sha256(b"".join(f"{f.parent.name}/{f.name}\0".encode() + f.read_bytes() + b"\0" for f in named))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def processor() -> str:
    """The processor, its best vector instructions and what the environment allows of them: it decides last digits."""
    told = Path("/proc/cpuinfo").read_text("utf-8") if Path("/proc/cpuinfo").exists() else ""
    name = re.search(r"^model name\s*: (.*)$", told, re.MULTILINE)
    flags = ", ".join(flag for flag in _FLAGS if re.search(rf"\b{flag}\b", told))
    allowed = (f"{key}={os.environ[key]}" for key in _INSTRUCTIONS if os.environ.get(key))
    return " ".join([f"{name[1] if name else platform.machine()} ({flags})", *allowed])


def last_execution(path: Path) -> Execution | None:
    """What an executed copy says of itself; None if there is none that can be read."""
    try:
        known = dict(json.loads(path.read_text("utf-8"))["metadata"][_KEY])
        failure = known.pop("failure")
        return Execution(**known, failure=failure and Failure(**failure))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def findings_of(path: Path) -> list[Finding]:
    """The findings that an executed copy shows; none where there is no copy."""
    return of_notebook(json.loads(path.read_text("utf-8"))) if path.exists() else []


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


def run(
    waiting: Mapping[Path, Mapping[str, str]], *, workers: int, expected: Mapping[str, float], into: Path = EXECUTED
) -> dict[str, Execution]:
    """Execute chapters, `workers` at a time, the longest first; returns what became of each, by its name.

    `waiting` says of each chapter what it is `made_of`, `expected` how many seconds it takes, by name, where that is
    known. The executed copies go to the folder `into`, and what the kernels print to `log.txt` there.
    """
    into.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
    done, free = {}, asyncio.Semaphore(workers)
    seconds = {chapter: expected.get(chapter.stem, 60.0) for chapter in waiting}
    started, total = time.perf_counter(), sum(seconds.values())

    def say(news: str) -> None:
        ended = sum(seconds[chapter] for chapter in waiting if chapter.stem in done)
        left = (time.perf_counter() - started) * (total - ended) / ended if ended else total / workers
        about = f", about {max(1, round(left / 60))} min left" if len(done) < len(waiting) else ""
        print(f"[{len(done)} of {len(waiting)} done{about}] {news}", file=sys.stderr, flush=True)

    async def one(chapter: Path, folder: str, log: TextIO) -> None:
        async with free:
            say(f"{chapter.stem}: running")
            began, notebook = time.perf_counter(), nbformat.read(chapter, as_version=4)
            failure = await _executed(notebook, folder, log)
            if failure and failure.cell is None:
                # Of kernels that start at the same moment and pick the same port, one dies: no fault of its chapter.
                say(f"{chapter.stem}: its kernel did not start; once more")
                failure = await _executed(notebook, folder, log)
            its = Execution(waiting[chapter], round(time.perf_counter() - began, 1), failure)
            done[chapter.stem] = its = _kept(notebook, into / chapter.name, its)
            say(f"{chapter.stem}: {f'FAILED, {its.failure}' if its.failure else 'done'} in {its.seconds:.0f} s")

    async def every() -> None:
        with tempfile.TemporaryDirectory(prefix="chapters-") as folder, (into / "log.txt").open("w") as log:
            async with asyncio.TaskGroup() as group:
                for chapter in sorted(waiting, key=seconds.get, reverse=True):
                    group.create_task(one(chapter, folder, log))

    asyncio.run(every())
    return done


async def _executed(notebook: NotebookNode, folder: str, log: TextIO) -> Failure | None:
    """Give a notebook its outputs, as far as it gets, and say why it got no further.

    The steps are those of `NotebookClient.async_execute`, which would take over the signals of this process.
    """
    client = NotebookClient(notebook, timeout=_CELL_SECONDS, resources={"metadata": {"path": folder}})
    client.create_kernel_manager()
    client.reset_execution_trackers()
    number = None
    try:
        await client.async_start_new_kernel(stdout=log, stderr=log)
        await client.async_start_new_kernel_client()
        for number, cell in enumerate(notebook.cells):
            if notebooks.is_setup(cell):  # the kernel has the package, and asking pip takes two seconds
                continue
            await client.async_execute_cell(cell, number, execution_count=client.code_cells_executed + 1)
    except (Exception, asyncio.CancelledError) as error:
        if asyncio.current_task().cancelling():  # which nbclient may take for a dead kernel
            raise asyncio.CancelledError from None
        return _failure(error, number)
    finally:
        client.set_widgets_metadata()
        if client.kc is not None:
            client.kc.stop_channels()
        if client.km is not None and client.km.has_kernel:
            await client.km.shutdown_kernel(now=True)
    return None


def _failure(error: BaseException, cell: int | None) -> Failure:
    """Name the cell, the error and the remedy."""
    if isinstance(error, CellExecutionError):
        said = f"{error.ename}: {error.evalue or _line(error.traceback)}".removesuffix(".")
        return Failure(cell, said, "Mend what it names, or the cell (make lab), and run again")
    if isinstance(error, DeadKernelError):
        remedy = "Free memory, or run fewer chapters side by side: make book WORKERS=1"
        return Failure(cell, "its process was killed, most likely because memory ran out", remedy)
    if isinstance(error, CellTimeoutError):
        return Failure(cell, f"took longer than {_CELL_SECONDS} s", "Run again on a machine that is less busy")
    if cell is None:
        said = f"its kernel did not start, nor when it was tried again ({error})"
        return Failure(None, said, "log.txt beside its copy may say why; make lab starts the same kernel")
    return Failure(cell, f"{type(error).__name__}: {error}", "log.txt beside its copy may say more")


def _line(traceback: str) -> str:
    """The line of the cell that failed, for an error that does not name itself."""
    found = re.search(r"^-+> \d+ (.*)$", re.sub(r"\x1b\[[0-9;]*m", "", traceback), re.MULTILINE)
    return found[1].strip() if found else "no message"


def _kept(notebook: NotebookNode, target: Path, execution: Execution) -> Execution:
    """Write an executed copy, with what is known of its execution; a full disk is a failure."""
    notebook.metadata[_KEY] = asdict(execution)
    try:
        replace_file(target, nbformat.writes(notebook))
    except OSError as error:
        failure = Failure(None, f"what it computed cannot be kept ({error})", "Free some space and run again")
        return replace(execution, failure=failure)
    return execution


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


if __name__ == "__main__":  # `python -m bookbuilder.execute FOLDER WORKERS book/a.ipynb ...`, in whatever environment
    into, side_by_side, *named = sys.argv[1:]
    shared = surroundings()
    waiting = {Path(name): made_of(Path(name), shared) for name in named}
    run(waiting, workers=int(side_by_side), expected={}, into=Path(into))
