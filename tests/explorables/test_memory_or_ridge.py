"""The explorable of memory and ridge: its JavaScript computes what Python does, and its traits refuse the rest."""

import json
import math
import re
from itertools import islice
from xml.etree import ElementTree

import pytest
import torch
import traitlets
from conftest import FRAME_MS
from test_explorables import uniforms

from bookbuilder.explorables import run_module, still
from explainer.explorables.memory_or_ridge import MOST_DOUBLINGS, POOL_SEED, MemoryOrRidge
from explainer.theory import regression, task_diversity

DEFAULT = MemoryOrRidge().state()
STATES = [
    DEFAULT | dict(doublings=k, noise=noise, query=query)
    for k in (0, 1, 5, MOST_DOUBLINGS)
    for noise in (0.1, 1.0)
    for query in (-2.0, 0.7)
] + [DEFAULT | dict(points=[[0.0, 2.0]])]

COMPUTE = """
import { readFileSync } from "node:fs";
import explorable, * as m from "#explorables/memory_or_ridge.js";
const states = JSON.parse(readFileSync(0, "utf8"));
const { describe, still } = explorable;
const computed = (s) => ({ ...m.predictions(s), sizes: m.answersBySize(s), words: describe(s), still: still(s) });
const results = states.map(computed);
let milliseconds = Infinity;
for (let i = 0; i < 25; i++) {
  const start = performance.now();
  explorable.still(states[i % states.length]);
  milliseconds = Math.min(milliseconds, performance.now() - start);
}
process.stdout.write(JSON.stringify({ seed: m.POOL_SEED, most: m.MOST_DOUBLINGS, results, milliseconds }));
"""


@pytest.fixture(scope="module")
def javascript() -> dict:
    return json.loads(run_module(COMPUTE, STATES))


def pool() -> torch.Tensor:
    """The largest pool, from the same stream of numbers."""
    size = 2**MOST_DOUBLINGS
    u = torch.tensor(list(islice(uniforms(POOL_SEED), 4 * size)), dtype=torch.float64).view(-1, 2)
    normal = (-2 * (1 - u[:, 0]).log()).sqrt() * (2 * math.pi * u[:, 1]).cos()
    return normal.view(size, 2)


def prompt(state: dict) -> regression.Prompts:
    """The points and the query with inputs (x, 1); the query's own target is not read."""
    rows = torch.tensor([*state["points"], [state["query"], 0.0]], dtype=torch.float64)
    inputs = torch.stack([rows[:, 0], torch.ones(len(rows)).double()], -1)
    return regression.Prompts(inputs[None], rows[None, :, 1], torch.zeros(1, 2).double())


def test_answers_are_those_of_the_package(javascript):
    assert (javascript["seed"], javascript["most"]) == (POOL_SEED, MOST_DOUBLINGS)
    lines = pool()
    for state, found in zip(STATES, javascript["results"], strict=True):
        one, noise = prompt(state), state["noise"]
        assert found["ridge"] == pytest.approx(regression.ridge(one, noise**2).item(), rel=1e-9, abs=1e-12)
        sizes = [task_diversity.memory(one, lines[: 2**k], noise).item() for k in range(MOST_DOUBLINGS + 1)]
        assert found["sizes"] == pytest.approx(sizes, rel=1e-9, abs=1e-12)
        assert found["memory"] == pytest.approx(sizes[state["doublings"]], rel=1e-9, abs=1e-12)


def test_every_state_has_a_picture_that_says_its_result(javascript):
    for state, found in zip(STATES, javascript["results"], strict=True):
        for text in (found["still"], found["words"]):
            assert not re.search(r"NaN|undefined|Infinity|null|\[object", text), state
        assert not re.search(r" id=|href|url\(", found["still"])
        assert ElementTree.fromstring(found["still"]).get("aria-label") == found["words"]


def test_the_default_state_shows_that_they_part_and_that_a_large_pool_joins_them():
    label = ElementTree.fromstring(still(MemoryOrRidge())).get("aria-label")
    apart, joined = (float(x) for x in re.findall(r"part by (\d\.\d+)", label))
    assert apart > 0.3 and joined < 0.1


def test_the_module_is_quick(javascript):
    assert javascript["milliseconds"] < FRAME_MS


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"doublings": 11}, "doublings"),
        ({"noise": 0.0}, "noise"),
        ({"query": float("nan")}, "query = nan"),
        ({"points": [[0.0, 3.0]]}, "from -2 to 2"),
    ],
)
def test_traits_refuse(state, message):
    with pytest.raises(traitlets.TraitError, match=message):
        MemoryOrRidge(**state)
