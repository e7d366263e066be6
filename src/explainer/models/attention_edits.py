"""Edits of attention: what a model computes when some heads spread their attention over the lines of a context anew.

At a token with attention A to N tokens, line j of a context has a_j = sum A[s] over its tokens s. An edit puts M a in
place of a, with columns of M (k, k) that sum to one, so that the attention to all lines together stays what it is;
within a line its tokens keep their shares. Other tokens, and other heads, keep theirs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.cache_utils import DynamicCache
from transformers.masking_utils import eager_mask

from explainer.models import hooks
from explainer.models.architectures import CACHE
from explainer.models.checkpoint import Checkpoint
from explainer.models.interventions import Pass


@dataclass(frozen=True, eq=False)
class AttentionEdit:
    """Of the tokens (n, T) of a pass: which heads spread their attention anew, over which lines, and how.

    `lines` say which of the first N tokens that are attended to belong to which line; a token is of one line at most.
    Where a size is 1 in place of n or T, all queries or all tokens share the edit.
    """

    heads: Bool[Tensor, "#n #T layers heads"]
    lines: Float[Tensor, "k N"]
    mix: Float[Tensor, "#n #T k k"]

    def __call__(self, layer: int, A: Float[Tensor, "n heads T S"]) -> Float[Tensor, "n heads T S"]:
        """The attention of a layer after the edit."""
        chosen = self.heads[:, :, layer].mT[..., None]
        if not chosen.any():
            return A
        lines, (old, rest) = self.lines.to(A), A.tensor_split([self.lines.shape[1]], -1)
        a = old @ lines.T
        moved = (a[..., None, :] @ self.mix[:, None].mT.to(A))[..., 0, :]
        its = a @ lines
        shares = torch.where(its > 0, old / its, lines.sum(0) / (lines.sum(1) @ lines).clamp(min=1))
        new = old * (1 - lines.sum(0)) + (moved @ lines) * shares
        return torch.cat([torch.where(chosen, new, old), rest], -1)


def moved(labels: Int[Tensor, " k"], to: Int[Tensor, " n"], dose: float) -> Float[Tensor, "n k k"]:
    """(1 - dose) I + dose u 1^T, with u even over the lines whose label is `to`: a mix of an AttentionEdit."""
    u = (labels == to[:, None]).float()
    u = u / u.sum(-1, keepdim=True)
    return (1 - dose) * torch.eye(len(labels)) + dose * u[..., None].expand(-1, -1, len(labels))


@contextmanager
def changed_attention(checkpoint: Checkpoint, change: Callable[[int, Tensor], Tensor]) -> Iterator[None]:
    """Inside a `with` block every layer attends with change(layer, A) in place of A = softmax(q K^T / sqrt(d)).

    For models that take their attention function from transformers' registry, and add nothing to scores but a mask.
    """

    def attend(  # noqa: PLR0917 -- transformers calls it so
        module: nn.Module, q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None, scaling: float, **_: Any
    ) -> tuple[Tensor, Tensor]:
        n, _, T, _ = q.shape
        scores = (q.reshape(n, K.shape[1], -1, q.shape[-1]) @ K.mT * scaling).view(n, -1, T, K.shape[2])
        A = (scores if mask is None else scores + mask).softmax(-1)
        A = change(module.layer_idx, A)
        read = (A.reshape(n, V.shape[1], -1, A.shape[-1]) @ V).view(n, -1, T, V.shape[-1])
        return read.transpose(1, 2).contiguous(), A

    model = checkpoint.model
    own = model.config._attn_implementation
    with hooks.restoring(lambda: model.set_attn_implementation(own)):
        AttentionInterface.register("edited", attend)
        AttentionMaskInterface.register("edited", eager_mask)
        model.set_attn_implementation("edited")
        yield


def edited_logits(last: Pass, edit: AttentionEdit) -> Float[Tensor, "n T vocab"]:
    """Logits at the last token of each query, as `Pass.at_last` gives it, under T edits."""
    with torch.no_grad(), changed_attention(last.checkpoint, edit):
        return side_by_side(last, edit.heads.shape[1])


def side_by_side(last: Pass, T: int) -> Float[Tensor, "n T vocab"]:
    """The same without an edit, T times: the token stands T times at its position, and none of them sees the others."""
    dtype = last.keys[0].dtype
    sees = torch.cat([last.mask.bool()[:, None].expand(-1, T, -1), torch.eye(T).bool().expand(len(last), -1, -1)], -1)
    mask = torch.zeros(sees.shape, dtype=dtype).masked_fill(~sees, torch.finfo(dtype).min)
    hidden = last.checkpoint.hidden(
        input_ids=last.ids.expand(-1, T),
        position_ids=last.positions.expand(-1, T),
        attention_mask=mask[:, None],
        use_cache=True,
        **{CACHE: DynamicCache(list(zip(last.keys, last.values, strict=True)))},
    )
    return last.checkpoint.model.get_output_embeddings()(hidden)
