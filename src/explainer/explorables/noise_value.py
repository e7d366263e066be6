"""The explorable of chapter `controls`."""

import math

import traitlets

from explainer.explorables.base import Explorable, Number


class NoiseValue(Explorable):
    """Two independent random changes of one vector z, against each other: SimAOU normalised and not.

    Traits: `ratio`, the length of either change over that of z; `dimension`; `seed`, which draws 64 pairs of
    directions. The expected value is `explainer.theory.metrics.normalised_noise_value`.
    """

    name = "noise_value"
    question = "How similar are two changes that have nothing to do with each other?"
    height = 640

    ratio = Number(math.sqrt(3), min=0.1, max=10)
    dimension = traitlets.Int(512, min=2, max=1024)
    seed = traitlets.Int(0, min=0, max=2**31 - 1)
