"""Interventions: forward passes in which the last token of each query, or the weights of the MLPs, are changed.

Every query is passed twice: after a context, and without it. Without it, the first token stays, and the query keeps
the positions that it has after the context, so that the two passes differ in what attention reads and in nothing else.

An edit changes what a module returns. The queries are passed together, shorter ones with tokens behind their last;
`last` says where that is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers.cache_utils import DynamicCache

from explainer.errors import TaskError
from explainer.models import architectures, hooks, scoring
from explainer.models.architectures import CACHE, MLP, Layer
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Prefix
from explainer.theory.weight_patches import LowRank, Patch, rank_one

_Change = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(last, what the module reads (n, T, d), what it returns) -> what it returns instead."""

_Edit = tuple[nn.Module, _Change]
"""A module, and a change of what it returns."""

_Site = tuple[nn.Module, int]
"""A module, and 0 for what it reads, 1 for what it returns."""


@dataclass(frozen=True, eq=False)
class States:
    """What a pass computes at the last token of n queries; `stream` is the residual stream after every block."""

    attention: Float[Tensor, "n layers d"]
    stream: Float[Tensor, "n layers d"]
    logits: Float[Tensor, "n vocab"]


@dataclass(frozen=True, eq=False)
class Pass:
    """A forward pass of n queries, to be run with edits; the edits reach the tokens that are passed, not the cache.

    Token ids (n, T) at `positions`, with the last token of each query at `last`, (n,); and what they see of tokens
    before: `mask` (n, N), zero where a token of the cache belongs to no query, with `keys` and `values`
    (n, heads, N, d).
    """

    checkpoint: Checkpoint
    ids: Int[Tensor, "n T"]
    last: Int[Tensor, " n"]
    positions: Int[Tensor, "n T"]
    mask: Float[Tensor, "n N"]
    keys: tuple[Tensor, ...] = ()
    values: tuple[Tensor, ...] = ()

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The blocks of the checkpoint."""
        return architectures.architecture(self.checkpoint.model).layers

    def __len__(self) -> int:
        """Number of queries n."""
        return len(self.ids)

    def run(self, edits: Sequence[_Edit] = ()) -> States:
        """Run the pass with the weights that the checkpoint has now."""
        layers = self.layers
        sites = [(layer.output, 1) for layer in layers] + [(layer.block, 1) for layer in layers]
        logits, *recorded = self.record(sites, edits)
        return States(torch.stack(recorded[: len(layers)], 1), torch.stack(recorded[len(layers) :], 1), logits)

    def heads(self) -> Float[Tensor, "n layers heads d_v"]:
        """What every head gives to the output projection of its block."""
        _, *read = self.record([(layer.output, 0) for layer in self.layers])
        return torch.stack(read, 1).unflatten(-1, (architectures.architecture(self.checkpoint.model).n_heads, -1))

    def record(self, sites: Sequence[_Site], edits: Sequence[_Edit] = ()) -> list[Tensor]:
        """Logits of the next token, (n, vocab), then what is at each site at the last token, (n, d).

        Without gradients, unless keys and values ask for them.
        """
        kept: dict[int, Tensor] = {}

        def keep(number: int, side: int, last: Tensor, *read_and_returned: Tensor) -> Tensor:
            kept[number] = _of(read_and_returned[side], last)
            return read_and_returned[1]

        probes = [(module, partial(keep, i, side)) for i, (module, side) in enumerate(sites)]
        changes = [(module, partial(self._edited, change)) for module, change in (*edits, *probes)]
        with torch.set_grad_enabled(any(K.requires_grad for K in self.keys)), hooks.outputs(changes):
            hidden = self._hidden(self._cache())
            logits = self.checkpoint.model.get_output_embeddings()(_of(hidden, self.last))
        return [logits, *(kept[i] for i in range(len(sites)))]

    @torch.no_grad()
    def at_last(self) -> "Pass":
        """The pass of the last tokens alone, after all others were passed once with the weights that there are now.

        In the cache is what is before the longest query's; the mask hides what a shorter one has not.
        """
        cache, last = self._cache(), self.last[:, None]
        n = int(last.max())
        if n:
            replace(self, ids=self.ids[:, :n], positions=self.positions[:, :n])._hidden(cache)
        before = (torch.arange(n) < last).to(self.mask.dtype)
        return Pass(
            self.checkpoint,
            self.ids.gather(1, last.to(self.ids.device)),
            torch.zeros_like(self.last),
            self.positions.gather(1, last),
            torch.cat([self.mask, before], dim=1),
            tuple(layer.keys for layer in cache.layers),
            tuple(layer.values for layer in cache.layers),
        )

    def repeated(self, times: int) -> "Pass":
        """The queries several times, for edits that differ; query i comes the second time as number n + i."""

        def tiled(x: Tensor) -> Tensor:
            return x.repeat(times, *[1] * (x.ndim - 1))

        rest = map(tiled, (self.ids, self.last, self.positions, self.mask))
        return Pass(self.checkpoint, *rest, tuple(map(tiled, self.keys)), tuple(map(tiled, self.values)))

    def logits_with_outputs(self, *attention: Float[Tensor, "n layers d"]) -> Float[Tensor, "times*n vocab"]:
        """Logits when the attention outputs at the last token are held at these values, one after the other."""
        times = self.repeated(len(attention))
        held = zip(times.layers, torch.cat(attention).unbind(1), strict=True)
        return times.run([at_last(layer.output, lambda _, z=z: z) for layer, z in held]).logits

    def _cache(self) -> DynamicCache:
        """A cache of these keys and values; what is passed with it comes behind them."""
        return DynamicCache(list(zip(self.keys, self.values, strict=True)))

    def _hidden(self, cache: DynamicCache) -> Tensor:
        """With a mask: without one, a gap between positions would be taken for the start of another text."""
        device = self.ids.device
        return self.checkpoint.hidden(
            input_ids=self.ids,
            position_ids=self.positions.to(device),
            attention_mask=torch.cat([self.mask, torch.ones(self.ids.shape)], dim=1).to(device, torch.long),
            use_cache=True,
            **{CACHE: cache},
        )

    def _edited(self, change: _Change, *read_and_returned: Tensor) -> Tensor:
        # OPT's MLP reads the tokens of all sequences in one row.
        by_query = (x.view(len(self), -1, x.shape[-1]) for x in read_and_returned)
        return change(self.last, *by_query).view(read_and_returned[1].shape)


def after_context(
    checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str], candidates: Sequence[str] = ()
) -> Pass:
    """The queries after a prefix: the first token, and demonstrations after it.

    The last token of a query is that of its prompt, or of what the tokens of all candidates have in common, as in
    `scoring.answer_prefixes`. Raises TaskError for no prompt or an empty one, CheckpointError for too many tokens, or
    more than fit into a window of attention.
    """
    ids, last = _padded(checkpoint, prefix, prompts, candidates)
    keys, values = ([x.expand(len(ids), -1, -1, -1) for x in layers] for layers in (prefix.keys, prefix.values))
    positions = (len(prefix) + torch.arange(ids.shape[1])).expand_as(ids)
    return Pass(checkpoint, ids, last, positions, torch.ones(len(ids), len(prefix)), tuple(keys), tuple(values))


def without_context(
    checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str], candidates: Sequence[str] = ()
) -> Pass:
    """The queries after the first token of the prefix alone, at the positions that they have after all of it.

    The first token is passed with every query, so that changes of weights reach it. Raises as `after_context`.
    """
    ids, last = _padded(checkpoint, prefix, prompts, candidates)
    ids = torch.cat([torch.full_like(ids[:, :1], prefix.ids[0]), ids], dim=1)
    positions = torch.arange(len(prefix) - 1, len(prefix) - 1 + ids.shape[1])
    positions[0] = 0
    return Pass(checkpoint, ids, last + 1, positions.expand_as(ids), torch.ones(len(ids), 0))


def _padded(
    checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str], candidates: Sequence[str]
) -> tuple[Tensor, Tensor]:
    """Token ids of the queries, (n, T), with the first token behind the shorter ones, and where each one ends, (n,).

    A window is counted in places of the row, and would be cut at the wrong place in a row with tokens behind.
    """
    ids = scoring.prompt_token_ids(checkpoint, prefix, prompts)
    if not ids or not all(ids):
        raise TaskError("a prompt is empty, or there is none: give at least one, of at least one token.")
    if candidates:
        stems = scoring.answer_prefixes(checkpoint, prompts, candidates)
        ids = [[*one, *stem] for one, stem in zip(ids, stems, strict=True)]
    lengths = torch.tensor([*map(len, ids)])
    T = int(lengths.max())
    checkpoint.require_room(len(prefix) + T)
    architectures.architecture(checkpoint.model).require_in_window(len(prefix) + T)
    padded = [[*one, *[checkpoint.first_token_id] * (T - len(one))] for one in ids]
    return torch.tensor(padded, device=checkpoint.device), lengths - 1


def _of(x: Float[Tensor, "n T d"], last: Int[Tensor, " n"]) -> Float[Tensor, "n d"]:
    """What stands at the last tokens."""
    return x[torch.arange(len(x)), last]


def _put(x: Float[Tensor, "n T d"], last: Int[Tensor, " n"], values: Float[Tensor, "n d"]) -> Float[Tensor, "n T d"]:
    """The same with these values at the last tokens."""
    changed = x.clone()
    changed[torch.arange(len(x)), last] = values.to(x.dtype)
    return changed


def at_last(module: nn.Module, change: Callable[[Float[Tensor, "n d"]], Float[Tensor, "n d"]]) -> _Edit:
    """What the module returns at the last token of each query, (n, d), becomes the change of it."""
    return (module, lambda last, _, output: _put(output, last, change(_of(output, last))))


def with_head_outputs(
    layer: Layer, outputs: Float[Tensor, "n heads d_v"], which: Bool[Tensor, "n heads"]
) -> list[_Edit]:
    """Some heads of one block give these outputs to its output projection at the last token; which, by query."""

    def change(last: Tensor, x: Tensor, output: Tensor) -> Tensor:
        before = _of(x, last)
        chosen = which.to(x.device)[..., None]
        heads = torch.where(chosen, outputs.to(x), before.unflatten(-1, outputs.shape[1:]))
        # `forward` has no hooks, so that this edit is not made again.
        moved = layer.output.forward(heads.flatten(-2)) - layer.output.forward(before)
        return _put(output, last, _of(output, last) + moved)

    return [(layer.output, change)]


def context_weight_patches(after: Pass, without: Pass) -> list[Patch]:
    """For each block, the changes of its MLP's matrices that stand for the context; row i are those of query i.

    With its own changes in all blocks, a query without its context has the logits that it has with it. They are found
    from the lowest block to the highest, in one pass in which those of the blocks below are made: see
    `theory.weight_patches`.
    """
    architectures.require(without.checkpoint.model, architectures.PATCHES)
    mlps, sites = [layer.mlp for layer in without.layers], []
    for layer in without.layers:
        # In a parallel block the attention output differs as the stream does.
        stream = (layer.output, 1) if layer.mlp.stream is None else (layer.mlp.stream, 0)
        sites.append([stream, *((module, 1) for module in layer.mlp.inputs)])
    _, *recorded = after.record([site for of_layer in sites for site in of_layer])
    context, made, edits = iter(recorded), {}, []
    for mlp, (stream, *inputs) in zip(mlps, sites, strict=True):
        r, *z = [next(context) for _ in (stream, *inputs)]
        edits += _patching(mlp, stream, r, z, made)
    without.record((), edits)
    return [Patch(tuple(made[module] for module in mlp.inputs), made[mlp.output]) for mlp in mlps]


def with_weight_patches(
    layers: Sequence[Layer], patches: Sequence[Patch], weights: Float[Tensor, "n m"]
) -> list[_Edit]:
    """In the pass of query i every MLP has the matrices W + sum_j weights_ij dW_j, with the m patches of its block.

    One row of weights [1, 0, 0, ...] is the first patch, one of [1/m, ...] their mean, of rank m.
    """

    def change(update: LowRank, _last: Tensor, x: Tensor, output: Tensor) -> Tensor:
        return output + update.times(x, weights[:, None])

    edits = []
    for layer, patch in zip(layers, patches, strict=True):
        updates = zip((*layer.mlp.inputs, layer.mlp.output), (*patch.inputs, patch.output), strict=True)
        edits += [(module, partial(change, update)) for module, update in updates]
    return edits


def _patching(mlp: MLP, stream: _Site, r: Tensor, z: Sequence[Tensor], made: dict[nn.Module, LowRank]) -> list[_Edit]:
    """Make the changes of one MLP in the pass without context, and let every token of that pass read them.

    Those of the input matrices bring about their outputs z with context, that of the output matrix adds what the
    residual stream r has of it.
    """
    (where, side), without = stream, {}

    def keep(last: Tensor, *read_and_returned: Tensor) -> Tensor:
        without["r"] = _of(read_and_returned[side], last)
        return read_and_returned[1]

    def changed(module: nn.Module, last: Tensor, x: Tensor, output: Tensor, change: Tensor) -> Tensor:
        """What the changed matrix returns to every token; the last token's output changes as given."""
        made[module] = update = rank_one(_of(x, last), change)
        return output + (x @ update.right[..., None]) * update.left[:, None]

    def bring_about(module: nn.Module, with_context: Tensor, last: Tensor, x: Tensor, output: Tensor) -> Tensor:
        return changed(module, last, x, output, with_context - _of(output, last))

    def add(last: Tensor, x: Tensor, output: Tensor) -> Tensor:
        return changed(mlp.output, last, x, output, r - without["r"])

    changes = [(module, partial(bring_about, module, its)) for module, its in zip(mlp.inputs, z, strict=True)]
    return [(where, keep), *changes, (mlp.output, add)]
