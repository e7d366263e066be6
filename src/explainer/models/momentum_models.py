"""Momentum attention in models of `transformers`: switch it on, train with it, decode with it.

The averages of `theory.momentum` and the recency bias are attention implementations beside `sdpa`: they call the same
kernel and read `momentum_eta` and `momentum_average` from the model's configuration. A saved model is not loaded as one
of plain attention: its configuration asks for an attention implementation whose name says what to do.
"""

import math
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, causal_mask_function, sdpa_mask

from explainer.errors import CheckpointError
from explainer.theory import momentum

RECENCY_BIAS = "recency_bias"
"""Name of the recency bias among the averages of a configuration."""

LEARNED_CONVOLUTION = "learned_convolution"
"""Name of the convolution whose weights are learned."""

_Model = TypeVar("_Model", bound=PreTrainedModel)

_SUPPORTED = ("gpt2", "llama")
_REFUSAL = "momentum (load with attn_implementation='sdpa', then switch it on: explainer.models.momentum_models)"
_MOMENTUM = "explainer_momentum"
_RECENCY = "explainer_recency_bias"
_CONVOLUTION = "explainer_learned_convolution"


def with_momentum(model: _Model, eta: float, average: str = "momentum") -> _Model:
    """Add an average of past values to every attention layer of a causal language model, in place; return the model.

    Attention becomes V softmax(K^T q / sqrt d) + AVERAGES[average](V, eta), see `momentum.momentum_attention`. Exact
    with left or right padding, grouped queries, and dynamic caches.
    Raises: CheckpointError for a model that is not supported, ValueError for eta outside [0, 1) or an unknown average.
    """
    if average not in momentum.AVERAGES:
        raise ValueError(f"average = {average!r}; choose one of {', '.join(momentum.AVERAGES)}.")
    momentum.check_eta(eta)
    return _switched(model, eta, average)


def with_recency_bias(model: PreTrainedModel, eta: float) -> PreTrainedModel:
    """Add (t - i) log eta to the logit of position i seen from t, in place; return the model.

    The control for momentum: the same decay, but as a factor of the softmax weights. Needs O(T^2) memory for the bias.
    Raises: CheckpointError for a model that is not supported, ValueError if eta is outside (0, 1].
    Source: ALiBi (Press et al. 2022, arXiv 2108.12409), with one slope -log eta for all heads.
    """
    if not 0 < eta <= 1:
        raise ValueError(f"eta = {eta} is outside (0, 1]; 1 is no bias.")
    return _switched(model, eta, RECENCY_BIAS)


def with_learned_convolution(model: PreTrainedModel) -> PreTrainedModel:
    """Add sum_{s=1}^{SHORT} c_s v_{t-s} to every attention layer, c_s learned for each channel, in place.

    The kernels are parameters `value_kernel` of the attention modules, (SHORT, H_k d_v), lag 1 first, and start at 0.
    For training a Llama only: it refuses caches and padding.
    Source: ours; short convolutions of values as in Mamba and RWKV's token shift (Peng et al. 2023, arXiv 2305.13048).
    """
    AttentionInterface.register(_CONVOLUTION, _attend_with_convolution)
    AttentionMaskInterface.register(_CONVOLUTION, _padding_mask)
    for layer in model.model.layers:
        projection = layer.self_attn.v_proj
        kernel = torch.zeros(momentum.SHORT, projection.out_features, device=projection.weight.device)
        layer.self_attn.value_kernel = nn.Parameter(kernel.to(projection.weight.dtype))
    model.set_attn_implementation(_CONVOLUTION)
    return model


def _switched(model: PreTrainedModel, eta: float, average: str) -> PreTrainedModel:
    _check_supported(model)
    AttentionInterface.register(_MOMENTUM, _attend_with_momentum)
    AttentionInterface.register(_RECENCY, _attend_with_recency_bias)
    for name in (_MOMENTUM, _RECENCY):
        AttentionMaskInterface.register(name, _padding_mask)
    model.set_attn_implementation(_RECENCY if average == RECENCY_BIAS else _MOMENTUM)
    model.config.momentum_eta, model.config.momentum_average = float(eta), average
    model.config.attn_implementation = _REFUSAL
    return model


def _check_supported(model: PreTrainedModel) -> None:
    config = model.config
    if config.model_type not in _SUPPORTED or getattr(config, "add_cross_attention", False):
        tested = f"{' and '.join(_SUPPORTED)} without cross-attention"
        raise CheckpointError(f"momentum is for {tested}, not for {type(model).__name__} ({config.model_type}).")


def _padding_mask(*, q_length: int, kv_length: int, q_offset: int, mask_function: Callable, **options) -> Tensor | None:
    """The mask of `sdpa`; refuses what an average of all values up to the last one would get wrong."""
    if mask_function is not causal_mask_function:
        raise ValueError("momentum needs causal attention over whole rows: no packed sequences, blocks or windows.")
    if int(q_offset) + q_length != kv_length:
        raise ValueError("momentum needs a cache that holds exactly the tokens that it has seen, as DynamicCache does.")
    return sdpa_mask(q_length=q_length, kv_length=kv_length, q_offset=q_offset, mask_function=mask_function, **options)


def _attend_with_momentum(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options
) -> tuple[Tensor, None]:
    if options.get("cache") is not None:
        raise ValueError("momentum needs the values of the whole row; do not use a paged cache (continuous batching).")
    attention, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    eta, T_q = module.config.momentum_eta, query.shape[2]
    if eta == 0:
        return attention, None
    average = module.config.momentum_average
    if average == "permuted" and attention_mask is not None and not attention_mask[..., 0].all():
        raise ValueError("padding on the left shifts the positions that 'permuted' is drawn for; pad on the right.")
    heads = momentum.zero_masked_values(value, attention_mask, T_q).transpose(1, 2)
    values = heads.flatten(2)
    past = momentum.AVERAGES[average](values, eta)[:, -T_q:].unflatten(2, heads.shape[2:])
    return attention + past.repeat_interleave(query.shape[1] // value.shape[1], 2), None


def _attend_with_convolution(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options
) -> tuple[Tensor, None]:
    if attention_mask is not None or query.shape[2] != value.shape[2]:
        raise ValueError("the learned convolution is for training: whole rows of one length, without a cache.")
    attention, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    channels = value.transpose(1, 2).flatten(2)
    past = momentum.causal_convolution(channels, module.value_kernel).unflatten(2, (value.shape[1], -1))
    return attention + past.repeat_interleave(query.shape[1] // value.shape[1], 2), None


def _attend_with_recency_bias(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options
) -> tuple[Tensor, None]:
    T_q, T = query.shape[2], key.shape[2]
    positions = torch.arange(T, device=query.device)
    lag = positions[T - T_q :, None] - positions
    bias = (lag * math.log(module.config.momentum_eta)).to(query.dtype)
    visible = lag >= 0 if attention_mask is None else attention_mask
    mask = torch.where(visible, bias, torch.finfo(query.dtype).min).expand(query.shape[0], 1, T_q, T)
    return sdpa_attention_forward(module, query, key, value, mask, **options)
