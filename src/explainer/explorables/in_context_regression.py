"""The playground of chapter `how_far_it_reaches`: points in the plane, and what learners predict."""

from typing import Any

import traitlets

from explainer.explorables.base import Explorable, Number, Rows

_MOST = 12  # points
_WIDEST, _HIGHEST = 4.0, 12.0
"""The plane is drawn to so large z, and to so large y at most."""

_LEARNERS = ("ridge", "gpt", "linear", "ols", "descent")
_MOST_LINES = 4  # that can be told apart
_MODEL = "gpt_line"

_POINTS = ((1.15, 1.55), (0.0, 0.4), (0.85, 1.6), (-1.4, -0.75), (-0.35, 0.3), (1.35, 2.45), (0.3, 0.85), (0.5, 1.1))
"""A prompt of eight examples as in training, rounded to 0.05.

It is one of 1718 that were drawn with all |z| <= 1.95 and |y| <= 3. Between z = -2 and 2 its root mean square distances
from ridge are close to the medians: 0.05 of the GPT (median 0.054), 0.38 of the linear transformer (median 0.373). As
in 78 % of them, the linear transformer is too flat.
"""

_LINE = (1.05, 0.6)  # slope and intercept of ridge's line through these points, which the shifts keep


def _shifted_points() -> dict[str, dict[str, Any]]:
    """The default points under the shifts of the chapter, with the reach of the plane that shows what the learners do.

    Inputs x 2 moves every point along ridge's line, y + slope (2 z - z); noise x 4 multiplies the distances from
    it; a curve keeps the inputs, with y = z^2 - 1. Orthogonal query has few points, all at z = 1, and asks at z = -1,
    because the inputs (1, 1) and (-1, 1) have the inner product 0.
    """
    slope, intercept = _LINE
    shifts = {
        "inputs \u00d7 2": (lambda z, y: (2 * z, y + slope * z), 8),
        "targets \u00d7 3": (lambda z, y: (z, 3 * y), 12),
        "noise \u00d7 4": (lambda z, y: (z, 4 * y - 3 * (slope * z + intercept)), 4),
        "a curve": (lambda z, _: (z, z * z - 1), 4),
    }
    moved = {
        name: {"points": [[round(v, 2) for v in move(z, y)] for z, y in _POINTS], "reach": reach}
        for name, (move, reach) in shifts.items()
    }
    return moved | {"orthogonal query": {"points": [[1, y] for y in (0.8, 1.3, 1.8, 2.3)], "reach": 4, "query": -1}}


class InContextRegression(Explorable):
    """Lines that learners predict from points (z, y), all on inputs (z, 1), while a reader drags the points.

    Ridge with the penalty of the Bayes optimum in training, the small GPT of the book, the linear transformer that is
    best on the GPT's training prompts, least squares, and gradient steps with a rate that is stable in the whole
    plane: the numbers of `models.in_context_gpt.query_prediction`, `theory.linear_transformer.prediction` and
    `explainer.theory.regression`.

    Traits: `points`, which the GPT reads in their order; `query`, the z of the predictions in numbers; `steps` of
    gradient descent; `reach` of the plane in y, or as far as the points go; `learners` whose lines are drawn, at most
    four; `shifts`, {name of a button: traits that it sets}; `gpt`, what
    `explainer.models.in_context_gpt.page_weights` gives for a model of lines.
    Raises CheckpointError where the book's model is needed and cannot be read.
    """

    name = "playground"
    question = "Which learner is a trained transformer like, and until when?"
    height = 720

    points = Rows(_POINTS, most=_MOST, fewest=2, limits=(_WIDEST, _HIGHEST))
    query = Number(-1.5, min=-_WIDEST, max=_WIDEST)
    steps = traitlets.Int(10, min=1, max=100)
    reach = Number(4, min=4, max=_HIGHEST)
    learners = traitlets.List(traitlets.Enum(_LEARNERS), ["ridge", "gpt", "linear"], maxlen=_MOST_LINES)
    shifts = traitlets.Dict()
    gpt = traitlets.Dict()

    @traitlets.default("shifts")
    def _shifts_of_the_chapter(self) -> dict[str, Any]:
        return _shifted_points()

    @traitlets.default("gpt")
    def _stored_model(self) -> dict[str, Any]:
        from explainer.models import in_context_gpt  # noqa: PLC0415 - torch is slow to import and no other explorable needs it

        return in_context_gpt.page_weights(in_context_gpt.stored(_MODEL).model)
