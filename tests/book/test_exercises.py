"""Each check of explainer.exercises passes right answers and refuses plausible wrong ones with a hint."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import t as student_t

from explainer import exercises
from explainer.theory import duality, fast_weights, linear_transformer, metrics, momentum, statistics


def passes(check, answer, capsys):
    check(answer)
    out = capsys.readouterr().out
    assert out.startswith("Passed: ") and out.count("\n") == 1


def refuses(check, answer, hint):
    with pytest.raises(AssertionError, match=hint):
        check(answer)


# softmax


def shifted_softmax(logits):
    powers = (logits - logits.max()).exp()
    return powers / powers.sum()


def test_softmax_accepts_two_right_answers(capsys):
    passes(exercises.softmax, shifted_softmax, capsys)
    passes(exercises.softmax, lambda logits: logits.softmax(-1), capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (torch.exp, "sum to"),
        (lambda logits: shifted_softmax(logits) / len(logits), "sum to"),
        (lambda logits: shifted_softmax(2 * logits), "in the ratio"),
        (lambda logits: logits / logits.sum(), "in the ratio"),
        (lambda logits: logits.exp() / logits.exp().sum(), "too large for a float"),
        (lambda logits: (logits - logits.max()).exp(), "sum to"),
        (lambda logits: shifted_softmax(logits)[:3], "returned shape"),
    ],
)
def test_softmax_refuses(wrong, hint):
    refuses(exercises.softmax, wrong, hint)


# softmax_attention


def test_softmax_attention_accepts_two_right_answers(capsys):
    passes(exercises.softmax_attention, duality.softmax_attention, capsys)
    passes(exercises.softmax_attention, lambda q, K, V: V.T @ (K @ q / len(q) ** 0.5).softmax(0), capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda q, K, V: (K @ q) @ V, "a single token"),
        (lambda q, K, V: (K @ q).exp() @ V, "a single token"),
        (lambda q, K, V: V[(K @ q).argmax()], "mean value"),
        (
            lambda q, K, V: (K @ q / 2).softmax(0) @ V + (V - V.mean(0)).square().sum(0),
            "move the output by 2|mean value",
        ),
        (lambda q, K, V: (K @ q / K.norm(dim=1)).softmax(0) @ V, "one vector added to all keys"),
        (lambda q, K, V: (K @ q).softmax(0) @ V, "the factor of the scores"),
        (lambda q, K, V: (K @ q / len(K) ** 0.5).softmax(0) @ V, "the factor of the scores"),
        (lambda q, K, V: (K @ q / 2).softmax(0), "returned shape"),
    ],
)
def test_softmax_attention_refuses(wrong, hint):
    refuses(exercises.softmax_attention, wrong, hint)


# causal_attention


def causal(Q, K, V, *, diagonal=1, mask=float("-inf"), scale=0.5):
    later = torch.ones(len(Q), len(K)).triu(diagonal).bool()
    return (scale * Q @ K.T).masked_fill(later, mask).softmax(-1) @ V


def masked_after_softmax(Q, K, V):
    return (0.5 * Q @ K.T).softmax(-1).tril() @ V


def by_rows(Q, K, V):
    return torch.stack([duality.softmax_attention(Q[t], K[: t + 1], V[: t + 1]) for t in range(len(Q))])


def test_causal_attention_accepts_two_right_answers(capsys):
    passes(exercises.causal_attention, causal, capsys)
    passes(exercises.causal_attention, by_rows, capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (duality.softmax_attention, "without the later tokens"),
        (lambda Q, K, V: causal(Q, K, V, diagonal=2), "without the later tokens"),
        (lambda Q, K, V: causal(Q, K, V, mask=0.0), "without the later tokens"),
        (masked_after_softmax, "without the later tokens"),
        (lambda Q, K, V: causal(Q, K, V, diagonal=0), "not finite"),
        (lambda Q, K, V: (0.5 * Q @ K.T).tril() @ V, "the first token sees only itself"),
        (lambda Q, K, V: causal(Q, K, V, scale=1.0), "keep the scale"),
    ],
)
def test_causal_attention_refuses(wrong, hint):
    refuses(exercises.causal_attention, wrong, hint)


# linear_attention


def test_linear_attention_accepts_two_right_answers(capsys):
    passes(exercises.linear_attention, duality.linear_attention, capsys)
    passes(exercises.linear_attention, lambda V, K, Q: torch.einsum("no,ni,mi->mo", V, K, Q), capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda V, K, Q: (Q @ K.T).softmax(-1) @ V, "not linear in the query"),
        (lambda V, K, Q: (Q @ K.T).abs() @ V, "not linear in the query"),
        (lambda V, K, Q: Q @ (K / K.norm(dim=1, keepdim=True)).T @ V, "all keys by -2"),
        (lambda V, K, Q: Q @ K.T @ V.abs(), "all values by -2"),
        (lambda V, K, Q: Q @ K.T @ V / len(V), "not the sum of the outputs for each pair"),
        (lambda V, K, Q: Q.sum(1, keepdim=True) * K.sum(1) @ V, "orthogonal to the only key"),
        (lambda V, K, Q: Q @ K.T @ V / Q.shape[1] ** 0.5, "leftover factor"),
        (lambda V, K, Q: -Q @ K.T @ V, "leftover factor"),
        (lambda V, K, Q: (Q @ K.T @ V).T, r"returned shape \(2, 4\)"),
        (lambda V, K, Q: Q @ V.T @ K, "raised RuntimeError"),
        (lambda V, K, Q: (Q @ K.T @ V).float(), "keep the dtype"),
        (lambda V, K, Q: (Q @ K.T @ V).tolist(), "not a tensor"),
        (lambda V, K, Q: Q @ K.T @ V / 0, "not finite"),
    ],
)
def test_linear_attention_refuses(wrong, hint):
    refuses(exercises.linear_attention, wrong, hint)


# permutation_invariant and order_dependent


def one_gradient_step(inputs, targets):
    return duality.gradient_descent_update(targets, inputs)


def ten_gradient_steps(inputs, targets):
    W_0 = torch.zeros(targets.shape[1], inputs.shape[1], dtype=torch.float64)
    batches = duality.full_batches(len(inputs), 10)
    return duality.train_linear_layer(W_0, inputs, targets, duality.GradientDescent(0.05), batches).W


def delta_rule(inputs, targets):
    W_0 = torch.zeros(targets.shape[1], inputs.shape[1], dtype=torch.float64)
    batches = list(torch.arange(len(inputs)).split(1))
    return duality.train_linear_layer(W_0, inputs, targets, duality.GradientDescent(0.05), batches).W


def decayed_attention(inputs, targets):
    decay = 0.9 ** torch.arange(len(inputs) - 1, -1, -1, dtype=torch.float64)
    return (decay[:, None] * targets).T @ inputs


def last_demonstration(inputs, targets):
    return torch.outer(targets[-1], inputs[-1])


def nothing(inputs, targets):
    return torch.zeros(targets.shape[1], inputs.shape[1], dtype=torch.float64)


def noise(inputs, targets):
    return torch.randn(targets.shape[1], inputs.shape[1], dtype=torch.float64)


def in_place(inputs, targets):
    """Right, but it scribbles over its arguments."""
    update = targets.T @ inputs
    inputs.zero_()
    return update


@pytest.mark.parametrize("answer", [one_gradient_step, ten_gradient_steps, in_place])
def test_permutation_invariant_accepts(answer, capsys):
    passes(exercises.permutation_invariant, answer, capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (delta_rule, "changes the update"),
        (decayed_attention, "changes the update"),
        (lambda inputs, targets: one_gradient_step(inputs.sort(dim=0).values, targets), "changes the update"),
        (last_demonstration, "row 0 does not change the update"),
        (nothing, "row 0 does not change the update"),
        (noise, "two calls"),
    ],
)
def test_permutation_invariant_refuses(wrong, hint):
    refuses(exercises.permutation_invariant, wrong, hint)


@pytest.mark.parametrize("answer", [delta_rule, decayed_attention])
def test_order_dependent_accepts(answer, capsys):
    passes(exercises.order_dependent, answer, capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (one_gradient_step, "no order of the rows"),
        (ten_gradient_steps, "no order of the rows"),
        (last_demonstration, "row 0 does not change the update"),
        (noise, "two calls"),
        (lambda inputs, targets: inputs.T @ targets, r"it should be \(2, 3\)"),
    ],
)
def test_order_dependent_refuses(wrong, hint):
    refuses(exercises.order_dependent, wrong, hint)


# rank_of_update


def test_rank_of_update_accepts_a_formula_and_a_measurement(capsys):
    passes(exercises.rank_of_update, min, capsys)

    def measured(n, d, d_v):
        generator = torch.Generator().manual_seed(1)
        return torch.linalg.matrix_rank(
            torch.randn(d_v, n, generator=generator) @ torch.randn(n, d, generator=generator)
        )

    passes(exercises.rank_of_update, measured, capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda n, d, d_v: n, "9 demonstrations.*measured rank is smaller"),
        (lambda n, d, d_v: min(d, d_v), "0 demonstrations.*measured rank is smaller"),
        (lambda n, d, d_v: min(n, d), "9 demonstrations, d = 6 and d_v = 3.*smaller"),
        (lambda n, d, d_v: min(n, d_v), "9 demonstrations, d = 3 and d_v = 6.*smaller"),
        (lambda n, d, d_v: min(n, 1), "2 demonstrations.*larger"),
        (lambda n, d: n, "raised TypeError"),
    ],
)
def test_rank_of_update_refuses(wrong, hint):
    refuses(exercises.rank_of_update, wrong, hint)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda s: s - s.mean(axis=1, keepdims=True), "axis"),
        (lambda s: s - s.mean(), "axis"),
        (lambda s: (s - s.mean(axis=0)) / s.std(axis=0), "difference"),
        (lambda s: (s - s.mean(axis=0)).argmax(axis=1), "shape"),
    ],
)
def test_calibration_refuses_plausible_mistakes(wrong, hint):
    with pytest.raises(AssertionError, match=hint):
        exercises.calibration(wrong)


def _pairs(scores, labels):
    return scores[labels == 1][:, None] - scores[labels == 0][None, :]


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda scores, labels: ((scores > 0) == labels).mean(), "reversed|equal|order"),
        (lambda scores, labels: (_pairs(scores, labels) > 0).mean(), "ties"),
        (lambda scores, labels: (_pairs(scores, labels) < 0).mean(), "perfectly"),
        (lambda scores, labels: _pairs(scores, labels).mean(), "perfectly|reversed"),
    ],
)
def test_auc_refuses_plausible_mistakes(wrong, hint):
    with pytest.raises(AssertionError, match=hint):
        exercises.auc(wrong)


# rec2ftp


def share_of_repairs(zsl, icl, ft):
    return (~zsl & ft & icl).sum() / (~zsl & ft).sum()


def package_rec2ftp(*right):
    return metrics.rec2ftp(*map(torch.from_numpy, right))


def test_rec2ftp_accepts_two_right_answers(capsys):
    passes(exercises.rec2ftp, share_of_repairs, capsys)
    passes(exercises.rec2ftp, package_rec2ftp, capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda zsl, icl, ft: (~zsl & ft & icl).mean(), "divide by the number of FT's repairs"),
        (lambda zsl, icl, ft: (~zsl & ft).sum() / (~zsl & ft).sum(), "count queries that both get right"),
        (lambda zsl, icl, ft: (ft & icl).sum() / ft.sum(), "queries that ZSL gets right count"),
        (lambda zsl, icl, ft: (~zsl & ft & icl).sum() / (~zsl & icl).sum(), "queries that FT gets wrong"),
        (lambda zsl, icl, ft: (~zsl & ft & icl).sum() / (~zsl & (ft | icl)).sum(), "queries that FT gets wrong"),
        (lambda zsl, icl, ft: share_of_repairs(zsl, icl, ft).round(1), "for random answers"),
    ],
)
def test_rec2ftp_refuses(wrong, hint):
    with np.errstate(invalid="ignore"):
        refuses(exercises.rec2ftp, wrong, hint)


# holm


def written_out(p):
    order, largest, adjusted = np.argsort(p), 0.0, np.empty(len(p))
    for place, i in enumerate(order):
        largest = max(largest, min(1, (len(p) - place) * p[i]))
        adjusted[i] = largest
    return adjusted


def step_down(p, cut=True, monotone=True):
    order, m = np.argsort(p), len(p)
    factors = np.arange(m, 0, -1) * p[order]
    factors = np.minimum(1, factors) if cut else factors
    adjusted = np.empty(m)
    adjusted[order] = np.maximum.accumulate(factors) if monotone else factors
    return adjusted


def test_holm_accepts_two_right_answers(capsys):
    passes(exercises.holm, statistics.holm, capsys)
    passes(exercises.holm, written_out, capsys)
    passes(exercises.holm, step_down, capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda p: 2 * p, "a single p-value"),
        (lambda p: p, "not multiplied by three"),
        (lambda p: np.minimum(1, len(p) * p), "factors fall"),
        (lambda p: step_down(p, cut=False), "larger than 1"),
        (lambda p: step_down(p, monotone=False), "below a smaller one"),
        (lambda p: np.maximum.accumulate(np.minimum(1, np.arange(len(p), 0, -1) * p)), "order in which"),
        (lambda p: step_down(p) if len(p) < 4 else step_down(p) * 0.9, "step by step"),
        (lambda p: step_down(p)[:1], "shape"),
    ],
)
def test_holm_refuses(wrong, hint):
    refuses(exercises.holm, wrong, hint)


# kendall_tau


def by_signs(x, y):
    dx, dy = (np.sign(v[:, None] - v[None]) for v in (x, y))
    return (dx * dy).sum() / (len(x) * (len(x) - 1))


def by_package(x, y):
    return metrics.kendall_tau_a(torch.tensor(x), torch.tensor(y)).item()


def spearman(x, y):
    return np.corrcoef(*(v.argsort().argsort() for v in (x, y)))[0, 1]


def test_kendall_tau_accepts_two_right_answers(capsys):
    passes(exercises.kendall_tau, by_signs, capsys)
    passes(exercises.kendall_tau, by_package, capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda x, y: 2 * by_signs(x, y), "itself"),
        (lambda x, y: abs(by_signs(x, y)), "reversed"),
        (lambda x, y: np.corrcoef(x, y)[0, 1], "increasing transform"),
        (spearman, "five concordant"),
        (lambda x, y: by_signs(x, y) if len(x) != 9 else 0.0, "rankings of 9"),
        (lambda x, y: by_signs(x, y) * np.ones(2), "shape"),
    ],
)
def test_kendall_tau_refuses(wrong, hint):
    refuses(exercises.kendall_tau, wrong, hint)


# isotropic_gamma


def test_isotropic_gamma_accepts_two_right_answers(capsys):
    passes(exercises.isotropic_gamma, lambda d, n, variance: variance * (1 + (d + 1) / n), capsys)
    passes(
        exercises.isotropic_gamma,
        lambda d, n, variance: linear_transformer.gamma(variance * torch.eye(d).double(), n)[0, 0],
        capsys,
    )


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda d, n, v: v * (1 + d), "endless prompts"),
        (lambda d, n, v: v + (d + 1) / n, "three times the variance"),
        (lambda d, n, v: v * (1 + 1 / n), "four dimensions more"),
        (lambda d, n, v: v * (1 + d / n), "d = 1, n = 1 and variance = 1.0"),
    ],
)
def test_isotropic_gamma_refuses(wrong, hint):
    refuses(exercises.isotropic_gamma, wrong, hint)


# ridge_attention


def ridge_layer(covariance, penalty, n, *, scale=1.0, share=1.0, step=1.0):
    d = len(covariance)
    W_PV, W_KQ = torch.zeros(2, d + 1, d + 1, dtype=covariance.dtype)
    W_PV[d, d] = scale * step
    W_KQ[:d, :d] = torch.linalg.inv(covariance + share * penalty / n * torch.eye(d)) / scale
    return W_PV, W_KQ


def test_ridge_attention_accepts_every_scale(capsys):
    passes(exercises.ridge_attention, ridge_layer, capsys)
    passes(exercises.ridge_attention, lambda *setting: ridge_layer(*setting, scale=-3.0), capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda C, p, n: ridge_layer(torch.eye(len(C)).double(), p, n), "almost no penalty"),
        (lambda C, p, n: ridge_layer(C, p, n, step=-1.0), "almost no penalty"),
        (lambda C, p, n: ridge_layer(C, p, n, step=n), "almost no penalty"),
        (lambda C, p, n: ridge_layer(C, p, n)[::-1], "almost no penalty"),
        (lambda C, p, n: ridge_layer(C, p, n, share=n), "the attention divides by n"),
        (lambda C, p, n: ridge_layer(C, p, n, share=0.0), "the attention divides by n"),
        (lambda C, p, n: ridge_layer(C, p, 12), "depend on d, n or the penalty"),
        (lambda C, p, n: tuple(W[1:] for W in ridge_layer(C, p, n)), r"W_PV has shape \(3, 4\)"),
        (lambda C, p, n: tuple(W.float() for W in ridge_layer(C, p, n)), "keep the dtype"),
        (lambda C, p, n: ridge_layer(C, p, n)[0], "two tensors"),
    ],
)
def test_ridge_attention_refuses(wrong, hint):
    refuses(exercises.ridge_attention, wrong, hint)


# scaled_prediction


def test_scaled_prediction_accepts_the_square(capsys):
    passes(exercises.scaled_prediction, lambda c: c**2, capsys)
    passes(exercises.scaled_prediction, lambda c: torch.tensor(c) ** 2, capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda c: 0.0, "c = 1 should give 1"),
        (lambda c: c**3, "c = -1"),
        (lambda c: c, "c = -1"),
        (lambda c: 1.0, "smaller than the measured one"),
        (lambda c: c**4, "larger than the measured one"),
    ],
)
def test_scaled_prediction_refuses(wrong, hint):
    refuses(exercises.scaled_prediction, wrong, hint)


# paying_length


def test_paying_length_accepts_two_right_answers(capsys):
    def by_the_risk(d, n):
        identity = torch.eye(d).double()
        A = torch.linalg.inv(linear_transformer.gamma(identity, n))
        floor = linear_transformer.population_risk(A, identity, float("inf"))
        return (linear_transformer.population_risk(A, identity, 1) - floor) / floor

    passes(exercises.paying_length, lambda d, n: n**2 / (d + 1), capsys)
    passes(exercises.paying_length, by_the_risk, capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda d, n: n, "3.33 times"),
        (lambda d, n: n**2, "0.167 times"),
        (lambda d, n: n**2 / d, "0.833 times"),
        (lambda d, n: n**2 / 6, "d = 1 and n = 10"),
        (lambda d, n: 0, "should be above zero"),
    ],
)
def test_paying_length_refuses(wrong, hint):
    refuses(exercises.paying_length, wrong, hint)


# momentum_average, momentum_dual


def running(value, eta):
    total, rows = torch.zeros_like(value[0]), []
    for v in value:
        rows.append(total)
        total = eta * (total + v)
    return torch.stack(rows)


def test_momentum_average_accepts_two_right_answers(capsys):
    passes(exercises.momentum_average, running, capsys)
    passes(exercises.momentum_average, momentum.ema, capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda v, eta: momentum.ema(v, eta) + v, "row 0 is not zero"),
        (lambda v, eta: momentum.ema(v, eta) + v.mean(0) * (torch.arange(len(v)) > 0)[:, None], "later value"),
        (momentum.normalised_ema, "look at the exponent"),
        (lambda v, eta: momentum.ema(v, eta) * (1 + (v[0] != 0).all() * (v[1] != 0).all()), "sum over all"),
    ],
)
def test_momentum_average_refuses(wrong, hint):
    refuses(exercises.momentum_average, wrong, hint)


def test_momentum_dual_accepts_the_dual(capsys):
    def dual(values, keys, queries, mu):
        return duality.linear_attention(duality.heavy_ball_weights(mu, len(keys))[:, None] * values, keys, queries)

    passes(exercises.momentum_dual, dual, capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda v, k, q, mu: momentum.ema(v, mu)[-1:].expand(len(q), -1), "comparison k_i . q"),
        (lambda v, k, q, mu: 2 * duality.linear_attention(v, k, q), "every weight is 1"),
        (
            lambda v, k, q, mu: (
                (q @ k.T * mu ** torch.arange(len(k)).flip(0)) @ v * (mu > 0) + (mu == 0) * (q @ k.T @ v)
            ),
            "oldest",
        ),
    ],
)
def test_momentum_dual_refuses(wrong, hint):
    refuses(exercises.momentum_dual, wrong, hint)


# momentum_keys


def one_more_entry(keys, queries, eta):
    t = torch.arange(len(keys), dtype=keys.dtype)[:, None]
    return torch.cat([keys, eta**-t], 1), torch.cat([queries, eta**t], 1)


def test_momentum_keys_accepts_two_right_answers(capsys):
    def from_the_end(keys, queries, eta):
        t = torch.arange(len(keys), dtype=keys.dtype)[:, None] - len(keys)
        return torch.cat([keys, eta**-t], 1), torch.cat([queries, eta**t], 1)

    passes(exercises.momentum_keys, one_more_entry, capsys)
    passes(exercises.momentum_keys, from_the_end, capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda k, q, eta: one_more_entry(k, q, eta)[0], "keys and then the queries"),
        (lambda k, q, eta: one_more_entry(k, q, eta)[::-1], "append the new entry"),
        (lambda k, q, eta: tuple(torch.cat([x, torch.ones(6, 1).double()], 1) for x in (k, q)), "the product"),
        (lambda k, q, eta: one_more_entry(k, q, 1 / eta), "the product"),
        (lambda k, q, eta: (k, q), "returned shape"),
        (lambda k, q, eta: (k.tolist(), q), "not a tensor"),
    ],
)
def test_momentum_keys_refuses(wrong, hint):
    refuses(exercises.momentum_keys, wrong, hint)


# two ways to learn


def test_kept_numbers_accepts_the_count_and_refuses_half_of_it(capsys):
    passes(exercises.kept_numbers, lambda tokens, layers, key_heads, d: 2 * tokens * layers * key_heads * d, capsys)
    refuses(exercises.kept_numbers, lambda tokens, layers, key_heads, d: tokens * layers * key_heads * d, "half")
    refuses(exercises.kept_numbers, lambda tokens, layers, key_heads, d: 2 * tokens * layers + key_heads * d, "it is")


# One step, whatever the loss.


def test_outer_product_update_accepts(capsys):
    passes(exercises.outer_product_update, lambda W_0, x, y, lr: torch.outer(lr * (y - W_0 @ x), x), capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda W_0, x, y, lr: torch.outer(lr * y, x), "already equals the target"),
        (lambda W_0, x, y, lr: torch.outer(y - W_0 @ x, x), "twice the learning rate"),
        (lambda W_0, x, y, lr: torch.outer(lr * (W_0 @ x - y), x), "away from the target"),
        (lambda W_0, x, y, lr: torch.outer(2 * lr * (y - W_0 @ x), x), "leftover factor"),
        (lambda W_0, x, y, lr: torch.outer(x, lr * (y - W_0 @ x)), r"returned shape \(4, 3\)"),
        (lambda W_0, x, y, lr: W_0 + torch.outer(lr * (y - W_0 @ x), x), "these are the new weights"),
    ],
)
def test_outer_product_update_refuses(wrong, hint):
    refuses(exercises.outer_product_update, wrong, hint)


def one_hot(outputs, answers):
    return torch.nn.functional.one_hot(answers, outputs.shape[1]).to(outputs)


def test_cross_entropy_errors_accepts(capsys):
    passes(exercises.cross_entropy_errors, lambda o, a, lr: lr * (one_hot(o, a) - o.softmax(1)), capsys)
    with torch.no_grad():
        passes(exercises.cross_entropy_errors, lambda o, a, lr: lr * (one_hot(o, a) - o.softmax(1)), capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda o, a, lr: -lr * o.softmax(1), "add up to zero"),
        (lambda o, a, lr: lr * (one_hot(o, a) - o.softmax(0)), "add up to zero"),
        (lambda o, a, lr: lr * (o.mean(1, keepdim=True) - o) * o, "add up to zero"),
        (lambda o, a, lr: lr * (one_hot(o, a) * o.sum(1, keepdim=True) - o), "adding 3 to all logits"),
        (lambda o, a, lr: lr * (o.softmax(1) - one_hot(o, a)), "pushed down"),
        (lambda o, a, lr: lr * (one_hot(o, a) - o.softmax(1)) / len(o), "mean over the examples"),
        (lambda o, a, lr: one_hot(o, a) - o.softmax(1), "leftover factor"),
    ],
)
def test_cross_entropy_errors_refuses(wrong, hint):
    refuses(exercises.cross_entropy_errors, wrong, hint)


def test_bias_attention_accepts_two_right_answers(capsys):
    passes(exercises.bias_attention, lambda e, x, q: (q @ x.T + 1) @ e, capsys)
    passes(exercises.bias_attention, lambda e, x, q: q @ (x.T @ e) + e.sum(0), capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda e, x, q: q @ x.T @ e, "without bias"),
        (lambda e, x, q: q @ x.T @ e + e.mean(0), "not by their mean"),
        (lambda e, x, q: q @ x.T @ e + 1, "at the query 0 only the bias counts"),
        (lambda e, x, q: q.softmax(1) @ x.T @ e - q.softmax(1)[:1] @ x.T @ e + e.sum(0), "elsewhere it is not"),
    ],
)
def test_bias_attention_refuses(wrong, hint):
    refuses(exercises.bias_attention, wrong, hint)


# Several steps.


def test_frozen_factor_accepts(capsys):
    passes(exercises.frozen_factor, lambda c, T: T * c / (1 - (1 - c) ** T), capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda c, T: T * c / (1 - (1 - c) ** T) - 1, "how much is too much"),
        (lambda c, T: T * c, "the factor for T = 1 is 1"),
        (lambda c, T: float(T), "2 and 5/4"),
        (lambda c, T: 1 + (T - 1) * c / (2 - (T - 1) * c), "two steps are right"),
        (lambda c, T: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_frozen_factor_refuses(wrong, hint):
    refuses(exercises.frozen_factor, wrong, hint)


def ahead(mu, T):
    return (1 - mu ** torch.arange(T + 1, 1, -1, dtype=torch.float64)) / (1 - mu)


def test_nesterov_coefficients_accept(capsys):
    passes(exercises.nesterov_coefficients, ahead, capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (duality.heavy_ball_weights, "at what the point ahead adds"),
        (lambda mu, T: ahead(mu, T).flip(0), "the oldest push comes first"),
        (lambda mu, T: mu ** torch.arange(T - 1, -1, -1, dtype=torch.float64), "in the last velocity"),
        (lambda mu, T: torch.ones(T, dtype=torch.float64) / (1 - mu), "how many velocities each push is in"),
        (lambda mu, T: ahead(mu, T + 1), r"returned shape \(4,\)"),
    ],
)
def test_nesterov_coefficients_refuse(wrong, hint):
    refuses(exercises.nesterov_coefficients, wrong, hint)


# the dual form of attention: split_terms, context_update, fine_tuning_update


def two_terms(q, keys, values, n):
    return values[n:].T @ (keys[n:] @ q), values[:n].T @ (keys[:n] @ q)


def finetuned(W_K, W_V, dW_K, dW_V, X):
    return (W_V + dW_V) @ X @ ((W_K + dW_K) @ X).T - W_V @ X @ (W_K @ X).T


def smallest_change(M, z, F):
    return torch.outer(M @ (F - z), z) / (z @ z)


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        (exercises.split_terms, two_terms),
        (exercises.split_terms, lambda q, K, V, n: (q @ K[n:].T @ V[n:], q @ K[:n].T @ V[:n])),
        (exercises.context_update, lambda X, W_K, W_V: W_V @ X @ (W_K @ X).T),
        (exercises.context_update, lambda X, W_K, W_V: torch.einsum("vx,xn,yn,ky->vk", W_V, X, X, W_K)),
        (exercises.fine_tuning_update, finetuned),
        (exercises.fine_tuning_update, lambda K, V, dK, dV, X: dV @ X @ X.T @ (K + dK).T + V @ X @ X.T @ dK.T),
        (exercises.constant_values, lambda q, K, c: (c, c * (K @ q).sum())),
        (exercises.constant_values, lambda q, K, c: (c, len(K) * (K.mean(0) @ q) * c)),
        (exercises.copied_gate, lambda g, c: c * g / (c * g + 1 - g)),
        (
            exercises.copied_gate,
            lambda g, c: torch.sigmoid(torch.logit(torch.tensor(g, dtype=torch.float64)) + np.log(c)),
        ),
        (exercises.first_order, duality.centred_linear_attention),
        (exercises.one_query_update, smallest_change),
    ],
)
def test_dual_form_accepts(check, answer, capsys):
    passes(check, answer, capsys)


@pytest.mark.parametrize(
    ("check", "wrong", "hint"),
    [
        (exercises.split_terms, lambda *a: two_terms(*a)[::-1], "in the other order"),
        (exercises.split_terms, lambda q, K, V, n: two_terms(q / 2, K, V, n), "do not add up"),
        (exercises.split_terms, lambda q, K, V, n: two_terms(q, K, V, min(n + 1, len(K))), "the cut is not"),
        (exercises.split_terms, lambda *a: sum(two_terms(*a)), "two tensors"),
        (exercises.context_update, lambda X, W_K, W_V: W_V @ X @ (W_K @ X).T / X.shape[1], "with 5 tokens"),
        (exercises.context_update, lambda X, W_K, W_V: W_V @ W_K.T, "with 1 token "),
        (exercises.context_update, lambda X, W_K, W_V: W_K @ X @ (W_V @ X).T, r"it should be \(3, 4\)"),
        (exercises.fine_tuning_update, lambda K, V, dK, dV, X: (V + dV) @ X @ ((K + dK) @ X).T, "before"),
        (exercises.fine_tuning_update, lambda K, V, dK, dV, X: V @ X @ (dK @ X).T, "only W_V changes"),
        (exercises.fine_tuning_update, lambda K, V, dK, dV, X: dV @ X @ (K @ X).T, "only W_K changes"),
        (
            exercises.fine_tuning_update,
            lambda K, V, dK, dV, X: dV @ X @ (K @ X).T + V @ X @ (dK @ X).T,
            "both changes meet",
        ),
        (exercises.constant_values, lambda q, K, c: (c * (K @ q).sum(), c), "softmax attention is wrong"),
        (exercises.constant_values, lambda q, K, c: (c, c), "relaxed form is wrong"),
        (exercises.copied_gate, lambda g, c: c * g, "larger than 1"),
        (exercises.copied_gate, lambda g, c: g, "repeating the tokens gives"),
        (exercises.copied_gate, lambda g, c: c * g / (c * g + 1), "repeating the tokens gives"),
        (exercises.first_order, lambda q, K, V: V.mean(0) + q @ K.T @ V / len(K) / 2, "hundred times"),
        (exercises.first_order, duality.relaxed_attention, "query of zero"),
        (exercises.first_order, duality.softmax_attention, "not linear"),
        (
            exercises.first_order,
            lambda q, K, V: V.mean(0) + q @ (K - K.mean(0)).T @ V / len(K),
            "hundred times",
        ),
        (exercises.one_query_update, lambda M, z, F: torch.outer(M @ (F - z), z), "length of z"),
        (exercises.one_query_update, lambda M, z, F: torch.outer(M @ (F - z), F) / (F @ z), "orthogonal to z"),
    ],
)
def test_dual_form_refuses(check, wrong, hint):
    refuses(check, wrong, hint)


# circuits


def induction(A, n):
    return A[n + 1 :].diagonal(2)[:n].mean()


def switched_off(x, n_heads, head):
    parts = x.unflatten(-1, (n_heads, -1)).clone()
    parts[:, head] = parts[:, head].mean(0)
    return parts.flatten(-2)


def shift(T, back):
    return torch.diag(ones(T - back), back)


def ones(n):
    return torch.ones(n, dtype=torch.float64)


def values(W_0, eta, n):
    return eta / n * torch.cat([-W_0, torch.eye(len(W_0), dtype=torch.float64)], 1)


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        ("induction_score", induction),
        ("induction_score", lambda A, n: sum(A[n + i, i + 1] for i in range(1, n + 1)) / n),
        ("head_off", switched_off),
        ("look_back", shift),
        ("value_matrix", values),
    ],
)
def test_circuits_accepts(check, answer, capsys):
    passes(getattr(exercises, check), answer, capsys)


@pytest.mark.parametrize(
    ("check", "wrong", "hint"),
    [
        ("induction_score", lambda A, n: A.diagonal(-n)[1:].mean(), "both indices"),
        ("induction_score", lambda A, n: A.diagonal(1 - n)[2:].mean() if n == 6 else 0.1, "all n tokens"),
        ("head_off", lambda x, n_heads, head: torch.zeros_like(x), "changes another head"),
        ("head_off", lambda x, n_heads, head: x.mean(0).expand(len(x), -1), "changes another head"),
        ("head_off", lambda x, n_heads, head: x, "does not give the mean"),
        ("look_back", lambda T, back: torch.diag(ones(T - back), -back), "W e_0 is not zero"),
        ("look_back", lambda T, back: torch.diag(ones(T - 1), 1), "W e_1 is not zero"),
        ("look_back", lambda T, back: torch.eye(T, dtype=torch.float64).roll(back, 1), "W e_0 is not zero"),
        ("value_matrix", lambda W_0, eta, n: values(0 * W_0, eta, n), "from W_0 other than 0 the attention layer"),
        ("value_matrix", lambda W_0, eta, n: values(-W_0, eta, n), "from W_0 other than 0"),
        ("value_matrix", lambda W_0, eta, n: values(W_0, eta, 1), "from W_0 = 0 the attention layer"),
        ("value_matrix", lambda W_0, eta, n: -values(W_0, eta, n), "uphill"),
        ("value_matrix", lambda W_0, eta, n: values(W_0, eta, n).T, "returned shape"),
    ],
)
def test_circuits_refuses(check, wrong, hint):
    refuses(getattr(exercises, check), wrong, hint)


def test_head_off_refuses_zero():
    def zero(x, n_heads, head):
        parts = x.unflatten(-1, (n_heads, -1)).clone()
        parts[:, head] = 0
        return parts.flatten(-2)

    refuses(exercises.head_off, zero, "head 0 gives zero")


# fast_weights


def solve(keys, values, rate, diagonal=-1, sign=1):
    L = (rate * keys @ keys.T).tril(diagonal)
    return torch.linalg.solve(torch.eye(len(keys), dtype=keys.dtype) + sign * L, rate * values)


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        ("delta_errors", solve),
        ("delta_errors", fast_weights.errors),
        ("ascent_errors", lambda k, v, rate: solve(k, v, rate, sign=-1)),
        ("ascent_errors", lambda k, v, rate: fast_weights.errors(k, -v, -rate)),
    ],
)
def test_fast_weights_accepts(check, answer, capsys):
    passes(getattr(exercises, check), answer, capsys)


@pytest.mark.parametrize(
    ("check", "wrong", "hint"),
    [
        ("delta_errors", lambda k, v, rate: solve(k, v, rate, diagonal=0), "S is still 0"),
        ("delta_errors", lambda k, v, rate: solve(k, v, rate, sign=-1), "look at the diagonal"),
        ("delta_errors", lambda k, v, rate: rate * v, "random inputs differ"),
        ("ascent_errors", solve, "the errors of descent"),
        ("ascent_errors", lambda k, v, rate: solve(k, v, rate, diagonal=0, sign=-1), "S is still 0"),
        ("ascent_errors", lambda k, v, rate: rate * v, "random inputs differ"),
    ],
)
def test_fast_weights_refuses(check, wrong, hint):
    refuses(getattr(exercises, check), wrong, hint)


# joined_pairs


def test_joined_pairs(capsys):
    passes(exercises.joined_pairs, lambda row: torch.cat([row[:-1:2], row[1::2]], dim=1), capsys)
    passes(exercises.joined_pairs, lambda row: row[:-1].reshape(len(row) // 2, -1), capsys)
    refuses(exercises.joined_pairs, lambda row: torch.cat([row[2::2], row[1::2]], dim=1), "the next input")
    refuses(exercises.joined_pairs, lambda row: torch.cat([row[1::2], row[:-1:2]], dim=1), "should be x_i")
    refuses(exercises.joined_pairs, lambda row: torch.cat([row[:-1:2], row[:-1:2]], dim=1), "should be y_i")


# linear_transformer and order_of_learning


def noisy_gamma(covariance, n, noise, power=2, share=1):
    return linear_transformer.gamma(covariance, n) + noise**power / n**share * torch.eye(len(covariance)).double()


def landing_point(covariance, n, k, sign=1):
    inverse = torch.linalg.inv(linear_transformer.gamma(covariance, n))
    return np.sqrt((sign * k + np.sqrt(k**2 + 4 * (inverse @ inverse).trace().item())) / 2)


def half_life(covariance, n, choose=min, moving=True):
    u = linear_transformer.closed_form(covariance, n).W_PV[-1, -1]
    lambda_k, gamma_k = covariance.diagonal(), linear_transformer.gamma(covariance, n).diagonal()
    a, U = gamma_k * lambda_k**2, 1 / (gamma_k * u)
    # Not symmetric, and with the same eigenvalues as the matrix of the solution.
    rates = torch.linalg.eigvals(u**2 * a.diag() + moving * torch.outer(U, a * U)).real
    return np.log(2) / choose(rates.tolist())


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("noisy_gamma", noisy_gamma),
        ("landing_point", landing_point),
        ("step_factor", lambda u, U, g, eta: 1 - eta**2 * (1 - g * u * U) ** 2),
        ("slowest_half_life", half_life),
    ],
)
def test_checks_of_the_flow_accept(name, right, capsys):
    passes(getattr(exercises, name), right, capsys)


@pytest.mark.parametrize(
    ("name", "wrong", "hint"),
    [
        ("noisy_gamma", lambda C, n, s: noisy_gamma(C, n, 1.0), "without noise"),
        ("noisy_gamma", lambda C, n, s: noisy_gamma(C, n, s, share=0), "endless prompts"),
        ("noisy_gamma", lambda C, n, s: noisy_gamma(C, n, s, power=1), "still has a slope"),
        ("landing_point", lambda C, n, k: 1.0, "with imbalance 0"),
        ("landing_point", lambda C, n, k: landing_point(C, n, k, sign=-1), "the flow ends at"),
        ("step_factor", lambda u, U, g, eta: 1 - eta**2, "nothing moves"),
        ("step_factor", lambda u, U, g, eta: 1 - eta * (1 - g * u * U) ** 2, "multiplies the imbalance by"),
        ("slowest_half_life", lambda C, n: half_life(C, n, choose=max), "smallest eigenvalue"),
        ("slowest_half_life", lambda C, n: half_life(C, n, moving=False), "if u stood still"),
    ],
)
def test_checks_of_the_flow_refuse(name, wrong, hint):
    refuses(getattr(exercises, name), wrong, hint)


# several_layers and map_of_the_theory


def two_layers(X, y, x_q, rates, *, update=True, sign=-1.0, mean=True):
    r, r_q = y, 0.0
    for rate in rates:
        gradient = X.T @ r / (len(y) if mean else 1)
        r, r_q = (r - rate * X @ gradient if update else r), r_q - rate * x_q @ gradient
    return sign * r_q


def test_two_layers_accepts_residuals_and_weights(capsys):
    def by_weights(X, y, x_q, rates):
        w = torch.zeros_like(x_q)
        for rate in rates:
            w = w - rate * X.T @ (X @ w - y) / len(y)
        return x_q @ w

    passes(exercises.two_layers, two_layers, capsys)
    passes(exercises.two_layers, by_weights, capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda *given: two_layers(*given, sign=1.0), "sign of what the query collects"),
        (lambda *given: two_layers(*given, mean=False), "divided by"),
        (lambda *given: two_layers(*given, update=False), "second step"),
    ],
)
def test_two_layers_refuses(wrong, hint):
    refuses(exercises.two_layers, wrong, hint)


def test_newton_count(capsys):
    def count(e_0, bound):
        k = 0
        while e_0 ** (2**k) >= bound:
            k += 1
        return k

    passes(exercises.newton_count, count, capsys)
    refuses(exercises.newton_count, lambda e_0, bound: math.ceil(math.log(bound) / math.log(e_0)), "square the error")
    refuses(exercises.newton_count, lambda e_0, bound: count(e_0, bound) + 1, "square the error")


def test_plain_rates(capsys):
    def rates(eta, mu):
        half = (2 + mu) * eta / 2
        root = (half**2 - eta**2) ** 0.5
        return half - root, half + root

    passes(exercises.plain_rates, rates, capsys)
    passes(exercises.plain_rates, lambda eta, mu: rates(eta, mu)[::-1], capsys)
    refuses(exercises.plain_rates, lambda eta, mu: (eta, eta), "add up to")
    refuses(exercises.plain_rates, lambda eta, mu: (eta, (1 + mu) * eta), "product")
    refuses(exercises.plain_rates, lambda eta, mu: (eta,), "two rates")


def test_pool_posterior(capsys):
    def weights(X, y, pool, noise, factor=-2):
        return (((y[:, None] - X @ pool.T) ** 2).sum(0) / (factor * noise**2)).softmax(0)

    passes(exercises.pool_posterior, weights, capsys)
    refuses(exercises.pool_posterior, lambda *given: weights(*given, factor=2), "sign of the exponent")
    refuses(exercises.pool_posterior, lambda *given: weights(*given, factor=-1), "over 2 noise")
    refuses(exercises.pool_posterior, lambda *given: 2 * weights(*given), "add up to 1")


# order


def test_order_variance(capsys):
    def variance(w, v, less=1):
        return ((w - w.mean()) ** 2).sum() * ((v - v.mean()) ** 2).sum() / (len(w) - less)

    passes(exercises.order_variance, variance, capsys)
    passes(exercises.order_variance, lambda w, v: w.var() * v.var() * (len(w) - 1), capsys)
    refuses(exercises.order_variance, lambda w, v: variance(w, v, less=0), "n = 2")
    refuses(exercises.order_variance, lambda w, v: w.var() * (v**2).sum(), "only differences")


def test_fair_rates(capsys):
    passes(exercises.fair_rates, lambda n: [1 / t for t in range(1, n + 1)], capsys)
    passes(exercises.fair_rates, lambda n: [1 / (t + 1) for t in range(1, n + 1)], capsys)
    refuses(exercises.fair_rates, lambda n: [1 / n] * n, "should be equal")
    refuses(exercises.fair_rates, lambda n: [0.0] * n, "not zero")


# wrong_labels


def test_shuffled_share(capsys):
    passes(exercises.shuffled_share, lambda k: 1 - 1 / k, capsys)
    refuses(exercises.shuffled_share, lambda k: 1.0, "mean over all 2 orders")


def test_examples_to_override(capsys):
    passes(exercises.examples_to_override, lambda p, m: math.floor(m / (2 * p - 1) + 1e-9) + 1, capsys)
    refuses(exercises.examples_to_override, lambda p, m: math.ceil(m / (2 * p - 1) - 1e-9), "not to vanish")
    refuses(exercises.examples_to_override, lambda p, m: math.floor(m / p) + 1, "p = 0.75")


# best_values


def projected(dW, keys):
    return (dW @ torch.linalg.pinv(keys)).T


def test_best_values_accepts_two_right_answers(capsys):
    passes(exercises.best_values, projected, capsys)
    passes(exercises.best_values, lambda dW, keys: 3 * torch.linalg.lstsq(keys.T, dW.T).solution, capsys)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda dW, keys: -projected(dW, keys), "should point along dW k"),
        (lambda dW, keys: torch.ones(len(keys), len(dW), dtype=dW.dtype), "should point along dW k"),
        (lambda dW, keys: keys @ dW.T, "project on all of them together"),
        (lambda dW, keys: projected(dW, keys).T, "returned shape"),
    ],
)
def test_best_values_refuses(wrong, hint):
    refuses(exercises.best_values, wrong, hint)


# The verdict


def fewest(spread, difference, quantile=lambda S: student_t.ppf(0.975, S - 1)):
    return next(S for S in range(2, 10_000) if quantile(S) * spread / S**0.5 < difference)


def test_draws_needed(capsys):
    passes(exercises.draws_needed, fewest, capsys)
    refuses(exercises.draws_needed, lambda s, d: fewest(s, d, lambda S: 1.96), "take Student's t")
    refuses(exercises.draws_needed, lambda s, d: fewest(s, d) + 1, "look for the fewest")
    refuses(exercises.draws_needed, lambda s, d: 1, "start with two")


def test_share_of_the_way(capsys):
    passes(exercises.share_of_the_way, lambda f, v, c: (v - f) / (c - f), capsys)
    refuses(exercises.share_of_the_way, lambda f, v, c: v / c, "at the floor should be at 0")
    refuses(exercises.share_of_the_way, lambda f, v, c: v - f, "at the ceiling should be at 1")
    refuses(exercises.share_of_the_way, lambda f, v, c: max(0, (v - f) / (c - f)), "do not clip")


def test_not_excluded(capsys):
    def reach(d):
        return abs(np.mean(d)) + student_t.ppf(0.975, len(d) - 1) * np.std(d, ddof=1) / len(d) ** 0.5

    passes(exercises.not_excluded, reach, capsys)
    refuses(exercises.not_excluded, lambda d: reach(d) - abs(np.mean(d)), "half width alone")
    refuses(exercises.not_excluded, lambda d: abs(reach(d) - abs(np.mean(d)) + np.mean(d)), "lower end")
    refuses(
        exercises.not_excluded,
        lambda d: abs(np.mean(d)) + 1.96 * np.std(d) / len(d) ** 0.5,
        "has S - 1 in its denominator",
    )


def simulated_power(spread, difference, S):
    drawn = np.random.default_rng(0).normal(difference, spread, (40_000, S))
    half = student_t.ppf(0.975, S - 1) * drawn.std(1, ddof=1) / S**0.5
    return (abs(drawn.mean(1)) > half).mean()


def test_power(capsys):
    passes(exercises.power, simulated_power, capsys)
    refuses(exercises.power, lambda s, d, S: float(fewest(s, abs(d) + 1e-3) <= S), "one of twenty|with probability")
    refuses(exercises.power, lambda s, d, S: simulated_power(s, d, S) / 2, "with probability")
    refuses(exercises.power, lambda s, d, S: simulated_power(s, d, S) if d else 0.0, "one of twenty")


def test_core_hours(capsys):
    passes(exercises.core_hours, lambda hours, draws, wanted, c: hours / draws * wanted * c, capsys)
    refuses(exercises.core_hours, lambda hours, draws, wanted, c: hours * wanted * c, "take 40")
    refuses(exercises.core_hours, lambda hours, draws, wanted, c: hours / draws * wanted, "take 200")


# Context or training


def test_question_of(capsys):
    passes(exercises.question_of, lambda W, b: W.T @ b, capsys)
    passes(exercises.question_of, lambda W, b: torch.linalg.pinv(W) @ b, capsys)
    refuses(exercises.question_of, lambda W, b: W @ b, "does not know the way back")
    refuses(exercises.question_of, lambda W, b: 2 * W.T @ b, "not the question")


def test_with_reversals(capsys):
    def both(lesson):
        return [*lesson, *((b, a) for a, b in lesson)]

    passes(exercises.with_reversals, lambda lesson: list(dict.fromkeys(both(lesson))), capsys)
    refuses(exercises.with_reversals, both, "stands there twice")
    refuses(exercises.with_reversals, lambda lesson: [(b, a) for a, b in lesson], "a line of the lesson is missing")
    refuses(exercises.with_reversals, list, "is implied and missing")
    refuses(exercises.with_reversals, lambda lesson: [*dict.fromkeys(both(lesson)), ("a", "b")], "1 of your lines")


def as_long(dW, generator):
    drawn = torch.randn(dW.shape, generator=generator, dtype=dW.dtype)
    return drawn * dW.norm() / drawn.norm()
