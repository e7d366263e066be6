"""The explorable of one plane: its layer, formula and cloud are those of Python."""

import math

import numpy as np
import pytest
import torch
from javascript import computed, tensor

from explainer.explorables import OnePlane
from explainer.theory import linear_transformer as lt

SECOND, START, DURATION = 0.7, 0.1, 100.0
STATES = {
    "default": {},
    "turned": {"turn": 90, "prompt_length": 200},
    "turned back": {"turn": -35, "training_length": 1000, "w": [-2.0, 0.3]},
    "long": {"training_length": 1000, "prompt_length": 1000},
    "one example": {"training_length": 1, "prompt_length": 1, "w": [-1.5, -2.0]},
    "two examples": {"prompt_length": 2, "w": [0.5, 0.0]},
    "early": {"time": 1.0, "training_length": 30},
    "at the start": {"time": 0.1, "train": [-0.5, 0.0]},
    "weak": {"train": [0.0, 0.5], "training_length": 100},
    "strong": {"train": [0.0, -1.5], "training_length": 1000},
    "no weights": {"w": [0.0, 0.0]},
}


@pytest.fixture(scope="module")
def javascript() -> dict:
    """What the module computes for every state."""
    names = {name: name for name in ("layer", "formula", "cloud", "gammas")} | {"moments": "whiteMoments"}
    found = "{" + ", ".join(f"{name}: m.{function}(s)" for name, function in names.items()) + "}"
    constants = "{ constants: [m.SECOND, m.START, m.DURATION] }"
    answer = computed("one_plane", [OnePlane(**state).state() for state in STATES.values()], found, constants)
    assert answer.constants == [SECOND, START, DURATION]
    return dict(zip(STATES, answer.results, strict=True))


@pytest.fixture(params=STATES)
def case(request, javascript):
    return OnePlane(**STATES[request.param]).state(), javascript[request.param]


def covariances(state: dict) -> tuple[torch.Tensor, torch.Tensor]:
    """Of the inputs in training and at the test."""
    e = tensor(state["train"])
    f = SECOND * tensor([-e[1], e[0]]) / e.norm()
    Lambda = torch.outer(e, e) + torch.outer(f, f)
    c, s = (of(math.radians(state["turn"])) for of in (math.cos, math.sin))
    R = tensor([[c, -s], [s, c]])
    return Lambda, R @ Lambda @ R.T


@pytest.mark.parametrize("name", ["early", "at the start", "weak", "one example"])
def test_the_layer_is_that_of_the_flow(name, javascript):
    state, own = OnePlane(**STATES[name]).state(), javascript[name]
    Lambda, test = covariances(state)
    start = lt.initialisation(Lambda, state["training_length"], sigma=START)
    flow = lt.train_by_gradient_flow(Lambda, state["training_length"], start, duration=state["time"], dt=0.02)
    torch.testing.assert_close(tensor(own["layer"]["A"]), flow.preconditioners[-1], rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(tensor(own["layer"]["Lambda"]), test, rtol=1e-12, atol=1e-14)


def test_a_whole_training_ends_at_the_theorem(case):
    state, own = case
    gamma = lt.gamma(covariances(state)[0], state["training_length"])
    assert sorted(own["gammas"]) == pytest.approx(torch.linalg.eigvalsh(gamma).tolist(), rel=1e-12)
    if state["time"] == DURATION:
        torch.testing.assert_close(tensor(own["layer"]["A"]), torch.linalg.inv(gamma), rtol=1e-3, atol=1e-3)


def test_the_formula_is_that_of_the_package(case):
    state, own = case
    A, (_, test), w = tensor(own["layer"]["A"]), covariances(state), tensor(state["w"])
    parts = lt.error_parts(A, test, state["prompt_length"], task=w)
    assert own["formula"]["bias"] == pytest.approx(parts.bias.item(), rel=1e-9, abs=1e-12)
    assert own["formula"]["scatter"] == pytest.approx(parts.scatter.item(), rel=1e-9, abs=1e-12)
    assert own["formula"]["mean"] == pytest.approx((A @ test @ w).tolist(), abs=1e-12)


def test_the_cloud_agrees_with_the_formula(case):
    """Within five standard errors, taken from the points themselves."""
    state, own = case
    points, test = tensor(own["cloud"]["points"]), covariances(state)[1]
    mean = tensor(own["formula"]["mean"])
    squared = torch.einsum("ni,ij,nj->n", points - mean, test, points - mean)
    error = (squared.std() / len(points) ** 0.5).item()
    assert own["cloud"]["scatter"] == pytest.approx(own["formula"]["scatter"], abs=5 * error + 1e-12)
    slack = 2 * (own["formula"]["bias"] * own["formula"]["scatter"] / len(points)) ** 0.5 + own["formula"][
        "scatter"
    ] / len(points)
    assert own["cloud"]["bias"] == pytest.approx(own["formula"]["bias"], abs=5 * slack + 1e-12)


def test_moments_drawn_at_once_are_those_of_examples(javascript):
    """The mean is I, and the entries vary as those of Wishart matrices: 2/M on the diagonal, 1/M beside it."""
    for name, state in STATES.items():
        m = OnePlane(**state).prompt_length
        moments = np.array(javascript[name]["moments"])
        n = len(moments)
        for column, mean, variance in ((0, 1, 2 / m), (1, 0, 1 / m), (2, 1, 2 / m)):
            assert moments[:, column].mean() == pytest.approx(mean, abs=5 * (variance / n) ** 0.5)
            kurtosis = 3 + 12 / m
            assert moments[:, column].var() == pytest.approx(variance, rel=5 * ((kurtosis - 1) / n) ** 0.5)
        determinants = moments[:, 0] * moments[:, 2] - moments[:, 1] ** 2
        assert determinants.mean() == pytest.approx((m - 1) / m, abs=0.1) and determinants.min() > -1e-9


def test_default_state_shows_the_answer(javascript):
    own = javascript["default"]
    assert own["formula"]["bias"] > own["formula"]["scatter"] > 0.05, "both parts are seen"
    for part in ("bias", "scatter"):
        for source in ("formula", "cloud"):
            assert f"{own[source][part]:.3f}" in own["still"] and f"{own[source][part]:.3f}" in own["words"]


def test_lengths_move_one_part_each_and_a_turn_cannot_be_outgrown(javascript):
    default, long = javascript["default"]["formula"], javascript["long"]["formula"]
    assert long["bias"] < 1e-3 < default["bias"] and long["scatter"] < default["scatter"] / 10
    assert javascript["turned"]["formula"]["bias"] > javascript["turned"]["formula"]["zero"] / 2
    assert "turned by 90 degrees" in javascript["turned"]["words"]
    assert "Training has run for 1.0 of 100" in javascript["early"]["words"]
