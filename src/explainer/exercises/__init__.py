"""Checks that readers run on their own answers: `exercises.softmax(softmax)`."""

# ruff: noqa: F401, I001 - an index of all names, in lines as wide as those of a text
# fmt: off
from explainer.exercises.attention import (
    softmax, softmax_attention, constant_values, copied_gate, first_order, one_query_update, value_matrix,
)
from explainer.exercises.comparison import (
    fair_rates, examples_to_override,
)
from explainer.exercises.duality import (
    permutation_invariant, order_dependent, cross_entropy_errors,
)
from explainer.exercises.linear_transformer import (
    noisy_gamma, landing_point, scaled_prediction, paying_length, plain_rates,
)
from explainer.exercises.momentum import (
    momentum_dual, ascent_errors,
)
