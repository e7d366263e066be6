"""Exercises on the dual form of attention, and on what softmax does to it."""

import torch
from torch import Tensor

from explainer.exercises.checks import Exercise
from explainer.theory import duality


def _terms(q: Tensor, keys: Tensor, values: Tensor, n: int) -> tuple[Tensor, Tensor]:
    return values[n:].T @ (keys[n:] @ q), values[:n].T @ (keys[:n] @ q)


def _products(W_K: Tensor, W_V: Tensor, X: Tensor) -> Tensor:
    return W_V @ X @ (W_K @ X).T


EXERCISES = {
    "split_terms": Exercise(
        asks="(q (d,), keys (T, d), values (T, d_v), n) -> the own tokens' term and that of the first n, the examples'",
        hint="multiply all keys of one part by q first; then the values, each by its own number.",
        passed="both terms are right, also without demonstrations and without own tokens.",
        right=_terms,
        shapes=((4,), (7, 4), (7, 3)),
        cases=lambda q, K, V: {
            "where one part has no token the other term is sum_i v_i (k_i . q) over all tokens; look for a softmax, a "
            "factor or a token that is left out.": [(q, K, V, 0), (q, K, V, 7)],
            "the cut is not right; the first n rows are the demonstrations'.": (q, K, V, 4),
        },
        mistakes={"right, but in the other order; the own tokens' term is first.": lambda *given: _terms(*given)[::-1]},
    ),
    "context_update": Exercise(
        asks="(X_ (d_model, n), W_K (d, d_model), W_V (d_v, d_model)) -> dW_ICL (d_v, d)",
        hint="a product of two matrices sums outer products: columns of the first, rows of the second.",
        passed="the sum of the outer products of values and keys, for one token and for five.",
        right=lambda X_, W_K, W_V: _products(W_K, W_V, X_),
        shapes=((6, 5), (4, 6), (3, 6)),
        cases=lambda X_, W_K, W_V: {
            "with 1 token it is not the outer product of its value and its key.": (X_[:, :1], W_K, W_V),
            "with 5 tokens it is not the sum of the outer products; look for a factor.": (X_, W_K, W_V),
        },
        mistakes={
            "this is the mean over tokens, not the sum.": lambda X_, W_K, W_V: _products(W_K, W_V, X_) / len(X_.T)
        },
    ),
    "fine_tuning_update": Exercise(
        asks="(W_K, W_V, dW_K, dW_V, X (d_model, m)) -> dW_FT (d_v, d), equation 13 of Dai et al. 2023",
        hint="compute W_V X (W_K X)^T before and after, and subtract.",
        passed="the change of W_ZSL is right where W_V, W_K or both change.",
        right=lambda W_K, W_V, dW_K, dW_V, X: _products(W_K + dW_K, W_V + dW_V, X) - _products(W_K, W_V, X),
        shapes=((4, 6), (3, 6), (4, 6), (3, 6), (6, 2)),
        cases=lambda K, V, dK, dV, X: {
            "nothing changes, and you find a change; did you subtract what was before?": (K, V, 0 * dK, 0 * dV, X),
            "the change is wrong where only W_V changes.": (K, V, 0 * dK, dV, X),
            "the change is wrong where only W_K changes.": (K, V, dK, 0 * dV, X),
            "it is wrong only where both change; look for the term in which they meet.": (K, V, dK, dV, X),
        },
        mistakes={"this is only the term in which both changes meet.": lambda K, V, dK, dV, X: _products(dK, dV, X)},
    ),
    "constant_values": Exercise(
        asks="(q (d,), keys (T, d), v (d_v,)) -> what softmax and what relaxed attention return if all values are v",
        hint="with equal values an average is that value; the relaxed form sums v_i (k_i . q).",
        passed="softmax returns v, whatever the query; the relaxed form returns a multiple of v.",
        right=lambda q, keys, v: (v, v * (keys @ q).sum()),
        shapes=((4,), (7, 4), (3,)),
        mistakes={
            "the weights of the relaxed form, k_i . q, need not add up to one.": lambda q, K, v: (v, v),
            "both are right, in the other order; softmax is first.": lambda q, K, v: (v * (K @ q).sum(), v),
        },
    ),
    "copied_gate": Exercise(
        asks="(g, c) -> the gate when every demonstration is shown c times",
        hint="E' becomes c E'; write g as E' / (E' + E) and divide by E.",
        passed="your gate is that of 1, 2, 10 and 1000 copies.",
        right=lambda g, c: c * g / (c * g + 1 - g),
        cases=[(0.3, 1), (0.3, 2), (0.3, 10), (0.7, 1000)],
        mistakes={
            "a share cannot be larger than 1; divide by the new sum.": lambda g, c: c * g,
            "the own tokens' part of the sum is 1 - g, not 1.": lambda g, c: c * g / (c * g + 1),
        },
    ),
    "first_order": Exercise(
        asks="(q (d,), keys (T, d), values (T, d_v)) -> (d_v,): softmax attention to first order in the logits",
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
    ),
    "one_query_update": Exercise(
        asks="(M (d_m, d_v), z (d_v,), F (d_v,)) -> dM, (M + dM) z = M F, that leaves all orthogonal to z alone",
        hint="try an outer product with z on the right: what must stand on the left?",
        passed="M F = (M + dM) z with a change of rank one.",
        right=lambda M, z, F: torch.outer(M @ (F - z), z) / (z @ z),
        shapes=((8, 3), (3,), (3,)),
        mistakes={
            "(M + dM) z is not M F; look at the length of z.": lambda M, z, F: torch.outer(M @ (F - z), z),
            "the equation holds, but dM changes vectors that are orthogonal to z as well; find the one that does "
            "not.": lambda M, z, F: torch.outer(M @ (F - z), F) / (F @ z),
        },
    ),
}
