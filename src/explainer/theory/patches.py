"""The context of a query as a change of weights: for each block, rank-one changes of the matrices of its MLP.

A block adds to its residual stream r what its MLP makes of n = norm(r):

    T(r) = r + W_out a + b_out,    a = phi(z_1, z_2, ...),    z_i = W_i n + b_i.

A plain MLP has one input matrix W_1, a gated one has two, with a = act(z_1) * z_2. A context reaches the block through
attention alone: it turns r and n into r^C and n^C. The changes below give the block, at this token and without the
context, the very output that it has with it. That is exact for every weight, trained or not, because one token is one
equation and the matrices have room for it. So it says nothing about learning. What can say something is whether the
changes that belong to one query serve another.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class LowRank(NamedTuple):
    """dW = sum_j left_j right_j^T of a matrix W: left (m, out), right (m, in). With m = 1 it is a rank-one change."""

    left: Float[Tensor, "m out"]
    right: Float[Tensor, "m in"]

    def times(self, x: Float[Tensor, "*t in"], weights: Float[Tensor, "*t m"] | None = None) -> Float[Tensor, "*t out"]:
        """dW x = sum_j w_j left_j (right_j . x), with w_j = 1, or with the weights given for every x."""
        scores = x @ self.right.T
        return (scores if weights is None else scores * weights) @ self.left


class Activations(NamedTuple):
    """What the MLP of a block computes at one token of m queries.

    `n` (m, d) is what its input matrices read and `z` what each of them returns, (m, hidden); `a` (m, hidden) is what
    its output matrix reads; `r` (m, d) is the residual stream that the output is added to.
    """

    n: Tensor
    z: tuple[Tensor, ...]
    a: Tensor
    r: Tensor


class Patch(NamedTuple):
    """Changes of the matrices of one MLP: one of each input matrix, in their order, and one of the output matrix."""

    inputs: tuple[LowRank, ...]
    output: LowRank


def rank_one(x: Float[Tensor, "m in"], change: Float[Tensor, "m out"]) -> LowRank:
    """The smallest dW with dW x = change, one for each row: dW = change x^T / (x . x).

    Smallest in the Frobenius norm. NaN where x is zero and the change is not: no matrix then gives it.
    """
    square = x.square().sum(-1, keepdim=True)
    return LowRank(change, torch.where(change.any(-1, keepdim=True), x / square, torch.zeros_like(x)))


def context_as_patch(without: Activations, with_context: Activations) -> Patch:
    """The patch that gives the block without context its output with context, one for each row of the activations.

        dW_i = (z_i^C - z_i) n^T / (n . n) for every input matrix, with z_i^C - z_i = W_i (n^C - n),
        dW_out = (r^C - r) a^C^T / (a^C . a^C).

    The first makes z and with it a those with the context, the second adds what the residual stream lacks. `without`
    is that of a pass in which the blocks below are patched. Where attention and MLP are parallel, r may be anything
    that differs by as much as the stream does, such as the attention output.

    Source: Dherin et al. 2025 (arXiv 2507.16003) for one plain MLP, where a change of the output's bias stands for the
    skip connection; Goldwaser et al. 2025 (arXiv 2511.17864) for norms, gates, parallel blocks and several layers.
    """
    changes = zip(without.z, with_context.z, strict=True)
    inputs = tuple(rank_one(without.n, z_with - z) for z, z_with in changes)
    return Patch(inputs, rank_one(with_context.a, with_context.r - without.r))
