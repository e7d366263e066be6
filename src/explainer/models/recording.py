"""Recording: what attention computes at the last token of each query, in the same pass that scores the candidates.

Hooks read the recorded tokens at the query projection and on both sides of the output projection of every layer; the
keys and values stand in the cache after the pass. One product of queries and keys gives the scores, and softmax(scores)
V must be what entered the output projection, for every query, layer and head.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from explainer.data import tasks
from explainer.errors import CheckpointError
from explainer.models import architectures, hooks, scoring
from explainer.models.architectures import Architecture, Layer
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Prefix


@dataclass(frozen=True, eq=False)
class _QueryRecord:
    """What attention computes at the last token of one query of len tokens, after a prefix with P visible tokens.

    - `outputs`: the attention block's output after its output projection, before the residual is added;
    - `own_scores`, `context_scores`: scores q . k before the softmax, scaled and rotated as the model does it, to the
      query's own tokens and to those of the prefix;
    - `queries`: scaled attention queries, before any rotation by the position, with the heads concatenated;
    - `log_probs`: log p(candidate | prefix, prompt), shape (c,), None without candidates.

    Tensors are on the CPU, in float32 or wider.
    """

    outputs: Float[Tensor, "layers hidden"]
    own_scores: Float[Tensor, "layers heads len"]
    context_scores: Float[Tensor, "layers heads P"]
    queries: Float[Tensor, "layers heads_d"]
    log_probs: np.ndarray | None

    @property
    def weights(self) -> Float[Tensor, "layers heads P+len"]:
        """Attention weights, the softmax of the scores: to the tokens of the prefix, and then to the query's own."""
        return torch.cat([self.context_scores, self.own_scores], -1).softmax(-1)


@dataclass(frozen=True, eq=False)
class LinearMaps:
    """What every head does to the query q at the last token, if attention is linear: F(q) = (W_ZSL + dW_ICL) q.

        W_ZSL = sum_i v_i k_i^T over the query's own tokens (`own`), dW_ICL = the same over the prefix (`context`).

    The first token of the prefix counts to `own`. Where positions rotate queries and keys, the maps are those of the
    query before its rotation, k_i = R_p^T R_i k'_i with p the position of the query and k'_i a key before its rotation.
    Tensors are on the CPU, in float32 or wider.
    Source: Dai et al. (2023), eq. 11 and 12.
    """

    own: Float[Tensor, "layers key_heads d_v d"]
    context: Float[Tensor, "layers key_heads d_v d"]


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


class PromptHeads(NamedTuple):
    """The heads at the last token of a prompt, layer after layer, with the rows of its n demonstration tokens first.

    `ids` are the token ids of the prompt in their own order: the first token, the demonstrations, the query's text.
    """

    heads: list[Head]
    ids: list[int]
    n: int

    @classmethod
    def read(cls, checkpoint: Checkpoint, data: tasks.TaskData, seed: int, k: int = 8) -> "PromptHeads":
        """Read every head at the end of a prompt of k demonstrations and one query, both drawn with the seed.

        Raises TaskError where the task has too few examples, CheckpointError as `read_heads`.
        """
        ids, ends = scoring.context_ids(checkpoint, data.task, tasks.demonstrations(data, k, seed))
        (query,) = tasks.queries(data, 1, seed)
        ids = ids + scoring.continuation_ids(checkpoint, ["\n"], [data.task.prompt(query)])[0]
        n = ends[-1] - 1  # without the first token of the sequence
        return cls([head.with_rows_first(1, n + 1) for layer in read_heads(checkpoint, ids) for head in layer], ids, n)


def iter_records(
    checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str], candidates: Sequence[str] = (), *, suffix: str = ""
) -> Iterator[_QueryRecord]:
    """Score the candidates and record attention at the last token of every prompt, with a suffix if one is given.

    Where the tokens of all candidates begin alike, attention is recorded at the last one that they have in common
    (`scoring.answer_prefixes`). The released code of Dai et al. (2023) records at the first label, appended to every
    query: `suffix=" Negative"`. The candidates are scored at the end of the prompt in both cases. The model runs while
    the next record is asked for, with the weights it has then. Between two records it carries no hooks and may be used.

    Raises TaskError (an empty prompt, a token across a seam, two equal candidates) and CheckpointError (too many
    tokens; a family without an entry in `models.architectures`; a local window that is too narrow; attention that is no
    softmax of these scores).
    """
    prompt_ids = scoring.prompt_token_ids(checkpoint, prefix, prompts)
    rows = scoring.candidate_rows(checkpoint, prompts, candidates, suffix)
    keys = list(rows)
    passes = _passes(checkpoint, prefix, [(prompt_ids[i], list(stem)) for i, *stem in keys])
    for _, group in groupby(passes, key=lambda row: keys[row[0]][0]):
        log_probs, own = np.empty(len(candidates), dtype=np.float32), None
        for row, logits, passed, j in group:
            own = own or passed.record(j)  # the first row of a prompt is where attention is recorded
            for c, ids in rows[keys[row]]:
                log_probs[c] = logits.log_softmax(-1)[range(len(ids)), ids].sum().item()
        yield _QueryRecord(*own, log_probs if len(candidates) else None)


def linear_maps(
    checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str], candidates: Sequence[str] = (), *, suffix: str = ""
) -> Iterator[LinearMaps]:
    """W_ZSL and dW_ICL of every head, one prompt after the other, where `iter_records` records; raises as it does.

    `own` after FT minus `own` without is the dW_FT of the same query, with what FT changes in the layers below.
    """
    prompt_ids = scoring.prompt_token_ids(checkpoint, prefix, prompts)
    stems = scoring.answer_prefixes(checkpoint, prompts, candidates, suffix)
    for _, _, passed, j in _passes(checkpoint, prefix, list(zip(prompt_ids, stems, strict=True))):
        yield passed.maps(j)


def read_heads(checkpoint: Checkpoint, ids: Sequence[int]) -> list[list[Head]]:
    """Read every head for the query at the last of the token ids, in one forward pass: `result[layer][head]`.

    Raises as `iter_records`.
    """
    ((_, _, passed, j),) = _passes(checkpoint, Prefix((), (), ()), [(list(ids), [])])
    return passed.heads(j)


@dataclass(frozen=True, eq=False)
class _Pass:
    """What attention computes at the recorded tokens of m sequences that one forward pass has packed in a row.

    Outputs (m, layers, hidden), unrotated queries (m, layers, heads * d) and scores (m, layers, heads, N) are on the
    CPU; `rotated` queries, keys (key heads, N, d) and values are those of every layer. The first `n_context` of the N
    keys are those of the prefix; `spans` are where the sequences stand behind it, and `unseen` (m, 1, N) is true for
    the keys in other sequences.
    """

    architecture: Architecture
    spans: list[tuple[int, int]]
    n_context: int
    outputs: Tensor
    queries: Tensor
    scores: Tensor
    rotated: list[Tensor]
    keys: list[Tensor]
    values: list[Tensor]
    unseen: Tensor
    rotations: list[tuple[Tensor, Tensor] | None]

    def record(self, j: int) -> tuple[Tensor, ...]:
        """Outputs, own scores, context scores and queries of a sequence."""
        context, own = self.scores[j].tensor_split([self.n_context], dim=-1)
        start, end = self.spans[j]
        # Cloned: free of the memory of the whole pass, and of inference mode, where autograd may not follow.
        return tuple(x.clone() for x in (self.outputs[j], own[..., start:end], context, self.queries[j]))

    def maps(self, j: int) -> LinearMaps:
        """W_ZSL and dW_ICL of a sequence."""
        back = [None if of is None else (of[0][:, [j]], -of[1][:, [j]]) for of in self.rotations]
        of_context = torch.arange(self.unseen.shape[-1], device=self.unseen.device) < self.n_context
        of_context[0] = False
        own, context, dtype = [], [], self.outputs.dtype
        for K, V, turned in zip(self.keys, self.values, back, strict=True):
            for kept, part in ((own, ~of_context), (context, of_context)):
                tokens = part & ~self.unseen[j, 0]
                W = V[:, tokens].to(dtype).mT @ K[:, tokens].to(dtype)
                kept.append(self.architecture.rotated(W[None], turned)[0].cpu())
        return LinearMaps(torch.stack(own), torch.stack(context))

    def heads(self, j: int) -> list[list[Head]]:
        """The heads of every layer, for a sequence that is alone in its row."""
        layers = []
        for queries, *others in zip(self.rotated, self.keys, self.values, strict=True):
            q, K, V = (x.clone().to("cpu", torch.float64) for x in (queries[j], *others))
            q, sharing = q * math.sqrt(q.shape[-1]), len(q) // len(K)
            layers.append([Head(q[i], K[i // sharing], V[i // sharing]) for i in range(len(q))])
        return layers


def _passes(
    checkpoint: Checkpoint, prefix: Prefix, rows: Sequence[tuple[list[int], list[int]]]
) -> Iterator[tuple[int, Tensor, _Pass, int]]:
    """Number and logits of each row, as of `scoring.row_logits`, with the pass in which it was recorded as number j.

    The hooks are on only while the model runs.
    """
    recorder, running = _Recorder(checkpoint, len(prefix)), scoring.row_logits(checkpoint, prefix, rows)
    while True:
        with recorder.attached():
            row = next(running, None)
        if row is None:
            return
        yield *row, *recorder.recorded.popleft()


class _Recorder:
    """Hooks that record every sequence of a packed forward pass; `recorded` are the pass and number of each."""

    def __init__(self, checkpoint: Checkpoint, start: int):
        self.recorded: deque[tuple[_Pass, int]] = deque()
        self._name = checkpoint.name
        self._model = checkpoint.model.base_model
        self._architecture = architectures.architecture(checkpoint.model)
        self._layers = self._architecture.layers
        self._start = start
        self._dtype = torch.promote_types(checkpoint.dtype, torch.float32)

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Let the hooks stand inside a `with` block; however it ends, they are gone."""

        def registered() -> Iterator[RemovableHandle]:
            yield self._model.register_forward_pre_hook(self._begin, with_kwargs=True)
            yield self._model.register_forward_hook(self._finish, with_kwargs=True)
            for layer in self._layers:
                yield layer.block.register_forward_pre_hook(self._keep_rotation, with_kwargs=True)

        parts = [(layer.query_module, partial(self._keep_query, layer)) for layer in self._layers]
        parts += [(layer.output, self._keep_output) for layer in self._layers]
        with hooks.attached(registered()), hooks.outputs(parts):
            yield

    def _begin(self, _module: nn.Module, _args: tuple, inputs: dict[str, Any]) -> None:
        """Find the sequences of the pass: each starts where the prefix ends."""
        places = inputs["position_ids"][0]
        self._architecture.require_in_window(int(places.max()) + 1)
        starts = (places == self._start).nonzero()[:, 0].tolist()
        self._spans = list(zip(starts, [*starts[1:], len(places)], strict=True))
        self._last = torch.tensor([end - 1 for _, end in self._spans], device=places.device)
        self._queries, self._heads, self._outputs, self._rotations = [], [], [], []

    def _keep_rotation(self, _block: nn.Module, _args: tuple, inputs: dict[str, Any]) -> None:
        """(cos, sin) of the last tokens, each (1, m, rotated size), by which this layer turns queries and keys."""
        rotation = inputs.get("position_embeddings")
        self._rotations.append(rotation and tuple(part[:, self._last].to(self._dtype) for part in rotation))

    def _keep_query(self, layer: Layer, _x: Tensor, output: Tensor) -> None:
        self._queries.append(layer.queries(output.to(self._dtype), self._last)[0])

    def _keep_output(self, heads: Tensor, output: Tensor) -> None:
        self._heads.append(heads[0, self._last].to(self._dtype))
        self._outputs.append(output[0, self._last].to(self._dtype))

    def _finish(self, _module: nn.Module, _args: tuple, inputs: dict[str, Any], _output: Any) -> None:
        cache = inputs[architectures.CACHE].layers
        keys, values = [layer.keys[0] for layer in cache], [layer.values[0] for layer in cache]
        n_keys, d = keys[0].shape[1:]
        n_context = n_keys - self._spans[-1][1]
        unseen = torch.zeros(len(self._spans), 1, n_keys, dtype=torch.bool)
        for row, (start, end) in zip(unseen, self._spans, strict=True):
            row[:, n_context : n_context + start] = True
            row[:, n_context + end :] = True
        unseen, rotated, scores = unseen.to(self._last.device), [], []
        for q, K, rotation in zip(self._queries, keys, self._rotations, strict=True):
            heads = q.unflatten(-1, (-1, d)).transpose(0, 1)[None]
            heads = self._architecture.rotated(heads, rotation)[0].transpose(0, 1)
            of_keys = heads.unflatten(1, (len(K), -1))  # one product for each group of heads with its keys
            S = torch.einsum("mkgd,knd->mkgn", of_keys, K.to(self._dtype)).flatten(1, 2)
            rotated.append(heads)
            scores.append(S.masked_fill_(unseen, -torch.inf))
        self._check(scores, values)
        on_cpu = (torch.stack(layers, 1).cpu() for layers in (self._outputs, self._queries, scores))
        passed = _Pass(
            self._architecture, self._spans, n_context, *on_cpu, rotated, keys, values, unseen, self._rotations
        )
        self.recorded.extend((passed, j) for j in range(len(self._spans)))

    def _check(self, scores: Sequence[Float[Tensor, "m heads N"]], values: Sequence[Tensor]) -> None:
        """Refuse scores whose softmax does not give the attention that the layers went on with."""
        tolerance = 1e-3 if self._dtype == self._model.dtype else 0.1
        wrong = []
        for S, V, expected in zip(scores, values, self._heads, strict=True):
            weights = S.softmax(-1).to(V.dtype).unflatten(1, (len(V), -1))
            heads = torch.einsum("mkgn,knd->mkgd", weights, V).flatten(1)
            wrong.append((heads - expected).abs().max() > tolerance * V.abs().max())
        wrong = torch.stack(wrong).nonzero()[:, 0].tolist()
        if wrong:
            raise CheckpointError(
                f"{self._name}: attention in layers {wrong} is not a softmax of q . k over the tokens before (a soft "
                "cap, a sink, a mask or a kernel of its own), so its scores cannot be recorded."
            )
