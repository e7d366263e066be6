"""explainer.theory.momentum against its definitions, written out as sums, in float64."""

import pytest
import torch
from draws import close, randn
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from explainer.theory import duality, momentum

LENGTHS = (1, 2, 31, 32, 33, 200, 64 * 64 + 65)  # below, at and over the ends of one, two and three levels of chunks
ETAS = (0.0, 0.5, 0.9, 0.99, 0.999)
each_average = pytest.mark.parametrize("name", momentum.AVERAGES)


def quadratic(value, eta):
    """sum_{i<t} eta^(t-i) v_i, with the whole matrix of weights."""
    lag = torch.arange(value.shape[-2])[:, None] - torch.arange(value.shape[-2])
    return torch.where(lag > 0, eta ** lag.clamp(min=0).double(), 0.0) @ value


@pytest.mark.parametrize(("T", "eta"), [(T, eta) for T in LENGTHS for eta in ETAS if T <= 200 or eta == 0.99])
def test_ema_is_the_sum_over_all_earlier_values(T, eta):
    value = randn(T, 2)
    expected = quadratic(value, eta)
    torch.testing.assert_close(momentum.ema(value, eta), expected, rtol=1e-12, atol=1e-12 * expected.abs().max())


@given(st.integers(0, 100), st.integers(0, 3), st.integers(1, 4), st.floats(0, 0.999), st.integers(0, 5))
@settings(max_examples=60)
def test_the_decaying_bias_is_the_average(T, d, batch, eta, seed):
    values = randn(batch, 2, T, d, seed=seed)
    biases = momentum.decaying_bias(values, eta)
    assert biases.shape == values.shape and not biases[..., :1, :].any()
    close(biases, momentum.ema(values, eta), 1e-10)


DEFINED = {
    "momentum": lambda s, eta: eta**s,
    "normalised": lambda s, eta: (1 - eta) * eta ** (s - 1),
    # eta^s (v + eta (v - the one before)) of one value, and what the next one takes off it, unless that is the present
    "nesterov": lambda s, eta: eta**s * (1 + eta) - (s > 1) * eta**s,
    "previous": lambda s, eta: (s == 1) * eta,
    "short_convolution": lambda s, eta: (s <= 4) * eta**s,
}
"""The weight of a value at lag s; `permuted` is tested for what it promises below."""


@each_average
@pytest.mark.parametrize("T", [1, 2, 5, 64, 65, 150])
def test_averages_have_the_weights_of_their_definition(name, T):
    value, average = randn(2, 3, T, 4), momentum.AVERAGES[name](randn(2, 3, T, 4), 0.9)
    if name in DEFINED:
        weights = torch.tensor([DEFINED[name](s, 0.9) for s in range(1, T)], dtype=torch.float64)
    else:
        weights = momentum._permuted_weights(0.9, T - 1)
    assert not average[..., 0, :].any()
    close(average[..., -1, :], torch.einsum("s,bhsd->bhd", weights, value[..., :-1, :].flip(-2)))


def test_permuted_weights_are_those_of_the_average_in_an_order_of_their_own_at_each_position():
    orders = [momentum._permuted_weights(0.9, n) for n in (40, 41)]
    for n, order in zip((40, 41), orders, strict=True):
        assert torch.equal(order.sort(descending=True).values, momentum.weights(0.9, n))
    assert not torch.equal(*(order.argsort()[:20] for order in orders))
    value = randn(50, 2)
    close(momentum.permuted_ema(value, 0.9)[:30], momentum.permuted_ema(value[:30], 0.9), 0)
    close(momentum.permuted_ema(torch.ones(50, 1).double(), 0.9), momentum.ema(torch.ones(50, 1).double(), 0.9))


@given(st.integers(1, 40), st.lists(st.floats(-2, 2), max_size=6))
def test_causal_convolution_is_a_sum_over_lags_for_each_channel(T, kernel):
    value = randn(T, 2)
    expected = torch.zeros(T, 2).double()
    for t in range(T):
        for s, weight in enumerate(kernel, 1):
            if s <= t:
                expected[t] += weight * value[t - s]
    kernel = torch.tensor(kernel, dtype=torch.float64)
    close(momentum.causal_convolution(value, kernel), expected)
    turned = torch.stack([kernel, -2 * kernel], 1)
    close(momentum.causal_convolution(value, turned), expected * torch.tensor([1.0, -2.0]).double())


@pytest.mark.parametrize("eta", [0.5, 0.9, 0.99])
def test_gain_and_window_are_those_of_the_weights(eta):
    weights = momentum.weights(eta, 5000)
    assert weights.sum() == pytest.approx(momentum.gain(eta), rel=1e-12)
    assert weights.sum() ** 2 / (weights**2).sum() == pytest.approx(momentum.effective_window(eta), rel=1e-12)
    lags = torch.arange(1, 5001, dtype=torch.float64)
    assert (weights * lags).sum() / weights.sum() == pytest.approx(1 / (1 - eta), rel=1e-12)


@each_average
def test_gradients_are_exact(name):
    value = randn(1, 70, 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda v: momentum.AVERAGES[name](v, 0.9), value)


@pytest.mark.parametrize("eta", ETAS[1:])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 5e-7), (torch.bfloat16, 2e-3), (torch.float16, 3e-4)])
def test_low_precision_costs_one_rounding_of_the_result(eta, dtype, tolerance):
    """Relative error against float64 over 3000 positions, where powers of 1/eta overflow and bfloat16(.999) is 1."""
    value = randn(3000, 8).to(dtype)
    exact = momentum.ema(value.double(), eta)
    found = momentum.ema(value, eta)
    assert found.dtype == dtype
    assert duality.relative_error(found.double(), exact) < 2 * tolerance


@each_average
def test_autocast_changes_nothing(name):
    value = randn(2, 100, 4).float()
    average = momentum.AVERAGES[name](value, 0.999)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(momentum.AVERAGES[name](value, 0.999), average)


# Attention.


def inputs(T=90, H=4, H_k=4):
    return randn(2, H, T, 8), randn(2, H_k, T, 8, seed=1), randn(2, H_k, T, 6, seed=2)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_without_decay_it_is_plain_attention_to_the_bit(dtype):
    query, key, value = (x.to(dtype) for x in inputs())
    plain = scaled_dot_product_attention(query, key, value, is_causal=True)
    assert torch.equal(momentum.momentum_attention(query, key, value, 0.0), plain)


@each_average
def test_momentum_attention_is_attention_plus_the_average_of_each_group(name):
    query, key, value = inputs()
    average = momentum.AVERAGES[name]
    logits = (query @ key.mT * 0.3).masked_fill(~torch.ones(90, 90, dtype=torch.bool).tril(), -torch.inf)
    expected = logits.softmax(-1) @ value + average(value, 0.8)
    close(momentum.momentum_attention(query, key, value, 0.8, scale=0.3, average=average), expected)
    for n in (1, 65):  # fewer queries than keys are the last ones
        last = momentum.momentum_attention(query[:, :, -n:], key, value, 0.8, scale=0.3, average=average)
        close(last, expected[:, :, -n:])
    acausal = momentum.momentum_attention(query, key, value, 0.8, is_causal=False, average=average)
    close(acausal, scaled_dot_product_attention(query, key, value) + average(value, 0.8))
    shared = inputs(H=6, H_k=2)
    repeated = (shared[0], *(x.repeat_interleave(3, 1) for x in shared[1:]))
    grouped = momentum.momentum_attention(*shared, 0.8, enable_gqa=True, average=average)
    close(grouped, momentum.momentum_attention(*repeated, 0.8, average=average))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("additive", [False, True])
def test_padding_changes_nothing(side, additive):
    query, key, value = inputs(T=80)
    real = slice(7, None) if side == "left" else slice(None, -7)
    keys = torch.zeros(80, dtype=torch.bool)
    keys[real] = True
    mask = torch.ones(80, 80, dtype=torch.bool).tril() & keys
    if additive:
        mask = torch.zeros(80, 80, dtype=torch.float64).masked_fill(~mask, torch.finfo(torch.float64).min)
    alone = momentum.momentum_attention(*(x[:, :, real] for x in (query, key, value)), 0.9)
    padded = momentum.momentum_attention(query, key, value, 0.9, attn_mask=mask)
    close(padded[:, :, real], alone)


def test_a_mask_that_hides_more_than_padding_is_refused():
    query, key, value = inputs()
    packed = torch.block_diag(*[torch.ones(45, 45)] * 2).bool().tril()
    with pytest.raises(ValueError, match="row of its own"):
        momentum.momentum_attention(query, key, value, 0.9, attn_mask=packed)
    window = torch.ones(90, 90, dtype=torch.bool).tril().triu(-9)
    with pytest.raises(ValueError, match="no window"):
        momentum.momentum_attention(query, key, value, 0.9, attn_mask=window)
