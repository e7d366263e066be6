"""explainer_lab.comparison: neighbours share what they can, and a result says what it came from."""

import pickle
from dataclasses import fields, replace

import pytest
import tiny_models
import torch
from conftest import ROOT
from toy_study import DATA, TOY, N, contents, setting, start, write_mr

from explainer.compare import comparison
from explainer.compare.comparison import ComparisonSetting
from explainer.data import tasks
from explainer.models import loading
from explainer.results import papers
from explainer_lab import cli, experiment
from explainer_lab.comparison import Comparison
from explainer_lab.store import SETTING, Store


@pytest.fixture(scope="module")
def settings(directory):
    axes = {"seed": (0, 1), "lr": (1e-3, 2e-3), "control": ("none", "ascent")}
    return Comparison.grid(checkpoint=directory, task="toy", k=3, n_queries=N, **axes)


def identity(data, one, dtype=None):
    return Comparison(data={one.task: data}, dtype=dtype).identity(one)


@pytest.fixture(scope="module")
def ran(settings, tmp_path_factory):
    """The tables of a run, in which one setting is asked for twice, and what it stored."""
    store = Store(tmp_path_factory.mktemp("ran"))
    return start([*settings, settings[0]], store), contents(store)


# --- running ---------------------------------------------------------------------------------------------------


def test_run_returns_every_setting_and_how_long_it_took(settings, ran):
    tables, stored = ran
    names = [f.name for f in fields(ComparisonSetting)]
    assert [ComparisonSetting(**row) for row in tables["settings"].select(names).to_pylist()] == settings
    assert len(stored) == len(settings) == 8
    runs = tables["runs"].to_pylist()
    assert all(one["seconds"] > 0 and one["cpu_seconds"] > 0 for one in runs)
    assert [one["shared_zsl_and_icl"] for one in runs] == [False, True, True, True] * 2


def test_neighbours_that_share_zsl_and_icl_get_what_each_gets_alone(settings, ran, tmp_path):
    shared = {Comparison().shares(one): set() for one in settings}
    for one in settings:
        shared[Comparison().shares(one)].add(one.seed)
    assert list(shared.values()) == [{0}, {1}]
    store = Store(tmp_path)
    for one in reversed(settings):
        start([one], store)
    assert contents(store) == ran[1]


def command(directory, data_dir, store, *more):
    options = {"--model": directory, "--tasks": "mr", "--k": "3", "--queries": str(N), "--data-dir": data_dir}
    pairs = [word for option in options.items() for word in option]
    return ["comparison", *pairs, "--seeds", "0", "1", "2", "--results", str(store.directory), *more]


# --- what determines a result ----------------------------------------------------------------------------------


def test_every_setting_has_a_file_of_its_own(directory):
    one = setting(directory)
    changes = {"seed": 1, "k": 4, "lr": 1.1e-3, "n_queries": 7, "control": "ascent", "split": "report"}
    changes |= {"position": "first-label", "task": "other"}
    others = [setting(directory, **{k: v}) for k, v in changes.items()]
    names = [identity(DATA, each).filename for each in (one, *others)]
    names.append(identity(DATA, one, torch.bfloat16).filename)
    assert identity(DATA, setting(directory)).filename == names[0]
    assert len(set(names)) == len(names)


def test_whatever_a_result_is_made_of_is_in_its_identity(directory, monkeypatch):
    e, made = DATA.train[0], []
    for example in (replace(e, fields={"text": "changed"}), replace(e, answer="Great"), replace(e, label=1 - e.label)):
        made.append(replace(DATA, train=(example, *DATA.train[1:])))
    made += [replace(DATA, test=DATA.test[:-1]), replace(DATA, train=DATA.train[::-1])]
    for task in (replace(TOY, separator="\n\n"), replace(TOY, template="{text} Is:"), replace(TOY, labels=("A", "B"))):
        made.append(replace(DATA, task=task))
    made += [replace(DATA, test=test) for test in (DATA.train, tuple(list(DATA.train)))]  # one pool, and two equal ones
    identities = [identity(data, setting(directory)) for data in (DATA, *made)]
    monkeypatch.setattr(Comparison, "protocol", 99)
    identities.append(identity(DATA, setting(directory)))
    assert len({repr(identity.parts) for identity in identities}) == len(identities)
    assert len({identity.filename for identity in identities}) == 1


def test_data_that_only_the_hub_has_are_not_asked_for_to_list(directory, tmp_path, monkeypatch):
    monkeypatch.delenv("EXPLAINER_DATA", raising=False)
    monkeypatch.setattr(tasks, "load", lambda *_, **__: pytest.fail("data were loaded"))
    ((_, its, state),) = Comparison().plan([setting(directory, task="mr")], Store(tmp_path))
    assert its.parts["data"] is None and state == "waiting"


def test_a_result_says_where_it_comes_from(directory, tmp_path):
    start([setting(directory)], store := Store(tmp_path))
    stored = store.load(identity(DATA, setting(directory)))
    parts = stored.identity.parts
    assert parts[SETTING]["lr"] == 1e-3 and parts[SETTING]["checkpoint"] == directory
    assert (parts["weights"], parts["dtype"]) == (loading.digest(directory), "float32")
    assert (parts["data"]["train"], parts["data"]["test"]) == (24, 36)
    assert parts["protocol"] == comparison.PROTOCOL
    assert stored.provenance.keys() >= {"numpy", "torch", "transformers", "source", "licence", "revision"}
    assert stored.provenance["threads"] == torch.get_num_threads()


# --- the command line ------------------------------------------------------------------------------------------


# --- grids in a file -------------------------------------------------------------------------------------------


def test_command_computes_the_grids_that_are_asked_for(directory, tmp_path, monkeypatch, capsys):
    rows = f'checkpoint = "{directory}"\ntask = "mr"\nk = 3\nn_queries = {N}\n'
    path = tmp_path / "grids.toml"
    path.write_text(f"[one]\n{rows}seed = 0\n[two]\n{rows}seed = [1, 2]\n")
    asked = ["comparison", "--results", str(tmp_path / "results"), "--data-dir", write_mr(tmp_path / "data")]
    assert cli.main([*asked, "--grid", str(path), "--list"]) == 0
    assert "0 published, 0 stored, 3 waiting" in capsys.readouterr().out and not (tmp_path / "results").exists()
    assert cli.main([*asked, "--grid", str(path), "--only", "two"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split()[:5] == ["setting", *Comparison.shown[:4]]
    assert [row.split()[0][-5:] for row in rows] == ["seed1", "seed2"]
    assert cli.main([*asked, "--grid", str(path), "--list"]) == 0
    out = capsys.readouterr().out
    assert "2 stored, 1 waiting" in out and "not compared" not in out
    monkeypatch.delenv("EXPLAINER_DATA", raising=False)
    assert cli.main([*asked[:-2], "--grid", str(path), "--list"]) == 0
    out = capsys.readouterr().out
    assert "2 stored, 1 waiting\nnot compared with the data, which are not here: mr (--data-dir)\n" in out
    for options, message in (
        (["--grid", str(path), "--only", "three"], "no grid 'three'; it has one, two"),
        (["--grid", str(path), "--tasks", "none"], "no task 'none'"),
        (["--grid", str(tmp_path / "none.toml")], "cannot read"),
        ([], "say what to compute"),
        (["--tasks", "mr", "--only", "one"], "has no grid 'one'; it has word-pairs"),
    ):
        assert cli.main([*asked, *options]) == 1
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("size", papers.quoted("learning_rate"))
def test_grid_of_a_model_of_the_paper_has_its_rates(size):
    grids = Comparison.read_grids(ROOT / f"src/explainer/published/comparison/fairseq-{size}.toml")
    assert {task: {one.lr for one in its} for task, its in grids.items()} == {
        task: {rate} for task, rate in papers.quoted("learning_rate")[size].items()
    }
    assert {one.checkpoint for its in grids.values() for one in its} == {f"KoboldAI/fairseq-dense-{size}"}


def test_grid_of_the_papers_models_runs_on_the_same_architecture(tmp_path):
    settings = Comparison.read_grids(ROOT / "src/explainer/published/comparison/fairseq-1.3B.toml")["mr"]
    tiny = str(tiny_models.save("xglm", tmp_path / "xglm"))
    small = [replace(c, checkpoint=tiny, k=2, n_queries=N) for c in settings if c.seed == 0]
    store = Store(tmp_path / "results")
    rows = Comparison(data_dir=write_mr(tmp_path / "data")).run(small, store, progress=False)["settings"].to_pylist()
    assert {row["control"] for row in rows} == {"none", "untrained"}
    assert all(row["sim_aou"] is not None for row in rows)


# --- elsewhere -------------------------------------------------------------------------------------------------


def test_work_that_travels_takes_no_checkpoint_along(settings, directory):
    work = experiment._Work(Comparison(data={"toy": DATA}), progress=False)
    list(work((settings[0],)))
    assert len(pickle.dumps(work)) < 50_000
    assert pickle.loads(pickle.dumps(work)).experiment._checkpoint is None
