"""Every experiment: killed and run again it stores the same bytes, and impossible settings are refused."""

import itertools
import json
import multiprocessing
import os
import re
import signal
import sys
import weakref
from dataclasses import fields, replace

import pytest
import torch
from published_grids import EXPERIMENTS
from toy_study import contents, write_corpus

from explainer.data import recall_data
from explainer.data.files import published_directory, rounded
from explainer.errors import ExperimentError
from explainer.models.finetuning import FineTuned
from explainer_lab import cli, llama_training, trained_control
from explainer_lab.ablations import Ablations
from explainer_lab.agreement import Agreement
from explainer_lab.blocking import Blocking
from explainer_lab.causal_tests import CausalTests
from explainer_lab.comparison import Comparison
from explainer_lab.lab_store import Published, Store
from explainer_lab.label_lines import LabelLines
from explainer_lab.language_models import LanguageModels
from explainer_lab.minimal_pairs import MinimalPairs
from explainer_lab.new_rule import NewRule
from explainer_lab.on_checkpoint import OnCheckpoint
from explainer_lab.recall import Recall
from explainer_lab.regression import Regression
from explainer_lab.reversal import Reversal
from explainer_lab.rival import Rival
from explainer_lab.rule_orders import RuleOrders
from explainer_lab.shared_part import SharedPart
from explainer_lab.trained_control import TrainedControl
from explainer_lab.vote import Vote

SIGKILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # on Windows this one ends a process as surely
WAY = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
SMALL = {"width": 8, "inner": 8, "batch": 4}
TUNED = {"k": 3, "n_queries": 4, "epochs": 2, "lr": 0.05}
VOTING = {
    "cue": "suffix",
    "k": 4,
    "n_queries": 4,
    "sizes": "one",
    "effect": "0.0 0.1 0.2 0.3 1.0 1.1 1.2 1.3 2.0 2.1",
    "attention": "0.1",
    "agreement": "1.0",
}
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
    Vote: ("vote", VOTING | {"part": "edits"}),
    LabelLines: ("label-lines", VOTING | {"part": "keys"}),
    RuleOrders: ("rule-orders", TUNED | {"cue": "suffix", "k": 4, "orders": 4, "epochs": 1}),
    Ablations: ("ablations", {"task": "suffix", "k": 4, "n_queries": 4, "vote_heads": "0.0", "task_heads": "1.0"}),
}  # fmt: skip
"""The command of each experiment, and two settings that differ in a seed and take a second or less."""

KILLED_AT = {TrainedControl: ("2", 2)}
"""What is being put in its place, and for which time: a snapshot; else a second result."""

DAILY = (Comparison, TrainedControl, Regression)
"""The others take seconds each, and resume as `Comparison` and `Regression` do, a setting at a time."""


@pytest.fixture(scope="module")
def given(directory, tmp_path_factory):
    """Values of settings that are files: a tiny Llama, and a corpus of 30 documents."""
    return {"checkpoint": directory, "corpus": write_corpus(tmp_path_factory.mktemp("corpus") / "own.txt")}


def make_small(patch, cache):
    """What no setting says is small as well, here and in a process that is to be killed."""
    patch.setenv("EXPLAINER_CACHE", str(cache))
    tiny = llama_training.LlamaSetting(n_examples=4, layers=1, heads=2, steps=4, **SMALL)
    patch.setitem(trained_control._MODELS, "tiny", tiny)
    for module in (llama_training, trained_control):
        patch.setattr(module, "EVERY", 2)
    patch.setattr(recall_data, "N_KEYS", (2, 4))
    patch.setattr(recall_data, "N_TEST", 20)


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
    return [path for path in sorted(found) if not any(part.startswith((".", "tmp")) for part in path.parts)]


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[] if kind in (*DAILY, NewRule, Vote) else [pytest.mark.weekly])
        for kind in GRIDS
        if issubclass(kind, OnCheckpoint)
    ],
)
def test_half_a_number_format_computes_every_experiment_on_a_checkpoint(kind, given, monkeypatch):
    setting, live, held = settings_of(kind, given)[1][0], weakref.WeakSet(), []
    init = FineTuned.__init__

    def count(self, *args, **values):
        init(self, *args, **values)
        live.add(self)
        held.append(len(live))

    monkeypatch.setattr(FineTuned, "__init__", count)
    whole = kind(dtype=torch.float32).compute(setting, progress=False).tables
    if kind in (Comparison, SharedPart, MinimalPairs, NewRule):  # the others copy an update for a moment
        assert max(held) == kind().holds(setting)[1]
    half = kind(dtype=torch.bfloat16).compute(setting, progress=False).tables
    assert {name: list(table) for name, table in half.items()} == {name: list(table) for name, table in whole.items()}
    published = Published(published_directory() / kind.name).tables()
    of_settings = {"setting", *(field.name for field in fields(kind.setting))}
    for name, table in whole.items():
        now, then = ({*columns} - of_settings for columns in (table, published[name].column_names))
        now.discard("one_label_accuracy")  # measured since
        assert now <= then if kind in (Comparison, Agreement, NewRule, Rival) else now == then, name


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pytest.param(one, marks=[] if one in DAILY else [pytest.mark.weekly]) for one in EXPERIMENTS]
)
def test_killed_and_run_again_by_its_command_it_stores_the_same_bytes(kind, given, tmp_path, monkeypatch):
    first, whole, computed, compute = tmp_path / "first", tmp_path / "whole", [], kind.compute
    make_small(monkeypatch, first / "cache")
    axes, settings = settings_of(kind, given)
    processes = multiprocessing.get_context(WAY)
    processes.set_forkserver_preload([__name__])  # else each takes seconds to start
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # by which the server finds this module
    process = processes.Process(target=run_and_die, args=(kind(), settings, first, torch.get_num_threads()))
    process.start()
    process.join()
    assert process.exitcode == -SIGKILL
    finished = len(contents(Store(first / "results")))
    assert finished == 1

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
    (Agreement, {"k": 1, "lessons": "all"}, "k = 1: two halves"),
    (CausalTests, {"n_queries": 3}, "n_queries = 3 is too small; use at least 4"),
    (NewRule, {"k": 6}, "k = 6: each of four labels needs as many"),
    (NewRule, {"batch": 2}, "batch = 2: keys and values learn one line a step"),
    (NewRule, {"batch": 3, "training": "all weights"}, "batch = 3 does not divide k = 4"),
    (SharedPart, {"tasks": "plurals/plurals"}, "names a task twice"),
    (Regression, {"average": "none", "eta": 0.5}, "eta = 0.5 does not go with average = 'none'"),
    (LanguageModels, {"steps": 10}, "steps = 10 must be a multiple of 20, so that each of 2 budgets has a fifth"),
    (LanguageModels, {"warmup": 5}, r"warmup = 5 must lie in 0 ... 4"),
    (LanguageModels, {"eta": 0.0}, "eta = 0.0 does not go with average = 'momentum'"),
]
"""What would be computed otherwise than it reads."""


@pytest.mark.parametrize(("kind", "changes", "message"), REFUSED)
def test_what_is_impossible_is_refused(kind, changes, message, given, monkeypatch):
    make_small(monkeypatch, "")
    _, (possible, *_) = settings_of(kind, given)
    with pytest.raises(ExperimentError, match=message):
        replace(possible, **changes)


@pytest.mark.parametrize("kind", [Agreement, SharedPart, MinimalPairs, NewRule, Blocking, CausalTests, Reversal])
def test_a_training_that_diverges_is_noted_and_has_no_numbers(kind, given):
    setting = replace(settings_of(kind, given)[1][0], lr=1e30)
    tables = rounded(kind().compute(setting, progress=False).tables)
    assert re.search("diverged|^blocked: ", tables["settings"]["note"])
    of_training = [value for name, value in tables["settings"].items() if name.startswith("ft_")]
    assert not any(of_training), "neither right answers nor their share"
    contexts = [kind for name in ("changes", "answers") for kind in tables.get(name, {}).get("kind", [])]
    assert "FT" not in contexts or kind in (MinimalPairs, NewRule)
