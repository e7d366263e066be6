"""Every experiment: killed and run again it stores the same bytes, and impossible settings are refused."""

import contextlib
import itertools
import json
import math
import multiprocessing
import os
import re
import signal
import weakref
from dataclasses import asdict, fields, replace

import pytest
import torch
from published_grids import EXPERIMENTS
from toy_study import contents, write_corpus

from explainer.data import associative_recall
from explainer.data.files import published_directory
from explainer.errors import ExperimentError
from explainer.models.finetuning import FineTuned
from explainer_lab import cli, in_context_llama, trained_control
from explainer_lab.agreement import Agreement
from explainer_lab.blocking import Blocking
from explainer_lab.causal_tests import CausalTests
from explainer_lab.comparison import Comparison
from explainer_lab.language_models import LanguageModels
from explainer_lab.minimal_pairs import MinimalPairs
from explainer_lab.new_rule import NewRule
from explainer_lab.on_checkpoint import OnCheckpoint
from explainer_lab.recall import Recall
from explainer_lab.regression import Regression
from explainer_lab.reversal import Reversal
from explainer_lab.rival import Rival
from explainer_lab.shared_part import SharedPart
from explainer_lab.store import Published, Store
from explainer_lab.trained_control import TrainedControl

SIGKILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # on Windows this one ends a process as surely
WAY = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
SMALL = {"width": 8, "inner": 8, "batch": 4}
TUNED = {"k": 3, "n_queries": 4, "epochs": 2, "lr": 0.05}
GRIDS = {
    Comparison: ("comparison", {"task": "capitals", "k": 3, "n_queries": 4}),
    Agreement: ("agreement", TUNED | {"task": "capitals", "lessons": "own", "n_directions": 1}),
    SharedPart: ("shared-part", TUNED | {"tasks": "plurals"}),
    MinimalPairs: ("minimal-pairs", TUNED | {"pair": "past/participles"}),
    NewRule: ("new-rule", TUNED | {"cue": "suffix", "k": 4, "training": "answers"}),
    Blocking: ("blocking", TUNED | {"k": 4}),
    Rival: ("rival", {"task": "plurals", "k": 3, "n_queries": 4, "n_selection": 4}),
    CausalTests: ("causal-tests", TUNED | {"task": "capitals", "n_selection": 4}),
    TrainedControl: ("trained-control", {"checkpoint": "tiny", "model": [0, 1], "seed": 0, "n_queries": 6, "lr": 0.1}),
    LanguageModels: ("language-models", {"vocabulary": 300, "layers": 1, "width": 8, "heads": 2, "length": 16,
                               "batch": 2, "steps": 20, "branches": 2, "warmup": 3, "average": "momentum", "eta": 0.5}),
    Regression: ("regression", SMALL | {"layers": 1, "heads": 2, "dimension": 2, "n_examples": 4, "steps": 10}),
    Recall: ("recall", SMALL | {"heads": 1, "head_width": 4, "rule": "gated-momentum", "steps": 10}),
    Reversal: ("reversal", {"n_pairs": 4, "epochs": 1, "lr": 0.05}),
}  # fmt: skip
"""The command of each experiment, and two settings that differ in a seed and take a second or less."""

KILLED_AT = {LanguageModels: ("state.safetensors", 3), TrainedControl: ("2", 2)}
"""What is being put in its place, and for which time: the state of a training and a snapshot; else a second result."""

WEEKLY = (SharedPart, MinimalPairs, NewRule, Rival, Blocking, CausalTests, Reversal)
"""They take two to six seconds each, and resume as `Agreement` does: a setting at a time, on a checkpoint."""


@pytest.fixture(scope="module")
def given(directory, tmp_path_factory):
    """Values of settings that are files: a tiny Llama, and a corpus of 30 documents."""
    return {"checkpoint": directory, "corpus": write_corpus(tmp_path_factory.mktemp("corpus") / "own.txt")}


def make_small(patch, cache):
    """What no setting says is small as well, here and in a process that is to be killed."""
    patch.setenv("EXPLAINER_CACHE", str(cache))
    tiny = in_context_llama.LlamaSetting(n_examples=4, layers=1, heads=2, steps=4, **SMALL)
    patch.setitem(trained_control._MODELS, "tiny", tiny)
    for module in (in_context_llama, trained_control):
        patch.setattr(module, "EVERY", 2)
    patch.setattr(associative_recall, "N_KEYS", (2, 4))
    patch.setattr(associative_recall, "N_TEST", 20)


def settings_of(kind, given):
    """The values of the grid of an experiment, and its settings."""
    names = [field.name for field in fields(kind.setting)]
    axes = {name: value for name, value in given.items() if name in names} | {"seed": [0, 1]} | GRIDS[kind][1]
    return axes, kind.grid(**axes)


def run_and_die(experiment, settings, place, threads):
    """Run until the file of KILLED_AT is written, and not yet in its place."""
    torch.set_num_threads(threads)
    make_small(pytest.MonkeyPatch(), place / "cache")
    name, time = KILLED_AT.get(type(experiment), (".json", 2))
    replace, times = os.replace, itertools.count(1)

    def replace_or_die(source, target):
        if str(target).endswith(name) and next(times) == time:
            os.kill(os.getpid(), SIGKILL)
        replace(source, target)

    os.replace = replace_or_die
    experiment.run(settings, Store(place / "results"), progress=False)


def kept(place):
    """The files of a cache, but for what a killed process could not tidy up."""
    found = [path.relative_to(place) for path in place.rglob("*")]
    return [path for path in sorted(found) if not any(part.startswith("tmp") for part in path.parts)]


BARS = {
    Comparison: ["4 query", "4 query", "3 step", "4 query"],
    Agreement: ["6 step"],
    SharedPart: ["6 step"],
    MinimalPairs: ["6 step"],
    NewRule: ["8 step"],
    Blocking: ["4 step", "4 step", "4 step"],
    Rival: [],
    CausalTests: ["6 step"],
    Reversal: ["4 step", "8 step", "4 step"],
    TrainedControl: ["4 step", "6 query", "6 query", "4 step", "6 query", *["4 step"] * 3],
    Regression: ["10 step"],
    Recall: ["10 step"],
}
"""What a setting shows of how far it is, where somebody asks."""


def bars_of(shown):
    return [" ".join(one) for one in re.findall(r"\| 0/(\d+) \[00:00<\?, \?(\w+)/s\]", shown)]


@pytest.mark.parametrize("kind", [kind for kind in GRIDS if issubclass(kind, OnCheckpoint)])
def test_half_a_number_format_computes_every_experiment_on_a_checkpoint(kind, given, monkeypatch, capsys):
    setting, live, held = settings_of(kind, given)[1][0], weakref.WeakSet(), []
    init = FineTuned.__init__

    def count(self, *args, **values):
        init(self, *args, **values)
        live.add(self)
        held.append(len(live))

    monkeypatch.setattr(FineTuned, "__init__", count)
    whole = kind(dtype=torch.float32).compute(setting, progress=True).tables
    assert bars_of(capsys.readouterr().err) == BARS[kind]
    if kind in (Comparison, SharedPart, MinimalPairs, NewRule):  # the others copy an update for a moment
        assert max(held) == kind().holds(setting)[1]
    half = kind(dtype=torch.bfloat16).compute(setting, progress=False).tables
    assert capsys.readouterr().err == ""
    assert {name: list(table) for name, table in half.items()} == {name: list(table) for name, table in whole.items()}
    published = Published(published_directory() / kind.name).tables()
    of_settings = {"setting", *(field.name for field in fields(kind.setting))}
    for name, table in whole.items():
        now, then = ({*columns} - of_settings for columns in (table, published[name].column_names))
        now.discard("one_label_accuracy")  # measured since
        assert now <= then if kind in (Comparison, Agreement, NewRule, Rival) else now == then, name


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pytest.param(one, marks=[pytest.mark.weekly] if one in WEEKLY else []) for one in EXPERIMENTS]
)
def test_killed_and_run_again_by_its_command_it_stores_the_same_bytes(kind, given, tmp_path, monkeypatch):
    first, whole, computed, compute = tmp_path / "first", tmp_path / "whole", [], kind.compute
    make_small(monkeypatch, first / "cache")
    axes, settings = settings_of(kind, given)
    experiment = LanguageModels(every=3) if kind is LanguageModels else kind()
    processes = multiprocessing.get_context(WAY)
    processes.set_forkserver_preload(["explainer_lab.experiment"])  # else each takes seconds to start
    process = processes.Process(target=run_and_die, args=(experiment, settings, first, torch.get_num_threads()))
    process.start()
    process.join()
    assert process.exitcode == -SIGKILL
    finished = len(contents(Store(first / "results")))
    assert finished == (kind is not LanguageModels)

    monkeypatch.setattr(kind, "compute", lambda *a, **how: computed.append(a[1]) or compute(*a, **how))
    grid, results = tmp_path / "grids.toml", str(first / "results")
    grid.write_text("\n".join(["[tiny]", *(f"{name} = {json.dumps(value)}" for name, value in axes.items())]))
    assert cli.main([GRIDS[kind][0], "--grid", str(grid), "--results", results]) == 0
    assert computed == settings[finished:], "what was finished is not computed again"
    monkeypatch.setenv("EXPLAINER_CACHE", str(whole / "cache"))
    kind().run(settings, Store(whole / "results"), progress=False)
    assert contents(Store(results)) == contents(Store(whole / "results"))
    assert len(contents(Store(results))) == 2 and kept(first / "cache") == kept(whole / "cache")


REFUSED = [
    (Agreement, {"epochs": 0}, "epochs = 0"),
    (Agreement, {"k": 1, "lessons": "all"}, "k = 1: two halves"),
    (Agreement, {"lessons": "none"}, "no lessons 'none'; known: all, few, bounds, own"),
    (Agreement, {"loss": "labels"}, "no loss 'labels'"),
    (Agreement, {"n_directions": -1}, "n_directions = -1"),
    (Agreement, {"lr": 0.0}, "lr = 0 is not a positive number"),
    (Agreement, {"split": "other"}, "no split 'other'"),
    (CausalTests, {"seed": -1}, "seed -1 is negative"),
    (CausalTests, {"k": 0}, "k = 0 is too small; use at least 1"),
    (CausalTests, {"n_queries": 3}, "n_queries = 3 is too small; use at least 4"),
    (CausalTests, {"n_selection": 1}, "n_selection = 1 is too small"),
    (CausalTests, {"epochs": 0}, "epochs = 0 is too small"),
    (CausalTests, {"rate": 0.0}, "rate = 0 is not a positive number"),
    (CausalTests, {"lr": math.inf}, "lr = inf is not a positive number"),
    (CausalTests, {"model": "half-trained"}, "no model 'half-trained'; known: trained, untrained, untrained-layers"),
    (NewRule, {"cue": "colour"}, "there is no cue 'colour'; known: suffix, first word, category"),
    (NewRule, {"training": "lora"}, "there is no training 'lora'"),
    (NewRule, {"lessons": "none"}, "there are no lessons 'none'; known: all, own"),
    (NewRule, {"k": 6}, "k = 6: each of the four cues needs as many"),
    (NewRule, {"batch": 2}, "batch = 2: keys and values learn one line a step"),
    (NewRule, {"batch": 3, "training": "all weights"}, "batch = 3 does not divide k = 4"),
    (Blocking, {"last": "Z"}, "give X or Y"),
    (Blocking, {"k": 6}, "k = 6: there are four labels"),
    (MinimalPairs, {"pair": "past"}, "does not name two tasks"),
    (MinimalPairs, {"pair": "past/past"}, "does not name two tasks"),
    (MinimalPairs, {"k": 0}, "k = 0 is too small"),
    (Reversal, {"n_pairs": 1}, "n_pairs = 1 is too small; use at least 2"),
    (SharedPart, {"tasks": "plurals/plurals"}, "names a task twice"),
    (SharedPart, {"k": 0}, "k = 0 is too small"),
    (SharedPart, {"layer_causal_lr": -1.0}, "layer_causal_lr = -1: use a positive number, or 0"),
    (TrainedControl, {"step": 3}, "step = 3"),
    (TrainedControl, {"step": 6}, "step = 6"),
    (TrainedControl, {"model": -1}, "model -1"),
    (TrainedControl, {"k": 5}, "k = 5"),
    (TrainedControl, {"task": "sst2"}, "no task 'sst2'"),
    (TrainedControl, {"checkpoint": "gpt2"}, "no model 'gpt2'"),
    (Regression, {"average": "none", "eta": 0.5}, "eta = 0.5 does not go with average = 'none'"),
    (Regression, {"average": "momentum"}, "eta = 0.0 does not go with average = 'momentum'"),
    (Recall, {"rule": "best"}, "rule = 'best'; known are linear"),
    (LanguageModels, {"layers": 0}, "layers = 0 must be at least 1"),
    (LanguageModels, {"vocabulary": 10}, "vocabulary = 10 is too small; the least is 257"),
    (LanguageModels, {"length": 1}, "length = 1 must be at least 2"),
    (LanguageModels, {"width": 10}, "width = 10 must be a multiple of 2 heads = 4"),
    (LanguageModels, {"steps": 10}, "steps = 10 must be a multiple of 20, so that each of 2 budgets has a fifth"),
    (LanguageModels, {"seed": -1}, "seed = -1 must not be negative"),
    (LanguageModels, {"warmup": 5}, r"warmup = 5 must lie in 0 ... 4"),
    (LanguageModels, {"lr": 0.0}, "lr = 0.0 must be positive"),
    (LanguageModels, {"average": "mean"}, "'mean' must be one of none, learned_convolution, momentum, .*recency_bias"),
    (LanguageModels, {"eta": 1.0}, r"eta = 1.0 must lie in \[0, 1\)"),
    (LanguageModels, {"average": "none"}, "eta = 0.5 does not go with average = 'none'"),
    (LanguageModels, {"average": "learned_convolution"}, "eta = 0.5 does not go with .*'learned_convolution'"),
    (LanguageModels, {"eta": 0.0}, "eta = 0.0 does not go with average = 'momentum'"),
]


@pytest.mark.parametrize(("kind", "changes", "message"), REFUSED)
def test_what_is_impossible_is_refused(kind, changes, message, given, monkeypatch):
    make_small(monkeypatch, "")
    _, (possible, *_) = settings_of(kind, given)
    with pytest.raises(ExperimentError, match=message):
        replace(possible, **changes)


@pytest.mark.parametrize(
    ("kind", "changes", "models"),
    [(kind, {}, 1 + 2 * (kind is Blocking)) for kind in GRIDS if issubclass(kind, OnCheckpoint)]
    + [(Comparison, {"control": "untrained"}, 2), (CausalTests, {"model": "untrained"}, 2)],
)
def test_a_second_model_is_counted_where_there_is_one(kind, changes, models, given):
    assert kind().holds(replace(settings_of(kind, given)[1][0], **changes))[0] == models


@pytest.mark.parametrize("kind", GRIDS)
def test_a_whole_number_is_one_setting_however_it_is_written(kind, given, monkeypatch):
    make_small(monkeypatch, "")
    _, (possible, *_) = settings_of(kind, given)
    for name in [field.name for field in fields(possible) if type(getattr(possible, field.name)) is float]:
        for number in (0, 1):
            with contextlib.suppress(ExperimentError):  # not every rate may be 0
                one, same = (kind.of(**asdict(possible) | {name: to(number)}) for to in (float, int))
                assert kind().key(one).key == kind().key(same).key, name


@pytest.mark.parametrize("kind", [TrainedControl, Regression, Recall])
def test_a_setting_shows_how_far_it_is_where_somebody_asks(kind, given, tmp_path, capsys):
    for progress in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            make_small(patch, tmp_path / str(progress))
            (setting, *_) = settings_of(kind, given)[1]
            kind().compute(setting, progress=progress)
        shown = capsys.readouterr().err
        assert bars_of(shown) == BARS[kind] * progress
    assert shown == ""
