"""Checks that readers run on their own answers: `exercises.linear_attention(attend)`."""

from explainer.exercises.attention import causal_attention, softmax, softmax_attention
from explainer.exercises.behaviour import question_of, with_reversals
from explainer.exercises.circuits import (
    head_off,
    induction_score,
    look_back,
    value_matrix,
)
from explainer.exercises.classification import auc, calibration
from explainer.exercises.comparison import (
    best_values,
    core_hours,
    draws_needed,
    holm,
    kendall_tau,
    not_excluded,
    power,
    rec2ftp,
    share_of_the_way,
)
from explainer.exercises.deep import (
    newton_count,
    plain_rates,
    pool_posterior,
    two_layers,
)
from explainer.exercises.dual_form import (
    constant_values,
    context_update,
    copied_gate,
    fine_tuning_update,
    first_order,
    one_query_update,
    split_terms,
)
from explainer.exercises.duality import (
    linear_attention,
    order_dependent,
    permutation_invariant,
    rank_of_update,
)
from explainer.exercises.fast_weights import (
    ascent_errors,
    delta_errors,
)
from explainer.exercises.linear_transformer import (
    isotropic_gamma,
    landing_point,
    noisy_gamma,
    paying_length,
    ridge_attention,
    scaled_prediction,
    slowest_half_life,
    step_factor,
)
from explainer.exercises.momentum import (
    joined_pairs,
    momentum_average,
    momentum_dual,
    momentum_keys,
)
from explainer.exercises.optimisation import (
    bias_attention,
    cross_entropy_errors,
    frozen_factor,
    nesterov_coefficients,
    outer_product_update,
)
from explainer.exercises.order import fair_rates, order_variance
from explainer.exercises.ways import kept_numbers
from explainer.exercises.wrong_labels import examples_to_override, shuffled_share

__all__ = [
    "ascent_errors", "auc", "best_values", "bias_attention", "calibration", "causal_attention",
    "constant_values", "context_update", "copied_gate", "core_hours",
    "cross_entropy_errors", "delta_errors", "draws_needed", "examples_to_override", "fair_rates",
    "fine_tuning_update", "first_order", "frozen_factor", "head_off", "holm", "induction_score",
    "isotropic_gamma", "joined_pairs", "kendall_tau", "kept_numbers", "landing_point", "linear_attention",
    "look_back", "momentum_average", "momentum_dual", "momentum_keys", "nesterov_coefficients",
    "newton_count", "noisy_gamma", "not_excluded", "one_query_update", "order_dependent", "order_variance",
    "outer_product_update", "paying_length", "permutation_invariant", "plain_rates", "pool_posterior",
    "power", "question_of", "rank_of_update", "rec2ftp", "ridge_attention", "scaled_prediction",
    "share_of_the_way", "shuffled_share", "slowest_half_life", "softmax", "softmax_attention",
    "split_terms", "step_factor", "two_layers", "value_matrix", "with_reversals",
]  # fmt: skip
