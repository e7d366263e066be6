"""explainer.theory.duality against autograd, plain Python loops and torch.optim, in float64."""

import importlib
import itertools
import math
import sys

import jaxtyping
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from explainer.errors import ShapeError
from explainer.theory import duality
from explainer.theory.duality import Adam, GradientDescent, HeavyBall, Nesterov, WeightDecay

N, D_IN, D_OUT, LR, MU, DECAY = 5, 4, 3, 0.05, 0.8, 0.6


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def close(actual, expected, tolerance=1e-12):
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


W_0, INPUTS, QUERIES = randn(D_OUT, D_IN), randn(N, D_IN, seed=1), randn(7, D_IN, seed=2)

# Each loss: the package's output gradient, the loss for autograd, the output gradient of one example on lists.
LOSSES = {
    "squared": (
        duality.squared_error_gradient,
        lambda outputs, targets: ((outputs - targets) ** 2).sum() / 2,
        lambda o, y: [o_r - y_r for o_r, y_r in zip(o, y, strict=True)],
    ),
    "cross_entropy": (
        duality.cross_entropy_gradient,
        lambda outputs, targets: cross_entropy(outputs, targets, reduction="sum"),
        lambda o, y: [math.exp(o_r) / sum(map(math.exp, o)) - y_r for o_r, y_r in zip(o, y, strict=True)],
    ),
}
TARGETS = {"squared": randn(N, D_OUT, seed=3), "cross_entropy": randn(N, D_OUT, seed=3).softmax(-1)}
BATCHES = {
    "full": duality.full_batches(N, 12),
    "mini": duality.mini_batches(N, batch_size=2, epochs=4, seed=0),
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


def torch_optim(make, loss, batches):
    """Train with a torch.optim optimiser and autograd."""
    W = W_0.clone().requires_grad_()
    optimiser = make([W])
    for batch in batches:
        optimiser.zero_grad()
        LOSSES[loss][1](INPUTS[batch] @ W.T, TARGETS[loss][batch]).backward()
        optimiser.step()
    return W.detach()


def plain_gradient(W, loss, batch):
    """The gradient of the summed loss at W, on lists."""
    X, Y, gradient = INPUTS.tolist(), TARGETS[loss].tolist(), [[0.0] * D_IN for _ in range(D_OUT)]
    for i in batch.tolist():
        error = LOSSES[loss][2]([sum(w * x for w, x in zip(row, X[i], strict=True)) for row in W], Y[i])
        for r, c in itertools.product(range(D_OUT), range(D_IN)):
            gradient[r][c] += error[r] * X[i][c]
    return gradient


def plain_loop(rule, loss, batches):
    """Train entry by entry; `rule(w, v, gradient here, gradient ahead)` returns the next w and velocity v."""
    W, V = W_0.tolist(), torch.zeros_like(W_0).tolist()
    for batch in batches:
        ahead = [[w + MU * v for w, v in zip(*rows, strict=True)] for rows in zip(W, V, strict=True)]
        here, there = plain_gradient(W, loss, batch), plain_gradient(ahead, loss, batch)
        for r, c in itertools.product(range(D_OUT), range(D_IN)):
            W[r][c], V[r][c] = rule(W[r][c], V[r][c], here[r][c], there[r][c])
    return torch.tensor(W, dtype=torch.float64)


def plain_adam_loop(loss, batches):
    """Train entry by entry with Adam at its default rates."""
    W, M, S = W_0.tolist(), torch.zeros_like(W_0).tolist(), torch.zeros_like(W_0).tolist()
    for t, batch in enumerate(batches, start=1):
        g = plain_gradient(W, loss, batch)
        for r, c in itertools.product(range(D_OUT), range(D_IN)):
            M[r][c] = 0.9 * M[r][c] + 0.1 * g[r][c]
            S[r][c] = 0.999 * S[r][c] + 0.001 * g[r][c] ** 2
            W[r][c] -= LR * M[r][c] / (1 - 0.9**t) / (math.sqrt(S[r][c] / (1 - 0.999**t)) + 1e-8)
    return torch.tensor(W, dtype=torch.float64)


def heavy_ball_rule(w, v, here, _):
    v = MU * v - LR * here
    return w + v, v


def nesterov_rule(w, v, _, there):
    v = MU * v - LR * there
    return w + v, v


PLAIN_RULES = {
    "gradient_descent": lambda w, v, here, _: (w - LR * here, v),
    "heavy_ball": heavy_ball_rule,
    "nesterov": nesterov_rule,
    "weight_decay": lambda w, v, here, _: (w - LR * (here + DECAY * w), v),
}
TORCH_OPTIMISERS = {
    "gradient_descent": lambda p: torch.optim.SGD(p, lr=LR),
    "heavy_ball": lambda p: torch.optim.SGD(p, lr=LR, momentum=MU),
    "nesterov": lambda p: torch.optim.SGD(p, lr=LR, momentum=MU, nesterov=True),
    "weight_decay": lambda p: torch.optim.SGD(p, lr=LR, weight_decay=DECAY),
}


# Part 1. Gradient descent as attention.


def test_linear_attention_is_the_sum_over_pairs():
    values, keys = randn(N, D_OUT), randn(N, D_IN, seed=1)
    expected = [
        [
            sum(values[i, r].item() * sum(keys[i, c].item() * q[c].item() for c in range(D_IN)) for i in range(N))
            for r in range(D_OUT)
        ]
        for q in QUERIES
    ]
    close(duality.linear_attention(values, keys, QUERIES), torch.tensor(expected, dtype=torch.float64))


@each_loss
def test_one_step_is_the_sum_of_outer_products(loss):
    output_gradient, scalar_loss, _ = LOSSES[loss]
    W = W_0.clone().requires_grad_()
    scalar_loss(INPUTS @ W.T, TARGETS[loss]).backward()
    errors = -LR * output_gradient(INPUTS @ W_0.T, TARGETS[loss])
    update = duality.gradient_descent_update(errors, INPUTS)
    close(update, -LR * W.grad)
    close(QUERIES @ (W_0 + update).T, QUERIES @ W_0.T + duality.linear_attention(errors, INPUTS, QUERIES))


@each_loss
@each_batching
@each_optimiser
def test_trained_weights_match_a_plain_loop_and_torch_optim(name, loss, batches):
    W = train(name, loss, batches).W
    close(W, plain_loop(PLAIN_RULES[name], loss, batches))
    if name == "nesterov" and len(batches):
        # torch keeps the point ahead, W_T + mu V_T, and V_T is the last step.
        W = W + MU * (W - train(name, loss, batches[:-1]).W)
    close(W, torch_optim(TORCH_OPTIMISERS[name], loss, batches))


@each_loss
@each_batching
@each_optimiser
def test_the_dual_is_exact(name, loss, batches):
    W, dual = train(name, loss, batches)
    rebuilt = dual.W_0_factor * W_0
    for value, key, weight in zip(dual.values, dual.keys, dual.weights, strict=True):
        rebuilt = rebuilt + weight * torch.outer(value, key)
    close(rebuilt, W)
    close(duality.dual_prediction(dual, W_0, QUERIES), QUERIES @ W.T)
    close(dual.keys, INPUTS[torch.cat([torch.zeros(0, dtype=torch.long), *batches])])


@each_loss
def test_each_error_is_taken_at_the_weights_of_its_step(loss):
    dual = train("nesterov", loss, BATCHES["full"]).dual
    W_1, W_2 = (train("nesterov", loss, BATCHES["full"][:t]).W for t in (1, 2))
    ahead = W_2 + MU * (W_2 - W_1)
    close(dual.values[2 * N : 3 * N], -LR * LOSSES[loss][0](INPUTS @ ahead.T, TARGETS[loss]))


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


def test_training_keeps_the_dtype():
    W, dual = duality.train_linear_layer(
        W_0.float(), INPUTS.float(), TARGETS["squared"].float(), HeavyBall(LR, MU), BATCHES["mini"]
    )
    assert {W.dtype, dual.values.dtype, dual.keys.dtype, dual.weights.dtype} == {torch.float32}


def test_mini_batches_show_every_example_once_per_epoch_in_a_new_order():
    batches = duality.mini_batches(5, batch_size=2, epochs=3, seed=4)
    assert [len(batch) for batch in batches] == [2, 2, 1] * 3
    epochs = [torch.cat(batches[i : i + 3]).tolist() for i in (0, 3, 6)]
    assert all(sorted(epoch) == [0, 1, 2, 3, 4] for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1
    again = duality.mini_batches(5, batch_size=2, epochs=3, seed=4)
    assert all(torch.equal(a, b) for a, b in zip(batches, again, strict=True))


@each_loss
@each_optimiser
def test_full_batches_ignore_the_order_of_the_examples(name, loss):
    order = torch.tensor([3, 0, 4, 1, 2])
    permuted = train(name, loss, BATCHES["full"], INPUTS[order], TARGETS[loss][order])
    close(permuted.W, train(name, loss, BATCHES["full"]).W)


def test_batches_of_one_depend_on_the_order_of_the_examples():
    one_by_one = list(torch.arange(N).split(1))
    forward, backward = (train("gradient_descent", "squared", batches).W for batches in (one_by_one, one_by_one[::-1]))
    assert duality.relative_error(backward, forward) > 1e-3


def test_heavy_ball_weighs_old_steps_more():
    weights = duality.heavy_ball_weights(MU, 6)
    expected = [sum(MU**k for k in range(6 - t)) for t in range(6)]
    close(weights, torch.tensor(expected, dtype=torch.float64))
    assert (weights.diff() < 0).all() and weights[-1] == 1
    close(duality.heavy_ball_weights(0.0, 4), torch.ones(4, dtype=torch.float64))


def test_the_last_heavy_ball_update_weighs_recent_steps_more():
    batches = BATCHES["full"]
    W, dual = train("heavy_ball", "squared", batches)
    recency = MU ** torch.arange(len(batches) - 1, -1, -1, dtype=torch.float64).repeat_interleave(N)
    last = duality.gradient_descent_update(recency[:, None] * dual.values, dual.keys)
    close(last, W - train("heavy_ball", "squared", batches[:-1]).W)


@pytest.mark.parametrize("mu", [-0.1, 1.0, 1.5])
def test_heavy_ball_weights_refuse_momentum_outside_the_unit_interval(mu):
    with pytest.raises(ValueError, match=f"mu = {mu}"):
        duality.heavy_ball_weights(mu, 3)


@each_loss
def test_frozen_errors_are_right_for_one_step_and_wrong_for_more(loss):
    output_gradient = LOSSES[loss][0]

    def error(steps):
        exact = train("gradient_descent", loss, duality.full_batches(N, steps)).W - W_0
        frozen = duality.frozen_errors_update(
            W_0, INPUTS, TARGETS[loss], lr=LR, steps=steps, output_gradient=output_gradient
        )
        return duality.relative_error(frozen, exact)

    assert error(1) < 1e-12
    assert 0.01 < error(2) < error(5) < error(20)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_the_judge_and_the_dual_rebuild_the_same_update(name):
    batches = duality.full_batches(N, 6)
    W, dual = train(name, "squared", batches)
    close(dual.W_0_factor * W_0 + dual.update(), W)
    settings = {"gradient_descent": {}, "heavy_ball": {"momentum": MU}, "weight_decay": {"weight_decay": DECAY}}
    if name in settings:  # PyTorch stores Nesterov's point ahead
        data = W_0, INPUTS, TARGETS["squared"]
        close(duality.train_with_torch(*data, torch.optim.SGD, 6, lr=LR, **settings[name]), W)


def test_gradient_descent_diverges_beyond_the_largest_stable_rate_only():
    data = W_0, INPUTS, torch.zeros_like(TARGETS["squared"])

    def size(share):
        rule = GradientDescent(share * duality.largest_stable_rate(INPUTS))
        return duality.train_linear_layer(*data, rule, duality.full_batches(N, 2000)).W.norm()

    assert size(1.01) > 1e6
    assert size(0.99) < W_0.norm()


def test_random_layer_is_the_same_for_the_same_seed():
    layer, again, other = (duality.random_layer(3, 5, 2, seed) for seed in (0, 0, 1))
    assert [tuple(part.shape) for part in layer] == [(2, 5), (3, 5), (3, 2), (5, 5)]
    assert layer.W_0.dtype == torch.float64
    assert all(torch.equal(a, b) for a, b in zip(layer, again, strict=True))
    assert not torch.equal(layer.inputs, other.inputs)


def test_same_allows_rounding_and_no_broadcasting():
    a = torch.tensor([1.0, 1e6], dtype=torch.float64)
    assert duality.same(a + 1e-12, a)
    assert not duality.same(a + torch.tensor([1e-9, 0.0]), a)
    with pytest.raises(ShapeError):
        duality.same(a, a[:1])


def test_relative_error():
    exact = torch.tensor([3.0, 4.0], dtype=torch.float64)
    assert duality.relative_error(exact + torch.tensor([0.0, 0.5]), exact) == pytest.approx(0.1)
    with pytest.raises(ShapeError, match=r"\(1,\)"):
        duality.relative_error(exact[:1], exact)
    with pytest.raises(ValueError, match="zero"):
        duality.relative_error(exact, torch.zeros_like(exact))


# Part 2. Where the outer-product form is lost.


def train_adam(loss, batches):
    return duality.train_linear_layer_adam(
        W_0, INPUTS, TARGETS[loss], Adam(LR), batches, output_gradient=LOSSES[loss][0]
    )


@each_loss
@each_batching
def test_adam_matches_a_plain_loop_and_torch_optim(loss, batches):
    W = train_adam(loss, batches).W
    close(W, plain_adam_loop(loss, batches))
    close(W, torch_optim(lambda p: torch.optim.Adam(p, lr=LR), loss, batches))


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


def test_the_parts_of_the_split_are_attention_over_their_own_rows():
    query, keys, values = randn(4), randn(7, 4, seed=1), randn(7, 3, seed=2)
    split = duality.split_attention(query, keys, values, 5)
    close(split.demonstrations, duality.softmax_attention(query, keys[:5], values[:5]))
    close(split.zero_shot, duality.softmax_attention(query, keys[5:], values[5:]))
    close(split.delta_W_icl, sum(torch.outer(v, k) for v, k in zip(values[:5], keys[:5], strict=True)))
    close(split.W_zsl, sum(torch.outer(v, k) for v, k in zip(values[5:], keys[5:], strict=True)))


def test_a_split_with_an_empty_part():
    query, keys, values = randn(4), randn(7, 4, seed=1), randn(7, 3, seed=2)
    nothing = torch.zeros(3, dtype=torch.float64)
    no_demonstrations = duality.split_attention(query, keys, values, 0)
    assert no_demonstrations.gate == 0
    close(no_demonstrations.zero_shot, no_demonstrations.attention)
    close(no_demonstrations.demonstrations, nothing)
    close(no_demonstrations.delta_W_icl, torch.zeros(3, 4, dtype=torch.float64))
    only_demonstrations = duality.split_attention(query, keys, values, 7)
    assert only_demonstrations.gate == 1
    close(only_demonstrations.demonstrations, only_demonstrations.attention)
    close(only_demonstrations.zero_shot, nothing)


@pytest.mark.parametrize(("T", "n"), [(7, 8), (7, -1), (0, 0)])
def test_a_split_outside_the_tokens_is_refused(T, n):
    with pytest.raises(ValueError, match=f"n_demonstrations = {n} with {T} tokens"):
        duality.split_attention(randn(4), randn(T, 4), randn(T, 3), n)


@pytest.mark.parametrize(("n", "d", "d_v"), [(2, 5, 4), (9, 5, 4), (9, 3, 4), (0, 3, 4)])
def test_the_rank_of_the_implicit_update(n, d, d_v):
    split = duality.split_attention(randn(d), randn(n + 1, d, seed=1), randn(n + 1, d_v, seed=2), n)
    assert torch.linalg.matrix_rank(split.delta_W_icl) == min(n, d, d_v)


def one_step_on_a_text(n, m):
    """(dW_K, dW_V, dW_FT) of one gradient step of attention without softmax on n tokens, for a query of m tokens."""
    W_K, W_V = randn(9, 12).requires_grad_(), randn(8, 12, seed=1).requires_grad_()
    text, queries, X = randn(12, n, seed=2), randn(9, n, seed=3), randn(12, m, seed=4)
    outputs = W_V @ text @ torch.triu((W_K @ text).T @ queries)  # causal: no later token is read
    ((outputs - randn(8, n, seed=5)) ** 2).sum().backward()
    with torch.no_grad():
        dW_K, dW_V = -W_K.grad / 100, -W_V.grad / 100
        return dW_K, dW_V, (W_V + dW_V) @ X @ ((W_K + dW_K) @ X).T - W_V @ X @ (W_K @ X).T


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 4), (2, 4), (3, 1), (6, 2), (4, 4)])
def test_the_rank_of_a_step_is_bounded_by_its_tokens_and_that_of_dW_FT_by_twice_the_smaller_number(n, m):
    rank = [torch.linalg.matrix_rank(each, rtol=1e-9).item() for each in one_step_on_a_text(n, m)]
    assert rank == [n, n, min(2 * n, 2 * m, 8)]


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


def test_relaxed_attention_is_linear_attention():
    queries, keys, values = HEAD
    close(duality.relaxed_attention(*HEAD), duality.linear_attention(values, keys, queries))


def test_mean_value_is_attention_at_zero_logits():
    queries, keys, values = HEAD
    close(duality.mean_value(values), duality.softmax_attention(0 * queries[0], keys, values))


@pytest.mark.parametrize("scale", [None, 0.7])
def test_centred_linear_attention_is_the_derivative_of_softmax_attention_at_zero(scale):
    queries, keys, values = HEAD
    _, slope = torch.autograd.functional.jvp(
        lambda q: duality.softmax_attention(q, keys, values, scale), torch.zeros_like(queries), queries
    )
    close(duality.centred_linear_attention(*HEAD, scale), duality.mean_value(values) + slope)


def test_the_error_of_the_centred_expansion_is_of_second_order():
    queries, keys, values = HEAD
    sizes = [2.0**-k for k in range(5, 10)]
    errors = [
        (
            duality.centred_linear_attention(size * queries, keys, values)
            - duality.softmax_attention(size * queries, keys, values)
        ).norm()
        for size in sizes
    ]
    slopes = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert slopes == pytest.approx([2] * 4, abs=0.1)


def test_taylor_features_are_the_truncated_exponential_series():
    x, y = randn(3, 4) / 2, randn(5, 4, seed=1) / 2
    kernel = duality.taylor_features(x, 3) @ duality.taylor_features(y, 3).T
    dots = x @ y.T
    close(kernel, 1 + dots + dots**2 / 2 + dots**3 / 6)
    assert duality.taylor_features(x, 3).shape == (3, 1 + 4 + 16 + 64)
    close(duality.taylor_features(x, 0), torch.ones(3, 1, dtype=torch.float64))


def test_softmax_attention_is_normalised_linear_attention_on_features():
    queries, keys, values = HEAD
    root = D**-0.25 / 3
    phi_Q, phi_K = (duality.taylor_features(root * x, 7) for x in (queries, keys))
    attention = duality.normalised_linear_attention(values, phi_K, phi_Q)
    close(attention, duality.softmax_attention(*HEAD, scale=root**2), tolerance=1e-8)


def test_orthogonal_projections_are_orthogonal_in_blocks_with_free_lengths():
    w = duality.orthogonal_projections(10, 4, seed=0)
    assert w.shape == (10, 4)
    for block in w.split(4):
        gram = block @ block.T
        close(gram - gram.diagonal().diag(), torch.zeros_like(gram))
    assert w.norm(dim=1).std() > 0.1
    assert torch.equal(w, duality.orthogonal_projections(10, 4, seed=0))
    assert not torch.equal(w, duality.orthogonal_projections(10, 4, seed=1))


def within_three_standard_errors(draws, expected):
    return (draws.mean(0) - expected).abs() <= 3 * draws.std(0) / math.sqrt(len(draws))


def test_each_orthogonal_projection_is_standard_normal():
    d = 3
    # Blocks are independent, so block b gives one draw of each moment.
    blocks = duality.orthogonal_projections(20_000 * d, d, seed=1).reshape(-1, d, d)
    assert within_three_standard_errors(blocks, 0.0).all()
    assert within_three_standard_errors(torch.einsum("bri,brj->brij", blocks, blocks), torch.eye(d)).all()


@pytest.mark.parametrize("orthogonal", [False, True])
def test_positive_random_features_are_unbiased(orthogonal):
    d, n_draws = 4, 20_000
    x, y = randn(1, d, seed=1) / 2, randn(1, d, seed=2) / 2
    w = duality.orthogonal_projections(n_draws * d, d, seed=3) if orthogonal else randn(n_draws * d, d, seed=3)
    products = len(w) * duality.positive_random_features(x, w) * duality.positive_random_features(y, w)
    assert (products > 0).all()
    blocks = products.reshape(n_draws, d).mean(1)
    assert within_three_standard_errors(blocks, (x @ y.T).exp().squeeze())
    # The bound can fail: three standard errors are a small part of the kernel.
    assert 3 * blocks.std() / math.sqrt(n_draws) < 0.05


def test_random_features_of_vectors_over_the_fourth_root_of_d_estimate_the_kernel_of_softmax():
    """kappa(k, q) = exp(k . q / sqrt(d)) needs the factor d^(-1/4) on both; without it they estimate exp(k . q)."""
    d, n_draws = 16, 200_000
    k, q, w = randn(1, d, seed=1) / 4, randn(1, d, seed=2) / 4, randn(n_draws, d, seed=3)
    k = k + q / 2  # so that the two kernels differ
    estimates = {}
    for factor in (d**-0.25, 1.0):
        phi_k, phi_q = (duality.positive_random_features(factor * x, w) for x in (k, q))
        estimates[factor] = n_draws * (phi_k * phi_q)[0]
    kernel = duality.scaled_logits(q, k).exp().squeeze()
    assert within_three_standard_errors(estimates[d**-0.25], kernel)
    assert within_three_standard_errors(estimates[1.0], (k @ q.T).exp().squeeze())
    assert not within_three_standard_errors(estimates[1.0], kernel)


def test_the_error_of_random_feature_attention_falls_with_the_root_of_the_features():
    exact = duality.softmax_attention(*HEAD, scale=0.05)

    def error(n_features):
        draws = (duality.orthogonal_projections(n_features, D, seed) for seed in range(16))
        errors = [duality.random_feature_attention(*HEAD, w, scale=0.05) - exact for w in draws]
        return torch.stack(errors).square().mean().sqrt()

    assert error(64) / error(4096) == pytest.approx(math.sqrt(4096 / 64), rel=0.3)


def test_random_feature_attention_is_the_ratio_of_linear_attentions():
    queries, keys, values = HEAD
    w, root = duality.orthogonal_projections(32, D, seed=0), D**-0.25
    phi_Q, phi_K = (duality.positive_random_features(root * x, w) for x in (queries, keys))
    weights = phi_Q @ phi_K.T
    close(duality.random_feature_attention(*HEAD, w), weights @ values / weights.sum(1, keepdim=True))


def test_random_feature_attention_survives_large_norms_in_float32():
    queries, keys, values = (x.float() for x in HEAD)
    w = duality.orthogonal_projections(32, D, seed=0).float()
    naive = duality.positive_random_features(10 * keys, w) @ duality.positive_random_features(10 * queries, w).T
    assert (naive.sum(0) == 0).any()
    assert duality.random_feature_attention(queries, keys, values, w, scale=100.0).isfinite().all()


def test_logit_spread_and_effective_tokens():
    queries, keys, _ = HEAD
    logits = duality.scaled_logits(queries, keys)
    close(logits, queries @ keys.T / math.sqrt(D))
    mean = sum(logits.unbind(1)) / T
    close(duality.logit_spread(queries, keys), (sum((column - mean) ** 2 for column in logits.unbind(1)) / T).sqrt())
    close(duality.logit_spread(queries[0], keys, scale=2.0), 2 * math.sqrt(D) * duality.logit_spread(queries[0], keys))
    assert duality.effective_tokens(torch.full((8,), 1 / 8)) == pytest.approx(8)
    close(duality.effective_tokens(torch.tensor([[0.0, 1.0], [0.5, 0.5]])), torch.tensor([1.0, 2.0]), tolerance=1e-6)


# Shapes.

A, B, C, OFF = randn(5, 3), randn(5, 4), randn(2, 4), randn(9, 9)
WRONG_SHAPES = {
    "linear_attention": lambda: duality.linear_attention(A, OFF, C),
    "linear_attention_queries": lambda: duality.linear_attention(A, B, OFF),
    "linear_attention_vector": lambda: duality.linear_attention(A, B, randn(9)),
    "gradient_descent_update": lambda: duality.gradient_descent_update(A, OFF),
    "squared_error_gradient": lambda: duality.squared_error_gradient(A, OFF),
    "cross_entropy_gradient": lambda: duality.cross_entropy_gradient(A, OFF),
    "train_linear_layer": lambda: duality.train_linear_layer(randn(3, 4), B, OFF, GradientDescent(LR), []),
    "train_linear_layer_adam": lambda: duality.train_linear_layer_adam(OFF, B, A, Adam(LR), []),
    "frozen_errors_update": lambda: duality.frozen_errors_update(randn(3, 4), OFF, A, lr=LR, steps=2),
    "dual_prediction": lambda: duality.dual_prediction(duality.Dual(A, B, randn(5), 1.0), randn(3, 4), OFF),
    "fit_outer_products": lambda: duality.fit_outer_products(OFF, A, B),
    "split_attention": lambda: duality.split_attention(randn(9), B, A, 2),
    "scaled_logits": lambda: duality.scaled_logits(OFF, B),
    "softmax_attention": lambda: duality.softmax_attention(C, B, OFF),
    "softmax_kernel_dual": lambda: duality.softmax_kernel_dual(C, OFF, A),
    "train_with_torch": lambda: duality.train_with_torch(A, OFF, C, torch.optim.SGD, 1, lr=LR),
    "relaxed_attention": lambda: duality.relaxed_attention(C, B, OFF),
    "mean_value": lambda: duality.mean_value(randn(9)),
    "centred_linear_attention": lambda: duality.centred_linear_attention(OFF, B, A),
    "normalised_linear_attention": lambda: duality.normalised_linear_attention(A, OFF, C),
    "taylor_features": lambda: duality.taylor_features(randn(9), 2),
    "positive_random_features": lambda: duality.positive_random_features(B, OFF),
    "random_feature_attention": lambda: duality.random_feature_attention(C, B, A, OFF),
    "logit_spread": lambda: duality.logit_spread(OFF, B),
}


@pytest.mark.parametrize("call", WRONG_SHAPES.values(), ids=WRONG_SHAPES)
def test_a_wrong_shape_is_named(call):
    with pytest.raises(ShapeError, match=r"\(9,(?: 9)?\)"):
        call()


@pytest.fixture
def checked():
    """A second copy of the module whose annotations are checked at every call."""
    original = sys.modules.pop("explainer.theory.duality")
    with jaxtyping.install_import_hook("explainer.theory.duality", "beartype.beartype"):
        module = importlib.import_module("explainer.theory.duality")
    yield module
    sys.modules["explainer.theory.duality"] = original
    sys.modules["explainer"].duality = original


def test_the_annotated_shapes_are_the_shapes(checked):
    queries, keys, values = HEAD
    targets, batches = TARGETS["cross_entropy"], BATCHES["mini"]
    for optimiser in (
        checked.GradientDescent(LR),
        checked.HeavyBall(LR, MU),
        checked.Nesterov(LR, MU),
        checked.WeightDecay(LR, DECAY),
    ):
        _, dual = checked.train_linear_layer(
            W_0, INPUTS, targets, optimiser, batches, output_gradient=checked.cross_entropy_gradient
        )
        checked.dual_prediction(dual, W_0, QUERIES)
        dual.update()
    checked.train_with_torch(W_0, INPUTS, targets, torch.optim.SGD, 2, lr=LR)
    checked.largest_stable_rate(INPUTS)
    checked.random_layer(3, 5, 2, seed=0)
    W, errors, seen = checked.train_linear_layer_adam(W_0, INPUTS, targets, checked.Adam(LR), batches)
    checked.fit_outer_products(W - W_0, errors, seen)
    checked.frozen_errors_update(W_0, INPUTS, targets, lr=LR, steps=2)
    checked.split_attention(queries[0], keys, values, 3)
    for q in (queries, queries[0]):
        checked.softmax_attention(q, keys, values)
        checked.softmax_kernel_dual(q, keys, values)
        checked.relaxed_attention(q, keys, values)
        checked.centred_linear_attention(q, keys, values, 0.5)
        checked.logit_spread(q, keys)
        checked.effective_tokens(checked.scaled_logits(q, keys).softmax(-1))
    w = checked.orthogonal_projections(9, D, seed=0)
    checked.random_feature_attention(queries, keys, values, w)
    checked.taylor_features(keys, 2)
    checked.mean_value(values)
    with pytest.raises(jaxtyping.TypeCheckError):
        checked.split_attention(queries[0], keys, values[:-1], 3)
