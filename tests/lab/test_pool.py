"""explainer_lab.pool: what comes out of other processes, and what becomes of them."""

import multiprocessing
import os
import pickle
import signal
import threading
from pathlib import Path

import pytest

from explainer.errors import ExperimentError
from explainer_lab import pool

GROUPS = [tuple((f"task{i}", seed) for seed in range(2)) for i in range(3)]


def numbers(group):
    """Floating-point numbers whose last bits depend on the number of threads, the process, and its threads."""
    import torch  # noqa: PLC0415 (each worker of the other tests would import it with this module)

    for task, seed in group:
        noise = torch.randn(200_000, generator=torch.Generator().manual_seed(seed + len(task)))
        yield (task, seed, noise.sum().item(), noise.pow(2).mean().item()), os.getpid(), torch.get_num_threads()


def deadly(group):
    if group[0][0] == "task1":
        os.kill(os.getpid(), signal.SIGKILL)
    yield group


@pytest.fixture(autouse=True)
def workers_find_this_module(monkeypatch):
    places = (Path(__file__).parent, Path(__file__).parents[1], Path(__file__).parents[2] / "src")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, places)))


@pytest.mark.slow
@pytest.mark.weekly
def test_outcomes_are_those_of_this_process_from_others_with_so_many_threads():
    here = {pickle.dumps(one) for group in GROUPS for one, *_ in numbers(group)}
    outcomes = list(pool.in_processes(numbers, GROUPS, workers=2, threads=1))
    assert {pickle.dumps(one) for one, *_ in outcomes} == here
    assert os.getpid() not in {pid for _, pid, _ in outcomes}
    assert {n for *_, n in outcomes} == {1}


def endless(group):
    yield group
    if group[0][0] != "task0":
        threading.Event().wait()


@pytest.mark.slow
def test_whoever_asks_no_more_waits_for_none():
    outcomes = pool.in_processes(endless, GROUPS, workers=1)
    assert next(outcomes) == GROUPS[0]
    outcomes.close()
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_a_killed_process_is_named_as_what_it_is():
    with pytest.raises(ExperimentError, match=r"process died.*fewer than 2"):
        list(pool.in_processes(deadly, GROUPS[1:2], workers=2))


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
