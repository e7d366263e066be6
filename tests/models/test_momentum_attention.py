"""models.momentum_models on tiny random GPT-2 and Llama models: exact however a row is cut, padded or cached."""

import pytest
import tiny_models
import torch
from torch.nn.functional import softmax
from transformers import (
    AutoModelForCausalLM,
    DynamicCache,
    GPT2Config,
    LlamaConfig,
    StaticCache,
)

from explainer.errors import CheckpointError
from explainer.models import architectures
from explainer.models import momentum_models as models
from explainer.models.architectures import CACHE
from explainer.theory import momentum

T, ETA, PAD = 80, 0.8, 1
FAMILIES = ("gpt2", "llama")
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


@pytest.fixture(params=FAMILIES)
def model(request):
    """A fresh plain model."""
    return tiny_models.random_model(tiny_models.CONFIGS[request.param]).eval()


@pytest.fixture
def switched(model):
    """The model with momentum."""
    return models.with_momentum(model, ETA)


def ids(batch=2, length=T, seed=0):
    return torch.randint(3, tiny_models.VOCAB, (batch, length), generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def logits(model, tokens, **inputs):
    return model(tokens, **inputs).logits


def close(actual, expected):
    torch.testing.assert_close(actual, expected, **TOLERANCE)


# What it computes.


def test_without_decay_and_switched_off_the_logits_are_those_of_the_model_to_the_bit(model):
    plain = logits(model, ids())
    assert torch.equal(logits(models.with_momentum(model, 0.0), ids()), plain)
    assert (logits(models.with_momentum(model, ETA), ids()) - plain).abs().max() > 1
    model.set_attn_implementation("sdpa")
    assert torch.equal(logits(model, ids()), plain)


@pytest.mark.parametrize("name", momentum.AVERAGES)
def test_every_head_gets_the_average_of_its_values(model, name):
    """In the first layer, whose input is the same with and without: what enters the readout differs by the average."""
    layer, seen = architectures.architecture(model).layers[0], []
    layer.value.module.register_forward_hook(lambda _module, _inputs, output: seen.append(output))
    layer.output.register_forward_pre_hook(lambda _module, inputs: seen.append(inputs[0]))
    logits(model, ids())
    logits(models.with_momentum(model, ETA, name), ids())
    values, plain, _, switched = seen
    average = momentum.AVERAGES[name](layer.value.part(values, -1).transpose(1, 2), ETA)
    heads = average.repeat_interleave(model.config.num_attention_heads // average.shape[1], 1)
    close(switched - plain, heads.transpose(1, 2).flatten(2))


# However a row comes.


@pytest.mark.parametrize("name", momentum.AVERAGES)
@pytest.mark.parametrize("cuts", [(70, *range(71, T)), (20, 21, 55), (1, 2, 79)], ids=str)
def test_a_cache_changes_nothing(model, name, cuts):
    """Token by token after a prefill, and a prefill in chunks."""
    switched = models.with_momentum(model, ETA, name)
    cache, parts = DynamicCache(config=switched.config), []
    for start, stop in zip((0, *cuts), (*cuts, T), strict=True):
        parts.append(logits(switched, ids()[:, start:stop], **{CACHE: cache}))
    close(torch.cat(parts, 1), logits(switched, ids()))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", [name for name in momentum.AVERAGES if name != "permuted"])
def test_padding_changes_nothing(model, side, name):
    switched, n = models.with_momentum(model, ETA, name), 9
    rows, real = ids(), slice(n, None) if side == "left" else slice(None, T - n)
    mask = torch.ones_like(rows)
    rows[1], mask[1] = PAD, 0
    rows[1, real], mask[1, real] = ids()[1, : T - n], 1
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    found = logits(switched, rows, attention_mask=mask, position_ids=positions)
    close(found[0], logits(switched, ids()[:1])[0])
    close(found[1, real], logits(switched, ids()[1:, : T - n])[0])


def test_a_random_order_of_positions_is_refused_where_padding_shifts_them(model):
    switched = models.with_momentum(model, ETA, "permuted")
    mask = torch.ones(2, T, dtype=torch.long)
    mask[1, 70:] = 0
    close(logits(switched, ids(), attention_mask=mask)[1, :70], logits(switched, ids()[1:, :70])[0])
    with pytest.raises(ValueError, match="pad on the right"):
        logits(switched, ids(), attention_mask=mask.flip(1))


# What it refuses to compute.


def test_packed_rows_are_refused(switched):
    packed = torch.cat([torch.arange(30), torch.arange(50)])[None].expand(2, -1)
    with pytest.raises(ValueError, match="no packed sequences"):
        logits(switched, ids(), position_ids=packed, use_cache=False)
    mask = torch.block_diag(torch.ones(30, 30), torch.ones(50, 50)).bool().tril()[None, None].expand(2, 1, -1, -1)
    with pytest.raises(ValueError, match="row of its own"):
        logits(switched, ids(), attention_mask=mask)


def test_static_and_paged_caches_are_refused(switched):
    cache = StaticCache(config=switched.config, max_cache_len=T + 8)
    with pytest.raises(ValueError, match="as DynamicCache does"):
        logits(switched, ids(), **{CACHE: cache})
    with pytest.raises(ValueError, match="do not use a paged cache"):
        models._attend_with_momentum(switched, *torch.ones(3, 1, 1, 2, 4), None, cache=cache)


SMALL = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 16}
GROUPED = SMALL | {"num_key_value_heads": 2, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (tiny_models.CONFIGS["opt"], r"gpt2 and llama.*\(opt\)"),
        (GPT2Config(n_embd=8, n_layer=1, n_head=2, vocab_size=20, add_cross_attention=True), "without cross-attention"),
    ],
    ids=["opt", "cross-attention"],
)
def test_what_it_would_get_wrong_is_refused_by_name(config, message):
    model = AutoModelForCausalLM.from_config(config)
    for switch in (models.with_momentum, models.with_recency_bias):
        with pytest.raises(CheckpointError, match=message):
            switch(model, 0.5)


# The learned convolution.


@pytest.fixture
def llama():
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(LlamaConfig(**GROUPED)).double()


def test_a_learned_convolution_starts_as_plain_attention_and_contains_momentum(llama):
    rows = torch.randint(3, 50, (2, 12), generator=torch.Generator().manual_seed(1))
    plain = llama(rows, use_cache=False).logits
    learned = models.with_learned_convolution(llama)
    close(learned(rows, use_cache=False).logits, plain)
    for layer in learned.model.layers:
        kernel = layer.self_attn.value_kernel
        assert kernel.shape == (momentum.SHORT, 8)
        kernel.data = momentum.weights(0.5, momentum.SHORT)[:, None].expand(-1, 8).clone()
    by_kernel = learned(rows, use_cache=False).logits
    close(by_kernel, models.with_momentum(learned, 0.5, "short_convolution")(rows, use_cache=False).logits)


def test_a_learned_convolution_refuses_what_it_would_get_wrong(llama):
    rows = torch.randint(3, 50, (1, 12))
    learned = models.with_learned_convolution(llama)
    with pytest.raises(ValueError, match="without a cache"):
        cache = learned(rows, use_cache=True)[CACHE]
        learned(rows[:, :1], **{CACHE: cache})
    with pytest.raises(ValueError, match="whole rows of one length"):
        learned(rows, attention_mask=(torch.arange(12) > 3)[None].long(), use_cache=False)


# The recency bias.


def test_the_recency_bias_is_the_decay_as_a_factor_of_the_weights(switched):
    """With grouped queries for Llama: softmax weights times eta^(t-i), normalised again."""
    module = next(m for m in switched.modules() if hasattr(m, "head_dim"))
    H, H_k = switched.config.num_attention_heads, getattr(switched.config, "num_key_value_heads", 4)
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(2, n, T, 8, generator=generator) for n in (H, H_k, H_k))
    found, _ = models._attend_with_recency_bias(module, query, key, value, None, scaling=0.4)
    lag = torch.arange(T)[:, None] - torch.arange(T)
    factors = torch.where(lag >= 0, ETA**lag, 0)
    weights = softmax(query @ key.repeat_interleave(H // H_k, 1).mT * 0.4, -1) * factors
    expected = weights / weights.sum(-1, keepdim=True) @ value.repeat_interleave(H // H_k, 1)
    close(found.transpose(1, 2), expected)


def test_the_recency_bias_with_padding_and_a_cache(model):
    plain = logits(model, ids())
    close(logits(models.with_recency_bias(model, 1.0), ids()), plain)
    biased = models.with_recency_bias(model, ETA)
    expected = logits(biased, ids())
    assert (expected - plain).abs().max() > 0.1
    cache = DynamicCache(config=biased.config)
    spans = ((0, 30), (30, 70), *((i, i + 1) for i in range(70, T)))
    parts = [logits(biased, ids()[:, start:stop], **{CACHE: cache}) for start, stop in spans]
    close(torch.cat(parts, 1), expected)
    mask = torch.ones(2, T, dtype=torch.long)
    mask[:, :9] = 0
    found = logits(biased, ids(), attention_mask=mask, position_ids=(mask.cumsum(1) - 1).clamp(min=0))
    close(found[:, 9:], logits(biased, ids()[:, 9:]))


# Save and load.


@pytest.mark.parametrize("average", ["momentum", "nesterov", None])
def test_what_is_saved_is_not_loaded_as_plain_attention(model, average, tmp_path):
    """By its average, or the recency bias; switched on, it is what it was."""
    switched = models.with_recency_bias(model, ETA) if average is None else models.with_momentum(model, ETA, average)
    switched.save_pretrained(tmp_path / "one")
    with pytest.raises(ValueError, match="then switch it on"):
        AutoModelForCausalLM.from_pretrained(tmp_path / "one")
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "one", attn_implementation="sdpa").eval()
    assert loaded.config.momentum_eta == ETA and loaded.config.momentum_average == switched.config.momentum_average
    again = models.with_recency_bias(loaded, ETA) if average is None else models.with_momentum(loaded, ETA, average)
    assert torch.equal(logits(again, ids()), logits(switched, ids()))
