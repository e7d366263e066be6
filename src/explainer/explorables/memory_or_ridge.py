"""The explorable of the study `memory_or_ridge`: a learner that knows few lines by heart, and one that knows none."""

import traitlets

from explainer.explorables.base import LIMIT, Explorable, Number, Rows


class MemoryOrRidge(Explorable):
    """The posterior mean over a pool of T = 2^doublings lines, against ridge regression with the penalty noise^2.

    Lines are y = w_0 x + w_1 with w ~ N(0, I), drawn from one seed; a smaller pool is the beginning of a larger one.
    Traits: `points` (x_i, y_i), up to eight; `query`; `doublings`; `noise`, the standard deviation of the targets. The
    answers are those of `explainer.theory.task_diversity.discrete_mmse` and `explainer.theory.regression.ridge`.
    """

    name = "memory_or_ridge"
    question = (
        "What does a learner answer that knows T lines by heart, and what one that takes every line for possible?"
    )
    height = 610

    points = Rows(((-1.5, -1.45), (-0.7, -0.5), (0.1, 0.25), (0.8, 0.75)), most=8)
    query = Number(1.4, min=-LIMIT, max=LIMIT)
    doublings = traitlets.Int(2, min=0, max=10)
    noise = Number(0.3, min=0.1, max=1)
