"""Language models with and without momentum attention, trained from scratch in matched sets."""

from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from explainer.data import assets
from explainer.data.files import Tables
from explainer.errors import ExperimentError
from explainer.models import loading
from explainer.models.momentum_attention import LEARNED_CONVOLUTION
from explainer.theory import momentum
from explainer_lab import corpora, ngram
from explainer_lab.corpora import SEPARATOR, Tokens
from explainer_lab.experiment import Computed, Experiment
from explainer_lab.lm_probes import held_out_blocks
from explainer_lab.on_checkpoint import as_columns
from explainer_lab.store import SETTING, Identity
from explainer_lab.training import (
    FINAL_BLOCKS,
    POSITIONS,
    PROTOCOL,
    WEIGHT_DECAY,
    WITHOUT_ETA,
    Trained,
    TrainingSetting,
    train,
)

_SIZES = ("corpus", "vocabulary", "layers", "width", "heads", "length", "batch", "steps", "branches")
_SLOWEST_FIRST = ("seed", *_SIZES, "lr", "warmup", "device", "eta", "average")


class LanguageModels(Experiment[TrainingSetting]):
    """Trains one model for each setting; those that differ in average and eta alone form matched sets.

    The state of a run is kept every so many steps, and the trained model with its tokenizer at the end, both in the
    cache (`_run_directory`).
    """

    name = "language_models"
    setting = TrainingSetting
    protocol = PROTOCOL
    slowest_first = _SLOWEST_FIRST
    packages = ("numpy", "tokenizers", "torch", "transformers")
    shown = ("held_out", "copied")

    def __init__(self, *, every: int = 100):
        """Nothing is loaded before it is asked for."""
        self.made_of = {"every": every}
        self._tokens: dict[tuple[str, int], Tokens] = {}
        self._counts: dict[tuple[str, int, int], dict[str, float]] = {}

    @classmethod
    def grid(cls, **axes: Any) -> list[TrainingSetting]:
        """As for every experiment; what takes no eta comes once, with eta = 0, whatever etas are listed."""
        if "eta" in axes and "average" not in axes:
            raise ExperimentError(f"eta = {axes['eta']!r} needs an average; known: {', '.join(momentum.AVERAGES)}.")
        return super().grid(**axes)

    @classmethod
    def of(cls, **values: Any) -> TrainingSetting:
        """Without a decay in the average, eta is 0."""
        return super().of(**values | ({"eta": 0.0} if values.get("average") in WITHOUT_ETA else {}))

    def key(self, setting: TrainingSetting) -> Identity:
        """As for every experiment, with the values that a setting no longer has."""
        its = super().key(setting)
        its_setting = {**its.parts[SETTING], "dtype": "float32", "weight_decay": WEIGHT_DECAY}
        return Identity(its.slug, {**its.parts, SETTING: its_setting})

    def parts(self, setting: TrainingSetting) -> dict[str, Any]:
        """The tokens."""
        return {"data": self._tokens_of(setting).digest}

    def compute(self, setting: TrainingSetting, *, progress: bool) -> Computed:
        """Train, from the last state if there is one, and keep the model."""
        tokens, place = self._tokens_of(setting), _run_directory(self.identity(setting))
        checkpoint = place / "state.safetensors"
        elsewhere, kept = corpora.other_genre(tokens), {"checkpoint": checkpoint, **self.made_of}
        trained = train(setting, tokens, elsewhere, **kept, progress=progress)
        tables = _tables(trained)
        tables["settings"] |= self._counted(setting)
        if setting.average != LEARNED_CONVOLUTION:
            _save_model(trained.model, tokens, place / "model")
        checkpoint.unlink(missing_ok=True)
        device = {} if setting.device == "cpu" else {"device": torch.cuda.get_device_name(setting.device)}
        return Computed(tables, {"source": tokens.source, "licence": tokens.licence, **device}, trained.run)

    def _counted(self, setting: TrainingSetting) -> dict[str, float]:
        """What counting in the training text reaches on the same held-out blocks, after one token and after two."""
        key = setting.corpus, setting.vocabulary, setting.length
        if key not in self._counts:
            tokens = self._tokens_of(setting)
            blocks, _ = held_out_blocks(tokens, setting.length, FINAL_BLOCKS)
            nll = partial(ngram.nll, tokens.train, blocks, vocabulary=setting.vocabulary)
            self._counts[key] = {"counting_one": nll(1), "counting_two": nll(2)}
        return self._counts[key]

    def _tokens_of(self, setting: TrainingSetting) -> Tokens:
        key = setting.corpus, setting.vocabulary
        if key not in self._tokens:
            self._tokens[key] = corpora.tokens(*key)
        return self._tokens[key]


def _run_directory(its: Identity) -> Path:
    """The directory in the cache with the checkpoint of a run (`state.safetensors`), later its model (`model`)."""
    return assets.cache_dir() / "training" / Path(its.filename).stem


def _tables(trained: Trained) -> Tables:
    """`settings`; `budgets`, what a model of each budget has learned; `curve`, losses along the trunk.

    `blocks` is the loss of each held-out block and `positions` that of each stretch of POSITIONS positions, at every
    budget.
    """
    result, budgets = trained.result, trained.result["budgets"]
    settings = {name: result[name] for name in ("parameters", "flops")}
    last = {name: budgets[-1][name] for name in ("tokens", "held_out", "copied", "weights")}
    numbers = [{k: v for k, v in one.items() if k not in ("document", "block_nll", "position_nll")} for one in budgets]
    return {
        "settings": settings | last,
        "budgets": as_columns(numbers),
        "curve": result["curve"],
        "blocks": as_columns(
            [
                {"tokens": one["tokens"], "document": document, "nll": nll}
                for one in budgets
                for document, nll in zip(one["document"], one["block_nll"], strict=True)
            ]
        ),
        "positions": as_columns(
            [
                {"tokens": one["tokens"], "first_position": 1 + POSITIONS * i, "nll": nll}
                for one in budgets
                for i, nll in enumerate(one["position_nll"])
            ]
        ),
    }


def _save_model(model: PreTrainedModel, tokens: Tokens, directory: Path) -> None:
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokens.tokenizer, bos_token=SEPARATOR, eos_token=SEPARATOR, unk_token=SEPARATOR
    )
    loading.save(model, tokenizer, directory)
