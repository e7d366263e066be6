"""Engines: where the settings of a study are computed, in this process, in several, or on the machines of a cluster.

An engine takes groups of settings and `work`, which computes one group, and yields what `work` yields. Who stores the
outcomes stays in one process: a run that is interrupted loses no more than the groups in flight.
"""

import itertools
import math
import multiprocessing
import os
import signal
import socket
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from threading import Thread
from types import ModuleType
from typing import Any, TypeVar

from explainer.commands import one_line
from explainer.data.files import limit_advice
from explainer.errors import EngineError, ExplainerError

Group = tuple[Any, ...]
Outcome = TypeVar("Outcome")
Work = Callable[[Group], Iterator[Outcome]]
"""Yields one outcome per setting of the group, in their order."""

_ATTEMPTS = 2
_CONNECT_SECONDS = 5
_MOST_ON_WINDOWS = 61
"""Processes that one of Windows can wait for: concurrent.futures.ProcessPoolExecutor."""


def local(groups: Sequence[Group], work: Work[Outcome], *, seconds: float = math.inf) -> Iterator[Outcome]:
    """Compute the groups one after the other in this process.

    After the first setting none begins that would end later than in so many seconds if it took as long as the longest.
    """
    begun, longest = time.monotonic(), 0.0
    last = begun
    for outcome in itertools.chain.from_iterable(map(work, groups)):
        yield outcome
        now = time.monotonic()
        longest, last = max(longest, now - last), now
        if now + longest > begun + seconds:
            return


def in_processes(
    groups: Sequence[Group], work: Work[Outcome], *, workers: int, threads: int = 1, gpus: Sequence[str] = ()
) -> Iterator[Outcome]:
    """Compute the groups in so many processes of this machine; outcomes arrive in the order of completion.

    Each process computes with so many threads. Of the `gpus`, which are named as `gpus_of` names them, process i sees
    number i mod n alone: one each, or shared evenly where there are more processes. An interrupt ends all at once.
    `work`, groups and outcomes must be picklable. Raises EngineError if a process dies, for want of memory as a rule,
    and what `work` raises.
    """
    pool = _pool(max(1, min(workers, len(groups))), threads, gpus)  # which starts all at once, needed or not
    try:
        with _room_for(workers):
            begun = [pool.submit(_outcomes, work, group) for group in groups]
        for finished in as_completed(begun):
            yield from finished.result()
    except BrokenProcessPool as error:
        why = "Did memory run out, or what a user may start (ulimit -u)?"
        raise EngineError(f"A process died ({error}). {why} Use fewer than {workers}.") from error
    except (GeneratorExit, KeyboardInterrupt, EngineError):  # nobody waits for what is being computed
        for process in list(pool._processes.values()):
            process.terminate()
        raise
    finally:
        with suppress(RuntimeError):  # a pool whose own thread could not be started waits for it all the same
            pool.shutdown(cancel_futures=True)


def _pool(workers: int, threads: int, gpus: Sequence[str]) -> ProcessPoolExecutor:
    workers = min(workers, _MOST_ON_WINDOWS) if sys.platform == "win32" else workers
    spawn = multiprocessing.get_context("spawn")  # a forked process would inherit the locks of torch's threads
    with _room_for(workers):
        seen = spawn.SimpleQueue()
        for i in range(workers if gpus else 0):
            seen.put(gpus[i % len(gpus)])
        return ProcessPoolExecutor(workers, spawn, _begin, (threads, seen if gpus else None))


@contextmanager
def _room_for(workers: int) -> Iterator[None]:
    """Say what is lacking where processes, or the locks and pipes between them, cannot be had."""
    try:
        yield
    except (OSError, ImportError, RuntimeError) as error:
        if limit := limit_advice(error):
            raise EngineError(f"{workers} processes cannot be started here ({error}): {limit}.") from error
        if type(error) is RuntimeError:
            raise
        raise EngineError(  # an ImportError or NotImplementedError where Python was built without locks
            f"{workers} processes need shared memory for their locks, and cannot have it here ({error}): make /dev/shm "
            "writable and give it some room, or leave out --workers."
        ) from error


def gpus_of(device: str | None) -> list[str]:
    """The GPUs that processes may share out, as CUDA_VISIBLE_DEVICES names them.

    There are none to share out on another device, or where one GPU is asked for by its number.
    """
    import torch  # noqa: PLC0415 (`explainer --help` answers without it)

    if device not in (None, "cuda") or not torch.cuda.is_available():
        return []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    n = torch.cuda.device_count()
    return [str(i) for i in range(n)] if visible is None else visible.replace(" ", "").split(",")[:n]


def is_local(engine: Callable) -> bool:
    """Whether an engine computes in this process."""
    return getattr(engine, "func", engine) is local


def n_parallel(engine: Callable) -> int:
    """How many groups an engine computes at the same time on this machine; 0 where it computes on others."""
    made = getattr(engine, "func", engine)
    return 0 if made is on_ray else getattr(engine, "keywords", {}).get("workers", 1)


def _begin(threads: int, seen: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that waits for the outcomes ends this one
    if seen is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = seen.get()  # which CUDA reads when it is first used

    import torch  # noqa: PLC0415 (only workers need it here)

    torch.set_num_threads(threads)
    warnings.formatwarning = one_line
    with suppress(RuntimeError):  # no thread can be started, as whoever computes will say
        Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when the one that waits for its outcomes was killed: else it would compute for nobody."""
    if parent := multiprocessing.parent_process():
        parent.join()
    os._exit(1)


def _outcomes(work: Work[Outcome], group: Group) -> list[Outcome]:
    return list(work(group))


def on_ray(
    groups: Sequence[Group], work: Work[Outcome], *, address: str | None = None, gpus: float = 0, cpus: float = 1
) -> Iterator[Outcome]:
    """Compute each group as a task of a Ray cluster; outcomes arrive in the order of completion.

    A task holds `cpus` CPUs, as threads, and `gpus` GPUs; one whose worker dies is computed once more. `address` is
    "host:port" of the cluster's head node, "auto" for the cluster that this machine belongs to, or "local" for a new
    one on this machine; by default $RAY_ADDRESS, else a running cluster, else a new one. A runtime that is already
    running in this process is used and left running. Closing the iterator, an exception and an interrupt end all tasks.

    Outcomes are those of `local`, to the byte, if `work` depends on nothing but the group, and the machines have the
    same packages, the same kind of processor and as many threads. `work`, groups and outcomes must be picklable, and
    the modules that define them importable on every machine.

    Raises EngineError if Ray is not installed, if there is no cluster at the address or none of its nodes has the CPUs
    and GPUs, and, after all other groups, if a group lost its worker twice; and what `work` raises.
    """
    if not groups:
        return  # nothing to compute is no reason to start a cluster
    ray, lost = _ray(), []
    with _runtime(address):
        _require_room(cpus, gpus)
        options = {"num_cpus": cpus, "num_gpus": gpus, "max_retries": _ATTEMPTS - 1, "runtime_env": _threads(cpus)}
        task, shared = ray.remote(**options)(_outcomes), ray.put(work)
        waiting = [task.remote(shared, group) for group in groups]
        try:
            while waiting:
                (done,), waiting = ray.wait(waiting)
                try:
                    outcomes = ray.get(done)
                except ray.exceptions.RayTaskError as error:
                    raise (error.cause if isinstance(error.cause, ExplainerError) else error) from None
                except ray.exceptions.RayError as death:
                    lost.append(str(death))
                    continue
                yield from outcomes
        finally:
            for task in waiting:
                ray.cancel(task, force=True)
    if lost:
        raise EngineError(
            f"{len(lost)} groups lost their worker {_ATTEMPTS} times. Did memory run out? With more CPUs for each, "
            f"fewer share a machine's.\n{lost[0]}"
        )


def _threads(cpus: float) -> dict[str, Any]:
    """Ray leaves an inherited OMP_NUM_THREADS as it is, and torch and NumPy read it when they are imported."""
    return {"env_vars": {"OMP_NUM_THREADS": str(max(1, int(cpus)))}}


def _ray() -> ModuleType:
    try:
        # Optional, and it takes seconds.
        import ray  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise EngineError(
            f'The Ray engine needs Ray ({error}): pip install -e ".[ray]" in the checkout, or use the processes of '
            "this machine."
        ) from error
    return ray


@contextmanager
def _runtime(address: str | None) -> Iterator[None]:
    """The runtime of this process if there is one, else one that is connected, or started, and shut down at the end."""
    ray, address = _ray(), address or os.environ.get("RAY_ADDRESS")
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    _require_listening(address)
    try:
        ray.init(address, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # a start that takes Ray too long raises nothing more special
        ray.shutdown()
        raise EngineError(
            f"Cannot use Ray at {address or 'this machine'}: {error}. Check that it runs the same versions of Ray and "
            "Python."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _require_listening(address: str | None) -> None:
    """Find out in seconds what takes Ray minutes, after which it ends this process."""
    if address is None or address in ("auto", "local"):
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        raise EngineError(
            f"There is no Ray cluster at {address} ({error}): give host:port of its head node (port 6379 as a rule), "
            '"auto" on a machine that belongs to it, or "local" for this machine alone.'
        ) from error


def _require_room(cpus: float, gpus: float) -> None:
    """Ray would wait for ever for a node that holds the task."""
    nodes = [node["Resources"] for node in _ray().nodes() if node["Alive"]]
    if not any(node.get("CPU", 0) >= cpus > 0 and node.get("GPU", 0) >= gpus >= 0 for node in nodes):
        have = "; ".join(f"{node.get('CPU', 0):g} CPUs and {node.get('GPU', 0):g} GPUs" for node in nodes)
        raise EngineError(
            f"No node of the Ray cluster has {cpus:g} CPUs and {gpus:g} GPUs for a task; its nodes have {have}. Ask "
            "for less, or add a node first."
        )
