"""Checks that readers run on their own answers: `exercises.linear_attention(attend)`."""

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
from explainer.exercises.ways import fine_tuned_update, kept_numbers

__all__ = [
    "auc", "calibration", "fine_tuned_update", "holm", "isotropic_gamma", "kendall_tau", "kept_numbers",
    "linear_attention", "momentum_average",
    "momentum_dual", "order_dependent", "paying_length", "permutation_invariant", "rank_of_update", "rec2ftp",
    "ridge_attention", "ridge_dual", "scaled_prediction",
]  # fmt: skip
