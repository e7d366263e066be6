"""Checks for the pages on what would make it learning: scores of heads, heads switched off, one step in two layers."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from explainer.exercises import checks


def _random_map(T: int, seed: int) -> Tensor:
    """Attention weights (T, T) of a random causal head: rows sum to one."""
    scores = torch.randn(T, T, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return scores.masked_fill(torch.ones(T, T).triu(1).bool(), -torch.inf).softmax(-1)


def _number(reader_fn: Callable, *arguments: object) -> float:
    """What the reader's function returns, as a finite number."""
    result = checks.run(lambda *given: float(reader_fn(*given)), *arguments)
    checks.require(math.isfinite(result), "your function returned a number that is not finite.")
    return result


@checks.check("token n + i of the second half occurred before at i; it should attend to i + 1.")
def induction_score(reader_fn: Callable[[Tensor, int], float]) -> None:
    """Check a function (A (2n + 1, 2n + 1), n) -> mean of A[n + i, i + 1] over i = 1, ..., n.

    Raises: AssertionError with a hint.
    """
    n = 6
    for offset, what in ((1, "after the earlier occurrence"), (0, "of the earlier occurrence itself")):
        A = torch.zeros(2 * n + 1, 2 * n + 1, dtype=torch.float64)
        A[range(n + 1, 2 * n + 1), range(1 + offset, n + 1 + offset)] = 1
        checks.require(
            abs(_number(reader_fn, A, n) - offset) < checks.TOLERANCE,
            f"a head that always attends to the token {what} should score {offset}; look at both indices of A.",
        )
    for seed, n in enumerate((2, 5, 20)):
        A = _random_map(2 * n + 1, seed)
        expected = sum(float(A[n + i, i + 1]) for i in range(1, n + 1)) / n
        checks.require(
            abs(_number(reader_fn, A, n) - expected) < checks.TOLERANCE,
            f"for a random head and n = {n} the score is wrong; all n tokens of the second half count once.",
        )
    print("Passed: your score is 1 for a perfect induction head and right for random heads, n = 2, 5 and 20.")


@checks.check("x.unflatten(-1, (n_heads, -1)) has one row for each head; change one row and flatten again.")
def head_off(reader_fn: Callable[[Tensor, int, int], Tensor]) -> None:
    """Check a function (x (T, n_heads d), n_heads, head) -> x with the head's d entries at their mean over tokens.

    Raises: AssertionError with a hint.
    """
    T, n_heads, d = 5, 3, 2
    x = checks.random_tensors()(T, n_heads * d)
    for head in range(n_heads):
        own = slice(head * d, (head + 1) * d)
        off = checks.call(reader_fn, x, n_heads, head, shape=(T, n_heads * d))
        rest = [i for i in range(n_heads * d) if not own.start <= i < own.stop]
        checks.require(
            checks.close(off[:, rest], x[:, rest]),
            f"switching off head {head} changes another head; each head owns d entries that stand together.",
        )
        checks.require(
            not checks.close(off[:, own], torch.zeros(T, d, dtype=x.dtype)),
            f"head {head} gives zero; here it should give its mean over the tokens.",
        )
        checks.require(
            checks.close(off[:, own], x[:, own].mean(0).expand(T, d)),
            f"head {head} does not give the mean of its own output over the tokens, the same vector at each token.",
        )
    print("Passed: the head gives its mean at every token, and the other heads are as they were.")


@checks.check("W has a one in row t - back and column t.")
def look_back(reader_fn: Callable[[int, int], Tensor]) -> None:
    """Check a function (T, back) -> W (T, T) with W e_t = e_{t - back} for the one-hot codes, and 0 for t < back.

    Raises: AssertionError with a hint.
    """
    for T, back in ((4, 1), (7, 2), (6, 3), (5, 0)):
        W = checks.call(reader_fn, T, back, shape=(T, T))
        codes = torch.eye(T, dtype=torch.float64)
        for t in range(T):
            expected = codes[t - back] if t >= back else torch.zeros(T, dtype=torch.float64)
            checks.require(
                checks.close(W @ codes[t], expected),
                f"with T = {T} and back = {back}, W e_{t} is not "
                + (f"e_{t - back}" if t >= back else "zero, although nothing stands so far before token " + str(t))
                + "; the query of token t should be the code of the token that it looks for.",
            )
    print("Passed: every token asks for the code of the token that stands `back` places before it.")


@checks.check("on a column [x; y] the value is (eta / n) (y - W_0 x): a block for x beside a block for y.")
def value_matrix(reader_fn: Callable[[Tensor, float, int], Tensor]) -> None:
    """Check a function (W_0 (m, d), eta, n) -> W_V (m, d + m), so that sum_i W_V [x_i; y_i] x_i^T is one step's dW.

    The loss is 1/(2n) sum_i ||W x_i - y_i||^2, the step one of gradient descent from W_0. Raises: AssertionError.
    """
    draw, d, m, n, eta = checks.random_tensors(), 4, 2, 6, 0.3
    X, Y = draw(n, d), draw(n, m)
    for W_0, says in ((torch.zeros(m, d, dtype=torch.float64), "from W_0 = 0"), (draw(m, d), "from W_0 other than 0")):
        W_V = checks.call(reader_fn, W_0, eta, n, shape=(m, d + m))
        update = (torch.cat([X, Y], 1) @ W_V.T).T @ X
        expected = -eta * _gradient(W_0, X, Y)
        checks.require(
            not checks.close(update, -expected),
            f"{says} the step goes uphill; look at the sign of the error signal.",
        )
        checks.require(
            checks.close(update, expected),
            f"{says} the attention layer does not make the step of gradient descent; what does the loss subtract from "
            "the label before it pushes?",
        )
    print("Passed: with your values, attention takes the step of gradient descent, from zero and from other weights.")


@torch.enable_grad()
def _gradient(W_0: Tensor, X: Tensor, Y: Tensor) -> Tensor:
    W = W_0.clone().requires_grad_()
    return torch.autograd.grad(((X @ W.T - Y) ** 2).sum() / (2 * len(X)), W)[0]
