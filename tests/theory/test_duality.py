"""explainer.theory.duality against autograd, plain Python loops and torch.optim, in float64."""

import math

import pytest
import torch
from draws import close, randn
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from explainer.theory import duality
from explainer.theory.duality import Adam, GradientDescent, HeavyBall, Nesterov, WeightDecay

N, D_IN, D_OUT, LR, MU, DECAY = 5, 4, 3, 0.05, 0.8, 0.6


W_0, INPUTS, QUERIES = randn(D_OUT, D_IN), randn(N, D_IN, seed=1), randn(7, D_IN, seed=2)

# Each loss: the package's output gradient, and the loss for autograd.
LOSSES = {
    "squared": (
        duality.squared_error_gradient,
        lambda outputs, targets: ((outputs - targets) ** 2).sum() / 2,
    ),
    "cross_entropy": (
        lambda outputs, targets: outputs.softmax(-1) - targets,
        lambda outputs, targets: cross_entropy(outputs, targets, reduction="sum"),
    ),
}
TARGETS = {"squared": randn(N, D_OUT, seed=3), "cross_entropy": randn(N, D_OUT, seed=3).softmax(-1)}
BATCHES = {
    "full": duality.full_batches(N, 12),
    "mini": list(torch.tensor([3, 0, 4, 1, 2, 2, 4, 3, 1, 0]).split(2)),
    "none": [],
}
OPTIMISERS = {
    "gradient_descent": GradientDescent(LR),
    "heavy_ball": HeavyBall(LR, MU),
    "nesterov": Nesterov(LR, MU),
    "weight_decay": WeightDecay(LR, DECAY),
}

each_loss = pytest.mark.parametrize("loss", LOSSES)
each_batching = pytest.mark.parametrize("batches", BATCHES.values(), ids=BATCHES)
each_optimiser = pytest.mark.parametrize("name", OPTIMISERS)


def train(name, loss, batches, inputs=INPUTS, targets=None):
    targets = TARGETS[loss] if targets is None else targets
    return duality.train_linear_layer(W_0, inputs, targets, OPTIMISERS[name], batches, output_gradient=LOSSES[loss][0])


def torch_optim(optimiser, loss, batches, **settings):
    """Train with an optimiser of torch.optim and autograd."""
    W = W_0.clone().requires_grad_()
    optimiser = optimiser([W], lr=LR, **settings)
    for batch in batches:
        optimiser.zero_grad()
        LOSSES[loss][1](INPUTS[batch] @ W.T, TARGETS[loss][batch]).backward()
        optimiser.step()
    return W.detach()


SETTINGS = {
    "gradient_descent": {},
    "heavy_ball": {"momentum": MU},
    "nesterov": {"momentum": MU, "nesterov": True},
    "weight_decay": {"weight_decay": DECAY},
}
"""Of torch.optim.SGD."""


# Part 1. Gradient descent as attention.


def test_linear_attention_is_the_sum_over_pairs():
    values, keys = randn(N, D_OUT), randn(N, D_IN, seed=1)
    expected = sum(torch.outer(keys[i] @ QUERIES.T, values[i]) for i in range(N))
    close(duality.linear_attention(values, keys, QUERIES), expected)


@each_loss
@each_batching
@each_optimiser
def test_trained_weights_match_torch_optim(name, loss, batches):
    W = train(name, loss, batches).W
    if name == "nesterov" and len(batches):
        # torch keeps the point ahead, W_T + mu V_T, and V_T is the last step.
        W = W + MU * (W - train(name, loss, batches[:-1]).W)
    close(W, torch_optim(torch.optim.SGD, loss, batches, **SETTINGS[name]))


@each_loss
@each_batching
@each_optimiser
def test_the_dual_is_exact(name, loss, batches):
    W, dual = train(name, loss, batches)
    close(dual.W_0_factor * W_0 + dual.update(), W)
    attended = duality.linear_attention(dual.weights[:, None] * dual.values, dual.keys, QUERIES)
    close(dual.W_0_factor * QUERIES @ W_0.T + attended, QUERIES @ W.T)
    close(dual.keys, INPUTS[torch.cat([torch.zeros(0, dtype=torch.long), *batches])])


@each_loss
@each_batching
def test_decay_then_step_takes_its_errors_at_the_decayed_weights(loss, batches):
    rule = duality.DecayThenStep(LR, 0.7)
    trained = duality.train_linear_layer(W_0, INPUTS, TARGETS[loss], rule, batches, output_gradient=LOSSES[loss][0])
    W = W_0
    for batch in batches:
        W = (0.7 * W).requires_grad_()
        LOSSES[loss][1](INPUTS[batch] @ W.T, TARGETS[loss][batch]).backward()
        W = (W - LR * W.grad).detach()
    close(trained.W, W)
    close(trained.dual.W_0_factor * W_0 + trained.dual.update(), W)


def test_heavy_ball_weighs_old_steps_more():
    weights = duality.heavy_ball_weights(MU, 6)
    expected = [sum(MU**k for k in range(6 - t)) for t in range(6)]
    close(weights, torch.tensor(expected, dtype=torch.float64))
    assert (weights.diff() < 0).all() and weights[-1] == 1
    close(duality.heavy_ball_weights(0.0, 4), torch.ones(4, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"mu = 1.0 is outside"):
        duality.heavy_ball_weights(1.0, 4)


def test_gradient_descent_diverges_beyond_the_largest_stable_rate_only():
    data = W_0, INPUTS, torch.zeros_like(TARGETS["squared"])

    def size(share):
        rule = GradientDescent(share * duality.largest_stable_rate(INPUTS))
        return duality.train_linear_layer(*data, rule, duality.full_batches(N, 2000)).W.norm()

    assert size(1.01) > 1e6
    assert size(0.99) < W_0.norm()


def test_same_allows_rounding_and_errors_are_relative():
    a = torch.tensor([1.0, 1e6], dtype=torch.float64)
    assert duality.same(a + 1e-12, a)
    assert duality.same(a + torch.tensor([1.9e-10, 9e-5]), a)  # 1e-10 (1 + |b|) is 2e-10 and 1e-4
    assert not any(duality.same(a + torch.tensor(error), a) for error in ([2.2e-10, 0.0], [0.0, 1.1e-4]))
    exact = torch.tensor([3.0, 4.0], dtype=torch.float64)
    assert duality.relative_error(exact + torch.tensor([0.0, 0.5]), exact) == pytest.approx(0.1)


# Part 2. Where the outer-product form is lost.


def train_adam(loss, batches):
    return duality.train_linear_layer_adam(
        W_0, INPUTS, TARGETS[loss], Adam(LR), batches, output_gradient=LOSSES[loss][0]
    )


@each_loss
@each_batching
def test_adam_matches_torch_optim(loss, batches):
    close(train_adam(loss, batches).W, torch_optim(torch.optim.Adam, loss, batches))


def test_adam_loses_the_outer_product_form():
    n, d_out, d_in = 3, 8, 10
    W, inputs, targets = randn(d_out, d_in), randn(n, d_in, seed=1), randn(n, d_out, seed=2)
    trained = duality.train_linear_layer_adam(W, inputs, targets, Adam(LR), duality.full_batches(n, 40))
    # Even 120 pairs do not span the 80 entries, because all keys lie in the span of the three inputs.
    fit = duality.fit_outer_products(trained.W - W, trained.values, trained.keys)
    assert fit.relative_residual > 0.2
    trained = duality.train_linear_layer_adam(W, inputs, targets, Adam(LR), duality.full_batches(n, 1))
    fit = duality.fit_outer_products(trained.W - W, trained.values, trained.keys)
    assert fit.relative_residual > 0.2
    assert (fit.gradient_rank, fit.update_rank) == (n, min(d_out, d_in))
    # What is left of one step: a kernel per output neuron, with that neuron's row of the preconditioner.
    P = (trained.W - W) / duality.gradient_descent_update(trained.values, trained.keys)
    queries = randn(4, d_in, seed=5)
    kernels = torch.einsum("jc,rc,mc->rmj", trained.keys, P, queries)
    close(torch.einsum("rmj,jr->mr", kernels, trained.values), queries @ (trained.W - W).T)


def test_the_fit_recovers_the_weights_of_heavy_ball():
    inputs, targets, W = randn(2, 10, seed=1), randn(2, 8, seed=2), randn(8, 10)
    # Mini-batches of one in three steps: three outer products, linearly independent in 80 entries.
    batches = [torch.tensor([0]), torch.tensor([1]), torch.tensor([0])]
    W_T, dual = duality.train_linear_layer(W, inputs, targets, HeavyBall(LR, MU), batches)
    fit = duality.fit_outer_products(W_T - W, dual.values[:2], dual.keys[:2])
    assert fit.relative_residual > 1e-3
    fit = duality.fit_outer_products(W_T - W, dual.values, dual.keys)
    assert fit.relative_residual < 1e-12
    assert fit.update_rank == fit.gradient_rank == 2
    rebuilt = duality.gradient_descent_update(fit.weights[:, None] * dual.values, dual.keys)
    close(rebuilt, W_T - W)


# Part 3. Attention as a weight update.


@st.composite
def attention_problems(draw):
    d, d_v, T = (draw(st.integers(1, 6)) for _ in range(3))
    n = draw(st.integers(0, T))
    seed, largest_logit = draw(st.integers(0, 10**6)), draw(st.just(0.0) | st.floats(1e-6, 1e3))
    query, keys, values = randn(d, seed=seed), randn(T, d, seed=seed + 1), randn(T, d_v, seed=seed + 2)
    logits = duality.scaled_logits(query, keys)
    return query, keys * largest_logit / logits.abs().max().clamp(min=1e-6), values, n


@given(attention_problems())
@settings(deadline=None)
def test_the_split_of_attention_is_exact(problem):
    query, keys, values, n = problem
    split = duality.split_attention(*problem)
    close(split.attention, duality.softmax_attention(query, keys, values))
    close((1 - split.gate) * split.zero_shot + split.gate * split.demonstrations, split.attention)
    assert 0 <= split.gate <= 1
    mass = scaled_dot_product_attention(query[None], keys, torch.eye(len(keys), dtype=torch.float64))[0, :n].sum()
    close(split.gate, mass)
    close((split.W_zsl + split.delta_W_icl) @ query, duality.relaxed_attention(query, keys, values))
    close(split.W_zsl @ query, duality.relaxed_attention(query, keys[n:], values[n:]))
    assert torch.linalg.matrix_rank(split.delta_W_icl) <= min(n, len(query), values.shape[1])


def test_a_split_with_an_empty_part():
    query, keys, values = randn(4), randn(7, 4, seed=1), randn(7, 3, seed=2)
    for n, gate, whole, empty in ((0, 0, "zero_shot", "demonstrations"), (7, 1, "demonstrations", "zero_shot")):
        split = duality.split_attention(query, keys, values, n)
        assert split.gate == gate and not getattr(split, empty).any()
        close(getattr(split, whole), split.attention)


def test_the_dual_form_with_the_numbers_of_the_gradient_step():
    """Error signal as value, past input as key and new input as query: both chapters arrive at (3, 2)."""
    W_0, x_1, y_1 = (torch.tensor(each).double() for each in ([[1, 0, -1], [0, 2, 1]], [1, -1, 1], [4, -3]))
    x = torch.tensor([2, 1, 1]).double()
    e_1 = -(W_0 @ x_1 - y_1) / 4
    keys, values = torch.stack([x_1, *W_0]), torch.stack([e_1, *torch.eye(2).double()])
    split = duality.split_attention(x, keys, values, 1)
    assert torch.equal(split.W_zsl, W_0)
    assert torch.equal(split.delta_W_icl, torch.outer(e_1, x_1))
    step = duality.train_linear_layer(W_0, x_1[None], y_1[None], GradientDescent(1 / 4), duality.full_batches(1, 1))
    assert (step.W @ x).tolist() == ((split.W_zsl + split.delta_W_icl) @ x).tolist() == [3, 2]
    assert duality.softmax_attention(x, keys, values).tolist() == pytest.approx([0.467, 0.383], abs=1e-3)


# Part 4. How far the relaxed form is from softmax.

T, D, D_V = 12, 6, 4
HEAD = (randn(5, D, seed=6), randn(T, D, seed=7), randn(T, D_V, seed=8))


@pytest.mark.parametrize("scale", [None, 0.1, 1.0])
def test_softmax_attention_is_torch_attention_and_a_kernel_average(scale):
    expected = scaled_dot_product_attention(*HEAD, scale=scale)
    close(duality.softmax_attention(*HEAD, scale), expected)
    close(duality.softmax_kernel_dual(*HEAD, scale), expected)
    queries, keys, values = HEAD
    close(duality.softmax_attention(queries[2], keys, values, scale), expected[2])
    close(duality.softmax_kernel_dual(queries[2], keys, values, scale), expected[2])


@pytest.mark.parametrize("scale", [None, 0.7])
def test_centred_linear_attention_is_the_derivative_of_softmax_attention_at_zero(scale):
    queries, keys, values = HEAD
    _, slope = torch.autograd.functional.jvp(
        lambda q: duality.softmax_attention(q, keys, values, scale), torch.zeros_like(queries), queries
    )
    close(duality.centred_linear_attention(*HEAD, scale), values.mean(0) + slope)


def test_taylor_features_are_the_truncated_exponential_series():
    x, y = randn(3, 4) / 2, randn(5, 4, seed=1) / 2
    kernel = duality.taylor_features(x, 3) @ duality.taylor_features(y, 3).T
    dots = x @ y.T
    close(kernel, 1 + dots + dots**2 / 2 + dots**3 / 6)
    assert duality.taylor_features(x, 3).shape == (3, 1 + 4 + 16 + 64)
    close(duality.taylor_features(x, 0), torch.ones(3, 1, dtype=torch.float64))


def test_random_feature_attention_is_the_ratio_of_linear_attentions():
    queries, keys, values = HEAD
    w, root = randn(32, D), D**-0.25
    phi_Q, phi_K = ((root * x @ w.T - (root * x).square().sum(1, keepdim=True) / 2).exp() for x in (queries, keys))
    weights = phi_Q @ phi_K.T
    close(duality.random_feature_attention(*HEAD, w), weights @ values / weights.sum(1, keepdim=True))
    large = duality.random_feature_attention(*(x.float() for x in HEAD), w.float(), scale=100.0)
    assert large.isfinite().all(), "where every feature of float32 would be zero"


def test_logit_spread():
    queries, keys, _ = HEAD
    logits = duality.scaled_logits(queries, keys)
    close(logits, queries @ keys.T / math.sqrt(D))
    mean = sum(logits.unbind(1)) / T
    close(duality.logit_spread(queries, keys), (sum((column - mean) ** 2 for column in logits.unbind(1)) / T).sqrt())
    close(duality.logit_spread(queries[0], keys, scale=2.0), 2 * math.sqrt(D) * duality.logit_spread(queries[0], keys))
