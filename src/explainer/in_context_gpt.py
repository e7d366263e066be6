"""A small GPT that is trained to do linear regression in context, as in Garg et al. (2022).

A prompt is x_1, y_1, x_2, y_2, ..., x_N, y_N, x_q: every input and every target is one token, a target padded with
zeros to d numbers. The model predicts y_k at the token of x_k, from the k - 1 examples before it, so one prompt trains
all numbers of examples from 0 to N at once. Each prompt has its own task w, so nothing about a task is in the weights.
"""

import argparse
import base64
import json
import math
import os
import platform
import sysconfig
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load as tensors_of
from safetensors.torch import save as bytes_of
from torch import Generator, Tensor, nn
from tqdm import tqdm
from transformers import GPT2Config, GPT2Model

from explainer import results
from explainer.errors import CheckpointError, DivergenceError, ShapeError
from explainer.regression_prompts import Prompts, draw_prompts, random_covariances
from explainer.statistics import RatioInterval, ratio_interval

LINE_NOISE = 0.3
"""Standard deviation of the noise on the targets of `line_prompts`."""

LOSS_WINDOW = 10
"""A stored loss is the mean over so many steps."""

_WARM_UP = 0.05  # share of the steps
_LARGEST_GRADIENT = 1.0
_TEST_SEED = 1_000_003  # far from the seeds of training

Preparation = Callable[[GPT2Model], GPT2Model]
"""Changes the transformer after its weights are drawn and before it is trained, as momentum attention does."""


# Prompts


def isotropic_prompts(n_prompts: int, n_examples: int, d: int, generator: Generator) -> Prompts:
    """x ~ N(0, I), w ~ N(0, I), y = <w, x>."""
    return draw_prompts(n_prompts, n_examples, torch.eye(d), generator=generator, dtype=torch.float32)


def random_covariance_prompts(n_prompts: int, n_examples: int, d: int, generator: Generator) -> Prompts:
    """x ~ N(0, Lambda) with a new diagonal Lambda for every prompt, its entries Exp(1); w ~ N(0, I), y = <w, x>."""
    covariances = random_covariances(n_prompts, d, generator)
    return draw_prompts(n_prompts, n_examples, covariances, generator=generator, dtype=torch.float32)


def line_prompts(n_prompts: int, n_examples: int, d: int, generator: Generator) -> Prompts:
    """Points near a line of the plane: inputs (z, 1), z ~ N(0, 1), y = <w, (z, 1)> + noise, w ~ N(0, I); d = 2.

    With the noise e ~ N(0, LINE_NOISE^2) the best predictor is ridge regression with the penalty LINE_NOISE^2, and
    points that a reader drags off the line are nothing new to the model. Raises ShapeError unless d = 2.
    """
    if d != 2:
        raise ShapeError(f"a line in the plane has inputs (z, 1) of 2 numbers, got d = {d}.")
    z, e = torch.randn(2, n_prompts, n_examples + 1, generator=generator)
    w = torch.randn(n_prompts, 2, generator=generator)
    inputs = torch.stack([z, torch.ones_like(z)], -1)
    return Prompts(inputs, (inputs @ w[..., None]).squeeze(-1) + LINE_NOISE * e, w)


DISTRIBUTIONS: Mapping[str, Callable[[int, int, int, Generator], Prompts]] = {
    "isotropic": isotropic_prompts,
    "random covariance": random_covariance_prompts,
    "line": line_prompts,
}
"""What a model can be trained on: (number of prompts, examples in each, d, generator) -> prompts."""


# The model


@dataclass(frozen=True)
class Setting:
    """Everything that determines a trained model: the prompts, the transformer and the training.

    `distribution` is a key of `DISTRIBUTIONS`, `inner` the width of the feed-forward layers. Raises ValueError for an
    unknown distribution, a width that the heads cannot share, or a number below 1.
    """

    distribution: str = "isotropic"
    dimension: int = 5
    n_examples: int = 20
    layers: int = 4
    width: int = 64
    heads: int = 4
    inner: int = 256
    steps: int = 3500
    batch: int = 64
    learning_rate: float = 1e-3
    seed: int = 0

    def __post_init__(self):
        """Refuse a setting that cannot be trained."""
        if self.distribution not in DISTRIBUTIONS:
            raise ValueError(f"distribution = {self.distribution!r}; known are {', '.join(DISTRIBUTIONS)}.")
        for name in ("dimension", "n_examples", "layers", "width", "heads", "inner", "steps", "batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}; it must be at least 1.")
        if self.width % self.heads:
            raise ValueError(f"width = {self.width} cannot be shared by {self.heads} heads; take a multiple.")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate = {self.learning_rate}; it must be above 0.")

    def prompts(self, n_prompts: int, generator: Generator) -> Prompts:
        """Prompts of the kind that the model is trained on."""
        return DISTRIBUTIONS[self.distribution](n_prompts, self.n_examples, self.dimension, generator)


class InContextGPT(nn.Module):
    """GPT-2 between a linear map from d numbers to its width and a linear map from its width to one number.

    The weights are drawn from the setting's seed, which leaves the global generator as it was. GPT-2 has learned
    positions for 2 N + 1 tokens and no dropout.
    """

    def __init__(self, setting: Setting, prepare: Preparation | None = None):
        """Draw the weights, then prepare the transformer."""
        super().__init__()
        self.setting = setting
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(setting.seed)
            self.read_in = nn.Linear(setting.dimension, setting.width)
            gpt = GPT2Model(_configuration(setting))
            self.read_out = nn.Linear(setting.width, 1)
        self.gpt = prepare(gpt) if prepare else gpt

    def forward(self, inputs: Float[Tensor, "B n d"], targets: Float[Tensor, "B n"]) -> Float[Tensor, "B n"]:
        """Prediction of every target from the inputs up to its own and the targets before it; the last is not read."""
        embedded = self.read_in(tokens(inputs, targets))
        hidden = self.gpt(inputs_embeds=embedded).last_hidden_state
        return self.read_out(hidden[:, ::2]).squeeze(-1)


def tokens(inputs: Float[Tensor, "B n d"], targets: Float[Tensor, "B n"]) -> Float[Tensor, "B T d"]:
    """x_1, (y_1, 0, ..., 0), x_2, ..., x_n: the T = 2 n - 1 tokens of a prompt, without the last target.

    Source: Garg et al. 2022, What can transformers learn in-context?, section 2.
    """
    padded = torch.nn.functional.pad(targets[..., None], (0, inputs.shape[-1] - 1))
    return torch.stack([inputs, padded], 2).flatten(1, 2)[:, :-1]


def _configuration(setting: Setting) -> GPT2Config:
    return GPT2Config(
        vocab_size=1,  # tokens are vectors; GPT2Model still wants an embedding
        n_positions=2 * setting.n_examples + 1,
        n_embd=setting.width,
        n_layer=setting.layers,
        n_head=setting.heads,
        n_inner=setting.inner,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        use_cache=False,
        bos_token_id=None,
        eos_token_id=None,
    )


# Training


class Trained(NamedTuple):
    """A trained model in evaluation mode, its losses (means over LOSS_WINDOW steps) and the CPU seconds it took."""

    model: InContextGPT
    losses: list[float]
    seconds: float


def train(
    setting: Setting, *, prepare: Preparation | None = None, steps: int | None = None, progress: bool = True
) -> Trained:
    """Train on fresh prompts: AdamW on the mean over prompts and k = 0 ... N of (yhat_k - y_k)^2.

    The learning rate rises linearly in the first 5 % of the steps and falls to 0 along half a cosine. `steps` ends
    the same run earlier. The setting's seed determines weights and prompts, whatever `prepare` does: two models with
    other preparations are a matched pair. Repeated on the same machine with as many threads, the weights are the same
    to the bit. Raises DivergenceError when the loss is no longer finite.
    """
    start = time.process_time()
    model = InContextGPT(setting, prepare).train()
    optimizer = torch.optim.AdamW(model.parameters(), setting.learning_rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, setting.steps))
    generator = Generator().manual_seed(setting.seed)
    losses = []
    for _ in (bar := tqdm(range(steps or setting.steps), unit="step", disable=not progress)):
        losses.append(_step(model, setting.prompts(setting.batch, generator), optimizer))
        schedule.step()
        if len(losses) % LOSS_WINDOW == 0:
            bar.set_postfix(loss=f"{_means(losses)[-1]:.3f}")
    return Trained(model.eval(), _means(losses), time.process_time() - start)


def _rate(step: int, steps: int) -> float:
    """Learning rate as a share of its largest value."""
    warm_up = max(1, round(_WARM_UP * steps))
    return min((step + 1) / warm_up, 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps))))


def _step(model: InContextGPT, prompts: Prompts, optimizer: torch.optim.Optimizer) -> float:
    loss = ((model(prompts.inputs, prompts.targets) - prompts.targets) ** 2).mean()
    if not loss.isfinite():
        raise DivergenceError(f"the loss is {loss.item()}; train with a smaller learning rate than that of the setting.")
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), _LARGEST_GRADIENT)
    optimizer.step()
    return loss.item()


def _means(losses: Sequence[float]) -> list[float]:
    """Means over full windows."""
    full = len(losses) // LOSS_WINDOW * LOSS_WINDOW
    return np.reshape(losses[:full], (-1, LOSS_WINDOW)).mean(1).tolist()


# Predictions and their errors


@torch.inference_mode()
def predictions(model: InContextGPT, prompts: Prompts) -> Float[Tensor, "B n"]:
    """yhat_k for every input x_k of the prompts, from the k - 1 examples before it; column i has seen i examples.

    Shapes: inputs (B, n, d), targets (B, n), n at most N + 1 of the setting. Raises ShapeError.
    """
    setting, (_, n, d) = model.setting, prompts.inputs.shape
    if d != setting.dimension or n > setting.n_examples + 1:
        raise ShapeError(
            f"the prompts have {n - 1} examples of {d} inputs; this model reads at most {setting.n_examples} of "
            f"{setting.dimension}."
        )
    dtype = next(model.parameters()).dtype
    return model(prompts.inputs.to(dtype), prompts.targets.to(dtype))


def relative_error(
    predicted: Float[Tensor, "B n"], targets: Float[Tensor, "B n"], k: int, *, seed: int = 0
) -> RatioInterval:
    """Error after k examples, sum (yhat - y)^2 / sum y^2 over the prompts, with a 95 % bootstrap interval.

    Predicting 0 scores 1. The prompts are resampled (`statistics.ratio_interval`). Raises ShapeError unless both have
    the same shape and a column k.
    """
    if predicted.shape != targets.shape or predicted.ndim != 2 or not 0 <= k < predicted.shape[1]:
        raise ShapeError(
            f"predictions {tuple(predicted.shape)} and targets {tuple(targets.shape)} should have the same shape "
            f"(prompts, n) with a column for k = {k} examples."
        )
    yhat, y = (values[:, k].double().numpy() for values in (predicted, targets))
    return ratio_interval([((yhat - y) ** 2, y**2)], seed=seed)
