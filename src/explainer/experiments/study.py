"""The study: a grid of comparisons, computed by an engine, each stored as soon as it is finished.

A run can be interrupted at any point and started again; it ends with the same bytes as an uninterrupted one.
"""

import hashlib
import itertools
import os
import platform
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tqdm import tqdm

import explainer
from explainer.data import tasks
from explainer.data.tasks import TaskData
from explainer.errors import ExplainerError
from explainer.experiments import comparison
from explainer.experiments.comparison import Cell, StudyError, require
from explainer.lab import engines
from explainer.lab.engines import EngineError
from explainer.lab.store import Identity, Store, Stored, rounded
from explainer.models import checkpoints
from explainer.models.checkpoints import Checkpoint

Engine = Callable[[Iterable[tuple[Cell, ...]], Callable], Iterator]
"""(groups of cells, work) -> what `work(group)` yields for every group, in any order; see `explainer.lab.engines`."""


def grid(
    checkpoints: Iterable[str],
    tasks: Iterable[str],
    *,
    seeds: Iterable[int],
    ks: Iterable[int] = (32,),
    lrs: Iterable[float] = (1e-3,),
    n_queries: int = 150,
    controls: Iterable[str] = ("none",),
    positions: Iterable[str] = ("prompt",),
    splits: Iterable[str] = ("all",),
) -> list[Cell]:
    """Every combination, cells that share demonstrations, queries and model next to each other."""
    axes = (checkpoints, tasks, ks, seeds, positions, splits, controls, lrs)
    return [
        Cell(name, task, seed, k, lr, n_queries, control, position, split)
        for name, task, k, seed, position, split, control, lr in itertools.product(*axes)
    ]


_AXES: Mapping[str, tuple[type, ...]] = {
    "checkpoints": (str,),
    "tasks": (str,),
    "seeds": (int,),
    "ks": (int,),
    "lrs": (float, int),
    "controls": (str,),
    "positions": (str,),
    "splits": (str,),
}


def read_grids(path: str | os.PathLike) -> dict[str, list[Cell]]:
    """The grids that a TOML file describes: one table for each, with the arguments of `grid` for its keys.

    Every value is a list, but for that of `n_queries`. Without `checkpoints` it is the starter checkpoint. Raises
    StudyError, which names file, table and key, for a file that cannot be read or is not TOML, an unknown key, a
    missing one, or a value of another type.
    """
    path = Path(path).expanduser()
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise StudyError(
            f"cannot read {path} ({error}); give the path of a TOML file with one table per grid."
        ) from error
    require(bool(tables), f"{path} describes no grid; add a table, like [pairs], with tasks and seeds.")
    return {name: _grid_of(table, f"{path}, [{name}]") for name, table in tables.items()}


def _grid_of(table: Any, where: str) -> list[Cell]:
    require(isinstance(table, dict), f"{where} is not a table; put its keys below a line with its name in brackets.")
    arguments = {"checkpoints": [checkpoints.STARTER]} | table
    for key in ("tasks", "seeds"):
        require(key in table, f"{where}: {key} is missing; add it.")
    for key, value in arguments.items():
        if key == "n_queries":
            require(type(value) is int, f"{where}: n_queries = {value!r} must be a whole number.")
            continue
        require(key in _AXES, f"{where}: there is no key {key!r}; known keys: {', '.join(_AXES)}, n_queries.")
        right = isinstance(value, list) and value and all(type(item) in _AXES[key] for item in value)
        require(right, f"{where}: {key} = {value!r} must be a list of {_AXES[key][0].__name__}, in brackets.")
    try:
        return grid(**arguments)
    except StudyError as error:
        raise StudyError(f"{where}: {error}") from error


# What determines a result.


def identity(data: TaskData, cell: Cell, dtype: torch.dtype | None = None) -> Identity:
    """Everything that determines the result of a cell: setting, weights, data, and `comparison.PROTOCOL`."""
    return _identity(checkpoints.digest(cell.checkpoint), _data_part(data, cell), cell, dtype)


def _identity(weights: str, data: Mapping[str, Any] | None, cell: Cell, dtype: torch.dtype | None) -> Identity:
    parts = {
        "cell": asdict(cell),
        "dtype": str(dtype or torch.float32).removeprefix("torch."),
        "weights": weights,
        "data": data,
        "protocol": comparison.PROTOCOL,
    }
    return Identity(cell.slug, parts)


def _data_part(data: TaskData, cell: Cell) -> dict[str, Any]:
    own = {"sha256": _digest(data), "train": len(data.train), "test": len(data.test)}
    if not cell.changes.needs_foreign:
        return own
    return own | {"foreign": _digest(tasks.load(tasks.foreign(data.task)))}


def _digest(data: TaskData) -> str:
    task, digest = data.task, hashlib.sha256()
    digest.update(repr((task.name, task.template, task.labels, task.separator, data.train is data.test)).encode())
    for example in (*data.train, None, *data.test):
        digest.update(repr(example and (sorted(example.fields.items()), example.answer, example.label)).encode())
    return digest.hexdigest()


def _provenance(checkpoint: Checkpoint, data: TaskData) -> dict[str, Any]:
    """What a reader of the result wants to know and what does not, or should not, determine it."""
    device = checkpoint.device
    return {
        "checkpoint": {"name": checkpoint.name, "revision": checkpoint.revision},
        "data": {"source": data.task.source, "licence": data.task.licence},
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "threads": torch.get_num_threads(),
        "explainer": explainer.__version__,
        "python": platform.python_version(),
        "versions": {module.__name__: module.__version__ for module in (np, torch, transformers)},
    }


def _commit() -> str | None:
    """The last commit that changed this package, with a plus if files have changed since; None outside of git."""
    directory = Path(__file__).parents[1]
    git = partial(subprocess.run, cwd=directory, capture_output=True, text=True, check=True, timeout=10)
    try:
        commit = git(["git", "log", "-1", "--format=%H", "--", "."]).stdout.strip()
        changed = git(["git", "status", "--porcelain", "--", "."]).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return (commit + "+" * bool(changed)) or None


# Many cells.


class _Loaded:
    """The last checkpoint and the data of every task, loaded when first asked for, with what identifies them."""

    def __init__(self, data: Mapping[str, TaskData] | None, data_dir, dtype, device):
        self._given = (data, data_dir, dtype, device)
        self._data, self._data_dir, self._dtype = dict(data or {}), data_dir, dtype
        self._load = partial(checkpoints.load, dtype=dtype, device=device)
        self._digests, self._data_parts = {}, {}
        self._name = self._checkpoint = None

    def __reduce__(self):
        """Another process loads for itself."""
        return _Loaded, self._given

    def checkpoint(self, name: str) -> Checkpoint:
        if name != self._name:
            self._name = self._checkpoint = None  # frees the memory of the last one before the next one needs it
            self._checkpoint = self._load(name)
            self._name = name
        return self._checkpoint

    def data(self, task: str) -> TaskData:
        if task not in self._data:
            self._data[task] = tasks.load(task, data_dir=self._data_dir)
        return self._data[task]

    def identity(self, cell: Cell) -> Identity:
        """What determines the cell's result; without the data if the hub would have to be asked for them."""
        if cell.checkpoint not in self._digests:
            self._digests[cell.checkpoint] = checkpoints.digest(cell.checkpoint)
        data = self._data_part(cell) if self._at_hand(cell.task) else None
        return _identity(self._digests[cell.checkpoint], data, cell, self._dtype)

    def _at_hand(self, task: str) -> bool:
        given = self._data_dir or os.environ.get("EXPLAINER_DATA")
        return task in self._data or bool(given) or tasks.find(task).hub is None

    def _data_part(self, cell: Cell) -> dict[str, Any]:
        key = cell.task, cell.changes.needs_foreign
        if key not in self._data_parts:
            self._data_parts[key] = _data_part(self.data(cell.task), cell)
        return self._data_parts[key]


@dataclass(frozen=True)
class _Outcome:
    """What became of one cell: its identity and all that `Store.save` takes, or why there is no result."""

    cell: Cell
    identity: Identity | None = None
    saved: Mapping[str, Any] | None = None
    error: str | None = None


@dataclass(frozen=True)
class _Work:
    """Computes the cells of a group, which share ZSL and ICL, one after the other."""

    loaded: _Loaded
    progress: bool

    def __call__(self, group: Sequence[Cell]) -> Iterator[_Outcome]:
        """Yield each cell as soon as it is finished."""
        checkpoint, data = self.loaded.checkpoint(group[0].checkpoint), self.loaded.data(group[0].task)
        provenance, baseline = _provenance(checkpoint, data), None
        for cell in group:
            shared, wall, cpu = baseline is not None, time.perf_counter(), time.process_time()
            try:
                baseline = baseline or comparison.prepare(checkpoint, data, cell, progress=self.progress)
                result = comparison.run_cell(baseline, cell, progress=self.progress)
            except ExplainerError as error:
                yield _Outcome(cell, error=str(error))
                continue
            run = {
                "seconds": time.perf_counter() - wall,
                "cpu_seconds": time.process_time() - cpu,
                "shared_zsl_and_icl": shared,
                "commit": _commit(),
            }
            # Rounded here, because plain numbers travel between processes of any kind.
            saved = {"result": rounded(result), "provenance": provenance, "run": run}
            yield _Outcome(cell, self.loaded.identity(cell), saved)


def plan(
    cells: Iterable[Cell],
    store: Store,
    *,
    data: Mapping[str, TaskData] | None = None,
    data_dir: str | None = None,
    dtype: torch.dtype | None = None,
) -> list[tuple[Cell, Identity, Stored | None]]:
    """The cells, what determines each, and its result if it is stored; computes none.

    Arguments as in `run`. The data of a task that only the hub has are not fetched: its identities have None for
    them, and what is stored is not compared with them. Raises ResultsError for a result that was made of something
    else than is asked for, TaskError or CheckpointError if data or a checkpoint cannot be read.
    """
    return _planned(cells, store, _Loaded(data, data_dir, dtype, None))


def _planned(cells: Iterable[Cell], store: Store, loaded: _Loaded) -> list[tuple[Cell, Identity, Stored | None]]:
    """Without repetitions, the cells of a checkpoint together, so that each is loaded once."""
    cells = list(dict.fromkeys(cells))
    order = list(dict.fromkeys(cell.checkpoint for cell in cells))
    planned = [(cell, loaded.identity(cell)) for cell in sorted(cells, key=lambda cell: order.index(cell.checkpoint))]
    return [(cell, identity, store.load(identity)) for cell, identity in planned]


def run(
    cells: Iterable[Cell],
    store: Store,
    *,
    data: Mapping[str, TaskData] | None = None,
    data_dir: str | None = None,
    dtype: torch.dtype | None = None,
    device: str | None = None,
    engine: Engine = engines.local,
    progress: bool = True,
) -> list[Stored]:
    """Compute the cells that are not stored yet, store each at once, and return all, those of a checkpoint together.

    Checkpoints come from `explainer.models.checkpoints.load`, data from `data` by the name of the task, else from
    `explainer.tasks.load`. Interrupted and started again, a run goes on with the cells that are not stored and ends
    with the same bytes. Cells that differ only in fine-tuning share ZSL and ICL.

    The engine computes, here or elsewhere; this process stores. Elsewhere (`explainer.lab.engines.on_ray`), `device` is
    that of the workers and by default the CPU, and a result is refused whose worker had other weights, data or
    another protocol than this process.

    A cell that cannot be computed does not stop the others: StudyError at the end names all such cells. Raises
    ResultsError at once if the directory cannot be written or a result in it is damaged or was made of something else
    than is asked for, and TaskError or CheckpointError if data or a checkpoint cannot be loaded.
    """
    store.require_writable()
    store.all()  # reads, and so checks, every result
    loaded = _Loaded(data, data_dir, dtype, device or (None if engine is engines.local else "cpu"))
    planned = _planned(cells, store, loaded)
    waiting = [cell for cell, _, stored in planned if stored is None]
    for cell in waiting:
        loaded.data(cell.task)
    identities, failed = {cell: loaded.identity(cell) for cell in waiting}, []
    work = _Work(loaded, progress and engine is engines.local)
    with tqdm(total=len(planned), initial=len(planned) - len(waiting), unit="cell", disable=not progress) as bar:
        outcomes = engine(iter(_groups(waiting)), work)
        try:
            for outcome in outcomes:
                bar.set_description(outcome.cell.slug)
                bar.update()
                if error := _save(outcome, identities[outcome.cell], store):
                    failed.append(f"{outcome.cell.slug}: {error}")
        except EngineError as error:
            if not failed:
                raise
            failed.append(str(error))
        finally:
            outcomes.close()
    if failed:
        raise StudyError(f"{len(failed)} of {len(planned)} cells could not be computed:\n" + "\n".join(failed))
    return [store.load(identities.get(cell, identity)) for cell, identity, _ in planned]


def _groups(cells: Iterable[Cell]) -> list[tuple[Cell, ...]]:
    """The cells in groups that share ZSL and ICL, in the order of their first ones."""
    groups: list[list[Cell]] = []
    for cell in cells:
        if group := next((g for g in groups if comparison.share_icl(g[0], cell)), None):
            group.append(cell)
        else:
            groups.append([cell])
    return list(map(tuple, groups))


def _save(outcome: _Outcome, identity: Identity, store: Store) -> str | None:
    """Store a result; returns why there is none."""
    if outcome.error is not None:
        return outcome.error
    if differing := identity.differences(outcome.identity.parts):
        return (
            f"it was computed elsewhere with other {', '.join(differing)} than here; install and copy the same there."
        )
    store.save(identity, **outcome.saved)
    return None
