"""The explorable of chapter `linear_transformer`: two parameters, and where training carries them."""

from explainer.explorables.base import Explorable, Number, Pair


class PhasePlane(Explorable):
    """The two parameters of a layer with one input entry, and where training carries them.

    The entry has variance 1 and a prompt four examples, so that Gamma is 1.5; rate times steps is followed to 40.
    Traits: `start`, the point (u, U); `step`, the length of a step of gradient descent. The flow is that of
    `explainer.theory.linear_transformer.train_by_gradient_flow`, the steps are those of `train_by_gradient_descent`
    there.
    """

    name = "phase_plane"
    question = "Which of the best parameters does training reach?"
    height = 720

    start = Pair([1.8, 0.1])
    step = Number(0.45, min=0.01, max=1)
