"""explainer.models.heads on tiny random models: a head as read is the head that transformers computes with."""

from contextlib import nullcontext
from itertools import chain

import pytest
import tiny_models
import torch
from test_recording import Eager
from transformers import Gemma2Config, GPT2Config, MistralConfig

from explainer.data import tasks
from explainer.errors import CheckpointError
from explainer.models import heads
from explainer.theory import duality

READABLE = ("gpt2", "gpt_neox", "llama", "opt")
IDS = [0, *range(5, 40)]


def require_equal_to_eager(checkpoint, layers, monkeypatch):
    eager = Eager(checkpoint, IDS, monkeypatch)
    assert len(layers) == len(eager.weights) == len(eager.read)
    for layer, expected_weights, expected in zip(layers, eager.weights, eager.read, strict=True):
        ours = torch.stack([duality.scaled_logits(head.query, head.keys).softmax(-1) for head in layer])
        torch.testing.assert_close(ours.float(), expected_weights, rtol=0, atol=1e-4)
        ours = torch.cat([duality.softmax_attention(head.query, head.keys, head.values) for head in layer])
        torch.testing.assert_close(ours.float(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", READABLE)
def test_softmax_attention_of_a_head_is_what_transformers_computes(tiny, name, monkeypatch):
    checkpoint = tiny[name]
    layers = heads.read_heads(checkpoint, IDS)
    config = checkpoint.model.config
    d = config.hidden_size // config.num_attention_heads
    assert [len(layer) for layer in layers] == [config.num_attention_heads] * config.num_hidden_layers
    for head in (head for layer in layers for head in layer):
        assert (head.query.shape, head.keys.shape, head.values.shape) == ((d,), (len(IDS), d), (len(IDS), d))
        assert head.query.dtype == head.keys.dtype == head.values.dtype == torch.float64
    require_equal_to_eager(checkpoint, layers, monkeypatch)


@pytest.mark.parametrize("options", [{"scale_attn_weights": False}, {"scale_attn_by_inverse_layer_idx": True}])
def test_the_query_carries_an_unusual_scale(options, monkeypatch):
    config = GPT2Config(vocab_size=64, n_positions=64, n_embd=32, n_layer=3, n_head=4, **options)
    checkpoint = tiny_models.random_checkpoint(config)
    require_equal_to_eager(checkpoint, heads.read_heads(checkpoint, IDS), monkeypatch)


def test_shared_keys_are_given_to_every_head_of_their_group(tiny):
    layer = heads.read_heads(tiny["llama"], IDS)[1]
    assert len(layer) == 6
    for i in range(6):
        for j in range(6):
            assert torch.equal(layer[i].keys, layer[j].keys) == (i // 3 == j // 3)


@pytest.mark.parametrize("name", READABLE)
def test_a_model_that_runs_eager_gives_the_same_heads(tiny, name):
    checkpoint = tiny[name]
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


@pytest.mark.parametrize("name", tiny_models.CONFIGS)
def test_the_callers_model_is_left_as_it_was(tiny, name):
    refused = nullcontext() if name in READABLE else pytest.raises(CheckpointError)
    with tiny_models.unchanged(tiny[name].model), refused:
        heads.read_heads(tiny[name], IDS)


def test_the_model_is_restored_after_a_crash(tiny, monkeypatch):
    monkeypatch.setattr(heads, "_heads", lambda *_: 1 / 0)
    with tiny_models.unchanged(tiny["llama"].model), pytest.raises(ZeroDivisionError):
        heads.read_heads(tiny["llama"], IDS)


@pytest.mark.parametrize("name", ["gpt_neo", "xglm"])
def test_families_that_ignore_the_interface_are_refused(tiny, name):
    with pytest.raises(CheckpointError, match=rf"0 of \d layers asked.*heads of a {name} cannot be read; choose"):
        heads.read_heads(tiny[name], IDS)


@pytest.mark.parametrize("ids", [[], [3] * (tiny_models.LENGTH + 1)])
def test_number_of_tokens(tiny, ids):
    with pytest.raises(CheckpointError, match=rf"^{len(ids)} tokens; .* 1 to {tiny_models.LENGTH}"):
        heads.read_heads(tiny["llama"], ids)


SMALL = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8,
}  # fmt: skip


@pytest.mark.parametrize(
    "config",
    [
        MistralConfig(**SMALL, sliding_window=8),
        Gemma2Config(**SMALL, attn_logit_softcapping=0.1, query_pre_attn_scalar=8),
    ],
    ids=["local window", "soft cap"],
)
def test_what_is_no_softmax_over_all_tokens_is_refused(config):
    checkpoint = tiny_models.random_checkpoint(config)
    if config.model_type == "mistral":  # a prompt within the window
        assert len(heads.read_heads(checkpoint, IDS[:8])) == 2
    with pytest.raises(CheckpointError, match=r"head \d of layer 0 is not a softmax over all 36 tokens"):
        heads.read_heads(checkpoint, IDS)


def test_rows_first_moves_rows_and_keeps_the_output(tiny):
    head = heads.read_heads(tiny["gpt2"], IDS)[1][2]
    moved = head.with_rows_first(3, 10)
    assert torch.equal(moved.keys, torch.cat([head.keys[3:10], head.keys[:3], head.keys[10:]]))
    assert torch.equal(moved.values, torch.cat([head.values[3:10], head.values[:3], head.values[10:]]))
    outputs = [duality.softmax_attention(h.query, h.keys, h.values) for h in (head, moved)]
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-12)


def test_heads_of_a_prompt_have_the_demonstrations_first(tiny):
    """The rows are those of one pass over the prompt: the first token stands behind the n demonstration tokens."""
    checkpoint, data = tiny["llama"], tasks.load("capitals")
    prompt = heads.read_demonstrations(checkpoint, data, seed=3, k=2)
    given = list(chain.from_iterable(heads.read_heads(checkpoint, prompt.ids)))
    text = "".join(data.task.demonstration(one) + "\n" for one in tasks.demonstrations(data, 2, 3))
    assert prompt.ids[1 : prompt.n + 1] == checkpoint.tokenize(text)
    for found, head in zip(prompt.heads, given, strict=True):
        assert torch.equal(found.query, head.query)
        assert torch.equal(found.keys[: prompt.n], head.keys[1 : prompt.n + 1])
        assert torch.equal(found.values[prompt.n], head.values[0])
        assert torch.equal(found.values[prompt.n + 1 :], head.values[prompt.n + 1 :])
