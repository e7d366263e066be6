"""The explorable of the first equality: one gradient step is linear attention over the examples."""

from explainer.explorables.base import LIMIT, Explorable, Number, Rows


class OneStep(Explorable):
    """One gradient step from W_0 = 0 on 1/(2n) sum_i (W x_i - y_i)^2, against linear attention over the examples.

    Traits: `points` (x_i, y_i), up to eight; `learning_rate`; `query`.
    """

    name = "one_step"
    question = "Does one gradient step give the same answer as linear attention over the examples?"
    height = 610

    points = Rows(((-1.6, -1.1), (-0.9, -0.8), (-0.4, 0.5), (0.5, 0.2), (1.0, 1.3), (1.5, 1.0)), most=8)
    learning_rate = Number(0.85, min=0, max=1.5)
    query = Number(1.1, min=-LIMIT, max=LIMIT)
