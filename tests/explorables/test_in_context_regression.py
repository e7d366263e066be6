"""The in-context regression playground: every line is the package's, and the page can be used in every way."""

import json

import numpy as np
import pytest
import tiny_models
import torch
from conftest import ROOT
from javascript import OVERFLOWS, close, computed, opened, run_tests

from explainer.explorables import InContextRegression
from explainer.explorables import computed_explorables as pg
from explainer.models import in_context_gpt as gpt
from explainer.theory import regression as rp
from explainer.theory.linear_transformer import prediction

PENALTY, RATE, N = 0.09, 0.1, 12
GRID = np.arange(-30, 31) / 7.5

RANDOM = np.random.default_rng(0)
STATES = {
    "default": {},
    **pg._shifted_points(),
    "two points": {"points": [[-1, 0.5], [0.3, -2]], "learners": ["descent", "ols", "linear", "gpt"], "steps": 1},
    "twelve": {"points": RANDOM.uniform((-4, -12), (4, 12), (12, 2)), "steps": 100, "query": 4, "reach": 12},
    "two alike": {"points": [[1.7, 1], [1.7, 1]]},
    "equal z": {"points": [[1.7, y] for y in (-1, 0.2, 0.4, 3, 12)], "learners": ["ols", "ridge"]},
    "all at zero": {"points": [[0, 0]] * 12, "learners": [*pg._LEARNERS[:4]]},
    "corners": {"points": [[-4, -12], [4, 12], [-4, 12], [4, -12]], "query": -4},
    "no lines": {"points": RANDOM.normal(size=(5, 2)).clip(-4, 4), "learners": []},
    "nearly equal z": {"points": [[1.7, 1], [1.71, -1], [1.7, 0]]},
}


@pytest.fixture(scope="module")
def model() -> gpt.InContextGPT:
    return gpt.stored("gpt_line").model


@pytest.fixture(scope="module")
def javascript() -> dict:
    """What the module computes for every state."""
    states = [InContextRegression(**state).state() for state in STATES.values()]
    without = [{name: value for name, value in state.items() if name != "gpt"} for state in states]
    answer = computed("in_context_regression", without, "{ lines: m.predictions(s) }", gpt=states[0]["gpt"])
    return dict(zip(STATES, answer.results, strict=True))


@pytest.fixture(params=STATES)
def case(request, javascript):
    return InContextRegression(**STATES[request.param]).state(), javascript[request.param]


def prompts_of(points, queries) -> rp.Prompts:
    """One prompt for each query, all with the same points, in float64."""
    z, y = torch.tensor(points, dtype=torch.float64).T
    z_q = torch.as_tensor(queries, dtype=torch.float64)
    z = torch.cat([z.expand(len(z_q), -1), z_q[:, None]], 1)
    y = torch.cat([y.expand(len(z_q), -1), torch.zeros(len(z_q), 1)], 1)
    return rp.Prompts(torch.stack([z, torch.ones_like(z)], -1), y, torch.zeros(len(z_q), 2, dtype=torch.float64))


def prompts(state: dict) -> rp.Prompts:
    return prompts_of(state["points"], [*GRID, state["query"]])


def preconditioner() -> torch.Tensor:
    """(E h h^T)^-1 of lines, the fourth moment of N(0, 1) being 3: ((1 - 1/N) I + (diag(4, 2) + noise^2 I) / N)^-1."""
    return torch.tensor([1 / (1 + 3.09 / N), 1 / (1 + 1.09 / N)], dtype=torch.float64).diag()


# The numbers


def test_learners_agree_with_the_package(case):
    state, own = case
    expected = {
        "ridge": rp.ridge(prompts(state), PENALTY),
        "ols": rp.ordinary_least_squares(prompts(state)),
        "descent": rp.gradient_steps(prompts(state), [RATE] * state["steps"]),
        "linear": prediction(preconditioner(), prompts(state)),
    }
    for name, predicted in expected.items():
        close(own["lines"][name], predicted)


def test_gpt_agrees_with_pytorch(case, model):
    state, own = case
    close(own["lines"]["gpt"], gpt.query_prediction(model, prompts(state)), 1e-4)


def test_linear_transformer_is_the_best_on_the_training_of_the_gpt(model):
    """yhat = <A, x_q h^T> is linear in A: regression on many prompts finds the same A."""
    drawn = model.setting.prompts(200_000, torch.Generator().manual_seed(0))
    h = (drawn.y[..., None] * drawn.X).mean(1).double()
    features = (drawn.x_q.double()[:, :, None] * h[:, None]).flatten(1)
    fit = torch.linalg.lstsq(features, drawn.y_q.double()[:, None]).solution.reshape(2, 2)
    torch.testing.assert_close(preconditioner(), fit, atol=0.02, rtol=0)
    assert model.setting.n_examples == N and pytest.approx(PENALTY) == gpt.LINE_NOISE**2


def test_rate_is_stable_in_the_whole_plane():
    """The largest eigenvalue of S, with all points on the edges, is 4^2 + 1."""
    assert 2 / RATE > pg._WIDEST**2 + 1


# The small GPT in JavaScript

SMALL = gpt.InContextGPTSetting(dimension=5, n_examples=6, layers=2, width=12, heads=3, inner=20)


def rounded(model: gpt.InContextGPT) -> gpt.InContextGPT:
    """The model with weights that a page can hold."""
    grid, state = gpt.PAGE_GRID, model.state_dict()
    model.load_state_dict({name: (grid * weights).round() / grid for name, weights in state.items()})
    return model.eval()


def parity_case(model: gpt.InContextGPT, n_examples: int, generator: torch.Generator, n_queries: int = 4) -> dict:
    """Predictions for several queries after the same examples, one prompt for each in PyTorch."""
    setting = model.setting
    prompts = setting.prompts(n_queries, generator)
    examples = (prompts.inputs[:1, :n_examples], prompts.targets[:1, :n_examples])
    inputs, targets = (
        torch.cat([part.expand(n_queries, *part.shape[1:]), whole[:, -1:]], 1)
        for part, whole in zip(examples, (prompts.inputs, prompts.targets), strict=True)
    )
    predicted = gpt.query_prediction(model, rp.Prompts(inputs, targets, prompts.tasks))
    pairs = zip(examples[0][0].tolist(), examples[1][0].tolist(), strict=True)
    return {
        "examples": [list(pair) for pair in pairs],
        "queries": prompts.x_q.tolist(),
        "predictions": predicted.tolist(),
    }


def parity(model: gpt.InContextGPT) -> dict:
    generator = torch.Generator().manual_seed(3)
    cases = [parity_case(model, n, generator) for n in range(model.setting.n_examples + 1) for _ in range(3)]
    return {"page": gpt.page_weights(model), "cases": cases}


def test_javascript_agrees_with_pytorch(tmp_path):
    models = {
        "random": parity(rounded(tiny_models.with_large_weights(gpt.InContextGPT(SMALL)))),
        "gpt_line": parity(gpt.stored("gpt_line").model),
    }
    (tmp_path / "gpt.json").write_text(json.dumps({"models": models}), "utf-8")
    assert run_tests(ROOT / "tests" / "explorables" / "js" / "gpt.parity.mjs", tmp_path) == 3


def test_the_page_has_the_stored_model_and_nothing_less(model):
    for weights in model.parameters():
        assert torch.equal(weights * gpt.PAGE_GRID, (weights * gpt.PAGE_GRID).round())


# What the states show


def test_query_that_the_points_say_nothing_about(javascript):
    """Least squares, ridge and gradient steps answer 0 at the query; the layer's A = diag(0.80, 0.92) is no multiple
    of the identity, so it answers (0.92 - 0.80) of the mean of y."""
    state, own = pg._shifted_points()["orthogonal query"], javascript["orthogonal query"]
    assert state["query"] == -1 and {z for z, _ in state["points"]} == {1}
    assert all(z * state["query"] + 1 == 0 for z, _ in state["points"]), "(z, 1) is orthogonal to (query, 1)"
    at_query = {name: values[-1] for name, values in own["lines"].items()}
    for name in ("ridge", "ols", "descent"):
        assert abs(at_query[name]) < 1e-12
    A, y = preconditioner().diag(), np.mean([y for _, y in state["points"]])
    assert at_query["linear"] == pytest.approx((A[1] - A[0]).item() * y) and at_query["linear"] > 0.1
    assert abs(at_query["gpt"]) > 0.05
    assert "they say nothing about it" in own["words"] and "nothing about it" not in javascript["default"]["words"]
    assert not any("nothing about it" in javascript[name]["words"] for name in ("equal z", "a curve", "two alike"))


# In a browser


@pytest.fixture
def page(browser):
    with opened(browser, {"playground": InContextRegression()}) as page:
        yield page


def trait(page, name):
    return page.evaluate("(name) => stages.playground.model.get(name)", name)


@pytest.mark.browser
def test_points_are_added_removed_moved_and_shifted(page):
    view = page.locator("#playground")
    handles, button = view.locator(".explorable-handle"), lambda name: view.get_by_role("button", name=name)
    for _ in range(5):
        button("add at query").click()
    assert trait(page, "points")[8:] == [[-1.5, 0]] * 4 and handles.count() == 12, "there are never more than twelve"
    handles.nth(11).focus()
    page.keyboard.press("Shift+ArrowUp")
    assert trait(page, "points")[11] == [-1.5, 0.25]
    for _ in range(11):
        button("remove last").click()
    assert trait(page, "points") == [list(point) for point in pg._POINTS[:2]] and handles.count() == 2
    for name, shifted in pg._shifted_points().items():
        button(name).click()
        assert {key: trait(page, key) for key in shifted} == shifted
        assert page.evaluate(OVERFLOWS) == []
    box = handles.nth(3).bounding_box()
    page.mouse.move(box["x"] + 15, box["y"] + 15)
    page.mouse.down()
    page.mouse.move(box["x"] + 55, box["y"] - 25, steps=3)
    page.mouse.up()
    moved = np.subtract(trait(page, "points")[3], pg._shifted_points()["orthogonal query"]["points"][3])
    assert (moved > 0.5).all()
    button("Reset").click()
    assert trait(page, "points") == [list(point) for point in pg._POINTS]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.browser
def test_at_most_four_lines_are_chosen(page):
    box = page.locator("#playground").get_by_role
    box("checkbox", name="least squares").focus()
    page.keyboard.press("Space")
    assert trait(page, "learners") == ["ridge", "gpt", "linear", "ols"]
    assert box("checkbox", name="gradient steps").is_disabled()
    box("checkbox", name="small GPT").uncheck()
    box("checkbox", name="gradient steps").check()
    assert trait(page, "learners") == ["ridge", "linear", "ols", "descent"]
    page.wait_for_timeout(400)  # the spoken result waits for a pause
    told = page.locator("#playground [role=status]").inner_text()
    assert "gradient steps" in told and "small GPT" not in told
    box("button", name="Reset").click()
    assert box("checkbox", name="small GPT").is_checked() and not box("checkbox", name="least squares").is_checked()
