"""The explorable of chapter `fast_weights`."""

from explainer.explorables.base import Explorable, Number


class AgeWeights(Explorable):
    """How much a pair counts in the fast weights, over its age, 0 for the newest of sixty.

    Traits: `retention` alpha, `momentum` mu. The weights are those of `explainer.theory.fast_weights.age_weights`.
    """

    name = "age_weights"
    question = "Which pairs count most?"
    height = 640

    retention = Number(0.97, min=0, max=1)
    momentum = Number(0.8, min=0, max=0.95)
