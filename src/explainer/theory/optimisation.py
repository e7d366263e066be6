"""One step of training, and its rate, for everything that this package trains from scratch."""

import math
from collections.abc import Iterable

from torch import Tensor, nn
from torch.optim import Optimizer

from explainer.errors import DivergenceError

LARGEST_GRADIENT = 1.0

_WARM_UP = 0.05  # share of the steps


def clipped_step(parameters: Iterable[Tensor], optimiser: Optimizer, loss: Tensor, lr: float, step: int) -> float:
    """Update the parameters with the gradient of the loss, its norm clipped to 1; returns the loss before the update.

    Raises DivergenceError when the loss is not finite.
    """
    if not loss.isfinite():
        raise DivergenceError(f"the loss at step {step} is {loss.item()}; lower the learning rate.")
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, LARGEST_GRADIENT)
    for group in optimiser.param_groups:
        group["lr"] = lr
    optimiser.step()
    return loss.item()


def warmed_up_cosine(step: int, steps: int) -> float:
    """Learning rate as a share of its largest value: a line in the first 5 % of the steps, then half a cosine to 0."""
    warm_up = max(1, round(_WARM_UP * steps))
    return min((step + 1) / warm_up, 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps))))
