"""Exercises on training steps as attention: their error signals, and the order of the examples."""

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
