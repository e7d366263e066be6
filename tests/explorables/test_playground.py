"""The in-context regression playground: every line is the package's, and the page can be used in every way."""

import json
import re

import numpy as np
import pytest
import torch
from javascript import OVERFLOWS, close, computed, show
from test_gpt_in_javascript import rounded

from bookbuilder.explorables import still
from explainer.errors import CheckpointError
from explainer.explorables import in_context_regression as pg
from explainer.explorables.in_context_regression import InContextRegression
from explainer.models import in_context_gpt as gpt
from explainer.theory import regression as rp
from explainer.theory.linear_transformer import prediction

MAX_BYTES_OF_DATA = 80_000
PENALTY, RATE, N = 0.09, 0.1, 12
GRID = np.arange(-30, 31) / 7.5
USUAL = slice(15, 46)  # z = -2 ... 2

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
    """The model of the page: weights rounded to float16."""
    return rounded(gpt.stored("gpt_line").model)


@pytest.fixture(scope="module")
def javascript() -> dict:
    """What the module computes for every state."""
    states = [InContextRegression(**state).state() for state in STATES.values()]
    without = [{name: value for name, value in state.items() if name != "gpt"} for state in states]
    answer = computed("playground", without, "{ lines: m.predictions(s) }", gpt=states[0]["gpt"])
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
    """`linear_preconditioner` in float64."""
    return torch.tensor([1 / (1 + 3.09 / N), 1 / (1 + 1.09 / N)], dtype=torch.float64).diag()


def distance(values, best) -> float:
    return float(np.sqrt(np.mean((np.array(values) - best)[USUAL] ** 2)))


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
    torch.testing.assert_close(preconditioner().float(), model.setting.linear_preconditioner())
    assert model.setting.n_examples == N and pytest.approx(PENALTY) == gpt.LINE_NOISE**2


def test_rate_is_stable_in_the_whole_plane():
    """The largest eigenvalue of S, with all points on the edges, is 4^2 + 1."""
    assert 2 / RATE > pg._WIDEST**2 + 1


# What the states show


def test_default_state_shows_the_answer(javascript):
    own = javascript["default"]
    lines, told = own["lines"], own["words"]
    off = {name: distance(lines[name][:-1], lines["ridge"][:-1]) for name in ("gpt", "linear")}
    assert off["gpt"] == pytest.approx(0.05, abs=0.005) and off["linear"] == pytest.approx(0.38, abs=0.005)
    assert "Ridge, the Bayes optimum: slope 1.05" in told
    assert f"nearest first: small GPT {off['gpt']:.2f} (slope 1.05" in told
    assert f"linear transformer {off['linear']:.2f} (too flat, slope 0.82" in told
    for name in ("ridge", "gpt", "linear"):
        assert f"{lines[name][-1]:.2f}".replace("-", "\u2212") in told
    assert "lie beyond" not in told and "scatter" not in told


def test_default_points_are_typical_of_the_training(model):
    drawn = model.setting.prompts(400, torch.Generator().manual_seed(1)).shortened(len(pg._POINTS))
    z = torch.linspace(-2, 2, 9, dtype=torch.float64)
    inside = [torch.stack([X[:, 0], y], 1) for X, y in zip(drawn.X, drawn.y, strict=True)]
    inside = [points for points in inside if points[:, 0].abs().max() < 2 and points[:, 1].abs().max() <= 3]

    def distances(points) -> list[float]:
        these = prompts_of(points.tolist(), z)
        others = gpt.query_prediction(model, these).double(), prediction(preconditioner(), these)
        return [(other - rp.ridge(these, PENALTY)).square().mean().sqrt().item() for other in others]

    medians = np.median([distances(points) for points in inside], axis=0)
    assert len(inside) > 100
    np.testing.assert_allclose(np.log(distances(torch.tensor(pg._POINTS)) / medians), 0, atol=0.25)


def test_line_of_the_shifts_is_that_of_ridge(javascript):
    fitted = np.array(javascript["default"]["lines"]["ridge"])[:-1]
    assert np.polyfit(GRID, fitted, 1) == pytest.approx(pg._LINE, abs=0.03)


def test_linear_transformer_fails_at_inputs_and_not_at_targets(javascript):
    default, inputs, targets = (javascript[name] for name in ("default", "inputs \u00d7 2", "targets \u00d7 3"))
    np.testing.assert_allclose(targets["lines"]["linear"], 3 * np.array(default["lines"]["linear"]), rtol=1e-12)
    slopes = [np.ptp(own["lines"]["linear"][:-1]) / 8 for own in (default, inputs)]
    assert slopes[1] / slopes[0] == pytest.approx(4, abs=0.5)
    assert "linear transformer 2.31 (too steep" in inputs["words"]


def test_gpt_fails_at_targets_more_than_at_inputs(javascript):
    off = {
        name: distance(javascript[name]["lines"]["gpt"][:-1], javascript[name]["lines"]["ridge"][:-1])
        for name in ("default", "inputs \u00d7 2", "targets \u00d7 3")
    }
    assert off["targets \u00d7 3"] > 2 * 3 * off["default"], "a linear learner would have three times the distance"
    assert off["inputs \u00d7 2"] < 3 * off["default"]
    line = javascript["targets \u00d7 3"]["lines"]
    assert line["ridge"][-2] > 13 and line["gpt"][-2] < 8, "it does not predict what it never saw"


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


def test_description_says_what_is_unusual(javascript):
    for name, count in (("inputs \u00d7 2", 3), ("targets \u00d7 3", 3)):
        assert f"{count} of 8 points lie beyond" in javascript[name]["words"]
    assert "The points scatter by 0.80" in javascript["noise \u00d7 4"]["words"]
    assert "Distance" not in javascript["no lines"]["words"]
    order = re.findall(r"[:;] ([a-z ]+?|small GPT) (\d+\.\d\d) \(", javascript["two points"]["words"])
    assert len(order) == 4 and [float(off) for _, off in order] == sorted(float(off) for _, off in order)


def test_unusual_is_rare_in_training():
    drawn = gpt.InContextGPTSetting("line", 2, N).prompts(20_000, torch.Generator().manual_seed(0))
    assert (drawn.X[..., 0].abs() > 2).float().mean().item() == pytest.approx(0.05, abs=0.005)
    assert (drawn.y.abs() > 4).float().mean().item() == pytest.approx(0.01, abs=0.005)


# Pictures and sizes


def test_the_model_that_travels_is_small():
    assert len(json.dumps(InContextRegression().state())) <= MAX_BYTES_OF_DATA


# The traits


def test_points_take_tensors_and_another_model():
    small = gpt.InContextGPT(
        gpt.InContextGPTSetting("line", dimension=2, n_examples=12, layers=1, width=4, heads=1, inner=4)
    )
    widget = InContextRegression(points=torch.eye(2), gpt=gpt.page_weights(small))
    assert widget.points == [[1, 0], [0, 1]]
    assert "small GPT" in still(widget.get_state())


def test_missing_model_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("EXPLAINER_WEIGHTS", str(tmp_path))
    with pytest.raises(CheckpointError, match=r"gpt_line\.json cannot be read.*fetch it again, or train"):
        InContextRegression()


# In a browser


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    complaints = show(page, {"playground": InContextRegression()})
    yield page
    assert complaints == []
    context.close()


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
