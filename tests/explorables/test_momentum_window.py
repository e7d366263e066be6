"""The explorable of momentum attention: its JavaScript computes what Python does, and its traits refuse the rest."""

import json
import re
from xml.etree import ElementTree

import pytest
import torch
import traitlets
from conftest import FRAME_MS

from bookbuilder.explorables import run_module, still
from explainer.explorables.momentum_window import AVERAGES, MomentumWindow
from explainer.theory import duality, momentum

ETAS = (0.0, 0.3, 0.5, 0.95)
QUERIES = ((1.2, 0.6), (-2.0, 2.0), (0.0, 0.0))

COMPUTE = """
import { readFileSync } from "node:fs";
import explorable, * as m from "#explorables/momentum_window.js";
const states = JSON.parse(readFileSync(0, "utf8"));
const computed = (s) => ({
  weights: m.weights(s), size: m.size(s), base: m.base(s), added: m.added(s),
  words: explorable.describe(s), still: explorable.still(s),
});
const results = states.map(computed);
let milliseconds = Infinity;
for (let i = 0; i < 25; i++) {
  const start = performance.now();
  explorable.still(states[i % states.length]);
  milliseconds = Math.min(milliseconds, performance.now() - start);
}
process.stdout.write(JSON.stringify({ keys: m.KEYS, values: m.VALUES, rate: m.RATE, results, milliseconds }));
"""


def tensor(rows) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


@pytest.fixture(scope="module")
def states() -> list[dict]:
    return [dict(average=a, eta=eta, query=list(q)) for a in AVERAGES for eta in ETAS for q in QUERIES]


@pytest.fixture(scope="module")
def javascript(states) -> dict:
    return json.loads(run_module(COMPUTE, states))


def expected_weights(average: str, eta: float, n: int) -> torch.Tensor:
    """Oldest first."""
    if average == "heavy_ball":
        return duality.heavy_ball_weights(eta, n)
    return momentum.LAG_WEIGHTS[average](eta, n).flip(0)


def close(found, expected):
    torch.testing.assert_close(tensor(found), expected, rtol=1e-9, atol=1e-9)


def test_weights_are_those_of_the_package(javascript, states):
    past = len(javascript["keys"]) - 1
    for state, found in zip(states, javascript["results"], strict=True):
        close(found["weights"], expected_weights(state["average"], state["eta"], past))


def test_gain_and_window_are_sums_of_the_weights(javascript, states):
    for state, found in zip(states, javascript["results"], strict=True):
        average, eta, lags = state["average"], state["eta"], 11 if state["average"] == "heavy_ball" else 3000
        w = expected_weights(average, eta, lags)
        assert found["size"]["gain"] == pytest.approx(w.sum().item(), abs=1e-9)
        if w.any():  # at eta = 0 the window is the limit
            assert found["size"]["window"] == pytest.approx((w.sum() ** 2 / (w**2).sum()).item(), rel=1e-9)
        else:
            assert found["size"]["window"] == 1


def test_the_head_is_attention_and_what_the_average_adds(javascript, states):
    keys, values = tensor(javascript["keys"]), tensor(javascript["values"])
    for state, found in zip(states, javascript["results"], strict=True):
        query = tensor([state["query"]])
        if state["average"] == "heavy_ball":
            a = expected_weights("heavy_ball", state["eta"], len(keys) - 1)
            errors = javascript["rate"] * a[:, None] * values[:-1]
            close(found["added"], duality.linear_attention(errors, keys[:-1], query)[0])
            assert found["base"] == [0, 0]
        else:
            average = momentum.AVERAGES[state["average"]]
            close(found["added"], average(values, state["eta"])[-1])
            close(found["base"], duality.softmax_attention(query, keys, values)[0])


def test_only_the_dual_looks_at_the_query(javascript, states):
    for average in AVERAGES:
        found = [
            tuple(each["added"])
            for state, each in zip(states, javascript["results"], strict=True)
            if state["average"] == average and state["eta"] == 0.5
        ]
        assert len(set(found)) == (len(QUERIES) if average == "heavy_ball" else 1)


def test_every_state_has_a_picture_that_says_its_result(javascript, states):
    for state, found in zip(states, javascript["results"], strict=True):
        for text in (found["still"], found["words"]):
            assert not re.search(r"NaN|undefined|Infinity|null|\[object", text), state
        assert not re.search(r" id=|href|url\(", found["still"])
        assert ElementTree.fromstring(found["still"]).get("aria-label") == found["words"]
        assert f"= {state['eta']:.2f}:" in found["words"]


def test_the_default_state_states_the_answer():
    label = ElementTree.fromstring(still(MomentumWindow())).get("aria-label")
    assert "the newest 0.500" in label and "Gain 1.00, effective window 3.00" in label
    assert label.endswith("the same for every query.")


def test_the_module_is_quick(javascript):
    assert javascript["milliseconds"] < FRAME_MS


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"eta": 1.0}, r"eta.*0\.95"),
        ({"eta": float("nan")}, "eta = nan"),
        ({"average": "permuted"}, "average"),
        ({"query": [3, 0]}, "from -2 to 2"),
    ],
)
def test_traits_refuse(state, message):
    with pytest.raises(traitlets.TraitError, match=message):
        MomentumWindow(**state)
