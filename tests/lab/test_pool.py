"""explainer_lab.pool: what comes out of other processes, and what becomes of them."""

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from explainer.errors import ExperimentError
from explainer_lab import pool

SECONDS = 600
"""Far more than anything here takes on a busy machine."""

GROUPS = [tuple((f"task{i}", seed) for seed in range(2)) for i in range(3)]


def numbers(group):
    """Floating-point numbers whose last bits depend on the number of threads, the process, and its threads."""
    import torch  # noqa: PLC0415 (each worker of the other tests would import it with this module)

    for task, seed in group:
        noise = torch.randn(200_000, generator=torch.Generator().manual_seed(seed + len(task)))
        yield (task, seed, noise.sum().item(), noise.pow(2).mean().item()), os.getpid(), torch.get_num_threads()


def endless(group):
    """Leaves the number of its process in a file, and goes on."""
    Path(group[0][0]).write_text(str(os.getpid()))
    time.sleep(SECONDS)
    yield None


def deadly(group):
    if group[0][0] == "task1":
        os.kill(os.getpid(), signal.SIGKILL)
    yield group


def alive(pid):
    """Whether a process runs; the dead that nobody has reaped yet do not."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def eventually(condition):
    deadline = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


@pytest.fixture(autouse=True)
def workers_find_this_module(monkeypatch):
    places = (Path(__file__).parent, Path(__file__).parents[1], Path(__file__).parents[2] / "src")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, places)))


@pytest.mark.slow
def test_outcomes_are_those_of_this_process_from_others_with_so_many_threads():
    here = {pickle.dumps(one) for group in GROUPS for one, *_ in numbers(group)}
    outcomes = list(pool.in_processes(numbers, GROUPS, workers=2, threads=1))
    assert {pickle.dumps(one) for one, *_ in outcomes} == here
    assert os.getpid() not in {pid for _, pid, _ in outcomes}
    assert {n for *_, n in outcomes} == {1}


@pytest.mark.slow
def test_an_interrupt_ends_all_processes_at_once_and_none_complains(tmp_path):
    marks = [tmp_path / name for name in "ab"]
    call = f"list(pool.in_processes(test_pool.endless, {[((str(mark), 0),) for mark in marks]}, workers=2))"
    script = "import sys, test_pool\nfrom explainer_lab import pool\nif __name__ == '__main__':\n"
    (tmp_path / "waits.py").write_text(f"{script} try: {call}\n except KeyboardInterrupt: sys.exit(130)")
    command = [sys.executable, tmp_path / "waits.py"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as waiting:
        assert eventually(lambda: all(mark.exists() and mark.read_text() for mark in marks))
        os.killpg(waiting.pid, signal.SIGINT)
        assert (waiting.wait(SECONDS / 2), waiting.stderr.read()) == (130, b"")
    assert eventually(lambda: not any(alive(int(mark.read_text())) for mark in marks))


@pytest.mark.slow
def test_a_killed_process_is_named_as_what_it_is():
    with pytest.raises(ExperimentError, match=r"process died.*fewer than 2"):
        list(pool.in_processes(deadly, GROUPS, workers=2))


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ExperimentError, match=r"\.\[ray\]"):
        list(pool.on_ray(numbers, GROUPS))


@pytest.mark.weekly
def test_outcomes_of_ray_are_those_of_this_process():
    import ray  # noqa: PLC0415

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    here = {pickle.dumps(one) for group in GROUPS for one, *_ in numbers(group)}
    try:
        outcomes = list(pool.on_ray(numbers, GROUPS, address="local", cpus=1))
        assert {pickle.dumps(one) for one, *_ in outcomes} == here
        assert {n for *_, n in outcomes} == {1}
        with pytest.raises(ExperimentError, match="no room for 999 CPUs"):
            list(pool.on_ray(numbers, GROUPS, cpus=999))
    finally:
        ray.shutdown()
