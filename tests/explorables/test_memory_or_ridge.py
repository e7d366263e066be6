"""The explorable of memory and ridge: its JavaScript computes what Python does."""

import re

import pytest
import torch
from javascript import computed, normals

from explainer.explorables import MemoryOrRidge
from explainer.theory import regression, task_diversity

DEFAULT = MemoryOrRidge().state()
MOST = 10  # doublings
STATES = [DEFAULT] + [
    DEFAULT | dict(doublings=k, noise=noise, query=query)
    for k in (0, 1, 5, MOST)
    for noise in (0.1, 1.0)
    for query in (-2.0, 0.7)
]
STATES.append(DEFAULT | dict(points=[[0.0, 2.0]]))


@pytest.fixture(scope="module")
def javascript():
    found = "{ ...m.predictions(s), sizes: m.answersBySize(s) }"
    return computed("memory_or_ridge", STATES, found, "{ seed: m.POOL_SEED, most: m.MOST_DOUBLINGS }")


def prompt(state: dict) -> regression.Prompts:
    """The points and the query with inputs (x, 1); the query's own target is not read."""
    rows = torch.tensor([*state["points"], [state["query"], 0.0]], dtype=torch.float64)
    inputs = torch.stack([rows[:, 0], torch.ones(len(rows)).double()], -1)
    return regression.Prompts(inputs[None], rows[None, :, 1], torch.zeros(1, 2).double())


def test_answers_are_those_of_the_package(javascript):
    assert javascript.most == MOST
    lines = torch.tensor(normals(javascript.seed, 2**MOST, 2))
    for state, found in zip(STATES, javascript.results, strict=True):
        one, noise = prompt(state), state["noise"]
        assert found["ridge"] == pytest.approx(regression.ridge(one, noise**2).item(), rel=1e-9, abs=1e-12)
        sizes = [task_diversity.discrete_mmse(one, lines[: 2**k], noise).item() for k in range(MOST + 1)]
        assert found["sizes"] == pytest.approx(sizes, rel=1e-9, abs=1e-12)
        assert found["memory"] == pytest.approx(sizes[state["doublings"]], rel=1e-9, abs=1e-12)


def test_the_default_state_shows_that_they_part_and_that_a_large_pool_joins_them(javascript):
    apart, joined = (float(x) for x in re.findall(r"part by (\d\.\d+)", javascript.results[0]["words"]))
    assert apart > 0.3 and joined < 0.1
