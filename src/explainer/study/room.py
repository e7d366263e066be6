"""Room: the memory that a setting takes, and what a machine or a GPU has of it."""

import ctypes
import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
from transformers import PreTrainedModel

from explainer.errors import CheckpointError
from explainer.models import architectures, scoring

_PROCESS = 0.5e9
"""Bytes of Python with its libraries: measured."""

_TOKENS = 40
"""Of a demonstration, more than those of most tasks."""

_N_MAPS = 48
"""Linear maps of one query that are held at once: 16 queries, in three states."""


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc


def needed(model: PreTrainedModel, dtype: torch.dtype, n_shown: int, n_models: int, n_updates: int) -> int:
    """Bytes at the peak: weights + updates + copies + passes + linear maps + the process itself.

    The updates are of all keys and values, in float32, and the copies of these in the number format of the weights,
    which also hold the gradient. The passes hold the keys and values of `n_shown` demonstrations twice, those of a pack
    of queries, and attention weights where attention is computed in one piece. Of `model` only the shapes are read.
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
    maps = _N_MAPS * sum(layer.key.heads * layer.key.head_size**2 for layer in layers) * 4
    return int(n_models * weights + n_updates * trained * 4 + copies + passes + maps + _PROCESS)


def give_back() -> None:
    """Let freed memory go back to the system at once, where the C library can be told to.

    glibc keeps freed blocks of up to 32 MB by itself. Between tensors that stay they are lost for the next ones of the
    same size: a cell of 1.3 billion weights took 1 GB more. Source: mallopt(3).
    """
    with suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, 8 << 20)
        mallopt(_M_TRIM_THRESHOLD, 64 << 20)


def free(device: torch.device, root: Path = Path("/")) -> int | None:
    """Bytes that are free: on a GPU, or on this machine, less where a container or a job has a limit; None if unknown.

    Source: proc(5), MemAvailable; cgroup-v2, memory.max.
    """
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        available = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return None
    group = root / "sys/fs/cgroup"
    try:
        limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        files = next(line for line in (group / "memory.stat").read_text().splitlines() if line.startswith("inactive_f"))
    except (OSError, ValueError, StopIteration):  # no group, or no limit
        return available
    return min(available, limit - used + int(files.split()[1]))


def fits(n_bytes: float, device: torch.device) -> bool:
    """Whether so many bytes, and a process, are free."""
    have = free(device)
    return have is None or n_bytes + _PROCESS <= have


def require(name: str, device: torch.device, dtype: torch.dtype, need: Callable[[torch.dtype], int], n: int) -> None:
    """Raise CheckpointError where n processes with a model, which need so much each, do not fit the device."""
    have, each = free(device), need(dtype)
    if have is None or n * each <= have:
        return
    of_all = f", and {n} processes {n * each / 1e9:.1f} GB" if n > 1 else ""
    ways = ["fewer --workers"] * (n > 1)
    ways += [f"--dtype bfloat16 ({need(torch.bfloat16) / 1e9:.1f} GB)"] * (dtype.itemsize > 2)
    ways += ["fewer --k or --epochs", "a smaller model", "or a machine with more memory"]
    raise CheckpointError(
        f"{name} does not fit: a setting needs about {each / 1e9:.1f} GB in {str(dtype).removeprefix('torch.')}"
        f"{of_all}, and {have / 1e9:.1f} GB are free on {device}; give {', '.join(ways)}."
    )
