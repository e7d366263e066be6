"""Real attention heads: the query, keys and values that a checkpoint computes at the end of a prompt."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from explainer.data import tasks
from explainer.errors import CheckpointError
from explainer.models import scoring
from explainer.models.loading import Checkpoint

_NAME = "explainer_heads"
_EXAMPLES = "'gpt2', 'EleutherAI/pythia-160m', 'facebook/opt-125m' or the starter checkpoint"


@dataclass(frozen=True, eq=False)
class Head:
    """One head at the last position of a prompt of T tokens; its output is V^T softmax(K q / sqrt(d)), in float64.

    Queries and keys are those after rotary positions; heads that share keys and values each have them. Where a family
    scales its logits by another number than 1/sqrt(d), the query carries the difference.
    """

    query: Float[Tensor, " d"]
    keys: Float[Tensor, "T d"]
    values: Float[Tensor, "T d_v"]

    def with_rows_first(self, start: int, stop: int) -> "Head":
        """The same head with the rows start, ..., stop - 1 put before the others; its output does not change."""
        rows = [*range(start, stop), *range(start), *range(stop, len(self.keys))]
        return Head(self.query, self.keys[rows], self.values[rows])


@torch.no_grad()
def read_heads(checkpoint: Checkpoint, ids: Sequence[int]) -> list[list[Head]]:
    """Read every head for the query at the last of the token ids, in one forward pass: `result[layer][head]`.

    Each head is checked to return what its layer went on with. Raises CheckpointError: no token or too many; layers
    that do not ask the interface (GPT-Neo, XGLM); attention that is not a softmax over all tokens (a local window, a
    soft cap, a sink).
    """
    layers: dict[Any, list[Head]] = {}

    def keep(module: Any, heads: list[Head], output: Tensor) -> None:
        _check_output(checkpoint, len(layers), heads, output)
        layers[module] = heads

    with _listening(checkpoint.model, keep):
        checkpoint.hidden(input_ids=checkpoint.row(ids), use_cache=False)
    n_layers = checkpoint.model.config.num_hidden_layers
    if len(layers) != n_layers:
        raise CheckpointError(
            f"{checkpoint.name}: {len(layers)} of {n_layers} layers asked the attention interface of transformers, so "
            f"the heads of a {checkpoint.model.config.model_type} cannot be read; choose a model like {_EXAMPLES}."
        )
    return list(layers.values())


class PromptHeads(NamedTuple):
    """The heads at the last token of a prompt, layer after layer, with the rows of its n demonstration tokens first.

    `ids` are the token ids of the prompt in their own order: the first token, the demonstrations, the query's text.
    """

    heads: list[Head]
    ids: list[int]
    n: int


def read_demonstrations(checkpoint: Checkpoint, data: tasks.TaskData, seed: int, k: int = 8) -> PromptHeads:
    """Read every head at the end of a prompt of k demonstrations and one query, both drawn with the seed.

    Raises TaskError where the task has too few examples, CheckpointError as `read_heads`.
    """
    ids, ends = scoring.context_ids(checkpoint, data.task, tasks.demonstrations(data, k, seed))
    (query,) = tasks.queries(data, 1, seed)
    ids = ids + scoring.continuation_ids(checkpoint, ["\n"], [data.task.prompt(query)])[0]
    n = ends[-1] - 1  # without the first token of the sequence
    heads = [head.with_rows_first(1, n + 1) for layer in read_heads(checkpoint, ids) for head in layer]
    return PromptHeads(heads, ids, n)


def _heads(query: Tensor, keys: Tensor, values: Tensor, scale: float | None) -> list[Head]:
    """Heads of one layer from query (heads, T, d), keys (key heads, T, d) and values (key heads, T, d_v)."""
    d, sharing = query.shape[-1], len(query) // len(keys)
    last, keys, values = (tensor.to("cpu", torch.float64) for tensor in (query[:, -1], keys, values))
    queries = last if scale is None else last * (scale * math.sqrt(d))
    return [Head(q, keys[i // sharing], values[i // sharing]) for i, q in enumerate(queries)]


def _check_output(checkpoint: Checkpoint, layer: int, heads: list[Head], output: Tensor) -> None:
    """Refuse heads that do not return the layer's output, shape (heads, d_v)."""
    tolerance = 1e-3 if checkpoint.dtype == torch.float32 else 0.1
    for i, (head, expected) in enumerate(zip(heads, output.to("cpu", torch.float64), strict=True)):
        weights = (head.keys @ head.query / math.sqrt(len(head.query))).softmax(-1)
        if (weights @ head.values - expected).abs().max() > tolerance * head.values.abs().max():
            raise CheckpointError(
                f"{checkpoint.name}: head {i} of layer {layer} is not a softmax over all {len(weights)} tokens (a "
                f"local window, a soft cap or a sink); use a shorter prompt or a model like {_EXAMPLES}."
            )


@contextmanager
def _listening(model: PreTrainedModel, keep: Callable[..., None]) -> Iterator[None]:
    """Show `keep` every layer's heads and their output at the last position; afterwards all is as before."""
    own = model.config._attn_implementation

    def attention(module: Any, query: Tensor, keys: Tensor, values: Tensor, mask: Any, **options: Any) -> tuple:
        # The eager function is each family's own and stands in no registry.
        eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
        compute = ALL_ATTENTION_FUNCTIONS.get_interface(own, eager)
        output, weights = compute(module, query, keys, values, mask, **options)
        keep(module, _heads(query[0], keys[0], values[0], options.get("scaling")), output[0, -1])
        return output, weights

    # Without a mask function of the same name, transformers would pass no mask. It keeps no state, so it may stay.
    ALL_MASK_ATTENTION_FUNCTIONS.register(_NAME, ALL_MASK_ATTENTION_FUNCTIONS[own])
    ALL_ATTENTION_FUNCTIONS[_NAME] = attention
    try:
        model.set_attn_implementation(_NAME)
        yield
    finally:
        model.set_attn_implementation(own)
        del ALL_ATTENTION_FUNCTIONS[_NAME]
