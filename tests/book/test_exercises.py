"""Exercises: right answers and folded solutions pass, a plausible mistake gets its hint, others what fails first."""

import math
import re

import numpy as np
import pytest
import torch
from conftest import ROOT

from bookbuilder import pages
from explainer import exercises
from explainer.exercises.checks import Exercise
from explainer.theory import (
    duality,
    linear_transformer,
)

EXERCISES = {name: each for name, each in vars(exercises).items() if isinstance(each, Exercise)}
MISTAKES = [(name, hint, mistake) for name, it in EXERCISES.items() for hint, mistake in it.mistakes.items()]


def refusal(name, answer):
    """What a wrong answer is told."""
    with pytest.raises(AssertionError) as told:
        getattr(exercises, name)(answer)
    return str(told.value)


@pytest.mark.parametrize("name", EXERCISES)
def test_the_right_answer_passes_and_a_stub_gets_the_hint(name, capsys):
    getattr(exercises, name)(EXERCISES[name].right)
    assert capsys.readouterr().out.startswith("Passed: ")
    getattr(exercises, name)(lambda *inputs: None)
    assert capsys.readouterr().out.endswith(f"Hint: {EXERCISES[name].hint}\n")


@pytest.mark.parametrize(("name", "hint", "mistake"), MISTAKES)
def test_a_mistake_gets_its_own_hint(name, hint, mistake):
    assert refusal(name, mistake) == f"Not yet: {hint}"


# The right answers of the table in another way: slower, or from what they claim to describe.


def ten_gradient_steps(inputs, targets):
    W_0, rate = torch.zeros(targets.shape[1], inputs.shape[1]).double(), duality.GradientDescent(0.05)
    return duality.train_linear_layer(W_0, inputs, targets, rate, duality.full_batches(len(inputs), 10)).W


@torch.enable_grad()
def signals_by_autograd(outputs, answers, lr):
    o = outputs.clone().requires_grad_()
    return -lr * torch.autograd.grad(torch.nn.functional.cross_entropy(o, answers, reduction="sum"), o)[0]


def gate_of_copies(g, c):
    """Softmax attention to one demonstration c times and one own token, with logits that give the gate g to one."""
    keys = torch.tensor([[math.log(g / (1 - g))]] * c + [[0.0]]).double()
    return duality.split_attention(torch.ones(1).double(), keys, keys, c).gate


def end_of_the_flow(covariance, n, k):
    start, d = linear_transformer.initialisation(covariance, n, sigma=0.1), len(covariance)
    square = max(0.1, 0.3 - k)
    U = torch.nn.functional.pad((square / d) ** 0.5 * torch.eye(d).double(), (0, 1, 0, 1))
    start = linear_transformer.LinearAttention((k + square) ** 0.5 / 0.1 * start.W_PV, U)
    run = linear_transformer.train_by_gradient_flow(covariance, n, start, duration=120, dt=0.05, record_every=100)
    return run.u[-1]


def scaled_inputs(c):
    """The layer's prediction over the right answer, on a prompt whose inputs have exactly the covariance 1."""
    X = torch.tensor([[c], [-c]]).double()
    w, x_q = 0.7, c * 1.3
    return x_q * (X.T @ (X * w) / 2).item() / (w * x_q)


def risk_ratio(d, n):
    """1 / M falls, and this M times what falls is what stays."""
    A = torch.linalg.inv(linear_transformer.gamma(torch.eye(d).double(), n))
    floor, first = (linear_transformer.population_risk(A, torch.eye(d).double(), M) for M in (float("inf"), 1))
    return (first - floor) / floor


@torch.enable_grad()
def values_by_autograd(W_0, eta, n):
    """A column for each entry of a token: what it adds to the error signal of the loss 1/(2n) ||W x - y||^2."""
    m, d = W_0.shape
    x, y = torch.eye(d + m).double().split([d, m])
    o = (W_0 @ x).requires_grad_()
    return -eta * torch.autograd.grad((o - y).square().sum() / (2 * n), o)[0]


def turned(p, m):
    return next(N for N in range(1, 10_000) if 1 - 2 * p * N / (N + m) < -1e-12)


ANOTHER = {
    "permutation_invariant": lambda x, y: (ten_gradient_steps(x, y), x.zero_())[0],  # copies of the inputs are given
    "cross_entropy_errors": signals_by_autograd,
    "constant_values": lambda q, K, v: tuple(
        attend(q, K, v.repeat(len(K), 1)) for attend in (duality.softmax_attention, duality.relaxed_attention)
    ),
    "copied_gate": gate_of_copies,
    "landing_point": end_of_the_flow,
    "scaled_prediction": scaled_inputs,
    "paying_length": risk_ratio,
    "value_matrix": values_by_autograd,
    "plain_rates": lambda eta, mu: np.roots([1, -(2 + mu) * eta, eta**2]).real,
    "fair_rates": lambda n: [1 / (t + 1) for t in range(1, n + 1)],
    "examples_to_override": turned,
}


@pytest.mark.parametrize("name", ANOTHER)
def test_another_right_answer_passes(name, capsys):
    with torch.no_grad():
        getattr(exercises, name)(ANOTHER[name])
    assert capsys.readouterr().out.startswith("Passed: ")


def test_noise_leaves_the_risk_without_a_slope_at_the_inverse_of_noisy_gamma():
    for _, (C, n, noise) in EXERCISES["noisy_gamma"].inputs():
        A = torch.linalg.inv(EXERCISES["noisy_gamma"].right(C, n, noise)).requires_grad_()
        (linear_transformer.population_risk(A, C, n) + noise**2 / n * (A @ C @ A.T @ C).trace()).backward()
        assert A.grad.abs().max() < 1e-8


# Wrong answers that are no mistake of the table.

OTHERS = [
    ("softmax_attention", lambda q, K, V: -duality.softmax_attention(q, K, V), "yours is -1 times the right answer"),
    ("softmax_attention", lambda q, K, V: V @ (K @ q), "raised RuntimeError for (queries = ["),
    ("softmax_attention", lambda q, K, V: duality.softmax_attention(q, K, V).float(), "keep the dtype"),
    ("softmax", lambda scores: scores.exp() / scores.exp().sum(), "too large for a float"),
    ("permutation_invariant", EXERCISES["order_dependent"].right, "the order [4, 3, 2, 1, 0] of the rows changes"),
    ("permutation_invariant", lambda x, y: torch.randn(2, 3).double(), "two calls"),
    ("order_dependent", ten_gradient_steps, "no order of the rows"),
    ("constant_values", lambda q, K, v: v, "should return 2 results"),
    ("constant_values", lambda q, K, v: (v, 2 * v), "wrong is result 2 of 2"),
    ("copied_gate", lambda g, c: "three", "returned str, not numbers"),
]


@pytest.mark.parametrize(("name", "wrong", "told"), OTHERS)
def test_any_other_wrong_answer_is_told_what_fails_first(name, wrong, told):
    assert refusal(name, wrong).startswith("Not yet: ")
    assert told in refusal(name, wrong)


# Folded solutions: each that has a check passes it, as a reader's own answer would.

DETAILS = re.compile(r"<details><summary>Solution</summary>(.*?)</details>", re.DOTALL)
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
CALL = re.compile(r"`exercises\.(\w+)\((\w+)\)`")
STUB = re.compile(r"^exercises\.\w+\(\w+\)$", re.MULTILINE)


def solved_exercises():
    """(check, name of the reader's function, solution) for every exercise that names a check."""
    for path in sorted((ROOT / "book").rglob("*.ipynb")):
        text = ""
        for cell in pages.cells(path):
            source = "".join(cell["source"])
            calls = "".join(f"`{call}`" for call in STUB.findall(source))  # of code only the checks that it calls
            text += (source if cell["cell_type"] == "markdown" else calls) + "\n\n"
        for exercise in re.split(r"> \*\*Exercise \d+[^*]*\*\*", text)[1:]:
            solution = DETAILS.search(exercise)
            assert solution, f"{path.name}: an exercise has no folded solution"
            code = "\n".join(CODE.findall(solution[1]))
            for check, name in CALL.findall(exercise[: solution.start()]):
                yield pytest.param(check, name, code, id=f"{path.stem}-{check}")


@pytest.mark.parametrize(("check", "name", "code"), list(solved_exercises()))
def test_solution_passes_its_check(check, name, code, capsys):
    space = {"np": np, "torch": torch}
    exec(code, space)  # our own committed text
    getattr(exercises, check)(space[name])
    assert "Passed" in capsys.readouterr().out
