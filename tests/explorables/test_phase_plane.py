"""The explorable of the phase plane: its JavaScript computes what Python does."""

import re

import pytest
import torch
from javascript import computed

from explainer.explorables import PhasePlane
from explainer.theory import linear_transformer as lt

STARTS = [(1.8, 0.1), (1.6, -0.4), (0.3, 0.3), (-0.2, 1.9), (-1, -0.5), (0.5, -0.5), (0, 0), (2, 2), (0, 2)]
STATES = [dict(start=list(start), step=step) for start in STARTS for step in (0.05, 0.6, 1.0)]
STATES.insert(0, PhasePlane().state())
COVARIANCE = torch.tensor([[1.0]], dtype=torch.float64)
N = 4


@pytest.fixture(scope="module")
def javascript():
    found = "{ flow: m.flow(s).at(-1), steps: m.steps(s), stable: m.stable(m.flow(s).at(-1)) }"
    return computed("phase_plane", STATES, found, "{ gamma: m.GAMMA, duration: m.DURATION, dt: m.DT }")


def layer(start) -> lt.LinearAttention:
    u, U = torch.tensor(start, dtype=torch.float64)
    return lt.LinearAttention(torch.diag(torch.stack([0 * u, u])), torch.diag(torch.stack([U, 0 * U])))


def of(javascript, start: tuple, step: float) -> dict:
    return javascript.results[STATES.index(dict(start=list(start), step=step))]


def test_the_flow_is_that_of_the_package(javascript):
    assert javascript.gamma == pytest.approx(lt.gamma(COVARIANCE, N).item())
    assert javascript.duration == 40
    for start in STARTS:
        run = lt.train_by_gradient_flow(COVARIANCE, N, layer(start), duration=40, dt=javascript.dt)
        expected = [run.u[-1].item(), run.U[-1].item()]
        assert of(javascript, start, 0.6)["flow"] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_steps_are_those_of_the_package(javascript):
    for state, found in zip(STATES, javascript.results, strict=True):
        count = len(found["steps"]) - 1
        run = lt.train_by_gradient_descent(
            COVARIANCE, N, layer(state["start"]), rate=state["step"], steps=min(count, 10)
        )
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


def test_the_default_state_shows_that_long_steps_leave_the_curve(javascript):
    words = javascript.results[0]["words"]
    before, after = (
        float(number) for number in re.findall(r"imbalance (?:is then )?(-?[\d.]+\d)", words.replace("\u2212", "-"))[:2]
    )
    assert abs(after) < 0.7 * before
