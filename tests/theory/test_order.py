"""explainer.theory.order: closed forms against the layers themselves, in all orders."""

import pytest
import torch
from draws import close, randn
from hypothesis import given
from hypothesis import strategies as st

from explainer.theory import fast_weights, momentum, order

RATES = st.floats(0, 1.5)
SHARES = st.floats(0, 0.95)
SIZES = st.integers(1, 7)


def one_key(n):
    """Queries, keys and one-hot values of n tokens with one unit key: the output is the weights."""
    keys = torch.zeros(n, 3, dtype=torch.float64)
    keys[:, 1] = 1
    return keys, keys, torch.eye(n, dtype=torch.float64)


def test_all_orders_are_listed_once():
    listed = order.orders(4)
    assert listed.shape == (24, 4)
    assert len({tuple(row) for row in listed.tolist()}) == 24
    assert (listed.sort(1).values == torch.arange(4)).all()
    assert order.orders(0).shape == (1, 0)


@given(RATES, SIZES, st.integers(0, 99))
def test_delta_weights_are_those_of_the_layer(rate, n, seed):
    keys, query = randn(n, 3, seed=seed), randn(3, seed=seed + 1)
    queries, values = query.expand(n, 3), torch.eye(n, dtype=torch.float64)
    close(order.delta_weights(rate, keys, query), fast_weights.recurrent(queries, keys, values, rate)[-1])


@given(SHARES, SIZES)
def test_decay_weights_are_those_of_the_recursion(alpha, n):
    _, keys, values = one_key(n)
    S = torch.zeros(n, 3, dtype=torch.float64)
    for k, v in zip(keys, values, strict=True):
        S = alpha * S + torch.outer(v, k)
    close(order.decay_weights(alpha, n), S @ keys[0])


@given(RATES, SHARES, SIZES)
def test_weights_with_momentum_are_those_of_the_layer(rate, mu, n):
    outputs = fast_weights.recurrent(*one_key(n), rate, momentum=mu)
    close(order.delta_heavy_ball_weights(rate, mu, n), outputs[-1])


@given(SHARES, SIZES)
def test_momentum_attention_weights_are_those_of_the_head(eta, n):
    q, k, v = (x[None] for x in one_key(n + 1))
    v = torch.cat([v[:, :n, :n], torch.zeros(1, 1, n, dtype=torch.float64)], 1)
    close(order.momentum_attention_weights(eta, n), momentum.momentum_attention(q, k, v, eta)[0, -1])


@given(st.integers(2, 5), st.integers(0, 99))
def test_order_variance_is_the_variance_over_all_orders(n, seed):
    w, v = randn(2, n, seed=seed)
    answers = v[order.orders(n)] @ w
    assert order.order_variance(w, v) == pytest.approx(answers.var(correction=0).item(), rel=1e-9, abs=1e-12)


@given(RATES, st.integers(0, 99))
def test_order_gap_is_the_difference_of_two_orders(rate, seed):
    keys, values = randn(2, 3, seed=seed), randn(2, 4, seed=seed + 1)
    queries = torch.eye(3, dtype=torch.float64)

    def learned(k, v):
        """S after both pairs, column by column: its answers to the unit vectors."""
        return torch.stack([fast_weights.recurrent(q.expand(2, 3), k, v, rate)[-1] for q in queries], 1)

    close(order.order_gap(rate, keys, values), learned(keys, values) - learned(keys.flip(0), values.flip(0)))
