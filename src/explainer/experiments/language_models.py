"""Many training runs: a grid of settings, each trained once and stored as soon as it is finished."""

import itertools
import os
import platform
import shutil
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
import transformers
from transformers import GPT2LMHeadModel, PreTrainedTokenizerFast

import explainer
from explainer.data import assets, corpora, hidden_markov
from explainer.data.corpora import SEPARATOR, Tokens
from explainer.errors import CheckpointError, DivergenceError
from explainer.lab.store import GRIDS, Identity, Store, Stored, published_directory
from explainer.models.training import NO_AVERAGE, PROTOCOL, Setting, TrainingError, train
from explainer.theory import momentum


def grid(**axes: Any) -> list[Setting]:
    """Every combination of values of `Setting`, each given as a value or a list; the seed varies slowest.

    Plain attention comes once, with eta = 0, whatever etas are listed. Raises TrainingError for an unknown key, a value
    of another type, and an eta without an average.
    """
    types = {f.name: f.type for f in fields(Setting)}
    values = {name: value if isinstance(value, (list, tuple)) else [value] for name, value in axes.items()}
    for name, given in values.items():
        if name not in types:
            raise TrainingError(f"there is no key {name!r}; known keys: {', '.join(types)}.")
        allowed = (float, int) if types[name] is float else (types[name],)  # an int is a float, a bool no int
        if not given or not all(type(value) in allowed for value in given):
            raise TrainingError(f"{name} = {axes[name]!r} must be of type {types[name].__name__}, or a list of such.")
    if "eta" in axes and "average" not in axes:
        raise TrainingError(f"eta = {axes['eta']!r} needs an average; known: {', '.join(momentum.AVERAGES)}.")
    order = sorted(values, key=_SLOWEST_FIRST.index)
    combinations = [dict(zip(order, each, strict=True)) for each in itertools.product(*(values[n] for n in order))]
    return list(dict.fromkeys(Setting(**_with_own_eta(each)) for each in combinations))


_SLOWEST_FIRST = (
    "seed",
    *(f.name for f in fields(Setting) if f.name not in ("seed", "average", "eta")),
    "eta",
    "average",
)


def _with_own_eta(values: dict[str, Any]) -> dict[str, Any]:
    return values | {"eta": 0.0} if values.get("average") == NO_AVERAGE else values


def read_grids(path: str | os.PathLike) -> dict[str, list[Setting]]:
    """The grids that a TOML file describes: one table for each, with the arguments of `grid` for its keys.

    Raises TrainingError, which names file, table and key.
    """
    path = Path(path).expanduser()
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise TrainingError(
            f"cannot read {path} ({error}); give the path of a TOML file with one table per grid."
        ) from error
    if not tables or not all(isinstance(table, dict) for table in tables.values()):
        raise TrainingError(f"{path} must hold tables only, like [rates], with the keys of a setting below each.")
    grids = {}
    for name, table in tables.items():
        try:
            grids[name] = grid(**table)
        except TrainingError as error:
            raise TrainingError(f"{path}, [{name}]: {error}") from error
    return grids


def identity(setting: Setting, tokens: Tokens) -> Identity:
    """Everything that determines the result of a run: the setting, the tokens, and `training.PROTOCOL`."""
    return Identity(setting.slug, {"cell": asdict(setting), "data": tokens.digest, "protocol": PROTOCOL})


def plan(settings: Iterable[Setting], store: Store) -> list[tuple[Setting, Identity, Stored | None]]:
    """The runs, what determines each, and its result if it is stored; trains nothing."""
    tokens = _tokens_of(settings := list(dict.fromkeys(settings)))
    planned = [(one, identity(one, tokens[one.corpus, one.vocabulary])) for one in settings]
    return [(one, its, store.load(its)) for one, its in planned]


def run(settings: Iterable[Setting], store: Store, *, every: int = 100, progress: bool = True) -> list[Stored]:
    """Train what is not stored yet, store each result at once, and return all, in the order given.

    The state of the run is kept every so many steps, and the trained model with its tokenizer at the end, both in the
    cache (`home`). A run that diverges does not stop the others: TrainingError at the end names all such runs. Raises
    CorpusError, CheckpointError and ResultsError as `train` and `Store` do.
    """
    store.require_writable()
    planned, failed = plan(settings, store), []
    for device in {setting.device for setting, _, finished in planned if finished is None}:
        _require_device(device)
    tokens = _tokens_of([setting for setting, _, _ in planned])
    for setting, its, finished in planned:
        if finished is None:
            try:
                _train_and_store(
                    setting, tokens[setting.corpus, setting.vocabulary], its, store, every=every, progress=progress
                )
            except DivergenceError as error:
                failed.append(str(error))
    if failed:
        raise TrainingError(f"{len(failed)} of {len(planned)} runs could not be finished:\n" + "\n".join(failed))
    return [store.load(its) for _, its, _ in planned]


def home(its: Identity) -> Path:
    """The directory in the cache with the checkpoint of a run (`state.safetensors`), later its model (`model`)."""
    return assets.cache_dir() / "training" / Path(its.filename).stem


def _require_device(name: str) -> None:
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError) as error:
        raise TrainingError(f"device = {name!r} cannot be used ({error}); give cpu, or cuda where a GPU is.") from error


def _tokens_of(settings: Sequence[Setting]) -> dict[tuple[str, int], Tokens]:
    return {
        key: hidden_markov.tokens() if key[0] == hidden_markov.NAME else corpora.tokens(*key)
        for key in dict.fromkeys((one.corpus, one.vocabulary) for one in settings)
    }


def _train_and_store(setting: Setting, tokens: Tokens, its: Identity, store: Store, **options: Any) -> None:
    checkpoint = home(its) / "state.safetensors"
    trained = train(setting, tokens, checkpoint=checkpoint, **options)
    result = dict(trained.result)
    if setting.corpus == hidden_markov.NAME:
        result["in_context"] = hidden_markov.in_context(trained.model, setting.length)
    _save_model(trained.model, tokens, home(its) / "model")
    store.save(its, result, provenance=_provenance(setting, tokens), run=trained.run)
    checkpoint.unlink(missing_ok=True)
    for leftover in checkpoint.parent.glob(f".{checkpoint.name}-*"):  # of runs that were killed while writing
        shutil.rmtree(leftover, ignore_errors=True)


def _save_model(model: GPT2LMHeadModel, tokens: Tokens, directory: Path) -> None:
    """For `from_pretrained` and `explainer.models.checkpoints.load`."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokens.tokenizer, bos_token=SEPARATOR, eos_token=SEPARATOR, unk_token=SEPARATOR
    )
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent, ignore_cleanup_errors=True) as work:
            fresh = Path(work, "fresh")
            model.save_pretrained(fresh)
            tokenizer.save_pretrained(fresh)
            shutil.rmtree(directory, ignore_errors=True)
            os.replace(fresh, directory)
    except OSError as error:
        raise CheckpointError(f"the model cannot be kept in {directory} ({error}); free some space.") from error


def _provenance(setting: Setting, tokens: Tokens) -> dict[str, Any]:
    """What a reader of the result wants to know and what does not, or should not, determine it."""
    return {
        "data": {"source": tokens.source, "licence": tokens.licence},
        "device": platform.machine() if setting.device == "cpu" else torch.cuda.get_device_name(setting.device),
        "threads": torch.get_num_threads(),
        "explainer": explainer.__version__,
        "python": platform.python_version(),
        "versions": {module.__name__: module.__version__ for module in (np, tokenizers, torch, transformers)},
    }


# Reading back


def stored(name: str, **where: Any) -> list[Stored]:
    """The results of a grid of the book's stored runs whose settings have the given values, in the order of the grid.

    `stored("half", average="none")` are the plain runs of every seed. Raises TrainingError for an unknown grid, for
    values that no run of it has, and for a run that is not stored, and ResultsError for a damaged file.
    """
    place = published_directory() / "training"
    grids = read_grids(place / GRIDS)
    if name not in grids:
        raise TrainingError(f"there is no grid {name!r} in {place / GRIDS}; it has {', '.join(grids)}.")
    chosen = [one for one in grids[name] if all(getattr(one, key) == value for key, value in where.items())]
    if not chosen:
        raise TrainingError(f"no run of the grid {name!r} has {where}.")
    return [_result_of(setting, place) for setting in chosen]


def _result_of(setting: Setting, place: Path) -> Stored:
    found = Store(place).load(Identity(setting.slug, {"cell": asdict(setting), "protocol": PROTOCOL}))
    if found is None:
        command = f"explainer train --grid {place / GRIDS} --results {place}"
        raise TrainingError(f"{setting.slug} is not stored in {place}; train it: {command}")
    return found


def table(finished: Iterable[Stored]) -> list[tuple[str, ...]]:
    """A row for each run: its setting, perplexities by context length, induction accuracy and utilisation."""
    finished = list(finished)
    contexts = sorted({int(c) for one in finished for c in one.result["perplexity"]})
    rows = [("variant", "seed", "lr", "steps", *(f"ppl {c}" for c in contexts), "induction")]
    for one in finished:
        cell, perplexity = one.identity["cell"], one.result["perplexity"]
        shown = (f"{perplexity[str(c)]:.4g}" if str(c) in perplexity else "-" for c in contexts)
        numbers = (str(cell["seed"]), f"{cell['lr']:g}", str(cell["steps"]), *shown)
        rows.append((Setting(**cell).variant, *numbers, f"{one.result['induction']['accuracy']:.3f}"))
    return rows
