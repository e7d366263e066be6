"""Exercises on keys, queries and values, on what softmax does, and on what would count as learning."""

import torch
from torch import Tensor

from explainer.exercises.checks import Exercise
from explainer.theory import duality

# One head.

softmax = Exercise(
    hint="subtract the largest score first, then take exp, then divide by the sum.",
    passed="positive, sum 1, in the ratio exp(l_i - l_j), and the same after any shift of all scores.",
    right=lambda scores: scores.softmax(-1),
    shapes=((5,),),
    cases=lambda scores: {
        "the weights do not sum to 1, or two of them are not in the ratio exp(l_i - l_j).": (scores,),
        "3 subtracted from all scores changes the weights; it should cancel.": (scores - 3,),
        "1000 added to all scores changes the weights: exp(1000) is too large for a float; take something away "
        "from all scores first that does not change the result.": (scores + 1000,),
    },
    mistakes={
        "the weights do not sum to 1; look at what you divide by.": lambda scores: (scores - scores.max()).exp(),
        "you divide the scores by their sum; exp makes them positive first.": lambda scores: scores / scores.sum(),
    },
)
softmax_attention = Exercise(
    hint="scores = keys @ query / sqrt(d); softmax over the tokens; then the weighted sum of the rows of values.",
    passed="one head at one position, with the scale 1 / sqrt(d) and weights that sum to 1.",
    right=duality.softmax_attention,
    shapes=((4,), (5, 4), (5, 3)),
    cases=lambda q, K, V: {
        "with a single token the output is not its value; one weight alone must be 1.": (q, K[:1], V[:1]),
        "with a query of zeros all scores are equal, and the output should be the mean value; look at the "
        "normaliser and at the axis of the softmax.": (0 * q, K, V),
        "the weights of two tokens do not stand in the ratio exp((k_1 - k_2) · q / sqrt(d)); look at the factor of "
        "the scores.": (q, K, V),
    },
    mistakes={
        "the scores are not divided by sqrt(d).": lambda q, K, V: (K @ q).softmax(0) @ V,
        "d is the width of a key, not the number of keys.": lambda q, K, V: (K @ q / len(K) ** 0.5).softmax(0) @ V,
    },
)

# What softmax does to the dual form.

constant_values = Exercise(
    hint="with equal values an average is that value; the relaxed form sums v_i (k_i . q).",
    passed="softmax returns v, whatever the query; the relaxed form returns a multiple of v.",
    right=lambda q, keys, v: (v, v * (keys @ q).sum()),
    shapes=((4,), (7, 4), (3,)),
    mistakes={
        "the weights of the relaxed form, k_i . q, need not add up to one.": lambda q, K, v: (v, v),
        "both are right, in the other order; softmax is first.": lambda q, K, v: (v * (K @ q).sum(), v),
    },
)
copied_gate = Exercise(
    hint="E' becomes c E'; write g as E' / (E' + E) and divide by E.",
    passed="your gate is that of 1, 2, 10 and 1000 copies.",
    right=lambda g, c: c * g / (c * g + 1 - g),
    cases=[(0.3, 1), (0.3, 2), (0.3, 10), (0.7, 1000)],
    mistakes={
        "a share cannot be larger than 1; divide by the new sum.": lambda g, c: c * g,
        "the own tokens' part of the sum is 1 - g, not 1.": lambda g, c: c * g / (c * g + 1),
    },
)
first_order = Exercise(
    hint="the mean value, plus 1/(T sqrt(d)) times the sum of v_i ((k_i - mean key) . q).",
    passed="the mean value plus a linear term, with an error of second order.",
    right=duality.centred_linear_attention,
    shapes=((4,), (7, 4), (7, 3)),
    cases=lambda q, K, V: {
        "for a query of zero softmax returns the mean of the values, and your form does not.": (0 * q, K, V),
        "the error of your form is not of second order; look at the mean key, T and sqrt(d).": (q, K, V),
    },
    mistakes={
        "this is softmax; what you add to the mean value is not linear.": duality.softmax_attention,
        "take the mean key from the keys first.": lambda q, K, V: V.mean(0) + (K @ q) @ V / len(K) / 2,
        "the logits are divided by sqrt(d).": lambda q, K, V: V.mean(0) + ((K - K.mean(0)) @ q) @ V / len(K),
    },
)
one_query_update = Exercise(
    hint="try an outer product with z on the right: what must stand on the left?",
    passed="M F = (M + dM) z with a change of rank one.",
    right=lambda M, z, F: torch.outer(M @ (F - z), z) / (z @ z),
    shapes=((8, 3), (3,), (3,)),
    mistakes={
        "(M + dM) z is not M F; look at the length of z.": lambda M, z, F: torch.outer(M @ (F - z), z),
        "the equation holds, but dM changes vectors that are orthogonal to z as well; find the one that does "
        "not.": lambda M, z, F: torch.outer(M @ (F - z), F) / (F @ z),
    },
)

# What would count as learning: one step in two layers.


def _value_matrix(W_0: Tensor, eta: float, n: int) -> Tensor:
    return eta / n * torch.cat([-W_0, torch.eye(len(W_0), dtype=W_0.dtype)], 1)


value_matrix = Exercise(
    hint="on a column [x; y] the value is (eta / n) (y - W_0 x): a block for x beside a block for y.",
    passed="with your values, attention takes the step of gradient descent, from zero and from other weights.",
    right=_value_matrix,
    shapes=((2, 4),),
    cases=lambda W: {
        "from W_0 = 0 the attention layer does not make the step of gradient descent.": (0 * W, 0.3, 6),
        "from W_0 other than 0 the attention layer does not make the step of gradient descent; what does the loss "
        "subtract from the label before it pushes?": (W, 0.3, 6),
    },
    mistakes={
        "the step goes uphill; look at the sign of the error signal.": lambda *given: -_value_matrix(*given),
        "the loss divides by n.": lambda W_0, eta, n: _value_matrix(W_0, eta, 1),
        "the prediction is added to the label, not taken off.": lambda W, eta, n: _value_matrix(-W, eta, n),
    },
)
