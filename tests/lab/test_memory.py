"""Memory: what is counted, what is free, and what is refused before it begins."""

import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
import tiny_models
import torch
import toy_study
from conftest import ROOT
from transformers import OlmoConfig, OlmoForCausalLM, XGLMConfig, XGLMForCausalLM

from explainer import commands
from explainer.errors import CheckpointError
from explainer.models import loading, memory
from explainer_lab.agreement import Agreement, _lessons_of
from explainer_lab.comparison import Comparison
from explainer_lab.store import Store


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


def test_of_a_family_that_can_only_be_scored_the_weights_are_counted():
    with torch.device("meta"):
        model = OlmoForCausalLM(OlmoConfig(**tiny_models.FURTHER["phi"]))
    one, two = (memory.required_bytes(model, torch.float16, 4, n, 0) for n in (1, 2))
    assert two - one == 2 * sum(p.numel() for p in model.parameters())


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


def test_free_memory_is_less_than_that_of_the_machine():
    assert 0 < memory.free_bytes(torch.device("cpu")) < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


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
def test_what_does_not_fit_is_refused_before_it_is_loaded(saved, tmp_path, monkeypatch, workers):
    model, study = str(saved["llama"]), Comparison(data={"toy": toy_study.DATA})
    settings = [toy_study.setting(model, seed=seed) for seed in range(2)]
    monkeypatch.setattr(loading, "load", lambda *_, **__: pytest.fail("loaded"))
    need = study.needs(settings[0])
    monkeypatch.setattr(memory, "free_bytes", lambda _: workers * need - 1)
    planned = study.plan(settings, Store(tmp_path))
    with pytest.raises(CheckpointError, match=r"does not fit: it needs about .* fewer --workers"):
        list(study.estimates(planned, Store(tmp_path), workers))
    monkeypatch.setattr(memory, "free_bytes", lambda _: workers * need)
    list(study.estimates(planned, Store(tmp_path), workers))


def test_what_a_run_takes_is_said_before_it_begins(saved, tmp_path):
    """The time is the book's until a setting is stored; a narrow number format says what it rounds."""
    study, store = Comparison(data={"toy": toy_study.DATA}), Store(tmp_path)
    settings = [toy_study.setting(str(saved["llama"]), seed=seed) for seed in range(3)]
    (first,) = study.estimates(study.plan(settings, store), store)
    assert re.search(r"llama: 3 to compute, less than a minute each and .* \(the book's, scaled by", first)
    for one, seconds in zip(settings, (600.0, 660.0), strict=False):
        store.save(study.identity(one), {"settings": {}}, provenance={}, run={"seconds": seconds})
    (then,) = study.estimates(study.plan(settings, store), store)
    assert "llama: 1 to compute, about 10 min each and about 10 min in all in one process (the median" in then
    half = Comparison(data={"toy": toy_study.DATA}, dtype=torch.bfloat16)
    _, rounding = half.estimates(half.plan(settings[:1], store), store)
    assert re.search(r"in bfloat16 differ from those in float32 by at most 0\.\d+ nats \(4 queries of toy\)", rounding)


@pytest.mark.slow
@pytest.mark.weekly  # a process that measures what it takes; the terms of the formula are counted above
def test_a_setting_takes_about_what_is_counted():
    shape, n_shown = (4, 1024, 16), 8
    command = [sys.executable, ROOT / "benchmarks/at_size.py", "--shape", "x".join(map(str, shape))]
    asked = ["--k", str(n_shown), "--queries", "4", "--vocabulary", "49152"]
    done = subprocess.run([*command, *asked], capture_output=True, text=True, check=True)
    gigabytes = float(re.search(r"peak ([\d.]+) GB, [\d.]+ GB more", done.stdout)[1])
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import at_size  # noqa: PLC0415

    config = at_size.config(*shape, vocabulary=49152)
    with torch.device("meta"):
        model = at_size.XGLMForCausalLM(config)
    assert 0.5 < memory.required_bytes(model, torch.float32, n_shown, 1, 1) / 1e9 / gigabytes < 2
