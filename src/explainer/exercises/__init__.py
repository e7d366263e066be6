"""Checks that readers run on their own answers: `exercises.linear_attention(attend)`."""

from explainer.exercises.attention import causal_attention, softmax, softmax_attention
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
    "auc", "calibration", "causal_attention", "holm", "isotropic_gamma", "kendall_tau", "linear_attention",
    "momentum_average", "momentum_dual", "order_dependent", "paying_length", "permutation_invariant",
    "rank_of_update", "rec2ftp", "ridge_attention", "ridge_dual", "scaled_prediction", "softmax",
    "softmax_attention",
]  # fmt: skip
