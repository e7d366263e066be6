"""Momentum attention: softmax attention plus an average of past values, and the averages that serve as controls.

Letters: T positions t = 0, ..., T-1, values v_t of width d, eta in [0, 1) the decay, s = t - i the lag of position i
seen from t. Every average is causal and leaves out the present: position t receives sum_{s=1}^{t} w_s v_{t-s}.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from explainer.errors import ShapeError
from explainer.theory.shapes import shaped

_Average = Callable[[Float[Tensor, "*batch T d"], float], Float[Tensor, "*batch T d"]]

_CHUNK = 32  # positions that one matrix product averages over
SHORT = 4
"""Lags of the average "short_convolution"."""


# Part 1. Weights over lags.


def check_eta(eta: float) -> None:
    """Raise ValueError unless the decay is in [0, 1)."""
    if not 0 <= eta < 1:
        raise ValueError(f"eta = {eta} is outside [0, 1); choose for example 0.5.")


def weights(eta: float, n: int) -> Float[Tensor, " n"]:
    """Weigh the values of the last n positions: w_s = eta^s at lag s = 1, ..., n, lag 1 first, in float64.

    Raises: ValueError if eta is outside [0, 1).
    """
    check_eta(eta)
    return eta ** torch.arange(1, n + 1, dtype=torch.float64)


def gain(eta: float) -> float:
    """Sum the weights over all lags, sum_{s>=1} eta^s = eta / (1 - eta); those of softmax sum to 1."""
    check_eta(eta)
    return eta / (1 - eta)


def effective_window(eta: float) -> float:
    """Count the positions that the average is spread over, (sum_s w_s)^2 / sum_s w_s^2 = (1 + eta) / (1 - eta).

    Source: Kish 1965, the effective sample size, at w_s = eta^s.
    """
    check_eta(eta)
    return (1 + eta) / (1 - eta)


# Part 2. Averages of past values.


@shaped
def ema(value: Float[Tensor, "*batch T d"], eta: float) -> Float[Tensor, "*batch T d"]:
    """Average past values with exponential decay: sum_{i<t} eta^(t-i) v_i, the second term of MoAttn.

    O(T) memory, and no power of 1/eta that could overflow. float16 and bfloat16 are summed in float32.
    Raises: ValueError if eta is outside [0, 1).
    Source: Dai et al. 2023, the section on momentum-based attention, formula of MoAttn.
    """
    return _discounted(value, eta, eta)


@shaped
def decaying_bias(values: Float[Tensor, "*batch T d"], eta: float) -> Float[Tensor, "*batch T d"]:
    """Train a bias that decays, one value at each position: b_0 = 0 and b_{t+1} = eta (b_t + v_t); return every b_t.

    Row t is the bias before v_t enters, sum_{i<t} eta^(t-i) v_i, and so equals `ema`.
    Raises: ValueError if eta is outside [0, 1).
    """
    check_eta(eta)
    biases, b = [values[..., :0, :]], torch.zeros_like(values[..., :1, :])
    for v in values.split(1, -2):
        biases.append(b)
        b = eta * (b + v)
    return torch.cat(biases, -2)


@shaped
def causal_convolution(
    value: Float[Tensor, "*batch T d"], kernel: Float[Tensor, "lags *d"]
) -> Float[Tensor, "*batch T d"]:
    """Average past values with any weights over a few lags: sum_{s=1}^{lags} kernel_{s-1} v_{t-s}.

    The kernel has lag 1 first, and may have weights for each channel.
    """
    if kernel.ndim != 1 and kernel.shape[1:] != value.shape[-1:]:
        raise ShapeError(f"kernel has shape {tuple(kernel.shape)}; it should be (lags,) or (lags, {value.shape[-1]}).")
    T, wide = value.shape[-2], _widened(value)
    lags = range(1, min(len(kernel), T) + 1)
    weights_of = kernel.to(wide)
    shifted = (weights_of[s - 1] * pad(wide[..., : T - s, :], (0, 0, s, 0)) for s in lags)
    return sum(shifted, torch.zeros_like(wide)).to(value.dtype)


@shaped
def normalised_ema(value: Float[Tensor, "*batch T d"], eta: float) -> Float[Tensor, "*batch T d"]:
    """`ema` times (1 - eta) / eta, with weights that sum to 1 over all lags: (1 - eta) sum_{i<t} eta^(t-1-i) v_i."""
    return _discounted(value, eta, 1 - eta)


@shaped
def _nesterov_ema(value: Float[Tensor, "*batch T d"], eta: float) -> Float[Tensor, "*batch T d"]:
    """Average extrapolated values, sum_{i<t} eta^(t-i) v'_i with v'_i = v_i + eta (v_i - v_{i-1}) and v_{-1} = 0.

    Source: ours; gradients are extrapolated so in Adan (Xie et al. 2022, arXiv 2208.06677), with eta = 1 - beta.
    """
    return eta * (ema(value, eta) + previous_value(value, 1.0))


@shaped
def previous_value(value: Float[Tensor, "*batch T d"], weight: float) -> Float[Tensor, "*batch T d"]:
    """Take the value one position back alone: weight v_{t-1}, and 0 at position 0.

    Source: the token shift of RWKV (Peng et al. 2023, arXiv 2305.13048), on values.
    """
    return causal_convolution(value, weight * _newest(1))


@shaped
def permuted_ema(value: Float[Tensor, "*batch T d"], eta: float) -> Float[Tensor, "*batch T d"]:
    """Average past values with the weights of `ema` in a random order, drawn for each position; O(T^2) memory."""
    wide, matrix = _widened(value), _permuted_matrix(eta, value.shape[-2])
    return _in_full_precision(lambda: matrix.to(wide) @ wide, value)


def _newest(n: int) -> Float[Tensor, " n"]:
    """1 at lag 1, 0 at all others."""
    return (torch.arange(n) == 0).double()


def _permuted_weights(eta: float, n: int) -> Float[Tensor, " n"]:
    """The n weights of `weights`, at the n lags in a random order, one that is drawn for each n."""
    return weights(eta, n)[torch.randperm(n, generator=torch.Generator().manual_seed(n))]


AVERAGES: Mapping[str, _Average] = {
    "momentum": ema,
    "normalised": normalised_ema,
    "nesterov": _nesterov_ema,
    "previous": previous_value,
    "permuted": permuted_ema,
    "short_convolution": lambda value, eta: causal_convolution(value, weights(eta, SHORT)),
}
"""The averages by name."""


def _discounted(value: Tensor, eta: float, factor: float) -> Tensor:
    check_eta(eta)
    return _in_full_precision(lambda: _discounted_sums(_widened(value), eta, factor), value)


def _discounted_sums(value: Tensor, eta: float, factor: float) -> Tensor:
    """factor * sum_{i<t} eta^(t-1-i) v_i, within chunks and then across them by the same rule with eta^_CHUNK.

    A chunk and the sum before it go into one product, because passes over memory, and no arithmetic, take the time.
    """
    T = value.shape[-2]
    if T <= _CHUNK:
        return factor * _decay_matrix(eta, T).to(value) @ value
    powers = (eta ** torch.arange(_CHUNK, dtype=torch.float64)).to(value)
    chunks = (pad(value, (0, 0, 0, -T % _CHUNK)) if T % _CHUNK else value).unflatten(-2, (-1, _CHUNK))
    before = _discounted_sums(powers.flip(0) @ chunks, eta**_CHUNK, factor)
    weights = torch.cat([factor * _decay_matrix(eta, _CHUNK).to(value), powers[:, None]], -1)
    return (weights @ torch.cat([chunks, before[..., None, :]], -2)).flatten(-3, -2)[..., :T, :]


def _decay_matrix(eta: float, T: int) -> Float[Tensor, "T T"]:
    """eta^(t-1-i) for i < t, else 0."""
    exponent = torch.arange(T)[:, None] - torch.arange(T) - 1
    return torch.where(exponent >= 0, eta ** exponent.clamp(min=0).double(), 0.0)


@lru_cache(maxsize=2)  # every layer of a model asks for the same one, and T draws take longer than the product
def _permuted_matrix(eta: float, T: int) -> Float[Tensor, "T T"]:
    matrix = torch.zeros(T, T, dtype=torch.float64)
    for t in range(1, T):
        matrix[t, :t] = _permuted_weights(eta, t).flip(0)
    return matrix


def _widened(value: Tensor) -> Tensor:
    return value.to(torch.promote_types(value.dtype, torch.float32))


def _in_full_precision(average: Callable[[], Tensor], value: Tensor) -> Tensor:
    """Run outside autocast, which would round weights like .999 to the 8 bits of bfloat16; return the value's dtype."""
    with torch.autocast(value.device.type, enabled=False):
        return average().to(value.dtype)


# Part 3. Attention.


def momentum_attention(
    query: Float[Tensor, "*batch H T_q d"],
    key: Float[Tensor, "*batch H_k T d"],
    value: Float[Tensor, "*batch H_k T d_v"],
    eta: float,
    *,
    attn_mask: Tensor | None = None,
    is_causal: bool = True,
    scale: float | None = None,
    enable_gqa: bool = False,
    average: _Average = ema,
) -> Float[Tensor, "*batch H T_q d_v"]:
    """Attend with momentum: MoAttn(V, K, q_t) = V softmax(K^T q_t / sqrt d) + sum_{i<t} eta^(t-i) v_i.

    At eta = 0 it is one call of `scaled_dot_product_attention`, bit for bit. The T_q queries are the last of the T
    positions. `is_causal` regards the softmax term; a mask (..., T_q, T) takes its place and may hide padding.
    Raises: ValueError if eta is outside [0, 1) or the mask is not that of causal attention with padding.
    Source: Dai et al. 2023, the section on momentum-based attention, formula of MoAttn.
    """
    check_eta(eta)
    T_q, T = query.shape[-2], key.shape[-2]
    seen = attn_mask
    if attn_mask is None and is_causal and T_q < T:
        seen = _past(T_q, T, query.device)
    attention = scaled_dot_product_attention(
        query, key, value, attn_mask=seen, is_causal=is_causal and seen is None, scale=scale, enable_gqa=enable_gqa
    )
    if eta == 0:
        return attention
    past = average(zero_masked_values(value, attn_mask, T_q), eta)[..., T - T_q :, :]
    return attention + (past.repeat_interleave(query.shape[-3] // key.shape[-3], -3) if enable_gqa else past)


def zero_masked_values(
    value: Float[Tensor, "*batch T d"], attn_mask: Tensor | None, T_q: int
) -> Float[Tensor, "*batch T d"]:
    """Set the values that an attention mask (..., T_q, T) hides from every query to 0, so that no average has them.

    Raises: ValueError if the mask is not that of causal attention with padding (`key visible and i <= t`).
    """
    if attn_mask is None:
        return value
    visible = attn_mask if attn_mask.dtype == torch.bool else attn_mask > torch.finfo(attn_mask.dtype).min / 2
    keys: Bool[Tensor, "*batch 1 T"] = visible.any(-2, keepdim=True)
    if not torch.equal(visible, _past(T_q, value.shape[-2], value.device) & keys):
        raise ValueError(
            "attn_mask hides more than padding and the future; momentum would average over what it hides. "
            "Give each sequence a row of its own, and use no window."
        )
    return value.masked_fill(~keys.mT, 0)


def _past(T_q: int, T: int, device: torch.device) -> Bool[Tensor, "T_q T"]:
    """True for the positions up to their own of the last T_q of T positions."""
    return torch.ones(T_q, T, dtype=torch.bool, device=device).tril(T - T_q)
