"""explainer.models.heads on tiny random models: a head as read is the head that transformers computes with."""

from itertools import chain
from pathlib import Path

import pytest
import tiny_models
import torch
from transformers import AutoModelForCausalLM, Gemma2Config, GPT2Config, MistralConfig
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from explainer.data import tasks
from explainer.errors import CheckpointError
from explainer.models import checkpoints, heads
from explainer.theory import duality

READABLE = ("gpt2", "gpt_neox", "llama", "opt")
IDS = [0, *range(5, 40)]


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    """Load the tiny checkpoint of a family, once."""
    loaded = {}

    def load(name):
        if name not in loaded:
            loaded[name] = checkpoints.load(tiny_models.save(name, tmp_path_factory.mktemp(name)))
        return loaded[name]

    return load


def checkpoint_of(config, dtype=torch.float32):
    """A random model in memory; weights are large, so that attention is far from uniform."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval().requires_grad_(False).to(dtype)
    for parameter in model.parameters():
        parameter.normal_(std=0.3)
    return checkpoints.Checkpoint(model, tiny_models.tokenizer(), config.model_type, None, (Path("none"),))


def reference(checkpoint, ids, output_projection):
    """Eager attention weights (heads, T) and outputs (heads * d_v) of each layer's last position, from transformers."""
    own, outputs = checkpoint.model.config._attn_implementation, []
    names = [name for name, _ in checkpoint.model.named_modules() if name.endswith(output_projection)]
    hooks = [
        checkpoint.model.get_submodule(name).register_forward_pre_hook(lambda _, inputs: outputs.append(inputs[0]))
        for name in names
    ]
    checkpoint.model.set_attn_implementation("eager")
    result = checkpoint.model(input_ids=torch.tensor([ids]), output_attentions=True)
    checkpoint.model.set_attn_implementation(own)
    for hook in hooks:
        hook.remove()
    return [weights[0, :, -1] for weights in result.attentions], [output[0, -1] for output in outputs]


PROJECTION = {
    "gpt2": "attn.c_proj",
    "gpt_neox": "attention.dense",
    "llama": "self_attn.o_proj",
    "opt": "self_attn.out_proj",
}


def require_equal_to_eager(checkpoint, layers, projection):
    weights, outputs = reference(checkpoint, IDS, projection)
    assert len(layers) == len(weights) == len(outputs)
    for layer, expected_weights, expected in zip(layers, weights, outputs, strict=True):
        ours = torch.stack([duality.scaled_logits(head.query, head.keys).softmax(-1) for head in layer])
        torch.testing.assert_close(ours.float(), expected_weights, rtol=0, atol=1e-4)
        ours = torch.cat([duality.softmax_attention(head.query, head.keys, head.values) for head in layer])
        torch.testing.assert_close(ours.float(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", READABLE)
def test_softmax_attention_of_a_head_is_what_transformers_computes(family, name):
    checkpoint = family(name)
    layers = heads.read_heads(checkpoint, IDS)
    config = checkpoint.model.config
    d = config.hidden_size // config.num_attention_heads
    assert [len(layer) for layer in layers] == [config.num_attention_heads] * config.num_hidden_layers
    for head in (head for layer in layers for head in layer):
        assert (head.query.shape, head.keys.shape, head.values.shape) == ((d,), (len(IDS), d), (len(IDS), d))
        assert head.query.dtype == head.keys.dtype == head.values.dtype == torch.float64
    require_equal_to_eager(checkpoint, layers, PROJECTION[name])


@pytest.mark.parametrize("options", [{"scale_attn_weights": False}, {"scale_attn_by_inverse_layer_idx": True}])
def test_the_query_carries_an_unusual_scale(options):
    config = GPT2Config(vocab_size=64, n_positions=64, n_embd=32, n_layer=3, n_head=4, **options)
    checkpoint = checkpoint_of(config)
    require_equal_to_eager(checkpoint, heads.read_heads(checkpoint, IDS), PROJECTION["gpt2"])


def test_shared_keys_are_given_to_every_head_of_their_group(family):
    layer = heads.read_heads(family("llama"), IDS)[1]
    assert len(layer) == 6
    for i in range(6):
        for j in range(6):
            assert torch.equal(layer[i].keys, layer[j].keys) == (i // 3 == j // 3)


@pytest.mark.parametrize("name", READABLE)
def test_a_model_that_runs_eager_gives_the_same_heads(family, name):
    checkpoint = family(name)
    expected = heads.read_heads(checkpoint, IDS)
    checkpoint.model.set_attn_implementation("eager")
    try:
        read = heads.read_heads(checkpoint, IDS)
        assert checkpoint.model.config._attn_implementation == "eager"
    finally:
        checkpoint.model.set_attn_implementation("sdpa")
    for ours, theirs in zip(chain(*read), chain(*expected), strict=True):
        torch.testing.assert_close(ours.query, theirs.query, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(ours.values, theirs.values, rtol=1e-4, atol=1e-4)


def test_reduced_precision_is_read(family):
    config = GPT2Config(vocab_size=64, n_positions=64, n_embd=32, n_layer=2, n_head=4)
    layers = heads.read_heads(checkpoint_of(config, torch.bfloat16), IDS)
    assert layers[0][0].query.dtype == torch.float64


def state_of(checkpoint):
    ids = torch.tensor([IDS])
    return checkpoint.model.config._attn_implementation, checkpoint.model(input_ids=ids).logits


@pytest.mark.parametrize("name", tiny_models.CONFIGS)
def test_the_callers_model_is_left_as_it_was(family, name):
    checkpoint = family(name)
    implementation, logits = state_of(checkpoint)
    registered = set(ALL_ATTENTION_FUNCTIONS)
    if name in READABLE:
        heads.read_heads(checkpoint, IDS)
    else:
        with pytest.raises(CheckpointError):
            heads.read_heads(checkpoint, IDS)
    assert state_of(checkpoint)[0] == implementation
    assert torch.equal(state_of(checkpoint)[1], logits)
    assert set(ALL_ATTENTION_FUNCTIONS) == registered


def test_the_model_is_restored_after_a_crash(family, monkeypatch):
    checkpoint = family("llama")
    registered = set(ALL_ATTENTION_FUNCTIONS)
    monkeypatch.setattr(heads, "_heads", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        heads.read_heads(checkpoint, IDS)
    assert checkpoint.model.config._attn_implementation == "sdpa"
    assert set(ALL_ATTENTION_FUNCTIONS) == registered


@pytest.mark.parametrize("name", ["gpt_neo", "xglm"])
def test_families_that_ignore_the_interface_are_refused(family, name):
    with pytest.raises(CheckpointError, match=rf"0 of \d layers asked.*heads of a {name} cannot be read; choose"):
        heads.read_heads(family(name), IDS)


@pytest.mark.parametrize("ids", [[], [3] * (tiny_models.LENGTH + 1)])
def test_number_of_tokens(family, ids):
    with pytest.raises(CheckpointError, match=rf"^{len(ids)} tokens; .* 1 to {tiny_models.LENGTH}"):
        heads.read_heads(family("llama"), ids)


def test_one_token_is_enough(family):
    (head, *_), *_ = heads.read_heads(family("llama"), [7])
    assert head.keys.shape == (1, 8)


SMALL = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8,
}  # fmt: skip


def test_a_local_window_is_refused_once_the_prompt_is_longer():
    checkpoint = checkpoint_of(MistralConfig(**SMALL, sliding_window=8))
    assert len(heads.read_heads(checkpoint, IDS[:8])) == 2
    with pytest.raises(CheckpointError, match="head 0 of layer 0 is not a softmax over all 36 tokens"):
        heads.read_heads(checkpoint, IDS)


def test_a_soft_cap_is_refused():
    checkpoint = checkpoint_of(Gemma2Config(**SMALL, attn_logit_softcapping=0.1, query_pre_attn_scalar=8))
    with pytest.raises(CheckpointError, match="is not a softmax over all 36 tokens"):
        heads.read_heads(checkpoint, IDS)


def test_rows_first_moves_rows_and_keeps_the_output(family):
    head = heads.read_heads(family("gpt2"), IDS)[1][2]
    moved = head.rows_first(3, 10)
    assert torch.equal(moved.keys, torch.cat([head.keys[3:10], head.keys[:3], head.keys[10:]]))
    assert torch.equal(moved.values, torch.cat([head.values[3:10], head.values[:3], head.values[10:]]))
    outputs = [duality.softmax_attention(h.query, h.keys, h.values) for h in (head, moved)]
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-12)


def test_heads_of_a_prompt_have_the_demonstrations_first(family):
    """The rows are those of one pass over the prompt: the first token stands behind the n demonstration tokens."""
    checkpoint, data = family("llama"), tasks.load("capitals")
    prompt = heads.read_demonstrations(checkpoint, data, seed=3, k=2)
    given = list(chain.from_iterable(heads.read_heads(checkpoint, prompt.ids)))
    text = "".join(data.task.demonstration(one) + "\n" for one in tasks.demonstrations(data, 2, 3))
    assert prompt.ids[1 : prompt.n + 1] == checkpoint.tokenize(text)
    for found, head in zip(prompt.heads, given, strict=True):
        assert torch.equal(found.query, head.query)
        assert torch.equal(found.keys[: prompt.n], head.keys[1 : prompt.n + 1])
        assert torch.equal(found.values[prompt.n], head.values[0])
        assert torch.equal(found.values[prompt.n + 1 :], head.values[prompt.n + 1 :])
