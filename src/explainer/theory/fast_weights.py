"""Fast weights: a layer whose matrix S is trained by gradient descent while it reads, one step per token.

Letters: T tokens t = 0, ..., T-1 with queries q_t and keys k_t of width d and values v_t of width d_v; the rate beta_t,
the retention alpha_t and the momentum mu_t; S (d_v, d) the fast weights, V (d_v, d) their velocity, both 0 at first.
At each token the output is S_t q_t after

    e_t = beta_t (v_t - alpha_t S_{t-1} k_t),   V_t = mu_t V_{t-1} + e_t k_t^T,   S_t = alpha_t S_{t-1} + V_t.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from explainer.errors import ShapeError
from explainer.theory.shapes import shaped

_Gate = float | Float[Tensor, "..."]
"""The rate, the retention or the momentum: one number, or one for each token."""


@shaped
def recurrent(  # noqa: PLR0917
    queries: Float[Tensor, "*q T d"],
    keys: Float[Tensor, "*k T d"],
    values: Float[Tensor, "*v T d_v"],
    rate: _Gate,
    retention: _Gate = 1.0,
    momentum: _Gate = 0.0,
) -> Float[Tensor, "*batch T d_v"]:
    """Learn token by token: e = beta (v - alpha S k), V <- mu V + e k^T, S <- alpha S + V; the output is S q.

    Leading axes are broadcast. Raises: ShapeError.
    Source: Schlag et al. 2021 (arXiv 2102.11174), section 4.2 (delta rule); Yang et al. 2025 (arXiv 2412.06464),
    section 3.1 (gated); Huang et al. 2026 (arXiv 2605.05838) (with momentum). Titans (arXiv 2501.00663) take the error
    before the decay: give them the values alpha v and the rate beta / alpha.
    """
    batch, (beta, alpha, mu) = _checked(queries, keys, values, (rate, retention, momentum))
    S = V = keys.new_zeros(*batch, values.shape[-1], keys.shape[-1])
    outputs = []
    for t in range(keys.shape[-2]):
        k, v, q = keys[..., t, :, None], values[..., t, :, None], queries[..., t, :, None]
        beta_t, alpha_t, mu_t = (gate[..., t, None, None] for gate in (beta, alpha, mu))
        e = beta_t * (v - alpha_t * (S @ k))
        V = mu_t * V + e * k.mT
        S = alpha_t * S + V
        outputs.append((S @ q)[..., 0])
    return torch.stack(outputs, -2) if outputs else values


@shaped
def errors(
    keys: Float[Tensor, "*k T d"],
    values: Float[Tensor, "*v T d_v"],
    rate: _Gate,
    retention: _Gate = 1.0,
    momentum: _Gate = 0.0,
) -> Float[Tensor, "*batch T d_v"]:
    """Solve for all errors at once: (I + L) E = beta V, with L[t, i] = beta_t alpha_t C[t-1, i] (k_i . k_t) for i < t.

    The outputs of `recurrent` are then sum_{i<=t} C[t, i] e_i (k_i . q_t), with C the `pair_weights`: the dual form of
    Irie et al. 2022.
    Raises as `recurrent`.
    Source: Yang et al. 2024 (arXiv 2406.06484), section 3 (delta rule); otherwise ours, by unrolling.
    """
    _, (beta, alpha, mu) = _checked(keys, keys, values, (rate, retention, momentum))
    before = pad(pair_weights(alpha, mu)[..., :-1, :], (0, 0, 1, 0))
    L = (beta * alpha)[..., None] * before * (keys @ keys.mT)
    return _solve(L, beta[..., None] * values)


@shaped
def chunked(  # noqa: PLR0917
    queries: Float[Tensor, "*q T d"],
    keys: Float[Tensor, "*k T d"],
    values: Float[Tensor, "*v T d_v"],
    rate: _Gate,
    retention: _Gate = 1.0,
    momentum: _Gate = 0.0,
    *,
    chunk: int = 64,
) -> Float[Tensor, "*batch T d_v"]:
    """Compute what `recurrent` computes in chunks of tokens: solve within a chunk, carry S and V to the next one.

    O(T chunk) memory. Raises as `recurrent`.
    Source: Yang et al. 2024 (arXiv 2406.06484), section 3.2, with retention and momentum.
    """
    batch, gates = _checked(queries, keys, values, (rate, retention, momentum))
    S = V = keys.new_zeros(*batch, values.shape[-1], keys.shape[-1])
    outputs = [values[..., :0, :].expand(*batch, 0, -1)]
    for start in range(0, keys.shape[-2], chunk):
        part = slice(start, start + chunk)
        rows = tuple(rows[..., part, :] for rows in (queries, keys, values))
        output, S, V = _advance(S, V, rows, [gate[..., part] for gate in gates])
        outputs.append(output)
    return torch.cat(outputs, -2)


def _advance(S, V, rows, gates):
    """Pass one chunk that starts at S and V: its outputs, and S and V after it."""
    (queries, keys, values), (beta, alpha, mu) = rows, gates
    # A row and a column before the chunk stand for its start: A[t, 0] is what is left of S, M[t, 0] of V.
    A, M = (_products(pad(gate, (1, 0), value=1.0)) for gate in (alpha, mu))
    C, of_S = A @ M, A[..., :1]
    of_V = A[..., 1:] @ M[..., 1:, :1]

    def carried(x, rows):
        return of_S[..., rows, :] * (x @ S.mT) + of_V[..., rows, :] * (x @ V.mT)

    before, after, column = slice(None, -1), slice(1, None), beta[..., None]
    L = column * alpha[..., None] * C[..., before, 1:] * (keys @ keys.mT)
    E = _solve(L, column * (values - alpha[..., None] * carried(keys, before)))
    outputs = carried(queries, after) + (C[..., after, 1:] * (queries @ keys.mT)) @ E
    to_S, to_V = ((weights[..., -1, 1:, None] * E).mT @ keys for weights in (C, M))
    return outputs, of_S[..., -1:, :] * S + of_V[..., -1:, :] * V + to_S, M[..., -1:, :1] * V + to_V


def _solve(L: Tensor, right: Tensor) -> Tensor:
    """Solve (I + L) E = right for a strictly lower L, whose diagonal is not read."""
    return torch.linalg.solve_triangular(L, right, upper=False, unitriangular=True)


def pair_weights(
    retention: Float[Tensor, "*batch T"], momentum: Float[Tensor, "*batch T"]
) -> Float[Tensor, "*batch T T"]:
    """Weigh the pair of token i in S_t: C[t, i] = sum_{j=i}^{t} (prod_{l=j+1}^{t} alpha_l) (prod_{l=i+1}^{j} mu_l)."""
    return _products(retention) @ _products(momentum)


def _products(gate: Float[Tensor, "*batch T"]) -> Float[Tensor, "*batch T T"]:
    """Multiply the gates after i up to t: [t, i] is prod_{l=i+1}^{t} gate_l, and 0 for i > t."""
    later = torch.ones(2 * gate.shape[-1:], dtype=torch.bool, device=gate.device).triu(1)
    # Quotients of running products would divide by zero or overflow, so each row is a running product of its own.
    return torch.where(later, gate[..., None, :], 1.0).cumprod(-1).triu().mT


def age_weights(retention: float, momentum: float, n: int) -> Float[Tensor, " n"]:
    """Weigh a pair by its age under fixed gates: sum_{j=0}^{s} alpha^(s-j) mu^j at age s = 0, ..., n-1, in float64."""
    gates = (torch.full((n,), float(gate), dtype=torch.float64) for gate in (retention, momentum))
    return pair_weights(*gates)[-1:].flatten().flip(0)


def _checked(queries, keys, values, gates):
    """Return the leading axes and the three gates as tensors (..., T), or raise ShapeError."""
    named = dict(zip(("rate", "retention", "momentum"), gates, strict=True))
    gates = [_gate(name, gate, keys) for name, gate in named.items()]
    leading = [rows.shape[:-2] for rows in (queries, keys, values)] + [gate.shape[:-1] for gate in gates]
    try:
        return torch.broadcast_shapes(*leading), gates
    except RuntimeError:
        raise ShapeError(f"leading axes {[tuple(axes) for axes in leading]} do not fit together.") from None


def _gate(name: str, gate: _Gate, keys: Tensor) -> Float[Tensor, "*batch T"]:
    T, gate = keys.shape[-2], torch.as_tensor(gate, dtype=keys.dtype, device=keys.device)
    if gate.ndim and gate.shape[-1] not in (1, T):
        raise ShapeError(f"{name} has shape {tuple(gate.shape)}; it should be a number or (..., T) with T = {T}.")
    return gate.expand(*gate.shape[:-1], T)
