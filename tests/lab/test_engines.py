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

from explainer.errors import TaskError
from explainer.lab import engines
from explainer.lab.engines import EngineError

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
    import torch  # noqa: PLC0415 (each worker of the other tests would import it with this module)

    for cell in group:
        noise = torch.randn(200_000, generator=torch.Generator().manual_seed(cell.seed + len(cell.task)))
        yield cell, noise.sum().item(), noise.pow(2).mean().item()


def numbers_and_state(group):
    import torch  # noqa: PLC0415

    names = [os.environ.get(name) for name in ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES")]
    for numbers_of_cell in numbers(group):
        yield numbers_of_cell, os.getpid(), torch.get_num_threads(), *names


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
    """Its process is killed in the second cell of a group, as often as the group's task has lives to lose."""

    lives: tuple[tuple[str, int], ...] = ()

    def __call__(self, group):
        for cell in group:
            deaths = self.directory / f"deaths of {cell.task}"
            n = len(deaths.read_text()) if deaths.exists() else 0
            if cell.seed == 1 and n < dict(self.lives).get(cell.task, 0):
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
        places = (Path(__file__).parent, Path(__file__).parents[1])
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, places)))
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
    import torch  # noqa: PLC0415

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
    @pytest.mark.parametrize("cpus", [1, 2])
    def test_outcomes_are_those_of_local_from_workers_with_as_many_threads_as_cpus_and_no_gpu(self, cpus):
        import torch  # noqa: PLC0415

        torch.set_num_threads(cpus)
        here = {pickle.dumps(outcome) for outcome in engines.local(groups(3), numbers)}
        outcomes = list(engines.on_ray(iter(groups(3)), numbers_and_state, cpus=cpus))
        assert len(outcomes) == 6
        assert {pickle.dumps(of_cell) for of_cell, *_ in outcomes} == here
        assert {(threads, *names) for _, _, threads, *names in outcomes} == {(cpus, str(cpus), "")}
        assert os.getpid() not in {pid for _, pid, *_ in outcomes}

    def test_groups_are_taken_and_outcomes_given_one_by_one_until_the_consumer_stops(self, tmp_path):
        taken, given, work = [], groups(50), Marked(tmp_path)
        lazy = (taken.append(group) or group for group in given)
        with closing(engines.on_ray(lazy, work)) as outcomes:
            first = [next(outcomes), next(outcomes)]  # neither group can end before there is the file
            assert {cell for cell, _ in first} == {given[0][0], given[1][0]}
            assert 2 <= len(taken) <= 3
            assert all(alive(pid) for _, pid in first)
        assert eventually(lambda: not any(alive(pid) for _, pid in first))
        assert work.begun() <= 4  # two groups begun, no third

    def test_a_group_that_lost_its_worker_is_finished_or_named_after_all_others_are_done(self, tmp_path):
        given, outcomes = groups(4, size=3), []
        mortal, deadly = given[1][1], given[0][1]
        work = Deadly(tmp_path, lives=((mortal.task, 1), (deadly.task, 99)))
        with pytest.raises(EngineError, match=deadly.slug) as info:
            outcomes.extend(iter_into(outcomes, engines.on_ray(given, work)))
        assert [(tmp_path / f"deaths of {cell.task}").read_text() for cell in (mortal, deadly)] == ["x", "xx"]
        done = [cell for group in given for cell in group if cell.task != deadly.task or cell.seed == 0]
        assert sorted(outcomes, key=lambda cell: cell.slug) == done
        assert given[0][0].slug not in str(info.value)

    def test_a_worker_killed_after_its_last_outcome_loses_nothing(self):
        outcomes = list(engines.on_ray(groups(2), dying_at_the_end))
        assert len(outcomes) == len(set(outcomes)) == 4

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

    def test_cpus_that_others_hold_delay_no_group_and_a_worker_keeps_what_work_caches(self, cluster):
        held = cluster.remote(Counted).options(num_cpus=1).remote()
        cluster.get(held.__ray_ready__.remote())
        outcomes = list(engines.on_ray(groups(3, size=1), Counted()))  # room for two workers: one never starts
        cluster.kill(held)
        assert len({pid for pid, _ in outcomes}) == 1
        assert [seen for _, seen in outcomes] == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.usefixtures("cluster", "one_thread")
def test_two_workers_store_the_same_bytes_as_this_process(tmp_path):
    import tiny_models  # noqa: PLC0415 (each worker of the other tests would import it with this module)
    import toy_study  # noqa: PLC0415

    from explainer.experiments import comparison, study  # noqa: PLC0415
    from explainer.lab.store import Store  # noqa: PLC0415

    directory = str(tiny_models.save("llama", tmp_path / "model"))
    axes = {"seeds": (0, 1), "ks": (3,), "lrs": (1e-3, 2e-3), "n_queries": toy_study.N, "controls": ("none", "ascent")}
    cells = study.grid([directory], ["toy"], **axes)
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    toy_study.start(cells, here)
    toy_study.start(cells[:3], there)
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
