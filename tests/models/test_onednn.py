"""Products of oneDNN against PyTorch's own, values and gradients, in models of every family."""

import numpy as np
import pytest
import tiny_models
import torch
from torch.nn.functional import cross_entropy, linear

from explainer.models import loading, onednn, scoring


def gradients(model: torch.nn.Module, ids: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    loss = cross_entropy(model(input_ids=ids).logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    model.zero_grad()
    loss.backward()
    return loss.detach(), {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("family", tiny_models.CONFIGS)
@pytest.mark.parametrize("frozen", [False, True])
def test_losses_and_gradients_are_pytorchs(family, frozen, saved, monkeypatch):
    model = loading.load(saved[family]).model.requires_grad_(True)
    ids = torch.randint(tiny_models.VOCAB, (3, 12), generator=torch.Generator().manual_seed(0))
    if frozen:  # all but the embedding, so that a gradient passes through weights that have none
        model.requires_grad_(False)
        model.get_input_embeddings().weight.requires_grad_()
    expected, theirs = gradients(model, ids)
    calls, product = [], onednn._product
    monkeypatch.setattr(onednn, "_product", lambda *args: calls.append(1) or product(*args))
    with onednn.use_onednn():
        loss, ours = gradients(model, ids)
    assert len(calls) > 4 * model.config.num_hidden_layers
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)
    assert ours.keys() == theirs.keys()
    for name, gradient in theirs.items():
        torch.testing.assert_close(ours[name], gradient, rtol=1e-3, atol=1e-5, msg=lambda m, name=name: f"{name}: {m}")


def test_weights_are_read_at_each_call():
    x, weight = torch.randn(4, 8), torch.randn(6, 8)
    with onednn.use_onednn():
        linear(x, weight)
        weight *= 2
        torch.testing.assert_close(linear(x, weight), x @ weight.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_formats_are_left_to_pytorch(dtype, monkeypatch):
    monkeypatch.setattr(onednn, "_product", None)
    x, weight, bias = torch.randn(4, 8, dtype=dtype), torch.randn(6, 8, dtype=dtype), torch.randn(6, dtype=dtype)
    with onednn.use_onednn():
        assert torch.equal(linear(x, weight, bias), linear(x, weight, bias))


def test_autocast_still_rounds(monkeypatch):
    monkeypatch.setattr(onednn, "_product", None)
    x, weight = torch.randn(4, 8), torch.randn(6, 8)
    with torch.autocast("cpu", torch.bfloat16), onednn.use_onednn():
        assert linear(x, weight).dtype == torch.bfloat16


@pytest.mark.parametrize(("name", "arguments"), [("_of_no_version", (1,)), ("_linear_pointwise", ("another",))])
def test_an_operator_that_a_version_lacks_or_has_otherwise_is_none(name, arguments):
    assert onednn.private_operator("mkldnn", name, *arguments) is None


def test_without_the_private_operators_pytorchs_own_are_used(saved, monkeypatch):
    model = loading.load(saved["llama"])
    asked = model, scoring.encode(model, "one two three"), ["four", "five"], ["yes", "no"]
    expected = scoring.candidate_log_probs(*asked)
    monkeypatch.setattr(onednn, "_linear_pointwise", None)
    monkeypatch.setattr(scoring, "_flash", None)
    np.testing.assert_allclose(scoring.candidate_log_probs(*asked), expected, atol=1e-4)
