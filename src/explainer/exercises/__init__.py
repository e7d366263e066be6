"""Checks that readers run on their own answers: `exercises.linear_attention(attend)`."""

from explainer.exercises.circuits import (
    head_off,
    induction_score,
    look_back,
    previous_token_score,
    sharpness,
    value_matrix,
)
from explainer.exercises.classification import auc, calibration
from explainer.exercises.comparison import holm, kendall_tau, rec2ftp
from explainer.exercises.duality import (
    linear_attention,
    order_dependent,
    permutation_invariant,
    rank_of_update,
    ridge_dual,
)
from explainer.exercises.linear_transformer import isotropic_gamma, paying_length, ridge_attention, scaled_prediction
from explainer.exercises.momentum import momentum_average, momentum_dual

__all__ = [
    "auc", "calibration", "head_off", "holm", "induction_score", "isotropic_gamma", "kendall_tau", "linear_attention",
    "look_back", "momentum_average", "momentum_dual", "order_dependent", "paying_length", "permutation_invariant",
    "previous_token_score", "rank_of_update", "rec2ftp", "ridge_attention", "ridge_dual", "scaled_prediction",
    "sharpness", "value_matrix",
]  # fmt: skip
