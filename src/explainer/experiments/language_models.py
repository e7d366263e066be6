"""Language models with and without momentum attention, trained from scratch in matched sets."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import GPT2LMHeadModel, PreTrainedTokenizerFast

from explainer.data import assets, corpora, hidden_markov
from explainer.data.corpora import SEPARATOR, Tokens
from explainer.errors import StudyError
from explainer.lab.experiment import Computed, Experiment
from explainer.lab.store import Identity, Tables
from explainer.models import checkpoints
from explainer.models.training import CONTEXTS, NO_AVERAGE, PROTOCOL, Setting, Trained, train
from explainer.theory import momentum

_SLOWEST = ("seed", "corpus", "vocabulary", "layers", "width", "heads", "length", "batch", "steps", "lr", "warmup")
_FASTEST = ("weight_decay", "dtype", "device", "eta", "average")


class LanguageModels(Experiment[Setting]):
    """Trains one model for each setting; those that differ in average and eta alone form matched sets.

    The state of a run is kept every so many steps, and the trained model with its tokenizer at the end, both in the
    cache (`home`).
    """

    name = "language_models"
    command = "explainer train"
    setting = Setting
    protocol = PROTOCOL
    slowest_first = (*_SLOWEST, *_FASTEST)
    packages = ("numpy", "tokenizers", "torch", "transformers")
    shown = (*(f"perplexity_{context}" for context in CONTEXTS), "induction_accuracy")

    def __init__(self, *, every: int = 100):
        """Nothing is loaded before it is asked for."""
        self._every = every
        self._tokens: dict[tuple[str, int], Tokens] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Another process loads for itself."""
        return {"every": self._every}

    def __setstate__(self, given: dict[str, Any]) -> None:
        """See `__getstate__`."""
        self.__init__(**given)

    @classmethod
    def grid(cls, **axes: Any) -> list[Setting]:
        """As for every experiment; plain attention comes once, with eta = 0, whatever etas are listed."""
        if "eta" in axes and "average" not in axes:
            raise StudyError(f"eta = {axes['eta']!r} needs an average; known: {', '.join(momentum.AVERAGES)}.")
        return super().grid(**axes)

    @classmethod
    def of(cls, **values: Any) -> Setting:
        """Plain attention has no eta."""
        return super().of(**values | ({"eta": 0.0} if values.get("average") == NO_AVERAGE else {}))

    def parts(self, setting: Setting) -> dict[str, Any]:
        """The tokens."""
        return {"data": self._tokens_of(setting).digest}

    def prepare(self, settings: Sequence[Setting]) -> None:
        """Try every device; StudyError if one cannot be used."""
        for name in {setting.device for setting in settings}:
            try:
                torch.empty(1, device=name)
            except (RuntimeError, AssertionError) as error:
                raise StudyError(
                    f"device = {name!r} cannot be used ({error}); give cpu, or cuda where a GPU is."
                ) from error

    def compute(self, setting: Setting, *, progress: bool) -> Computed:
        """Train, from the last state if there is one, and keep the model."""
        tokens, place = self._tokens_of(setting), home(self.identity(setting))
        checkpoint = place / "state.safetensors"
        trained = train(setting, tokens, checkpoint=checkpoint, every=self._every, progress=progress)
        tables = _tables(trained, setting)
        _save_model(trained.model, tokens, place / "model")
        device = {} if setting.device == "cpu" else {"device": torch.cuda.get_device_name(setting.device)}
        return Computed(tables, {"source": tokens.source, "licence": tokens.licence, **device}, trained.run)

    def finished(self, identity: Identity) -> None:
        """Remove the state of the training, and what runs that were killed while writing have left."""
        (home(identity) / "state.safetensors").unlink(missing_ok=True)
        for leftover in home(identity).glob(".state.safetensors-*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def _tokens_of(self, setting: Setting) -> Tokens:
        key = setting.corpus, setting.vocabulary
        if key not in self._tokens:
            mixture = setting.corpus == hidden_markov.NAME
            self._tokens[key] = hidden_markov.tokens() if mixture else corpora.tokens(*key)
        return self._tokens[key]


def home(its: Identity) -> Path:
    """The directory in the cache with the checkpoint of a run (`state.safetensors`), later its model (`model`)."""
    return assets.cache_dir() / "training" / Path(its.filename).stem


def _tables(trained: Trained, setting: Setting) -> Tables:
    """`cells`; `curve`, losses over the training; `blocks`, the loss of each held-out block, by length of its context.

    For the mixture of hidden Markov models also `prompts`, accuracies by length and number of examples.
    """
    result = trained.result
    cells = {name: result[name] for name in ("parameters", "tokens", "flops", "weights")}
    cells |= {f"perplexity_{context}": value for context, value in result["perplexity"].items()}
    cells |= {f"induction_{name}": value for name, value in result["induction"].items()}
    blocks = {f"nll_{context}": values for context, values in result["held_out"]["nll"].items()}
    tables = {
        "cells": cells,
        "curve": result["curve"],
        "blocks": {"document": result["held_out"]["documents"], **blocks},
    }
    if setting.corpus != hidden_markov.NAME:
        return tables
    return tables | {"prompts": hidden_markov.in_context(trained.model, setting.length)}


def _save_model(model: GPT2LMHeadModel, tokens: Tokens, directory: Path) -> None:
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokens.tokenizer, bos_token=SEPARATOR, eos_token=SEPARATOR, unk_token=SEPARATOR
    )
    checkpoints.save(model, tokenizer, directory)
