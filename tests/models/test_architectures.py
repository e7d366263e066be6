"""models.architectures: every part is found by changing it and looking at what the model itself then computes."""

import copy
import functools
import sys

import pytest
import tiny_models
import torch
from transformers import AutoModelForCausalLM, OlmoConfig, OlmoForCausalLM

from explainer.errors import CheckpointError
from explainer.models import architectures, hooks

CONFIGS = tiny_models.CONFIGS | {
    name: config for name, config in tiny_models.MORE.items() if config.model_type != "gpt_neox"
}
IDS = torch.tensor([[5, 80, 17, 3, 80, 42, 9]])
L = 1
"""The layer that the tests change: neither the first nor the last."""


@pytest.fixture(scope="module", params=CONFIGS)
def original(request):
    """A random model with eager attention, large weights and non-zero biases; in float64, where the family can."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = copy.deepcopy(CONFIGS[request.param])  # which keeps the attention that it is given
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
        model = model.to(tiny_models.widest(request.param)).eval()
        for parameter in model.parameters():
            parameter.data += 0.2 * torch.randn_like(parameter)
    return model.requires_grad_(False)


@pytest.fixture
def model(original):
    """A copy that a test may change."""
    return copy.deepcopy(original)


@pytest.fixture
def parts(model):
    return architectures.architecture(model)


def computed(model):
    """Per layer the keys and values that the model caches, (heads, T, head size), and its attention (heads, T, T)."""
    out = model(input_ids=IDS, use_cache=True, output_attentions=True)
    cache = [(layer.keys[0], layer.values[0]) for layer in out[architectures.CACHE].layers]
    return [(k, v, a[0]) for (k, v), a in zip(cache, out.attentions, strict=True)]


def output_of(model, module):
    """What a module of the model returns in a forward pass; the first item of a tuple."""
    seen = []
    with hooks.outputs([(module, lambda _, output: seen.append(output))]):
        model(input_ids=IDS, use_cache=False)
    return seen[0]


def zero(projection, head=slice(None)):
    projection.weight()[head].zero_()
    if projection.bias() is not None:
        projection.bias()[head].zero_()


def uniform(attention):
    """Attention to all tokens so far with equal weight, in the shape of the given attention."""
    rows = torch.ones(attention.shape[-1], attention.shape[-1], dtype=attention.dtype).tril()
    return (rows / rows.sum(-1, keepdim=True)).expand_as(attention)


def equal(a, b):
    """Of two tuples of tensors, which are equal bit by bit."""
    return [torch.equal(x, y) for x, y in zip(a, b, strict=True)]


def test_sizes_are_those_of_the_configuration(model, parts):
    config = model.config
    n_key_heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
    head_size = getattr(config, "head_dim", config.hidden_size // config.num_attention_heads)
    assert (parts.n_layers, parts.n_heads) == (config.num_hidden_layers, config.num_attention_heads)
    assert (parts.n_key_heads, parts.head_size) == (n_key_heads, head_size)
    for projection, heads in zip(("query", "key", "value"), (parts.n_heads, n_key_heads, n_key_heads), strict=True):
        for layer in parts.layers:
            weight, bias = getattr(layer, projection).weight(), getattr(layer, projection).bias()
            assert weight.shape == (heads, head_size, config.hidden_size)
            assert bias is None or bias.shape == (heads, head_size)


@pytest.mark.parametrize("part", ["key", "value", "query"])
def test_zeros_in_a_projection_change_what_it_gives_and_nothing_else_in_the_layer(model, parts, part):
    before, layer = computed(model), parts.layers[L]
    zero(getattr(layer, part))
    after = computed(model)
    assert all(all(equal(before[i], after[i])) for i in range(L))
    same = {"key": [False, True, False], "value": [True, False, True], "query": [True, True, False]}[part]
    assert equal(before[L], after[L]) == same
    if part == "value":
        assert not after[L][1].any()
        output, bias = output_of(model, layer.output), layer.output.bias
        torch.testing.assert_close(output, (torch.zeros(()) if bias is None else bias).expand_as(output).to(output))
        return
    assert not after[L][0].any() if part == "key" else not layer.queries(output_of(model, layer.query_module)).any()
    torch.testing.assert_close(after[L][2], uniform(after[L][2]), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("head", [0, -1])
def test_one_head_is_one_head(model, parts, head):
    """Zeroing one key, value or query head leaves all other heads of the layer as they are, to the bit."""
    layer, before = parts.layers[L], computed(model)[L]
    zero(layer.key, head)
    keys, values, attention = computed(model)[L]
    shared = parts.n_heads // parts.n_key_heads
    heads = list(range(parts.n_heads))
    queries = heads[head * shared :][:shared]
    assert not keys[head].any()
    assert [torch.equal(a, b) for a, b in zip(keys, before[0], strict=True)].count(True) == len(keys) - 1
    assert torch.equal(values, before[1])
    changed = [h for h in heads if not torch.equal(attention[h], before[2][h])]
    assert changed == queries

    zero(layer.value, head)
    assert not computed(model)[L][1][head].any()
    assert [torch.equal(a, b) for a, b in zip(computed(model)[L][1], before[1], strict=True)].count(True) == len(
        keys
    ) - 1

    before = attention
    other = heads[head] - len(heads) // 2  # a query head of another key head, so that its attention is not yet uniform
    zero(layer.query, other)
    attention = computed(model)[L][2]
    assert [h for h in heads if not torch.equal(attention[h], before[h])] == [heads[other]]


def test_queries_times_keys_are_the_scores_of_the_model(model, parts, monkeypatch):
    """softmax(q . k) is the model's own attention, once the rotation by the position is switched off."""
    module = sys.modules[type(model).__module__]
    if hasattr(module, "apply_rotary_pos_emb"):
        monkeypatch.setattr(module, "apply_rotary_pos_emb", lambda q, k, *_args: (q, k))
    for layer, (keys, _, attention) in zip(parts.layers, computed(model), strict=True):
        queries = layer.queries(output_of(model, layer.query_module))[0]
        queries = queries.unflatten(-1, (parts.n_heads, parts.head_size)).transpose(0, 1)
        scores = queries @ keys.repeat_interleave(parts.n_heads // parts.n_key_heads, 0).mT
        causal = torch.ones(scores.shape[-2:]).tril().bool()
        weights = scores.masked_fill(~causal, -torch.inf).softmax(-1)
        torch.testing.assert_close(weights, attention.to(weights), rtol=1e-4, atol=1e-5)


def test_rotation_is_that_of_the_model_and_its_transpose_takes_it_back(model, parts):
    """R_p keeps products between keys at the same place, and q . R_p k = R_p^T q . k."""
    x, y = torch.randn(2, 1, 2, IDS.shape[1], parts.head_size, generator=torch.Generator().manual_seed(0)).double()
    if parts.rotary is None:
        assert model.config.model_type in ("gpt2", "opt", "xglm")
        assert parts.rotated(x, None) is x
        return
    cos, sin = (part.double() for part in parts.rotary(x, torch.arange(IDS.shape[1])[None]))
    turned = parts.rotated(x, (cos, sin))
    torch.testing.assert_close(turned[..., 0, :], x[..., 0, :])
    assert not torch.allclose(turned[..., 1:, :], x[..., 1:, :])
    torch.testing.assert_close((turned * y).sum(-1), (x * parts.rotated(y, (cos, -sin))).sum(-1))
    torch.testing.assert_close(parts.rotated(turned, (cos, -sin)), x)
    shared = parts.rotated(x, (cos[:, 3:4], sin[:, 3:4]))
    torch.testing.assert_close(shared[..., 3, :], turned[..., 3, :])


def test_windows_of_sliding_attention():
    model = AutoModelForCausalLM.from_config(tiny_models.WINDOW)
    assert [layer.window for layer in architectures.architecture(model).layers] == [None, 8, 8]


def test_output_is_what_the_attention_returns_before_the_residual(model, parts):
    for layer in parts.layers:
        attention = next(m for m in model.modules() if layer.output in m.children())
        assert torch.equal(output_of(model, layer.output), output_of(model, attention))
        assert attention is not layer.block


def test_readout_of_the_last_block_is_the_models_prediction(model, parts):
    hidden = output_of(model, parts.layers[-1].block)
    torch.testing.assert_close(parts.readout(hidden), model(input_ids=IDS).logits)
    assert not torch.allclose(parts.readout(output_of(model, parts.layers[0].block)), model(input_ids=IDS).logits)


def test_views_write_into_the_model_and_read_its_gradients(model, parts):
    weight = parts.layers[L].key.module.weight
    gradient = torch.arange(weight.numel(), dtype=weight.dtype).view_as(weight)
    weight.copy_(gradient)
    assert torch.equal(parts.layers[L].key.weight(), parts.layers[L].key.weight(gradient))
    parts.layers[L].key.weight()[0, 0, 0] = -1
    assert (weight == -1).sum() == 1


def test_an_unknown_family_is_refused_with_the_known_ones():
    model = OlmoForCausalLM(
        OlmoConfig(vocab_size=50, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    )
    with pytest.raises(CheckpointError, match=r"'olmo'.*gpt2, gpt_neox, .*xglm"):
        architectures.architecture(model)


def test_the_mlp_is_added_to_the_stream_that_it_says(model, parts):
    """Block output = r + W_out a, with r what `stream` reads; in a parallel block r = input + attention."""
    layer, seen = parts.layers[L], {}
    modules = {"block": layer.block, "attention": layer.output, "out": layer.mlp.output, "stream": layer.mlp.stream}

    def keep(name, *read_and_returned):
        seen[name] = [x.view(IDS.shape[1], -1) for x in read_and_returned]

    with hooks.outputs((m, functools.partial(keep, name)) for name, m in modules.items() if m is not None):
        model(input_ids=IDS, use_cache=False)
    returned = {name: output for name, (_, output) in seen.items()}
    parallel = model.config.model_type == "gpt_neox"
    assert (layer.mlp.stream is None) == parallel
    r = seen["block"][0] + returned["attention"] if parallel else seen["stream"][0]
    added = r + returned["out"]
    if getattr(model.config, "do_layer_norm_before", True) is False:
        added = layer.block.final_layer_norm(added)
    torch.testing.assert_close(added, returned["block"], rtol=1e-5, atol=1e-5)


def test_the_inputs_of_the_mlp_read_one_vector_and_decide_its_output(model, parts):
    mlp = parts.layers[L].mlp
    assert len(mlp.inputs) == (2 if model.config.model_type in ("llama", "qwen2", "qwen3") else 1)
    read = []
    with hooks.inputs((m, read.append) for m in mlp.inputs):
        before = output_of(model, mlp.output)
    assert all(torch.equal(x, read[0]) for x in read)
    for module in mlp.inputs:
        module.weight.zero_()
        if module.bias is not None:
            module.bias.zero_()
    after = output_of(model, mlp.output).view(-1, before.shape[-1])
    assert not torch.allclose(before.view(after.shape), after)
    torch.testing.assert_close(after, after[:1].expand_as(after))  # the same for all tokens: that of no input
