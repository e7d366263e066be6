"""What is said before a run: what is left, from which seconds, and whether it fits."""

import ctypes
import math
import os
import re
from types import SimpleNamespace

import pytest
import tiny_models
import torch
import toy_study

from explainer.data.files import published_directory
from explainer.models import loading, memory
from explainer.results import durations, published
from explainer_lab import estimate
from explainer_lab.comparison import Comparison
from explainer_lab.store import Store


@pytest.fixture
def said(tmp_path):
    """The lines for three settings of a tiny model, of which some are stored with the given seconds."""
    model = str(tiny_models.save("llama", tmp_path / "model"))
    store = Store(tmp_path / "store")

    def lines(*seconds, dtype=None):
        experiment = Comparison(data={"toy": toy_study.DATA}, dtype=dtype)
        settings = [toy_study.setting(model, seed=seed) for seed in range(3)]
        for one, its in zip(settings, seconds, strict=False):
            store.save(experiment.identity(one), {"settings": {}}, provenance={}, run={"seconds": its})
        return list(estimate.estimate_lines(experiment, experiment.plan(settings, store), store))

    return lines


def test_the_time_is_the_books_until_a_setting_of_the_checkpoint_is_stored(said):
    (first,) = said()
    assert re.search(r"model: 3 to compute, less than a minute each and .* \(the book's, scaled by", first)
    (then,) = said(600.0, 660.0)
    assert "model: 1 to compute, about 10 min each and about 10 min in all in one process (the median" in then
    assert said(600.0, 660.0, 5.0) == []


def test_what_a_number_format_rounds_is_said_or_that_it_is_not_measured(said, monkeypatch):
    (_, rounding) = said(dtype=torch.bfloat16)
    assert re.search(r"in bfloat16 differ from those in float32 by at most 0\.\d+ nats \(4 queries of toy\)", rounding)
    monkeypatch.setattr(memory, "free_bytes", lambda _: 10**8)
    (_, rounding) = said(dtype=torch.bfloat16)
    assert re.search(r"the error of bfloat16 is not measured: float32 takes 0\.0 GB, which are not free", rounding)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(59, "less than a minute"), (90, "about 2 min"), (9000, "about 2.5 h"), (math.nan, "an unknown time")],
)
def test_seconds_in_words(seconds, words):
    assert durations.in_words(seconds) == words


def test_the_weights_of_the_book_are_counted():
    model = loading.skeleton(loading.STARTER)
    assert sum(p.numel() for p in model.parameters()) == durations.WEIGHTS_OF_BOOK
    assert model.config.num_hidden_layers == durations.LAYERS_OF_BOOK
    assert durations.ratio(model) == 1


def test_a_model_takes_the_time_of_the_book_by_its_weights_and_a_small_one_by_its_layers(monkeypatch):
    each = published.rows_of_experiment(published_directory() / "comparison", "runs", "word-pairs")["seconds"].median()
    for share, n_layers, ratio, least in ((0.5, 30, 0.5, 0), (4, 30, 4, 0), (0.001, 60, 0.2, 0), (0, 0, 0, 3)):
        weights = [SimpleNamespace(numel=lambda share=share: share * durations.WEIGHTS_OF_BOOK)]
        config = SimpleNamespace(num_hidden_layers=n_layers)
        model = SimpleNamespace(parameters=lambda weights=weights: weights, config=config)
        monkeypatch.setattr(loading, "skeleton", lambda _, model=model: model)
        said = durations.of_grids("comparison", "another", {"word-pairs": 1000})
        assert said.startswith(f"{durations.in_words(1000 * (ratio * each or least))} in one process")


def test_memory_of_windows_is_asked_of_its_kernel_and_may_be_unknown(monkeypatch):
    """There `os` has no `sysconf`."""

    def installed(kilobytes):
        kilobytes._obj.value = 16 * 2**20
        return known

    monkeypatch.setattr(memory, "_limits", lambda root: iter(()))
    monkeypatch.delattr(os, "sysconf")
    assert math.isnan(memory.total_bytes())
    kernel = SimpleNamespace(GetPhysicallyInstalledSystemMemory=installed)
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    known = 1
    assert memory.total_bytes() == 16 * 2**30
    known = 0
    assert math.isnan(memory.total_bytes())
