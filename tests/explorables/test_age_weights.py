"""The explorable of fast weights: its JavaScript computes what Python does, and its traits refuse the rest."""

import json
import re
from xml.etree import ElementTree

import pytest
import torch
import traitlets
from conftest import FRAME_MS

from bookbuilder.explorables import run_module, still
from explainer.explorables.age_weights import AGES, AgeWeights
from explainer.theory import fast_weights

STATES = [dict(retention=a, momentum=m) for a in (0.0, 0.5, 0.8, 0.97, 1.0) for m in (0.0, 0.5, 0.8, 0.95)]

COMPUTE = """
import { readFileSync } from "node:fs";
import explorable, * as m from "#explorables/age_weights.js";
const states = JSON.parse(readFileSync(0, "utf8"));
const { describe, still } = explorable;
const computed = (s) => ({ weights: m.weights(s), ...m.summary(s), words: describe(s), still: still(s) });
const results = states.map(computed);
let milliseconds = Infinity;
for (let i = 0; i < 25; i++) {
  const start = performance.now();
  explorable.still(states[i % states.length]);
  milliseconds = Math.min(milliseconds, performance.now() - start);
}
process.stdout.write(JSON.stringify({ ages: m.AGES, results, milliseconds }));
"""


@pytest.fixture(scope="module")
def javascript() -> dict:
    return json.loads(run_module(COMPUTE, STATES))


def of(javascript: dict, retention: float, momentum: float) -> dict:
    return javascript["results"][STATES.index(dict(retention=retention, momentum=momentum))]


def test_weights_are_those_of_the_package(javascript):
    assert javascript["ages"] == AGES
    for state, found in zip(STATES, javascript["results"], strict=True):
        expected = fast_weights.age_weights(**state, n=AGES)
        torch.testing.assert_close(torch.tensor(found["weights"]).double(), expected, rtol=1e-6, atol=1e-9)
        assert found["peak"] == expected.argmax()
        assert (expected.cumsum(0) < expected.sum() / 2).sum() == found["half"] - 1


def test_what_counts_most_is_said(javascript):
    assert "The pair of age 9 counts most" in of(javascript, 0.97, 0.8)["words"]
    assert "The oldest pairs count most, 5.00 times" in of(javascript, 1.0, 0.8)["words"]
    assert "The newest pair counts most" in of(javascript, 0.97, 0.0)["words"]
    assert "All pairs count the same" in of(javascript, 1.0, 0.0)["words"]


def test_every_state_has_a_picture_that_says_its_result(javascript):
    for state, found in zip(STATES, javascript["results"], strict=True):
        for text in (found["still"], found["words"]):
            assert not re.search(r"NaN|undefined|Infinity|null|\[object", text), state
        assert not re.search(r" id=|href|url\(", found["still"])
        assert ElementTree.fromstring(found["still"]).get("aria-label") == found["words"]


def test_the_default_state_shows_the_hump():
    assert "The pair of age 9 counts most" in ElementTree.fromstring(still(AgeWeights())).get("aria-label")


def test_the_module_is_quick(javascript):
    assert javascript["milliseconds"] < FRAME_MS


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"retention": 1.1}, "retention"),
        ({"momentum": 1.0}, r"momentum.*0\.95"),
        ({"momentum": float("nan")}, "momentum = nan"),
    ],
)
def test_traits_refuse(state, message):
    with pytest.raises(traitlets.TraitError, match=message):
        AgeWeights(**state)
