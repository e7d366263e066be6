"""Engines: what comes out of them, in which order, and what becomes of a run whose workers or consumer go away."""

import os
import pickle
import signal
import sys
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
import tiny_models
import torch
import toy_study

from explainer import comparison, engines, study
from explainer.engines import EngineError
from explainer.errors import TaskError
from explainer.results import Store

SECONDS = 600
"""Far more than anything here takes on a busy machine."""


@dataclass(frozen=True)
class Cell:
    """What an engine knows of a cell; importing the real one would take each worker seconds."""

    task: str
    seed: int

    @property
    def slug(self):
        return f"{self.task}-seed{self.seed}"


def groups(n, size=2):
    return [tuple(Cell(f"task{i}", seed) for seed in range(size)) for i in range(n)]


def numbers(group):
    """Floating-point numbers whose last bits depend on the number of threads."""
    for cell in group:
        noise = torch.randn(200_000, generator=torch.Generator().manual_seed(cell.seed + len(cell.task)))
        yield cell, noise.sum().item(), noise.pow(2).mean().item()


def state(group):
    for cell in group:
        environment = [os.environ.get(name) for name in ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES")]
        yield cell, os.getpid(), torch.get_num_threads(), environment


@dataclass(frozen=True)
class Marked:
    """Leaves a file for each cell it begins; the second cell of each group waits for the file `go`."""

    directory: Path

    def begun(self):
        return len(list(self.directory.glob("task*")))

    def __call__(self, group):
        for cell in group:
            (self.directory / f"{cell.task}-{cell.seed}-{os.getpid()}").touch()
            deadline = time.monotonic() + SECONDS
            while cell.seed == 1 and not (self.directory / "go").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            yield cell, os.getpid()


@dataclass(frozen=True)
class Deadly(Marked):
    """Its process is killed in the second cell of the first group, as often as there are lives to lose."""

    lives: int = 1

    def __call__(self, group):
        for cell in group:
            deaths = self.directory / "deaths"
            n = len(deaths.read_text()) if deaths.exists() else 0
            if cell.task == "task0" and cell.seed == 1 and n < self.lives:
                deaths.write_text("x" * (n + 1))
                os.kill(os.getpid(), signal.SIGKILL)
            yield cell


class Counted:
    """Counts the groups it has seen, as what a worker caches would."""

    seen = 0

    def __call__(self, group):
        self.seen += 1
        time.sleep(0.2)
        for _ in group:
            yield os.getpid(), self.seen


def failing(group):
    for cell in group:
        if cell.seed == 1:
            return_of_the_missing_name  # noqa: B018
        yield cell


def refusing(group):
    raise TaskError(f"there is no {group[0].task}")
    yield


def unstartable():
    raise ImportError("no such package on this machine")


class Unstartable:
    def __reduce__(self):
        return unstartable, ()


def alive(pid):
    """Whether a process runs; the dead that nobody has reaped yet do not."""
    status = Path(f"/proc/{pid}/stat")
    if status.parent.parent.joinpath("self").exists():
        return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def eventually(condition):
    deadline = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


@pytest.fixture(scope="module")
def workers_find_this_module():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        yield


@pytest.fixture(scope="module")
def cluster(workers_find_this_module):
    """A Ray runtime of the caller's with two CPUs and no GPU."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray  # noqa: PLC0415

    ray.init("local", num_cpus=2, num_gpus=0, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    assert ray.is_initialized()  # no test's run has shut it down
    ray.shutdown()


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_local_computes_group_by_group_and_only_what_is_asked_for(tmp_path):
    work = Marked(tmp_path)
    outcomes = engines.local(iter(groups(2)), work)
    assert next(outcomes) == (groups(1)[0][0], os.getpid())
    assert work.begun() == 1
    (tmp_path / "go").touch()
    assert [cell for cell, _ in outcomes] == [cell for group in groups(2) for cell in group][1:]


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineError, match=r"explainer\[ray\]"):
        engines.on_ray(groups(1), numbers)


@pytest.mark.parametrize(("cpus", "gpus"), [(0, 0), (-1, 0), (1.5, 0), (1, -1), (1, 1.5)])
def test_impossible_amounts_are_refused(cpus, gpus):
    with pytest.raises(EngineError, match=f"{cpus:g} CPUs and {gpus:g} GPUs"):
        engines.on_ray(groups(1), numbers, cpus=cpus, gpus=gpus)


@pytest.mark.parametrize("address", ["nonsense", "ray://127.0.0.1:10001", ":6379", "host:port", "127.0.0.1:99999"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(EngineError, match=address):
        list(engines.on_ray(groups(1), numbers, address=address))


@pytest.mark.parametrize("given", ["argument", "environment"])
def test_no_cluster_at_the_address_is_found_out_at_once(given, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(EngineError, match=r"no Ray cluster at 127\.0\.0\.1:1"):
        list(engines.on_ray(groups(1), numbers, address="127.0.0.1:1" if given == "argument" else None))


def test_nothing_to_compute_starts_nothing(monkeypatch):
    monkeypatch.setattr(engines, "_connect", lambda _: pytest.fail("connected"))
    assert list(engines.on_ray([], numbers)) == []


def test_a_runtime_it_started_is_shut_down_whatever_happens(monkeypatch):
    started, ray = [], engines._ray()
    monkeypatch.setattr(engines, "_connect", started.append)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "shutdown", lambda: started.append("shut down"))
    with pytest.raises(KeyboardInterrupt), engines._runtime("local"):
        raise KeyboardInterrupt
    assert started == ["local", "shut down"]


@pytest.mark.slow
@pytest.mark.usefixtures("cluster", "one_thread")
class TestOnRay:
    def test_outcomes_are_those_of_local(self):
        here = {pickle.dumps(outcome) for outcome in engines.local(groups(5), numbers)}
        there = [pickle.dumps(outcome) for outcome in engines.on_ray(iter(groups(5)), numbers)]
        assert len(there) == 10
        assert set(there) == here

    @pytest.mark.parametrize("cpus", [1, 2])
    def test_a_worker_has_as_many_threads_as_cpus_and_no_gpu(self, cpus):
        outcomes = list(engines.on_ray(groups(2), state, cpus=cpus))
        assert len(outcomes) == 4
        assert {(threads, *names) for _, _, threads, names in outcomes} == {(cpus, str(cpus), "")}
        assert os.getpid() not in {pid for _, pid, _, _ in outcomes}

    def test_outcomes_arrive_as_they_are_computed(self, tmp_path):
        work, given = Marked(tmp_path), groups(2)
        with closing(engines.on_ray(given, work)) as outcomes:
            first = {next(outcomes)[0], next(outcomes)[0]}  # neither group can end before there is the file
            (tmp_path / "go").touch()
            assert first == {given[0][0], given[1][0]}
            assert {cell for cell, _ in outcomes} == {given[0][1], given[1][1]}

    def test_groups_are_taken_as_workers_need_them(self, tmp_path):
        taken = []
        lazy = (taken.append(group) or group for group in groups(50))
        with closing(engines.on_ray(lazy, Marked(tmp_path))) as outcomes:
            next(outcomes)
            next(outcomes)
            assert 2 <= len(taken) <= 3

    def test_a_worker_keeps_what_work_caches(self):
        outcomes = list(engines.on_ray(groups(6, size=1), Counted()))
        assert 1 <= len({pid for pid, _ in outcomes}) <= 2
        assert len(outcomes) == len(set(outcomes)) == 6  # a new copy of the work would count from 1 again

    def test_the_rest_of_a_killed_workers_group_is_computed_once_more(self, tmp_path):
        given = groups(3, size=3)
        outcomes = list(engines.on_ray(given, Deadly(tmp_path)))
        assert (tmp_path / "deaths").read_text() == "x"
        assert len(outcomes) == 9
        assert set(outcomes) == {cell for group in given for cell in group}

    def test_a_group_that_kills_every_worker_is_named_after_all_others_are_done(self, tmp_path):
        given, outcomes = groups(4), []
        with pytest.raises(EngineError, match=given[0][1].slug) as info:
            outcomes.extend(iter_into(outcomes, engines.on_ray(given, Deadly(tmp_path, lives=99))))
        assert (tmp_path / "deaths").read_text() == "xx"
        assert sorted(outcomes, key=lambda cell: cell.slug) == [
            cell for g in given for cell in g if cell != given[0][1]
        ]
        assert given[0][0].slug not in str(info.value)

    def test_a_worker_killed_after_its_last_outcome_loses_nothing(self):
        outcomes = list(engines.on_ray(groups(2), dying_at_the_end))
        assert len(outcomes) == len(set(outcomes)) == 4

    def test_a_consumer_that_stops_ends_the_work(self, tmp_path):
        work = Marked(tmp_path)
        with closing(engines.on_ray(groups(4), work)) as outcomes:
            pids = {next(outcomes)[1], next(outcomes)[1]}
            assert all(map(alive, pids))
        assert eventually(lambda: not any(map(alive, pids)))
        assert work.begun() <= 4  # two groups begun, no third

    def test_an_interrupt_ends_the_work(self, tmp_path):
        work, pids = Marked(tmp_path), set()
        outcomes = engines.on_ray(groups(4), work)
        pids |= {next(outcomes)[1], next(outcomes)[1]}
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            next(outcomes)
        assert eventually(lambda: not any(map(alive, pids)))

    def test_an_unexpected_exception_has_the_traceback_of_the_worker(self):
        with pytest.raises(NameError, match=r"in failing\n(.|\n)*return_of_the_missing_name"):
            list(engines.on_ray(groups(1), failing))

    def test_an_explainer_error_is_that_of_local(self):
        with pytest.raises(TaskError) as info:
            list(engines.on_ray(groups(1), refusing))
        assert str(info.value) == "there is no task0"

    def test_work_that_workers_cannot_import_is_an_error_not_an_endless_start(self):
        with pytest.raises(EngineError, match=r"could start(.|\n)*no such package on this machine"):
            list(engines.on_ray(groups(3), Unstartable()))

    def test_a_gpu_where_there_is_none_is_an_error_not_a_hang(self):
        with pytest.raises(EngineError, match=r"1 CPUs and 1 GPUs.*2 CPUs and 0 GPUs"):
            list(engines.on_ray(groups(1), numbers, gpus=1))
        with pytest.raises(EngineError, match="64 CPUs"):
            list(engines.on_ray(groups(1), numbers, cpus=64))

    def test_an_address_beside_a_running_runtime_is_refused(self):
        with pytest.raises(EngineError, match="already running"):
            list(engines.on_ray(groups(1), numbers, address="local"))

    def test_cpus_that_others_hold_delay_no_group(self, cluster):
        held = cluster.remote(Counted).options(num_cpus=1).remote()
        cluster.get(held.__ray_ready__.remote())
        outcomes = list(engines.on_ray(groups(3), numbers))  # room for two workers, of which one never starts
        cluster.kill(held)
        assert len(outcomes) == 6


@pytest.mark.slow
@pytest.mark.usefixtures("cluster", "one_thread")
def test_two_workers_store_the_same_bytes_as_this_process(tmp_path):
    directory = str(tiny_models.save("llama", tmp_path / "model"))
    axes = {"seeds": (0, 1), "ks": (3,), "lrs": (1e-3, 2e-3), "n_queries": toy_study.N, "controls": ("none", "ascent")}
    cells = study.grid([directory], ["toy"], **axes)
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    toy_study.start(cells, here)
    toy_study.start(cells[:3], there, engine=engines.on_ray)
    finished = toy_study.start(cells, there, engine=engines.on_ray)
    assert toy_study.contents(there) == toy_study.contents(here)
    assert [comparison.Cell(**stored.identity["cell"]) for stored in finished] == cells


def iter_into(kept, outcomes):
    """Keep the outcomes that come before an exception."""
    for outcome in outcomes:
        kept.append(outcome)
    return ()


def dying_at_the_end(group):
    yield from group
    time.sleep(0.3)  # until the last outcome is on its way
    os.kill(os.getpid(), signal.SIGKILL)
