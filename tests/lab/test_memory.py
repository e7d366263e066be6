"""Memory: what is counted, what is free, and what is refused before it begins."""

import os
import re
import resource
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import tiny_models
import torch
import toy_study
from conftest import ROOT
from transformers import OlmoConfig, OlmoForCausalLM, XGLMConfig, XGLMForCausalLM

from explainer import commands
from explainer.errors import CheckpointError, ExperimentError
from explainer.models import loading, memory
from explainer_lab.agreement import Agreement, lessons_of
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
    one, two = (memory.required_bytes(model, torch.float16, 4, n, None) for n in (1, 2))
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
    named = len(lessons_of(setting, lambda _: replace(toy_study.DATA))) + 1  # the own lesson at a smaller rate
    assert Agreement(data=data).holds(setting) == (1, named * len((1, 2, 5)))


def machine(root, available, limit=None):
    """The files of a machine with so many free bytes, and of a job with a limit, half of it in use."""
    (root / "proc").mkdir(parents=True)
    (root / "proc" / "meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable:  {available // 1024} kB\n")
    (root / "sys/fs/cgroup").mkdir(parents=True)
    files = {
        "memory.max": limit or "max",
        "memory.current": (limit or 0) // 2,
        "memory.stat": "anon 9\ninactive_file 7\n",
    }
    for name, content in files.items():
        (root / "sys/fs/cgroup" / name).write_text(str(content))
    return root


def test_free_memory_is_that_of_the_machine_or_of_the_job_or_of_its_addresses(tmp_path, monkeypatch):
    here = torch.device("cpu")
    assert memory.free_bytes(here, machine(tmp_path / "machine", 4096 * 1024)) == 4096 * 1024
    assert memory.free_bytes(here, machine(tmp_path / "job", 4096 * 1024, limit=2048)) == 1024 + 7
    assert memory.free_bytes(here, tmp_path / "none") is None
    (tmp_path / "machine/proc/self").mkdir()
    (tmp_path / "machine/proc/self/statm").write_text("3 2 1 0 0 5 0\n")
    for kind, pages in ((resource.RLIMIT_AS, 3), (resource.RLIMIT_DATA, 5)):
        limits = {kind: (1 << 20, 1 << 20)}
        monkeypatch.setattr("resource.getrlimit", lambda kind, its=limits: its.get(kind, 2 * (resource.RLIM_INFINITY,)))
        assert memory.free_bytes(here, tmp_path / "machine") == (1 << 20) - pages * os.sysconf("SC_PAGE_SIZE")


V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


@pytest.mark.parametrize(
    ("own", "mount", "files"),
    [
        ("0::/job/step\n", "", ("memory.max", "memory.current", "inactive_file")),
        ("0::/job/step\n", "", ("memory.high", "memory.current", "unlisted")),
        ("2:cpuset:/elsewhere\n5:hugetlb,memory:/job/step\n0::/other\n", "memory", V1),
        ("5:memory:/of/the/host\n", "memory", V1),  # as in a container that sees its own group as the root
    ],
)
def test_the_smallest_limit_of_all_groups_above_counts(tmp_path, own, mount, files):
    machine(tmp_path, 1 << 20)
    (tmp_path / "proc/self").mkdir()
    (tmp_path / "proc/self/cgroup").write_text(own)
    top = tmp_path / "sys/fs/cgroup" / mount
    for folder, limit in ((top / "job/step", 1 << 19), (top / "job", 4096), (top, 5000)):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / files[0]).write_text(str(limit))
        (folder / files[1]).write_text("1000")
        (folder / "memory.stat").write_text(f"anon 9\n{files[2]} 7\n")
    least = 5000 if "host" in own else 4096
    assert memory.free_bytes(torch.device("cpu"), tmp_path) == least - 1000 + 7 * (files[2] != "unlisted")
    assert memory.total_bytes(tmp_path) == least


def test_a_look_is_refused_before_its_model_is_loaded(saved, monkeypatch, capsys):
    monkeypatch.setattr(loading, "load", lambda *_, **__: pytest.fail("loaded"))
    need = memory.required_bytes(loading.skeleton(saved["llama"]), torch.float32, 4, 1, None)
    monkeypatch.setattr(memory, "free_bytes", lambda _: need - 1)
    asked = ["look", "--model", str(saved["llama"]), "--tasks", "capitals", "--k", "4", "--device", "cpu"]
    assert commands.main(asked) == 1
    assert "does not fit" in capsys.readouterr().err
    memory.require_memory_to_score(str(saved["llama"]), torch.device("cpu"), torch.float32, 3)


@pytest.mark.parametrize("computes", [True, False])
def test_the_widest_format_that_fits_is_taken_and_the_gpu_is_told(monkeypatch, capsys, computes):
    """A GPU with room for float32, or for half of it; on a T4 the half is float16, which it computes in."""
    t4 = SimpleNamespace(name="Tesla T4", total_memory=15_400_000_000)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: computes)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: t4)
    monkeypatch.setattr(loading, "device_of", torch.device)
    half = torch.bfloat16 if computes else torch.float16
    for free, dtype in ((6e9, torch.float32), (4e9, half)):
        monkeypatch.setattr(memory, "free_bytes", lambda _, free=free: free)
        assert memory.dtype_of("auto", "cuda", lambda dtype: dtype.itemsize * 10**9) == dtype
        assert memory.dtype_of("float16", "cuda", lambda _: pytest.fail("asked")) == torch.float16
    assert commands.main(["models"]) == 0
    of = "15.4 GB of the GPU Tesla T4 hold up to 2.0 billion in float32, 3.1 billion with --dtype"
    assert f"{of} {str(half).removeprefix('torch.')}." in capsys.readouterr().out


@pytest.mark.parametrize(("workers", "message"), [(1, "give --dtype bfloat16 "), (3, "3 processes .* fewer --workers")])
def test_what_does_not_fit_is_refused_before_it_is_loaded(saved, tmp_path, monkeypatch, workers, message):
    model, study = str(saved["llama"]), Comparison(data={"toy": toy_study.DATA})
    settings = [toy_study.setting(model, seed=seed) for seed in range(2)]
    monkeypatch.setattr(loading, "load", lambda *_, **__: pytest.fail("loaded"))
    need = study.needs(settings[0])
    monkeypatch.setattr(memory, "free_bytes", lambda _: workers * need - 1)
    planned = study.plan(settings, Store(tmp_path))
    with pytest.raises(CheckpointError, match=f"does not fit: a setting needs about .* in float32.*{message}"):
        list(study.estimates(planned, Store(tmp_path), workers))
    monkeypatch.setattr(memory, "free_bytes", lambda _: workers * need)
    list(study.estimates(planned, Store(tmp_path), workers))


def test_memory_that_runs_out_is_said(saved, tmp_path, monkeypatch):
    def full(*_, **__):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")

    monkeypatch.setattr(loading, "load", full)
    with pytest.raises(ExperimentError, match="memory ran out: give --dtype bfloat16, fewer --workers"):
        toy_study.start([toy_study.setting(str(saved["llama"]))], Store(tmp_path))


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
