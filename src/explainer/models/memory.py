"""Room: the memory that a setting takes, what is free of it, and the number format that fits."""

import math
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import PreTrainedModel

from explainer.errors import CheckpointError
from explainer.models import scoring

_PROCESS = 0.5e9  # bytes of Python with its libraries: measured
_TOKENS = 40  # of a demonstration, more than those of most tasks
N_MAPS = 16  # queries whose linear maps are held at once, in three states

BYTES_PER_WEIGHT = {torch.float32: 7.7, torch.bfloat16: 4.9, torch.float16: 4.9}
"""Bytes that a setting takes for each weight, as `required_bytes` counts them for 24 layers of width 2048."""


def required_bytes(model: PreTrainedModel, dtype: torch.dtype, n_shown: int, n_models: int, n_updates: int) -> int:
    """Bytes at the peak: weights + passes + updates + their copies + linear maps + the process itself.

    The passes hold the keys and values of `n_shown` demonstrations twice, those of a pack of queries, and attention
    weights where attention is computed in one piece. The updates are of all keys and values, in float32, and the copies
    of these in the number format of the weights; without an update nothing is trained, and no map is read off. Of
    `model` only the shapes are read.
    """
    config = model.config
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    per_token = 2 * config.num_hidden_layers * heads * size  # keys and values
    weights = n_models * sum(p.numel() for p in model.parameters()) * dtype.itemsize
    shown = _TOKENS * n_shown
    passes = (2 * shown + scoring.PACK_TOKENS) * per_token * dtype.itemsize
    if config._attn_implementation == "eager":
        passes += 3 * config.num_attention_heads * shown * (shown + scoring.PACK_TOKENS) * 4
    updates = (4 * n_updates + dtype.itemsize) * per_token * config.hidden_size
    maps = 4 * 3 * N_MAPS * (per_token // 2) * size
    training = updates + maps if n_updates else 0
    return int(weights + passes + training + _PROCESS)


def device_of(name: str | torch.device | None) -> torch.device:
    """The device of this name; without one, a GPU where there is one, else the processor."""
    return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))


def free_bytes(device: torch.device) -> float:
    """Bytes that are free on a GPU or on this machine; infinity where the system does not say (all but Linux).

    Raises CheckpointError where there is no such GPU. Source: proc(5), MemAvailable.
    """
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise CheckpointError(f"there is no GPU here for {device}; leave out --device.")
        return torch.cuda.mem_get_info(device)[0]
    status = Path("/proc/meminfo")
    lines = status.read_text(encoding="ascii").splitlines() if status.is_file() else []
    return next((1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")), math.inf)


def dtype_of(name: str, device: str | torch.device | None, need: Callable[[torch.dtype], int]) -> torch.dtype:
    """The number format of this name. "auto" is float32 wherever what is needed in it fits: it rounds least.

    Elsewhere it is bfloat16, or float16 on a GPU that does not compute in that.
    """
    its = device_of(device)
    if name != "auto":
        return getattr(torch, name)
    if need(torch.float32) <= free_bytes(its):
        return torch.float32
    computes = its.type != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.bfloat16 if computes else torch.float16


def require_memory(name: str, device: str | torch.device | None, n_bytes: float) -> None:
    """Raise CheckpointError where so many bytes are not free: the system ends a process that takes them unasked."""
    if n_bytes > (free := free_bytes(device_of(device))):
        raise CheckpointError(
            f"{name} does not fit: it needs about {n_bytes / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free; "
            "give --dtype bfloat16, fewer --workers, --k or --epochs, or a smaller model."
        )
