"""explainer.theory.learning_head: a step against PyTorch's gradient, examples in a row of tokens."""

import torch
from draws import randn
from hypothesis import given, settings
from hypothesis import strategies as st

from explainer.theory import learning_head
from explainer.theory.duality import same


def torch_step(W, inputs, labels, eta):
    W = W.clone().requires_grad_()
    (((W @ inputs - labels) ** 2).sum() / (2 * inputs.shape[1])).backward()
    return (W - eta * W.grad).detach()


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 7), st.integers(1, 5), st.integers(1, 3), st.integers(0, 99))
def test_a_step_is_that_of_the_gradient(n, d, d_y, seed):
    inputs, labels, W = randn(d, n, seed=seed), randn(d_y, n, seed=seed + 100), randn(d_y, d, seed=seed + 200)
    assert same(learning_head.gradient_step(W, inputs, labels, 0.3), torch_step(W, inputs, labels, 0.3))


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
