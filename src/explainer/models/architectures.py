"""Model families: the only place that knows where a model keeps its queries, keys, values, MLP and readout.

The three projections of attention are separate linear layers (Llama and most others), or one layer with its output
features in the order [q | k | v] (Phi-3; stored transposed: GPT-2), or in the order (key head, [its q's | k | v], head
size) (GPT-NeoX). Every projection is shown in one form, weight (heads, head size, d) and bias (heads, head size), as a
view: to write into it is to write into the model.

A family is a row of `FAMILIES`. What cannot be done for one is refused for that one measure, by name.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPast
from transformers.pytorch_utils import Conv1D

from explainer.errors import CheckpointError

CACHE = "cache" if "cache" in {one.name for one in fields(BaseModelOutputWithPast)} else "past_key_values"
"""The name by which a forward pass takes keys and values and gives them back, in the installed transformers."""


@dataclass(frozen=True)
class Projection:
    """One of the maps x -> q, k, v of a layer: a linear module, or a part of one that computes all three.

    Of the output features of `module`, (blocks, width) when unflattened, the ones from `start` on belong to this
    projection in each block: those of all heads where there is one block, else those of `heads / blocks` heads.
    """

    module: nn.Module
    blocks: int
    start: int
    heads: int
    head_size: int

    def part(self, tensor: Tensor, dim: int) -> Tensor:
        """View of the part of a tensor whose axis `dim` are output features: (..., heads, head size, ...)."""
        dim %= tensor.ndim
        of_block = tensor.unflatten(dim, (self.blocks, -1))
        own = of_block.narrow(dim + 1, self.start, self.heads // self.blocks * self.head_size)
        return own.unflatten(dim + 1, (-1, self.head_size)).flatten(dim, dim + 1)

    def weight(self) -> Tensor:
        """View (heads, head size, d) of the module's weight."""
        weight = self.module.weight
        return self.part(weight.T if isinstance(self.module, Conv1D) else weight, 0)

    def bias(self) -> Tensor | None:
        """View (heads, head size) of the module's bias; None without a bias."""
        bias = self.module.bias
        return None if bias is None else self.part(bias, 0)


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
    heads_first: bool
    output: nn.Module
    scaling: float
    window: int | None
    mlp: MLP

    def queries(self, output: Tensor, tokens: Tensor | slice = slice(None)) -> Tensor:
        """Attention queries q * scaling of some tokens, (n, tokens, heads * head size), from what `query_module` gives.

        They are those before any rotation by the position, as the code released by Dai et al. records them.
        """
        if self.query_module is self.query.module:
            output = self.query.part(output, -1)
        output = (output.transpose(1, 2) if self.heads_first else output)[:, tokens]
        whole = output.shape[-1] == self.query.heads * self.query.head_size
        return (output if whole else output.flatten(-2)) * self.scaling


@dataclass(frozen=True)
class Architecture:
    """The parts of a model that the study touches, under the same names for every family."""

    model: PreTrainedModel
    layers: tuple[Layer, ...]
    final: tuple[nn.Module, ...]

    @property
    def n_heads(self) -> int:
        """Number of query heads of a layer."""
        return self.layers[0].query.heads

    def require_in_window(self, n: int) -> None:
        """CheckpointError where attention has a window that is too narrow for a token to see all of n tokens."""
        window = min((layer.window for layer in self.layers if layer.window), default=n)
        if n > window:
            raise CheckpointError(f"attention with a window of {window} tokens does not see all {n}.")

    def rotated(
        self, heads: Float[Tensor, "1 heads T d"], rotation: tuple[Tensor, Tensor] | None
    ) -> Float[Tensor, "1 heads T d"]:
        """Queries or keys, R_p x, turned by their positions p as the family does it; unchanged for None.

        `rotation` is (cos, sin), for T positions or for one that all share; (cos, -sin) gives R_p^T x.
        Source: Su et al. 2021 (RoFormer), section 3.4.2.
        """
        if rotation is None:
            return heads
        apply = sys.modules[type(self.model).__module__].apply_rotary_pos_emb  # each family's own, in no registry
        cos, sin = rotation
        turned, rest = heads[..., : cos.shape[-1]], heads[..., cos.shape[-1] :]
        return torch.cat([apply(turned, turned, cos, sin)[0], rest], -1)

    def readout(self, hidden: Tensor) -> Tensor:
        """Logits, (..., vocab), of the residual stream (..., d) after any block: final norm, then output embedding."""
        for module in self.final:
            hidden = module(hidden)
        return self.model.get_output_embeddings()(hidden)


PATCHES, HEAD_VECTORS = "patches", "vectors of heads"  # what is asked of a family: changes of weights, what heads add


@dataclass(frozen=True)
class _Family:
    """Where the models of a family keep their parts: `blocks` and `final` in the model, the others in a block.

    `refused` are the measures that cannot be taken, with the reason in words.
    """

    blocks: str = "model.layers"
    final: tuple[str, ...] = ("model.norm",)
    attention: str = "self_attn"
    output: str = "o_proj"
    query: str = "q_proj"
    key: str = "k_proj"
    value: str = "v_proj"
    fused: str | None = None  # order of the output features of a fused module: "[q | k | v]", or "by key head"
    query_norm: str | None = None
    heads_first: bool = False  # what that norm gives: (n, heads, T, head size), not (n, T, ...)
    mlp_norm: str | None = "post_attention_layernorm"  # None where attention and MLP are parallel
    mlp_inputs: tuple[str, ...] = ("mlp.gate_proj", "mlp.up_proj")
    mlp_output: str = "mlp.down_proj"
    refused: Mapping[str, str] = field(default_factory=dict)


def _fused(name: str, order: str) -> dict[str, str]:
    return dict.fromkeys(("query", "key", "value"), name) | {"fused": order}


_GPT2 = {"blocks": "transformer.h", "final": ("transformer.ln_f",)}
_MLP_GPT2 = {"mlp_norm": "ln_2", "mlp_inputs": ("mlp.c_fc",), "mlp_output": "mlp.c_proj"}
_MLP_NEOX = {"mlp_inputs": ("mlp.dense_h_to_4h",), "mlp_output": "mlp.dense_4h_to_h"}
_FAIRSEQ = {"output": "out_proj", "mlp_norm": "final_layer_norm", "mlp_inputs": ("fc1",), "mlp_output": "fc2"}
_OPT_FINAL = ("model.decoder.final_layer_norm", "model.decoder.project_out")
_BY_KEY_HEAD = {"output": "dense", **_fused("query_key_value", "by key head"), **_MLP_NEOX}
_AFTER = {
    PATCHES: "a norm stands between the output of the MLP and the residual stream",
    HEAD_VECTORS: "one stands after attention, too",
}

FAMILIES: Mapping[str, _Family] = {
    "gemma3_text": _Family(mlp_norm="pre_feedforward_layernorm", query_norm="q_norm", heads_first=True, refused=_AFTER),
    "gpt2": _Family(**_GPT2, attention="attn", output="c_proj", **_fused("c_attn", "[q | k | v]"), **_MLP_GPT2),
    "gpt_neox": _Family("gpt_neox.layers", ("gpt_neox.final_layer_norm",), "attention", **_BY_KEY_HEAD),
    "llama": _Family(),
    "mistral": _Family(),
    "olmo2": _Family(mlp_norm="mlp.gate_proj", query_norm="q_norm", refused=_AFTER),
    "opt": _Family("model.decoder.layers", _OPT_FINAL, **_FAIRSEQ),
    "phi": _Family(
        final=("model.final_layernorm",), output="dense", mlp_norm=None, mlp_inputs=("mlp.fc1",), mlp_output="mlp.fc2"
    ),
    "phi3": _Family(**_fused("qkv_proj", "[q | k | v]"), mlp_inputs=("mlp.gate_up_proj",)),
    "qwen2": _Family(),
    "qwen3": _Family(query_norm="q_norm"),
    "stablelm": _Family(),
    "xglm": _Family(final=("model.layer_norm",), **_FAIRSEQ),
}


def architecture(model: PreTrainedModel) -> Architecture:
    """Find the parts of a model; raises CheckpointError for a family that has no entry here."""
    family, config = FAMILIES.get(model.config.model_type), model.config
    if family is None:
        raise CheckpointError(
            f"models of the family {config.model_type!r} can be scored, but not fine-tuned or recorded here; those of "
            f"{', '.join(FAMILIES)} can."
        )
    final = (attrgetter(path)(model) for path in family.final)
    blocks = attrgetter(family.blocks)(model)
    layers = tuple(_layer(family, block, config, i) for i, block in enumerate(blocks))
    final = tuple(module for module in final if module is not None)
    return Architecture(model, layers, final)


def refusal(model: PreTrainedModel, measure: str) -> str | None:
    """Why a measure cannot be taken of a model's family; None where it can, or `architecture` refuses the family."""
    return FAMILIES.get(model.config.model_type, _Family()).refused.get(measure)


def require(model: PreTrainedModel, measure: str) -> None:
    """Raise CheckpointError, with the reason, where a measure cannot be taken of the family of a model."""
    if reason := refusal(model, measure):
        raise CheckpointError(f"{model.config.model_type}: no {measure}, because {reason}; use another family for it.")


def _layer(family: _Family, block: nn.Module, config: PreTrainedConfig, i: int) -> Layer:
    attention = attrgetter(family.attention)(block)
    n_key_heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    q, k, v = _projections(family, attention, config.num_attention_heads, n_key_heads)
    kinds = getattr(config, "layer_types", None)
    local = kinds is None or kinds[i] == "sliding_attention"
    inputs = tuple(attrgetter(path)(block) for path in family.mlp_inputs)
    if family.mlp_norm is None or getattr(config, "use_parallel_residual", False):
        stream = None
    elif not getattr(config, "do_layer_norm_before", True):  # OPT-350m: that norm comes after the MLP
        stream = inputs[0]
    else:
        stream = attrgetter(family.mlp_norm)(block)
    return Layer(
        block=block,
        query=q,
        key=k,
        value=v,
        query_module=getattr(attention, family.query_norm) if family.query_norm else q.module,
        heads_first=family.heads_first,
        output=getattr(attention, family.output),
        scaling=attention.scaling,
        window=getattr(config, "sliding_window", None) if local else None,
        mlp=MLP(inputs, attrgetter(family.mlp_output)(block), stream),
    )


def _projections(family: _Family, attention: nn.Module, n_heads: int, n_key_heads: int) -> list[Projection]:
    modules = [getattr(attention, name) for name in (family.query, family.key, family.value)]
    heads = (n_heads, n_key_heads, n_key_heads)
    features = [m.nf if isinstance(m, Conv1D) else m.out_features for m in modules]
    if family.fused is None:
        return [Projection(m, 1, 0, n, f // n) for m, n, f in zip(modules, heads, features, strict=True)]
    size, blocks = features[0] // sum(heads), n_key_heads if family.fused == "by key head" else 1
    starts = (0, n_heads // blocks, (n_heads + n_key_heads) // blocks)
    return [Projection(m, blocks, at * size, n, size) for m, at, n in zip(modules, starts, heads, strict=True)]
