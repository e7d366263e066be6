"""Where settings are computed if not in this process: in several of this machine, or on the machines of a Ray cluster.

Both take `work`, which computes one group of settings, and the groups, and yield what `work` yields, a group when
all of it is finished. The process that asks stores the outcomes. Groups and outcomes travel pickled.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from threading import Thread
from typing import Any

from explainer.errors import ExperimentError

Work = Callable[[Sequence[Any]], Iterator[Any]]


def in_processes(work: Work, groups: Sequence[Sequence[Any]], *, workers: int, threads: int = 1) -> Iterator[Any]:
    """Compute in so many processes of this machine, each with so many threads.

    Whatever ends the asking ends all of them. Raises ExperimentError if a process dies, for want of memory as a rule.
    """
    spawn = multiprocessing.get_context("spawn")  # a forked process would inherit the locks of torch's threads
    try:
        with ProcessPoolExecutor(max(1, min(workers, len(groups))), spawn, _begin, (threads,)) as pool:
            try:
                for finished in as_completed([pool.submit(_outcomes, work, group) for group in groups]):
                    yield from finished.result()
            except BaseException:  # else what is still to be done would be waited for, and lost
                for process in list(pool._processes.values()):
                    process.kill()
                raise
    except BrokenProcessPool as error:
        raise ExperimentError(f"A process died ({error}). Did memory run out? Use fewer than {workers}.") from error


def on_ray(
    work: Work, groups: Sequence[Sequence[Any]], *, address: str | None = None, cpus: int = 1, gpus: float = 0
) -> Iterator[Any]:
    """Compute on a Ray cluster, in as many processes as it has room for, each with `cpus` CPUs and `gpus` GPUs.

    `address` is "host:port" of the head node, "auto", or "local"; by default $RAY_ADDRESS, else a cluster that runs
    here, else a new one on this machine. Every machine needs this package. Raises ExperimentError if Ray is not
    installed, or if the cluster has no room for one process.
    """
    try:  # optional, and it takes seconds
        import ray  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
        from ray.util.multiprocessing import Pool  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ExperimentError(f'--engine ray needs Ray ({error}): pip install -e ".[ray]" in the checkout.') from error
    ray.init(address, include_dashboard=False, log_to_driver=False, ignore_reinit_error=True)
    have, needed = ray.cluster_resources(), {"CPU": cpus, "GPU": gpus}
    room = min(int(have.get(name, 0) // each) for name, each in needed.items() if each)
    if room < 1:
        raise ExperimentError(f"no room for {cpus} CPUs and {gpus:g} GPUs in the Ray cluster, which has {have}.")
    options = {"num_cpus": cpus, "num_gpus": gpus}
    with Pool(max(1, min(room, len(groups))), _begin, (cpus,), ray_remote_args=options) as pool:
        for outcomes in pool.imap_unordered(partial(_outcomes, work), groups):
            yield from outcomes


def _begin(threads: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt ends a worker without a word
    if parent := multiprocessing.parent_process():  # none on Ray; killed, it would leave this one waiting for ever
        Thread(target=lambda: parent.join() or os._exit(1), daemon=True).start()

    import torch  # noqa: PLC0415 (only workers need it here)

    torch.set_num_threads(threads)


def _outcomes(work: Work, group: Sequence[Any]) -> list[Any]:
    return list(work(group))
