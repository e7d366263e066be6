"""explainer.theory.learning_head: layers against PyTorch's gradient, the best step, examples in a row of tokens."""

import math

import pytest
import torch
from draws import randn
from hypothesis import given, settings
from hypothesis import strategies as st

from explainer.theory import learning_head
from explainer.theory.duality import same

EVEN, UNEVEN = (1.0, 1.0, 1.0, 1.0), (2.0, 1.0, 1.0, 0.5)


def torch_step(W, inputs, labels, eta):
    W = W.clone().requires_grad_()
    (((W @ inputs - labels) ** 2).sum() / (2 * inputs.shape[1])).backward()
    return (W - eta * W.grad).detach()


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 7), st.integers(1, 5), st.integers(1, 3), st.integers(0, 99))
def test_each_layer_is_a_step_and_carries_its_errors(n, d, d_y, seed):
    inputs, labels, queries = randn(d, n, seed=seed), randn(d_y, n, seed=seed + 100), randn(d, 3, seed=seed + 200)
    errors, answers, W = labels, torch.zeros(d_y, 3, dtype=torch.float64), torch.zeros(d_y, d, dtype=torch.float64)
    for _ in range(3):
        errors, answers = learning_head._layer(errors, answers, inputs, queries, 0.3)
        W = torch_step(W, inputs, labels, 0.3)
        assert same(-answers, W @ queries) and same(errors, labels - W @ inputs)


@pytest.mark.parametrize("n", [1, 8, 32, 128, 2048])
def test_one_step_leaves_what_the_formula_says_and_no_other_step_leaves_less(n):
    """The error of an earlier edition: it kept eta = 1 and said that examples alone never make one step enough."""
    drawn = learning_head.lessons(n, EVEN, seed=1, tasks=300)
    best = n * 4 / (n + 3)  # n d / (n + d - 1)
    left = learning_head._left_by_descent(drawn, best, 1)
    expected, error = 3 / (n + 3), left.std().item() / math.sqrt(300)
    assert abs(left.mean().item() - expected) < 4 * error + 0.02 * expected
    others = [best * factor for factor in (0.25, 0.7, 1.4)]
    assert all(learning_head._left_by_descent(drawn, eta, 1).mean() > left.mean() for eta in others)


def test_the_best_measured_step_is_the_best_of_the_candidates():
    drawn = learning_head.lessons(512, EVEN, seed=0, tasks=50)
    assert learning_head._best_measured_step(drawn, 1, [1.0, 2.0, 4.0, 6.0]) == 4.0
    drawn, candidates = learning_head.lessons(6, UNEVEN, seed=0, tasks=20), [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    by_steps = min(candidates, key=lambda eta: learning_head._left_by_descent(drawn, eta, 3).mean().item())
    assert learning_head._best_measured_step(drawn, 3, candidates) == by_steps


def test_the_step_is_chosen_on_one_sample_and_judged_on_another():
    choose, report = ([learning_head.lessons(n, EVEN, seed, tasks=9) for n in (3, 8)] for seed in (0, 1))
    heads, descent = learning_head.errors_at_best_step(choose, report, 4, [0.5, 1.5, 2.5])
    eta = learning_head._best_measured_step(choose[1], 4, [0.5, 1.5, 2.5])
    assert heads.shape == (9, 2) and same(heads, descent)
    assert torch.equal(heads[:, 1], learning_head._left_by_layers(report[1], eta, 4))


# Examples in a row of tokens.


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 3), st.integers(0, 99))
def test_two_layers_take_one_step_on_a_row_of_tokens(n, d, d_y, seed):
    X, Y, x = randn(n, d, seed=seed), randn(n, d_y, seed=seed + 100), randn(d, seed=seed + 200)
    H = learning_head.look_back_layer(learning_head.residual_stream(X, Y, x), d, d_y)
    copied = H[:, -d:]
    assert torch.equal(copied[1::2], X) and not copied[::2].any()
    step = torch_step(torch.zeros(d_y, d, dtype=torch.float64), X.mT, Y.mT, 0.5)
    assert same(learning_head.learning_layer(H, d, d_y, 0.5), step @ x)


def test_one_layer_cannot_learn_from_a_row_of_tokens():
    """With any matrices, inputs and labels act one by one: the effects of both together add up."""
    n, d, d_y = 4, 3, 2
    X, Y, x = randn(n, d), randn(n, d_y, seed=1), randn(d, seed=2)
    rows = {(a, b): learning_head.residual_stream(a * X, b * Y, x) for a in (1, 2) for b in (1, 2)}
    assert not learning_head.learning_layer(rows[1, 1], d, d_y, 0.5).any()
    matrices = randn(3, 4, rows[1, 1].shape[1], seed=3)
    out = {at: learning_head._causal_head(H, *matrices)[-1] for at, H in rows.items()}
    assert same(out[2, 2] - out[1, 1], (out[2, 1] - out[1, 1]) + (out[1, 2] - out[1, 1]))
    step = {(a, b): torch_step(torch.zeros(d_y, d, dtype=torch.float64), a * X.mT, b * Y.mT, 0.5) @ x for a, b in rows}
    assert not same(step[2, 2] - step[1, 1], (step[2, 1] - step[1, 1]) + (step[1, 2] - step[1, 1]))
