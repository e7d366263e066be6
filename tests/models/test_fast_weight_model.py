"""A small model with one memory: its rules, its matched sets, its training."""

from dataclasses import replace

import pytest
import torch

from explainer.data import recall_data
from explainer.models import fast_weight_model as fwm
from explainer.models.fast_weight_model import RULES, FastWeightModel, FastWeightSetting
from explainer.theory import fast_weights, momentum

TINY = FastWeightSetting(rule="delta", width=8, heads=2, head_width=4, inner=8, steps=20, batch=4, learning_rate=1e-2)
BIAS = torch.tensor([[2.0, 3.0], [0.1, 0.2]]).double()


@pytest.fixture
def tokens():
    generator = torch.Generator().manual_seed(0)
    vectors = [torch.randn(3, 2, 7, 4, generator=generator, dtype=torch.float64) for _ in range(3)]
    gates = [torch.rand(3, 2, 7, generator=generator, dtype=torch.float64) for _ in range(3)]
    return fwm._Tokens(
        *(torch.nn.functional.normalize(each, dim=-1) for each in vectors[:2]), vectors[2], *gates, *BIAS
    )


def test_linear_attention_adds_values_token_by_token(tokens):
    S, outputs = torch.zeros(3, 2, 4, 4, dtype=torch.float64), []
    for t in range(7):
        k, v, q = tokens.keys[:, :, t, :, None], tokens.values[:, :, t, :, None], tokens.queries[:, :, t, :, None]
        S = S + tokens.rate[:, :, t, None, None] * v @ k.mT
        outputs.append((S @ q)[..., 0])
    torch.testing.assert_close(RULES["linear"](tokens), torch.stack(outputs, 2), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("rule", "retention", "mu"),
    [
        ("delta", 1.0, 0.0),
        ("delta-momentum", 1.0, "momentum"),
        ("delta-half", 1.0, 0.5),
        ("gated", "retention", 0.0),
        ("gated-momentum", "retention", "momentum"),
    ],
)
def test_rules_that_write_errors_are_those_of_the_recurrence(tokens, rule, retention, mu):
    gates = [getattr(tokens, gate) if isinstance(gate, str) else gate for gate in (retention, mu)]
    expected = fast_weights.recurrent(*tokens[:3], tokens.rate, *gates)
    torch.testing.assert_close(RULES[rule](tokens), expected, rtol=0, atol=1e-12)


def test_ascent_climbs_the_squared_error_of_minus_the_value(tokens):
    """S <- S + beta dL/dS with L = |S k + v|^2 / 2, one step for each token."""
    S, outputs = torch.zeros(3, 2, 4, 4, dtype=torch.float64), []
    for t in range(7):
        k, v, q = tokens.keys[:, :, t], tokens.values[:, :, t], tokens.queries[:, :, t]
        S = S.detach().requires_grad_()
        loss = ((S @ k[..., None])[..., 0] + v).square().sum() / 2
        (slope,) = torch.autograd.grad(loss, S)
        S = S + tokens.rate[:, :, t, None, None] * slope
        outputs.append((S @ q[..., None])[..., 0])
    torch.testing.assert_close(RULES["ascent"](tokens), torch.stack(outputs, 2), rtol=0, atol=1e-12)


def test_softmax_rules_attend_with_a_bias_and_differ_by_the_average(tokens):
    lag = torch.arange(7)[:, None] - torch.arange(7)
    scores = tokens.sharpness[:, None, None] * (tokens.queries @ tokens.keys.mT) - tokens.slope[:, None, None] * lag
    weights = scores.masked_fill(lag < 0, -torch.inf).softmax(-1)
    plain, moved = RULES["softmax"](tokens), RULES["momentum-attention"](tokens)
    torch.testing.assert_close(plain, weights @ tokens.values, rtol=0, atol=1e-12)
    torch.testing.assert_close(moved - plain, momentum.ema(tokens.values, fwm._ETA), rtol=0, atol=1e-12)


def sequences(n_keys=4, seed=0):
    return recall_data.draw(3, n_keys, torch.Generator().manual_seed(seed))


def test_models_of_a_seed_start_from_the_same_weights_whatever_the_rule():
    states = [FastWeightModel(replace(TINY, rule=rule)).state_dict() for rule in RULES]
    assert all(torch.equal(states[0][name], each[name]) for each in states for name in states[0])
    other = FastWeightModel(replace(TINY, seed=1)).state_dict()
    assert not torch.equal(states[0]["key.weight"], other["key.weight"])


def test_gates_begin_where_they_should_and_directions_have_length_one():
    model = FastWeightModel(TINY)
    torch.nn.init.zeros_(model.gates.weight)
    its = model.tokens(model.embedded(*sequences()[:2]))
    for gate, first in zip((its.rate, its.retention, its.momentum), (0.5, 0.98, 0.5), strict=True):
        torch.testing.assert_close(gate, torch.full_like(gate, first))
    torch.testing.assert_close(its.keys.norm(dim=-1), torch.ones(3, 2, 10))


@pytest.mark.parametrize("rule", RULES)
def test_no_model_sees_what_comes_later(rule):
    """Other queries after a query do not change the answer to it."""
    model, asked = FastWeightModel(replace(TINY, rule=rule)), sequences()
    other = asked._replace(keys=torch.cat([asked.keys[:, :-1], (asked.keys[:, -1:] + 1) % recall_data.KEYS], 1))
    answers, same = model(asked), model(other)
    assert answers.shape == (3, 4, recall_data.VALUES)
    torch.testing.assert_close(answers[:, :-1], same[:, :-1])


@pytest.mark.parametrize("rule", RULES)
def test_only_linear_attention_answers_alike_whatever_the_order_of_the_writes(rule):
    """Why it is the floor of revision: of the two values of a key it cannot know which is newer."""
    model, asked = FastWeightModel(replace(TINY, rule=rule)), sequences()
    sides = (torch.cat([side[:, :-4].flip(1), side[:, -4:]], 1) for side in (asked.keys, asked.values))
    other = asked._replace(**dict(zip(("keys", "values"), sides, strict=True)))
    assert torch.allclose(model(asked), model(other), atol=1e-4) == (rule == "linear")
