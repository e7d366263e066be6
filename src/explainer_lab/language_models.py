"""Training language models from scratch, with and without momentum attention, in matched sets.

Settings that differ in `eta` and `average` alone start from the same weights, to the bit, and see the same windows of
the same text in the same order. One run gives a model at several budgets of tokens: a trunk is trained at a constant
rate, and for each budget a branch leaves it after four fifths and lowers the rate to 0.
Source: Dai et al. (2023), section 5; the branches: Hägele et al. 2024, arXiv 2405.18392.
"""

import copy
import hashlib
import math
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import Optimizer
from tqdm import tqdm
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from explainer.data import assets
from explainer.data.files import Tables
from explainer.errors import require
from explainer.models import loading, momentum_models
from explainer.models.momentum_models import LEARNED_CONVOLUTION, RECENCY_BIAS
from explainer.results.language_model_results import CURVE_WINDOWS
from explainer.theory import momentum
from explainer.theory.optimisation import clipped_step
from explainer_lab import training_corpora, training_probes
from explainer_lab.experiment import Computed, Experiment
from explainer_lab.lab_store import SETTING, Identity
from explainer_lab.on_checkpoint import as_columns
from explainer_lab.training_corpora import DEFAULT, SEPARATOR, Tokens

NO_AVERAGE = "none"
WITHOUT_ETA = (NO_AVERAGE, LEARNED_CONVOLUTION)
"""What takes no decay: plain attention, and a convolution whose weights are learned."""

BETAS = (0.9, 0.98)
"""Of AdamW; Dai et al. (2023), table 10."""

WEIGHT_DECAY = 0.1  # of matrices; vectors have none
FINAL_BLOCKS = 200  # held-out blocks on which a model is evaluated at the end of a budget
_BUDGET_RATIO = 4  # of one budget to the next
_DECAYING = 5  # the last step in so many of a budget is in its branch, where the rate falls
_CURVE_POINTS, _OTHER_BLOCKS = 40, 60


def _given(default: Any, meaning: str) -> Any:
    """A field with what `explainer-lab language-models --help` says of it."""
    return field(default=default, metadata={"help": meaning})


@dataclass(frozen=True, kw_only=True)
class TrainingSetting:
    """One training run: a corpus, and a Llama of `layers` x `width` that sees `batch` windows of `length` at a step.

    The largest budget is `steps` updates, each of the `branches` - 1 others a quarter of the next. `average` is a
    name of `explainer.theory.momentum.AVERAGES` or `recency_bias`, with its `eta`, `learned_convolution`, or `none`
    for plain attention. The learning rate rises linearly to `lr` over `warmup` steps and stays; in the last fifth of
    each budget it falls linearly to 0. Raises ExperimentError for values that cannot be used.
    """

    corpus: str = _given(DEFAULT, "manuals, a text file, a saved or a hub data set, as name:configuration")
    vocabulary: int = _given(512, "tokens")
    layers: int = 2
    width: int = 96
    heads: int = 4
    length: int = _given(512, "tokens in a window")
    batch: int = _given(4, "windows in a step")
    steps: int = _given(1280, "of the largest budget")
    branches: int = _given(1, "budgets, each four times the one before")
    lr: float = 3e-3
    warmup: int = _given(50, "steps")
    seed: int = 0
    eta: float = _given(0.0, "decay of the averages, in (0, 1)")
    average: str = _given(NO_AVERAGE, "none, momentum, normalised ...")
    device: str = _given("cpu", "such as cpu or cuda")

    def __post_init__(self):
        """Check every value."""
        share = _DECAYING * _BUDGET_RATIO ** (self.branches - 1)
        a_fifth = f"must be a multiple of {share}, so that each of {self.branches} budgets has a fifth."
        require(self.steps % share == 0, f"steps = {self.steps} {a_fifth}")
        first = self.decay_begins(self.budgets[0])
        require(0 <= self.warmup <= first, f"warmup = {self.warmup} must lie in 0 ... {first}.")
        names = (*WITHOUT_ETA, *momentum.AVERAGES, RECENCY_BIAS)
        require(self.average in names, f"average = {self.average!r} must be one of {', '.join(names)}.")
        require(
            (self.average in WITHOUT_ETA) == (self.eta == 0),
            f"eta = {self.eta} does not go with average = {self.average!r}: {' and '.join(WITHOUT_ETA)} have eta = 0, "
            "every other average needs an eta > 0.",
        )

    @property
    def slug(self) -> str:
        """A readable name."""
        variant = "plain" if self.average == NO_AVERAGE else self.average
        eta = f"-eta{self.eta:g}" if self.eta else ""
        size = f"{self.layers}x{self.width}-t{self.length}x{self.batch}-n{self.steps}-lr{self.lr:g}"
        return f"{self.corpus}-{size}-seed{self.seed}-{variant}{eta}"

    @property
    def budgets(self) -> tuple[int, ...]:
        """The budgets in steps, the smallest first."""
        return tuple(self.steps // _BUDGET_RATIO**i for i in reversed(range(self.branches)))

    @staticmethod
    def decay_begins(budget: int) -> int:
        """The step at which the branch of a budget leaves the trunk."""
        return budget - budget // _DECAYING

    @property
    def work(self) -> int:
        """Steps of trunk and branches together."""
        return self.decay_begins(self.steps) + sum(budget // _DECAYING for budget in self.budgets)

    @property
    def tokens_per_step(self) -> int:
        """Tokens that are predicted in one step."""
        return self.batch * self.length


# The parts of a run


def _initial_model(setting: TrainingSetting) -> LlamaForCausalLM:
    """A Llama with weights that depend on the seed and the sizes, not on eta, average or device."""
    config = LlamaConfig(
        vocab_size=setting.vocabulary,
        max_position_embeddings=setting.length,
        hidden_size=setting.width,
        intermediate_size=8 * setting.width // 3,
        num_hidden_layers=setting.layers,
        num_attention_heads=setting.heads,
        num_key_value_heads=setting.heads,
        tie_word_embeddings=True,
        initializer_range=0.6 * setting.width**-0.5,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(setting.seed)
        model = LlamaForCausalLM(config)
    if setting.average == RECENCY_BIAS:
        momentum_models.with_recency_bias(model, setting.eta)
    elif setting.average == LEARNED_CONVOLUTION:
        momentum_models.with_learned_convolution(model)
    elif setting.average != NO_AVERAGE:
        momentum_models.with_momentum(model, setting.eta, setting.average)
    nn.Module.to(model, setting.device)  # in place; transformers decorates its own `to` in a way that hides its type
    return model


def _batch(stream: Tensor, setting: TrainingSetting, step: int) -> Tensor:
    """The windows of a step, shape (batch, length + 1), at random places that depend on seed and step alone."""
    generator = np.random.default_rng([setting.seed, step])
    starts = torch.from_numpy(generator.integers(0, len(stream) - setting.length, setting.batch))
    return stream[starts[:, None] + torch.arange(setting.length + 1)]


def _learning_rate(setting: TrainingSetting, step: int, budget: int) -> float:
    """The rate of a step (from 0): lr min(1, (step + 1) / warmup, (budget - step) / (budget / 5))."""
    rise = (step + 1) / setting.warmup if setting.warmup else 1.0
    return setting.lr * min(1.0, rise, (budget - step) / (budget // _DECAYING))


# One run


@dataclass(frozen=True, eq=False)
class _Trained:
    """The model of the largest budget, losses along the trunk, and what was measured at the end of every budget."""

    model: LlamaForCausalLM = field(repr=False)
    curve: dict[str, list]
    budgets: list[dict[str, Any]]


def train(setting: TrainingSetting, tokens: Tokens, other_genre: Tensor, *, progress: bool = True) -> _Trained:
    """Train one model and evaluate it at every budget.

    AdamW with the norm of the gradient clipped to 1; weight decay on matrices only. `other_genre` is a stream of
    tokens to evaluate on beside the held-out part. Raises DivergenceError when the loss is not finite, ExperimentError
    when the corpus is too short.
    """
    evaluate = _Evaluation(setting, tokens, other_genre)
    trunk = branch = _initial_model(setting)
    optimiser, done = _optimiser(trunk, setting), 0
    losses, budgets = [], []
    curve: dict[str, list] = {"step": [], "tokens": [], "train": [], "held_out": []}
    with tqdm(total=setting.work, desc=setting.slug, unit="step", disable=not progress) as bar:
        for budget in setting.budgets:
            for step in range(done, setting.decay_begins(budget)):
                losses.append(_descend(trunk, optimiser, setting, tokens.train, step, budget=setting.steps))
                done = step + 1
                if done % max(1, setting.steps // _CURVE_POINTS) == 0:
                    mean = math.fsum(losses) / len(losses)
                    point = done, done * setting.tokens_per_step, mean, evaluate.on_curve(trunk)
                    for column, value in zip(curve.values(), point, strict=True):
                        column.append(value)
                    losses.clear()
                bar.update()
            branch, its = copy.deepcopy((trunk, optimiser))
            for step in range(setting.decay_begins(budget), budget):
                _descend(branch, its, setting, tokens.train, step, budget=budget)
                bar.update()
            tokens_seen = budget * setting.tokens_per_step
            budgets.append({"tokens": tokens_seen, "steps": budget, **evaluate(branch)})
    return _Trained(branch, curve, budgets)


def _descend(
    model: nn.Module, optimiser: Optimizer, setting: TrainingSetting, stream: Tensor, step: int, *, budget: int
) -> float:
    """Descend once, at the rate that a budget has at this step; returns the loss before it."""
    windows = _batch(stream, setting, step).to(setting.device)
    logits = model(windows[:, :-1]).logits
    loss = cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
    return clipped_step(model.parameters(), optimiser, loss, _learning_rate(setting, step, budget), step)


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """Everything that is measured of a model, on blocks that are the same for all models of a corpus."""

    setting: TrainingSetting
    tokens: Tokens
    other_genre: Tensor

    def __post_init__(self):
        """Fail early where a text is too short."""
        for stream in (self.tokens.train, self.tokens.held_out, self.other_genre):
            training_probes.spaced_blocks(stream, self.setting.length, 1)

    def on_curve(self, model: nn.Module) -> float:
        """Mean loss on a few held-out blocks."""
        blocks, _ = training_probes.held_out_blocks(self.tokens, self.setting.length, CURVE_WINDOWS)
        return float(training_probes.token_nll(model, blocks).mean())

    def __call__(self, model: nn.Module) -> dict[str, Any]:
        """Losses by block and on the other genre; what is copied."""
        setting = self.setting
        blocks, documents = training_probes.held_out_blocks(self.tokens, setting.length, FINAL_BLOCKS)
        nll = training_probes.token_nll(model, blocks)
        elsewhere = training_probes.spaced_blocks(self.other_genre, setting.length, _OTHER_BLOCKS)
        repeated = training_probes.repeated_sequences(model, setting.vocabulary, half=min(64, setting.length // 2))
        shots = min(8, (setting.length - 2) // 4)
        is_a_label, is_right = training_probes.labels_in_context(model, setting.vocabulary, shots=shots)
        return {
            "held_out": float(nll.mean()),
            "other_genre": float(training_probes.token_nll(model, elsewhere).mean()),
            "copied": repeated,
            "is_a_label": is_a_label,
            "is_right": is_right,
            "document": documents,
            "block_nll": nll.mean(1).tolist(),
            "weights": weights_digest(model),
        }


def _optimiser(model: nn.Module, setting: TrainingSetting) -> torch.optim.AdamW:
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=setting.lr, betas=BETAS)


def weights_digest(model: nn.Module) -> str:
    """SHA-256 of all parameters."""
    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        digest.update(name.encode())
        digest.update(parameter.detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()


# The experiment


class LanguageModels(Experiment[TrainingSetting]):
    """Trains one model for each setting; those that differ in average and eta alone form matched sets.

    The trained model is kept in the cache with its tokenizer (`_model_directory`).
    """

    name = "language_models"
    setting = TrainingSetting
    protocol = 2
    _sizes = ("corpus", "vocabulary", "layers", "width", "heads", "length", "batch", "steps", "branches")
    slowest_first = ("seed", *_sizes, "lr", "warmup", "device", "eta", "average")
    packages = ("numpy", "tokenizers", "torch", "transformers")
    shown = ("held_out", "copied")

    def __init__(self):
        """Nothing is loaded before it is asked for."""
        self._tokens = cache(training_corpora.tokens)

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
        return {"data": self._tokens(setting.corpus, setting.vocabulary).digest}

    def compute(self, setting: TrainingSetting, *, progress: bool) -> Computed:
        """Train, and keep the model."""
        tokens = self._tokens(setting.corpus, setting.vocabulary)
        trained = train(setting, tokens, training_corpora.other_genre(tokens), progress=progress)
        tables = _tables(trained)
        if setting.average != LEARNED_CONVOLUTION:
            marks = dict.fromkeys(("bos_token", "eos_token", "unk_token"), SEPARATOR)
            tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokens.tokenizer, **marks)
            loading.save(trained.model, tokenizer, _model_directory(self.identity(setting)))
        device = {} if setting.device == "cpu" else {"device": torch.cuda.get_device_name(setting.device)}
        return Computed(tables, {"source": tokens.corpus.source, "licence": tokens.corpus.licence, **device})


def _model_directory(its: Identity) -> Path:
    """The directory in the cache with the model of a run."""
    return assets.cache_dir() / "training" / Path(its.filename).stem / "model"


def _tables(trained: _Trained) -> Tables:
    """`settings`; `budgets`, what a model of each has learned; `curve`, losses on the way; `blocks`, held-out ones."""
    budgets, n = trained.budgets, trained.model.num_parameters()
    last = {name: budgets[-1][name] for name in ("tokens", "held_out", "copied", "weights")}
    numbers = [{k: v for k, v in one.items() if k not in ("document", "block_nll")} for one in budgets]
    return {
        "settings": {"parameters": n} | last,
        "budgets": as_columns(numbers),
        "curve": trained.curve,
        "blocks": as_columns(
            [
                {"tokens": one["tokens"], "document": document, "nll": nll}
                for one in budgets
                for document, nll in zip(one["document"], one["block_nll"], strict=True)
            ]
        ),
    }
