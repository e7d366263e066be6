"""Exercises on one training step as attention, and on several steps."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from explainer.exercises.checks import Cases, Exercise, Inputs
from explainer.theory import fast_weights

_ORDERS = ([4, 3, 2, 1, 0], [1, 0, 2, 3, 4], [2, 0, 4, 1, 3], [3, 4, 0, 2, 1])


def _unmoved(update: Callable, x: Tensor, y: Tensor, others: list[Inputs]) -> bool:
    """Whether none of the other rows has another update."""
    return all(torch.allclose(update(*other), update(x, y), rtol=1e-6, atol=1e-6) for other in others)


def _every_row_counts(x: Tensor, y: Tensor) -> Cases:
    cases = {
        "two calls with the same rows give two updates; look for random numbers or a kept state.": (x, y, [(x, y)])
    }
    for row in range(5):
        changed = x + (torch.arange(5) == row)[:, None]
        what = f"changing the input of row {row} does not change the update; every row should have a part in it."
        cases[what] = (x, y, [(changed, y)])
    return cases


def _signals(outputs: Tensor, answers: Tensor, lr: float, *, axis: int = 1) -> Tensor:
    return lr * (one_hot(answers, outputs.shape[1]) - outputs.softmax(axis))


permutation_invariant = Exercise(
    hint="from W_0 = 0 the error signal of example i is lr * y_i; sum the outer products.",
    passed="the update uses every demonstration and does not depend on their order.",
    right=lambda inputs, targets: targets.T @ inputs,
    counts=_unmoved,
    shapes=((5, 3), (5, 2)),
    cases=lambda x, y: (
        _every_row_counts(x, y)
        | {
            f"the order {order} of the rows changes the update; look for a state or a weight that depends on the "
            "position of a row, and make sure that inputs and targets stay together.": (x, y, [(x[order], y[order])])
            for order in _ORDERS
        }
    ),
)
order_dependent = Exercise(
    hint="let the second example meet the layer that the first has changed.",
    passed="the update uses every demonstration and depends on their order.",
    right=lambda inputs, targets: fast_weights.errors(inputs, targets, 0.1).T @ inputs,
    counts=_unmoved,
    shapes=((5, 3), (5, 2)),
    cases=lambda x, y: (
        _every_row_counts(x, y)
        | {
            "no order of the rows changes the update; look for a sum over all rows, all seen from the same weights.": (
                x,
                y,
                [(x[order], y[order]) for order in _ORDERS],
            )
        }
    ),
)
rank_of_update = Exercise(
    hint="how many outer products are added up, and how many rows and columns has their sum?",
    passed="your count is the rank of dW_ICL in all seven settings.",
    right=lambda n, d, d_v: min((n, d, d_v)),
    cases=[(0, 4, 3), (1, 4, 3), (2, 4, 3), (3, 5, 5), (9, 3, 6), (9, 6, 3), (4, 4, 4)],
    mistakes={
        "a matrix has no higher rank than it has rows or columns.": lambda n, d, d_v: n,
        "few demonstrations do not reach that: each adds a rank of one.": lambda n, d, d_v: min(d, d_v),
    },
)
outer_product_update = Exercise(
    hint="first the error signal e = -lr * (W_0 @ x - y), then torch.outer(e, x).",
    passed="the update is the outer product of the error signal and the input.",
    right=lambda W_0, x, y, lr: torch.outer(lr * (y - W_0 @ x), x),
    shapes=((3, 4), (4,), (3,)),
    cases=lambda W, x, y: {
        "the output already equals the target, and the weights still change.": (W, x, W @ x, 0.1),
        "it is not the error signal times the input; look for a leftover factor.": (W, x, y, 0.1),
        "twice the learning rate does not give twice the update.": (W, x, y, 0.2),
    },
    mistakes={
        "these are the new weights, not their change.": lambda W, x, y, lr: W + torch.outer(lr * (y - W @ x), x),
        "the update goes away from the target.": lambda W, x, y, lr: torch.outer(lr * (W @ x - y), x),
    },
)
cross_entropy_errors = Exercise(
    hint="e = -lr * (p - y): p is the softmax of each row, y has a one at the right answer.",
    passed="the error signals are those that autograd finds for the cross-entropy.",
    right=_signals,
    shapes=((5, 4),),
    cases=lambda outputs: [(outputs, torch.tensor([0, 3, 1, 1, 2]), 0.1)],
    mistakes={
        "no row adds up to zero; look for the one that is taken off.": lambda o, a, lr: -lr * o.softmax(1),
        "the rows do not add up to zero; look at the axis of softmax.": lambda *given: _signals(*given, axis=0),
        "these are not probabilities; look for softmax.": lambda o, a, lr: lr * (one_hot(a, o.shape[1]) - o),
        "the right answer is pushed down; look at the sign.": lambda *given: -_signals(*given),
        "this belongs to the mean over the examples, not to their sum.": lambda *given: _signals(*given) / 5,
    },
)
bias_attention = Exercise(
    hint="append a 1 to every input and to every query; then it is a layer without bias.",
    passed="every attention weight is x_i . x + 1.",
    right=lambda errors, inputs, queries: (queries @ inputs.T + 1) @ errors,
    shapes=((5, 2), (5, 3), (4, 3)),
    cases=lambda e, x, q: {
        "at the query 0 only the bias counts, and it moves by the sum of the error signals.": (e, x, 0 * q),
        "it is right at the query 0 only; look at how queries and inputs are compared.": (e, x, q),
    },
    mistakes={
        "this is the change without bias; ask what the step does to b.": lambda e, x, q: q @ x.T @ e,
        "the bias moves by the sum, not by the mean.": lambda e, x, q: q @ x.T @ e + e.mean(0),
    },
)
frozen_factor = Exercise(
    hint="T steps go 1 - (1 - c)**T of the way to the target; how far do T copies of the first step go?",
    passed="your factor is right from T = 1 to T = 50.",
    right=lambda c, T: T * c / (1 - (1 - c) ** T),
    cases={
        "one step is the same with frozen error signals and without.": (0.3, 1),
        "in the text the updates were 2 and 5/4 of the first step; look at their ratio.": (0.75, 2),
        "look at how much of the error is left after each step.": [(0.75, 5), (0.1, 20), (0.001, 50), (1.5, 4)],
    },
    mistakes={"that is how much is too much; asked is the ratio.": lambda c, T: T * c / (1 - (1 - c) ** T) - 1},
)
