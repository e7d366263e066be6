"""Interventions: forward passes in which the last token of each query, or the weights of the MLPs, are changed.

Every query is passed twice: after a context, and without it. Without it, the first token stays, and the query keeps
the positions that it has after the context, so that the two passes differ in what attention reads and in nothing else.

An edit changes what a module returns. The queries are passed together, shorter ones with tokens behind their last;
`_Place` says which queries they are and where each has its last token.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from transformers.cache_utils import DynamicCache

from explainer.errors import TaskError
from explainer.models import architectures, hooks, scoring
from explainer.models.architectures import CACHE, MLP, Layer
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Prefix
from explainer.theory import projections
from explainer.theory.weight_patches import LowRank, Patch, rank_one


class _Place(NamedTuple):
    """Of the sequences of a pass the numbers of their queries, (B,), and where the last token of each is, (B,)."""

    rows: Tensor
    last: Tensor

    def of(self, x: Float[Tensor, "B T d"]) -> Float[Tensor, "B d"]:
        """What stands at the last tokens."""
        return x[torch.arange(len(x)), self.last]

    def put(self, x: Float[Tensor, "B T d"], values: Float[Tensor, "B d"]) -> Float[Tensor, "B T d"]:
        """The same with these values at the last tokens."""
        changed = x.clone()
        changed[torch.arange(len(x)), self.last] = values.to(x.dtype)
        return changed


_Change = Callable[[_Place, Tensor, Tensor], Tensor]
"""(place, what the module reads (B, T, d), what it returns) -> what it returns instead."""


class _Edit(NamedTuple):
    """A change of what a module returns."""

    module: nn.Module
    change: _Change


class _Site(NamedTuple):
    """What a module reads (side 0) or returns (side 1)."""

    module: nn.Module
    side: int


@dataclass(frozen=True, eq=False)
class States:
    """What a pass computes at the last token of n queries; `stream` is the residual stream after every block."""

    attention: Float[Tensor, "n layers d"]
    stream: Float[Tensor, "n layers d"]
    logits: Float[Tensor, "n vocab"]


@dataclass(frozen=True, eq=False)
class _Group:
    """Sequences that are passed together: token ids (B, T) at `positions`, and what they see of tokens before.

    That is `mask` (B, N), zero where a token of the cache belongs to no query, with `keys` and `values`
    (B, heads, N, d).
    """

    place: _Place
    ids: Tensor
    positions: Tensor
    mask: Tensor
    keys: tuple[Tensor, ...] = ()
    values: tuple[Tensor, ...] = ()

    def cache(self) -> DynamicCache:
        """A cache of these keys and values; what is passed with it comes behind them."""
        return DynamicCache(list(zip(self.keys, self.values, strict=True)))

    def repeated(self, times: int, n: int) -> "_Group":
        """The sequences several times, with the numbers of the queries going on from n."""

        def tiled(x: Tensor) -> Tensor:
            return x.repeat(times, *[1] * (x.ndim - 1))

        first = n * torch.arange(times).repeat_interleave(len(self.ids))
        place = _Place(tiled(self.place.rows) + first, tiled(self.place.last))
        rest = map(tiled, (self.ids, self.positions, self.mask))
        return _Group(place, *rest, tuple(map(tiled, self.keys)), tuple(map(tiled, self.values)))


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
        return sum(len(group.ids) for group in self.groups)

    def run(self, edits: Sequence[_Edit] = ()) -> States:
        """Run the pass with the weights that the checkpoint has now."""
        layers = self.layers
        sites = [_Site(layer.output, 1) for layer in layers] + [_Site(layer.block, 1) for layer in layers]
        logits, *recorded = self.record(sites, edits)
        return States(torch.stack(recorded[: len(layers)], 1), torch.stack(recorded[len(layers) :], 1), logits)

    def heads(self) -> Float[Tensor, "n layers heads d_v"]:
        """What every head gives to the output projection of its block."""
        _, *read = self.record([_Site(layer.output, 0) for layer in self.layers])
        return torch.stack(read, 1).unflatten(-1, (architectures.architecture(self.checkpoint.model).n_heads, -1))

    def record(self, sites: Sequence[_Site], edits: Sequence[_Edit] = ()) -> list[Tensor]:
        """Logits of the next token, (n, vocab), then what is at each site at the last token, (n, d)."""
        order = torch.cat([group.place.rows for group in self.groups]).argsort()
        by_group = [_recorded(self.checkpoint, group, sites, edits) for group in self.groups]
        return [torch.cat(parts)[order] for parts in zip(*by_group, strict=True)]

    def at_last(self) -> "Pass":
        """The pass of the last tokens alone, after all others were passed once with the weights that there are now."""
        return replace(self, groups=tuple(_opened(self.checkpoint, group) for group in self.groups))

    def repeated(self, times: int) -> "Pass":
        """The queries several times, for edits that differ; query i comes the second time as number n + i."""
        return replace(self, groups=tuple(group.repeated(times, len(self)) for group in self.groups))


def after_context(
    checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str], candidates: Sequence[str] = ()
) -> Pass:
    """The queries after a prefix: the first token, and demonstrations after it.

    The last token of a query is that of its prompt, or of what the tokens of all candidates have in common, as in
    `scoring.answer_prefixes`. Raises TaskError for no prompt or an empty one, CheckpointError for too many tokens.
    """

    def group(place: _Place, ids: Tensor) -> _Group:
        keys, values = ([x.expand(len(ids), -1, -1, -1) for x in layers] for layers in (prefix.keys, prefix.values))
        positions = len(prefix) + torch.arange(ids.shape[1])
        return _Group(
            place, ids, positions.expand_as(ids), torch.ones(len(ids), len(prefix)), tuple(keys), tuple(values)
        )

    return Pass(checkpoint, tuple(group(*one) for one in _padded(checkpoint, prefix, prompts, candidates)))


def without_context(
    checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str], candidates: Sequence[str] = ()
) -> Pass:
    """The queries after the first token of the prefix alone, at the positions that they have after all of it.

    The first token is passed with every query, so that changes of weights reach it. Raises as `after_context`.
    """

    def group(place: _Place, ids: Tensor) -> _Group:
        ids = torch.cat([torch.full_like(ids[:, :1], prefix.ids[0]), ids], dim=1)
        positions = torch.arange(len(prefix) - 1, len(prefix) - 1 + ids.shape[1])
        positions[0] = 0
        return _Group(place._replace(last=place.last + 1), ids, positions.expand_as(ids), torch.ones(len(ids), 0))

    return Pass(checkpoint, tuple(group(*one) for one in _padded(checkpoint, prefix, prompts, candidates)))


def _padded(
    checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str], candidates: Sequence[str]
) -> Iterator[tuple[_Place, Tensor]]:
    """Token ids of the queries with the first token behind the shorter ones; by length where attention has windows.

    A window is counted in places of the row, and would be cut at the wrong place when the last token is passed alone.
    """
    ids = scoring.prompt_token_ids(checkpoint, prefix, prompts)
    if not ids or not all(ids):
        raise TaskError("a prompt is empty, or there is none: give at least one, of at least one token.")
    if candidates:
        ids = [
            [*one, *stem]
            for one, stem in zip(ids, scoring.answer_prefixes(checkpoint, prompts, candidates), strict=True)
        ]
    lengths = torch.tensor([*map(len, ids)])
    checkpoint.require_room(len(prefix) + int(lengths.max()))
    windows = any(layer.window for layer in architectures.architecture(checkpoint.model).layers)
    for rows in [(lengths == n).nonzero()[:, 0] for n in lengths.unique()] if windows else [torch.arange(len(ids))]:
        behind = [checkpoint.first_token_id] * int(lengths[rows].max())
        padded = [(*ids[i], *behind)[: len(behind)] for i in rows]
        yield _Place(rows, lengths[rows] - 1), torch.tensor(padded, device=checkpoint.device)


def with_attention_outputs(layers: Sequence[Layer], values: Float[Tensor, "n layers d"]) -> list[_Edit]:
    """Attention at the last token returns these values in every layer, whatever it reads."""
    return [_at_last(layer.output, lambda rows, _, v=v: v[rows]) for layer, v in _by_layer(layers, values)]


def without_component(
    layers: Sequence[Layer], zsl: Float[Tensor, "n layers d"], direction: Float[Tensor, "n layers d"]
) -> list[_Edit]:
    """The change of attention from `zsl` at the last token of the running pass loses its component along one other."""

    def change(z: Tensor, u: Tensor, rows: Tensor, output: Tensor) -> Tensor:
        return output - projections.component(output - z[rows], u[rows])

    return [_at_last(layer.output, partial(change, z, u)) for layer, z, u in _by_layer(layers, zsl, direction)]


def with_added_to_stream(layer: Layer, vectors: Float[Tensor, "n d"]) -> list[_Edit]:
    """The residual stream after one block has a vector added at the last token."""
    return [_at_last(layer.block, lambda rows, output: output + vectors[rows])]


def with_head_outputs(
    layer: Layer, outputs: Float[Tensor, "n heads d_v"], which: Bool[Tensor, "n heads"]
) -> list[_Edit]:
    """Some heads of one block give these outputs to its output projection at the last token; which, by query."""

    def change(place: _Place, x: Tensor, output: Tensor) -> Tensor:
        before = place.of(x)
        chosen = which[place.rows].to(x.device)[..., None]
        heads = torch.where(chosen, outputs[place.rows].to(x), before.unflatten(-1, outputs.shape[1:]))
        # `forward` has no hooks, so that this edit is not made again.
        moved = layer.output.forward(heads.flatten(-2)) - layer.output.forward(before)
        return place.put(output, place.of(output) + moved)

    return [_Edit(layer.output, change)]


def _by_layer(layers: Sequence[Layer], *tensors: Tensor) -> Iterator[tuple]:
    return zip(layers, *(tensor.unbind(1) for tensor in tensors), strict=True)


def _at_last(module: nn.Module, change: Callable[[Tensor, Tensor], Tensor]) -> _Edit:
    return _Edit(module, lambda place, _, output: place.put(output, change(place.rows, place.of(output))))


def context_weight_patches(after: Pass, without: Pass) -> list[Patch]:
    """For each block, the changes of its MLP's matrices that stand for the context; row i are those of query i.

    With its own changes in all blocks, a query without its context has the logits that it has with it. They are found
    from the lowest block to the highest, in one pass in which those of the blocks below are made: see
    `theory.weight_patches`.
    """
    architectures.require(without.checkpoint.model, architectures.PATCHES)
    # In a parallel block the attention output differs as the stream does.
    streams = [
        _Site(layer.output, 1) if layer.mlp.stream is None else _Site(layer.mlp.stream, 0) for layer in without.layers
    ]
    inputs = [[_Site(module, 1) for module in layer.mlp.inputs] for layer in without.layers]
    sites = [site for stream, its in zip(streams, inputs, strict=True) for site in (stream, *its)]
    _, *recorded = after.record(sites)
    context, made, edits = iter(recorded), [], []
    for layer, stream in zip(without.layers, streams, strict=True):
        r, *z = [next(context) for _ in (stream, *layer.mlp.inputs)]
        made.append([[] for _ in (*layer.mlp.inputs, layer.mlp.output)])
        edits += _patching(layer.mlp, stream, r, z, made[-1])
    without.record((), edits)
    return [Patch(tuple(map(_ordered, of_inputs)), _ordered(of_output)) for *of_inputs, of_output in made]


def with_weight_patches(
    layers: Sequence[Layer], patches: Sequence[Patch], weights: Float[Tensor, "n m"]
) -> list[_Edit]:
    """In the pass of query i every MLP has the matrices W + sum_j weights_ij dW_j, with the m patches of its block.

    One row of weights [1, 0, 0, ...] is the first patch, one of [1/m, ...] their mean, of rank m.
    """

    def change(update: LowRank, place: _Place, x: Tensor, output: Tensor) -> Tensor:
        return output + update.times(x, weights[place.rows, None])

    edits = []
    for layer, patch in zip(layers, patches, strict=True):
        updates = zip((*layer.mlp.inputs, layer.mlp.output), (*patch.inputs, patch.output), strict=True)
        edits += [_Edit(module, partial(change, update)) for module, update in updates]
    return edits


def _patching(mlp: MLP, stream: _Site, r: Tensor, z: Sequence[Tensor], made: Sequence[list]) -> list[_Edit]:
    """Make the changes of one MLP in the pass without context, and let every token of that pass read them.

    Those of the input matrices bring about their outputs z with context, that of the output matrix adds what the
    residual stream r has of it.
    """
    without = {}

    def keep(place: _Place, *read_and_returned: Tensor) -> Tensor:
        without["r"] = place.of(read_and_returned[stream.side])
        return read_and_returned[1]

    def bring_about(with_context: Tensor, made: list, place: _Place, x: Tensor, output: Tensor) -> Tensor:
        return _changed(made, place, x, output, with_context[place.rows] - place.of(output))

    def add(place: _Place, x: Tensor, output: Tensor) -> Tensor:
        return _changed(made[-1], place, x, output, r[place.rows] - without["r"])

    inputs = zip(mlp.inputs, z, made[:-1], strict=True)
    changes = [_Edit(module, partial(bring_about, its, own)) for module, its, own in inputs]
    return [_Edit(stream.module, keep), *changes, _Edit(mlp.output, add)]


def _changed(made: list, place: _Place, x: Tensor, output: Tensor, change: Tensor) -> Tensor:
    """What the changed matrix returns to every token; the last token's output changes as given."""
    update = rank_one(place.of(x), change)
    made.append((place.rows, update))
    return output + (x @ update.right[..., None]) * update.left[:, None]


def _ordered(made: Sequence[tuple[Tensor, LowRank]]) -> LowRank:
    rows, updates = zip(*made, strict=True)
    order = torch.cat(rows).argsort()
    return LowRank(*(torch.cat(side)[order] for side in zip(*updates, strict=True)))


@torch.no_grad()
def _recorded(checkpoint: Checkpoint, group: _Group, sites: Sequence[_Site], edits: Sequence[_Edit]) -> list[Tensor]:
    kept: dict[int, Tensor] = {}
    probes = [_Edit(site.module, partial(_probe, kept, i, site.side)) for i, site in enumerate(sites)]
    with hooks.outputs((edit.module, partial(_edited, edit.change, group.place)) for edit in (*edits, *probes)):
        hidden = _hidden(checkpoint, group, group.cache())
    logits = checkpoint.model.get_output_embeddings()(group.place.of(hidden))
    return [logits, *(kept[i] for i in range(len(sites)))]


def _probe(kept: dict, number: int, side: int, place: _Place, *read_and_returned: Tensor) -> Tensor:
    kept[number] = place.of(read_and_returned[side])
    return read_and_returned[1]


@torch.no_grad()
def _opened(checkpoint: Checkpoint, group: _Group) -> _Group:
    """The last tokens, and in the cache what is before the longest query's; the mask hides what a shorter one has not.

    So in a group of equal lengths a window, which is counted in places of the row, is cut where it should be.
    """
    cache, last = group.cache(), group.place.last[:, None]
    n = int(last.max())
    if n:
        _hidden(checkpoint, replace(group, ids=group.ids[:, :n], positions=group.positions[:, :n]), cache)
    before = (torch.arange(n) < last).to(group.mask.dtype)
    return _Group(
        group.place._replace(last=torch.zeros_like(group.place.last)),
        group.ids.gather(1, last.to(group.ids.device)),
        group.positions.gather(1, last),
        torch.cat([group.mask, before], dim=1),
        tuple(layer.keys for layer in cache.layers),
        tuple(layer.values for layer in cache.layers),
    )


def _hidden(checkpoint: Checkpoint, group: _Group, cache: DynamicCache) -> Tensor:
    """With a mask: without one, a gap between positions would be taken for the start of another text."""
    device = group.ids.device
    return checkpoint.hidden(
        input_ids=group.ids,
        position_ids=group.positions.to(device),
        attention_mask=torch.cat([group.mask, torch.ones(group.ids.shape)], dim=1).to(device, torch.long),
        use_cache=True,
        **{CACHE: cache},
    )


def _edited(change: _Change, place: _Place, *read_and_returned: Tensor) -> Tensor:
    # OPT's MLP reads the tokens of all sequences in one row.
    by_query = (x.view(len(place.rows), -1, x.shape[-1]) for x in read_and_returned)
    return change(place, *by_query).view(read_and_returned[1].shape)
