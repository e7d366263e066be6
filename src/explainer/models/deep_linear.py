"""Linear transformers of two and three layers, trained until nothing improves; every start is kept.

Adam on fresh prompts comes first, then damped Gauss-Newton steps on a large fixed sample, until the error no longer
falls. Gradient descent and GD++ with the best rates for their number of steps are fitted by the same two stages.

Letters: L layers, d inputs, N examples; G = sum_i e_i e_i^T / N the second moments of a prompt's tokens e_i = (x_i,
y_i); w the task of a prompt, v what the layers take it for.
"""

import argparse
import hashlib
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from safetensors import torch as safetensors
from torch import Generator, Tensor
from torch.func import jacrev, vmap
from tqdm import tqdm

from explainer.data.files import rounded, to_json
from explainer.errors import CheckpointError
from explainer.models import stored_weights as files
from explainer.models.in_context_gpt import TEST_SEED
from explainer.theory.linear_transformer import LinearAttention, descend_on_prompts, embedding, gradient_layer
from explainer.theory.regression import Prompts, draw_prompts

_NAME = "deep_linear"  # of the two files
_LOSS_WINDOW = 100  # a stored loss of Adam is the mean over so many steps
_REST = 1e-5  # a training is at rest where the norm of the gradient, with matrices of equal norm, is smaller
_CHUNK = 1024  # prompts whose Jacobian is held at once
_SMALLEST_DAMPING, _LARGEST_DAMPING = 1e-10, 1e10
_SOFTER, _HARDER = 5.0, 4.0


# Errors without sampling the query


class Moments(NamedTuple):
    """All that a masked stack of layers sees of the examples of B prompts, G (B, d+1, d+1), and their tasks (B, d)."""

    G: Float[Tensor, "B D D"]
    tasks: Float[Tensor, "B d"]


def moments(prompts: Prompts) -> Moments:
    """Second moments of the examples' tokens, G = sum_i e_i e_i^T / N, and the tasks."""
    tokens = embedding(prompts)[..., :-1]
    return Moments(tokens @ tokens.mT / prompts.n_examples, prompts.tasks)


def learned_tasks(layers: LinearAttention, G: Float[Tensor, "*B D D"]) -> Float[Tensor, "*B d"]:
    """The v with which L masked layers predict yhat = <v, x_q>: minus the last row of T_L ... T_1, less its last entry.

    T_l = I + W_PV G_l W_KQ and G_{l+1} = T_l G_l T_l^T.
    """
    pairs = list(zip(*layers, strict=True))
    identity = torch.eye(G.shape[-1], dtype=G.dtype)
    products = []
    for W_PV, W_KQ in pairs[:-1]:
        T = identity + W_PV @ G @ W_KQ
        products.append(T)
        G = T @ G @ T.mT
    W_PV, W_KQ = pairs[-1]
    row = identity[-1:] + W_PV[-1:] @ G @ W_KQ  # of the last layer nothing else is read
    for T in reversed(products):
        row = row @ T
    return -row[..., 0, :-1]


def _relative_error(layers: LinearAttention, sample: Moments) -> Tensor:
    """Error of the prediction over that of predicting 0, E|v - w|^2 / d: the mean over x_q ~ N(0, I) is exact."""
    return ((learned_tasks(layers, sample.G) - sample.tasks) ** 2).mean()


# Training


@dataclass(frozen=True)
class _Schedule:
    """Everything that determines a training, besides its start: prompts, x ~ N(0, I), and the two stages.

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
    test_seed: int = TEST_SEED

    def draw(self, generator: Generator, n: int | None = None, dtype: torch.dtype = torch.float32) -> Prompts:
        """A batch of prompts, or n of them."""
        covariance = torch.eye(self.dimension)
        return draw_prompts(n or self.batch, self.n_examples, covariance, generator=generator, dtype=dtype)

    def moments(self, n: int, seed: int) -> Moments:
        """`moments` of n prompts in float64."""
        generator = Generator().manual_seed(seed)
        parts = [moments(self.draw(generator, min(20_000, n - first), torch.float64)) for first in range(0, n, 20_000)]
        return Moments(*map(torch.cat, zip(*parts, strict=True)))


@dataclass(frozen=True)
class _Start:
    """What is trained, with how many layers, from which seed.

    Families: "gradient descent", a rate per step; "GD++", a rate and a damping per step; "transformer", every entry.
    """

    family: str
    n_layers: int
    seed: int

    @property
    def name(self) -> str:
        """The start's name in the files."""
        return f"{self.family}, {self.n_layers} layers, start {self.seed}"


_STARTS: tuple[_Start, ...] = (
    *(_Start("gradient descent", L, 0) for L in (2, 3)),
    *(_Start("GD++", L, seed) for L in (2, 3) for seed in range(3)),
    *(_Start("transformer", L, seed) for L in (2, 3) for seed in range(10)),
)
"""The starts that the book stores."""


class FinishedTraining(NamedTuple):
    """A finished training: the layers after Adam, those at the end, and the numbers of the way.

    `record` holds the losses of Adam (means over 100 steps), the errors after every step on each fixed sample, the
    norms of the gradient on the last one and the errors on test prompts, both after Adam and at the end, and the CPU
    seconds.
    """

    start: _Start
    adam: LinearAttention
    layers: LinearAttention
    record: Mapping[str, Any]

    @property
    def at_rest(self) -> bool:
        """Whether the training has come to an end: its gradient is below 1e-5. Some starts take longer than we ran."""
        return self.record["gradients"][-1] < _REST


def _train(start: _Start, schedule: _Schedule | None = None) -> FinishedTraining:
    """Train from one start: Adam on fresh prompts, then Gauss-Newton steps on fixed samples, each larger.

    Raises DivergenceError when the loss is no longer finite.
    """
    began, schedule = time.process_time(), schedule or _Schedule()
    after_adam, losses = _descended(start, schedule)
    adam, errors = _balanced(after_adam), []
    parameters = _parameters(start.family, adam)
    last = schedule.moments(schedule.samples[-1], schedule.sample_seed)
    on_last = _Fit(partial(_layers, start.family, d=schedule.dimension), last)
    gradients = [on_last.gradient(parameters).norm().item()]
    for n, iterations in zip(schedule.samples, schedule.iterations, strict=True):
        fit = on_last._replace(sample=Moments(*(tensor[:n] for tensor in last)))
        parameters, fallen = _gauss_newton(fit, parameters, iterations, schedule.tolerance)
        errors.append(fallen)
    layers = _balanced(on_last.layers_of(parameters))
    gradients.append(on_last.gradient(_parameters(start.family, layers)).norm().item())
    test = schedule.moments(schedule.test_prompts, schedule.test_seed)
    record = {
        "adam": losses[: schedule.steps].reshape(-1, _LOSS_WINDOW).mean(1).tolist(),
        "samples": errors,
        "gradients": gradients,
        "test": [_mean_error(one, test) for one in (adam, layers)],
        "cpu_seconds": round(time.process_time() - began, 1),
    }
    return FinishedTraining(start, adam, layers, rounded(record))


def _descended(start: _Start, schedule: _Schedule) -> tuple[LinearAttention, Float[Tensor, " steps"]]:
    """Layers (L, d+1, d+1) after Adam on fresh prompts, in float64, and the loss of the batch at every step."""
    generator = Generator().manual_seed(start.seed)
    example = schedule.draw(generator).inputs
    parameters = _initial(start, schedule.dimension, generator).to(example).requires_grad_()
    losses = descend_on_prompts(
        torch.optim.Adam([parameters], lr=schedule.rate),
        lambda prompts: _prediction(_layers(start.family, parameters, schedule.dimension), prompts),
        schedule.draw,
        steps=schedule.steps,
        seed=start.seed,
    )
    record = torch.tensor(list(losses), dtype=torch.float64)
    return _layers(start.family, parameters.detach().double(), schedule.dimension), record


def _initial(start: _Start, d: int, generator: Generator) -> Tensor:
    def uniform() -> Tensor:
        return 0.5 * torch.rand(start.n_layers, 1, generator=generator, dtype=torch.float64)

    if start.family == "transformer":
        return 0.1 * torch.randn(start.n_layers, 2, d + 1, d + 1, generator=generator, dtype=torch.float64)
    dampings = [uniform()] if start.family == "GD++" else []
    # Gradient descent's result does not depend on the order of the rates, so equal ones would stay equal for ever.
    return torch.cat([0.5 + uniform(), *dampings], dim=1)


def _layers(family: str, parameters: Float[Tensor, "L *P"], d: int) -> LinearAttention:
    """The layers that a family makes of its parameters."""
    if family == "transformer":
        return LinearAttention(*parameters.unbind(1))
    return gradient_layer(d, parameters[:, 0], parameters[:, 1] if family == "GD++" else 0.0)


def _prediction(layers: LinearAttention, prompts: Prompts) -> Float[Tensor, " B"]:
    """Predict as masked layers do, from G alone, which each turns into T G T^T with T = I + W_PV G W_KQ."""
    tokens, query = embedding(prompts).split((prompts.n_examples, 1), -1)
    G = tokens @ tokens.mT / prompts.n_examples
    for W_PV, W_KQ in zip(*layers, strict=True):
        T = torch.eye(G.shape[-1], dtype=G.dtype) + W_PV @ G @ W_KQ
        query, G = T @ query, T @ G @ T.mT
    return -query[:, -1, 0]


def _balanced(layers: LinearAttention) -> LinearAttention:
    """The same predictions from W_PV and W_KQ of equal norm in each layer: (c W_PV, W_KQ / c) is the same for every c.

    Without it the gradient's norm would depend on c. Layers in which one of the two is zero stay as they are.
    """
    norms = [torch.linalg.matrix_norm(matrix) for matrix in layers]
    c = torch.where(norms[0] * norms[1] > 0, (norms[1] / norms[0]).sqrt(), torch.ones_like(norms[0]))
    return LinearAttention(layers.W_PV * c[:, None, None], layers.W_KQ / c[:, None, None])


def _gauss_newton(fit: "_Fit", parameters: Tensor, iterations: int, tolerance: float) -> tuple[Tensor, list[float]]:
    """Lower the error of a fit by damped Gauss-Newton steps; return the parameters and the error after every step.

    A step s solves (J^T J + mu diag(J^T J)) s = -J^T r for the residuals r = (v - w)/sqrt(B d) and their Jacobian J. mu
    shrinks after a step that lowers the error and grows until one does.
    Source: Marquardt 1963, An algorithm for least-squares estimation of nonlinear parameters.
    """
    errors, mu = [fit.error(parameters)], 1e-3
    for _ in range(iterations):
        lowered = _lower(fit, parameters, errors[-1], mu)
        if lowered is None:
            break
        parameters, mu = lowered[0], max(lowered[1] / _SOFTER, _SMALLEST_DAMPING)
        errors.append(fit.error(parameters))
        if errors[-1] > (1 - tolerance) * errors[-2]:
            break
    return parameters, errors


def _lower(fit: "_Fit", parameters: Tensor, error: float, mu: float) -> tuple[Tensor, float] | None:
    """The parameters after the first step that lowers the error, and its mu; None if none does."""
    gradient, curvature = fit.normal_equations(parameters)
    scale = curvature.diagonal().clamp_min(1e-12)  # some entries have no effect
    while mu < _LARGEST_DAMPING:
        step = torch.linalg.solve(curvature + (mu * scale + 1e-13).diag(), -gradient)
        stepped = parameters + step.view_as(parameters)
        if fit.error(stepped) < error:
            return stepped, mu
        mu *= _HARDER
    return None


class _Fit(NamedTuple):
    """`_relative_error` on a fixed sample as a function of parameters, of which `layers_of` makes layers."""

    layers_of: Callable[[Tensor], LinearAttention]
    sample: Moments

    def error(self, parameters: Tensor) -> float:
        """The relative error of these parameters."""
        return _mean_error(self.layers_of(parameters), self.sample)

    def gradient(self, parameters: Tensor) -> Tensor:
        """The gradient of the relative error, in the shape of the parameters."""
        free = parameters.clone().requires_grad_()
        for chunk in _chunks(self.sample):
            (_relative_error(self.layers_of(free), chunk) * len(chunk.G) / len(self.sample.G)).backward()
        return free.grad

    def normal_equations(self, parameters: Tensor) -> tuple[Float[Tensor, " p"], Float[Tensor, "p p"]]:
        """J^T r and J^T J of the residuals, summed over chunks of the sample."""

        def missed(flat: Tensor, G: Tensor, task: Tensor) -> Tensor:
            return learned_tasks(self.layers_of(flat.view_as(parameters)), G) - task

        flat = parameters.flatten()
        jacobians = vmap(jacrev(missed), in_dims=(None, 0, 0))
        gradient, curvature = torch.zeros_like(flat), flat.new_zeros(len(flat), len(flat))
        for chunk in _chunks(self.sample):
            J, r = jacobians(flat, *chunk).flatten(0, 1), missed(flat, *chunk).flatten()
            gradient += J.T @ r / self.sample.tasks.numel()
            curvature += J.T @ J / self.sample.tasks.numel()
        return gradient, curvature


def _mean_error(layers: LinearAttention, sample: Moments) -> float:
    """`_relative_error`, chunk by chunk."""
    return sum(_relative_error(layers, chunk).item() * len(chunk.G) for chunk in _chunks(sample)) / len(sample.G)


def _chunks(sample: Moments) -> Iterable[Moments]:
    return (Moments(*pair) for pair in zip(*(tensor.split(_CHUNK) for tensor in sample), strict=True))


def _parameters(family: str, layers: LinearAttention) -> Tensor:
    """The parameters from which a family makes these layers."""
    if family == "transformer":
        return torch.stack(layers, 1)
    scale = layers.W_KQ[:, 0, 0]  # the construction has ones here
    rates, dampings = -layers.W_PV[:, -1, -1] * scale, -layers.W_PV[:, 0, 0] * scale
    return torch.stack([rates, dampings][: 2 if family == "GD++" else 1], 1)


# Trained layers on disk: deep_linear.safetensors and deep_linear.json


def _train_missing(
    folder: str | os.PathLike,
    starts: Sequence[_Start],
    schedule: _Schedule | None = None,
    *,
    progress: bool = True,
) -> list[FinishedTraining]:
    """Train the starts that the folder does not hold, write each as soon as it is finished, and return all.

    Raises CheckpointError: files that are damaged or of another schedule, a folder that refuses.
    """
    folder, schedule = Path(folder), schedule or _Schedule()
    finished = {run.start: run for run in (_load(folder, schedule) if (folder / f"{_NAME}.json").exists() else [])}
    for start in (bar := tqdm(starts, unit="start", disable=not progress)):
        bar.set_postfix_str(start.name)
        if start not in finished:
            finished[start] = _train(start, schedule)
            _save(list(finished.values()), folder, schedule)
    return [finished[start] for start in starts]


def _save(runs: Iterable[FinishedTraining], folder: str | os.PathLike, schedule: _Schedule) -> None:
    """Write the runs to the two files of a folder; raises as `stored_weights.write`.

    Each run has a digest of its own: weights that are newer by one run, as after a kill, are still good for the others.
    """
    runs = list(runs)
    description = {
        "command": f"python -m explainer.models.{_NAME}",
        "schedule": asdict(schedule),
        "runs": [asdict(run.start) | run.record | {"sha256": _digest(run, schedule)} for run in runs],
        "provenance": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "instructions": torch.backends.cpu.get_cpu_capability(),
            "threads": torch.get_num_threads(),
        },
    }
    weights = {name: matrix for run in runs for name, matrix in _tensors(run).items()}
    files.write(Path(folder) / _NAME, safetensors.save(weights), description)


def _load(folder: str | os.PathLike, schedule: _Schedule | None = None) -> list[FinishedTraining]:
    """Read the runs that `_save` wrote.

    Raises CheckpointError: a missing, damaged or edited file, or another schedule than the one given.
    """
    path = Path(folder) / _NAME
    description = files.describe(path)
    with files.reading(path):
        settings = description["schedule"].items()
        stored_with = _Schedule(**{key: tuple(of) if isinstance(of, list) else of for key, of in settings})
        weights = safetensors.load(path.with_suffix(".safetensors").read_bytes())
        runs = [_run(entry, weights, stored_with) for entry in description["runs"]]
    if schedule not in (None, stored_with):
        raise CheckpointError(f"{path}.json has another schedule, {stored_with}; delete both files and train again.")
    return runs


def stored(family: str, n_layers: int) -> list[FinishedTraining]:
    """The book's runs of a family and a depth, in the order of their seeds.

    Raises CheckpointError as `_load`, and for what the book does not have or the files lack.
    """
    wanted = [start for start in _STARTS if (start.family, start.n_layers) == (family, n_layers)]
    if not wanted:
        raise CheckpointError(f"the book has no {family!r} with {n_layers} layers; see deep_linear.STARTS.")
    folder = files.directory()
    finished = {run.start: run for run in _load(folder)}
    if missing := [start.name for start in wanted if start not in finished]:
        raise CheckpointError(
            f"{folder} lacks {'; '.join(missing)}: train them with python -m explainer.models.{_NAME}."
        )
    return [finished[start] for start in wanted]


def _run(entry: Mapping[str, Any], weights: Mapping[str, Tensor], schedule: _Schedule) -> FinishedTraining:
    """A run from its entry in the JSON file; CheckpointError unless it is what was written."""
    keys = _Start.__dataclass_fields__
    start = _Start(**{key: entry[key] for key in keys})
    stages = [LinearAttention(*(weights[_tensor_name(start, stage, i)] for i in range(2))) for stage in range(2)]
    run = FinishedTraining(start, *stages, {key: value for key, value in entry.items() if key not in {*keys, "sha256"}})
    if entry["sha256"] != _digest(run, schedule):
        raise CheckpointError(f"{start.name} is not what was stored; fetch both files again, or train them.")
    return run


def _tensors(run: FinishedTraining) -> dict[str, Tensor]:
    """The matrices of a run by their names in the file."""
    stages = (run.adam, run.layers)
    return {_tensor_name(run.start, s, i): stages[s][i].contiguous() for s in range(2) for i in range(2)}


def _tensor_name(start: _Start, stage: int, matrix: int) -> str:
    return f"{start.name}: {LinearAttention._fields[matrix]} {('after Adam', 'at the end')[stage]}"


def _digest(run: FinishedTraining, schedule: _Schedule) -> str:
    """SHA-256 of all that is stored of a run, and of its schedule."""
    numbers = to_json(rounded([asdict(schedule), asdict(run.start), run.record])).encode()
    matrices = (matrix.numpy().tobytes() for _, matrix in sorted(_tensors(run).items()))
    return hashlib.sha256(b"".join([numbers, *matrices])).hexdigest()


def _main(arguments: Sequence[str] | None = None) -> None:
    """Train the starts of the book that are not stored: python -m explainer.models.deep_linear."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--directory", default=files.directory(), help="where to write (default: %(default)s)")
    _train_missing(parser.parse_args(arguments).directory, _STARTS)


if __name__ == "__main__":
    _main()
