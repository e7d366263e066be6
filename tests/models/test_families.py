"""Every family against transformers itself, in float64: scores, records, one step of fine-tuning, interventions."""

import copy

import pytest
import tiny_models
import torch
from torch.nn.functional import cross_entropy
from transformers import AutoConfig

from explainer.errors import CheckpointError
from explainer.models import architectures, finetuning, interventions, scoring
from explainer.models.architectures import FAMILIES, INTERVENTIONS, PATCHES, RECORDING

CONTEXT = "Review: a wonderful film\nSentiment: Positive\nReview: a dreadful bore\nSentiment: Negative\n"
PROMPTS = ("Review: a film\nSentiment:", "cat ->", "Article: the coach left\nTopic:")
LABELS = ("Positive", "Negative", "Sport")
LR = 0.01
SINGLE = {"atol": 1e-4, "rtol": 1e-4}
"""Eager attention takes its softmax in float32."""


@pytest.fixture(scope="module", params=tiny_models.FURTHER)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def checkpoint(family):
    config = AutoConfig.for_model(family.partition(",")[0], **tiny_models.FURTHER[family])
    config._attn_implementation = "eager"
    return tiny_models.random_checkpoint(config, torch.float64)


@pytest.fixture(scope="module")
def prefix(checkpoint):
    return scoring.encode(checkpoint, CONTEXT)


def whole(checkpoint, ids, **options):
    """Transformers' own pass over all ids at once."""
    model = copy.deepcopy(checkpoint.model)
    return model(input_ids=torch.tensor([ids]), use_cache=False, **options)


def can(family, measure):
    return measure not in FAMILIES[family.partition(",")[0]].refused


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


def test_records_are_the_attention_of_transformers_or_are_refused_by_name(family, checkpoint, prefix):
    if not can(family, RECORDING):
        with pytest.raises(CheckpointError, match=f"{family}: no recording, because"):
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
        if attentions[0] is None:  # Falcon keeps none
            continue
        ours = torch.cat([records.context_scores[i], records.own_scores[i]], -1).softmax(-1)
        torch.testing.assert_close(ours, torch.stack([a[0, :, -1] for a in attentions]), check_dtype=False, **SINGLE)


def of_keys_and_values(model):
    """For each parameter of a key or value projection, which of its entries belong to keys or values."""
    config, masks = model.config, {}
    for name, parameter in model.named_parameters():
        *_, module, _kind = name.split(".")
        rows = torch.zeros(len(parameter), dtype=torch.bool)
        if module in ("k_proj", "v_proj"):
            rows[:] = True
        elif module == "qkv_proj":
            rows[config.hidden_size :] = True  # the queries come first
        elif module == "query_key_value":
            size = config.hidden_size // config.num_attention_heads
            groups = (len(rows) // size - config.num_attention_heads) // 2  # of queries with their key and value
            rows.view(groups, -1, size)[:, -2:] = True
        if rows.any():
            masks[name] = rows.view(-1, *[1] * (parameter.ndim - 1))
    return masks


def test_one_step_of_fine_tuning_is_that_of_sgd(checkpoint):
    ids = [checkpoint.first_token_id, *checkpoint.tokenize(CONTEXT)]
    model = copy.deepcopy(checkpoint.model).requires_grad_(True)
    logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, :-1]
    cross_entropy(logits, torch.tensor(ids[1:])).backward()
    masks = of_keys_and_values(model)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in masks:
                parameter.sub_(LR * parameter.grad * masks[name])
    with finetuning.fine_tune(checkpoint, [ids], LR).applied():
        for (name, ours), theirs in zip(checkpoint.model.named_parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(ours.detach(), theirs.detach(), msg=lambda m, name=name: f"{name}: {m}")
    assert len(masks) >= 3


def test_a_step_of_layer_causal_descent_reads_every_layer_by_itself(checkpoint):
    """Of layer l: the gradient of the loss at its own output, read by the model's last norm and embedding."""
    ids = [checkpoint.first_token_id, *checkpoint.tokenize(CONTEXT)]
    model = copy.deepcopy(checkpoint.model).requires_grad_(True)
    found, masks = architectures.architecture(model), of_keys_and_values(model)
    update = finetuning.fine_tune_layer_causal(checkpoint, [ids], LR).update
    l, outputs = 1, []  # noqa: E741 - the paper's letter
    found.layers[l].block.register_forward_hook(
        lambda _m, _x, out: outputs.append(out if torch.is_tensor(out) else out[0])
    )
    model(input_ids=torch.tensor([ids]), use_cache=False)
    hidden = outputs[0][0, :-1]
    for module in found.final:
        hidden = module(hidden)
    logits = architectures.logits(model, hidden)
    cross_entropy(logits, torch.tensor(ids[1:])).backward()
    layer = found.layers[l]
    gradients = finetuning.keys_values(layer, lambda parameter: parameter.grad)
    for ours, gradient in zip(update[l], gradients, strict=True):
        if ours is not None:
            torch.testing.assert_close(ours, -LR * gradient)
    assert masks


def test_interventions_exchange_attention_or_are_refused_by_name(family, checkpoint, prefix):
    asked = checkpoint, prefix, PROMPTS
    if not can(family, INTERVENTIONS):
        with pytest.raises(CheckpointError, match=f"{family}: no interventions, because"):
            interventions.after_context(*asked)
        return
    after, without = interventions.after_context(*asked), interventions.without_context(*asked)
    icl, zsl, layers = after.run(), without.run(), architectures.architecture(checkpoint.model).layers
    for i, ids in enumerate(scoring.prompt_token_ids(*asked)):
        torch.testing.assert_close(icl.logits[i], whole(checkpoint, [*prefix.ids, *ids]).logits[0, -1])
    held = without.at_last().run(interventions.attention_held(layers, icl.attention))
    torch.testing.assert_close(held.logits, icl.logits)
    assert (icl.logits - zsl.logits).abs().max() > 0.01
    if not can(family, PATCHES):
        with pytest.raises(CheckpointError, match=f"{family}: no patches, because"):
            interventions.context_patches(after, without)
        return
    patches = interventions.context_patches(after, without)
    own = without.run(interventions.patched(layers, patches, torch.eye(len(PROMPTS), dtype=torch.float64)))
    torch.testing.assert_close(own.logits, icl.logits)
