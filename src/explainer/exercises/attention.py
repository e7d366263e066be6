"""Exercises on keys, queries and values, and on linear attention."""

import math

import torch
from torch import Tensor

from explainer.exercises.checks import Cases, Exercise
from explainer.theory import duality


def _causal(queries: Tensor, keys: Tensor, values: Tensor, *, diagonal=1, mask=-torch.inf, factor=0.5) -> Tensor:
    scores = factor * queries @ keys.T
    return scores.masked_fill(torch.ones_like(scores).triu(diagonal).bool(), mask).softmax(-1) @ values


def _single_pairs_first(V: Tensor, K: Tensor, Q: Tensor) -> Cases:
    v, k = V[:1].abs(), K[:1] / K[:1].norm()
    return {
        "a query equal to the only key, of length one, does not get its value; look for a factor.": (v, k, k),
        "it is not linear in the query; look for a softmax, a norm or the like.": (v, k, -2 * k),
        "multiplying all keys by -2 does not multiply the output by -2; look for a normaliser.": (v, -2 * k, k),
        "multiplying all values by -2 does not multiply the output by -2.": (-2 * v, k, k),
        "a query orthogonal to the only key still gets an output.": (v, k, Q - (Q @ k.T) * k),
        "it is not the sum of the outputs for each pair; look for a mean or a normaliser.": (V, K, Q),
    }


EXERCISES = {
    "softmax": Exercise(
        asks="scores (T,) -> attention weights (T,)",
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
    ),
    "softmax_attention": Exercise(
        asks="(query (d,), keys (T, d), values (T, d_v)) -> (d_v,): one head at one position",
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
    ),
    "causal_attention": Exercise(
        asks="(queries (T, d), keys (T, d), values (T, d_v)) -> (T, d_v): one head at all positions",
        hint="fill the scores of later tokens with -inf before the softmax; exp(-inf) is 0.",
        passed="every token attends to itself and to what stands before it, and to nothing else.",
        right=_causal,
        shapes=((6, 4), (6, 4), (6, 3)),
        cases=lambda Q, K, V: {
            "the first token sees only itself, so its row should be its own value.": (Q[:1], K[:1], V[:1]),
            "a row is not softmax attention over its own token and those before it; mask before the softmax, so that "
            "the weights that are left sum to 1, and keep the scale 1 / sqrt(d).": (Q, K, V),
        },
        mistakes={
            "later tokens change the earlier rows; look at the mask.": lambda *given: _causal(*given, diagonal=9),
            "every token sees the one after it, too.": lambda *given: _causal(*given, diagonal=2),
            "a token does not see itself; look at the diagonal.": lambda *given: _causal(*given, diagonal=0),
            "a score of 0 is no weight of 0: exp(0) is 1.": lambda *given: _causal(*given, mask=0.0),
            "the weights that are left do not sum to 1.": lambda Q, K, V: (Q @ K.T / 2).softmax(-1).tril() @ V,
            "the mask is right; keep the scale 1 / sqrt(d).": lambda *given: _causal(*given, factor=1.0),
        },
    ),
    "linear_attention": Exercise(
        asks="(values (n, d_out), keys (n, d_in), queries (m, d_in)) -> (m, d_out)",
        hint="compare every query with every key first: queries @ keys.T has a row for each query.",
        passed="linear in queries, keys and values, a sum over pairs, without scale or normaliser.",
        right=duality.linear_attention,
        shapes=((5, 2), (5, 3), (4, 3)),
        cases=_single_pairs_first,
        mistakes={
            "these are softmax's weights; here a weight is k_i . q itself.": lambda V, K, Q: (Q @ K.T).softmax(-1) @ V,
            "this is the mean over the pairs; linear attention is their sum.": lambda V, K, Q: Q @ K.T @ V / len(K),
        },
    ),
    "kept_numbers": Exercise(
        asks="(tokens, layers, key_heads, d) -> how many numbers a context leaves as keys and values",
        hint="each layer keeps a key and a value of d numbers for each token and each key head.",
        passed="two vectors of d numbers for each token, layer and key head.",
        right=lambda tokens, layers, key_heads, d: 2 * tokens * layers * key_heads * d,
        cases=[(1, 1, 1, 1), (7, 3, 2, 5), (130, 30, 3, 64)],
        mistakes={"you count half of them: there are keys, and there are values.": lambda *sizes: math.prod(sizes)},
    ),
}
