"""Training language models from scratch, with and without momentum attention, in pairs.

Dai et al. (2023), section 5, compare a transformer with one whose attention has momentum. Here two settings that
differ in `eta` and `average` alone start from the same weights, to the bit, and see the same windows of the same text
in the same order: momentum adds no parameters, and the windows of a step are drawn from (seed, step) only. So the
variants can be compared within each seed.

A run can be killed at any time. It resumes from its last checkpoint and ends with the same bits, because nothing else
is random.
"""

import hashlib
import json
import math
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from tqdm import tqdm
from transformers import GPT2Config, GPT2LMHeadModel

from explainer.data import corpora
from explainer.data.corpora import Tokens
from explainer.errors import CheckpointError, CorpusError, StudyError
from explainer.models import momentum_attention
from explainer.models.momentum_attention import RECENCY_BIAS
from explainer.theory import momentum
from explainer.theory.optimisation import descend

PROTOCOL = 1
"""Number of the arithmetic of a run; raised, with a line in published/PROTOCOLS.md, when it changes a result."""

NO_AVERAGE = "none"
CONTEXTS = (256, 512, 1024)
"""Context lengths of the perplexities; Dai et al. (2023), table 6."""

BETAS = (0.9, 0.98)
"""Of AdamW; Dai et al. (2023), table 10."""

CURVE_POINTS = 20
CURVE_BLOCKS = 16
FINAL_BLOCKS = 200
DTYPES = ("bfloat16", "float32")

_EVALUATION_TOKENS = 8192  # in one forward pass


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One training run: the corpus, a GPT-2 of `layers` x `width`, `steps` updates on `batch` windows of `length`.

    `average` is a name of `explainer.theory.momentum.AVERAGES` or `recency_bias`, with its `eta`, or `none` for plain
    attention. The learning rate rises linearly to `lr` over `warmup` steps, then falls as a cosine to 0. With
    bfloat16, products are rounded (autocast); weights and moments stay in float32. Raises StudyError for values
    that cannot be used.
    """

    corpus: str = corpora.DEFAULT
    vocabulary: int = 1024
    layers: int = 4
    width: int = 128
    heads: int = 4
    length: int = 1024
    batch: int = 4
    steps: int = 1000
    lr: float = 3e-3
    warmup: int = 50
    weight_decay: float = 0.1
    seed: int = 0
    eta: float = 0.0
    average: str = NO_AVERAGE
    dtype: str = "bfloat16"
    device: str = "cpu"

    def __post_init__(self):
        """Check every value."""
        for name in ("layers", "width", "heads", "batch", "steps"):
            self._require(getattr(self, name) >= 1, f"{name} = {getattr(self, name)} must be at least 1.")
        self._require(
            self.vocabulary >= corpora.SMALLEST_VOCABULARY,
            f"vocabulary = {self.vocabulary} is too small; the least is {corpora.SMALLEST_VOCABULARY}.",
        )
        self._require(self.length >= 2, f"length = {self.length} must be at least 2.")
        self._require(self.width % self.heads == 0, f"width = {self.width} must be a multiple of heads = {self.heads}.")
        self._require(self.seed >= 0, f"seed = {self.seed} must not be negative.")
        self._require(0 <= self.warmup <= self.steps, f"warmup = {self.warmup} must lie in 0 ... steps = {self.steps}.")
        self._require(0 < self.lr < math.inf, f"lr = {self.lr} must be positive.")
        self._require(0 <= self.weight_decay < math.inf, f"weight_decay = {self.weight_decay} must not be negative.")
        self._require(self.dtype in DTYPES, f"dtype = {self.dtype!r} must be one of {', '.join(DTYPES)}.")
        names = (NO_AVERAGE, *momentum.AVERAGES, RECENCY_BIAS)
        self._require(self.average in names, f"average = {self.average!r} must be one of {', '.join(names)}.")
        self._require(0 <= self.eta < 1, f"eta = {self.eta} must lie in [0, 1).")
        plain = self.average == NO_AVERAGE
        self._require(
            plain == (self.eta == 0),
            f"eta = {self.eta} does not go with average = {self.average!r}: plain "
            f"attention is eta = 0 with {NO_AVERAGE!r}, every average needs an eta > 0.",
        )

    @staticmethod
    def _require(condition: bool, message: str) -> None:
        if not condition:
            raise StudyError(message)

    @property
    def variant(self) -> str:
        """What is compared: `plain`, or the average and its eta."""
        return "plain" if self.average == NO_AVERAGE else f"{self.average}-eta{self.eta:g}"

    @property
    def slug(self) -> str:
        """A readable name."""
        size = f"{self.layers}x{self.width}-t{self.length}x{self.batch}-n{self.steps}-lr{self.lr:g}"
        return f"{self.corpus}-{size}-seed{self.seed}-{self.variant}"

    @property
    def contexts(self) -> tuple[int, ...]:
        """The context lengths that divide the length of a window, or that length alone."""
        return tuple(c for c in CONTEXTS if self.length % c == 0) or (self.length,)


# The parts of a run


def initial_model(setting: Setting) -> GPT2LMHeadModel:
    """A GPT-2 with weights that depend on the seed and the sizes, not on eta, average or device."""
    config = GPT2Config(
        vocab_size=setting.vocabulary,
        n_positions=setting.length,
        n_embd=setting.width,
        n_layer=setting.layers,
        n_head=setting.heads,
        activation_function="gelu_pytorch_tanh",  # what GPT-2 has, in one operation
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(setting.seed)
        model = GPT2LMHeadModel(config)
    if setting.average == RECENCY_BIAS:
        momentum_attention.with_recency_bias(model, setting.eta)
    elif setting.average != NO_AVERAGE:
        momentum_attention.with_momentum(model, setting.eta, setting.average)
    return model.to(setting.device)


def batch(stream: Tensor, setting: Setting, step: int) -> Tensor:
    """The windows of a step, shape (batch, length + 1), at random places that depend on seed and step alone."""
    generator = np.random.default_rng([setting.seed, step])
    starts = torch.from_numpy(generator.integers(0, len(stream) - setting.length, setting.batch))
    return stream[starts[:, None] + torch.arange(setting.length + 1)]


def learning_rate(setting: Setting, step: int) -> float:
    """The rate of a step (from 0): lr (step + 1) / warmup, then lr (1 + cos(pi u)) / 2 with u from 0 to 1."""
    if step < setting.warmup:
        return setting.lr * (step + 1) / setting.warmup
    u = (step - setting.warmup) / max(1, setting.steps - setting.warmup)
    return setting.lr * (1 + math.cos(math.pi * u)) / 2


def parameters(model: nn.Module) -> int:
    """The number N of parameters that take part in matrix products: all but the positions' embedding."""
    return sum(p.numel() for name, p in model.named_parameters() if "wpe" not in name)


def model_flops(setting: Setting, n_parameters: int, n_tokens: int) -> float:
    """Floating-point operations of training on D tokens: 6 N D, and 6 L T d D for causal attention.

    A product with N weights takes 2 N operations per token, its gradients twice that (Kaplan et al. 2020, section
    2.1). Scores and weighted sums of T / 2 values on average, in L layers of width d: 2 L T d, and twice that.
    """
    attention = setting.layers * setting.length * setting.width
    return 6.0 * (n_parameters + attention) * n_tokens


def matmul_rate(device: str, dtype: torch.dtype) -> float:
    """Floating-point operations per second of one large matrix product, the best of five, by the device's clock."""
    size = 1024 if device == "cpu" else 8192
    a = torch.randn(size, size, device=device).to(dtype)
    seconds = []
    for _ in range(6):
        start = _clock(device)
        a @ a
        seconds.append(_clock(device) - start)
    return 2 * size**3 / min(seconds[1:])


def _clock(device: str) -> float:
    """Seconds of work: of all the processor's threads, or of the GPU."""
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


# Evaluations


def held_out_blocks(tokens: Tokens, length: int, n: int) -> tuple[Tensor, list[str]]:
    """At most n blocks of `length` + 1 held-out tokens, shape (n, length + 1), and the document each begins in.

    The stream is cut into consecutive blocks, which overlap in one token, the last target of one and the first input
    of the next; of these, n that are evenly spaced. Raises CorpusError if not even one fits.
    """
    available = (len(tokens.held_out) - 1) // length
    if available < 1:
        raise CorpusError(
            f"the held-out part of {tokens.corpus!r} has {len(tokens.held_out)} tokens, a window takes {length + 1}; "
            "take a longer corpus or a shorter length."
        )
    n = min(n, available)
    first = torch.arange(n) * available // n * length
    index = torch.searchsorted(tokens.starts, first, right=True) - 1
    return tokens.held_out[first[:, None] + torch.arange(length + 1)], [tokens.documents[i] for i in index]


@torch.no_grad()
def block_nll(model: nn.Module, blocks: Tensor, context: int, *, dtype: str = "float32") -> Tensor:
    """Mean negative log-likelihood, in nats per token, of each block's T targets, cut into windows of `context`.

    `blocks` has shape (n, T + 1) and T is a multiple of the context: every context length is scored on the very same
    targets, each of which sees the tokens of its own window before it. Returns shape (n,), float64.
    """
    n, device = len(blocks), next(model.parameters()).device
    inputs, targets = (part.reshape(-1, context) for part in (blocks[:, :-1], blocks[:, 1:]))
    rows = max(1, _EVALUATION_TOKENS // context)
    nll = []
    for x, y in zip(inputs.split(rows), targets.split(rows), strict=True):
        with _autocast(device.type, dtype):
            logits = model(x.to(device)).logits
        nll.append(cross_entropy(logits.float().mT, y.to(device), reduction="none").double().mean(-1).cpu())
    return torch.cat(nll).reshape(n, -1).mean(-1)


class Induction(NamedTuple):
    """Accuracy on the second half of repeated random sequences, on the first half, and the predictions in each."""

    accuracy: float
    first_half: float
    n: int


@torch.no_grad()
def induction_accuracy(
    model: nn.Module, vocabulary: int, *, half: int = 64, sequences: int = 32, seed: int = 0, dtype: str = "float32"
) -> Induction:
    """How often the most likely token is right where a sequence of random tokens comes a second time.

    The tokens are uniform over the vocabulary without the separator, so that the first half is at chance, 1 / (V - 1);
    in the second, every token but the first follows from its earlier occurrence (Olsson et al. 2022, section 3).
    """
    device = next(model.parameters()).device
    generator = np.random.default_rng(seed)
    random = torch.from_numpy(generator.integers(1, vocabulary, (sequences, half)))
    with _autocast(device.type, dtype):
        logits = model(random.repeat(1, 2).to(device)).logits
    guesses = logits.argmax(-1).cpu()
    first, second = (guesses[:, start : start + half - 1] == random[:, 1:] for start in (0, half))
    return Induction(float(second.double().mean()), float(first.double().mean()), second.numel())


def _autocast(device: str, dtype: str) -> AbstractContextManager:
    return torch.autocast(device, torch.bfloat16, enabled=dtype == "bfloat16")


# One run


@dataclass
class _Progress:
    """Where a run stands, beside weights and moments: steps done, seconds they took, the curve so far."""

    step: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    losses: list[float] = field(default_factory=list)  # since the last point of the curve
    curve: dict[str, list] = field(default_factory=lambda: {"step": [], "train": [], "held_out": []})


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model, its result (the numbers that are determined) and its run (how long it took)."""

    model: GPT2LMHeadModel = field(repr=False)
    result: Mapping[str, Any]
    run: Mapping[str, Any]


def train(
    setting: Setting, tokens: Tokens, *, checkpoint: Path | None = None, every: int = 100, progress: bool = True
) -> Trained:
    """Train one model, from the checkpoint if there is one, and evaluate it.

    AdamW with the norm of the gradient clipped to 1; weight decay on matrices only. With `checkpoint`, a file, the
    state is kept there every so many steps. Raises DivergenceError when the loss is not finite, CheckpointError for a
    checkpoint that is damaged or of another run, CorpusError when the corpus is too short.
    """
    curve_blocks, _ = held_out_blocks(tokens, setting.length, CURVE_BLOCKS)
    if len(tokens.train) <= setting.length:
        raise CorpusError(
            f"the training part of {tokens.corpus!r} has {len(tokens.train)} tokens, a window takes "
            f"{setting.length + 1}; take a longer corpus or a shorter length."
        )
    model = initial_model(setting)
    optimiser = _optimiser(model, setting)
    state = _resumed(checkpoint, setting, model, optimiser)
    interval = max(1, setting.steps // CURVE_POINTS)
    with tqdm(total=setting.steps, initial=state.step, desc=setting.slug, unit="step", disable=not progress) as bar:
        while state.step < setting.steps:
            with _timed(state, setting.device):
                loss = _update(model, optimiser, setting, tokens.train, state.step)
            state.step += 1
            state.losses.append(loss)
            if state.step % interval == 0:
                _add_point(state, model, curve_blocks, setting)
            if checkpoint and state.step % every == 0:
                _save_state(checkpoint, setting, model, optimiser, state)
            bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
            bar.update()
    return Trained(model, _evaluated(model, setting, tokens, state), _run_of(model, setting, state))


def _optimiser(model: nn.Module, setting: Setting) -> torch.optim.AdamW:
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": setting.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=setting.lr, betas=BETAS)


def _update(model: nn.Module, optimiser: torch.optim.Optimizer, setting: Setting, stream: Tensor, step: int) -> float:
    """One step of training; returns the loss before it."""
    windows = batch(stream, setting, step).to(setting.device)
    with _autocast(torch.device(setting.device).type, setting.dtype):
        logits = model(windows[:, :-1]).logits
    loss = cross_entropy(logits.float().flatten(0, 1), windows[:, 1:].flatten())
    return descend(model.parameters(), optimiser, loss, learning_rate(setting, step), step)


@contextmanager
def _timed(state: _Progress, device: str) -> Iterator[None]:
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    if device != "cpu":
        torch.cuda.synchronize()
    state.seconds += time.perf_counter() - wall
    state.cpu_seconds += time.process_time() - cpu


def _add_point(state: _Progress, model: nn.Module, blocks: Tensor, setting: Setting) -> None:
    state.curve["step"].append(state.step)
    state.curve["train"].append(math.fsum(state.losses) / len(state.losses))
    state.curve["held_out"].append(float(block_nll(model, blocks, setting.length, dtype=setting.dtype).mean()))
    state.losses.clear()


def _evaluated(model: nn.Module, setting: Setting, tokens: Tokens, state: _Progress) -> dict[str, Any]:
    blocks, documents = held_out_blocks(tokens, setting.length, FINAL_BLOCKS)
    nll = {c: block_nll(model, blocks, c, dtype=setting.dtype) for c in setting.contexts}
    half = min(64, setting.length // 2)
    induction = induction_accuracy(model, setting.vocabulary, half=half, dtype=setting.dtype)
    return {
        "parameters": parameters(model),
        "tokens": setting.steps * setting.batch * setting.length,
        "flops": model_flops(setting, parameters(model), setting.steps * setting.batch * setting.length),
        "curve": state.curve | {"tokens": [step * setting.batch * setting.length for step in state.curve["step"]]},
        "perplexity": {c: math.exp(values.mean()) for c, values in nll.items()},
        "held_out": {"documents": documents, "nll": {c: values.tolist() for c, values in nll.items()}},
        "induction": induction._asdict(),
        "weights": weights_digest(model),
    }


def weights_digest(model: nn.Module) -> str:
    """SHA-256 of all parameters."""
    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        digest.update(name.encode())
        digest.update(parameter.detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()


def _run_of(model: nn.Module, setting: Setting, state: _Progress) -> dict[str, Any]:
    """What differs between two runs: the time of the updates, and their share of the machine's speed."""
    tokens = setting.steps * setting.batch * setting.length
    rate = matmul_rate(setting.device, getattr(torch, setting.dtype))
    seconds = state.cpu_seconds if setting.device == "cpu" else state.seconds
    achieved = model_flops(setting, parameters(model), tokens) / seconds
    return {
        "seconds": state.seconds,
        "cpu_seconds": state.cpu_seconds,
        "tokens_per_second": tokens / seconds,
        "flops_per_second": achieved,
        "matmul_flops_per_second": rate,
        "utilisation": achieved / rate,
    }


# Checkpoints: weights, moments and, in the header, the step, the setting and the curve, in one file


def _save_state(
    path: Path, setting: Setting, model: nn.Module, optimiser: torch.optim.Optimizer, state: _Progress
) -> None:
    tensors = {}
    for name, parameter in model.named_parameters():
        tensors[f"weights.{name}"] = parameter.detach()
        tensors |= {f"{key}.{name}": value for key, value in optimiser.state[parameter].items()}
    header = {"setting": json.dumps(asdict(setting), sort_keys=True), "progress": json.dumps(asdict(state))}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-", ignore_cleanup_errors=True) as work:
            fresh = Path(work, path.name)
            save_file(tensors, fresh, metadata=header)
            with fresh.open("rb+") as stream:
                os.fsync(stream.fileno())
            os.replace(fresh, path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"the checkpoint {path} cannot be written ({error}); free some space or choose another directory."
        ) from error


def _resumed(path: Path | None, setting: Setting, model: nn.Module, optimiser: torch.optim.Optimizer) -> _Progress:
    """Put the state of the checkpoint, if there is one, into model and optimiser."""
    if path is None or not path.exists():
        return _Progress()
    try:
        with safe_open(path, "pt", device=setting.device) as file:
            header = file.metadata()
            if header["setting"] != json.dumps(asdict(setting), sort_keys=True):
                raise CheckpointError(f"{path} is of the setting {header['setting']}; give each run its own file.")
            for name, parameter in model.named_parameters():
                parameter.data.copy_(file.get_tensor(f"weights.{name}"))
                moments = ("step", "exp_avg", "exp_avg_sq")
                optimiser.state[parameter] = {key: file.get_tensor(f"{key}.{name}") for key in moments}
        return _Progress(**json.loads(header["progress"]))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"the checkpoint {path} is damaged ({error}); delete it and start again.") from error
