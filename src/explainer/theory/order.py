"""The order of demonstrations: what each update rule makes of it, in closed form.

Letters: n demonstrations in the order in which they are read, i = 1, ..., n, with keys k_i of width d and values v_i of
width d_v; a query q; the rate beta, the retention alpha, the momentum mu, and eta the decay of momentum attention. An
answer that is linear in the values is sum_i w_i v_i, and w_i is the weight of the demonstration at position i.
"""

import math
from itertools import permutations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from explainer.theory import momentum
from explainer.theory.shapes import shaped

_MOST = 8  # most demonstrations whose orders are listed: there are 40,320 of them


def orders(n: int) -> Int[Tensor, "orders n"]:
    """List all n! orders of n demonstrations, lexicographically; row r says which one stands at each position.

    Raises: ValueError if n is negative or above _MOST.
    """
    if not 0 <= n <= _MOST:
        raise ValueError(f"n = {n}; all orders are listed for 0 to {_MOST} demonstrations only, sample some instead.")
    return torch.tensor(list(permutations(range(n))), dtype=torch.long).reshape(math.factorial(n), n)


@shaped
def delta_weights(rate: float, keys: Float[Tensor, "n d"], query: Float[Tensor, " d"]) -> Float[Tensor, " n"]:
    """Weigh the demonstrations of one pass of the delta rule: w_i = beta k_i^T prod_{j>i} (I - beta k_j k_j^T) q."""
    weights, seen = keys.new_empty(len(keys)), query
    for i in reversed(range(len(keys))):
        weights[i] = rate * (keys[i] @ seen)
        seen = seen - rate * keys[i] * (keys[i] @ seen)
    return weights


def decay_weights(retention: float, n: int) -> Float[Tensor, " n"]:
    """Weigh demonstrations of one key under decayed attention, S_i = alpha S_{i-1} + v_i k_i^T: w_i = alpha^(n-i).

    Source: Sun et al. 2023 (arXiv 2307.08621), section 2.1 (retention), by unrolling.
    """
    return retention ** torch.arange(n - 1, -1, -1, dtype=torch.float64)


def delta_heavy_ball_weights(rate: float, momentum: float, n: int) -> Float[Tensor, " n"]:
    """Weigh demonstrations of one unit key under the delta rule with momentum: w_i = beta U_{n-i}, the first one first.

    U_a = (1 + mu - beta) U_{a-1} - mu U_{a-2} with U_0 = 1 and U_{-1} = 0; a is the age.
    Source: unrolling `fast_weights.recurrent` with k_i = q, |q| = 1 and retention 1.
    """
    U = [0.0, 1.0]
    while len(U) <= n:
        U.append((1 + momentum - rate) * U[-1] - momentum * U[-2])
    return rate * torch.tensor(U[1 : n + 1], dtype=torch.float64).flip(0)


def momentum_attention_weights(eta: float, n: int) -> Float[Tensor, " n"]:
    """Weigh demonstrations of one key in momentum attention: w_i = 1/(n+1) + eta^(n+1-i), the first one first.

    Raises: ValueError if eta is outside [0, 1).
    Source: Dai et al. 2023, formula of MoAttn, with equal scores of n+1 tokens, the query's among them.
    """
    return 1 / (n + 1) + momentum.weights(eta, n).flip(0)


@shaped
def order_variance(weights: Float[Tensor, " n"], values: Float[Tensor, " n"]) -> float:
    """Variance of sum_i w_i v_pi(i) over all orders pi: 1/(n-1) sum_i (w_i - mean w)^2 sum_i (v_i - mean v)^2.

    Source: variance of a linear permutation statistic, Hoeffding 1951, A combinatorial central limit theorem.
    """
    spreads = [((x - x.mean()) ** 2).sum() for x in (weights, values)]
    return (spreads[0] * spreads[1] / (len(weights) - 1)).item()


@shaped
def order_gap(rate: float, keys: Float[Tensor, "2 d"], values: Float[Tensor, "2 d_v"]) -> Float[Tensor, "d_v d"]:
    """What the delta rule learns from two pairs in one order less what it learns in the other.

    S_12 - S_21 = beta^2 (k_1 . k_2) (v_2 k_1^T - v_1 k_2^T): of second order in the rate, and zero for orthogonal keys.
    """
    swapped = values.flip(0) * values.new_tensor([[1.0], [-1.0]])
    return rate**2 * (keys[0] @ keys[1]) * (swapped.T @ keys)
