"""models.architectures: every part is found by changing it and looking at what the model itself then computes."""

import copy

import pytest
import tiny_models
import torch
from transformers import AutoModelForCausalLM, OlmoConfig, OlmoForCausalLM, Qwen2Config

from explainer.errors import CheckpointError
from explainer.models import architectures, hooks

CONFIGS = tiny_models.CONFIGS | {
    name: config for name, config in tiny_models.MORE.items() if config.model_type != "gpt_neox"
}
IDS = torch.tensor([[5, 80, 17, 3, 80, 42, 9]])


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


def output_of(model, module):
    """What a module of the model returns in a forward pass; the first item of a tuple."""
    seen = []
    with hooks.outputs([(module, lambda _, output: seen.append(output))]):
        model(input_ids=IDS, use_cache=False)
    return seen[0]


def test_sizes_are_those_of_the_configuration(model, parts):
    config = model.config
    n_key_heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
    head_size = getattr(config, "head_dim", config.hidden_size // config.num_attention_heads)
    assert (len(parts.layers), parts.n_heads) == (config.num_hidden_layers, config.num_attention_heads)
    assert parts.layers[0].key.head_size == head_size
    for projection, heads in zip(("query", "key", "value"), (parts.n_heads, n_key_heads, n_key_heads), strict=True):
        for layer in parts.layers:
            weight, bias = getattr(layer, projection).weight(), getattr(layer, projection).bias()
            assert weight.shape == (heads, head_size, config.hidden_size)
            assert bias is None or bias.shape == (heads, head_size)


def test_rotation_is_that_of_the_model_and_its_transpose_takes_it_back(model, parts):
    """R_p keeps products between keys at the same place, and q . R_p k = R_p^T q . k."""
    size, generator = parts.layers[0].key.head_size, torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 1, 2, IDS.shape[1], size, generator=generator).double()
    rotary = getattr(model.base_model, "rotary_emb", None)
    if rotary is None:
        assert model.config.model_type in ("gpt2", "opt", "xglm")
        assert parts.rotated(x, None) is x
        return
    kind = model.config.layer_types[:1] if model.config.model_type == "gemma3_text" else ()
    cos, sin = (part.double() for part in rotary(x, torch.arange(IDS.shape[1])[None], *kind))
    turned = parts.rotated(x, (cos, sin))
    torch.testing.assert_close(turned[..., 0, :], x[..., 0, :])
    assert not torch.allclose(turned[..., 1:, :], x[..., 1:, :])
    torch.testing.assert_close((turned * y).sum(-1), (x * parts.rotated(y, (cos, -sin))).sum(-1))
    torch.testing.assert_close(parts.rotated(turned, (cos, -sin)), x)
    shared = parts.rotated(x, (cos[:, 3:4], sin[:, 3:4]))
    torch.testing.assert_close(shared[..., 3, :], turned[..., 3, :])


def test_windows_of_sliding_attention():
    window = {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}
    model = AutoModelForCausalLM.from_config(Qwen2Config(**tiny_models.FURTHER["mistral"] | window))
    assert [layer.window for layer in architectures.architecture(model).layers] == [None, 8, 8]


def test_readout_of_the_last_block_is_the_models_prediction(model, parts):
    hidden = output_of(model, parts.layers[-1].block)
    torch.testing.assert_close(parts.readout(hidden), model(input_ids=IDS).logits)
    assert not torch.allclose(parts.readout(output_of(model, parts.layers[0].block)), model(input_ids=IDS).logits)


def test_an_unknown_family_is_refused_with_the_known_ones():
    model = OlmoForCausalLM(
        OlmoConfig(vocab_size=50, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    )
    with pytest.raises(CheckpointError, match=r"'olmo'.*gpt2, gpt_neox, .*xglm"):
        architectures.architecture(model)
