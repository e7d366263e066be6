"""Explorables that compute: their numbers are Python's, and what they say of them holds."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from conftest import FRAME_MS
from javascript import close, computed, normals, tensor, uniforms
from scipy import integrate

from explainer.explorables import BracketMove, MemoryOrRidge, OneHead, OnePlane, PhasePlane, SoftmaxBend
from explainer.explorables.computed_explorables import _AVERAGES
from explainer.theory import duality, fast_weights, metrics, momentum, regression, task_diversity
from explainer.theory import linear_transformer as lt

# ThreeTokens and OneHead: attention and the update of weights by its demonstrations, as Python computes them.

RANDOM_THREE_TOKENS = np.random.default_rng(0)
KINDS = ("softmax", "linear")


def drawn(n: int) -> dict:
    shapes = dict(token_keys=(n, 2), token_values=(n, 2), query=2)
    return {name: RANDOM_THREE_TOKENS.uniform(-2, 2, shape).tolist() for name, shape in shapes.items()}


def of_zeros(n: int) -> dict:
    return dict(token_keys=[[0, 0]] * n, token_values=[[0, 0]] * n, query=[0, 0])


def test_three_tokens_are_attended_to_as_in_python():
    states = [drawn(3) | dict(attention=kind) for _ in range(50) for kind in KINDS]
    states += [of_zeros(3) | dict(attention=kind) for kind in KINDS]
    found = "{ logits: m.logits(s), weights: m.weights(s), output: m.output(s) }"
    for state, own in zip(states, computed("three_tokens", states, found).results, strict=True):
        keys, values, query = (tensor(state[name]) for name in ("token_keys", "token_values", "query"))
        if state["attention"] == "softmax":
            logits = duality.scaled_logits(query, keys)
            close(own["logits"], logits)
            close(own["weights"], logits.softmax(-1))
            close(own["output"], duality.softmax_attention(query, keys, values))
            close(sum(own["weights"]), 1, 1e-13)
            assert "together 1." in own["words"]
        else:
            close(own["weights"], keys @ query)
            close(own["output"], duality.linear_attention(values, keys, query[None])[0])
            assert "Without softmax" in own["words"]


HEADS = [drawn(5) | dict(demonstrations=i % 5) for i in range(20)]
PROMPTS = [OneHead(demonstrations=n).state() for n in range(5)]
STATES_THREE_TOKENS = [
    OneHead().state() | state | dict(attention=kind, token=token)
    for state in [*HEADS, *PROMPTS, of_zeros(5)]
    for kind in KINDS
    for token in (0, 1, 4)
]
OF_HEAD = """{
    zero_shot: m.zeroShot(s), update: m.update(s), inner: m.inner(s), soft: m.bySoftmax(s), linear: m.bySum(s),
    matrix: m.byMatrix(s), gap: m.gap(s), output: m.output(s), weights: m.weights(s), looked: m.looked(s),
    answer: m.answer(m.output(s)), turned: m.update({ ...s, query: [1, -1] }),
    turned_weights: m.weights({ ...s, query: [1, -1] }),
}"""


def test_one_head_is_split_as_by_the_package():
    """And its sum over tokens is the product with one matrix, which does not know the query, as softmax weights do."""
    for state, own in zip(STATES_THREE_TOKENS, computed("one_head", STATES_THREE_TOKENS, OF_HEAD).results, strict=True):
        n, query, softmax = state["demonstrations"], tensor(state["query"]), state["attention"] == "softmax"
        keys, values = (tensor(state[name])[[*range(n), 4]] for name in ("token_keys", "token_values"))
        split, relaxed = duality.split_attention(query, keys, values, n), duality.relaxed_attention(query, keys, values)
        close(own["zero_shot"], split.W_zsl)
        close(own["update"], split.delta_W_icl)
        close(own["inner"], keys @ query)
        close(own["soft"], split.attention)
        close(own["linear"], relaxed)
        close(own["output"], split.attention if softmax else relaxed)
        close(own["matrix"], own["linear"], 1e-13)
        assert own["turned"] == own["update"] and own["looked"] == min(state["token"], n)
        if values.any():
            close(own["gap"], duality.relative_error(relaxed, split.attention))
            assert ("% of the softmax output" if softmax else "They are equal") in own["words"]
        if softmax and values.any() and n:
            assert own["turned_weights"] != own["weights"]
        if state["token_values"] == PROMPTS[0]["token_values"]:
            assert own["answer"] == ("Japan" if n < 2 else "Tokyo")


# OneStep and TwoNeurons: a gradient step and linear attention, equal to each other and to what Python computes.

RANDOM_ONE_STEP = np.random.default_rng(0)


def one_step(n: int) -> dict:
    points = RANDOM_ONE_STEP.uniform(-2, 2, (n, 2)).tolist()
    return dict(points=points, learning_rate=RANDOM_ONE_STEP.uniform(0, 1.5), query=RANDOM_ONE_STEP.uniform(-2, 2))


def two_neurons(n: int) -> dict:
    shapes = dict(inputs=(n, 2), targets=(n, 2), query=2, initial_weights=(2, 2))
    return {name: RANDOM_ONE_STEP.uniform(-2, 2, shape).tolist() for name, shape in shapes.items()} | dict(
        learning_rate=RANDOM_ONE_STEP.uniform(0, 1)
    )


ZERO = [[0, 0], [0, 0]]
OF_ONE = [one_step(1 + i % 8) for i in range(100)]
OF_ONE += [dict(points=ZERO, learning_rate=0, query=0), dict(points=[[2, 2]], learning_rate=1.5, query=-2)]
OF_TWO = [two_neurons(1 + i % 4) for i in range(100)]
OF_TWO.append(dict(inputs=ZERO, targets=ZERO, query=[0, 0], learning_rate=0, initial_weights=ZERO))


def require_equal_sides(found: dict) -> None:
    close(found["step"], found["attention"], 1e-13)
    assert "They are equal" in found["words"]


def test_one_step_is_that_of_autograd():
    of_points = "s.points, s.learning_rate"
    found = f"""{{
        ...m.predictions(s), W_1: m.gradientStep({of_points}), values: m.errorSignals({of_points}),
        attend: m.attend({of_points}, s.query), parts: m.contributions({of_points}, s.query),
    }}"""
    for state, own in zip(OF_ONE, computed("one_step", OF_ONE, found).results, strict=True):
        n, eta, query = len(state["points"]), state["learning_rate"], state["query"]
        x, y = tensor(state["points"]).T[..., None]
        W_0 = torch.zeros(1, 1, dtype=torch.float64, requires_grad=True)
        (gradient,) = torch.autograd.grad(((x @ W_0.T - y) ** 2).sum() / (2 * n), W_0)
        values = eta / n * y
        close(own["W_1"], -eta * gradient.item())
        close(own["values"], values[:, 0])
        close(own["attend"], duality.linear_attention(values, x, tensor([[query]])).item())
        close(own["step"], -eta * gradient.item() * query)
        close(sum(own["parts"]), own["attention"], 1e-13)
        require_equal_sides(own)


def test_two_neurons_are_a_layer_that_is_trained():
    found = """{
        ...m.predictions(s), errors: m.errorSignals(s), weights: m.attentionWeights(s),
        update: m.gradientDescentUpdate(m.errorSignals(s), s.inputs),
    }"""
    for state, own in zip(OF_TWO, computed("two_neurons", OF_TWO, found).results, strict=True):
        inputs, targets, query, W_0 = (tensor(state[n]) for n in ("inputs", "targets", "query", "initial_weights"))
        rule = duality.GradientDescent(state["learning_rate"])
        layer = duality.train_linear_layer(W_0, inputs, targets, rule, duality.full_batches(len(inputs), 1))
        close(own["errors"], layer.dual.values)
        close(own["update"], duality.gradient_descent_update(layer.dual.values, inputs))
        close(own["W"], layer.W)
        close(own["weights"], inputs @ query)
        close(own["step"], layer.W @ query)
        require_equal_sides(own)


# BracketMove: both ways through the product are the package's, and each number is made of numbers that are there.


def test_brackets_move_and_the_product_stays():
    drawn = RANDOM_ONE_STEP.uniform(-2, 2, (20, 8)).round(1).tolist()
    states = [dict(e_1=a[:2], x_1=a[2:5], x=a[5:], step=1 + i % 6) for i, a in enumerate(drawn)]
    states.append(BracketMove().state())
    for state, own in zip(states, computed("bracket_move", states, "{ cells: m.cells(s) }").results, strict=True):
        e_1, x_1, x = (tensor([state[name]]) for name in ("e_1", "x_1", "x"))
        of = {name: [c["value"] for c in own["cells"] if c["name"].startswith(name)] for name in ("W", "a", "s", "b")}
        update = duality.gradient_descent_update(e_1, x_1)
        close(of["W"], update.flatten())
        close(of["a"], update @ x[0])
        close(of["s"], x_1 @ x[0])
        close(of["b"], duality.linear_attention(e_1, x_1, x)[0])
        appears = {cell["name"]: cell["step"] for cell in own["cells"]}
        assert len(appears) == len(own["cells"])
        assert all(appears[of] < cell["step"] for cell in own["cells"] for of in cell["of"])
    assert own["words"].endswith("e₁ times the weight is the same vector: (2, −1).")


# SoftmaxBend: its draws, its approximations of attention and their errors are Python's.

SEED = SoftmaxBend().seed
LAST = 2**31 - 1
STATES_SOFTMAX_BEND = [dict(spread=0.5, tokens=64, seed=SEED), dict(spread=0.125, tokens=4, seed=0)]
STATES_SOFTMAX_BEND += [dict(spread=a, tokens=n, seed=s) for n in (4, 11, 128) for a in (0.3, 4.0) for s in (0, LAST)]
SMALL = [dict(spread=spread, tokens=64, seed=SEED) for spread in (0.01, 0.02)]
SHARES = {0.0123: "1.2\u00a0%", 0.0996: "10\u00a0%", 0.5: "50\u00a0%", 12345.6: "1,234,560\u00a0%"}
TYPICAL = ("scaled", "mean", "centred", "features")
PLACES = [dict(tokens=tokens, spread=spread) for tokens in (16, 32, 64, 128) for spread in (0.25, 0.5, 1, 2)]
FOUND = """{
    ...m.example(s), outputs: m.outputs(s), errors: m.errors(s), effective: m.effectiveTokens(s),
    logits: m.example(s).queries.map((query) => m.logits(query, m.example(s).keys)),
}"""
MORE = """{
    percents: full[0].shares.map(m.percent),
    numbers: Array.from({ length: 100 }, (await import("#explorables/random.js")).uniforms(full[0].seed)),
    spreads: quickest((i) => still({ ...full[0], tokens: 128, spread: 0.2 + i / 10 })),
    tokens: quickest((i) => still({ ...full[0], tokens: 100 + i })),
    errors: full[0].places.map((place) => Array.from({ length: 60 }, (_, seed) => m.errors({ ...place, seed }))),
}"""


def test_outputs_and_errors_are_those_of_the_package():
    own = computed("softmax_bend", STATES_SOFTMAX_BEND + SMALL, FOUND, MORE, shares=list(SHARES), places=PLACES)
    for state, found in zip(STATES_SOFTMAX_BEND + SMALL, own.results, strict=True):
        spread, n = state["spread"], state["tokens"]
        drawn = tensor(normals(state["seed"], 64 + 8 + 2 * 128, 8)).split([64, 8, 128, 128])
        projections, queries, keys, values = drawn[0], drawn[1], drawn[2][:n], drawn[3][:n]
        queries = queries * math.sqrt(spread) / duality.logit_spread(queries, keys)[:, None]
        keys = math.sqrt(spread) * keys
        for name, its in dict(queries=queries, keys=keys, values=values, projections=projections).items():
            close(found[name], its)
        close(np.std(found["logits"], axis=1), [spread] * len(queries))
        exact = duality.softmax_attention(queries, keys, values)
        relaxed = duality.relaxed_attention(queries, keys, values)
        approximations = dict(
            relaxed=relaxed,
            scaled=relaxed * (relaxed * exact).sum() / (relaxed**2).sum(),
            mean=values.mean(0).expand_as(exact),
            centred=duality.centred_linear_attention(queries, keys, values),
            features=duality.random_feature_attention(queries, keys, values, projections),
        )
        close(found["outputs"]["exact"], exact)
        for name, output in approximations.items():
            close(found["outputs"][name], output)
            close(found["errors"][name], duality.relative_error(output, exact))
        weights = duality.scaled_logits(queries, keys).softmax(-1)[0]
        close(found["effective"], torch.special.entr(weights).sum().exp().item())

    small, twice = (found["errors"] for found in own.results[-2:])
    assert abs(twice["centred"] / small["centred"] - 4) < 0.2, "centred linear attention errs in second order"
    assert abs(twice["mean"] / small["mean"] - 2) < 0.1, "and the mean of values in first order"
    assert own.percents == list(SHARES.values()) and own.numbers == uniforms(SEED, 100).tolist()
    assert max(own.spreads, own.tokens) < FRAME_MS
    logs = np.log([[[errors[name] for name in TYPICAL] for errors in seeds] for seeds in own.errors])
    upper = np.sort(logs, axis=1)[:, [30]]
    assert np.abs(logs - upper).max((0, 2)).argmin() == SEED, "the default seed is nearest to the medians of 60"


# The explorable of the noise value: what its JavaScript should compute.

PAIRS = 64


def draw(dimension: int, seed: int) -> torch.Tensor:
    """Directions e_I and e_F of every pair, (PAIRS, 2, dimension)."""
    return torch.nn.functional.normalize(torch.from_numpy(normals(seed, PAIRS, 2, dimension)), dim=-1)


def measures(ratio: float, dimension: int, seed: int) -> dict:
    """Those of `theory.metrics` on whole vectors, of which JavaScript keeps three inner products."""
    z = torch.zeros(PAIRS, 1, dimension, dtype=torch.float64)
    z[..., 0] = 1
    icl, ft = (z + ratio * each[:, None] for each in draw(dimension, seed).unbind(1))
    return {
        "normalised": metrics.sim_aou(z, icl, ft)[:, 0].tolist(),
        "raw": metrics.sim_aou(z, icl, ft, normalize=False)[:, 0].tolist(),
        "noise_value": metrics.normalised_noise_value(z, icl, ft).mean().item(),
    }


def expectation(ratio: float, dimension: int) -> float:
    """(E|d|)^2 / 4 where the angle between r and z has a density proportional to sin^(dimension - 2)."""

    def length(angle):
        r = np.array([math.cos(angle), math.sin(angle)]) * ratio + (1, 0)
        return np.linalg.norm(r / np.linalg.norm(r) - (1, 0))

    def integral(f):
        return integrate.quad(lambda angle: f(angle) * math.sin(angle) ** (dimension - 2), 0, math.pi, limit=200)[0]

    return (integral(length) / integral(lambda _: 1)) ** 2 / 4


def test_javascript_has_the_measures_and_the_expectation_of_python():
    states = [(math.sqrt(3), 512, 0), (0.1, 2, 5), (9.0, 16, 2**31 - 1), (1 / 3, 3, 7)]
    settings = [(0.2, 2), (math.sqrt(3), 2), (5.0, 3), (1.0, 16), (math.sqrt(3), 512)]
    drawn = [*product((0.1, 1, 9, 10), (2, 3, 1024), (0, 2**31 - 1))]
    more = """{
        expected: full[0].settings.map(([ratio, dimension]) => m.expected(ratio, dimension)),
        many: [Math.sqrt(3), 1e9].map(m.manyDimensions), near: [m.expected(1.3, 1e5), m.manyDimensions(1.3)],
        ratios: quickest((i) => still({ ratio: 1 + i / 100, dimension: 1024, seed: 0 })),
        dimensions: quickest((i) => still({ ratio: 1, dimension: 1000 + i % 25, seed: 0 })),
    }"""
    names = ("ratio", "dimension", "seed")
    asked = [dict(zip(names, each, strict=True)) for each in (*states, *drawn)]
    own = computed("noise_value", asked, "{ simulated: m.simulated(s) }", more, settings=settings)
    for state, found in zip(states, own.results, strict=False):
        expected = measures(*state)
        for name in ("normalised", "raw"):
            close([pair[name] for pair in found["simulated"]["each"]], expected[name], 1e-8)
        close(found["simulated"]["closed"], expected["noise_value"])
    close(own.expected, [expectation(*setting) for setting in settings], 1e-4)
    close(own.many, [1 / 4, 1 / 2], 1e-8)
    close(*own.near, 1e-4)
    assert max(own.ratios, own.dimensions) < FRAME_MS


# The explorable of momentum attention: its JavaScript computes what Python does.

ETAS = (0.0, 0.3, 0.5, 0.95)
QUERIES = ((1.2, 0.6), (-2.0, 2.0), (0.0, 0.0))
STATES_MOMENTUM_WINDOW = [dict(average=a, eta=eta, query=list(q)) for a in _AVERAGES for eta in ETAS for q in QUERIES]


@pytest.fixture(scope="module")
def javascript_momentum_window():
    found = "{ weights: m.weights(s), size: m.size(s), base: m.base(s), added: m.added(s) }"
    return computed(
        "momentum_window", STATES_MOMENTUM_WINDOW, found, "{ keys: m.KEYS, values: m.VALUES, rate: m.RATE }"
    )


def expected_weights(average: str, eta: float, n: int) -> torch.Tensor:
    """Oldest first."""
    if average == "heavy_ball":
        return duality.heavy_ball_weights(eta, n)
    return momentum.AVERAGES[average](torch.eye(n + 1, 1, dtype=torch.float64), eta)[1:, 0].flip(0)


def test_momentum_window_weights_are_those_of_the_package(javascript_momentum_window):
    past = len(javascript_momentum_window.keys) - 1
    for state, found in zip(STATES_MOMENTUM_WINDOW, javascript_momentum_window.results, strict=True):
        close(found["weights"], expected_weights(state["average"], state["eta"], past))


def test_gain_and_window_are_sums_of_the_weights(javascript_momentum_window):
    for state, found in zip(STATES_MOMENTUM_WINDOW, javascript_momentum_window.results, strict=True):
        average, eta, lags = state["average"], state["eta"], 11 if state["average"] == "heavy_ball" else 3000
        w = expected_weights(average, eta, lags)
        assert found["size"]["gain"] == pytest.approx(w.sum().item(), abs=1e-9)
        if w.any():  # at eta = 0 the window is the limit
            assert found["size"]["window"] == pytest.approx((w.sum() ** 2 / (w**2).sum()).item(), rel=1e-9)
        else:
            assert found["size"]["window"] == 1


def test_the_head_is_attention_and_what_the_average_adds(javascript_momentum_window):
    keys, values = tensor(javascript_momentum_window.keys), tensor(javascript_momentum_window.values)
    for state, found in zip(STATES_MOMENTUM_WINDOW, javascript_momentum_window.results, strict=True):
        query = tensor([state["query"]])
        if state["average"] == "heavy_ball":
            a = expected_weights("heavy_ball", state["eta"], len(keys) - 1)
            errors = javascript_momentum_window.rate * a[:, None] * values[:-1]
            close(found["added"], duality.linear_attention(errors, keys[:-1], query)[0])
            assert found["base"] == [0, 0]
        else:
            average = momentum.AVERAGES[state["average"]]
            close(found["added"], average(values, state["eta"])[-1])
            close(found["base"], duality.softmax_attention(query, keys, values)[0])


# The explorable of fast weights: its JavaScript computes what Python does.

STATES_AGE_WEIGHTS = [dict(retention=a, momentum=m) for a in (0.0, 0.5, 0.8, 0.97, 1.0) for m in (0.0, 0.5, 0.8, 0.95)]


def test_age_weights_weights_are_those_of_the_package():
    own = computed("age_weights", STATES_AGE_WEIGHTS, "{ weights: m.weights(s), ...m.summary(s) }")
    for state, found in zip(STATES_AGE_WEIGHTS, own.results, strict=True):
        expected = fast_weights.age_weights(**state, n=60)
        torch.testing.assert_close(torch.tensor(found["weights"]).double(), expected, rtol=1e-6, atol=1e-9)
        assert found["peak"] == expected.argmax()
        assert (expected.cumsum(0) < expected.sum() / 2).sum() == found["half"] - 1


# The explorable of the phase plane: its JavaScript computes what Python does.

STARTS = [(1.8, 0.1), (1.6, -0.4), (0.3, 0.3), (-0.2, 1.9), (-1, -0.5), (0.5, -0.5), (0, 0), (2, 2), (0, 2)]
STATES_PHASE_PLANE = [dict(start=list(start), step=step) for start in STARTS for step in (0.05, 0.6, 1.0)]
STATES_PHASE_PLANE.insert(0, PhasePlane().state())
COVARIANCE = torch.tensor([[1.0]], dtype=torch.float64)
N = 4


@pytest.fixture(scope="module")
def javascript_phase_plane():
    found = "{ flow: m.flow(s).at(-1), steps: m.steps(s), stable: m.stable(m.flow(s).at(-1)) }"
    return computed("phase_plane", STATES_PHASE_PLANE, found, "{ gamma: m.GAMMA, duration: m.DURATION, dt: m.DT }")


def layer(start) -> lt.LinearAttention:
    u, U = torch.tensor(start, dtype=torch.float64)
    return lt.LinearAttention(torch.diag(torch.stack([0 * u, u])), torch.diag(torch.stack([U, 0 * U])))


def of(javascript_phase_plane, start: tuple, step: float) -> dict:
    return javascript_phase_plane.results[STATES_PHASE_PLANE.index(dict(start=list(start), step=step))]


def test_the_flow_is_that_of_the_package(javascript_phase_plane):
    assert javascript_phase_plane.gamma == pytest.approx(lt.gamma(COVARIANCE, N).item())
    assert javascript_phase_plane.duration == 40
    for start in STARTS:
        run = lt.train_by_gradient_flow(COVARIANCE, N, layer(start), duration=40, dt=javascript_phase_plane.dt)
        expected = [run.u[-1].item(), run.U[-1].item()]
        assert of(javascript_phase_plane, start, 0.6)["flow"] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_steps_are_those_of_the_package(javascript_phase_plane):
    for state, found in zip(STATES_PHASE_PLANE, javascript_phase_plane.results, strict=True):
        count = len(found["steps"]) - 1
        run = lt.train_by_gradient_descent(
            COVARIANCE, N, layer(state["start"]), rate=state["step"], steps=min(count, 10)
        )
        expected = torch.stack([run.u, run.U[:, 0, 0]], dim=1)
        torch.testing.assert_close(torch.tensor(found["steps"][:11]).double(), expected, rtol=1e-5, atol=1e-6)


def test_the_longest_stable_step_is_that_of_the_package(javascript_phase_plane):
    for start in ((1.6, -0.4), (0.3, 0.3), (2.0, 2.0)):
        found = of(javascript_phase_plane, start, 0.6)
        assert found["stable"] == pytest.approx(lt.stable_rate(layer(found["flow"]), COVARIANCE, N), rel=1e-4)


def test_what_happens_is_said(javascript_phase_plane):
    assert "ends at u = 1.60, U = 0.42" in of(javascript_phase_plane, (1.6, -0.4), 0.05)["words"]
    assert "runs into the saddle" in of(javascript_phase_plane, (0.5, -0.5), 0.05)["words"]
    assert "stop at the saddle" in of(javascript_phase_plane, (0.0, 0.0), 0.6)["words"]
    assert "diverge" in of(javascript_phase_plane, (2.0, 2.0), 1.0)["words"]


# The explorable of one plane: its layer, formula and cloud are those of Python.

SECOND, START, DURATION = 0.7, 0.1, 100.0
STATES_ONE_PLANE = {
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
def javascript_one_plane() -> dict:
    """What the module computes for every state."""
    names = {name: name for name in ("layer", "formula", "cloud", "gammas")} | {"moments": "whiteMoments"}
    found = "{" + ", ".join(f"{name}: m.{function}(s)" for name, function in names.items()) + "}"
    constants = "{ constants: [m.SECOND, m.START, m.DURATION] }"
    answer = computed("one_plane", [OnePlane(**state).state() for state in STATES_ONE_PLANE.values()], found, constants)
    assert answer.constants == [SECOND, START, DURATION]
    return dict(zip(STATES_ONE_PLANE, answer.results, strict=True))


@pytest.fixture(params=STATES_ONE_PLANE)
def case(request, javascript_one_plane):
    return OnePlane(**STATES_ONE_PLANE[request.param]).state(), javascript_one_plane[request.param]


def covariances(state: dict) -> tuple[torch.Tensor, torch.Tensor]:
    """Of the inputs in training and at the test."""
    e = tensor(state["train"])
    f = SECOND * tensor([-e[1], e[0]]) / e.norm()
    Lambda = torch.outer(e, e) + torch.outer(f, f)
    c, s = (of(math.radians(state["turn"])) for of in (math.cos, math.sin))
    R = tensor([[c, -s], [s, c]])
    return Lambda, R @ Lambda @ R.T


@pytest.mark.parametrize("name", ["early", "at the start", "weak", "one example"])
def test_the_layer_is_that_of_the_flow(name, javascript_one_plane):
    state, own = OnePlane(**STATES_ONE_PLANE[name]).state(), javascript_one_plane[name]
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
    error, bias, scatter = squared.std().item() / len(points) ** 0.5, own["formula"]["bias"], own["formula"]["scatter"]
    assert own["cloud"]["scatter"] == pytest.approx(scatter, abs=5 * error + 1e-12)
    slack = 2 * (bias * scatter / len(points)) ** 0.5 + scatter / len(points)
    assert own["cloud"]["bias"] == pytest.approx(bias, abs=5 * slack + 1e-12)


def test_moments_drawn_at_once_are_those_of_examples(javascript_one_plane):
    """The mean is I, and the entries vary as those of Wishart matrices: 2/M on the diagonal, 1/M beside it."""
    for name, state in STATES_ONE_PLANE.items():
        m = OnePlane(**state).prompt_length
        moments = np.array(javascript_one_plane[name]["moments"])
        n = len(moments)
        for column, mean, variance in ((0, 1, 2 / m), (1, 0, 1 / m), (2, 1, 2 / m)):
            assert moments[:, column].mean() == pytest.approx(mean, abs=5 * (variance / n) ** 0.5)
            kurtosis = 3 + 12 / m
            assert moments[:, column].var() == pytest.approx(variance, rel=5 * ((kurtosis - 1) / n) ** 0.5)
        determinants = moments[:, 0] * moments[:, 2] - moments[:, 1] ** 2
        assert determinants.mean() == pytest.approx((m - 1) / m, abs=0.1) and determinants.min() > -1e-9


# The explorable of memory and ridge: its JavaScript computes what Python does.

DEFAULT = MemoryOrRidge().state()
MOST = 10  # doublings
STATES_MEMORY_OR_RIDGE = [DEFAULT] + [
    DEFAULT | dict(doublings=k, noise=noise, query=query)
    for k in (0, 1, 5, MOST)
    for noise in (0.1, 1.0)
    for query in (-2.0, 0.7)
]
STATES_MEMORY_OR_RIDGE.append(DEFAULT | dict(points=[[0.0, 2.0]]))


@pytest.fixture(scope="module")
def javascript_memory_or_ridge():
    found = "{ ...m.predictions(s), sizes: m.answersBySize(s) }"
    return computed("memory_or_ridge", STATES_MEMORY_OR_RIDGE, found, "{ seed: m.POOL_SEED, most: m.MOST_DOUBLINGS }")


def prompt(state: dict) -> regression.Prompts:
    """The points and the query with inputs (x, 1); the query's own target is not read."""
    rows = torch.tensor([*state["points"], [state["query"], 0.0]], dtype=torch.float64)
    inputs = torch.stack([rows[:, 0], torch.ones(len(rows)).double()], -1)
    return regression.Prompts(inputs[None], rows[None, :, 1], torch.zeros(1, 2).double())


def test_answers_are_those_of_the_package(javascript_memory_or_ridge):
    assert javascript_memory_or_ridge.most == MOST
    lines = torch.tensor(normals(javascript_memory_or_ridge.seed, 2**MOST, 2))
    for state, found in zip(STATES_MEMORY_OR_RIDGE, javascript_memory_or_ridge.results, strict=True):
        one, noise = prompt(state), state["noise"]
        assert found["ridge"] == pytest.approx(regression.ridge(one, noise**2).item(), rel=1e-9, abs=1e-12)
        sizes = [task_diversity.discrete_mmse(one, lines[: 2**k], noise).item() for k in range(MOST + 1)]
        assert found["sizes"] == pytest.approx(sizes, rel=1e-9, abs=1e-12)
        assert found["memory"] == pytest.approx(sizes[state["doublings"]], rel=1e-9, abs=1e-12)
