"""The explorable of the phase plane: its JavaScript computes what Python does, and its traits refuse the rest."""

import json
import re
from xml.etree import ElementTree

import pytest
import torch
import traitlets
from conftest import FRAME_MS

from bookbuilder.explorables import run_module, still
from explainer.explorables.phase_plane import DURATION, LAMBDA, N, PhasePlane
from explainer.theory import linear_transformer as lt

STARTS = [
    (1.8, 0.1),
    (1.6, -0.4),
    (0.3, 0.3),
    (-0.2, 1.9),
    (-1.0, -0.5),
    (0.5, -0.5),
    (0.0, 0.0),
    (2.0, 2.0),
    (0.0, 2.0),
]
STATES = [dict(start=list(start), step=step) for start in STARTS for step in (0.05, 0.6, 1.0)]
COVARIANCE = torch.tensor([[LAMBDA]], dtype=torch.float64)

COMPUTE = """
import { readFileSync } from "node:fs";
import explorable, * as m from "#explorables/phase_plane.js";
const states = JSON.parse(readFileSync(0, "utf8"));
const { describe, still } = explorable;
const told = (s) => ({ words: describe(s), still: still(s) });
const last = (s) => m.flow(s).at(-1);
const computed = (s) => ({ flow: last(s), steps: m.steps(s), stable: m.stable(last(s)), ...told(s) });
const results = states.map(computed);
let milliseconds = Infinity;
for (let i = 0; i < 25; i++) {
  const start = performance.now();
  explorable.still(states[i % states.length]);
  milliseconds = Math.min(milliseconds, performance.now() - start);
}
process.stdout.write(JSON.stringify({ gamma: m.GAMMA, duration: m.DURATION, dt: m.DT, results, milliseconds }));
"""


@pytest.fixture(scope="module")
def javascript() -> dict:
    return json.loads(run_module(COMPUTE, STATES))


def layer(start) -> lt.LinearAttention:
    u, U = torch.tensor(start, dtype=torch.float64)
    return lt.LinearAttention(torch.diag(torch.stack([0 * u, u])), torch.diag(torch.stack([U, 0 * U])))


def of(javascript: dict, start: tuple, step: float) -> dict:
    return javascript["results"][STATES.index(dict(start=list(start), step=step))]


def test_the_flow_is_that_of_the_package(javascript):
    assert javascript["gamma"] == pytest.approx(lt.gamma(COVARIANCE, N).item())
    assert javascript["duration"] == DURATION
    for start in STARTS:
        run = lt.gradient_flow(COVARIANCE, N, layer(start), duration=DURATION, dt=javascript["dt"])
        expected = [run.u[-1].item(), run.U[-1].item()]
        assert of(javascript, start, 0.6)["flow"] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_steps_are_those_of_the_package(javascript):
    for state, found in zip(STATES, javascript["results"], strict=True):
        count = len(found["steps"]) - 1
        run = lt.gradient_descent(COVARIANCE, N, layer(state["start"]), rate=state["step"], steps=min(count, 10))
        expected = torch.stack([run.u, run.U[:, 0, 0]], dim=1)
        torch.testing.assert_close(torch.tensor(found["steps"][:11]).double(), expected, rtol=1e-5, atol=1e-6)


def test_the_longest_stable_step_is_that_of_the_package(javascript):
    for start in ((1.6, -0.4), (0.3, 0.3), (2.0, 2.0)):
        found = of(javascript, start, 0.6)
        assert found["stable"] == pytest.approx(lt.stable_rate(layer(found["flow"]), COVARIANCE, N), rel=1e-4)


def test_what_happens_is_said(javascript):
    assert "ends at u = 1.60, U = 0.42" in of(javascript, (1.6, -0.4), 0.05)["words"]
    assert "runs into the saddle" in of(javascript, (0.5, -0.5), 0.05)["words"]
    assert "stop at the saddle" in of(javascript, (0.0, 0.0), 0.6)["words"]
    assert "diverge" in of(javascript, (2.0, 2.0), 1.0)["words"]


def test_the_default_state_shows_that_long_steps_leave_the_curve():
    words = ElementTree.fromstring(still(PhasePlane())).get("aria-label")
    before, after = (
        float(number) for number in re.findall(r"imbalance (?:is then )?(-?[\d.]+\d)", words.replace("\u2212", "-"))[:2]
    )
    assert abs(after) < 0.7 * before


def test_every_state_has_a_picture_that_says_its_result(javascript):
    for state, found in zip(STATES, javascript["results"], strict=True):
        for text in (found["still"], found["words"]):
            assert not re.search(r"NaN|undefined|Infinity|null|\[object", text), state
        assert not re.search(r" id=|href|url\(", found["still"])
        assert ElementTree.fromstring(found["still"]).get("aria-label") == found["words"]


def test_the_module_is_quick(javascript):
    assert javascript["milliseconds"] < FRAME_MS


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"start": [3, 0]}, "start"),
        ({"step": 0.0}, "step"),
        ({"step": float("nan")}, "step = nan"),
    ],
)
def test_traits_refuse(state, message):
    with pytest.raises(traitlets.TraitError, match=message):
        PhasePlane(**state)
