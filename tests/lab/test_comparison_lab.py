"""explainer_lab.comparison: neighbours share what they can, and a result says what it came from."""

from dataclasses import fields, replace

import pytest
import torch
from conftest import ROOT
from toy_study import DATA, TOY, N, contents, setting, start

from explainer.compare import comparison
from explainer.compare.comparison import ComparisonSetting
from explainer.models import loading
from explainer.results import papers
from explainer_lab.comparison import Comparison
from explainer_lab.lab_store import SETTING, Store


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


# --- what determines a result ----------------------------------------------------------------------------------


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


@pytest.mark.parametrize("size", papers.quoted("learning_rate"))
def test_grid_of_a_model_of_the_paper_has_its_rates(size):
    grids = Comparison.read_grids(ROOT / f"src/explainer/published/comparison/fairseq-{size}.toml")
    assert {task: {one.lr for one in its} for task, its in grids.items()} == {
        task: {rate} for task, rate in papers.quoted("learning_rate")[size].items()
    }
    assert {one.checkpoint for its in grids.values() for one in its} == {f"KoboldAI/fairseq-dense-{size}"}
