"""Room: the memory that a setting takes, what is free of it, and the number format that fits."""

import math
from collections.abc import Callable
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

BYTES_PER_WEIGHT = {torch.float32: 7.7, torch.bfloat16: 4.9, torch.float16: 4.9}
"""Bytes that a setting takes for each weight, as `required_bytes` counts them for 24 layers of width 2048."""


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


def device_of(name: str | torch.device | None) -> torch.device:
    """The device of this name; without one, a GPU where there is one, else the processor."""
    return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))


def free_bytes(device: torch.device) -> float:
    """Bytes that are free on a GPU or on this machine; infinity where the system does not say (all but Linux).

    Source: proc(5), MemAvailable.
    """
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    status = Path("/proc/meminfo")
    lines = status.read_text(encoding="ascii").splitlines() if status.is_file() else []
    return next((1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")), math.inf)


def dtype_of(name: str, device: str | torch.device | None, need: Callable[[torch.dtype], int]) -> torch.dtype:
    """The number format of this name. "auto" is float32 wherever what is needed in it fits: it rounds least.

    Elsewhere it is bfloat16, or float16 on a GPU that does not compute in that. Raises what `need` raises.
    """
    if name != "auto":
        return getattr(torch, name)
    its = device_of(device)
    if need(torch.float32) <= free_bytes(its):
        return torch.float32
    computes = its.type != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.bfloat16 if computes else torch.float16


def require_memory(name: str, device: str | torch.device | None, n_bytes: float) -> None:
    """Raise CheckpointError where so many bytes are not free: the system ends a process that takes them unasked."""
    its = device_of(device)
    if n_bytes > (free := free_bytes(its)):
        raise CheckpointError(
            f"{name} does not fit: it needs about {n_bytes / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free on {its}; "
            "give --dtype bfloat16, fewer --workers, --k or --epochs, or a smaller model."
        )
