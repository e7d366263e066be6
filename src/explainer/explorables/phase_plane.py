"""The explorable of chapter `linear_transformer`: two parameters, and where training carries them."""

from explainer.explorables.base import Explorable, Number, Pair

LAMBDA, N = 1.0, 4
"""Variance of the one input entry, and examples of a prompt: Gamma is 1.5."""
DURATION = 40.0
"""Time that is followed: rate times steps."""


class PhasePlane(Explorable):
    """The two parameters of a layer with one input entry, and where training carries them.

    Traits: `start`, the point (u, U); `step`, the length of a step of gradient descent. The flow is that of
    `explainer.theory.linear_transformer.gradient_flow`, the steps are those of `gradient_descent` there.
    """

    name = "phase_plane"
    question = "Which of the best parameters does training reach?"
    height = 720

    start = Pair([1.8, 0.1]).tag(sync=True, explorable=True)
    step = Number(0.45, min=0.01, max=1).tag(sync=True, explorable=True)
