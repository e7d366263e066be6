"""explainer.theory.fast_weights: three forms of one layer, against loops, transformers and the book's optimisers."""

from functools import partial
from inspect import unwrap

import pytest
import torch
from draws import close, randn
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from explainer.errors import ShapeError
from explainer.theory import duality, fast_weights
from explainer.theory.duality import DecayThenStep, GradientDescent, HeavyBall


def solved(queries, keys, values, rate, retention=1.0, momentum=0.0):  # noqa: PLR0917
    """Without a loop, sum_{i<=t} C[t, i] e_i (k_i . q_t), for gates with a number for each token."""
    ones = torch.ones(keys.shape[-2]).to(keys)
    weights = fast_weights.pair_weights(
        *(torch.as_tensor(gate, dtype=keys.dtype) * ones for gate in (retention, momentum))
    )
    return (weights * (queries @ keys.mT)) @ fast_weights.errors(keys, values, rate, retention, momentum)


FORMS = (fast_weights.recurrent, solved, fast_weights.chunked)
each_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)


def rand(*shape, seed=0):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def rows(*batch, T, d, d_v, seed=0):
    """Queries, keys of length 1, values."""
    keys = normalize(randn(*batch, T, d, seed=seed + 1), dim=-1)
    return randn(*batch, T, d, seed=seed), keys, randn(*batch, T, d_v, seed=seed + 2)


def plain_loop(queries, keys, values, gates):
    """The layer entry by entry, on lists; the gates are lists, too."""
    d_v, d = len(values[0]), len(keys[0])
    S, V = ([[0.0] * d for _ in range(d_v)] for _ in range(2))
    outputs = []
    for q, k, v, beta, alpha, mu in zip(queries, keys, values, *gates, strict=True):
        answers = [sum(S[r][c] * k[c] for c in range(d)) for r in range(d_v)]
        for r in range(d_v):
            for c in range(d):
                V[r][c] = mu * V[r][c] + beta * (v[r] - alpha * answers[r]) * k[c]
                S[r][c] = alpha * S[r][c] + V[r][c]
        outputs.append([sum(S[r][c] * q[c] for c in range(d)) for r in range(d_v)])
    return torch.tensor(outputs, dtype=torch.float64)


@each_form
def test_it_is_the_loop_entry_by_entry(form):
    data, gates = rows(T=9, d=3, d_v=2), [rand(9, seed=seed) for seed in (3, 4, 5)]
    close(form(*data, *gates), plain_loop(*(x.tolist() for x in data), [gate.tolist() for gate in gates]))


@st.composite
def layers(draw):
    """Inputs of any small shape; each gate is a number, or one for each token, with or without leading axes."""
    batch = draw(st.sampled_from([(), (2,), (2, 3)]))
    T, d, d_v, seed = (draw(st.integers(*ends)) for ends in ((1, 33), (1, 5), (1, 4), (0, 10**6)))
    gates = []
    for i, most in enumerate((0.5, 1.0, 0.9)):
        shape = draw(st.sampled_from([None, (T,), (*batch, T)]))
        gates.append(draw(st.floats(0, most)) if shape is None else most * rand(*shape, seed=seed + i))
        if shape is not None and draw(st.booleans()):
            gates[-1][..., draw(st.integers(0, T - 1))] = 0.0
    return rows(*batch, T=T, d=d, d_v=d_v, seed=seed), gates, draw(st.integers(1, 40))


def corner(retention, momentum):
    """Where a division by the difference of retention and momentum, or by their product, would fail."""
    return rows(2, T=40, d=6, d_v=3), [0.02, retention, momentum], 7


@settings(max_examples=60, deadline=None)
@given(layers())
@example(corner(1.0, 1.0))
@example(corner(0.0, 0.5))
@example(corner(0.9, 0.9))
@example(corner(1e-200, 1e-200))
@example(corner(0.9, 0.9 - 1e-15))
def test_the_three_forms_agree(layer):
    data, gates, chunk = layer
    expected = fast_weights.recurrent(*data, *gates)
    assert expected.shape == data[2].shape
    close(solved(*data, *gates), expected)
    close(fast_weights.chunked(*data, *gates, chunk=chunk), expected)


@pytest.mark.parametrize(
    "form", [*FORMS[:2], partial(fast_weights.chunked, chunk=2)], ids=["recurrent", "solved", "chunked"]
)
@pytest.mark.parametrize("zero", [False, True])
def test_gradients(form, zero):
    gates = [0.1 + 0.8 * rand(5, seed=seed) for seed in (3, 4, 5)]
    if zero:
        gates[1][2] = gates[2][2] = 0.0
    inputs = [tensor.requires_grad_() for tensor in (*rows(T=5, d=3, d_v=2), *gates)]
    assert torch.autograd.gradcheck(form, inputs)


def test_the_errors_are_those_of_the_recurrence():
    (_, keys, values), (beta, alpha, mu) = rows(T=7, d=4, d_v=2), [rand(7, seed=seed) for seed in (3, 4, 5)]
    E = fast_weights.errors(keys, values, beta, alpha, mu)
    close(fast_weights.errors(keys, values, beta), fast_weights.errors(keys, values, beta, 1.0, 0.0))
    S = V = torch.zeros(2, 4, dtype=torch.float64)
    for t in range(7):
        close(E[t], beta[t] * (values[t] - alpha[t] * S @ keys[t]))
        V = mu[t] * V + torch.outer(E[t], keys[t])
        S = alpha[t] * S + V
    weights = fast_weights.pair_weights(alpha, mu)
    close((weights[-1, :, None] * E).T @ keys, S)
    paths = [mu[3 : j + 1].prod() * alpha[j + 1 : 7].prod() for j in range(2, 7)]
    close(weights[6, 2], sum(paths))


@settings(max_examples=50, deadline=None)
@given(alpha=st.floats(0, 1), mu=st.floats(0, 1), n=st.integers(0, 40))
def test_age_weights_are_the_closed_form(alpha, mu, n):
    weights, age = fast_weights.age_weights(alpha, mu, n), torch.arange(n, dtype=torch.float64)
    expected = [sum(alpha ** (s - j) * mu**j for j in range(s + 1)) for s in range(n)]
    close(weights, torch.tensor(expected, dtype=torch.float64))
    if abs(alpha - mu) > 0.05:
        close(weights, (alpha ** (age + 1) - mu ** (age + 1)) / (alpha - mu), 1e-10)
    if mu < 0.99:
        close(fast_weights.age_weights(1.0, mu, n).flip(0), duality.heavy_ball_weights(mu, n), 1e-11)


@pytest.mark.parametrize(
    ("rule", "gates"),
    [
        (GradientDescent(0.3), ()),
        (HeavyBall(0.1, 0.8), (1.0, 0.8)),
        (DecayThenStep(0.3, 0.9), (0.9,)),
    ],
    ids=lambda case: type(case).__name__,
)
@each_form
def test_one_pass_of_the_books_optimisers(form, rule, gates):
    queries, keys, values = rows(T=20, d=6, d_v=3)
    trained = duality.train_linear_layer(torch.zeros(3, 6).double(), keys, values, rule, torch.arange(20).split(1))
    close(form(queries, keys, values, rule.lr, *gates)[-1], trained.W @ queries[-1])


@pytest.mark.parametrize("normalised", [False, True])
@each_form
def test_parity_with_the_recurrence_of_qwen3_next(form, normalised):
    modeling = pytest.importorskip("transformers.models.qwen3_next.modeling_qwen3_next")
    B, T, H, d, d_v = 2, 40, 3, 16, 8
    queries, keys, values = randn(B, T, H, d), randn(B, T, H, d, seed=1), randn(B, T, H, d_v, seed=2)
    if not normalised:
        keys = normalize(keys, dim=-1)
    data = [x.float() for x in (queries, keys, values)]
    rate, retention = rand(B, T, H, seed=3).float(), (0.8 + 0.2 * rand(B, T, H, seed=4)).float()
    theirs, _ = unwrap(modeling.torch_recurrent_gated_delta_rule)(  # the reference, whatever kernels are installed
        *data,
        g=retention.log(),
        beta=rate,
        initial_state=None,
        output_final_state=False,
        use_qk_l2norm_in_kernel=normalised,
    )
    # Theirs has the heads after the tokens, divides queries by sqrt(d), and lengths by sqrt(|x|^2 + 1e-6).
    q, k, v = (x.transpose(1, 2) for x in data)
    if normalised:
        q, k = (x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6) for x in (q, k))
    ours = form(q / d**0.5, k, v, *(gate.transpose(1, 2) for gate in (rate, retention)))
    close(ours.transpose(1, 2), theirs, 1e-6)


@pytest.mark.parametrize("form", [fast_weights.recurrent, fast_weights.chunked], ids=lambda form: form.__name__)
def test_shapes_that_would_be_broadcast_are_refused(form):
    queries, keys, values = rows(T=5, d=3, d_v=2)
    for rows_of in ((queries[0], keys, values), (queries, keys, values[:4]), (queries[:, :2], keys, values)):
        with pytest.raises(ShapeError, match="the shapes should be"):
            form(*rows_of, 0.5)
    with pytest.raises(ShapeError, match=r"rate has shape \(4,\)"):
        form(queries, keys, values, torch.ones(4))
    with pytest.raises(ShapeError, match="do not fit together"):
        form(queries.expand(2, 5, 3), keys.expand(3, 5, 3), values, 0.5)
