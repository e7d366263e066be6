"""A head that learns: layers of linear attention, built by hand, that each take one step of gradient descent.

The value of a token is the error signal of its example, e_i = eta / n (y_i - W_0 x_i), its key the input x_i, and the
query a new input x. The loss is L(W) = 1 / (2n) sum_i ||W x_i - y_i||^2, the start W_0 = 0.
Source: von Oswald et al. 2023 (arXiv 2212.07677).
"""

import torch
from jaxtyping import Float
from torch import Tensor


def gradient_step(
    W: Float[Tensor, "*B d_y d"], inputs: Float[Tensor, "*B d n"], labels: Float[Tensor, "*B d_y n"], eta: float
) -> Float[Tensor, "*B d_y d"]:
    """W - eta dL/dW for L(W) = 1 / (2n) sum_i ||W x_i - y_i||^2."""
    return W - eta / inputs.shape[-1] * (W @ inputs - labels) @ inputs.mT


# Examples as a row of tokens.


def residual_stream(
    inputs: Float[Tensor, "n d"], labels: Float[Tensor, "n d_y"], query: Float[Tensor, " d"]
) -> Float[Tensor, "T parts"]:
    """The columns of x_1, y_1, ..., x_n, y_n, x as rows: an input, a label, a one-hot position, a free part of width d.

    T = 2n + 1, parts = d + d_y + T + d.
    """
    (n, d), d_y = inputs.shape, labels.shape[1]
    T = 2 * n + 1
    H = inputs.new_zeros(T, d + d_y + T + d)
    H[::2, :d] = torch.cat([inputs, query[None]])
    H[1::2, d : d + d_y] = labels
    H[:, d + d_y : d + d_y + T] = torch.eye(T, dtype=H.dtype)
    return H


def _causal_head(H: Float[Tensor, "T parts"], W_Q: Tensor, W_K: Tensor, W_V: Tensor) -> Float[Tensor, "T d_v"]:
    """Linear attention of each token over itself and the tokens before it: sum_{s <= t} v_s (k_s . q_t)."""
    return ((H @ W_Q.mT) @ (H @ W_K.mT).mT).tril() @ (H @ W_V.mT)


def look_back_layer(H: Float[Tensor, "T parts"], d: int, d_y: int) -> Float[Tensor, "T parts"]:
    """Layer 1: the key of a token is its position p_s, the query p_{t - 1}; the input goes to the next column.

    It is added to the free part there.
    """
    T = len(H)
    read_x, _, read_p, read_free = torch.eye(H.shape[1], dtype=H.dtype).split((d, d_y, T, d))
    shift = torch.diag(torch.ones(T - 1, dtype=H.dtype), 1)  # p_t -> p_{t - 1}
    return H + _causal_head(H, shift @ read_p, read_p, read_free.mT @ read_x)


def learning_layer(H: Float[Tensor, "T parts"], d: int, d_y: int, eta: float) -> Float[Tensor, " d_y"]:
    """Layer 2, at the last token: key, the input that was brought; value, eta / n times the label; query, x."""
    read_x, read_y, _, read_free = torch.eye(H.shape[1], dtype=H.dtype).split((d, d_y, len(H), d))
    return _causal_head(H, read_x, read_free, eta / (len(H) // 2) * read_y)[-1]
