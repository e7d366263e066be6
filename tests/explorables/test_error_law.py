"""The explorable of the error law: the same numbers as `explainer.linear_transformer`, pictures that are whole."""

import json
import math
import re
from xml.etree import ElementTree

import pytest
import torch
import traitlets
from conftest import FRAME_MS

from bookbuilder.explorables import run_module
from explainer.explorables.error_law import ErrorLaw
from explainer.theory import linear_transformer as lt

SHARES = (1, 0.1, 0.003)
STATES = (
    {},
    {"training_length": 1, "prompt_length": 1, "noise": 2.0, "eigenvalues": [0.01]},
    {"training_length": 1000, "prompt_length": 10_000, "eigenvalues": [100.0] * 20},
    {"training_length": 7, "prompt_length": 350, "noise": 0.5, "eigenvalues": [3.0, 0.02]},
    {"training_length": 300, "prompt_length": 2, "noise": 0.1},
    {"training_length": 1, "prompt_length": 10_000},
)

SCRIPT = """
import { readFileSync } from "node:fs";
import explorable, * as module from "#explorables/error_law.js";
const { states, shares } = JSON.parse(readFileSync(0, "utf8"));
const cases = states.map((state) => {
  const N = state.training_length, pays = module.payingLength(state), terms = module.terms(state);
  const onContour = (M) => (M === Infinity ? null : module.terms(state, N, M).total);
  return {
    terms, pays, best: module.bestTraining(state),
    described: explorable.describe(state), still: explorable.still(state),
    atPaying: module.terms(state, N, pays),
    onContours: shares.map((share) => onContour(module.contour(state, share, N))),
  };
});
let frame = Infinity;
for (let i = 0; i < 25; i++) {
  const start = performance.now();
  explorable.still({ ...states[2], prompt_length: 1 + i });
  frame = Math.min(frame, performance.now() - start);
}
process.stdout.write(JSON.stringify({ cases, frame }));
"""


def full_state(state: dict) -> dict:
    return ErrorLaw(**state).state()


@pytest.fixture(scope="module")
def javascript() -> dict:
    """What the module computes for every state."""
    return json.loads(run_module(SCRIPT, {"states": [full_state(state) for state in STATES], "shares": SHARES}))


@pytest.fixture(params=range(len(STATES)))
def case(request, javascript):
    return full_state(STATES[request.param]), javascript["cases"][request.param]


def covariance(state: dict) -> torch.Tensor:
    """A covariance with the state's eigenvalues, in another basis than the axes."""
    eigenvalues = torch.tensor(state["eigenvalues"], dtype=torch.float64)
    d = len(eigenvalues)
    basis = torch.linalg.qr(torch.randn(d, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)).Q
    return basis @ eigenvalues.diag() @ basis.T


def risk(state: dict, n: int, m: int) -> float:
    """Error of Gamma^-1 on noisy test prompts, E over tasks; the noise enters h and the query's target."""
    Lambda = covariance(state)
    A = torch.linalg.inv(lt.gamma(Lambda, n))
    noise_of_h = state["noise"] ** 2 * torch.trace(A @ Lambda @ A.T @ Lambda) / m
    return (lt.population_risk(A, Lambda, m) + noise_of_h).item() + state["noise"] ** 2


def of_zero(state: dict) -> float:
    return sum(state["eigenvalues"]) + state["noise"] ** 2


def test_total_is_the_population_risk(case):
    state, own = case
    expected = risk(state, state["training_length"], state["prompt_length"]) / of_zero(state)
    assert own["terms"]["total"] == pytest.approx(expected, rel=1e-9)


def test_terms_are_those_of_the_theorem(case):
    """Averaging over w ~ N(0, I) is adding up the unit tasks, in all that is quadratic in w; the noise is not."""
    state, own = case
    Lambda, n, m = covariance(state), state["training_length"], state["prompt_length"]
    d, best = len(Lambda), state["noise"] ** 2
    unit = [lt.label_moments(task, Lambda) for task in torch.eye(d, dtype=torch.float64)]
    terms = [lt.risk_terms(moments, Lambda, n, m) for moments in unit]
    A = torch.linalg.inv(lt.gamma(Lambda, n))
    of_noise = best * torch.trace(Lambda @ A @ A @ Lambda).item() / m
    expected = best, sum(t.test_length for t in terms) + of_noise, sum(t.training_length for t in terms)
    assert own["terms"]["parts"] == pytest.approx([part / of_zero(state) for part in expected], rel=1e-7)


def test_longer_prompts_stop_paying_where_half_of_the_error_stays(case):
    _, own = case
    best, falls, stays = own["atPaying"]["parts"]
    assert falls == pytest.approx(best + stays, rel=1e-12)


def test_contours_hold_their_share(case):
    state, own = case
    floor = risk(state, state["training_length"], 10**15) / of_zero(state)
    for share, reached in zip(SHARES, own["onContours"], strict=True):
        if reached is None:
            assert floor >= share * (1 - 1e-9)
        else:
            assert reached == pytest.approx(share, rel=1e-9)


def test_best_training_length_is_the_least_of_all(case):
    state, own = case
    risks = {n: risk(state, n, state["prompt_length"]) for n in {1, 2, 5, 20, 100, 350, 1000, own["best"]}}
    assert risks[own["best"]] <= min(risks.values()) * (1 + 1e-12)
    if not state["noise"]:
        assert own["best"] == min(state["prompt_length"], 1000)


def test_every_state_has_a_picture(case):
    _, own = case
    for text in (own["still"], own["described"]):
        assert not re.search(r"NaN|undefined|Infinity|null|\[object", text)
    root = ElementTree.fromstring(own["still"])
    assert root.get("aria-label") == own["described"]
    assert not re.search(r" id=|href|url\(", own["still"]), "two instances on a page would share it"


def test_default_state_shows_the_answer(javascript):
    own = javascript["cases"][0]
    assert "N = 20 examples: longer prompts stop paying at about M = 59" in own["described"]
    assert own["pays"] == pytest.approx(59.3, abs=0.1)
    for part in own["terms"]["parts"]:
        assert f"{part:.4f}" in own["described"]
    assert f"{own['terms']['total']:.3f} of that of predicting 0" in own["described"]


def test_an_update_takes_less_than_a_frame(javascript):
    assert javascript["frame"] < FRAME_MS


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"training_length": 0}, r"training_length"),
        ({"training_length": 1001}, r"training_length"),
        ({"prompt_length": 10_001}, r"prompt_length"),
        ({"prompt_length": 2.5}, r"prompt_length"),
        ({"noise": 3}, r"noise"),
        ({"noise": math.nan}, r"noise = nan"),
        ({"eigenvalues": []}, r"eigenvalues has 0 numbers; it must have 1 to 20"),
        ({"eigenvalues": [1.0] * 21}, r"eigenvalues has 21 numbers"),
        ({"eigenvalues": [1.0, 0.0]}, r"between 0\.01 and 100"),
        ({"eigenvalues": [math.nan]}, r"between 0\.01 and 100"),
        ({"eigenvalues": 3}, r"eigenvalues = 3"),
        ({"eigenvalues": ["one"]}, r"eigenvalues = \['one'\]"),
    ],
)
def test_traits_refuse(state, message):
    with pytest.raises(traitlets.TraitError, match=message):
        ErrorLaw(**state)


def test_eigenvalues_take_tensors():
    assert ErrorLaw(eigenvalues=torch.tensor([2.0, 0.5])).eigenvalues == [2, 0.5]
