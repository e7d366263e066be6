"""Edits of attention: what a model computes when some heads spread their attention over the lines of a context anew.

At a token with attention A to N tokens, line j of a context has a_j = sum A[s] over its tokens s. An edit puts M a in
place of a, with columns of M (k, k) that sum to one, so that the attention to all lines together stays what it is; a
line's attention is spread evenly over its tokens. Other tokens, and other heads, keep theirs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from explainer.models import hooks
from explainer.models.checkpoint import Checkpoint

_NAME = "edited"


@dataclass(frozen=True, eq=False)
class AttentionEdit:
    """Of the pass of n queries: which heads spread their attention anew, over which lines, and how.

    `lines` say which of the first N tokens that are attended to belong to which line; a token is of one line at most.
    """

    heads: Bool[Tensor, "n layers heads"]
    lines: Float[Tensor, "k N"]
    mix: Float[Tensor, "n k k"]

    def __call__(self, layer: int, A: Float[Tensor, "n heads T S"]) -> Float[Tensor, "n heads T S"]:
        """The attention of a layer after the edit."""
        chosen = self.heads[:, layer, :, None, None]
        if not chosen.any():
            return A
        old, rest = A.tensor_split([self.lines.shape[1]], -1)
        moved = torch.einsum("nij,nhtj->nhti", self.mix, old @ self.lines.T)
        new = old * (1 - self.lines.sum(0)) + moved @ (self.lines / self.lines.sum(1, keepdim=True))
        return torch.cat([torch.where(chosen, new, old), rest], -1)


@contextmanager
def changed_attention(checkpoint: Checkpoint, change: Callable[[int, Tensor], Tensor]) -> Iterator[None]:
    """Inside a `with` block every layer attends with change(layer, A) in place of A = softmax(q K^T / sqrt(d)).

    For models that take their attention function from transformers' registry, and add nothing to scores but a mask.
    """

    def attend(
        module: nn.Module, q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None, scaling: float, **_: Any
    ) -> tuple[Tensor, Tensor]:
        K, V = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (K, V))
        scores = q @ K.mT * scaling
        A = (scores if mask is None else scores + mask).softmax(-1)
        A = change(module.layer_idx, A)
        return (A @ V).transpose(1, 2).contiguous(), A

    model = checkpoint.model
    own = model.config._attn_implementation
    with hooks.restoring(lambda: model.set_attn_implementation(own)):
        AttentionInterface.register(_NAME, attend)
        AttentionMaskInterface.register(_NAME, eager_mask)
        model.set_attn_implementation(_NAME)
        yield
