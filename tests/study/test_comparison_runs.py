"""explainer.study.comparison_runs: a run may be interrupted anywhere, and a result says what it came from."""

import os
import pickle
import re
import signal
import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from conftest import ROOT
from toy_study import DATA, TOY, N, cell, contents, start, write_mr

from explainer.compare import comparison
from explainer.compare.comparison import Cell
from explainer.compare.controls import CONTROLS
from explainer.data import tasks
from explainer.errors import ResultsError, StudyError
from explainer.models import checkpoints
from explainer.study import cli, experiment
from explainer.study.comparison_runs import Study
from explainer.study.store import Store
from explainer.theory import metrics


@pytest.fixture(scope="session")
def directory(tmp_path_factory):
    return str(tiny_models.save("llama", tmp_path_factory.mktemp("tiny")))


@pytest.fixture(scope="session")
def checkpoint(directory):
    return checkpoints.load(directory)


@pytest.fixture(scope="module")
def cells(directory):
    axes = {"seed": (0, 1), "lr": (1e-3, 2e-3), "control": ("none", "ascent")}
    return Study.grid(checkpoint=directory, task="toy", k=3, n_queries=N, **axes)


def identity(data, one, dtype=None):
    return Study(data={one.task: data}, dtype=dtype).identity(one)


@pytest.fixture(scope="module")
def uninterrupted(cells, tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("uninterrupted"))
    start(cells, store)
    return contents(store)


# --- running ---------------------------------------------------------------------------------------------------


def test_grid_is_every_combination_neighbours_sharing_what_they_can(cells):
    assert len(cells) == len(set(cells)) == 8
    assert [(c.seed, c.control, c.lr) for c in cells[:3]] == [(0, "none", 1e-3), (0, "none", 2e-3), (0, "ascent", 1e-3)]


def test_run_returns_every_cell_and_stores_how_long_it_took(cells, uninterrupted, tmp_path):
    store = Store(tmp_path)
    tables = start([*cells, cells[0]], store)
    names = [f.name for f in fields(Cell)]
    assert [Cell(**row) for row in tables["cells"].select(names).to_pylist()] == cells
    assert contents(store) == uninterrupted
    runs = tables["runs"].to_pylist()
    assert all(one["seconds"] > 0 and one["cpu_seconds"] > 0 for one in runs)
    assert [one["shared_zsl_and_icl"] for one in runs] == [False, True, True, True] * 2


def test_neighbours_that_share_zsl_and_icl_get_what_each_gets_alone(cells, uninterrupted, tmp_path):
    store = Store(tmp_path)
    for one in reversed(cells):
        start([one], store)
    assert contents(store) == uninterrupted


@pytest.mark.parametrize("stage", [(comparison, "_fine_tune"), (metrics, "rec2ftp_chance"), (Store, "save")])
def test_interrupted_and_resumed_equals_uninterrupted(cells, uninterrupted, tmp_path, monkeypatch, stage):
    store, calls, function = Store(tmp_path), [], getattr(*stage)

    def third_time(*args, **kwargs):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return function(*args, **kwargs)

    monkeypatch.setattr(*stage, third_time)
    with pytest.raises(KeyboardInterrupt):
        start(cells, store)
    assert len(contents(store)) == 2
    start(cells, store)
    assert contents(store) == uninterrupted
    assert len(calls) == 1 + len(cells), "finished cells were computed again"


KILLED = """
import os, signal, sys
from explainer.study import cli
from explainer.compare import comparison

function, calls = {target}, []

def second_time(*args, **kwargs):
    calls.append(1)
    if len(calls) == {call}:
        os.kill(os.getpid(), signal.SIGKILL)
    return function(*args, **kwargs)

{target} = second_time
sys.exit(cli.main(sys.argv[1:]))
"""


def command(directory, data_dir, store, *more):
    options = {"--model": directory, "--tasks": "mr", "--k": "3", "--queries": str(N), "--data-dir": data_dir}
    pairs = [word for option in options.items() for word in option]
    return ["study", *pairs, "--seeds", "0", "1", "2", "--results", str(store.directory), *more]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "call"),
    [pytest.param("comparison._fine_tune", 2, marks=pytest.mark.weekly), ("os.replace", 4)],
)
def test_killed_and_resumed_equals_uninterrupted(directory, tmp_path, capsys, target, call):
    data_dir = write_mr(tmp_path / "data")
    killed, whole = Store(tmp_path / "killed"), Store(tmp_path / "whole")
    script = KILLED.format(target=target, call=call)
    done = subprocess.run(
        [sys.executable, "-c", script, *command(directory, data_dir, killed)],
        capture_output=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())},
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(contents(killed)) == 1
    assert cli.main(command(directory, data_dir, killed)) == cli.main(command(directory, data_dir, whole)) == 0
    assert contents(killed) == contents(whole)
    assert len(contents(whole)) == 3
    table = capsys.readouterr().out.splitlines()
    assert table[: len(table) // 2] == table[len(table) // 2 :]


def test_a_damaged_result_stops_the_run_before_any_work(cells, uninterrupted, tmp_path, monkeypatch):
    store = Store(tmp_path)
    for name, content in uninterrupted.items():
        (tmp_path / name).write_bytes(content)
    victim = tmp_path / sorted(uninterrupted)[-1]
    victim.write_bytes(victim.read_bytes()[:1000])
    monkeypatch.setattr(checkpoints, "load", lambda *_, **__: pytest.fail("a checkpoint was loaded"))
    with pytest.raises(ResultsError, match="delete it") as caught:
        start(cells, store)
    assert str(victim) in str(caught.value)


def test_a_directory_that_cannot_be_written_stops_the_run_before_any_work(cells, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(checkpoints, "load", lambda *_, **__: pytest.fail("a checkpoint was loaded"))
    with pytest.raises(ResultsError, match="cannot be written"):
        start(cells, Store(tmp_path / "file"))


def test_a_disk_that_fills_up_stops_the_run(cells, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ResultsError, match="No space left"):
        start(cells[:2], Store(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_cell_that_fails_does_not_stop_the_others(directory, tmp_path):
    store = Store(tmp_path)
    bad = [cell(directory, k=100), cell(directory, k=24), cell(directory, n_queries=1000)]  # 24 do not fit: 256 tokens
    with pytest.raises(StudyError, match="3 of 4 could not be computed") as caught:
        start([*bad, cell(directory)], store)
    assert "100 demonstrations asked for" in str(caught.value)
    assert "256 positions" in str(caught.value)
    assert "1000 queries" in str(caught.value)
    assert len(contents(store)) == 1


def test_each_checkpoint_is_loaded_once(directory, tmp_path, monkeypatch):
    other = str(tiny_models.save("gpt2", tmp_path / "gpt2"))
    loaded, load = [], checkpoints.load
    monkeypatch.setattr(checkpoints, "load", lambda name, **how: loaded.append(name) or load(name, **how))
    names = [directory, other, directory, other]
    tables = start([cell(name, seed=i // 2) for i, name in enumerate(names)], Store(tmp_path / "results"))
    assert loaded == [directory, other]
    assert tables["cells"]["checkpoint"].to_pylist() == names


# --- what determines a result ----------------------------------------------------------------------------------


def test_every_setting_has_a_file_of_its_own(directory):
    one = cell(directory)
    changes = {"seed": 1, "k": 4, "lr": 1.1e-3, "n_queries": 7, "control": "ascent", "split": "report"}
    changes |= {"position": "first-label", "task": "other"}
    others = [cell(directory, **{k: v}) for k, v in changes.items()]
    names = [identity(DATA, each).filename for each in (one, *others)]
    names.append(identity(DATA, one, torch.bfloat16).filename)
    assert identity(DATA, cell(directory)).filename == names[0]
    assert len(set(names)) == len(names)


def test_whatever_a_result_is_made_of_is_in_its_identity(directory, monkeypatch):
    e, made = DATA.train[0], []
    for example in (replace(e, fields={"text": "changed"}), replace(e, answer="Great"), replace(e, label=1 - e.label)):
        made.append(replace(DATA, train=(example, *DATA.train[1:])))
    made += [replace(DATA, test=DATA.test[:-1]), replace(DATA, train=DATA.train[::-1])]
    for task in (replace(TOY, separator="\n\n"), replace(TOY, template="{text} Is:"), replace(TOY, labels=("A", "B"))):
        made.append(replace(DATA, task=task))
    made += [replace(DATA, test=test) for test in (DATA.train, tuple(list(DATA.train)))]  # one pool, and two equal ones
    identities = [identity(data, cell(directory)) for data in (DATA, *made)]
    monkeypatch.setattr(Study, "protocol", 99)
    identities.append(identity(DATA, cell(directory)))
    assert len({repr(identity.parts) for identity in identities}) == len(identities)
    assert len({identity.filename for identity in identities}) == 1


def test_what_a_result_is_made_of_depends_on_no_library_and_no_source(directory, monkeypatch):
    before = identity(DATA, cell(directory))
    for module in (np, torch, transformers):
        monkeypatch.setattr(module, "__version__", "99")
    monkeypatch.setattr(experiment, "version", lambda _: "99")
    assert identity(DATA, cell(directory)) == before


def test_weights_configuration_and_tokenizer_are_in_the_digest(directory, tmp_path):
    def digest(folder, seed=0, file=None, old=None, new=None):
        copy = tiny_models.save("llama", tmp_path / folder, seed=seed)
        if file:
            text = (copy / file).read_text()
            assert old in text
            (copy / file).write_text(text.replace(old, new))
        return checkpoints.digest(copy)

    same = checkpoints.digest(directory)
    assert digest("same") == same
    others = {
        digest("weights", seed=1),
        digest("config", 0, "config.json", '"rms_norm_eps": 1e-06', '"rms_norm_eps": 1e-05'),
        digest("tokenizer", 0, "tokenizer.json", '"add_prefix_space": false', '"add_prefix_space": true'),
    }
    assert len(others | {same}) == 4


def test_a_result_from_other_data_is_refused_and_stays(directory, tmp_path):
    store, one = Store(tmp_path), cell(directory)
    start([one], store)
    before = contents(store)
    other = Study(data={"toy": replace(DATA, test=DATA.test[:-1])})
    for ask in (other.plan, other.run):
        with pytest.raises(ResultsError, match="computed from other data than are here: use another directory"):
            ask([one], store)
    assert contents(store) == before


def test_a_result_of_another_protocol_is_refused(directory, tmp_path, monkeypatch):
    store = Store(tmp_path)
    start([cell(directory)], store)
    monkeypatch.setattr(Study, "protocol", Study.protocol + 1)
    with pytest.raises(
        ResultsError, match=f"protocol {Study.protocol - 1}, this version computes protocol {Study.protocol}"
    ):
        start([cell(directory)], store)


def test_data_that_only_the_hub_has_are_not_asked_for_to_list(directory, tmp_path, monkeypatch):
    monkeypatch.delenv("EXPLAINER_DATA", raising=False)
    monkeypatch.setattr(tasks, "load", lambda *_, **__: pytest.fail("data were loaded"))
    ((_, its, state),) = Study().plan([cell(directory, task="mr")], Store(tmp_path))
    assert its.parts["data"] is None and state == "waiting"


def test_a_result_says_where_it_comes_from(directory, tmp_path):
    start([cell(directory)], Store(tmp_path))
    (stored,) = Store(tmp_path).all()
    parts = stored.identity.parts
    assert parts["cell"]["lr"] == 1e-3 and parts["cell"]["checkpoint"] == directory
    assert (parts["weights"], parts["dtype"]) == (checkpoints.digest(directory), "float32")
    assert (parts["data"]["train"], parts["data"]["test"]) == (24, 36)
    assert parts["protocol"] == comparison.PROTOCOL
    assert stored.provenance.keys() >= {"numpy", "torch", "transformers", "source", "licence", "revision"}
    assert stored.provenance["threads"] == torch.get_num_threads()


# --- the command line ------------------------------------------------------------------------------------------


def test_command_lists_computes_and_lists_again(directory, tmp_path, capsys):
    data_dir, store = write_mr(tmp_path / "data"), Store(tmp_path / "results")
    asked = command(directory, data_dir, store)
    assert cli.main([*asked, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "0 published, 0 stored, 3 waiting" in out and not store.directory.exists()
    assert cli.main(asked) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split()[:5] == ["setting", *Study.shown[:4]]
    assert [row.split()[0].endswith(f"seed{seed}") for seed, row in enumerate(rows)] == [True] * 3
    with (tmp_path / "data" / "mr" / "train.jsonl").open("a") as file:
        file.write('{"text": "one more", "label": 1}\n')
    assert cli.main([*asked, "--list"]) == 1
    assert "computed from other data than are here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tasks", "nonsense"], "no task 'nonsense'"),
        (["--model", "/no/such/model"], "neither a directory"),
        (["--controls", "magic"], "no control 'magic'"),
        (["--k", "0"], "at least 1 demonstration"),
        (["--data-dir", "/no/such/directory"], "cannot read"),
        (["--k", "1000"], "3 of 3 could not be computed"),
    ],
)
def test_command_errors_are_short_and_say_what_to_do(directory, tmp_path, capsys, options, message):
    asked = command(directory, write_mr(tmp_path / "data"), Store(tmp_path / "results"))
    for option, value in zip(options[::2], options[1::2], strict=True):
        if option in asked:
            asked[asked.index(option) + 1] = value
        else:
            asked += [option, value]
    assert cli.main(asked) == 1
    error = capsys.readouterr().err
    assert re.search(f"explainer: .*({message})", error)
    assert "Traceback" not in error
    assert not list((tmp_path / "results").glob("*.json"))


def test_command_help_names_every_control_position_and_split(capsys):
    with pytest.raises(SystemExit):
        cli.main(["study", "--help"])
    shown = "".join(capsys.readouterr().out.split())  # argparse breaks lines at hyphens
    assert all(name in shown for name in (*CONTROLS, *comparison.POSITIONS, *comparison.SPLITS))


# --- the starter checkpoint ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_starter_learns_capitals_in_context(tmp_path):
    one = Cell(checkpoints.STARTER, "capitals", seed=0, k=16, lr=3e-4, n_queries=20)  # 1e-3 may diverge
    (row,) = Study().run([one], Store(tmp_path), progress=False)["cells"].to_pylist()
    assert row["icl_accuracy"] > row["zsl_accuracy"] + 0.2
    assert -1 <= row["sim_aou"] <= 1
    assert Store(tmp_path).all()[0].path.stat().st_size < 100_000


# --- grids in a file -------------------------------------------------------------------------------------------


def write_grids(path, text):
    path.write_text(text)
    return path


def test_grids_of_a_file_are_those_of_grid(tmp_path):
    a = '[a]\ntask = "mr"\nseed = [0, 1]\nk = 4\nn_queries = 9\nlr = [1e-3, 1]\n'
    read = Study.read_grids(write_grids(tmp_path / "grids.toml", a + '[b]\ntask = ["cb"]\nseed = 3\n'))
    starter = checkpoints.STARTER
    assert read == {
        "a": [Cell(starter, "mr", seed, 4, lr, 9) for seed in (0, 1) for lr in (1e-3, 1.0)],
        "b": [Cell(starter, "cb", 3, 32, 1e-3, 150)],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must hold tables only"),
        ("a = 1", "must hold tables only"),
        ("[a", "cannot read"),
        ("[a]\nseed = 0", r"\[a\]: missing .* 'task'; add it"),
        ('[a]\ntask = "mr"', r"\[a\]: missing .* 'seed'; add it"),
        ("[a]\ntask = 3\nseed = 0", "task = 3 must be of type str, or a list of such"),
        ("[a]\ntask = []\nseed = 0", r"task = \[\] must be of type str"),
        ('[a]\ntask = "mr"\nseed = [true]', r"seed = \[True\] must be of type int"),
        ('[a]\ntask = "mr"\nseed = 0\nn_queries = 5.5', "n_queries = 5.5 must be of type int"),
        ('[a]\ntask = "mr"\nseeds = 0', "no key 'seeds'; known keys: checkpoint, task, seed"),
        ('[a]\ntask = "mr"\nseed = [-1]', r"\[a\]: seed -1 is negative"),
    ],
)
def test_mistakes_in_a_file_of_grids_are_named(tmp_path, text, message):
    with pytest.raises(StudyError, match=message):
        Study.read_grids(write_grids(tmp_path / "grids.toml", text))


def test_command_computes_the_grids_that_are_asked_for(directory, tmp_path, capsys):
    rows = f'checkpoint = "{directory}"\ntask = "mr"\nk = 3\nn_queries = {N}\n'
    path = write_grids(tmp_path / "grids.toml", f"[one]\n{rows}seed = 0\n[two]\n{rows}seed = [1, 2]\n")
    asked = ["study", "--results", str(tmp_path / "results"), "--data-dir", write_mr(tmp_path / "data")]
    assert cli.main([*asked, "--grid", str(path), "--only", "two"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert cli.main([*asked, "--grid", str(path), "--list"]) == 0
    out = capsys.readouterr().out
    assert "2 stored, 1 waiting" in out
    for options, message in (
        (["--grid", str(path), "--only", "three"], "no grid 'three'; it has one, two"),
        (["--grid", str(path), "--tasks", "none"], "no task 'none'"),
        (["--grid", str(tmp_path / "none.toml")], "cannot read"),
        ([], "say what to compute"),
        (["--tasks", "mr", "--only", "one"], "has no grid 'one'; it has pairs"),
    ):
        assert cli.main([*asked, *options]) == 1
        assert message in capsys.readouterr().err


def test_grid_of_the_papers_models_runs_on_the_same_architecture(tmp_path):
    cells = Study.read_grids(ROOT / "book" / "reference" / "fairseq.toml")["mr"]
    tiny = str(tiny_models.save("xglm", tmp_path / "xglm"))
    assert {c.checkpoint for c in cells} == {f"KoboldAI/fairseq-dense-{size}B" for size in (1.3, 2.7)}
    small = [replace(c, checkpoint=tiny, k=2, n_queries=N) for c in cells if c.seed == 0]
    store = Store(tmp_path / "results")
    rows = Study(data_dir=write_mr(tmp_path / "data")).run(small, store, progress=False)["cells"].to_pylist()
    assert {row["control"] for row in rows} == {"none", "untrained"}
    assert all(row["sim_aou"] is not None for row in rows)


# --- elsewhere -------------------------------------------------------------------------------------------------


def elsewhere(groups, work):
    """An engine whose workers load other weights than this process."""
    for group in groups:
        for outcome in work(group):
            other = outcome.identity.parts | {"weights": "others"}
            yield replace(outcome, identity=replace(outcome.identity, parts=other))


def test_a_result_from_other_weights_elsewhere_is_refused(cells, tmp_path):
    with pytest.raises(StudyError, match="computed elsewhere with other weights than here"):
        start(cells[:1], Store(tmp_path), engine=elsewhere)
    assert contents(Store(tmp_path)) == {}


def test_work_that_travels_takes_no_checkpoint_along(cells, directory):
    work = experiment._Work(Study(data={"toy": DATA}), progress=False)
    list(work((cells[0],)))
    assert len(pickle.dumps(work)) < 50_000
    assert pickle.loads(pickle.dumps(work)).experiment._checkpoint is None
