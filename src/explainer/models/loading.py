"""Checkpoints: a causal language model and its tokenizer, loaded once, from the hub or a directory, and tried out."""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import huggingface_hub
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from explainer.data import assets
from explainer.data.files import fresh_folder
from explainer.errors import CheckpointError
from explainer.models import memory, scoring
from explainer.models.checkpoint import Checkpoint

STARTER = "SmolLM2-135M-Instruct"
"""Name of the checkpoint that comes through the package index."""

_OF_THE_INDEX = {STARTER: assets.CHECKPOINT.sha256, assets.GEMMA.name: assets.GEMMA_SHA256}

_FILES = (
    *("*.safetensors", "model.safetensors.index.json", "config.json", "generation_config.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.json", "vocab.txt", "merges.txt", "dict.txt", "*.model"),
)
"""What transformers reads: weights, configuration, and the files of tokenizers. No pickles, and no code."""

_NO_WEIGHTS = re.compile(
    r"inv_freq$|\.(attn|attention)\.(masked_)?bias$|position_ids$|embed_positions\.weights$|\.version$|_float_tensor$"
)
"""What older versions wrote beside the weights and newer ones compute: frequencies, masks, positions, versions."""

_HALF_PRECISION = 0.3
"""Standard deviations of the logits by which they may differ on average in half precision; bfloat16 makes 0.07."""


def load(
    name: str | os.PathLike | None = None, *, dtype: torch.dtype | None = None, device: str | torch.device | None = None
) -> Checkpoint:
    """Load a causal language model from a hub id (`id` or `id@revision`) or a local directory.

    Without a name, the environment variable EXPLAINER_MODEL decides, else the starter checkpoint. `dtype` defaults
    to float32, `device` to a GPU when there is one. Only safetensors are read, and no code from a repository is ever
    run.

    Raises CheckpointError: unknown name, no network, missing or damaged files, weights that are missing or have no
    place, a model whose prompts behind a prefix are not scored as whole ones.
    """
    name = str(name or os.environ.get("EXPLAINER_MODEL") or STARTER)
    path, revision = _locate(name)
    try:
        with _without_progress_bars():
            model, report = AutoModelForCausalLM.from_pretrained(
                path,
                dtype=dtype or torch.float32,
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
            )
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=False, local_files_only=True)
        tokenizer.clean_up_tokenization_spaces = False  # a text keeps its spaces; some versions warn that it does
        model = model.eval().requires_grad_(False).to(memory.device_of(device))
        unplaced = (weight for weight in report["unexpected_keys"] if not _NO_WEIGHTS.search(weight))
        for what, weights in (
            ("holds weights for which the model that it describes has no place", sorted(unplaced)),
            ("lacks weights that the model needs", sorted(report["missing_keys"])),
        ):
            if weights:
                raise CheckpointError(f"{name} {what}, such as {weights[0]}; it would be another model.")
        checkpoint = Checkpoint(model, tokenizer, name.partition("@")[0] if revision else name, revision)
        _require_packed_as_whole(checkpoint)
    except CheckpointError:
        raise
    except Exception as error:  # transformers and what it calls raise whatever a file, a device or a family makes them
        raise CheckpointError(
            f"{name} cannot be used as a causal language model ({_in_one_line(error)}); only safetensors are "
            "loaded, and `explainer models` lists families that can."
        ) from error
    return checkpoint


def save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, directory: Path) -> None:
    """Write a model that was trained here for `load`, whole or not at all; replaces what is there.

    Raises CheckpointError where the disk refuses.
    """
    try:
        with fresh_folder(directory) as fresh, _without_progress_bars():
            model.save_pretrained(fresh)
            tokenizer.save_pretrained(fresh)
    except OSError as error:
        raise CheckpointError(f"the model cannot be kept in {directory} ({error}); free some space.") from error


def digest(name: str | os.PathLike) -> str:
    """SHA-256 of all that `load` reads for this name: weights, configuration and tokenizer; loads no model.

    Of a checkpoint of the package index it is that of its file there, whatever unpacked it. Raises CheckpointError.
    """
    if str(name) in _OF_THE_INDEX:
        return _OF_THE_INDEX[str(name)]
    path, _ = _locate(str(name))
    total = hashlib.sha256()
    for file in sorted({file for pattern in _FILES for file in path.glob(pattern)}):
        with file.open("rb") as stream:
            total.update(f"{file.name}\0".encode() + hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def skeleton(name: str | os.PathLike) -> PreTrainedModel:
    """The model of this name without its weights, on the device "meta": its shapes. Raises CheckpointError."""
    path, _ = _locate(str(name))
    try:
        config = AutoConfig.from_pretrained(path, trust_remote_code=False, local_files_only=True)
        with torch.device("meta"):
            return AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    except Exception as error:  # as in `load`
        raise CheckpointError(f"{name} does not describe a causal language model: {_in_one_line(error)}") from error


def _locate(name: str) -> tuple[Path, str | None]:
    """The directory of a checkpoint, and the hub's commit if it is from there."""
    if name == STARTER:
        return assets.checkpoint_path(), None
    if name == assets.GEMMA.name:  # which comes when it is asked for by its name, and its terms are shown
        return assets.fetch([name], offline=True)[name], None
    path = Path(name).expanduser()
    if path.is_dir():
        return path, None
    if path.is_absolute() or name.startswith("."):
        raise CheckpointError(f"{name!r} is no directory; give one with a model in it.")
    return _download(name)


@lru_cache(maxsize=16)  # a process asks the hub once, and what it loads, weighs and names is one revision
def _download(name: str) -> tuple[Path, str]:
    hub_id, _, revision = name.partition("@")
    try:
        path = Path(huggingface_hub.snapshot_download(hub_id, revision=revision or None, allow_patterns=list(_FILES)))
    except Exception as error:  # its client raises whatever a network, a disk or a name makes it
        raise CheckpointError(
            f"{name!r} is no directory here, and cannot be had from the hub ({_in_one_line(error)}). Names look like "
            f"'gpt2' or 'EleutherAI/pythia-160m'; without one, the starter checkpoint {STARTER} is used."
        ) from error
    return path, path.name


def _in_one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


@contextmanager
def _without_progress_bars() -> Iterator[None]:
    """Loading takes a second, and in a notebook the library's bar is a widget that stays behind, dead, on the page."""
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()


@torch.inference_mode()
def _require_packed_as_whole(checkpoint: Checkpoint) -> None:
    """Raise CheckpointError unless two rows behind one prefix have the logits of two whole prompts.

    That fails where a model sees later tokens, counts places in the row that are not its positions, changes logits
    after the output embedding, or has weights that are not finite.
    """
    vocabulary = checkpoint.model.config.vocab_size
    tokens = (vocabulary // 2 + torch.arange(8)) % vocabulary  # the first ones are seldom trained, and round badly
    prefix, rows = [checkpoint.first_token_id, *tokens[:4].tolist()], (tokens[4:6].tolist(), tokens[6:].tolist())
    behind = scoring.row_logits(checkpoint, scoring.encode(checkpoint, prefix), [(row, []) for row in rows])
    for i, logits in behind:
        ids = torch.tensor([[*prefix, *rows[i]]], device=checkpoint.device)
        whole = checkpoint.model(input_ids=ids).logits[0, -1].float()
        if checkpoint.dtype.itemsize > 2:
            same = torch.allclose(logits[0], whole, atol=1e-3, rtol=1e-3)
        else:
            same = (logits[0] - whole).abs().mean() < _HALF_PRECISION * whole.std()
        if not same:
            raise CheckpointError(
                f"{checkpoint.name}: in {checkpoint.dtype}, a prompt behind a prefix is not scored as the whole prompt."
            )
