"""Explorables whose numbers the page computes as the reader looks: classes of traits, each drawn by `js/<name>.js`."""

import math
from typing import Any

import traitlets

from explainer.explorables.explorable_base import LIMIT, Explorable, Pair, Rows

ATTENTIONS = ("softmax", "linear")
"""What the reader can choose: `explainer.theory.duality.softmax_attention` or `linear_attention`."""
_AVERAGES = ("momentum", "normalised", "nesterov", "previous", "heavy_ball")
"""What the reader can choose: averages of `explainer.theory.momentum.AVERAGES`, and the dual of heavy ball."""


class ThreeTokens(Explorable):
    """A head of three tokens in the plane: logits, attention weights and output, with or without softmax.

    Traits: `token_keys` and `token_values`, a row for each of the three tokens; `query`, that of the token which
    attends; `attention`, one of ATTENTIONS.
    """

    name = "three_tokens"
    question = "What does one attention head do with three tokens?"
    height = 735

    # `keys` is taken: ipywidgets keeps the names of the traits there.
    token_keys = Rows(((1.3, 0.7), (-0.8, 1.1), (0.5, -1.2)), fewest=3, most=3)
    token_values = Rows(((1.0, 0.8), (-1.1, 0.9), (-0.3, -1.3)), fewest=3, most=3)
    query = Pair([1.4, 0.9])
    attention = traitlets.Enum(ATTENTIONS, default_value="softmax")


class OneHead(Explorable):
    """One head on `Japan ->` after up to four demonstrations: keys, values, outer products and their sum as a matrix.

    Traits: `token_keys` and `token_values`, a row for each of the four demonstrations and a fifth for the query's own
    text `Japan ->`; `query`, that of the arrow at its end; `demonstrations`, how many are in the prompt; `token`, the
    row that is looked at, 1 to 4 (the last one in the prompt where it is not there), or 0 for `Japan ->`; `attention`,
    one of ATTENTIONS. The matrices and the outputs are those of `explainer.theory.duality.split_attention`. The
    numbers are chosen by hand: in a key, the second number says how far east the country lies; in a value, the first
    says "capital" (below zero "country"), the second east or west.
    """

    name = "one_head"
    question = "What does each demonstration add to the output of a head?"
    height = 1015

    token_keys = Rows(((0.9, -0.6), (0.9, -0.2), (0.8, 0.1), (0.5, 0.8), (0.2, 0.9)), most=5, fewest=5)
    token_values = Rows(((1, -0.7), (1, -0.4), (1, 0.1), (0.9, 0.9), (-1, 1)), most=5, fewest=5)
    query = Pair([0.9, 0.8])
    demonstrations = traitlets.Int(4, min=0, max=4)
    token = traitlets.Int(4, min=0, max=4)
    attention = traitlets.Enum(ATTENTIONS, default_value="linear")


class OneStep(Explorable):
    """One gradient step from W_0 = 0 on 1/(2n) sum_i (W x_i - y_i)^2, against linear attention over the examples.

    Traits: `points` (x_i, y_i), up to eight; `learning_rate`; `query`.
    """

    name = "one_step"
    question = "Does one gradient step give the same answer as linear attention over the examples?"
    height = 530

    points = Rows(((-1.6, -1.1), (-0.9, -0.8), (-0.4, 0.5), (0.5, 0.2), (1.0, 1.3), (1.5, 1.0)), most=8)
    learning_rate = traitlets.Float(0.85, min=0, max=1.5)
    query = traitlets.Float(1.1, min=-LIMIT, max=LIMIT)


class BracketMove(Explorable):
    """The product e_1 x_1^T x, step by step: bracketed as a gradient step on one example does, then as attention does.

    Traits: `step`, 1 to 6, of which the last shows both and their equal results; error signal `e_1`, past input `x_1`
    and present input `x`, the numbers of the chapter. The results are those of `explainer.theory.duality`.
    """

    name = "bracket_move"
    question = "How does a gradient step become attention when a pair of brackets moves?"
    height = 430

    step = traitlets.Int(6, min=1, max=6)
    e_1 = traitlets.List(traitlets.Float(), [1, -0.5], minlen=2, maxlen=2)
    x_1 = traitlets.List(traitlets.Float(), [1, -1, 1], minlen=3, maxlen=3)
    x = traitlets.List(traitlets.Float(), [2, 1, 1], minlen=3, maxlen=3)


class TwoNeurons(Explorable):
    """One gradient step on 1/2 sum_i |W x_i - y_i|^2 for a layer of two inputs and two neurons, against attention.

    Traits: `inputs` x_i and `targets` y_i, as many, up to four; `query`; `learning_rate`; `initial_weights` W_0.
    """

    name = "two_neurons"
    question = "Is a layer after one gradient step the same as linear attention over its training examples?"
    height = 910

    inputs = Rows(((1.22, 0.31), (0.17, 1.43), (-1.12, 0.74)), most=4)
    targets = Rows(((1.34, 0.62), (-0.87, 1.18), (-1.23, -0.81)), most=4)
    query = Pair([0.93, 0.78])
    learning_rate = traitlets.Float(0.4, min=0, max=1)
    initial_weights = Rows(((0.31, -0.23), (0.13, 0.22)), fewest=2, most=2)


class SoftmaxBend(Explorable):
    """Softmax attention on Gaussian keys, queries and values, against four forms without softmax.

    Traits: `spread`, the standard deviation of every query's logits over the tokens; `tokens`; `seed`. The default
    seed is the one of 0 to 59 whose errors lie nearest to the medians over these seeds.
    """

    name = "softmax_bend"
    question = "When is linear attention close to softmax attention?"
    height = 575

    spread = traitlets.Float(0.5, min=0.125, max=4)
    tokens = traitlets.Int(64, min=4, max=128)
    seed = traitlets.Int(24, min=0, max=2**31 - 1)


class NoiseValue(Explorable):
    """Two independent random changes of one vector z, against each other: SimAOU normalised and not.

    Traits: `ratio`, the length of either change over that of z; `dimension`; `seed`, which draws 64 pairs of
    directions. The expected value is `explainer.theory.metrics.normalised_noise_value`.
    """

    name = "noise_value"
    question = "How similar are two changes that have nothing to do with each other?"
    height = 575

    ratio = traitlets.Float(math.sqrt(3), min=0.1, max=10)
    dimension = traitlets.Int(512, min=2, max=1024)
    seed = traitlets.Int(0, min=0, max=2**31 - 1)


class MomentumWindow(Explorable):
    """Weights of an average over earlier positions, and what it adds to the output of one small attention head.

    Traits: `average`, one of its choices; `eta`, its decay (of the dual of heavy ball, the momentum mu); `query`, that
    of the last of twelve positions. Keys and values are fixed. Weights, gain and window are those of
    `explainer.theory.momentum` and `explainer.theory.duality.heavy_ball_weights`.
    """

    name = "momentum_window"
    question = "Which positions does momentum attention weigh, and does the query matter to what it adds?"
    height = 600

    average = traitlets.Enum(_AVERAGES, default_value="momentum")
    eta = traitlets.Float(0.5, min=0, max=0.95)
    query = Pair([1.2, 0.6])


class AgeWeights(Explorable):
    """How much a pair counts in the fast weights, over its age, 0 for the newest of sixty.

    Traits: `retention` alpha, `momentum` mu. The weights are those of `explainer.theory.fast_weights.age_weights`.
    """

    name = "age_weights"
    question = "Which pairs count most?"
    height = 535

    retention = traitlets.Float(0.97, min=0, max=1)
    momentum = traitlets.Float(0.8, min=0, max=0.95)


class PhasePlane(Explorable):
    """The two parameters of a layer with one input entry, and where training carries them.

    The entry has variance 1 and a prompt four examples, so that Gamma is 1.5; rate times steps is followed to 40.
    Traits: `start`, the point (u, U); `step`, the length of a step of gradient descent. The flow is that of
    `explainer.theory.linear_transformer.train_by_gradient_flow`, the steps are those of `train_by_gradient_descent`
    there.
    """

    name = "phase_plane"
    question = "Which of the optima does training reach?"
    height = 560

    start = Pair([1.8, 0.1])
    step = traitlets.Float(0.45, min=0.01, max=1)


class OnePlane(Explorable):
    """The true weights w, and what the layer puts in their place, A (1/M) sum y_i x_i, over redrawn prompts.

    Traits: `w`; `train`, the end of one half axis of the ellipse of training inputs, 0.5 to 1.5 long (the other: 0.7);
    `turn`, by how many degrees the test inputs' ellipse is turned against it; `training_length` N; `prompt_length` M;
    `time` of training, rate times steps. The layer follows
    `explainer.theory.linear_transformer.train_by_gradient_flow` from `initialisation` there; the two parts of the error
    are `error_parts` there.
    """

    name = "one_plane"
    question = "Which weights does the layer act on, and what moves them away from the true ones?"
    height = 700
    provenance = "Live: computed by the page as you look, with 4,000 drawn prompts."

    w = Pair([1.0, 1.4])
    train = Pair([1.2, 0.5])
    turn = traitlets.Float(0, min=-90, max=90)
    training_length = traitlets.Int(6, min=1, max=1000)
    prompt_length = traitlets.Int(32, min=1, max=1000)
    time = traitlets.Float(100.0, min=0.1, max=100.0)


class MemoryOrRidge(Explorable):
    """The posterior mean over a pool of T = 2^doublings lines, against ridge regression with the penalty noise^2.

    Lines are y = w_0 x + w_1 with w ~ N(0, I), drawn from one seed; a smaller pool is the beginning of a larger one.
    Traits: `points` (x_i, y_i), up to eight; `query`; `doublings`; `noise`, the standard deviation of the targets. The
    answers are those of `explainer.theory.task_diversity.discrete_mmse` and `explainer.theory.regression.ridge`.
    """

    name = "memory_or_ridge"
    question = "How does a learner that knows T lines by heart answer, and one for which any line is possible?"
    height = 640

    points = Rows(((-1.5, -1.45), (-0.7, -0.5), (0.1, 0.25), (0.8, 0.75)), most=8)
    query = traitlets.Float(1.4, min=-LIMIT, max=LIMIT)
    doublings = traitlets.Int(2, min=0, max=10)
    noise = traitlets.Float(0.3, min=0.1, max=1)


_WIDEST, _HIGHEST = 4.0, 12.0
"""The plane is drawn to so large z, and to so large y at most."""

_LEARNERS = ("ridge", "gpt", "linear", "ols", "descent")
_POINTS = ((1.15, 1.55), (0.0, 0.4), (0.85, 1.6), (-1.4, -0.75), (-0.35, 0.3), (1.35, 2.45), (0.3, 0.85), (0.5, 1.1))
"""A prompt of eight examples as in training, rounded to 0.05.

It is one of 1718 that were drawn with all |z| <= 1.95 and |y| <= 3. Between z = -2 and 2 its root mean square distances
from ridge are close to the medians: 0.05 of the GPT (median 0.054), 0.38 of the linear transformer (median 0.373). As
in 78 % of them, the linear transformer is too flat.
"""

_LINE = (1.05, 0.6)  # slope and intercept of ridge's line through these points, which the shifts keep


def _shifted_points() -> dict[str, dict[str, Any]]:
    """The default points under the shifts of the study, with the reach of the plane that shows what the learners do.

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

    name = "in_context_regression"
    question = "Which learner does a trained transformer resemble, and under which shifts?"
    height = 670

    points = Rows(_POINTS, most=12, fewest=2, limits=(_WIDEST, _HIGHEST))
    query = traitlets.Float(-1.5, min=-_WIDEST, max=_WIDEST)
    steps = traitlets.Int(10, min=1, max=100)
    reach = traitlets.Float(4, min=4, max=_HIGHEST)
    learners = traitlets.List(traitlets.Enum(_LEARNERS), ["ridge", "gpt", "linear"], maxlen=4)
    shifts = traitlets.Dict()
    gpt = traitlets.Dict()

    @traitlets.default("shifts")
    def _shifts_of_the_chapter(self) -> dict[str, Any]:
        return _shifted_points()

    @traitlets.default("gpt")
    def _stored_model(self) -> dict[str, Any]:
        from explainer.models import in_context_gpt  # noqa: PLC0415 - torch is slow to import

        return in_context_gpt.page_weights(in_context_gpt.stored("gpt_line").model)
