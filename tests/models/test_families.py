"""Every family against transformers itself, in float64: scores, records, fine-tuning, interventions."""

import copy
import math

import pytest
import tiny_models
import torch
from tiny_models import SEQUENCES, loss_of
from torch.nn.functional import cross_entropy
from transformers import AutoConfig

from explainer.errors import CheckpointError
from explainer.models import architectures, finetuning, hooks, interventions, scoring
from explainer.models.architectures import FAMILIES, PATCHES

CONTEXT = "Review: a wonderful film\nSentiment: Positive\nReview: a dreadful bore\nSentiment: Negative\n"
PROMPTS = ("Review: a film\nSentiment:", "cat ->", "Article: the coach left\nTopic:")
LABELS = ("Positive", "Negative", "Sport")
LR = 1e-3
SINGLE = {"atol": 1e-4, "rtol": 1e-4}
"""Eager attention takes its softmax in float32."""


def made_of(family, **given):
    """A random checkpoint with eager attention, in float64 where the family computes in it; `given` are settings."""
    if family in tiny_models.CONFIGS:
        return tiny_models.random_checkpoint(tiny_models.CONFIGS[family], tiny_models.widest(family))
    config = AutoConfig.for_model(family.partition(",")[0], **tiny_models.FURTHER[family] | given)
    config._attn_implementation = "eager"
    return tiny_models.random_checkpoint(config, torch.float64)


@pytest.fixture(scope="module", params=tiny_models.FURTHER)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def checkpoint(family):
    return made_of(family)


@pytest.fixture(scope="module")
def prefix(checkpoint):
    return scoring.encode(checkpoint, CONTEXT)


def whole(checkpoint, ids, **options):
    """Transformers' own pass over all ids at once."""
    model = copy.deepcopy(checkpoint.model)
    return model(input_ids=torch.tensor([ids]), use_cache=False, **options)


def test_every_family_is_tested_here_or_by_the_tests_of_the_books_own():
    further = {name.partition(",")[0] for name in tiny_models.FURTHER}
    assert set(FAMILIES) == {*further, *tiny_models.CONFIGS, "qwen2", "qwen3"}


def test_candidates_are_scored_as_in_whole_prompts(checkpoint, prefix):
    scores = scoring.candidate_log_probs(checkpoint, prefix, PROMPTS, LABELS)
    for i, prompt in enumerate(PROMPTS):
        ids = [*prefix.ids, *checkpoint.tokenize(prompt)]
        for j, label in enumerate(LABELS):
            answer = checkpoint.tokenize(f" {label}")
            log_probs = whole(checkpoint, [*ids, *answer]).logits[0, len(ids) - 1 : -1].log_softmax(-1)
            expected = log_probs.gather(1, torch.tensor(answer)[:, None]).sum().item()
            assert scores[i, j] == pytest.approx(expected, abs=2e-5)


def test_records_are_the_attention_of_transformers_or_are_refused_with_the_reason(checkpoint, prefix):
    config, reason = checkpoint.model.config, None
    if getattr(config, "sliding_window", None) == 16:
        reason = "a window of 16 tokens does not see all"
    elif getattr(config, "qk_layernorm", False):  # each head normalises its queries and keys
        reason = "is not a softmax of q"
    if reason:
        with pytest.raises(CheckpointError, match=reason):
            tiny_models.record(checkpoint, prefix, PROMPTS)
        return
    records = tiny_models.record(checkpoint, prefix, PROMPTS)
    for i, ids in enumerate(scoring.prompt_token_ids(checkpoint, prefix, PROMPTS)):
        model, seen = copy.deepcopy(checkpoint.model), []
        for layer in architectures.architecture(model).layers:
            layer.output.register_forward_hook(lambda _m, _x, output, seen=seen: seen.append(output[0, -1]))
        attentions = model(
            input_ids=torch.tensor([[*prefix.ids, *ids]]), use_cache=False, output_attentions=True
        ).attentions
        torch.testing.assert_close(records.outputs[i], torch.stack(seen), **SINGLE)
        ours = torch.cat([records.context_scores[i], records.own_scores[i]], -1).softmax(-1)
        torch.testing.assert_close(ours, torch.stack([a[0, :, -1] for a in attentions]), check_dtype=False, **SINGLE)


def of_keys_and_values(model):
    """For each parameter of a key or value projection, ones where its entries belong to keys or values."""
    config, masks = model.config, {}
    for name, parameter in model.named_parameters():
        module, mask = name.split(".")[-2], torch.zeros_like(parameter)
        if module in ("k_proj", "v_proj"):
            mask += 1
        elif module == "c_attn":
            mask[..., config.n_embd :] = 1
        elif module == "qkv_proj":
            mask[config.hidden_size :] = 1  # the queries come first
        elif module == "query_key_value":
            size = config.hidden_size // config.num_attention_heads
            mask.view(config.num_attention_heads, 3 * size, -1)[:, size:] = 1
        if mask.any():
            masks[name] = mask
    return masks


@pytest.fixture(scope="module", params=[*tiny_models.CONFIGS, *tiny_models.FURTHER])
def trainee(request):
    """A checkpoint of every family; whatever a test does with it, it must stay as it was."""
    made = made_of(request.param)
    with tiny_models.unchanged(made.model):
        yield made


def require_same_weights(update, checkpoint, model):
    """Applied, the update gives the weights of the model, and changes only those."""
    masks, before = of_keys_and_values(model), [p.clone() for p in checkpoint.model.parameters()]
    with update.applied():
        each = zip(checkpoint.model.named_parameters(), before, model.parameters(), strict=True)
        for (name, ours), old, theirs in each:
            torch.testing.assert_close(ours.detach(), theirs.detach(), msg=lambda m, name=name: f"{name}: {m}")
            changed = (ours != old).to(ours)
            assert not changed.any() if name not in masks else not (changed * (1 - masks[name])).any()
            assert name not in masks or "bias" in name or changed.sum() > 0.5 * masks[name].sum()


@pytest.mark.parametrize("lr", [LR, -LR])
def test_fine_tuning_is_sgd_on_keys_and_values(trainee, lr):
    model, losses, norms = copy.deepcopy(trainee.model), [], []
    masks = of_keys_and_values(model)
    parameters = {name: model.get_parameter(name).requires_grad_() for name in masks}
    optimiser = torch.optim.SGD(parameters.values(), lr=abs(lr), maximize=lr < 0)
    for sequence in SEQUENCES:
        optimiser.zero_grad()
        loss = loss_of(model, sequence)
        loss.backward()
        for name, parameter in parameters.items():
            parameter.grad *= masks[name]
        norms.append(math.sqrt(sum(parameter.grad.square().sum().item() for parameter in parameters.values())))
        optimiser.step()
        losses.append(loss.item())
    finetuned = finetuning.fine_tune(trainee, SEQUENCES, lr)
    assert finetuned.diverged_at is None and len(masks) >= 3
    assert finetuned.losses == pytest.approx(losses, rel=1e-5)
    assert finetuned.gradient_norms == pytest.approx(norms, rel=1e-5)
    assert finetuned.loss_after == pytest.approx(loss_of(model, SEQUENCES[0]).item(), rel=1e-5)
    require_same_weights(finetuned, trainee, model)


def test_layer_causal_descent_is_sgd_on_each_layers_own_loss(trainee):
    """Without detaching: dL_l/dW_l of the loss that norm and embedding read off after block l, for each sequence."""
    model, totals = copy.deepcopy(trainee.model), []
    found, masks = architectures.architecture(model), of_keys_and_values(model)
    for sequence in SEQUENCES:
        hidden, gradients = [], {}
        model.requires_grad_()
        with hooks.outputs(
            (layer.block, lambda _, output, hidden=hidden: hidden.append(output)) for layer in found.layers
        ):
            model(input_ids=torch.tensor([sequence]), use_cache=False)
        losses = [cross_entropy(found.readout(h[0, :-1]), torch.tensor(sequence[1:])) for h in hidden]
        for loss, layer in zip(losses, found.layers, strict=True):
            its = set(map(id, layer.block.parameters()))
            names = [name for name, p in model.named_parameters() if name in masks and id(p) in its]
            own = torch.autograd.grad(loss, [model.get_parameter(name) for name in names], retain_graph=True)
            gradients |= dict(zip(names, own, strict=True))
        model.requires_grad_(False)
        for name, gradient in gradients.items():
            model.get_parameter(name).sub_(LR * gradient * masks[name])
        totals.append(sum(loss.item() for loss in losses))
    finetuned = finetuning.fine_tune(trainee, SEQUENCES, LR, layer_causal=True)
    assert finetuned.diverged_at is None
    assert finetuned.losses == pytest.approx(totals, rel=1e-5)
    require_same_weights(finetuned, trainee, model)


def test_interventions_exchange_attention_and_patches_are_made_or_refused_by_name(family, checkpoint, prefix):
    if getattr(checkpoint.model.config, "sliding_window", None) == 16:
        with pytest.raises(CheckpointError, match="a window of 16 tokens does not see all"):
            interventions.after_context(checkpoint, prefix, PROMPTS)
        checkpoint = made_of(family, sliding_window=64)
        prefix = scoring.encode(checkpoint, CONTEXT)
    asked = checkpoint, prefix, PROMPTS
    after, without = interventions.after_context(*asked), interventions.without_context(*asked)
    icl, zsl, layers = after.run(), without.run(), architectures.architecture(checkpoint.model).layers
    for i, ids in enumerate(scoring.prompt_token_ids(*asked)):
        torch.testing.assert_close(icl.logits[i], whole(checkpoint, [*prefix.ids, *ids]).logits[0, -1])
    pairs = zip(layers, icl.attention.unbind(1), strict=True)
    held = without.at_last().run([interventions.at_last(layer.output, lambda _, v=v: v) for layer, v in pairs])
    torch.testing.assert_close(held.logits, icl.logits)
    assert (icl.logits - zsl.logits).abs().max() > 0.01
    if PATCHES in FAMILIES[family.partition(",")[0]].refused:
        with pytest.raises(CheckpointError, match=f"{family.partition(',')[0]}: no patches, because"):
            interventions.context_weight_patches(after, without)
        return
    patches = interventions.context_weight_patches(after, without)
    own = without.run(interventions.with_weight_patches(layers, patches, torch.eye(len(PROMPTS), dtype=torch.float64)))
    torch.testing.assert_close(own.logits, icl.logits)
