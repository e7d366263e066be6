"""Room: the memory that a setting takes, and what a machine or a GPU has of it."""

import ctypes
import math
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath

import torch
from transformers import PreTrainedModel

from explainer.errors import CheckpointError
from explainer.models import architectures, loading, scoring

_PROCESS = 0.5e9
"""Bytes of Python with its libraries: measured."""

_TOKENS = 40
"""Of a demonstration, more than those of most tasks."""

_N_MAPS = 48
"""Linear maps of one query that are held at once: 16 queries, in three states."""


_NO_MEMORY = "memory ran out: give --dtype bfloat16, fewer --workers, --k or --epochs, or a smaller model"

BYTES_PER_WEIGHT = {torch.float32: 7.7, torch.bfloat16: 4.9, torch.float16: 4.9}
"""Bytes that a setting takes for each weight, as `required_bytes` counts them for 24 layers of width 2048."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc


def required_bytes(
    model: PreTrainedModel, dtype: torch.dtype, n_shown: int, n_models: int, n_updates: int | None
) -> int:
    """Bytes at the peak: weights + updates + copies + passes + linear maps + the process itself.

    The updates are of all keys and values, in float32, and the copies of these in the number format of the weights,
    which also hold the gradient. The passes hold the keys and values of `n_shown` demonstrations twice, those of a pack
    of queries, and attention weights where attention is computed in one piece. Of `model` only the shapes are read.
    Where it is only asked, `n_updates` is None.
    """
    weights = sum(p.numel() for p in model.parameters()) * dtype.itemsize
    try:
        layers = architectures.architecture(model).layers
    except CheckpointError:  # a family that can be scored only
        return int(n_models * weights + _PROCESS)
    projections = [p for layer in layers for p in (layer.key, layer.value)]
    trained = sum(p.weight().numel() for p in projections)
    copies = sum(module.weight.numel() for module in {p.module for p in projections}) * dtype.itemsize
    longest = getattr(model.config, "max_position_embeddings", None) or math.inf
    tokens, pack = min(_TOKENS * n_shown, longest), scoring.PACK_TOKENS
    passes = (2 * tokens + pack) * sum(p.heads * p.head_size for p in projections) * dtype.itemsize
    if model.config._attn_implementation == "eager":
        passes += 3 * model.config.num_attention_heads * tokens * (tokens + pack) * 4
    if n_updates is None:
        return int(n_models * weights + passes + _PROCESS)  # nothing is trained, and no map is read off
    maps = _N_MAPS * sum(layer.key.heads * layer.key.head_size**2 for layer in layers) * 4
    return int(n_models * weights + n_updates * trained * 4 + copies + passes + maps + _PROCESS)


def release_freed_memory() -> None:
    """Let freed memory go back to the system at once, where the C library can be told to.

    glibc keeps freed blocks of up to 32 MB by itself. Between tensors that stay they are lost for the next ones of the
    same size: a setting of 1.3 billion weights took 1 GB more. Source: mallopt(3).
    """
    with suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, 8 << 20)
        mallopt(_M_TRIM_THRESHOLD, 64 << 20)


def free_bytes(device: torch.device, root: Path = Path("/")) -> int | None:
    """Bytes that are free: on a GPU, or on this machine, less where a container or a job has a limit; None if unknown.

    Source: proc(5), MemAvailable.
    """
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        available = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return None
    return min([available, *(limit - used for limit, used in _limits(root))])


def total_bytes(root: Path = Path("/")) -> float:
    """Bytes of this machine, less where a container or a job has a limit; NaN where they cannot be known."""
    known = [n for n in (_of_machine(), *(limit for limit, _ in _limits(root))) if not math.isnan(n)]
    return min(known, default=math.nan)


def largest_model(dtype: torch.dtype) -> float:
    """How many weights a model may have here that is studied in a number format; NaN where memory is unknown."""
    return total_bytes() / BYTES_PER_WEIGHT[dtype]


def gpus() -> Iterator[tuple[str, int, torch.dtype]]:
    """Name, bytes and narrow number format of each GPU."""
    for i in range(torch.cuda.device_count()):
        its = torch.cuda.get_device_properties(i)
        yield its.name, its.total_memory, loading.dtype_of("auto", f"cuda:{i}")


def dtype_of(name: str, device: str | None, need: Callable[[torch.dtype], int]) -> torch.dtype:
    """As `loading.dtype_of`, but "auto" is float32 wherever what is needed in it fits the device: it rounds least."""
    try:
        if name == "auto" and fits(need(torch.float32), loading.device_of(device)):
            return torch.float32
    except CheckpointError:
        pass  # whoever loads it says why
    return loading.dtype_of(name, device)


def report_unexpected(error: Exception) -> str:
    """What an error says that no check foresaw, with what to do where memory ran out."""
    what = f"{type(error).__name__}: {error}"
    return f"{what}; {_NO_MEMORY}" if _ran_out(error) else what


def _ran_out(error: Exception) -> bool:
    """Whether memory ran out, of a GPU or of a processor, which has no exception of its own in torch."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or bool(
        re.search("can(no|')t allocate memory", str(error), re.I)
    )


def _of_machine() -> float:
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if not hasattr(ctypes, "windll"):
        return math.nan
    kilobytes = ctypes.c_ulonglong()
    known = ctypes.windll.kernel32.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes))
    return kilobytes.value * 1024 if known else math.nan


def _limits(root: Path) -> Iterator[tuple[int, int]]:
    """The limit of each control group of this process and of all above, and what is used of it and cannot be dropped.

    Also those of the addresses and the data of this process, by which schedulers of jobs limit its memory. Source:
    cgroups(7), /proc/self/cgroup; cgroup-v2, memory.max; cgroup-v1, memory.limit_in_bytes; getrlimit(2); proc(5).
    """
    with suppress(ImportError, OSError, IndexError):  # Windows has neither
        import resource  # noqa: PLC0415

        pages = (root / "proc/self/statm").read_text().split()
        for its_pages, kind in ((pages[0], resource.RLIMIT_AS), (pages[5], resource.RLIMIT_DATA)):
            if (limit := resource.getrlimit(kind)[0]) != resource.RLIM_INFINITY:
                yield limit, int(its_pages) * resource.getpagesize()
    try:
        found = (root / "proc/self/cgroup").read_text().splitlines()
        lines = [line.split(":", 2) for line in found if line.count(":") > 1]
    except OSError:
        lines = []
    of = {controllers: name for _, controllers, name in lines}
    first = next((name for controllers, name in of.items() if "memory" in controllers.split(",")), "/")
    kinds = (
        ("", of.get("", "/"), "memory.max", "memory.current", "inactive_file"),
        ("", of.get("", "/"), "memory.high", "memory.current", "inactive_file"),  # beyond which it is slowed to a halt
        ("memory", first, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    )
    for mount, name, *its, dropped in kinds:
        group = PurePosixPath(name)
        for here in (group, *group.parents):  # a container may see its own group as the root, or not at all
            folder = root / "sys/fs/cgroup" / mount / str(here).lstrip("/")
            with suppress(OSError, ValueError):  # no such group, or no limit
                limit, used = (int((folder / file).read_text()) for file in its)
                stat = folder / "memory.stat"  # which some sandboxes lack
                lines = stat.read_text().splitlines() if stat.is_file() else []
                yield limit, used - int(dict(line.split() for line in lines).get(dropped, 0))


def fits(n_bytes: float, device: torch.device) -> bool:
    """Whether so many bytes, and a process, are free."""
    have = free_bytes(device)
    return have is None or n_bytes + _PROCESS <= have


def require_memory(
    name: str, device: torch.device, dtype: torch.dtype, need: Callable[[torch.dtype], int], n: int
) -> None:
    """Raise CheckpointError where n processes with a model, which need so much each, do not fit the device."""
    have, each = free_bytes(device), need(dtype)
    if have is None or n * each <= have:
        return
    of_all = f", and {n} processes {n * each / 1e9:.1f} GB" if n > 1 else ""
    ways = ["fewer --workers"] * (n > 1)
    if dtype.itemsize > 2 and (half := need(torch.bfloat16)) <= have:
        ways += [f"--dtype bfloat16 ({half / 1e9:.1f} GB)"]
    ways += ["fewer --k or --epochs", "a smaller model", "or a machine with more memory"]
    raise CheckpointError(
        f"{name} does not fit: a setting needs about {each / 1e9:.1f} GB in {str(dtype).removeprefix('torch.')}"
        f"{of_all}, and {have / 1e9:.1f} GB are free on {device}; give {', '.join(ways)}."
    )


def bytes_to_score(name: str, n_shown: int, dtype: torch.dtype) -> int:
    """Bytes that a model takes which is only asked, after so many demonstrations; raises CheckpointError."""
    return required_bytes(loading.skeleton(name), dtype, n_shown, 1, None)


def require_memory_to_score(name: str, device: torch.device, dtype: torch.dtype, n_shown: int) -> None:
    """Raise CheckpointError where a model that is only asked, after so many demonstrations, does not fit the device."""
    need = partial(bytes_to_score, name, n_shown)
    try:
        need(dtype)
    except CheckpointError:
        return  # whoever loads it says why
    require_memory(name, device, dtype, need, 1)
