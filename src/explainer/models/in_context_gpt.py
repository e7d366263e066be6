"""A small GPT that is trained to do linear regression in context, as in Garg et al. (2022).

A prompt is x_1, y_1, x_2, y_2, ..., x_N, y_N, x_q: every input and every target is one token, a target padded with
zeros to d numbers. The model predicts y_k at the token of x_k, from the k - 1 examples before it.
`explainer_lab.small_model_training` trains it.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from safetensors import torch as safetensors
from torch import Generator, Tensor, nn
from transformers import GPT2Config, GPT2Model

from explainer.data.files import reading_weights
from explainer.errors import CheckpointError
from explainer.theory.regression import Prompts, draw_prompts, random_covariances, squared_errors
from explainer.theory.statistics import Interval, ratio_interval
from explainer.theory.task_diversity import draw_pool, pool_prompts

LINE_NOISE, TASK_NOISE = 0.3, 0.5
"""Standard deviations of the noise on the targets of lines; on those of "noisy" prompts, as in Raventós et al."""

POOL_SIZES = (4, 16, 64)
"""Numbers T of tasks in the finite pools that models are trained on."""

LOSS_WINDOW = 10
"""A stored loss is the mean over so many steps."""

PAGE_GRID = 128
"""The weights of `gpt_line`, which pages hold, are multiples of 1 / PAGE_GRID: it is rounded after its training."""

TESTED_LENGTHS, N_TEST_PROMPTS, TEST_SEED = (1, 2, 3, 4, 6, 8, 10, 12), 1000, 1_000_003
"""Errors are measured after so many examples, on so many prompts, of a seed far from those of training."""


@dataclass(frozen=True)
class InContextGPTSetting:
    """Everything that determines a trained model; `inner` is the width of the feed-forward layers."""

    distribution: str = "isotropic"
    dimension: int = 5
    n_examples: int = 20
    layers: int = 4
    width: int = 64
    heads: int = 4
    inner: int = 256
    steps: int = 3000
    batch: int = 64
    learning_rate: float = 1e-3
    seed: int = 0

    def prompts(self, n_prompts: int, generator: Generator) -> Prompts:
        """Prompts of the kind that the model is trained on, by its distribution; w ~ N(0, I), y = <w, x> + noise.

        - isotropic: x ~ N(0, I); noisy: with noise of the standard deviation TASK_NOISE; half length: with half as
          many examples as the model has positions for;
        - pool of T: noisy, with tasks of `draw_pool(T, d)`, always the same few, whatever the generator;
        - random covariance: x ~ N(0, Lambda) with a new diagonal Lambda for every prompt, its entries Exp(1);
        - line: points near a line of the plane, x = (z, 1) with z ~ N(0, 1), and LINE_NOISE.

        Raises ValueError for another.
        """
        d, N = self.dimension, self.n_examples
        draw = partial(draw_prompts, n_prompts, generator=generator, dtype=torch.float32)
        match self.distribution.split():
            case ["isotropic"]:
                return draw(N, torch.eye(d))
            case ["noisy"]:
                return draw(N, torch.eye(d), noise=TASK_NOISE)
            case ["half", "length"]:
                return draw(N // 2, torch.eye(d))
            case ["pool", "of", n_tasks]:
                pool = draw_pool(int(n_tasks), d, dtype=torch.float32)
                return pool_prompts(pool, n_prompts, N, TASK_NOISE, generator)
            case ["random", "covariance"]:
                return draw(N, random_covariances(n_prompts, d, generator))
            case ["line"]:
                z, e = torch.randn(2, n_prompts, N + 1, generator=generator)
                w = torch.randn(n_prompts, 2, generator=generator)
                inputs = torch.stack([z, torch.ones_like(z)], -1)
                return Prompts(inputs, (inputs @ w[..., None]).squeeze(-1) + LINE_NOISE * e, w)
        raise ValueError(f"distribution = {self.distribution!r}; see InContextGPTSetting.prompts.")


class InContextGPT(nn.Module):
    """GPT-2 between a linear map from d numbers to its width and one from its width to one number, without dropout.

    The weights are drawn from the setting's seed, which leaves the global generator as it was.
    """

    def __init__(self, setting: InContextGPTSetting, prepare: Callable[[GPT2Model], GPT2Model] | None = None):
        """Draw the weights; then `prepare` may change the transformer, as momentum attention does."""
        super().__init__()
        self.setting = setting
        configuration = GPT2Config(
            vocab_size=1,  # tokens are vectors; GPT2Model still wants an embedding
            n_positions=2 * setting.n_examples + 1,
            n_embd=setting.width,
            n_layer=setting.layers,
            n_head=setting.heads,
            n_inner=setting.inner,
            activation_function="gelu_pytorch_tanh",  # GPT-2's own, in one pass
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            use_cache=False,
            bos_token_id=None,
            eos_token_id=None,
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(setting.seed)
            self.read_in = nn.Linear(setting.dimension, setting.width)
            gpt = GPT2Model(configuration)
            self.read_out = nn.Linear(setting.width, 1)
        self.gpt = prepare(gpt) if prepare else gpt

    def forward(self, inputs: Float[Tensor, "B n d"], targets: Float[Tensor, "B n"]) -> Float[Tensor, "B n"]:
        """Prediction of every target from the inputs up to its own and the targets before it; the last is not read.

        The T = 2 n - 1 tokens are x_1, (y_1, 0, ..., 0), x_2, ..., x_n.
        Source: Garg et al. 2022, What can transformers learn in-context?, section 2.
        """
        padded = nn.functional.pad(targets[..., None], (0, inputs.shape[-1] - 1))
        tokens = torch.stack([inputs, padded], 2).flatten(1, 2)[:, :-1]
        hidden = self.gpt(inputs_embeds=self.read_in(tokens)).last_hidden_state
        return self.read_out(hidden[:, ::2]).squeeze(-1)


class TrainedGPT(NamedTuple):
    """A trained model in evaluation mode, and its losses (means over LOSS_WINDOW steps)."""

    model: InContextGPT
    losses: list[float]


@torch.inference_mode()
def query_prediction(model: InContextGPT, prompts: Prompts) -> Float[Tensor, " B"]:
    """Prediction of each query's target after all examples of its prompt, at most as many as in the model's setting."""
    dtype = next(model.parameters()).dtype
    return model(prompts.inputs.to(dtype), prompts.targets.to(dtype))[:, -1]


def relative_errors(
    estimator: Callable[[Prompts], Float[Tensor, " B"]], prompts: Prompts, ks: Sequence[int] = (5, 10, 20)
) -> dict[int, Interval]:
    """Error after each number k of examples, sum (yhat - y_q)^2 / sum y_q^2 over the prompts, with a 95 % interval.

    The estimator predicts the query's target of every prompt. The queries are the same for all k; the interval
    resamples the prompts (`statistics.ratio_interval`).
    """
    y_q = prompts.y_q.double().numpy()
    errors = {k: squared_errors(estimator(prompts.shortened(k)).double(), prompts).numpy() for k in ks}
    return {k: ratio_interval([(error, y_q**2)]) for k, error in errors.items()}


_SMALL_POOL = InContextGPTSetting(
    "noisy", dimension=3, n_examples=8, layers=3, width=32, inner=64, steps=8000, learning_rate=2e-3
)

STORED: Mapping[str, InContextGPTSetting] = {
    "gpt_random_covariance": InContextGPTSetting("random covariance", steps=4500),
    "gpt_line": InContextGPTSetting(
        "line", dimension=2, n_examples=12, layers=3, width=32, inner=64, steps=5000, learning_rate=2e-3
    ),
    "gpt_half_length": replace(_SMALL_POOL, distribution="half length", n_examples=20),
    "gpt_noisy": _SMALL_POOL,
    **{f"gpt_pool_{T}": replace(_SMALL_POOL, distribution=f"pool of {T}") for T in POOL_SIZES},
}
"""The models of the book, by the name of their files."""


def stored(name: str) -> TrainedGPT:
    """A trained model of the book, by its key in `STORED`.

    Raises CheckpointError: a missing, damaged or edited file.
    """
    with reading_weights(name) as (weights, description):
        if hashlib.sha256(weights).hexdigest() != description["provenance"]["sha256"]:
            raise CheckpointError(f"{name}.safetensors is not the file that {name}.json describes; fetch both again.")
        model = InContextGPT(InContextGPTSetting(**description["setting"]))
        model.load_state_dict(safetensors.load(weights))
        return TrainedGPT(model.eval(), description["losses"])


def page_weights(model: InContextGPT) -> dict[str, Any]:
    """What explorables/js/gpt.js reads: the weights in units of 1 / PAGE_GRID, and where each one stands.

    `index` gives [offset, rows, columns] by name, counted in numbers, of matrices that are multiplied from the left.
    """
    index, data, offset = {}, [], 0
    for name, tensor in model.state_dict().items():
        if name == "gpt.wte.weight":  # the embedding of tokens that there are not
            continue
        # nn.Linear computes x W^T, GPT-2's layers x W.
        whole = (tensor.T if name in ("read_in.weight", "read_out.weight") else tensor).mul(PAGE_GRID).round().int()
        index[name.removeprefix("gpt.")] = [offset, *(1,) * (2 - whole.ndim), *whole.shape]
        data += whole.flatten().tolist()
        offset += tensor.numel()
    setting = model.setting
    config = {
        "layers": setting.layers,
        "heads": setting.heads,
        "examples": setting.n_examples,
        "epsilon": model.gpt.config.layer_norm_epsilon,
    }
    return {"config": config, "index": index, "data": data, "grid": PAGE_GRID}
