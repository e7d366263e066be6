"""explainer.finetuning against torch.optim.SGD on a copy of the model, and against updates written out by hand."""

import copy
import math
from dataclasses import replace

import pytest
import tiny_models
import torch
from torch.nn.functional import cross_entropy
from transformers import GPTNeoXForCausalLM

from explainer import checkpoints, families, finetuning, tasks
from explainer.errors import CheckpointError, TaskError
from explainer.finetuning import DivergenceError, fine_tune, fine_tune_layer_causal, random_direction, scaled

FAMILIES = tuple(tiny_models.CONFIGS)
FUSED = ("gpt2", "gpt_neox")
LR = 1e-3
SEQUENCES = [
    torch.randint(3, tiny_models.VOCAB, (n,), generator=torch.Generator().manual_seed(n)).tolist() for n in (7, 12, 2, 9)
]


def in_float64(family):
    """XGLM's mask overflows beyond float32."""
    return torch.float32 if family == "xglm" else torch.float64


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The tiny checkpoint of each family."""
    root = tmp_path_factory.mktemp("tiny")
    return {
        family: checkpoints.load(tiny_models.save(family, root / family), dtype=in_float64(family))
        for family in FAMILIES
    }


@pytest.fixture(params=FAMILIES)
def checkpoint(request, tiny):
    """The tiny checkpoint of one family; whatever a test does with it, its tensors and flags must stay as they were."""
    checkpoint = tiny[request.param]
    before = state(checkpoint.model)
    yield checkpoint
    assert_unchanged(checkpoint.model, before)


@pytest.fixture
def llama(tiny):
    before = state(tiny["llama"].model)
    yield tiny["llama"]
    assert_unchanged(tiny["llama"].model, before)


def state(model):
    """Names, objects, values and flags of the parameters, mode and hooks of the modules."""
    parameters = [(name, p, p.detach().clone(), p.requires_grad, p.grad) for name, p in model.named_parameters()]
    return parameters, [(m.training, len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()]


def assert_unchanged(model, before):
    (parameters, modules), (old_parameters, old_modules) = state(model), before
    assert modules == old_modules
    for (name, p, value, *flags), (old_name, old_p, old_value, *old_flags) in zip(
        parameters, old_parameters, strict=True
    ):
        assert (name, flags) == (old_name, old_flags)
        assert p is old_p
        assert torch.equal(value, old_value)


def trainable(model):
    """The parameters with keys and values by name, each with the mask of its entries that are keys or values."""
    masks = {}
    for name, parameter in model.named_parameters():
        mask = torch.zeros_like(parameter)
        if "k_proj" in name or "v_proj" in name:
            mask += 1
        elif "c_attn" in name:
            mask[..., model.config.n_embd :] = 1
        elif "query_key_value" in name:
            heads = model.config.num_attention_heads
            mask.view(heads, 3, -1)[:, 1:] = 1
        if mask.any():
            masks[name] = mask
    return masks


def loss_of(model, sequence):
    ids = torch.tensor([sequence])
    return cross_entropy(model(input_ids=ids, use_cache=False).logits[0, :-1], ids[0, 1:])


def sgd(checkpoint, sequences, lr):
    """A copy of the model after torch.optim.SGD on the keys and values only, and the losses on the way."""
    model = copy.deepcopy(checkpoint.model)
    masks = trainable(model)
    parameters = {name: p.requires_grad_() for name, p in model.named_parameters() if name in masks}
    optimiser = torch.optim.SGD(parameters.values(), lr=lr)
    losses = []
    for sequence in sequences:
        optimiser.zero_grad()
        loss = loss_of(model, sequence)
        loss.backward()
        for name, parameter in parameters.items():
            parameter.grad *= masks[name]
        optimiser.step()
        losses.append(loss.item())
    return model.requires_grad_(False), losses


def close(a, b, checkpoint):
    tolerance = 1e-10 if checkpoint.dtype == torch.float64 else 2e-6
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def tensors(update):
    return [tensor for layer in update for tensor in layer if tensor is not None]


def equal(a, b):
    return all(torch.equal(x, y) for x, y in zip(tensors(a.update), tensors(b.update), strict=True))


# --- fine-tuning -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lr", [LR, -LR])
def test_equals_sgd_on_a_copy_restricted_to_keys_and_values(checkpoint, lr):
    reference, losses = sgd(checkpoint, SEQUENCES, lr)
    finetuned = fine_tune(checkpoint, SEQUENCES, lr)
    assert finetuned.diverged_at is None
    close(finetuned.losses, tuple(losses), checkpoint)
    close(finetuned.loss_after, loss_of(reference, SEQUENCES[0]).item(), checkpoint)
    changed = trainable(reference)
    with finetuned.applied() as applied:
        assert applied is checkpoint
        for (name, ours), theirs in zip(applied.model.named_parameters(), reference.parameters(), strict=True):
            if name in changed:
                close(ours.data, theirs.data, checkpoint)
                assert not torch.equal(ours, checkpoint_weight(reference, name, finetuned))
            else:
                assert torch.equal(ours, theirs)
