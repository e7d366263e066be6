"""The explorable of three boxes: its numbers are those of the package, and the probes do what the figure says."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
import traitlets
from conftest import FRAME_MS

from bookbuilder.explorables import run_module
from explainer.explorables import which_box
from explainer.explorables.which_box import LEARNERS, PROBES, UNNAMED, WhichBox
from explainer.theory import linear_transformer, regression

DEFAULT = WhichBox().state()
STATES = [DEFAULT | dict(probe=probe, seed=seed, shown=seed == 2) for probe in range(len(PROBES)) for seed in (0, 1, 2)]
STATES += [DEFAULT | dict(seed=3, a=first, b=second, c="ols") for first in LEARNERS for second in (UNNAMED, "gpt")]

COMPUTE = """
import { readFileSync } from "node:fs";
import explorable, * as m from "#explorables/which_box.js";
const states = JSON.parse(readFileSync(0, "utf8"));
const { describe, still } = explorable;
const two = [["linear", "ols"], ["gpt", "ols"], ["linear", "gpt"], ["ols", "linear"]];
const computed = (s) => ({
  order: m.order(s.seed), verdicts: [0, 1, 2].map((box) => m.verdict(s, box)), words: describe(s), still: still(s),
});
const results = states.map(computed);
let milliseconds = Infinity;
for (let i = 0; i < 25; i++) {
  const start = performance.now();
  explorable.still(states[i % states.length]);
  milliseconds = Math.min(milliseconds, performance.now() - start);
}
const orders = Array.from({ length: 60 }, (_, seed) => m.order(seed).join());
const pairs = two.map((pair) => [...pair, m.decisive(states[0], ...pair).key]);
const keys = m.PROBES.map((each) => each.key);
process.stdout.write(JSON.stringify({ keys, learners: m.LEARNERS, pairs, results, orders, milliseconds }));
"""


@pytest.fixture(scope="module")
def javascript() -> dict:
    return json.loads(run_module(COMPUTE, STATES))


@pytest.fixture(scope="module")
def errors() -> dict:
    return which_box.stored()["errors"]


def test_the_stored_answers_are_computed_again(errors):
    stored, few = which_box.stored(), which_box.measured(n=which_box.SHOWN)
    assert stored["n"] == which_box.PROMPTS and few.keys() == stored.keys()
    assert few["errors"].keys() == stored["errors"].keys() == set(PROBES)
    for probe, prompts in which_box.probes().items():
        assert stored["right"][probe] == pytest.approx(prompts.y_q[: which_box.SHOWN].tolist(), abs=1e-3)
        for name, box in which_box.boxes().items():
            found = box(prompts)
            relative = (regression.squared_errors(found, prompts).sum() / (prompts.y_q**2).sum()).item()
            assert errors[probe][name][0] == pytest.approx(relative, abs=2e-3)
            assert stored["answers"][probe][name] == pytest.approx(found[: which_box.SHOWN].tolist(), abs=5e-3)
            middle, low, high = errors[probe][name]
            assert low <= middle <= high


def test_the_plain_inputs_cover_all_directions_evenly():
    plain = which_box.probes(3)["plain"]
    S = plain.X.mT @ plain.X / plain.n_examples
    assert torch.allclose(S, torch.eye(S.shape[-1], dtype=S.dtype), atol=1e-12)


def test_on_even_inputs_one_step_with_the_layers_matrix_is_least_squares_but_for_one_factor():
    """X^T X / N = I makes X^T y / N the least squares solution, so the layer answers a times as much, a = A_11."""
    plain = which_box.probes(20)["plain"]
    d = plain.x_q.shape[-1]
    a = 1 / linear_transformer.gamma(torch.eye(d, dtype=torch.float64), which_box.LENGTH)[0, 0]
    linear = which_box.boxes()["linear"](plain)
    assert torch.allclose(linear, a * regression.ordinary_least_squares(plain), atol=1e-10)


def test_each_probe_changes_what_it_says():
    found = which_box.probes(5)
    plain = found["plain"]
    assert torch.allclose(found["targets"].targets, which_box.FACTOR * plain.targets)
    wild = found["outlier"].targets - plain.targets
    assert torch.allclose(wild[:, 0], torch.full((5,), which_box.OUTLIER).double()) and not wild[:, 1:].any()
    assert torch.allclose(found["outlier"].y_q, plain.y_q)
    ratio = (found["stretched"].inputs / plain.inputs).square()
    assert np.allclose(ratio, np.broadcast_to(which_box.STRETCH, ratio.shape))
    assert found["few"].n_examples == which_box.FEW < plain.x_q.shape[-1]


def test_plain_answers_are_alike_and_two_probes_identify_the_boxes(errors):
    assert max(errors["plain"][name][2] for name in LEARNERS) < 0.05
    assert errors["stretched"]["linear"][1] > 1
    assert max(errors["stretched"][name][2] for name in ("gpt", "ols")) < 0.1
    assert errors["targets"]["gpt"][1] > 0.2
    assert max(errors["targets"][name][2] for name in ("linear", "ols")) < 0.01


def test_the_deciding_probes(javascript):
    assert (javascript["keys"], javascript["learners"]) == (list(PROBES), list(LEARNERS))
    deciding = {frozenset(pair[:2]): pair[2] for pair in javascript["pairs"]}
    assert deciding[frozenset({"linear", "ols"})] == "stretched"
    assert deciding[frozenset({"gpt", "ols"})] == "targets"
    assert deciding[frozenset({"linear", "gpt"})] == "stretched"


def test_every_order_occurs_and_every_box_is_judged(javascript):
    assert len(set(javascript["orders"])) == 6
    for state, found in zip(STATES, javascript["results"], strict=True):
        assert sorted(found["order"]) == sorted(LEARNERS)
        for box, named, its in zip("abc", found["verdicts"], found["order"], strict=True):
            guess = state[box]
            opening = "right: " if guess == its else "not " if guess != UNNAMED else ""
            assert named.startswith(opening)
            assert state["shown"] or guess != UNNAMED or named == "not named yet"


def test_names_stay_hidden_until_they_are_shown(javascript):
    for state, found in zip(STATES, javascript["results"], strict=True):
        told = "the small GPT" in found["words"] or "the small GPT" in found["still"]
        assert told == state["shown"]


def test_every_state_has_a_picture_that_says_its_result(javascript):
    for state, found in zip(STATES, javascript["results"], strict=True):
        for text in (found["still"], found["words"], *found["verdicts"]):
            assert not re.search(r"NaN|undefined|Infinity|null|\[object", text), state
        assert not re.search(r" id=|href|url\(", found["still"])
        assert ElementTree.fromstring(found["still"]).get("aria-label") == found["words"]


def test_the_module_is_quick(javascript):
    assert javascript["milliseconds"] < FRAME_MS


@pytest.mark.parametrize("state", [{"probe": 5}, {"seed": -1}, {"a": "ridge"}])
def test_traits_refuse(state):
    with pytest.raises(traitlets.TraitError, match=next(iter(state))):
        WhichBox(**state)
