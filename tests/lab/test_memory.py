"""Memory: what is counted, what is free, and what is refused before it begins."""

from dataclasses import replace

import pytest
import tiny_models
import torch
import toy_study
from transformers import XGLMConfig, XGLMForCausalLM

from explainer import commands
from explainer.errors import CheckpointError
from explainer.models import loading, memory
from explainer_lab.agreement import Agreement, _lessons_of
from explainer_lab.comparison import Comparison


@pytest.mark.parametrize("family", tiny_models.CONFIGS)
def test_weights_and_updates_are_counted_as_they_are_held(saved, tiny, family):
    model = loading.skeleton(saved[family])
    assert {p.device.type for p in model.parameters()} == {"meta"}
    weights = sum(p.numel() for p in tiny[family].model.parameters())
    config = model.config
    width = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width *= config.hidden_size // config.num_attention_heads

    def needed(dtype=torch.float32, n_models=1, n_updates=1):
        return memory.required_bytes(model, dtype, 4, n_models, n_updates)

    assert needed(n_models=2) - needed() == 4 * weights
    assert needed(torch.bfloat16, n_models=2) - needed(torch.bfloat16) == 2 * weights
    assert needed(n_updates=3) - needed() == 2 * 4 * 2 * config.num_hidden_layers * width * config.hidden_size


@pytest.mark.parametrize("dtype", memory.BYTES_PER_WEIGHT)
def test_what_is_said_of_a_weight_is_what_is_counted_for_a_model_of_24_layers(dtype):
    config = XGLMConfig(d_model=2048, num_layers=24, attention_heads=32, ffn_dim=8192, vocab_size=50264)
    with torch.device("meta"):
        model = XGLMForCausalLM._from_config(config)
    counted = memory.required_bytes(model, dtype, 32, 1, 1) / sum(p.numel() for p in model.parameters())
    assert counted == pytest.approx(memory.BYTES_PER_WEIGHT[dtype], rel=0.02)


def test_an_agreement_counts_all_its_trainings(saved):
    data = {"toy": toy_study.DATA}
    setting = Agreement.of(checkpoint=str(saved["llama"]), task="capitals", seed=0, k=4, n_queries=4, epochs=5)
    named = len(_lessons_of(setting, lambda _: replace(toy_study.DATA))) + 1  # the own lesson at a smaller rate
    assert Agreement(data=data).holds(setting) == (1, named * len((1, 2, 5)))


def test_a_look_is_refused_before_its_model_is_loaded(saved, monkeypatch, capsys):
    monkeypatch.setattr(loading, "load", lambda *_, **__: pytest.fail("loaded"))
    need = memory.required_bytes(loading.skeleton(saved["llama"]), torch.float32, 4, 1, 0)
    monkeypatch.setattr(memory, "free_bytes", lambda _: need - 1)
    asked = ["look", "--model", str(saved["llama"]), "--tasks", "capitals", "--k", "4", "--device", "cpu"]
    assert commands.main([*asked, "--dtype", "float32"]) == 1
    assert "does not fit" in capsys.readouterr().err
    memory.require_memory("it", torch.device("cpu"), need - 1)


@pytest.mark.parametrize("computes", [True, False])
def test_the_widest_format_that_fits_is_taken(monkeypatch, computes):
    """A GPU with room for float32, or for half of it; on a T4 the half is float16, which it computes in."""
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: computes)
    half = torch.bfloat16 if computes else torch.float16
    for free, dtype in ((6e9, torch.float32), (3.9e9, half)):
        monkeypatch.setattr(memory, "free_bytes", lambda _, free=free: free)
        assert memory.dtype_of("auto", "cuda", lambda dtype: dtype.itemsize * 10**9) == dtype
        assert memory.dtype_of("float16", "cuda", lambda _: pytest.fail("asked")) == torch.float16


@pytest.mark.parametrize("workers", [1, 3])
def test_what_does_not_fit_is_refused_before_it_is_loaded(saved, monkeypatch, workers):
    model, study = str(saved["llama"]), Comparison(data={"toy": toy_study.DATA})
    settings = [toy_study.setting(model, seed=seed) for seed in range(2)]
    monkeypatch.setattr(loading, "load", lambda *_, **__: pytest.fail("loaded"))
    need = study.needs(settings[0])
    monkeypatch.setattr(memory, "free_bytes", lambda _: workers * need - 1)
    with pytest.raises(CheckpointError, match=r"does not fit: it needs about .* fewer --workers"):
        list(study.estimates(settings, workers))
    monkeypatch.setattr(memory, "free_bytes", lambda _: workers * need)
    list(study.estimates(settings, workers))
