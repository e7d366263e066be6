"""A head that learns: layers of linear attention, built by hand, that each take one step of gradient descent.

The value of a token is the error signal of its example, e_i = eta / n (y_i - W_0 x_i), its key the input x_i, and the
query a new input x. The loss is L(W) = 1 / (2n) sum_i ||W x_i - y_i||^2, the start W_0 = 0.
Source: von Oswald et al. 2023 (arXiv 2212.07677).
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


def _layer(
    errors: Float[Tensor, "*B d_y n"],
    answers: Float[Tensor, "*B d_y m"],
    inputs: Float[Tensor, "*B d n"],
    queries: Float[Tensor, "*B d m"],
    eta: float,
) -> tuple[Float[Tensor, "*B d_y n"], Float[Tensor, "*B d_y m"]]:
    """One layer on the label places of n examples and m queries: e_i <- e_i - dW x_i, dW = eta / n sum_i e_i x_i^T.

    The places of queries begin at zero and hold minus the prediction.
    """
    step = eta / inputs.shape[-1] * errors @ inputs.mT
    return errors - step @ inputs, answers - step @ queries


def gradient_step(
    W: Float[Tensor, "*B d_y d"], inputs: Float[Tensor, "*B d n"], labels: Float[Tensor, "*B d_y n"], eta: float
) -> Float[Tensor, "*B d_y d"]:
    """W - eta dL/dW for L(W) = 1 / (2n) sum_i ||W x_i - y_i||^2."""
    return W - eta / inputs.shape[-1] * (W @ inputs - labels) @ inputs.mT


# How much is learned.


class _Lessons(NamedTuple):
    """Tasks y = W x, each with n examples and m held-out inputs; all inputs have length one."""

    W: Float[Tensor, "B d_y d"]
    inputs: Float[Tensor, "B d n"]
    held_out: Float[Tensor, "B d m"]


def lessons(
    n: int, spread: Sequence[float], seed: int, *, tasks: int = 200, d_y: int = 2, held_out: int = 50
) -> _Lessons:
    """Random tasks, and inputs x = z / ||z|| whose entries z_j are Gaussian with standard deviation spread_j."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.tensor(spread, dtype=torch.float64)[:, None]

    def normal(rows: int, columns: int) -> Tensor:
        return torch.randn(tasks, rows, columns, generator=generator, dtype=torch.float64)

    W = normal(d_y, len(spread))
    inputs = torch.nn.functional.normalize(sizes * normal(len(spread), n + held_out), dim=1)
    return _Lessons(W, inputs[..., :n], inputs[..., n:])


def _left_by_layers(drawn: _Lessons, eta: float, layers: int) -> Float[Tensor, " B"]:
    """Squared error of the heads on held-out inputs, as a share of that of the answer zero."""
    errors, answers = drawn.W @ drawn.inputs, torch.zeros_like(drawn.W @ drawn.held_out)
    for _ in range(layers):
        errors, answers = _layer(errors, answers, drawn.inputs, drawn.held_out, eta)
    return _share(-answers, drawn)


def _left_by_descent(drawn: _Lessons, eta: float, steps: int) -> Float[Tensor, " B"]:
    """The same for so many steps of gradient descent from zero weights."""
    W, labels = torch.zeros_like(drawn.W), drawn.W @ drawn.inputs
    for _ in range(steps):
        W = gradient_step(W, drawn.inputs, labels, eta)
    return _share(W @ drawn.held_out, drawn)


def _share(predicted: Tensor, drawn: _Lessons) -> Tensor:
    right = drawn.W @ drawn.held_out
    return (predicted - right).square().sum((1, 2)) / right.square().sum((1, 2))


def _best_measured_step(drawn: _Lessons, steps: int, candidates: Sequence[float]) -> float:
    """The candidate eta that leaves the lowest mean error after so many steps of gradient descent.

    After T steps the error is W (I - eta C)^T x with C = 1/n sum_i x_i x_i^T, a product for each eigenvalue of C.
    """
    eigenvalues, Q = torch.linalg.eigh(drawn.inputs @ drawn.inputs.mT / drawn.inputs.shape[-1])
    W, held_out = drawn.W @ Q, Q.mT @ drawn.held_out
    products = (W.mT @ W) * (held_out @ held_out.mT)
    size = (drawn.W @ drawn.held_out).square().sum((1, 2))

    def left(eta: float) -> float:
        factors = (1 - eta * eigenvalues) ** steps
        return (torch.einsum("bi,bij,bj->b", factors, products, factors) / size).mean().item()

    return min(candidates, key=left)


def errors_at_best_step(
    choose: Sequence[_Lessons], report: Sequence[_Lessons], steps: int, candidates: Sequence[float]
) -> tuple[Float[Tensor, "B lengths"], Float[Tensor, "B lengths"]]:
    """What heads leave, and descent, on lessons of several lengths, at the step that is best on other lessons each."""
    best = [_best_measured_step(each, steps, candidates) for each in choose]
    pairs = list(zip(report, best, strict=True))
    by_layers = torch.stack([_left_by_layers(each, eta, steps) for each, eta in pairs], 1)
    return by_layers, torch.stack([_left_by_descent(each, eta, steps) for each, eta in pairs], 1)


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
