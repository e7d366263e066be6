"""Model families: the only place that knows where a model keeps its queries, keys, values, MLP and readout.

The three projections of attention are separate linear layers (GPT-Neo, OPT, XGLM, Llama, Qwen), or one layer with its
output features in the order [q | k | v], stored transposed (GPT-2), or in the order (head, [q, k, v], head size)
(GPT-NeoX). Every projection is shown in one form, weight (heads, head size, d) and bias (heads, head size), as a view:
to write into it is to write into the model.
"""

import sys
from dataclasses import dataclass, fields
from operator import attrgetter

from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPast
from transformers.pytorch_utils import Conv1D

from explainer.errors import CheckpointError

CACHE = "cache" if "cache" in {field.name for field in fields(BaseModelOutputWithPast)} else "past_key_values"
"""The name by which a forward pass takes keys and values and gives them back, in the installed transformers."""


@dataclass(frozen=True)
class Projection:
    """One of the maps x -> q, k, v of a layer: a linear module, or a part of one that computes all three.

    The output features of `module`, unflattened to `sizes`, belong to this projection at `index` of `axis`.
    """

    module: nn.Module
    sizes: tuple[int, int, int]
    axis: int
    index: int

    def part(self, tensor: Tensor, dim: int) -> Tensor:
        """View of the part of a tensor whose axis `dim` are output features: (..., heads, head size, ...)."""
        dim %= tensor.ndim
        return tensor.unflatten(dim, self.sizes).select(dim + self.axis, self.index)

    def weight(self, tensor: Tensor | None = None) -> Tensor:
        """View (heads, head size, d) of the module's weight, or of a tensor of its shape, like its gradient."""
        tensor = self.module.weight if tensor is None else tensor
        return self.part(tensor.T if isinstance(self.module, Conv1D) else tensor, 0)

    def bias(self, tensor: Tensor | None = None) -> Tensor | None:
        """View (heads, head size) of the module's bias, or of a tensor of its shape; None without a bias."""
        tensor = self.module.bias if tensor is None else tensor
        return None if tensor is None else self.part(tensor, 0)


@dataclass(frozen=True)
class MLP:
    """The MLP of a block: its linear maps, and where the residual stream is that its output is added to.

    Each of `inputs` reads the same vector (gate and up in a gated MLP); `output` reads the hidden units. `stream` reads
    the residual stream after attention was added to it. It is None where attention and MLP are parallel, and the MLP
    never sees the attention of its own block.
    """

    inputs: tuple[nn.Module, ...]
    output: nn.Module
    stream: nn.Module | None


@dataclass(frozen=True)
class Layer:
    """One transformer block, its attention and its MLP.

    The output of `block` (the first item, if it is a tuple) is the residual stream after it, (..., d). The output of
    `output` is the attention output after its projection, before the residual is added: the self-attention output of
    Dai et al. (2023). A score is q . k * `scaling`. A token attends to `window` tokens up to its own, to all if None.
    """

    block: nn.Module
    query: Projection
    key: Projection
    value: Projection
    query_module: nn.Module
    output: nn.Module
    scaling: float
    window: int | None
    mlp: MLP

    def queries(self, output: Tensor) -> Tensor:
        """Attention queries q * scaling, (..., heads * head size), from the output of `query_module`.

        They are those before any rotation by the position, as the code released by Dai et al. records them.
        """
        heads = self.query.part(output, -1) if self.query_module is self.query.module else output
        return heads.flatten(-2) * self.scaling


@dataclass(frozen=True)
class Architecture:
    """The parts of a model that the study touches, under the same names for every family."""

    model: PreTrainedModel
    layers: tuple[Layer, ...]
    final: tuple[nn.Module, ...]

    @property
    def n_layers(self) -> int:
        """Number of transformer blocks."""
        return len(self.layers)

    @property
    def n_heads(self) -> int:
        """Number of query heads of a layer."""
        return self.layers[0].query.weight().shape[0]

    @property
    def n_key_heads(self) -> int:
        """Number of key (and value) heads of a layer; query head h uses key head h // (n_heads // n_key_heads)."""
        return self.layers[0].key.weight().shape[0]

    @property
    def head_size(self) -> int:
        """Width of one head."""
        return self.layers[0].key.weight().shape[1]

    @property
    def rotary(self) -> nn.Module | None:
        """The module that returns (cos, sin) of T positions, each (1, T, rotated size); None without rotation."""
        return getattr(self.model.base_model, "rotary_emb", None)

    def rotated(
        self, heads: Float[Tensor, "1 heads T d"], rotation: tuple[Tensor, Tensor] | None
    ) -> Float[Tensor, "1 heads T d"]:
        """Queries or keys, R_p x, turned by their positions p as the family does it; unchanged for None.

        `rotation` is what `rotary` returns, for T positions or for one that all share; (cos, -sin) gives R_p^T x.
        Source: Su et al. 2021 (RoFormer), section 3.4.2.
        """
        if rotation is None:
            return heads
        apply = sys.modules[type(self.model).__module__].apply_rotary_pos_emb  # each family's own, in no registry
        return apply(heads, heads, *rotation)[0]

    def readout(self, hidden: Tensor) -> Tensor:
        """Logits, (..., vocab), of the residual stream (..., d) after any block: final norm, then output embedding."""
        for module in self.final:
            hidden = module(hidden)
        return self.model.get_output_embeddings()(hidden)


@dataclass(frozen=True)
class _Family:
    """Where the models of a family keep their parts: `blocks` and `final` in the model, the others in a block."""

    blocks: str
    final: tuple[str, ...]
    attention: str
    output: str
    query: str = "q_proj"
    key: str = "k_proj"
    value: str = "v_proj"
    fused: int | None = None  # axis of [q, k, v] among the output features of a fused module
    query_norm: str | None = None
    mlp_norm: str = "post_attention_layernorm"
    mlp_inputs: tuple[str, ...] = ("mlp.gate_proj", "mlp.up_proj")
    mlp_output: str = "mlp.down_proj"


_LLAMA = _Family("model.layers", ("model.norm",), "self_attn", "o_proj")
_MLP_GPT2 = {"mlp_norm": "ln_2", "mlp_inputs": ("mlp.c_fc",), "mlp_output": "mlp.c_proj"}
_MLP_NEOX = {"mlp_inputs": ("mlp.dense_h_to_4h",), "mlp_output": "mlp.dense_4h_to_h"}
_MLP_FAIRSEQ = {"mlp_norm": "final_layer_norm", "mlp_inputs": ("fc1",), "mlp_output": "fc2"}
_C_ATTN = {"query": "c_attn", "key": "c_attn", "value": "c_attn", "fused": 0}
_QUERY_KEY_VALUE = dict.fromkeys(("query", "key", "value"), "query_key_value") | {"fused": 1}
_OPT_FINAL = ("model.decoder.final_layer_norm", "model.decoder.project_out")

_FAMILIES = {
    "gpt2": _Family("transformer.h", ("transformer.ln_f",), "attn", "c_proj", **_C_ATTN, **_MLP_GPT2),
    "gpt_neo": _Family("transformer.h", ("transformer.ln_f",), "attn.attention", "out_proj", **_MLP_GPT2),
    "gpt_neox": _Family(
        "gpt_neox.layers", ("gpt_neox.final_layer_norm",), "attention", "dense", **_QUERY_KEY_VALUE, **_MLP_NEOX
    ),
    "llama": _LLAMA,
    "opt": _Family("model.decoder.layers", _OPT_FINAL, "self_attn", "out_proj", **_MLP_FAIRSEQ),
    "qwen2": _LLAMA,
    "qwen3": _Family("model.layers", ("model.norm",), "self_attn", "o_proj", query_norm="q_norm"),
    "xglm": _Family("model.layers", ("model.layer_norm",), "self_attn", "out_proj", **_MLP_FAIRSEQ),
}


def architecture(model: PreTrainedModel) -> Architecture:
    """Find the parts of a model; raises CheckpointError for a family that has no entry here."""
    family = _FAMILIES.get(model.config.model_type)
    if family is None:
        raise CheckpointError(
            f"models of the family {model.config.model_type!r} cannot be fine-tuned or recorded here; "
            f"use one of {', '.join(_FAMILIES)}, or add an entry to explainer.models.architectures."
        )
    final = (attrgetter(path)(model) for path in family.final)
    blocks = zip(attrgetter(family.blocks)(model), _windows(model.config), strict=True)
    layers = tuple(_layer(family, block, model.config, window) for block, window in blocks)
    return Architecture(model, layers, tuple(module for module in final if module is not None))


def _windows(config: PreTrainedConfig) -> list[int | None]:
    """For each layer, how many tokens up to its own a token attends to; None where that is all of them."""
    kinds = getattr(config, "attention_layers", None) or getattr(config, "layer_types", None)
    widths = {
        "local": getattr(config, "window_size", None),
        "sliding_attention": getattr(config, "sliding_window", None),
    }
    return [widths.get(kind) for kind in kinds or [None] * config.num_hidden_layers]


def _layer(family: _Family, block: nn.Module, config: PreTrainedConfig, window: int | None) -> Layer:
    attention = attrgetter(family.attention)(block)
    n_heads = config.num_attention_heads
    n_key_heads = getattr(config, "num_key_value_heads", None) or n_heads
    names = ((family.query, n_heads), (family.key, n_key_heads), (family.value, n_key_heads))
    q, k, v = (_projection(family, getattr(attention, name), i, n) for i, (name, n) in enumerate(names))
    return Layer(
        block=block,
        query=q,
        key=k,
        value=v,
        query_module=getattr(attention, family.query_norm) if family.query_norm else q.module,
        output=getattr(attention, family.output),
        scaling=getattr(attention, "scaling", 1.0),  # GPT-Neo does not scale its scores
        window=window,
        mlp=_mlp(family, block, config),
    )


def _mlp(family: _Family, block: nn.Module, config: PreTrainedConfig) -> MLP:
    inputs = tuple(attrgetter(path)(block) for path in family.mlp_inputs)
    stream = getattr(block, family.mlp_norm)
    if getattr(config, "use_parallel_residual", False):  # GPT-NeoX
        stream = None
    elif not getattr(config, "do_layer_norm_before", True):  # OPT-350m: that norm comes after the MLP
        stream = inputs[0]
    return MLP(inputs, attrgetter(family.mlp_output)(block), stream)


def _projection(family: _Family, module: nn.Module, index: int, heads: int) -> Projection:
    if family.fused is None:
        return Projection(module, (1, heads, -1), 0, 0)
    return Projection(module, (3, heads, -1) if family.fused == 0 else (heads, 3, -1), family.fused, index)
