"""explainer_lab.experiment: a run of any experiment resumes, refuses what is not its own, and says what failed."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pytest
from toy_study import contents

from explainer.errors import EngineError, ExperimentError, ResultsError, TaskError
from explainer_lab import engines
from explainer_lab.experiment import Computed, Experiment
from explainer_lab.publication import Published
from explainer_lab.store import Store


@dataclass(frozen=True)
class Power:
    base: int
    exponent: float = 2.0
    kind: str = "plain"

    def __post_init__(self):
        if self.base < 0:
            raise ExperimentError(f"base {self.base} is negative.")

    @property
    def slug(self):
        return f"{self.base}-to-{self.exponent:g}-{self.kind}"


class Powers(Experiment[Power]):
    name = "powers"
    setting = Power
    protocol = 1
    slowest_first = ("kind", "base", "exponent")
    packages = ("numpy",)

    def __init__(self, weights="w"):
        self.made_of, self.computed, self.cleared, self.shown_of = {"weights": weights}, [], [], []

    def parts(self, _):
        return self.made_of

    def finished(self, identity):
        self.cleared.append(identity.slug)

    def compute(self, one, *, progress):
        self.computed.append(one)
        self.shown_of.append(progress)
        if one.base == 14:
            raise IndexError("no 14")
        if one.base == 13:
            raise TaskError("13 has no power here; use another number.")
        table = {"i": list(range(one.base)), "power": [i**one.exponent / 3 for i in range(one.base)]}
        return Computed({"settings": {"value": one.base**one.exponent / 3}, "steps": table}, {"source": "pencil"})


SETTINGS = Powers.grid(base=[2, 3, 4], exponent=[1, 2.5])


def test_grid_is_every_combination_in_its_order():
    assert [(one.base, one.exponent) for one in SETTINGS] == [(b, e) for b in (2, 3, 4) for e in (1.0, 2.5)]
    assert [one.kind for one in Powers.grid(base=1, kind=["b", "a", "b"])] == ["b", "a"]


def test_a_run_gives_the_tables_of_all_and_computes_none_twice(tmp_path):
    experiment, store = Powers(), Store(tmp_path)
    tables = experiment.run([*SETTINGS, SETTINGS[0]], store, progress=False)
    assert [row["value"] for row in tables["settings"].to_pylist()] == [0.6667, 1.886, 1.0, 5.196, 1.333, 10.67]
    assert len(tables["steps"]) == 2 * (2 + 3 + 4)
    assert experiment.computed == SETTINGS and len(experiment.cleared) == 6
    again = Powers()
    assert again.run(SETTINGS[::-1], store, progress=False)["settings"]["base"].to_pylist() == [4, 4, 3, 3, 2, 2]
    assert again.computed == []
    (row, *_) = tables["runs"].to_pylist()
    assert row["source"] == "pencil" and row["numpy"] and row["seconds"] >= 0 and "explainer" in row


def test_a_run_that_ends_at_its_time_goes_on_where_it_stopped(tmp_path):
    """Interrupted by its budget after each setting, it publishes what is finished, and at last the same bytes."""
    grids, whole, ours = {"powers": SETTINGS}, Store(tmp_path / "whole"), Store(tmp_path / "ours")
    Powers().run(SETTINGS, whole, progress=False)
    Powers().publish(grids, whole, Published(tmp_path / "at once"))
    for n in range(1, len(SETTINGS) + 1):
        published = Published(tmp_path / "in portions")
        tables = Powers().run(SETTINGS, ours, published, engine=partial(engines.local, seconds=0), progress=False)
        Powers().publish(grids, ours, published)
        assert len(tables["runs"]) == len(published.tables()["runs"]) == n
    assert contents(ours) == contents(whole)
    values = [Published(tmp_path / name).tables()["settings"] for name in ("at once", "in portions")]
    assert values[0].equals(values[1])


@pytest.mark.parametrize(
    ("progress", "here", "shown"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_a_setting_shows_its_own_progress_where_it_is_asked_for_and_computed_here(tmp_path, progress, here, shown):
    def elsewhere(*given):
        return engines.local(*given)

    experiment, engine = Powers(), partial(engines.local, seconds=60) if here else elsewhere
    experiment.run(SETTINGS[:2], Store(tmp_path), engine=engine, progress=progress)
    assert experiment.shown_of == [shown] * 2


def test_a_run_that_goes_on_counts_what_is_there(tmp_path, capsys):
    store = Store(tmp_path)
    Powers().run(SETTINGS[:4], store, progress=False)
    assert capsys.readouterr().err == ""
    Powers().run(SETTINGS, store)
    counts = re.findall(r" (\d+)/(\d+) ", capsys.readouterr().err)
    assert counts[0] == ("4", "6") and counts[-1] == ("6", "6")


def test_what_does_not_fit_is_not_counted(tmp_path, capsys):
    class NoRoom(Powers):
        def require_room(self, setting, at_once):
            if setting.base == 3:
                raise TaskError("3 needs more memory than there is.")

    with pytest.raises(ExperimentError, match="1 of 3 could not be computed"):
        NoRoom().run(Powers.grid(base=[2, 3, 4]), Store(tmp_path))
    counts = re.findall(r" (\d+)/(\d+) ", capsys.readouterr().err)
    assert counts[0] == ("0", "2") and counts[-1] == ("2", "2")


def test_an_interrupted_run_ends_its_engine_at_once(tmp_path):
    """Not when its memory is cleared: workers would go on for as long as somebody looks at the traceback."""
    ended = []

    def engine(groups, work):
        try:
            yield from engines.local(groups, work)
        finally:
            ended.append(True)

    class Interrupted(Powers):
        def finished(self, identity):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        Interrupted().run(SETTINGS, Store(tmp_path), engine=engine, progress=False)
    assert caught.tb and ended == [True]


@pytest.mark.skipif(os.name == "nt", reason="the git of this test is a script")
@pytest.mark.parametrize(("seconds", "commit"), [(0, "of-git"), (2, None)])
def test_a_git_that_says_nothing_is_not_waited_for(tmp_path, monkeypatch, seconds, commit):
    git, run = tmp_path / "git", subprocess.run
    git.write_text(f'#!/bin/sh\n[ "$1" = log ] && sleep {seconds} && echo of-git\nexit 0\n')
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    sooner = {} if commit else {"timeout": 0.2}
    monkeypatch.setattr(subprocess, "run", lambda *of, **how: run(*of, **how | (sooner if "timeout" in how else {})))
    (row,) = Powers().run(SETTINGS[:1], Store(tmp_path / "store"), progress=False)["runs"].to_pylist()
    assert row["commit"] == commit


def test_those_that_publish_at_once_lose_nothing(tmp_path):
    published, store = Published(tmp_path / "tables"), Store(tmp_path / "store")
    Powers().run(SETTINGS, store, progress=False)
    with ThreadPoolExecutor(len(SETTINGS)) as pool:
        list(pool.map(lambda one: Powers().publish({one.slug: [one]}, store, published), SETTINGS))
    assert len(published.tables()["runs"]) == len(SETTINGS)


def test_published_results_are_finished_and_new_ones_are_folded_in(tmp_path):
    published, first, second = Published(tmp_path / "tables"), Store(tmp_path / "a"), Store(tmp_path / "b")
    Powers().run(SETTINGS[:4], first, published, progress=False)
    Powers().publish({"first": SETTINGS[:4]}, first, published)
    experiment = Powers()
    states = [state for *_, state in experiment.plan(SETTINGS, second, published)]
    assert states == ["published"] * 4 + ["waiting"] * 2
    tables = experiment.run(SETTINGS, second, published, progress=False)
    assert experiment.computed == SETTINGS[4:]
    assert tables["settings"]["base"].to_pylist() == [2, 2, 3, 3, 4, 4]
    experiment.publish({"all": SETTINGS}, second, published)
    assert [state for *_, state in experiment.plan(SETTINGS, Store(tmp_path / "c"), published)] == ["published"] * 6
    with pytest.raises(ResultsError, match="other weights"):
        Powers("others").plan(SETTINGS, second, published)


def test_what_fails_is_named_and_the_others_are_stored(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(ExperimentError, match=r"1 of 3 could not be computed:\n13-to-2-plain: 13 has no power"):
        Powers().run(Powers.grid(base=[2, 13, 4]), store, progress=False)
    assert len(contents(store)) == 2


@pytest.mark.parametrize(
    "engine",
    [engines.local, pytest.param(partial(engines.in_processes, workers=2, threads=1), marks=pytest.mark.weekly)],
)
def test_what_no_check_foresaw_keeps_its_whole_traceback(tmp_path, monkeypatch, engine):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    message = r"IndexError: no 14 \(test_exp\w+\.py, line \d+\); please report"
    with pytest.raises(ExperimentError, match=message) as failed:
        Powers().run(Powers.grid(base=[14]), Store(tmp_path / "store"), engine=engine, progress=False)
    (kept,) = tmp_path.glob("explainer-*.txt")
    assert str(kept) in str(failed.value)
    frames = re.findall(r"in (\w+)", kept.read_text())
    assert {"__call__", "compute"} <= set(frames) and "IndexError: no 14" in kept.read_text()


def test_a_damaged_result_and_a_directory_that_cannot_be_written_stop_a_run_before_any_work(tmp_path):
    store = Store(tmp_path / "results")
    Powers().run(SETTINGS[:2], store, progress=False)
    *_, victim = sorted(store.directory.glob("*.json"))
    victim.write_bytes(victim.read_bytes()[:100])
    (tmp_path / "file").write_text("")
    for place, message in ((store, f"{victim} .*delete it"), (Store(tmp_path / "file"), "cannot be written")):
        experiment = Powers()
        with pytest.raises(ResultsError, match=message):
            experiment.run(SETTINGS, place, progress=False)
        assert experiment.computed == []


def test_a_lost_engine_is_its_own_error_or_one_of_several(tmp_path):
    def lost(groups, work):
        yield from work(groups[0])
        raise EngineError("the machine is gone")

    with pytest.raises(EngineError, match="the machine is gone"):
        Powers().run(Powers.grid(base=[2, 3]), Store(tmp_path / "a"), engine=lost, progress=False)
    with pytest.raises(ExperimentError, match=r"13 has no power(.|\n)*the machine is gone"):
        Powers().run(Powers.grid(base=[13, 3]), Store(tmp_path / "b"), engine=lost, progress=False)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"bases": 2}, "no key 'bases'; known keys: base, exponent, kind"),
        ({"base": "2"}, "base = '2' must be of type int, or a list of such"),
        ({"base": True}, "base = True must be of type int"),
        ({"base": []}, r"base = \[\] must be of type int"),
        ({"base": [1], "exponent": [1, "x"]}, "exponent = .* must be of type float"),
        ({"exponent": 2}, "missing 1 required positional argument: 'base'; add it"),
        ({"base": -1}, "base -1 is negative"),
    ],
)
def test_impossible_grids_are_refused(axes, message):
    with pytest.raises(ExperimentError, match=message):
        Powers.grid(**axes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a", "cannot read"),
        ("", "must hold tables only"),
        ("a = 1", "tables only"),
        ("[a]\nbase = -1", r"\[a\]: base -1"),
    ],
)
def test_mistakes_in_a_file_name_file_and_table(tmp_path, text, message):
    path = tmp_path / "grids.toml"
    path.write_text(text)
    with pytest.raises(ExperimentError, match=message) as caught:
        Powers.read_grids(path)
    assert str(path) in str(caught.value)
    with pytest.raises(ExperimentError, match="cannot read"):
        Powers.read_grids(tmp_path / "none.toml")
