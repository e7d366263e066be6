"""Recording: what attention computes at the last token of each query, in the same pass that scores the candidates.

Hooks read the recorded tokens at the query projection and on both sides of the output projection of every layer; the
keys and values stand in the cache after the pass. One product of queries and keys gives the scores, and softmax(scores)
V must be what entered the output projection, for every query, layer and head.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from explainer.errors import CheckpointError, TaskError
from explainer.models import architectures, hooks, scoring
from explainer.models.architectures import Layer
from explainer.models.loading import Checkpoint
from explainer.models.scoring import Prefix


@dataclass(frozen=True, eq=False)
class QueryRecord:
    """What attention computes at the last token of one query of len tokens, after a prefix with P visible tokens.

    - `outputs`: the attention block's output after its output projection, before the residual is added;
    - `own_scores`, `context_scores`: scores q . k before the softmax, scaled and rotated as the model does it, to the
      query's own tokens and to those of the prefix; -inf for tokens outside the window of a layer with local attention;
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

    @property
    def chosen(self) -> int:
        """The number of the most probable candidate; TaskError without candidates."""
        if self.log_probs is None:
            raise TaskError("no candidate is the most probable, because none was given.")
        return int(self.log_probs.argmax())


@dataclass(frozen=True, eq=False)
class LinearMaps:
    """What every head does to the query q at the last token, if attention is linear: F(q) = (W_ZSL + dW_ICL) q.

        W_ZSL = sum_i v_i k_i^T over the query's own tokens (`own`), dW_ICL = the same over the prefix (`context`).

    The first token of the prefix counts to `own`, and tokens outside the window of a layer with local attention to
    neither. Where positions rotate queries and keys, the maps are those of the query before its rotation, k_i = R_p^T
    R_i k'_i with p the position of the query and k'_i a key before its rotation. Tensors are on the CPU, in float32 or
    wider.
    Source: Dai et al. (2023), eq. 11 and 12.
    """

    own: Float[Tensor, "layers key_heads d_v d"]
    context: Float[Tensor, "layers key_heads d_v d"]


def iter_records(
    checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str], candidates: Sequence[str] = (), *, suffix: str = ""
) -> Iterator[QueryRecord]:
    """Score the candidates and record attention at the last token of every prompt, with a suffix if one is given.

    Where the tokens of all candidates begin alike, attention is recorded at the last one that they have in common
    (`scoring.answer_prefixes`). The released code of Dai et al. (2023) records at the first label, appended to every
    query: `suffix=" Negative"`. The candidates are scored at the end of the prompt in both cases. The model runs while
    the next record is asked for, with the weights it has then. Between two records it carries no hooks and may be used.

    Raises TaskError (an empty prompt, a token across a seam, two equal candidates) and CheckpointError (too many
    tokens; a family without an entry in `models.architectures`; attention that is no softmax of these scores).
    """
    prompt_ids = scoring.prompt_token_ids(checkpoint, prefix, prompts)
    rows = scoring.candidate_rows(checkpoint, prompts, candidates, suffix)
    keys = list(rows)
    recorder = _Recorder(checkpoint, prefix)
    passes = scoring.row_logits(checkpoint, prefix, [(prompt_ids[i], list(stem)) for i, *stem in keys])
    for _, group in groupby(_attached(recorder, passes), key=lambda row: keys[row[0]][0]):
        log_probs = np.empty(len(candidates), dtype=np.float32)
        own = None
        for row, logits, recorded in group:
            own = own or recorded  # the first row of a prompt is where attention is recorded
            for c, ids in rows[keys[row]]:
                log_probs[c] = logits.log_softmax(-1)[range(len(ids)), ids].sum().item()
        yield QueryRecord(*own, log_probs if len(candidates) else None)


def linear_maps(
    checkpoint: Checkpoint, prefix: Prefix, prompts: Sequence[str], candidates: Sequence[str] = (), *, suffix: str = ""
) -> Iterator[LinearMaps]:
    """W_ZSL and dW_ICL of every head, one prompt after the other, where `stream` records; raises as it does.

    `own` after FT minus `own` without is the dW_FT of the same query, with what FT changes in the layers below.
    """
    prompt_ids = scoring.prompt_token_ids(checkpoint, prefix, prompts)
    stems = scoring.answer_prefixes(checkpoint, prompts, candidates, suffix)
    passes = scoring.row_logits(checkpoint, prefix, list(zip(prompt_ids, stems, strict=True)))
    for _, _, maps in _attached(_MapRecorder(checkpoint, prefix), passes):
        yield LinearMaps(*maps)


def _attached(
    recorder: "_Recorder", passes: Iterator[tuple[int, Tensor]]
) -> Iterator[tuple[int, Tensor, tuple[Tensor, ...]]]:
    """Add to each row that `passes` yields what is recorded of it; the hooks are on only while the model runs."""
    while True:
        with recorder.attached():
            row = next(passes, None)
        if row is None:
            return
        yield *row, recorder.take()


class _Recorder:
    """Hooks that record every sequence of a packed forward pass; `take` gives one record after the other."""

    def __init__(self, checkpoint: Checkpoint, prefix: Prefix):
        self._records: deque[tuple] = deque()
        self._name = checkpoint.name
        self._model = checkpoint.model.base_model
        architectures.require(checkpoint.model, architectures.RECORDING)
        self._architecture = architectures.architecture(checkpoint.model)
        self._layers = self._architecture.layers
        self._start = len(prefix)
        self._dtype = torch.promote_types(checkpoint.dtype, torch.float32)

    def take(self) -> tuple[Tensor, ...]:
        """Outputs, own scores, context scores and queries of the next sequence."""
        # Cloned: free of the memory of the whole pass, and of inference mode, where autograd may not follow.
        return tuple(tensor.clone() for tensor in self._records.popleft())

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Let the hooks stand inside a `with` block; on exit, also by an exception, they are gone."""
        parts = [(layer.query_module, partial(self._keep_query, layer)) for layer in self._layers]
        parts += [(layer.output, self._keep_output) for layer in self._layers]
        with ExitStack() as stack:
            stack.enter_context(hooks.calls(self._model, self._begin, self._finish))
            if self._architecture.rotary is not None:
                stack.enter_context(hooks.calls(self._architecture.rotary, dict, self._keep_rotation))
            stack.enter_context(hooks.outputs(parts))
            yield

    def _begin(self, inputs: dict[str, Any]) -> None:
        """Find the sequences of the pass: each starts where the prefix ends."""
        places = inputs["position_ids"][0]
        starts = (places == self._start).nonzero()[:, 0].tolist()
        self._spans = list(zip(starts, [*starts[1:], len(places)], strict=True))
        self._last = torch.tensor([end - 1 for _, end in self._spans], device=places.device)
        self._queries, self._heads, self._outputs, self._rotation = [], [], [], None

    def _keep_rotation(self, _inputs: dict[str, Any], rotation: tuple[Tensor, Tensor]) -> None:
        cos_and_sin = self._architecture.cos_and_sin(rotation)
        self._rotation = tuple(part[:, self._last].to(self._dtype) for part in cos_and_sin)

    def _keep_query(self, layer: Layer, _x: Tensor, output: Tensor) -> None:
        self._queries.append(layer.queries(output[0, self._last].to(self._dtype)))

    def _keep_output(self, heads: Tensor, output: Tensor) -> None:
        self._heads.append(heads[0, self._last].to(self._dtype))
        self._outputs.append(output[0, self._last].to(self._dtype))

    def _finish(self, inputs: dict[str, Any], _output: Any) -> None:
        if not len(self._queries) == len(self._outputs) == len(self._layers):
            raise CheckpointError(
                f"{self._name}: the query projection was called in {len(self._queries)} and the output projection in "
                f"{len(self._outputs)} of {len(self._layers)} layers, so attention cannot be recorded; use the model's "
                "own modules from transformers."
            )
        cache = inputs[architectures.CACHE].layers
        keys, values = [layer.keys[0] for layer in cache], [layer.values[0] for layer in cache]
        n_keys = keys[0].shape[1]
        by_window = {window: self._unseen(n_keys, window) for window in {layer.window for layer in self._layers}}
        unseen = [by_window[layer.window] for layer in self._layers]
        scores = [
            self._scores(layer, q, K.to(self._dtype)).masked_fill_(mask, -torch.inf)
            for layer, q, K, mask in zip(self._layers, self._queries, keys, unseen, strict=True)
        ]
        self._check(scores, values)
        self._keep(_Pass(keys, values, unseen, scores, n_keys - self._spans[-1][1]))

    def _keep(self, passed: "_Pass") -> None:
        rows = self._outputs, passed.scores, self._queries
        outputs, scores, queries = (torch.stack(layers, 1).cpu() for layers in rows)
        context, own = scores.tensor_split([passed.n_context], dim=-1)
        for j, (start, end) in enumerate(self._spans):
            self._records.append((outputs[j], own[j, ..., start:end], context[j], queries[j]))

    def _scores(
        self, layer: Layer, queries: Float[Tensor, "m heads_d"], keys: Float[Tensor, "key_heads N d"]
    ) -> Float[Tensor, "m heads N"]:
        """Scores of the recorded tokens to all keys of the pass, one product for each group of heads with its keys."""
        heads = self._rotated(layer, queries.unflatten(-1, (-1, keys.shape[-1])))
        return torch.einsum("mkgd,knd->mkgn", heads.unflatten(1, (len(keys), -1)), keys).flatten(1, 2)

    def _rotated(self, layer: Layer, queries: Float[Tensor, "m heads d"]) -> Float[Tensor, "m heads d"]:
        rotation = self._rotation if layer.rotates else None
        return self._architecture.rotated(queries.transpose(0, 1)[None], rotation)[0].transpose(0, 1)

    def _unseen(self, n_keys: int, window: int | None) -> Tensor:
        """Mask, shape (m, 1, N), of the keys in other sequences or outside the window of the recorded token."""
        n_context = n_keys - self._spans[-1][1]
        unseen = torch.zeros(len(self._spans), 1, n_keys, dtype=torch.bool)
        for row, (start, end) in zip(unseen, self._spans, strict=True):
            row[:, n_context : n_context + start] = True
            row[:, n_context + end :] = True
            if window is not None:  # counted in places of the row, so scoring does not pack such models
                row[:, : max(n_context + end - window, 0)] = True
        return unseen.to(self._last.device)

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
                "cap, a sink, a mask or a kernel of its own), so its scores cannot be recorded; load the model with "
                "the attention implementation that transformers chooses."
            )


@dataclass(frozen=True, eq=False)
class _Pass:
    """Keys (key heads, N, d), values, masks (m, 1, N) and scores (m, heads, N) of every layer after one forward pass.

    The first `n_context` of the N keys are those of the prefix.
    """

    keys: Sequence[Tensor]
    values: Sequence[Tensor]
    unseen: Sequence[Tensor]
    scores: Sequence[Tensor]
    n_context: int


class _MapRecorder(_Recorder):
    """A recorder of linear maps: it keeps the keys and values of a pass until the last of its sequences is taken."""

    def take(self) -> tuple[Tensor, ...]:
        """W_ZSL and dW_ICL of the next sequence."""
        passed, j, back = self._records.popleft()
        of_context = torch.arange(passed.keys[0].shape[1], device=self._last.device) < passed.n_context
        of_context[0] = False
        maps = ([], [])
        for layer, K, V, mask in zip(self._layers, passed.keys, passed.values, passed.unseen, strict=True):
            for kept, part in zip(maps, (~of_context, of_context), strict=True):
                tokens = part & ~mask[j, 0]
                W = V[:, tokens].to(self._dtype).mT @ K[:, tokens].to(self._dtype)
                kept.append(self._architecture.rotated(W[None], back if layer.rotates else None)[0].cpu())
        return tuple(map(torch.stack, maps))

    def _keep(self, passed: _Pass) -> None:
        cos, sin = self._rotation or (None, None)
        for j in range(len(self._spans)):
            self._records.append((passed, j, None if cos is None else (cos[:, [j]], -sin[:, [j]])))
