"""Interventions: forward passes in which the last token of each query, or the weights of the MLPs, are changed.

Every query is passed twice: after a context, and without it. Without it, the first token stays, and the query keeps
the positions that it has after the context, so that the two passes differ in what attention reads and in nothing else.
At the last token both start from the same embedding, so what a context does there is what it adds to the attention
outputs; a pass in which those of all layers are held at given values is determined by them.

An `Edit` changes what a module returns. Queries of the same length are passed together, without padding, and an edit
is told which queries they are.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers.cache_utils import DynamicCache

from explainer.errors import CheckpointError, TaskError
from explainer.models import architectures, scoring
from explainer.models.architectures import MLP, Layer
from explainer.models.checkpoints import Checkpoint
from explainer.models.scoring import Prefix
from explainer.theory import directions
from explainer.theory.patches import LowRank, Patch, rank_one

Change = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(numbers of the queries (B,), what the module reads (B, T, d), what it returns) -> what it returns instead."""


class Edit(NamedTuple):
    """A change of what a module returns."""

    module: nn.Module
    change: Change


class Site(NamedTuple):
    """What a module reads (side 0) or returns (side 1)."""

    module: nn.Module
    side: int


@dataclass(frozen=True, eq=False)
class States:
    """What a pass computes at the last token of n queries.

    `attention` are the outputs of attention before the residual is added, `stream` the residual stream after every
    block, `logits` those of the next token.
    """

    attention: Float[Tensor, "n layers d"]
    stream: Float[Tensor, "n layers d"]
    logits: Float[Tensor, "n vocab"]


@dataclass(frozen=True, eq=False)
class _Group:
    """Queries of the same length: their numbers, token ids (B, T), positions (T,), and the cache (B, heads, N, d)."""

    rows: Tensor
    ids: Tensor
    places: Tensor
    keys: tuple[Tensor, ...] = ()
    values: tuple[Tensor, ...] = ()


@dataclass(frozen=True, eq=False)
class Pass:
    """A forward pass of n queries, to be run with edits; the edits reach the tokens that are passed, not the cache."""

    checkpoint: Checkpoint
    groups: tuple[_Group, ...]

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The blocks of the checkpoint."""
        return architectures.architecture(self.checkpoint.model).layers

    def __len__(self) -> int:
        """Number of queries n."""
        return sum(len(group.rows) for group in self.groups)

    def run(self, edits: Sequence[Edit] = ()) -> States:
        """Run the pass with the weights that the checkpoint has now."""
        layers = self.layers
        sites = [Site(layer.output, 1) for layer in layers] + [Site(layer.block, 1) for layer in layers]
        logits, *recorded = self.record(sites, edits)
        return States(torch.stack(recorded[: len(layers)], 1), torch.stack(recorded[len(layers) :], 1), logits)

    def record(self, sites: Sequence[Site], edits: Sequence[Edit] = ()) -> list[Tensor]:
        """Logits of the next token, (n, vocab), then what is at each site at the last token, (n, d)."""
        order = torch.cat([group.rows for group in self.groups]).argsort()
        by_group = [_recorded(self.checkpoint, group, sites, edits) for group in self.groups]
        return [torch.cat(parts)[order] for parts in zip(*by_group, strict=True)]

    def at_last(self) -> "Pass":
        """The pass of the last tokens alone, after all others were passed once: for many edits at the last token.

        The keys and values are those of the weights that the checkpoint has now.
        """
        return replace(self, groups=tuple(_opened(self.checkpoint, group) for group in self.groups))


def after_context(checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str]) -> Pass:
    """The queries after a prefix: the first token, and demonstrations after it.

    Raises TaskError for no prompt or an empty one, CheckpointError for too many tokens.
    """
    n = len(prefix)

    def group(rows: Tensor, ids: Tensor) -> _Group:
        keys, values = ([x.expand(len(ids), -1, -1, -1) for x in layers] for layers in (prefix.keys, prefix.values))
        return _Group(rows, ids, torch.arange(n, n + ids.shape[1]), tuple(keys), tuple(values))

    return Pass(checkpoint, tuple(group(*same) for same in _same_length(checkpoint, prefix, prompts)))


def without_context(checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str]) -> Pass:
    """The queries after the first token of the prefix alone, at the positions that they have after all of it.

    The first token is passed with every query, so that changes of weights reach it. Raises as `after_context`.
    """
    n = len(prefix)

    def group(rows: Tensor, ids: Tensor) -> _Group:
        first = torch.full_like(ids[:, :1], prefix.ids[0])
        places = torch.cat([torch.zeros(1, dtype=torch.long), torch.arange(n, n + ids.shape[1])])
        return _Group(rows, torch.cat([first, ids], dim=1), places)

    return Pass(checkpoint, tuple(group(*same) for same in _same_length(checkpoint, prefix, prompts)))


def _same_length(checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str]) -> Iterator[tuple[Tensor, Tensor]]:
    """Numbers and token ids of the prompts of each length."""
    ids = scoring.prompt_token_ids(checkpoint, prefix, prompts)
    if not ids or not all(ids):
        raise TaskError("a prompt is empty, or there is none: give at least one, of at least one token.")
    if (length := len(prefix) + max(map(len, ids))) > checkpoint.context_length:
        raise CheckpointError(
            f"{checkpoint.name} has {checkpoint.context_length} positions, the context and the longest query need "
            f"{length} tokens; give fewer demonstrations."
        )
    for length in sorted(set(map(len, ids))):
        rows = [i for i, prompt in enumerate(ids) if len(prompt) == length]
        yield torch.tensor(rows), torch.tensor([ids[i] for i in rows], device=checkpoint.device)


# Edits at the last token.


def attention_held(layers: Sequence[Layer], values: Float[Tensor, "n layers d"]) -> list[Edit]:
    """Attention at the last token returns these values in every layer, whatever it reads."""
    return [_at_last(layer.output, lambda rows, _, v=v: v[rows]) for layer, v in _by_layer(layers, values)]


def attention_without(
    layers: Sequence[Layer], zsl: Float[Tensor, "n layers d"], direction: Float[Tensor, "n layers d"]
) -> list[Edit]:
    """The change of attention from `zsl` at the last token loses its component along the direction, in every layer.

    The component is that of the running pass, so that no layer can put back what one below it lost.
    """

    def change(z: Tensor, u: Tensor, rows: Tensor, output: Tensor) -> Tensor:
        return output - directions.component(output - z[rows], u[rows])

    return [_at_last(layer.output, partial(change, z, u)) for layer, z, u in _by_layer(layers, zsl, direction)]


def stream_plus(layer: Layer, vectors: Float[Tensor, "n d"]) -> list[Edit]:
    """The residual stream after one block has a vector added at the last token."""
    return [_at_last(layer.block, lambda rows, output: output + vectors[rows])]


def _by_layer(layers: Sequence[Layer], *tensors: Tensor) -> Iterator[tuple]:
    return zip(layers, *(tensor.unbind(1) for tensor in tensors), strict=True)


def _at_last(module: nn.Module, change: Callable[[Tensor, Tensor], Tensor]) -> Edit:
    def at_last(rows: Tensor, _: Tensor, output: Tensor) -> Tensor:
        return torch.cat([output[:, :-1], change(rows, output[:, -1])[:, None]], dim=1)

    return Edit(module, at_last)


# The context as a change of weights.


def context_patches(after: Pass, without: Pass) -> list[Patch]:
    """For each block, the changes of its MLP's matrices that stand for the context; row i are those of query i.

    With its own changes in all blocks, a query without its context has the logits that it has with it. The changes
    are of weights: every token of the query reads them, the first one too. They are found from the lowest block to the
    highest, in one pass in which those of the blocks below are made: see `patches.context_as_patch`.
    """
    sites = [_sites(layer) for layer in without.layers]
    _, *recorded = after.record([site for of_layer in sites for site in of_layer])
    context = iter(recorded)
    makers = [
        _Maker(layer.mlp, of_layer, [next(context) for _ in of_layer])
        for layer, of_layer in zip(without.layers, sites, strict=True)
    ]
    without.record((), [edit for maker in makers for edit in maker.edits()])
    return [maker.patch() for maker in makers]


def patched(layers: Sequence[Layer], patches: Sequence[Patch], weights: Float[Tensor, "n m"]) -> list[Edit]:
    """In the pass of query i every MLP has the matrices W + sum_j weights_ij dW_j, with the m patches of its block.

    One row of weights [1, 0, 0, ...] is the first patch, one of [1/m, ...] their mean, of rank m.
    """

    def change(update: LowRank, rows: Tensor, x: Tensor, output: Tensor) -> Tensor:
        return output + update.times(x, weights[rows, None])

    edits = []
    for layer, patch in zip(layers, patches, strict=True):
        updates = zip((*layer.mlp.inputs, layer.mlp.output), (*patch.inputs, patch.output), strict=True)
        edits += [Edit(module, partial(change, update)) for module, update in updates]
    return edits


def _sites(layer: Layer) -> list[Site]:
    """Where r and the z_i of the MLP are; in a parallel block the attention output, which differs as r does."""
    stream = Site(layer.output, 1) if layer.mlp.stream is None else Site(layer.mlp.stream, 0)
    return [stream, *(Site(module, 1) for module in layer.mlp.inputs)]


class _Maker:
    """Makes the changes of one MLP in the pass without context, and lets every token of that pass read them."""

    def __init__(self, mlp: MLP, sites: Sequence[Site], context: Sequence[Tensor]):
        self._mlp, self._stream, (self._r, *self._z) = mlp, sites[0], context
        self._made: list[list[tuple[Tensor, LowRank]]] = [[] for _ in (*mlp.inputs, mlp.output)]

    def edits(self) -> list[Edit]:
        """Those of the input matrices bring about their outputs with context, that of the output matrix adds r."""
        inputs = zip(self._mlp.inputs, self._z, self._made, strict=False)  # the last of those made is of the output
        return [
            Edit(self._stream.module, self._keep),
            *(Edit(module, partial(self._input, z, made)) for module, z, made in inputs),
            Edit(self._mlp.output, self._output),
        ]

    def patch(self) -> Patch:
        """The changes in the order of the queries."""
        *inputs, output = map(_ordered, self._made)
        return Patch(tuple(inputs), output)

    def _keep(self, _: Tensor, *read_and_returned: Tensor) -> Tensor:
        self._r_without = read_and_returned[self._stream.side][:, -1]
        return read_and_returned[1]

    def _input(self, z: Tensor, made: list, rows: Tensor, x: Tensor, output: Tensor) -> Tensor:
        return _changed(made, rows, x, output, z[rows] - output[:, -1])

    def _output(self, rows: Tensor, x: Tensor, output: Tensor) -> Tensor:
        return _changed(self._made[-1], rows, x, output, self._r[rows] - self._r_without)


def _changed(made: list, rows: Tensor, x: Tensor, output: Tensor, change: Tensor) -> Tensor:
    """What the changed matrix returns to every token; the last token's output changes as given."""
    update = rank_one(x[:, -1], change)
    made.append((rows, update))
    return output + (x @ update.right[..., None]) * update.left[:, None]


def _ordered(made: Sequence[tuple[Tensor, LowRank]]) -> LowRank:
    rows, updates = zip(*made, strict=True)
    order = torch.cat(rows).argsort()
    return LowRank(*(torch.cat(side)[order] for side in zip(*updates, strict=True)))


# Running a pass.


@torch.no_grad()
def _recorded(checkpoint: Checkpoint, group: _Group, sites: Sequence[Site], edits: Sequence[Edit]) -> list[Tensor]:
    kept: dict[int, Tensor] = {}
    probes = [Edit(site.module, partial(_probe, kept, i, site.side)) for i, site in enumerate(sites)]
    with _attached([*edits, *probes], group.rows):
        hidden = _hidden(checkpoint, group, _cache(group))
    logits = checkpoint.model.get_output_embeddings()(hidden[:, -1])
    return [logits, *(kept[i] for i in range(len(sites)))]


def _probe(kept: dict, number: int, side: int, _: Tensor, *read_and_returned: Tensor) -> Tensor:
    kept[number] = read_and_returned[side][:, -1]
    return read_and_returned[1]


@torch.no_grad()
def _opened(checkpoint: Checkpoint, group: _Group) -> _Group:
    last = replace(group, ids=group.ids[:, -1:], places=group.places[-1:])
    if group.ids.shape[1] == 1:
        return last
    cache = _cache(group)
    _hidden(checkpoint, replace(group, ids=group.ids[:, :-1], places=group.places[:-1]), cache)
    keys, values = zip(*((layer.keys, layer.values) for layer in cache.layers), strict=True)
    return replace(last, keys=keys, values=values)


def _cache(group: _Group) -> DynamicCache:
    cache = DynamicCache()
    for layer, keys_values in enumerate(zip(group.keys, group.values, strict=True)):
        cache.update(*keys_values, layer)
    return cache


def _hidden(checkpoint: Checkpoint, group: _Group, cache: DynamicCache) -> Tensor:
    """With a mask of ones: without one, a gap between positions would be taken for the start of another text."""
    mask = torch.ones(len(group.ids), cache.get_seq_length() + group.ids.shape[1], dtype=torch.long)
    return checkpoint.hidden(
        input_ids=group.ids,
        position_ids=group.places.to(group.ids.device).expand(len(group.ids), -1),
        attention_mask=mask.to(group.ids.device),
        past_key_values=cache,
        use_cache=True,
    )


@contextmanager
def _attached(edits: Sequence[Edit], rows: Tensor) -> Iterator[None]:
    """Let the edits act inside a `with` block, those of one module in their order."""
    with ExitStack() as hooks:
        for edit in edits:
            hooks.callback(edit.module.register_forward_hook(partial(_edited, edit.change, rows)).remove)
        yield


def _edited(change: Change, rows: Tensor, _module: nn.Module, args: tuple, output: Any) -> Any:
    hidden, *rest = output if isinstance(output, tuple) else (output,)
    by_query = (x.view(len(rows), -1, x.shape[-1]) for x in (args[0], hidden))  # OPT's MLP reads all tokens in one row
    changed = change(rows, *by_query).view(hidden.shape)
    return (changed, *rest) if isinstance(output, tuple) else changed
