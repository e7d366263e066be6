"""The context of a query as a change of weights: for each block, rank-one changes of the matrices of its MLP.

A block adds to its residual stream r what its MLP makes of n = norm(r): W_out a + b_out with a = phi(z_1, z_2, ...) and
z_i = W_i n + b_i. A context turns r, n, z_i, a into r^C, n^C, z_i^C, a^C. With the changes

    dW_i = (z_i^C - z_i) n^T / (n . n),   dW_out = (r^C - r) a^C^T / (a^C . a^C)

the block has, at this token and without the context, the very output that it has with it.

Source: Dherin et al. 2025 (arXiv 2507.16003) for one plain MLP, where a change of the output's bias stands for the
skip connection; Goldwaser et al. 2025 (arXiv 2511.17864) for norms, gates, parallel blocks and several layers.
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
