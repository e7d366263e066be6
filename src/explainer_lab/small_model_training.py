"""Trainings of the small models whose weights the book ships: python -m explainer_lab.small_model_training NAME.

The GPTs of `explainer.models.in_context_gpt` learn regression in context. The linear transformers of
`explainer.models.deep_linear_model` are trained to the end: Adam on fresh prompts comes first, then damped Gauss-Newton
steps on a large fixed sample, until the error no longer falls; gradient descent and GD++ with the best rates for their
number of steps are fitted by the same two stages. Each model is written to $EXPLAINER_WEIGHTS, or over the package's
own.
"""

import argparse
import hashlib
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from jaxtyping import Float
from safetensors import torch as safetensors
from torch import Generator, Tensor, nn
from torch.func import jacrev, vmap
from tqdm import tqdm
from transformers import GPT2Model

from explainer.data.files import replace_file, rounded, to_json, weights_directory
from explainer.models import deep_linear_model
from explainer.models import in_context_gpt as gpt
from explainer.models.deep_linear_model import TrainedLayers, learned_tasks
from explainer.theory.linear_transformer import LinearAttention, descend_on_prompts, gradient_layer
from explainer.theory.optimisation import clipped_step, warmed_up_cosine
from explainer.theory.regression import Prompts, draw_prompts


def descent(
    model: nn.Module, setting: Any, loss: Callable[[int, Generator], Tensor], *, beta_2: float = 0.999, progress: bool
) -> Iterator[float]:
    """Descend with AdamW on the loss of fresh data, loss(step, generator), and yield it after every step.

    `setting` has `steps`, `learning_rate` and `seed`. The rate rises over 5 % of the steps and falls to 0 along half a
    cosine. Repeated on the same machine with as many threads, the weights are the same to the bit. Raises
    DivergenceError when the loss is no longer finite.
    """
    optimiser = torch.optim.AdamW(model.parameters(), setting.learning_rate, betas=(0.9, beta_2))
    generator = Generator().manual_seed(setting.seed)
    for step in tqdm(range(setting.steps), desc="training", unit="step", leave=False, disable=not progress):
        lr = setting.learning_rate * warmed_up_cosine(step, setting.steps)
        yield clipped_step(model.parameters(), optimiser, loss(step, generator), lr, step)


# Small GPTs


def train_gpt(
    setting: gpt.InContextGPTSetting,
    *,
    prepare: Callable[[GPT2Model], GPT2Model] | None = None,
    steps: int | None = None,
    progress: bool = True,
) -> gpt.TrainedGPT:
    """Train by `descent` on the mean over prompts and k = 0 ... N of (yhat_k - y_k)^2.

    `steps` ends the same run earlier. Two models of one setting with other preparations are a matched pair. Raises
    DivergenceError when the loss is no longer finite.
    """
    model = gpt.InContextGPT(setting, prepare).train()

    def loss(_step: int, generator: Generator) -> Tensor:
        prompts = setting.prompts(setting.batch, generator)
        return ((model(prompts.inputs, prompts.targets) - prompts.targets) ** 2).mean()

    losses = list(islice(descent(model, setting, loss, progress=progress), steps))
    full = len(losses) // gpt.LOSS_WINDOW * gpt.LOSS_WINDOW
    means = np.reshape(losses[:full], (-1, gpt.LOSS_WINDOW)).mean(1).tolist()
    return gpt.TrainedGPT(model.eval(), means)


def _final_errors(model: gpt.InContextGPT) -> dict[int, tuple]:
    """Relative error after a quarter, half and all of the examples, on 4,000 new prompts of the training's kind."""
    prompts = model.setting.prompts(4000, Generator().manual_seed(gpt.TEST_SEED))
    N = prompts.n_examples
    errors = gpt.relative_errors(partial(gpt.query_prediction, model), prompts, (N // 4, N // 2, N))
    return {k: (*error, error.undefined) for k, error in errors.items()}


# Linear transformers: prompts x ~ N(0, I), and what they are fitted to

_LOSS_WINDOW = 100  # a stored loss of Adam is the mean over so many steps
_CHUNK = 1024  # prompts whose Jacobian is held at once

_STARTS = (
    *(("gradient descent", L, 0) for L in (2, 3)),
    *(("GD++", L, seed) for L in (2, 3) for seed in range(3)),
    *(("transformer", L, seed) for L in (2, 3) for seed in range(10)),
)
"""Family, number of layers and seed of all that the book stores."""


class _Sample(NamedTuple):
    """Second moments G (B, d+1, d+1) of the examples of B prompts, and their tasks (B, d)."""

    G: Tensor
    tasks: Tensor

    def chunks(self) -> Iterator["_Sample"]:
        return (_Sample(*pair) for pair in zip(*(tensor.split(_CHUNK) for tensor in self), strict=True))


@dataclass(frozen=True)
class _Schedule:
    """Everything that determines a training, besides its start: prompts and the two stages.

    `samples` are the sizes of the fixed samples of the second stage, one after another, `iterations` its largest
    numbers of steps on each. A sample is done with when the error falls by less than the share `tolerance`.
    """

    dimension: int = 5
    n_examples: int = 20
    steps: int = 3000
    batch: int = 256
    rate: float = 0.03
    samples: tuple[int, ...] = (2**13, 2**16)
    iterations: tuple[int, ...] = (100, 20)
    tolerance: float = 1e-8
    test_prompts: int = 200_000
    sample_seed: int = 1_000_001
    test_seed: int = gpt.TEST_SEED

    def draw(self, generator: Generator, n: int | None = None, dtype: torch.dtype = torch.float32) -> Prompts:
        """A batch of prompts, or n of them."""
        covariance = torch.eye(self.dimension)
        return draw_prompts(n or self.batch, self.n_examples, covariance, generator=generator, dtype=dtype)

    def sample(self, n: int, seed: int) -> _Sample:
        """Second moments and tasks of n prompts in float64."""
        generator, parts = Generator().manual_seed(seed), []
        for first in range(0, n, 20_000):
            prompts = self.draw(generator, min(20_000, n - first), torch.float64)
            parts.append((deep_linear_model.moments(prompts), prompts.tasks))
        return _Sample(*map(torch.cat, zip(*parts, strict=True)))


def _train_layers(family: str, n_layers: int, seed: int, schedule: _Schedule) -> TrainedLayers:
    """Train from one start: Adam on fresh prompts, then Gauss-Newton steps on fixed samples, each larger.

    Raises DivergenceError when the loss is no longer finite.
    """
    began = time.process_time()
    after_adam, losses = _descended(family, n_layers, seed, schedule)
    adam, errors = _balanced(after_adam), []
    parameters = _parameters(family, adam)
    last = schedule.sample(schedule.samples[-1], schedule.sample_seed)
    layers_of = partial(_layers, family, d=schedule.dimension)
    gradients = [_normal_equations(layers_of, last, parameters)[0]]
    for n, iterations in zip(schedule.samples, schedule.iterations, strict=True):
        sample = _Sample(*(tensor[:n] for tensor in last))
        parameters, fallen = _gauss_newton(layers_of, sample, parameters, iterations, schedule.tolerance)
        errors.append(fallen)
    layers = _balanced(layers_of(parameters))
    gradients.append(_normal_equations(layers_of, last, _parameters(family, layers))[0])
    test = schedule.sample(schedule.test_prompts, schedule.test_seed)
    record = {
        "adam": losses[: schedule.steps].reshape(-1, _LOSS_WINDOW).mean(1).tolist(),
        "samples": errors,
        "gradients": [2 * gradient.norm().item() for gradient in gradients],
        "test": [_error(one, test).item() for one in (adam, layers)],
        "cpu_seconds": round(time.process_time() - began, 1),
    }
    return TrainedLayers(family, n_layers, seed, adam, layers, rounded(record))


def _descended(
    family: str, n_layers: int, seed: int, schedule: _Schedule
) -> tuple[LinearAttention, Float[Tensor, " steps"]]:
    """Layers (L, d+1, d+1) after Adam on fresh prompts, in float64, and the loss of the batch at every step."""
    generator, d = Generator().manual_seed(seed), schedule.dimension
    example = schedule.draw(generator).inputs
    parameters = _initial(family, n_layers, d, generator).to(example).requires_grad_()

    def predict(prompts: Prompts) -> Float[Tensor, " B"]:
        return (learned_tasks(_layers(family, parameters, d), deep_linear_model.moments(prompts)) * prompts.x_q).sum(1)

    optimiser = torch.optim.Adam([parameters], lr=schedule.rate)
    losses = descend_on_prompts(optimiser, predict, schedule.draw, steps=schedule.steps, seed=seed)
    record = torch.tensor(list(losses), dtype=torch.float64)
    return _layers(family, parameters.detach().double(), d), record


def _initial(family: str, n_layers: int, d: int, generator: Generator) -> Tensor:
    def uniform() -> Tensor:
        return 0.5 * torch.rand(n_layers, 1, generator=generator, dtype=torch.float64)

    if family == "transformer":
        return 0.1 * torch.randn(n_layers, 2, d + 1, d + 1, generator=generator, dtype=torch.float64)
    dampings = [uniform()] if family == "GD++" else []
    # Gradient descent's result does not depend on the order of the rates, so equal ones would stay equal for ever.
    return torch.cat([0.5 + uniform(), *dampings], dim=1)


def _layers(family: str, parameters: Float[Tensor, "L *P"], d: int) -> LinearAttention:
    """The layers that a family makes of its parameters."""
    if family == "transformer":
        return LinearAttention(*parameters.unbind(1))
    return gradient_layer(d, parameters[:, 0], parameters[:, 1] if family == "GD++" else 0.0)


def _parameters(family: str, layers: LinearAttention) -> Tensor:
    """The parameters from which a family makes these layers."""
    if family == "transformer":
        return torch.stack(layers, 1)
    scale = layers.W_KQ[:, 0, 0]  # the construction has ones here
    rates, dampings = -layers.W_PV[:, -1, -1] * scale, -layers.W_PV[:, 0, 0] * scale
    return torch.stack([rates, dampings][: 2 if family == "GD++" else 1], 1)


def _balanced(layers: LinearAttention) -> LinearAttention:
    """The same predictions from W_PV and W_KQ of equal norm in each layer: (c W_PV, W_KQ / c) is the same for every c.

    Without it the gradient's norm would depend on c. Layers in which one of the two is zero stay as they are.
    """
    norms = [torch.linalg.matrix_norm(matrix) for matrix in layers]
    c = torch.where(norms[0] * norms[1] > 0, (norms[1] / norms[0]).sqrt(), torch.ones_like(norms[0]))
    return LinearAttention(layers.W_PV * c[:, None, None], layers.W_KQ / c[:, None, None])


def _error(layers: LinearAttention, sample: _Sample) -> Tensor:
    """Error of the prediction over that of predicting 0, E|v - w|^2 / d: the mean over x_q ~ N(0, I) is exact."""
    sums = [((learned_tasks(layers, chunk.G) - chunk.tasks) ** 2).sum() for chunk in sample.chunks()]
    return torch.stack(sums).sum() / sample.tasks.numel()


def _normal_equations(
    layers_of: Callable[[Tensor], LinearAttention], sample: _Sample, parameters: Tensor
) -> tuple[Float[Tensor, " p"], Float[Tensor, "p p"]]:
    """J^T r and J^T J of the residuals r = (v - w) / sqrt(B d), summed over chunks of the sample.

    The gradient of `_error` is twice the first.
    """

    def missed(flat: Tensor, G: Tensor, task: Tensor) -> Tensor:
        return learned_tasks(layers_of(flat.view_as(parameters)), G) - task

    flat = parameters.flatten()
    jacobians = vmap(jacrev(missed), in_dims=(None, 0, 0))
    gradient, curvature = torch.zeros_like(flat), flat.new_zeros(len(flat), len(flat))
    for chunk in sample.chunks():
        J, r = jacobians(flat, *chunk).flatten(0, 1), missed(flat, *chunk).flatten()
        gradient += J.T @ r / sample.tasks.numel()
        curvature += J.T @ J / sample.tasks.numel()
    return gradient, curvature


def _gauss_newton(
    layers_of: Callable[[Tensor], LinearAttention],
    sample: _Sample,
    parameters: Tensor,
    iterations: int,
    tolerance: float,
) -> tuple[Tensor, list[float]]:
    """Lower the error on a sample by damped Gauss-Newton steps; return the parameters and the error after every step.

    A step s solves (J^T J + mu diag(J^T J)) s = -J^T r. mu shrinks after a step that lowers the error and grows until
    one does.
    Source: Marquardt 1963, An algorithm for least-squares estimation of nonlinear parameters.
    """
    errors, mu = [_error(layers_of(parameters), sample).item()], 1e-3
    for _ in range(iterations):
        gradient, curvature = _normal_equations(layers_of, sample, parameters)
        scale = curvature.diagonal().clamp_min(1e-12)  # some entries have no effect
        while mu < 1e10:
            step = torch.linalg.solve(curvature + (mu * scale + 1e-13).diag(), -gradient)
            error = _error(layers_of(parameters + step.view_as(parameters)), sample).item()
            if error < errors[-1]:
                break
            mu *= 4
        else:
            break  # nothing is lower
        parameters, mu = parameters + step.view_as(parameters), max(mu / 5, 1e-10)
        errors.append(error)
        if error > (1 - tolerance) * errors[-2]:
            break
    return parameters, errors


def main(arguments: Sequence[str] | None = None) -> None:
    """Train one of the book's models, measure and write it; all starts of the linear transformers, forty minutes."""
    parser = argparse.ArgumentParser(description="Train one of the book's small models.")
    parser.add_argument("name", choices=(*gpt.STORED, deep_linear_model.NAME))
    name = parser.parse_args(arguments).name
    if name == deep_linear_model.NAME:
        schedule = _Schedule()
        runs = [_train_layers(*start, schedule) for start in tqdm(_STARTS, unit="start")]
        matrices = {key: matrix for run in runs for key, matrix in run.matrices().items()}
        description = {"schedule": asdict(schedule), "runs": [run.entry(asdict(schedule)) for run in runs]}
    else:
        trained = train_gpt(gpt.STORED[name])
        if name == "gpt_line":  # it runs in a page, which holds its weights as they are
            for weights in trained.model.parameters():
                weights.data = (gpt.PAGE_GRID * weights.data).round() / gpt.PAGE_GRID
        matrices = {key: matrix.contiguous() for key, matrix in trained.model.state_dict().items()}
        errors = rounded(_final_errors(trained.model))
        description = {"setting": asdict(gpt.STORED[name]), "losses": rounded(trained.losses), "errors": errors}
    weights = safetensors.save(matrices)
    provenance = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "sha256": hashlib.sha256(weights).hexdigest(),
    }
    path = weights_directory() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path.with_suffix(".safetensors"), weights)
    replace_file(path.with_suffix(".json"), to_json(description | {"provenance": provenance}))


if __name__ == "__main__":
    main()
