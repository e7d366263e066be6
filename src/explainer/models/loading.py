"""Checkpoints: a causal language model and its tokenizer, loaded once, from the hub, a directory or a GGUF file."""

import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache, partial
from json import JSONDecodeError
from pathlib import Path
from typing import Any

import huggingface_hub
import torch
from huggingface_hub import constants
from huggingface_hub import errors as hub_errors
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers import __version__ as transformers_version
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES, tokenizer_class_from_name
from transformers.utils import logging as transformers_logging

from explainer.data import assets
from explainer.data.files import PERMIT, canonical_name, limit_advice
from explainer.errors import CheckpointError
from explainer.models import validation
from explainer.models.checkpoint import Checkpoint

STARTER = "SmolLM2-135M-Instruct"
"""Name of the checkpoint that comes through the package index."""

_POINTER = b"version https://git-lfs."
_CONVERT = "AutoModelForCausalLM.from_pretrained(...).save_pretrained(...) on a machine where you trust the file"
_MERGED = "AutoPeftModelForCausalLM.from_pretrained(...).merge_and_unload().save_pretrained(...)"
_MERGE = f"merge them: {_MERGED}, save the tokenizer beside it, and give that directory"
_ADVICE = {
    r"\.lora_|\.base_layer\.|^base_model\.": f"They are of an adapter; {_MERGE}",
    r"^(module|_orig_mod)\.": "They stand in a wrapper of its training; save what is inside it",
    "": "Correct its configuration (attention_bias, say), or give the model that it was made from",
}
"""What to do, by the names of weights that have no place."""
_EXAMPLES = "'gpt2', 'EleutherAI/pythia-160m', 'KoboldAI/fairseq-dense-125M', a directory or a .gguf file"
_HUB_SECONDS = 30
"""After which a hub that says nothing is not waited for."""

_INDEX = "model.safetensors.index.json"
_TEXTS = (
    *("config.json", "generation_config.json", "tokenizer.json", "tokenizer.*.json", "tokenizer_config.json"),
    *("special_tokens_map.json", "added_tokens.json", "emoji.json", "tekken.json"),
    *("vocab.json", "vocab.txt", "merges.txt", "dict.txt"),
    *("tokenizer.model", "spiece.model", "sentencepiece*.model", "spm*.model", "tiktoken.model"),
)
"""What transformers reads beside the weights: configuration and the files of tokenizers, by their names there."""

_OTHER_FORMATS = ("original/*", "consolidated*", "onnx/*")

_NO_WEIGHTS = re.compile(
    r"inv_freq$|(cos|sin)_cached$|\.attn(\.attention)?\.(masked_)?bias$|(^|\.)position_ids$|embed_positions\.weights$"
    r"|\.version$|_float_tensor$"
)
"""What older versions wrote beside the weights and newer ones compute: frequencies, masks, positions, versions."""

_COMPUTED = re.compile(r"inv_freq$|\.attn(\.attention)?\.bias$")
"""Those of `_NO_WEIGHTS` that say which model it is: how positions turn, and which tokens are attended to."""


def load(
    name: str | os.PathLike | None = None, *, dtype: torch.dtype | None = None, device: str | torch.device | None = None
) -> Checkpoint:
    """Load a causal language model from a hub id (`id` or `id@revision`), a local directory or a .gguf file.

    Without a name, the environment variable EXPLAINER_MODEL decides, else the starter checkpoint. `dtype` defaults
    to float32, `device` to a GPU when there is one. Only safetensors and GGUF are read, and no code from a repository
    is ever run.

    Raises CheckpointError: unknown name, no network, missing or damaged files, pickled weights, not a causal model.
    """
    name = canonical_checkpoint(str(name or os.environ.get("EXPLAINER_MODEL") or STARTER))
    dtype = dtype or torch.float32
    device = device_of(device)
    path, revision = _locate(name)
    if path.is_file():
        reader = _gguf_reader(path)
        files, read, of_model, of_both = (path,), (path,), {}, {"gguf_file": path.name}
    else:
        reader, files, read, of_model, of_both = None, _weight_files(path), _loaded(path), {"use_safetensors": True}, {}
    with _alone(read) as directory:
        model, tokenizer = _model(path, directory, dtype, **of_model, **of_both), _tokenizer(path, directory, **of_both)
    if reader is not None:
        _require_place(path, _without_place(model, reader))
        _require_no_scaling(path, model, reader)
    else:
        _require_floats(model, files)
        _require_computed(model, files)
    model = model.eval().requires_grad_(False).to(device)
    checkpoint = Checkpoint(model, tokenizer, name.partition("@")[0] if revision else name, revision, files)
    validation.require_usable(checkpoint)
    return checkpoint


def canonical_checkpoint(name: str) -> str:
    """A directory or file under one name, however it is spelled, else as it is; CheckpointError if it is not UTF-8."""
    if re.search("[\ud800-\udfff]", name):
        raise CheckpointError(f"the name {name!r} is not UTF-8; rename the directory.")
    return canonical_name(name, (STARTER,))


def save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, directory: Path) -> None:
    """Write a model that was trained here for `load`, whole or not at all; replaces what is there.

    Raises CheckpointError where the disk refuses.
    """
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent, ignore_cleanup_errors=True) as work:
            fresh = Path(work, "fresh")
            with _without_progress_bars():
                model.save_pretrained(fresh)
            tokenizer.save_pretrained(fresh)
            shutil.rmtree(directory, ignore_errors=True)
            os.replace(fresh, directory)
    except OSError as error:
        raise CheckpointError(f"the model cannot be kept in {directory} ({error}); free some space.") from error


def digest(name: str | os.PathLike) -> str:
    """SHA-256 of all that `load` reads for this name: weights, configuration and tokenizer; loads no model.

    Of the starter checkpoint it is that of the package file it comes in, whatever unpacked it. Raises CheckpointError.
    """
    if str(name) == STARTER:
        return assets.CHECKPOINT.sha256
    path, _ = _locate(str(name))
    files = [path] if path.is_file() else sorted(_loaded(path))
    total = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            total.update(f"{file.name}\0".encode() + hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def device_of(device: str | torch.device | None) -> torch.device:
    """The device of this name; without one, a GPU if there is one. CheckpointError where it cannot be used."""
    try:
        found = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError) as error:  # torch asserts that it was built for a device
        raise CheckpointError(f"device {device!r} cannot be used here ({error}); give cpu, or leave it out.") from error
    return found


def dtype_of(name: str, device: str | torch.device | None) -> torch.dtype:
    """The number format of this name; "auto" is float32, on a GPU bfloat16, or float16 if it does not compute in that.

    `memory.dtype_of` takes the memory into account.
    """
    if name != "auto":
        return getattr(torch, name)
    if device_of(device).type != "cuda":
        return torch.float32
    return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16


def skeleton(name: str | os.PathLike) -> PreTrainedModel:
    """The model of this name without its weights, on the device "meta": its shapes. Raises CheckpointError."""
    path, _ = _locate(str(name))
    directory = path.parent if path.is_file() else path
    if path.is_file() and not _n_tensors(path):
        _gguf_reader(path)  # says why, before memory is asked for that it would never fill
    try:
        config = _configuration(path)
        with torch.device("meta"):
            return AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    except CheckpointError:
        raise
    except Exception as error:  # as in `_model`
        raise CheckpointError(
            f"{path} does not describe a causal language model: {error!r}{_remedy(directory, error)}"
        ) from error


def _configuration(path: Path) -> Any:
    """That of a directory or file; refuses more layers than it has tensors, which would take for ever to build."""
    directory, of_file = (path.parent, {"gguf_file": path.name}) if path.is_file() else (path, {})
    config = AutoConfig.from_pretrained(directory, trust_remote_code=False, local_files_only=True, **of_file)
    theta = (getattr(config, "rope_parameters", None) or {}).get("rope_theta")
    if not of_file and theta != (written := _read_json(path / "config.json").get("rope_theta")) and theta and written:
        raise CheckpointError(f"{path}/config.json says two things, rope_theta {written} and {theta}; take out one.")
    files = (path,) if path.is_file() else filter(Path.is_file, _weights(path))
    n_layers, n_tensors = getattr(config, "num_hidden_layers", 0), sum(map(_n_tensors, files))
    if n_layers > n_tensors:
        of = f"{n_layers} layers, and holds {n_tensors} tensors"
        raise CheckpointError(f"{path} says that it has {of}; fetch it again, or correct the number.")
    return config


def _locate(name: str) -> tuple[Path, str | None]:
    if name == STARTER:
        return assets.checkpoint_path(), None
    path = Path(os.path.expanduser(name))
    with _permission():
        is_here = path.is_dir() or (path.is_file() and path.suffix.lower() == ".gguf")
    if is_here:
        _require_permission(path)
        return path, None
    if path.is_absolute() or name.startswith((".", "~")) or path.suffix.lower() == ".gguf" or path.exists():
        raise CheckpointError(f"{name!r} is neither a directory nor an existing .gguf file; give the path of one.")
    return _download(name)


@contextmanager
def _permission() -> Iterator[None]:
    """Else what may not be read looks damaged, and the advice would be to delete it."""
    try:
        yield
    except PermissionError as error:
        raise CheckpointError(f"{error.filename} may not be read by this user; {PERMIT}.") from error
    except OSError as error:
        raise CheckpointError(f"{error.filename} cannot be read ({error.strerror}); give another path.") from error


def _require_permission(path: Path) -> None:
    with _permission():
        for file in (path,) if path.is_file() else _loaded(path) if os.listdir(path) else ():
            with file.open("rb") as stream:
                if stream.read(len(_POINTER)) == _POINTER:
                    raise CheckpointError(f"{file} is a pointer of Git LFS; fetch the file with git lfs pull.")


@lru_cache(maxsize=16)  # a process asks the hub once, and what it loads, weighs and names is one revision
def _download(name: str) -> tuple[Path, str]:
    hub_id, _, revision = name.partition("@")
    silent = _is_silent(hub_id, revision)
    try:
        path = _snapshot(hub_id, revision, silent)
    except (hub_errors.GatedRepoError, hub_errors.DisabledRepoError) as error:
        raise CheckpointError(f"{name!r} needs permission on the hub ({error}); ask, then `hf auth login`.") from error
    except hub_errors.RevisionNotFoundError as error:
        raise CheckpointError(f"{hub_id!r} has no revision {revision!r} on the hub; leave out @{revision}.") from error
    except (hub_errors.RepositoryNotFoundError, hub_errors.HFValidationError) as error:
        raise CheckpointError(f"there is no model {name!r} on the hub; names look like {_EXAMPLES}.") from error
    except Exception as error:  # a proxy or a page in place of the hub makes its client raise whatever
        raise CheckpointError(_why_not_downloaded(name, error, silent)) from error
    path = Path(path)
    _require_permission(path)
    if not list(path.glob("*.safetensors")) and (converted := _converted(hub_id)):
        raise CheckpointError(
            f"{name!r} holds no *.safetensors file, and pickled weights are not read; the hub has them converted: give "
            f"'{hub_id}@{converted}'."
        )
    return path, path.name


def _snapshot(hub_id: str, revision: str, silent: bool) -> str:
    """The folder of the hub's cache; without the hub, one with all that is needed, where it is known what that is."""
    weights, others = ("*.safetensors", _INDEX), {"revision": revision or None, "ignore_patterns": list(_OTHER_FORMATS)}
    try:
        return huggingface_hub.snapshot_download(
            hub_id, allow_patterns=[*weights, *_TEXTS], local_files_only=silent, **others
        )
    except hub_errors.LocalEntryNotFoundError:
        needed = [pattern for pattern in _TEXTS if pattern != "generation_config.json"]
        with suppress(hub_errors.LocalEntryNotFoundError):
            path = huggingface_hub.snapshot_download(hub_id, allow_patterns=needed, local_files_only=True, **others)
            if (files := _weights(Path(path))) and all(file.is_file() for file in files):
                return path  # other weights of the listing, as those of a second format, are not loaded
        raise


def _is_silent(hub_id: str, revision: str) -> bool:
    """Whether the hub says nothing at all for so long; a download would wait for it for ever."""
    try:
        huggingface_hub.HfApi().model_info(hub_id, revision=revision or None, timeout=_HUB_SECONDS)
    except Exception as error:  # every other one comes again, and is named, in the download
        return type(error).__name__.endswith("Timeout")
    return False


def _why_not_downloaded(name: str, error: Exception, silent: bool) -> str:
    """What happened between here and the hub, and what to do."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"{name!r} cannot be kept in {constants.HF_HUB_CACHE} ({error.strerror}); free some space, or set HF_HOME "
            "to a directory on another disk, and run again to go on."
        )
    what = f"no answer within {_HUB_SECONDS} s" if silent else " ".join(str(error).split())
    if isinstance(error, JSONDecodeError):
        what = "what answers is no hub; is it the login page of a network?"
    hub = f"the hub {constants.ENDPOINT}{' (HF_ENDPOINT)' if 'HF_ENDPOINT' in os.environ else ''}"
    return (
        f"{name!r} is not in the local hub cache and {hub} could not be reached ({what}). Check the name "
        "and the connection, give a local directory (none here is called so), or leave the name out to use the "
        f"starter checkpoint {STARTER}."
    )


def _converted(hub_id: str) -> str | None:
    """The first pull request of a repository that has its weights as safetensors; the hub opens such by itself."""
    hub = huggingface_hub.HfApi()
    try:
        asked = [ref.ref for ref in hub.list_repo_refs(hub_id, include_pull_requests=True).pull_requests or ()]
        for ref in sorted(asked, key=lambda ref: int(ref.rpartition("/")[2])):
            if any(name.endswith(".safetensors") for name in hub.list_repo_files(hub_id, revision=ref)):
                return ref
    except Exception:  # without the hub the reader is told how to convert
        return None
    return None


def _loaded(directory: Path) -> set[Path]:
    """The files of a directory that decide what is loaded from it; others, as logs of a training, come and go."""
    weights = _weights(directory)
    index = [] if directory / "model.safetensors" in weights else [directory / _INDEX]
    texts = [file for pattern in _TEXTS for file in directory.glob(pattern)]
    named = (directory / name for name in _tokenizer_files(directory))
    return {file for file in (*weights, *index, *texts, *named) if file.is_file()}


def _tokenizer_files(directory: Path) -> Iterable[str]:
    """The names of the files that the class of a directory's tokenizer reads, as that class declares them."""
    with suppress(CheckpointError, ImportError):  # a damaged file, or a package that it lacks: it is not loaded
        written = [directory / name for name in ("config.json", "tokenizer_config.json")]
        its = {key: value for file in written if file.is_file() for key, value in _read_json(file).items()}
        name = its.get("tokenizer_class") or TOKENIZER_MAPPING_NAMES.get(str(its.get("model_type")))
        return tuple(getattr(tokenizer_class_from_name(str(name)), "vocab_files_names", {}).values())
    return ()


def _weights(directory: Path) -> tuple[Path, ...]:
    """The files that transformers takes weights from, in its order: one, else those of the index, here or not."""
    whole, index = directory / "model.safetensors", directory / _INDEX
    if whole.is_file():
        return (whole,)
    if index.is_file():
        return _indexed(index)
    return tuple(sorted(directory.glob("*.safetensors")))


def _indexed(index: Path) -> tuple[Path, ...]:
    listed = _read_json(index).get("weight_map")
    names = listed.values() if isinstance(listed, dict) else ()
    if not names or not all(isinstance(name, str) and name == Path(name).name for name in names):
        raise CheckpointError(f"{index} does not say which file beside it holds which weight; fetch it again.")
    return tuple(index.parent / name for name in sorted(set(names)))


def _weight_files(directory: Path) -> tuple[Path, ...]:
    """The weight files of a directory, after every cheap check that can explain why it will not load."""
    _require_no_adapter(directory)
    config = directory / "config.json"
    if not config.is_file():
        models = (found.parent for name in ("config", "adapter_config") for found in directory.glob(f"*/{name}.json"))
        inside = sorted([*directory.glob("*.gguf"), *models], key=lambda its: (len(its.name), its.name))
        give = inside[-1] if inside else "the directory that save_pretrained wrote"  # of checkpoints the newest
        raise CheckpointError(f"{directory} has no config.json; give {give}.")
    files = _weights(directory)
    if not files:
        if gguf := sorted(directory.glob("*.gguf")):
            raise CheckpointError(f"{directory} holds no *.safetensors file; give {gguf[-1]}.")
        pickled = [p.name for p in sorted(directory.iterdir()) if p.suffix in (".bin", ".pt", ".pth", ".ckpt")]
        raise CheckpointError(
            f"{directory} holds no *.safetensors file (found {', '.join(pickled) or 'no weights'}). Pickled weights "
            f"are not read, because a pickle can run any code when it is opened; convert them: {_CONVERT}."
        )
    if missing := [file.name for file in files if not file.is_file()]:
        where = f"listed in {_INDEX}" if (directory / _INDEX).is_file() else "to which a link leads"
        raise CheckpointError(f"{directory} lacks {', '.join(missing)}, {where}; fetch them again.")
    for path in files:
        try:
            with safe_open(path, framework="pt"):
                pass
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{path} is damaged or cut short ({error}); delete it and fetch it again.") from error
    family = _read_json(config).get("model_type")
    if family and not (isinstance(family, str) and family in CONFIG_MAPPING):
        raise CheckpointError(
            f"{directory} is of the family {family!r}, which transformers {transformers_version} does not know, "
            "and code of a repository is never run; install a newer transformers, or use a family that `explainer "
            "models` lists."
        )
    if quantised := _read_json(config).get("quantization_config"):
        method = quantised.get("quant_method", "unknown") if isinstance(quantised, dict) else quantised
        raise CheckpointError(
            f"{directory} holds quantised weights ({method}), which cannot be fine-tuned or compared here; give the "
            "repository that they were made from, with --dtype bfloat16 if memory is short."
        )
    named = _read_json(config).get("architectures")
    architectures = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    if architectures and not any(a.endswith(("ForCausalLM", "LMHeadModel")) for a in architectures):
        raise CheckpointError(
            f"{directory} holds a {architectures[0]}, which does not predict the next token; "
            f"give a decoder-only language model, like {_EXAMPLES}."
        )
    return files


def _require_no_adapter(directory: Path) -> None:
    """What PEFT writes is only what a training added, whatever configuration lies beside it."""
    adapters = sorted(directory.glob("adapter*.*"))
    if adapters and all(file in adapters for file in _weights(directory)):
        what = f"an adapter ({adapters[0].name}), and not the model that it adapts"
        raise CheckpointError(f"{directory} holds {what}; {_MERGE}.")


def _read_json(path: Path) -> dict:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except PermissionError:
        raise  # told by `_require_permission`
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}); fetch it again.") from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{path} holds no JSON object; fetch it again.")
    return found


def _gguf_reader(path: Path) -> Any:
    """A file's header and all its tensors, which one that was cut short lacks."""
    gguf = _gguf(path)
    try:
        reader = gguf.GGUFReader(path)
        parts = reader.get_field(gguf.Keys.Split.LLM_KV_SPLIT_COUNT)
        n_parts = int(parts.contents()) if parts else 1
    except Exception as error:  # the reader unpacks bytes as they come, and fails wherever they end
        raise CheckpointError(f"{path} is damaged or cut short ({error!r}); delete it and fetch it again.") from error
    if n_parts > 1:
        raise CheckpointError(
            f"{path} is one of the {n_parts} parts of a split file; merge them with `llama-gguf-split --merge` of "
            "llama.cpp, given the first part and a name, and give the file of that name."
        )
    kind = reader.get_field("general.type")
    its = str(kind.contents()) if kind else "model"
    if its != "model" or not reader.tensors:
        what = f"no model, but its {its}" if its != "model" else "no weights, only a vocabulary or settings"
        raise CheckpointError(f"{path} holds {what}; give the file of the model.")
    return reader


def _n_tensors(path: Path) -> int:
    """How many tensors a file says that it has, in its header; what it holds is not mapped into memory."""
    with path.open("rb") as file:
        if path.suffix == ".safetensors":
            return len(json.loads(file.read(int.from_bytes(file.read(8), "little"))).keys() - {"__metadata__"})
        return int.from_bytes(file.read(16)[8:], "little")


def _gguf(path: Path) -> Any:
    try:
        import accelerate  # noqa: F401, PLC0415 - only a GGUF file needs them
        import gguf  # noqa: PLC0415
    except ImportError as error:
        raise CheckpointError(
            f"{path}: a .gguf file needs more packages ({error}): pip install gguf accelerate"
        ) from error
    return gguf


def _without_place(model: PreTrainedModel, reader: Any) -> list[str]:
    """The tensors of a GGUF file, which transformers leaves out in silence, for which a model has no place."""
    here = {name: p.numel() for name, p in model.named_parameters()}
    there = {one.name: int(one.n_elements) for one in reader.tensors if not _is_buffer(one)}
    if model.config.tie_word_embeddings:
        there.pop("output.weight", None)
    if sum(there.values()) <= sum(here.values()):
        return []  # names alone do not tell: weights of experts, for one, are laid out anew
    architecture = reader.get_field("general.architecture").contents()
    import gguf  # noqa: PLC0415 - it has made the reader

    kind = next(kind for kind, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(kind, model.config.num_hidden_layers)
    known = {names.get_name(name, (".weight", ".bias")) for name in here}
    return [name for name in there if name not in known]


def _require_no_scaling(path: Path, model: PreTrainedModel, reader: Any) -> None:
    """Refuse angles of positions that a GGUF file scales and transformers does not."""
    fields = {name.partition(".")[2]: field for name, field in reader.fields.items() if ".rope.scaling." in name}
    kind, factor = (fields.get(f"rope.scaling.{name}") for name in ("type", "factor"))
    scales = kind and kind.contents() != "none" and not (factor and factor.contents() == 1)
    if scales and (getattr(model.config, "rope_parameters", None) or {}).get("rope_type") == "default":
        raise CheckpointError(f"{path} scales its positions ({kind.contents()}), which is not read; use safetensors.")


def _is_buffer(tensor: Any) -> bool:
    """Whether it holds the frequencies of a rotation, which are at most 1, and not the factors that divide them."""
    return tensor.name == "rope_freqs.weight" and bool((tensor.data <= 1).all())


def _require_place(path: Path, names: Iterable[str]) -> None:
    if names := sorted(names):
        shown = ", ".join(names[:3]) + ", ..." * (len(names) > 3)
        advice = next(its for pattern, its in _ADVICE.items() if any(re.search(pattern, name) for name in names))
        raise CheckpointError(
            f"{path} holds weights for which the model that it describes has no place ({shown}); without them it is "
            f"another model. {advice}."
        )


def _require_floats(model: PreTrainedModel, files: Iterable[Path]) -> None:
    """Refuse integers, which would be loaded as weights without their scale."""
    here = {name for name, _ in model.named_parameters()}
    for path in files:
        with safe_open(path, framework="pt") as file:
            kinds = {name: file.get_slice(name).get_dtype() for name in here & set(file.keys())}
        if other := sorted(name for name, kind in kinds.items() if not re.match("B?F[0-9]", kind)):
            what = f"{kinds[other[0]]} where the model has weights ({other[0]}), and not their scale"
            raise CheckpointError(f"{path} holds {what}; give the repository that they were made from.")


def _require_computed(model: PreTrainedModel, files: Iterable[Path]) -> None:
    """Refuse stored frequencies, scaled or not yet, and masks that are not those which the configuration gives."""
    ropes = getattr(model.config, "rope_parameters", None) or {}
    thetas = [each.get("rope_theta") for each in (ropes, *ropes.values()) if isinstance(each, dict)]
    here = dict(model.named_buffers())
    for path in files:
        with safe_open(path, framework="pt") as file:
            for name in filter(_COMPUTED.search, file.keys()):
                kept, kind = file.get_tensor(name).float().cpu(), "inv_freq" if name.endswith("inv_freq") else name
                own = [its.float().cpu() for its_name, its in here.items() if its_name.endswith(kind)]
                if kind == "inv_freq":
                    powers = [-torch.linspace(0, 1, len(its) + 1)[:-1] for its in own]
                    own += [theta**power for power in powers for theta in filter(None, thetas)]
                if own and not any(map(partial(_rounded_alike, kept), own)):
                    ways = "correct config.json (rope_theta or window_size, say), or give the model that it is of"
                    raise CheckpointError(f"{path} holds {name}, which is not what its configuration gives; {ways}.")


def _rounded_alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two vectors, or two masks as far as both go, differ by the rounding of float16 or bfloat16 at most."""
    if one.ndim != other.ndim or (one.ndim == 1 and len(one) != len(other)):
        return False
    corner = tuple(map(slice, map(min, one.shape, other.shape)))
    return torch.allclose(one[corner], other[corner], rtol=2**-8, atol=2**-24)


@contextmanager
def _alone(files: Iterable[Path]) -> Iterator[Path]:
    """The directory of files; links to them alone beside an adapter, which PEFT adds, or the tokenizer of another."""
    (directory,) = {file.parent for file in files}
    with ExitStack() as stack:
        taken = (directory / name for name in ("adapter_config.json", "tokenizer.json"))
        if any(file not in files and file.exists() for file in taken):
            directory = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            for file in files:
                link = Path(directory, file.name)
                try:
                    link.symlink_to(file.resolve())
                except OSError:  # Windows asks for a right
                    os.link(file, link)
        yield Path(directory)


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


def _model(path: Path, directory: Path, dtype: torch.dtype, **options) -> PreTrainedModel:
    try:
        _configuration(path)
        with _without_progress_bars():
            model, report = AutoModelForCausalLM.from_pretrained(
                directory,
                dtype=dtype,
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # refused below, with the name of the weight
                **options,
            )
    except CheckpointError:
        raise
    except Exception as error:  # transformers and what it calls raise whatever a file makes them
        raise CheckpointError(
            f"{path} could not be loaded as a causal language model: {error!r}{_remedy(directory, error)}"
        ) from error
    model.config.return_dict, model.config.output_attentions, model.config.output_hidden_states = True, False, False
    if mismatched := sorted(name for name, *_ in report["mismatched_keys"]):
        raise CheckpointError(
            f"{path} holds weights of other shapes than its config.json says ({', '.join(mismatched[:3])}); fetch both "
            "again."
        )
    _require_place(path, (name for name in report["unexpected_keys"] if not _NO_WEIGHTS.search(name)))
    if report["missing_keys"]:
        missing = ", ".join(sorted(report["missing_keys"])[:3])
        raise CheckpointError(f"{path} lacks weights that the model needs ({missing}, ...); fetch it again.")
    return model


def _remedy(directory: Path, error: Exception) -> str:
    """What may be taken out of a config.json that does not load: what a training wrote that is no part of the model."""
    if limit := limit_advice(error):
        return f"; {limit}"
    path = directory / "config.json"
    written = _read_json(path) if path.is_file() else {}
    found = [name for name in ("use_return_dict", "attn_implementation", "_attn_implementation") if name in written]
    dtypes = [name for name in ("dtype", "torch_dtype") if isinstance(written.get(name), str)]
    found += [name for name in dtypes if not hasattr(torch, written[name])]
    found += ["quantization_config"] * (written.get("quantization_config") == {})
    found += ["pad_token_id"] * ("Padding_idx" in str(error))
    return f"; take {' and '.join(found)}, left by a training, out of config.json" if found else ""


def _tokenizer(path: Path, directory: Path, **options) -> PreTrainedTokenizerBase:
    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, trust_remote_code=False, local_files_only=True, **options)
    except Exception as error:  # as above; `tokenizers` raises bare ones
        remedy = "give a file that holds one" if options else f"save one beside it{_remedy(directory, error)}"
        raise CheckpointError(f"{path} has no tokenizer that can be read ({error!r}); {remedy}.") from error
    tokenizer.clean_up_tokenization_spaces = False  # a text keeps its spaces; some versions warn that it does
    bpe = getattr(getattr(tokenizer, "backend_tokenizer", None), "model", None)
    if getattr(bpe, "dropout", None):
        bpe.dropout = None  # of its training: a text would have other tokens each time
    return tokenizer
