"""The explorable of chapter `idea_it_inspired`."""

import traitlets

from explainer.explorables.base import Explorable, Number, Pair

_AVERAGES = ("momentum", "normalised", "nesterov", "previous", "heavy_ball")
"""What the reader can choose: averages of `explainer.theory.momentum.AVERAGES`, and the dual of heavy ball."""


class MomentumWindow(Explorable):
    """Weights of an average over earlier positions, and what it adds to the output of one small attention head.

    Traits: `average`, one of its choices; `eta`, its decay (of the dual of heavy ball, the momentum mu); `query`, that
    of the last of twelve positions. Keys and values are fixed. Weights, gain and window are those of
    `explainer.theory.momentum` and `explainer.theory.duality.heavy_ball_weights`.
    """

    name = "momentum_window"
    question = "Which positions does momentum attention weigh, and does the query matter to what it adds?"
    height = 690

    average = traitlets.Enum(_AVERAGES, default_value="momentum")
    eta = Number(0.5, min=0, max=0.95)
    query = Pair([1.2, 0.6])
