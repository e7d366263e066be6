"""Engines: where the cells of a study are computed, here or on the machines of a Ray cluster.

An engine takes groups of cells and `work`, which computes one group, and yields what `work` yields. Who stores the
outcomes stays in one process: whatever the engine, a run that is interrupted loses no more than the cells in flight.
"""

import os
import socket
import textwrap
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from types import ModuleType
from typing import Any, Protocol, TypeVar

from explainer.errors import ExplainerError


class Named(Protocol):
    """What an engine knows of a cell, such as `explainer.experiments.comparison.Cell`."""

    slug: str


Group = tuple[Named, ...]
Outcome = TypeVar("Outcome")
Work = Callable[[Group], Iterator[Outcome]]
"""Yields one outcome per cell of the group, in their order, each as soon as it is computed."""

_ATTEMPTS = 2
_CONNECT_SECONDS = 5


class EngineError(ExplainerError):
    """An engine cannot be used as it was asked for, or it lost its workers."""


def local(groups: Iterable[Group], work: Work[Outcome]) -> Iterator[Outcome]:
    """Compute the groups one after the other in this process."""
    for group in groups:
        yield from work(group)


def on_ray(
    groups: Iterable[Group], work: Work[Outcome], *, address: str | None = None, gpus: float = 0, cpus: float = 1
) -> Iterator[Outcome]:
    """Compute the groups on a Ray cluster, one per worker at a time; outcomes arrive in the order of completion.

    A worker is a process that holds `cpus` CPUs and `gpus` GPUs and its own copy of `work`, so that what `work` caches
    (a checkpoint) is loaded once per worker. There are as many as the cluster holds when the run starts, but no more
    than groups; groups are taken from the iterable only as workers need them. Closing the iterator, an exception and an
    interrupt kill the workers.

    Outcomes are those of `local`, to the byte, if `work` depends on nothing but the group, and the machines have the
    same packages, the same kind of processor and as many threads: a worker computes with `cpus` threads, so
    `torch.set_num_threads(cpus)` here. `work`, cells and outcomes must be picklable, and the modules that define them
    importable on every machine.

    A worker that dies is replaced, and the rest of its group is computed once more. `address` is "host:port" of the
    cluster's head node, "auto" for the cluster that this machine belongs to, or "local" for a new one on this machine;
    by default $RAY_ADDRESS, else a running cluster, else a new one. A runtime that is already running in this process
    is used and left running.

    Raises EngineError if Ray is not installed, if there is no cluster at the address or none of its nodes has the CPUs
    and GPUs, and, after all other groups, if a group lost its worker twice. An exception of `work` is raised with the
    traceback of the worker, an ExplainerError as it is.
    """
    _ray()
    _require_amounts(cpus, gpus)
    return _on_ray(iter(groups), work, address, {"CPU": cpus, "GPU": gpus})


def _ray() -> ModuleType:
    try:
        import ray  # noqa: PLC0415 (optional, and it takes seconds)
    except ImportError as error:
        raise EngineError(
            f'The Ray engine needs Ray ({error}): pip install "explainer[ray]", or use the local engine.'
        ) from error
    return ray


def _require_amounts(cpus: float, gpus: float) -> None:
    if cpus <= 0 or gpus < 0 or any(amount > 1 and amount != int(amount) for amount in (cpus, gpus)):
        raise EngineError(
            f"A worker cannot have {cpus:g} CPUs and {gpus:g} GPUs: use a fraction up to 1 or a whole number, "
            "and more than 0 CPUs."
        )


def _on_ray(groups: Iterator[Group], work: Work, address: str | None, amounts: dict[str, float]) -> Iterator:
    queue = deque(islice(groups, 1))
    if not queue:
        return  # nothing to compute is no reason to start a cluster
    with _runtime(address):
        queue.extend(islice(groups, _require_room(amounts) - 1))
        pool = _Pool(work, amounts, _Shares(queue, groups))
        try:
            for _ in range(len(queue)):
                pool.start()
            yield from pool.outcomes()
        finally:
            pool.kill()
        pool.require_none_lost()


@dataclass
class _Share:
    """A group, or what is left of it: `done` of its cells have arrived, `attempts` workers have begun it."""

    group: Group
    done: int = 0
    attempts: int = 0

    @property
    def left(self) -> Group:
        return self.group[self.done :]


class _Worker:
    """A process of the cluster that computes groups with its own copy of `work`."""

    def __init__(self, work: Work):
        self._work = work

    def ready(self) -> None:
        """Return as soon as the process runs."""

    def outcomes(self, group: Group) -> Iterator:
        """Yield the outcomes of the group."""
        for outcome in self._work(group):  # noqa: UP028 (Ray resumes by `send`, which only generators understand)
            yield outcome


class _Shares:
    """What is still to be given to workers: at least one share if there is any, so that it can be told empty."""

    def __init__(self, first: Iterable[Group], more: Iterator[Group]):
        self._queue, self._more = deque(map(_Share, first)), map(_Share, more)

    def __bool__(self):
        if not self._queue:
            self._queue.extend(islice(self._more, 1))
        return bool(self._queue)

    def pop(self) -> _Share:
        return self._queue.popleft()

    def put_back(self, share: _Share) -> None:
        self._queue.appendleft(share)


class _Pool:
    """Workers, and for each what Ray is to wait for (its start, or the stream of its outcomes) and its share."""

    def __init__(self, work: Work, amounts: dict[str, float], shares: _Shares):
        # Ray leaves an inherited OMP_NUM_THREADS as it is, and torch and NumPy read it when they are imported.
        environment = {"OMP_NUM_THREADS": str(max(1, int(amounts["CPU"])))}
        if not amounts["GPU"]:
            environment["CUDA_VISIBLE_DEVICES"] = ""  # else all workers of a machine would crowd its first GPU
        self._class = (
            _ray()
            .remote(_Worker)
            .options(num_cpus=amounts["CPU"], num_gpus=amounts["GPU"], runtime_env={"env_vars": environment})
        )
        self._work = _ray().put(work)
        self._amounts = amounts
        self._shares = shares
        self._workers: list[Any] = []
        self._waiting: dict[Any, tuple[Any, _Share | None]] = {}
        self._death: Exception | None = None
        self._lost: list[str] = []

    def start(self) -> None:
        """Ask for one more worker; it is given a share when it runs, which on a full cluster may never be."""
        worker = self._class.remote(self._work)
        self._workers.append(worker)
        self._waiting[worker.ready.remote()] = worker, None

    def outcomes(self) -> Iterator:
        """Yield the outcomes of all shares as they arrive."""
        errors = _ray().exceptions
        while self._shares or any(share for _, share in self._waiting.values()):
            if not self._workers:
                raise EngineError(f"No worker of the Ray cluster could start, or go on:\n{self._death}")
            (awaited,), _ = _ray().wait(list(self._waiting))
            worker, share = self._waiting.pop(awaited)
            try:
                if share is None:
                    _ray().get(awaited)
                    self._give_share(worker)
                else:
                    outcome = _ray().get(next(awaited))
                    share.done += 1
                    self._waiting[awaited] = worker, share
                    yield outcome
            except StopIteration:
                self._give_share(worker)
            except errors.RayTaskError as error:
                raise (error.cause if isinstance(error.cause, ExplainerError) else error) from None
            except errors.RayError as death:
                self._death = death
                self._bury(worker, share)

    def _give_share(self, worker: Any) -> None:
        """Let the worker compute the next share, or give back its CPUs, GPUs and memory if there is none."""
        if not self._shares:
            self._release(worker)
            return
        share = self._shares.pop()
        share.attempts += 1
        self._waiting[worker.outcomes.options(num_returns="streaming").remote(share.left)] = worker, share

    def _bury(self, worker: Any, share: _Share | None) -> None:
        self._release(worker)
        if share is None:
            return  # it died before it could start, and so might its replacement, for ever
        if not share.left:
            pass  # it died between the last outcome and the end of the stream
        elif share.attempts < _ATTEMPTS:
            self._shares.put_back(share)
        else:
            cells = ", ".join(cell.slug for cell in share.left)
            self._lost.append(f"{cells}: {textwrap.shorten(str(self._death), 300)}")
        if _room(self._amounts) > len(self._workers):  # the cluster may have lost a node
            self.start()

    def _release(self, worker: Any) -> None:
        self._workers.remove(worker)
        _ray().kill(worker)

    def kill(self) -> None:
        """Kill all workers, whatever they do."""
        for worker in self._workers:
            _ray().kill(worker)

    def require_none_lost(self) -> None:
        """Raise EngineError if there is a group that no worker survived."""
        if self._lost:
            raise EngineError(
                f"{len(self._lost)} groups of cells lost their worker {_ATTEMPTS} times. Did memory run out? With more "
                "CPUs for each, fewer workers share a machine's.\n" + "\n".join(self._lost)
            )


# The cluster.


@contextmanager
def _runtime(address: str | None) -> Iterator[None]:
    """The runtime of this process if there is one, else one that is connected, or started, and shut down at the end."""
    ray = _ray()
    if ray.is_initialized():
        if address is not None:
            raise EngineError(
                f"Ray is already running in this process, so it cannot connect to {address}: leave out the address "
                "to use what is running, or call ray.shutdown() first."
            )
        yield
        return
    try:
        _connect(address or os.environ.get("RAY_ADDRESS"))
        yield
    finally:
        ray.shutdown()


def _connect(address: str | None) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    _require_listening(address)
    try:
        _ray().init(address, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError, _ray().exceptions.RayError) as error:
        place = f"the Ray cluster at {address}" if address else "Ray"
        raise EngineError(
            f"Cannot use {place}: {error}. Check that it runs the same versions of Ray and Python; if it asks for a "
            "token, set RAY_AUTH_MODE=token here."
        ) from error


def _require_listening(address: str | None) -> None:
    """Find out in seconds what takes Ray minutes, after which it ends this process."""
    if address is None or address in ("auto", "local"):
        return
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdecimal():
        raise EngineError(
            f'{address} is no address of a Ray cluster: use "host:port" of its head node (port 6379 as a rule), "auto" '
            'on a machine that belongs to it, or "local". Ray Client (ray://) is not supported.'
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise EngineError(
            f"There is no Ray cluster at {address} ({error}): start one there with ray start --head, "
            'or use "local" for this machine alone.'
        ) from error


def _room(amounts: dict[str, float]) -> int:
    """How many workers the cluster's nodes hold."""
    return sum(
        min(int(node.get(kind, 0) / amount) for kind, amount in amounts.items() if amount) for node in _resources()
    )


def _resources() -> list[dict[str, float]]:
    return [node["Resources"] for node in _ray().nodes() if node["Alive"]]


def _require_room(amounts: dict[str, float]) -> int:
    if room := _room(amounts):
        return room
    nodes = "; ".join(f"{node.get('CPU', 0):g} CPUs and {node.get('GPU', 0):g} GPUs" for node in _resources())
    raise EngineError(
        f"No node of the Ray cluster has {amounts['CPU']:g} CPUs and {amounts['GPU']:g} GPUs for a worker; its nodes "
        f"have {nodes}. Ask for less, or add a node first (a cluster that grows on demand is not waited for)."
    )
