"""Engines: what comes out of them, and what becomes of a run whose workers or consumer go away."""

import errno
import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from explainer.errors import EngineError, TaskError
from explainer_lab import engines

SECONDS = 600
"""Far more than anything here takes on a busy machine."""


def groups(n, size=2):
    return [tuple((f"task{i}", seed) for seed in range(size)) for i in range(n)]


def numbers(group):
    """Floating-point numbers whose last bits depend on the number of threads."""
    import torch  # noqa: PLC0415 (each worker of the other tests would import it with this module)

    for task, seed in group:
        noise = torch.randn(200_000, generator=torch.Generator().manual_seed(seed + len(task)))
        yield task, seed, noise.sum().item(), noise.pow(2).mean().item()


def numbers_and_state(group):
    import torch  # noqa: PLC0415

    for one in numbers(group):
        yield one, os.getpid(), torch.get_num_threads()


@dataclass(frozen=True)
class Marked:
    """Leaves a file for each group it begins; all but the first wait for the file `go`."""

    directory: Path

    def begun(self):
        return len(list(self.directory.glob("task*")))

    def __call__(self, group):
        task = group[0][0]
        (self.directory / task).touch()
        deadline = time.monotonic() + SECONDS
        while task != "task0" and not (self.directory / "go").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        yield task, os.getpid()


@pytest.mark.parametrize(
    ("seconds", "n"),
    [(0, 1), (10, 2), (11, 3), (100, 5)],
    ids=["one at least", "the second would end later", "just in time", "all"],
)
def test_nothing_begins_that_would_end_later_than_it_may(monkeypatch, seconds, n):
    """Settings of three seconds, the second of four, by a clock that only they move."""
    clock = [100.0]
    monkeypatch.setattr(engines.time, "monotonic", lambda: clock[0])

    def work(group):
        for number in group:
            clock[0] += 3 + (number == 1)
            yield number

    assert list(engines.local([(0, 1), (2,), (3, 4)], work, seconds=seconds)) == list(range(n))


def endless(group):
    """Leaves the number of its process in a file, and goes on."""
    Path(group[0][0]).write_text(str(os.getpid()))
    time.sleep(SECONDS)
    yield None


@dataclass(frozen=True)
class Together:
    """Goes on when all groups are being computed; says which GPUs its process sees."""

    directory: Path
    n: int

    def __call__(self, group):
        (self.directory / group[0][0]).touch()
        assert eventually(lambda: len(list(self.directory.iterdir())) == self.n)
        yield os.environ["CUDA_VISIBLE_DEVICES"]


@dataclass(frozen=True)
class Deadly:
    """Its process is killed in a group as often as the group's task has lives to lose."""

    directory: Path
    lives: tuple[tuple[str, int], ...] = ()

    def __call__(self, group):
        task = group[0][0]
        deaths = self.directory / f"deaths of {task}"
        n = len(deaths.read_text()) if deaths.exists() else 0
        if n < dict(self.lives).get(task, 0):
            deaths.write_text("x" * (n + 1))
            os.kill(os.getpid(), signal.SIGKILL)
        yield task


def failing(group):
    for one in group:
        if one[1] == 1:
            return_of_the_missing_name  # noqa: B018
        yield one


def refusing(group):
    raise TaskError(f"there is no {group[0][0]}")
    yield


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
    """A Ray runtime of the caller's with two CPUs, and two GPUs that are pretended."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray  # noqa: PLC0415

    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    for attempt in range(4):
        try:
            ray.init("local", num_cpus=2, num_gpus=2, **quiet)
            break
        except Exception as error:  # Ray gives its own processes 30 s, which a busy machine may exceed
            ray.shutdown()
            if attempt == 3 or "timed out" not in str(error):
                raise
    yield ray
    assert ray.is_initialized()  # no test's run has shut it down
    ray.shutdown()


@pytest.fixture
def threads():
    import torch  # noqa: PLC0415

    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_local_computes_group_by_group_and_only_what_is_asked_for(tmp_path):
    work = Marked(tmp_path)
    outcomes = engines.local(groups(2), work)
    assert next(outcomes) == ("task0", os.getpid())
    assert work.begun() == 1
    (tmp_path / "go").touch()
    assert list(outcomes) == [("task1", os.getpid())]


@pytest.mark.parametrize(
    ("device", "visible", "n", "gpus"),
    [
        ("cuda", None, 2, ["0", "1"]),
        (None, "3, GPU-a,-1", 2, ["3", "GPU-a"]),
        ("cuda:1", None, 2, []),
        ("cpu", None, 2, []),
        (None, None, 0, []),
    ],
)
def test_gpus_to_share_out(monkeypatch, device, visible, n, gpus):
    import torch  # noqa: PLC0415

    monkeypatch.setattr(torch.cuda, "is_available", lambda: n > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: n)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert engines.gpus_of(device) == gpus


def test_how_many_groups_are_computed_at_once_here():
    made = engines.local, partial(engines.in_processes, workers=3), partial(engines.on_ray, cpus=2)
    assert list(map(engines.n_parallel, made)) == [1, 3, 0]


def require_outcomes_of_local(engine, n_threads):
    """From other processes, with so many threads each as there are in this one."""
    here = {pickle.dumps(outcome) for outcome in engines.local(groups(3), numbers)}
    outcomes = list(engine(groups(3), numbers_and_state))
    assert {pickle.dumps(one) for one, *_ in outcomes} == here
    assert {n for *_, n in outcomes} == {n_threads}
    assert os.getpid() not in {pid for _, pid, _ in outcomes}


@pytest.mark.slow
class TestInProcesses:
    def test_outcomes_are_those_of_local_from_processes_with_so_many_threads(self, threads, workers_find_this_module):
        threads(1)
        require_outcomes_of_local(partial(engines.in_processes, workers=2), 1)

    def test_each_process_sees_one_gpu_of_its_own_as_far_as_they_go(self, tmp_path, workers_find_this_module):
        work, gpus = Together(tmp_path, 3), ("0", "GPU-b")
        assert sorted(engines.in_processes(groups(3), work, workers=3, gpus=gpus)) == ["0", "0", "GPU-b"]

    def test_windows_has_no_more_processes_than_it_can_wait_for(self, monkeypatch):
        monkeypatch.setattr(sys, "platform", "win32")
        assert engines._pool(62, 1, ())._max_workers == 61
        assert engines._pool(2, 1, ())._max_workers == 2

    def test_an_interrupt_ends_all_processes_at_once_and_none_complains(self, tmp_path, workers_find_this_module):
        marks = [tmp_path / name for name in "ab"]
        call = f"list(engines.in_processes({[((str(mark), 0),) for mark in marks]}, test_engines.endless, workers=2))"
        script = "import sys, test_engines\nfrom explainer_lab import engines\nif __name__ == '__main__':\n"
        (tmp_path / "waits.py").write_text(f"{script} try: {call}\n except KeyboardInterrupt: sys.exit(130)")
        command = [sys.executable, tmp_path / "waits.py"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as waiting:
            assert eventually(lambda: all(mark.exists() and mark.read_text() for mark in marks))
            os.killpg(waiting.pid, signal.SIGINT)
            assert (waiting.wait(SECONDS / 2), waiting.stderr.read()) == (130, b"")
        assert eventually(lambda: not any(alive(int(mark.read_text())) for mark in marks))

    def test_a_killed_process_is_named_as_what_it_is(self, tmp_path, workers_find_this_module):
        with pytest.raises(EngineError, match=r"process died.*fewer than 2"):
            list(engines.in_processes(groups(3), Deadly(tmp_path, (("task1", 1),)), workers=2))

    def test_processes_end_with_the_one_that_waits_for_them(self, tmp_path, workers_find_this_module):
        mark = tmp_path / "worker"
        call = f"list(engines.in_processes([(({str(mark)!r}, 0),)], test_engines.endless, workers=1))"
        script = f"import test_engines\nfrom explainer_lab import engines\nif __name__ == '__main__': {call}"
        (tmp_path / "waits.py").write_text(script)
        with subprocess.Popen([sys.executable, tmp_path / "waits.py"]) as waiting:
            assert eventually(lambda: mark.exists() and mark.read_text())
            worker = int(mark.read_text())
            assert alive(worker)
            waiting.kill()
        assert eventually(lambda: not alive(worker))

    def test_what_work_raises_is_raised(self, workers_find_this_module):
        with pytest.raises(TaskError, match="there is no task0"):
            list(engines.in_processes(groups(1), refusing, workers=1))


@pytest.mark.parametrize("error", [OSError(30, "Read-only"), NotImplementedError("no sem_open"), ImportError("none")])
def test_without_shared_memory_the_remedy_is_said(monkeypatch, error):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr("multiprocessing.synchronize.SemLock.__init__", refuse)
    with pytest.raises(EngineError, match=r"2 processes need shared memory .*leave out --workers"):
        list(engines.in_processes(groups(3), numbers_and_state, workers=2))


@pytest.mark.parametrize(
    ("where", "error", "limit"),
    [
        ("multiprocessing.util.spawnv_passfds", OSError(errno.EMFILE, "Too many open files"), "-n"),
        ("threading.Thread.start", RuntimeError("can't start new thread"), "-u"),
    ],
)
def test_the_limit_of_a_user_is_named_that_keeps_processes_from_starting(monkeypatch, where, error, limit):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(where, refuse)
    with pytest.raises(EngineError, match=rf"2 processes cannot be started here .*\(ulimit {limit}\), or give fewer"):
        list(engines.in_processes(groups(3), numbers_and_state, workers=2))


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineError, match=r"\.\[ray\]"):
        list(engines.on_ray(groups(1), numbers))


@pytest.mark.parametrize("address", ["nonsense", "ray://x:1", ":6379", "host:x", "127.0.0.1:1", "127.0.0.1:99999"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(EngineError, match=f"no Ray cluster at {address}"):
        engines._require_listening(address)


@pytest.mark.parametrize("address", [None, "auto", "local"])
def test_what_ray_finds_itself_is_no_address(address):
    engines._require_listening(address)


def test_a_node_that_is_gone_has_no_room(monkeypatch):
    nodes = [{"Alive": False, "Resources": {"CPU": 8}}, {"Alive": True, "Resources": {"CPU": 2}}]
    monkeypatch.setattr(engines, "_ray", lambda: SimpleNamespace(nodes=lambda: nodes))
    engines._require_room(2, 0)
    with pytest.raises(EngineError, match="its nodes have 2 CPUs and 0 GPUs"):
        engines._require_room(3, 0)


@pytest.mark.weekly
def test_no_cluster_at_the_address_of_the_environment_is_found_out_at_once(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(EngineError, match=r"no Ray cluster at 127\.0\.0\.1:1"):
        list(engines.on_ray(groups(1), numbers))


def test_nothing_to_compute_starts_nothing(monkeypatch):
    monkeypatch.setattr(engines, "_runtime", lambda _: pytest.fail("connected"))
    assert list(engines.on_ray([], numbers)) == []


@pytest.mark.weekly
@pytest.mark.usefixtures("cluster")
class TestOnRay:
    def test_outcomes_are_those_of_local_from_workers_with_as_many_threads_as_cpus(self, threads):
        threads(2)
        require_outcomes_of_local(partial(engines.on_ray, cpus=2), 2)

    def test_outcomes_come_as_groups_are_finished_and_a_consumer_that_stops_ends_all(self, tmp_path):
        work = Marked(tmp_path)
        with closing(engines.on_ray(groups(4), work)) as outcomes:
            task, _ = next(outcomes)  # no other group can end before there is the file
            assert task == "task0"
            assert eventually(lambda: work.begun() >= 2)
        time.sleep(1)
        assert work.begun() <= 3  # the CPUs' two beside the first: what waited was never begun

    def test_a_group_that_lost_its_worker_is_computed_again_or_named_after_all_others_are_done(self, tmp_path):
        outcomes, work = [], Deadly(tmp_path, lives=(("task1", 1), ("task0", 99)))
        with pytest.raises(EngineError, match=r"1 groups lost their worker 2 times"):
            for outcome in engines.on_ray(groups(4), work):
                outcomes.append(outcome)  # those that come before the error are kept
        assert sorted(outcomes) == ["task1", "task2", "task3"]
        assert [(tmp_path / f"deaths of {task}").read_text() for task in ("task1", "task0")] == ["x", "xx"]

    def test_exceptions_are_those_of_local_the_unexpected_with_the_traceback_of_the_worker(self):
        with pytest.raises(NameError, match=r"in failing\n(.|\n)*return_of_the_missing_name"):
            list(engines.on_ray(groups(1), failing))
        with pytest.raises(TaskError) as info:
            list(engines.on_ray(groups(1), refusing))
        assert str(info.value) == "there is no task0"

    def test_each_task_sees_a_gpu_of_its_own(self, tmp_path):
        assert sorted(engines.on_ray(groups(2), Together(tmp_path, 2), gpus=1)) == ["0", "1"]

    @pytest.mark.parametrize("amounts", [{"gpus": 3}, {"cpus": 64}, {"cpus": 0}])
    def test_what_no_node_has_is_an_error_not_a_hang(self, amounts):
        with pytest.raises(EngineError, match="its nodes have 2 CPUs and 2 GPUs"):
            list(engines.on_ray(groups(1), numbers, **amounts))


@pytest.mark.weekly
@pytest.mark.usefixtures("cluster")
def test_workers_of_ray_store_the_same_bytes_as_this_process(tmp_path, threads):
    import tiny_models  # noqa: PLC0415 (each worker of the other tests would import it with this module)
    import toy_study  # noqa: PLC0415

    from explainer_lab.comparison import Comparison  # noqa: PLC0415
    from explainer_lab.store import Store  # noqa: PLC0415

    threads(1)
    directory = str(tiny_models.save("llama", tmp_path / "model"))
    axes = {"seed": (0, 1), "lr": (1e-3, 2e-3), "control": ("none", "ascent")}
    settings = Comparison.grid(checkpoint=directory, task="toy", k=3, n_queries=toy_study.N, **axes)
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    toy_study.start(settings, here)
    toy_study.start(settings[:3], there)
    toy_study.start(settings, there, engine=engines.on_ray)
    assert toy_study.contents(there) == toy_study.contents(here)
