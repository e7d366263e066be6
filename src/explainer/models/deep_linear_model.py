"""Linear transformers of two and three layers, trained until nothing improves; every start is kept.

`explainer_lab.small_model_training` trains them. Letters: L layers, d inputs, N examples; G = sum_i e_i e_i^T / N the
second moments of a prompt's tokens e_i = (x_i, y_i); w the task of a prompt, v what the layers take it for.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from safetensors import torch as safetensors
from torch import Tensor

from explainer.data.files import reading_weights, rounded, to_json
from explainer.errors import CheckpointError
from explainer.theory.linear_transformer import LinearAttention, embedding
from explainer.theory.regression import Prompts

NAME = "deep_linear"
"""Of the two files."""


def moments(prompts: Prompts) -> Float[Tensor, "B D D"]:
    """All that a masked stack of layers sees of the examples: G = sum_i e_i e_i^T / N, D = d + 1."""
    tokens = embedding(prompts)[..., :-1]
    return tokens @ tokens.mT / prompts.n_examples


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


@dataclass(frozen=True, eq=False)
class TrainedLayers:
    """What became of one start: the layers after Adam, those at the end, and the numbers of the way.

    Families: "gradient descent", a rate per step; "GD++", a rate and a damping per step; "transformer", every entry.
    `record` holds the losses of Adam (means over 100 steps), the errors after every step on each fixed sample, the
    norms of the gradient on the last one and the errors on test prompts, both after Adam and at the end, and the CPU
    seconds.
    """

    family: str
    n_layers: int
    seed: int
    adam: LinearAttention
    layers: LinearAttention
    record: Mapping[str, Any]

    @property
    def at_rest(self) -> bool:
        """Whether the training has come to an end: its gradient is below 1e-5. Some starts take longer than we ran."""
        return self.record["gradients"][-1] < 1e-5

    def matrices(self) -> dict[str, Tensor]:
        """The matrices by their names in the file."""
        start = f"{self.family}, {self.n_layers} layers, start {self.seed}"
        stages = {"after Adam": self.adam, "at the end": self.layers}
        return {
            f"{start}: {name} {stage}": matrix.contiguous()
            for stage, layers in stages.items()
            for name, matrix in layers._asdict().items()
        }

    def entry(self, schedule: Mapping[str, Any]) -> dict[str, Any]:
        """What the JSON file says of the start, with the SHA-256 of all that is stored of it and of its schedule."""
        start = {"family": self.family, "n_layers": self.n_layers, "seed": self.seed}
        numbers = to_json(rounded([schedule, start, self.record])).encode()
        content = [numbers, *(matrix.numpy().tobytes() for _, matrix in sorted(self.matrices().items()))]
        return start | dict(self.record) | {"sha256": hashlib.sha256(b"".join(content)).hexdigest()}


def stored(family: str, n_layers: int) -> list[TrainedLayers]:
    """The book's starts of a family and a depth, in the order of their seeds.

    Raises CheckpointError: a missing, damaged or edited file.
    """
    found = []
    with reading_weights(NAME) as (content, description):
        weights = safetensors.load(content)
        for entry in description["runs"]:
            if (entry["family"], entry["n_layers"]) != (family, n_layers):
                continue
            start = f"{family}, {n_layers} layers, start {entry['seed']}"
            adam, layers = (
                LinearAttention(*(weights[f"{start}: {name} {stage}"] for name in LinearAttention._fields))
                for stage in ("after Adam", "at the end")
            )
            record = {key: entry[key] for key in entry.keys() - {"family", "n_layers", "seed", "sha256"}}
            one = TrainedLayers(family, n_layers, entry["seed"], adam, layers, record)
            if one.entry(description["schedule"]) != entry:
                raise CheckpointError(f"{start} is not what was stored; fetch both files again, or train them.")
            found.append(one)
    return found
