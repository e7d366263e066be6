"""The explorable of momentum attention: its JavaScript computes what Python does."""

import pytest
import torch
from javascript import close, computed, tensor

from explainer.explorables import MomentumWindow
from explainer.explorables.computed import _AVERAGES
from explainer.theory import duality, momentum

ETAS = (0.0, 0.3, 0.5, 0.95)
QUERIES = ((1.2, 0.6), (-2.0, 2.0), (0.0, 0.0))
STATES = [dict(average=a, eta=eta, query=list(q)) for a in _AVERAGES for eta in ETAS for q in QUERIES]


@pytest.fixture(scope="module")
def javascript():
    found = "{ weights: m.weights(s), size: m.size(s), base: m.base(s), added: m.added(s) }"
    return computed("momentum_window", STATES, found, "{ keys: m.KEYS, values: m.VALUES, rate: m.RATE }")


def expected_weights(average: str, eta: float, n: int) -> torch.Tensor:
    """Oldest first."""
    if average == "heavy_ball":
        return duality.heavy_ball_weights(eta, n)
    return momentum.LAG_WEIGHTS[average](eta, n).flip(0)


def test_weights_are_those_of_the_package(javascript):
    past = len(javascript.keys) - 1
    for state, found in zip(STATES, javascript.results, strict=True):
        close(found["weights"], expected_weights(state["average"], state["eta"], past))


def test_gain_and_window_are_sums_of_the_weights(javascript):
    for state, found in zip(STATES, javascript.results, strict=True):
        average, eta, lags = state["average"], state["eta"], 11 if state["average"] == "heavy_ball" else 3000
        w = expected_weights(average, eta, lags)
        assert found["size"]["gain"] == pytest.approx(w.sum().item(), abs=1e-9)
        if w.any():  # at eta = 0 the window is the limit
            assert found["size"]["window"] == pytest.approx((w.sum() ** 2 / (w**2).sum()).item(), rel=1e-9)
        else:
            assert found["size"]["window"] == 1


def test_the_head_is_attention_and_what_the_average_adds(javascript):
    keys, values = tensor(javascript.keys), tensor(javascript.values)
    for state, found in zip(STATES, javascript.results, strict=True):
        query = tensor([state["query"]])
        if state["average"] == "heavy_ball":
            a = expected_weights("heavy_ball", state["eta"], len(keys) - 1)
            errors = javascript.rate * a[:, None] * values[:-1]
            close(found["added"], duality.linear_attention(errors, keys[:-1], query)[0])
            assert found["base"] == [0, 0]
        else:
            average = momentum.AVERAGES[state["average"]]
            close(found["added"], average(values, state["eta"])[-1])
            close(found["base"], duality.softmax_attention(query, keys, values)[0])


def test_only_the_dual_looks_at_the_query(javascript):
    for average in _AVERAGES:
        found = [
            tuple(each["added"])
            for state, each in zip(STATES, javascript.results, strict=True)
            if state["average"] == average and state["eta"] == 0.5
        ]
        assert len(set(found)) == (len(QUERIES) if average == "heavy_ball" else 1)


def test_the_default_state_states_the_answer(javascript):
    label = javascript.results[STATES.index(MomentumWindow().state())]["words"]
    assert "the newest 0.500" in label and "Gain 1.00, effective window 3.00" in label
    assert label.endswith("the same for every query.")
