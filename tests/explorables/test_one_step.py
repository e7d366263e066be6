"""OneStep and TwoNeurons: a gradient step and linear attention, equal to each other and to what Python computes."""

import numpy as np
import torch
from javascript import close, computed, tensor

from explainer.theory import duality

RANDOM = np.random.default_rng(0)


def one_step(n: int) -> dict:
    points = RANDOM.uniform(-2, 2, (n, 2)).tolist()
    return dict(points=points, learning_rate=RANDOM.uniform(0, 1.5), query=RANDOM.uniform(-2, 2))


def two_neurons(n: int) -> dict:
    shapes = dict(inputs=(n, 2), targets=(n, 2), query=2, initial_weights=(2, 2))
    return {name: RANDOM.uniform(-2, 2, shape).tolist() for name, shape in shapes.items()} | dict(
        learning_rate=RANDOM.uniform(0, 1)
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
