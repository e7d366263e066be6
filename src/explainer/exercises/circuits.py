"""Exercises on what would make it learning: scores of heads, heads switched off, one step in two layers."""

import torch
from torch import Tensor

from explainer.exercises.checks import Exercise


def _attends(n: int, offset: int) -> Tensor:
    """Attention of a head whose token n + i of 2n + 1 always looks at token i + offset."""
    A = torch.zeros(2 * n + 1, 2 * n + 1, dtype=torch.float64)
    A[range(n + 1, 2 * n + 1), range(1 + offset, n + 1 + offset)] = 1
    return A


def _mean_of_head(x: Tensor, n_heads: int, head: int, *, times: float = 1.0) -> Tensor:
    parts = x.unflatten(-1, (n_heads, -1)).clone()
    parts[:, head] = times * parts[:, head].mean(0)
    return parts.flatten(-2)


def _ones(T: int, diagonal: int) -> Tensor:
    return torch.ones(T - abs(diagonal), dtype=torch.float64).diag(diagonal)


def _value_matrix(W_0: Tensor, eta: float, n: int) -> Tensor:
    return eta / n * torch.cat([-W_0, torch.eye(len(W_0), dtype=W_0.dtype)], 1)


EXERCISES = {
    "induction_score": Exercise(
        asks="(A (2n + 1, 2n + 1), n) -> mean of A[n + i, i + 1] over i = 1, ..., n",
        hint="token n + i of the second half occurred before at i; it should attend to i + 1.",
        passed="your score is 1 for a perfect induction head and right for random ones, n = 2, 5 and 20.",
        right=lambda A, n: A[n + 1 :].diagonal(2)[:n].mean(),
        shapes=((5, 5), (11, 11), (41, 41)),
        cases=lambda *random: {
            "a head that always attends to the token after the earlier occurrence should score 1.": (_attends(6, 1), 6),
            "a head that attends to the earlier occurrence itself should score 0.": (_attends(6, 0), 6),
            "all n tokens of the second half count once.": [(A, len(A) // 2) for A in random],
        },
        mistakes={"you look at the earlier occurrence itself.": lambda A, n: A[n + 1 :].diagonal(1)[:n].mean()},
    ),
    "head_off": Exercise(
        asks="(x (T, n_heads d), n_heads, head) -> x with the head's d entries at their mean over tokens",
        hint="x.unflatten(-1, (n_heads, -1)) has one row for each head; change one row and flatten again.",
        passed="the head gives its mean at every token, and the other heads are as they were.",
        right=_mean_of_head,
        shapes=((5, 6),),
        cases=lambda x: [(x, 3, head) for head in range(3)],
        mistakes={
            "the head gives zero; here it should give its mean over the tokens.": lambda *a: _mean_of_head(*a, times=0),
            "this changes the other heads, too.": lambda x, n_heads, head: x.mean(0).expand(len(x), -1),
        },
    ),
    "look_back": Exercise(
        asks="(T, back) -> W (T, T) with W e_t = e_{t - back} for the one-hot codes, and 0 for t < back",
        hint="W has a one in row t - back and column t.",
        passed="every token asks for the code of the token that stands `back` places before it.",
        right=_ones,
        cases=[(4, 1), (7, 2), (6, 3), (5, 0)],
        mistakes={
            "W e_t looks ahead; exchange rows and columns.": lambda T, back: _ones(T, -back),
            "W e_0 is not zero, although nothing stands before it.": lambda T, back: _ones(T, 0).roll(back, 1),
            "the number of places is always 1.": lambda T, back: _ones(T, 1),
        },
    ),
    "value_matrix": Exercise(
        asks="(W_0 (m, d), eta, n) -> W_V (m, d + m), so that sum_i W_V [x_i; y_i] x_i^T is one gradient step's dW",
        hint="on a column [x; y] the value is (eta / n) (y - W_0 x): a block for x beside a block for y.",
        passed="with your values, attention takes the step of gradient descent, from zero and from other weights.",
        right=_value_matrix,
        shapes=((2, 4),),
        cases=lambda W: {
            "from W_0 = 0 the attention layer does not make the step of gradient descent.": (0 * W, 0.3, 6),
            "from W_0 other than 0 the attention layer does not make the step of gradient descent; what does the loss "
            "subtract from the label before it pushes?": (W, 0.3, 6),
        },
        mistakes={
            "the step goes uphill; look at the sign of the error signal.": lambda *given: -_value_matrix(*given),
            "the loss divides by n.": lambda W_0, eta, n: _value_matrix(W_0, eta, 1),
            "the prediction is added to the label, not taken off.": lambda W, eta, n: _value_matrix(-W, eta, n),
        },
    ),
}
