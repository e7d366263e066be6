"""explainer.families: every slice is found by changing it and looking at what the model's own attention receives."""

import inspect
import sys

import pytest
import tiny_models
import torch
from transformers import AutoModelForCausalLM, BloomConfig, GPT2Config, OPTConfig, Qwen2Config, Qwen3Config

from explainer import families
from explainer.errors import CheckpointError

_QWEN = {
    "vocab_size": 100,
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
}
CONFIGS = tiny_models.CONFIGS | {
    "qwen2": Qwen2Config(**_QWEN),
    "qwen3": Qwen3Config(**_QWEN, head_dim=16),
    "opt-post-norm": OPTConfig(
        vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64,
        word_embed_proj_dim=16, do_layer_norm_before=False,
    ),
    "gpt2-by-layer": GPT2Config(n_embd=32, n_layer=3, n_head=4, vocab_size=100, scale_attn_by_inverse_layer_idx=True),
}  # fmt: skip
IDS = torch.tensor([[5, 80, 17, 3, 80, 42, 9]])


@pytest.fixture(params=CONFIGS)
def model(request):
    """A random model in float64 with biases and large weights."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(CONFIGS[request.param], attn_implementation="eager").double().eval()
        for parameter in model.parameters():
            parameter.data += 0.2 * torch.randn_like(parameter)
    return model.requires_grad_(False)


@pytest.fixture
def attended(model, monkeypatch):
    """Function that runs the model and returns, per layer, the query, key, value and scale its attention received."""
    seen = []
    module = sys.modules[type(model).__module__]
    if model.config.model_type in ("gpt_neo", "xglm"):  # these two multiply in their attention module itself
        monkeypatch.setattr(module, "nn", _Spy(module.nn, seen))
    else:
        eager = module.eager_attention_forward

        def spy(attention, query, key, value, mask, scaling=None, **options):
            seen.append((query, key, value, scaling))
            return eager(attention, query, key, value, mask, scaling=scaling, **options)

        monkeypatch.setattr(module, "eager_attention_forward", spy)

    def run():
        seen.clear()
        model(input_ids=IDS, use_cache=False)
        return list(seen)

    return run
