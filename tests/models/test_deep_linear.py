"""Linear transformers of several layers: errors without queries, training to the end, and the file of all starts."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from conftest import ROOT
from torch import Generator

from explainer.errors import CheckpointError
from explainer.models import deep_linear as deep
from explainer.models import stored_weights as files
from explainer.models.deep_linear import _Schedule, _Start
from explainer.theory.linear_transformer import LinearAttention, layerwise_prediction
from explainer.theory.regression import Prompts, query_shift

WEIGHTS = ROOT / "src" / "explainer" / "published" / "weights"
MAX_BYTES = 1_000_000
TINY = _Schedule(
    dimension=2,
    n_examples=6,
    steps=deep._LOSS_WINDOW,
    batch=8,
    samples=(64, 128),
    iterations=(4, 2),
    test_prompts=100,
)
TWO = (_Start("transformer", 2, 0), _Start("GD++", 2, 1))


def prompts(n: int = 5, schedule: _Schedule = TINY) -> Prompts:
    return schedule.draw(Generator().manual_seed(1), n, torch.float64)


def layers(family: str = "transformer", n_layers: int = 3, d: int = TINY.dimension) -> LinearAttention:
    generator = Generator().manual_seed(2)
    return deep._layers(family, deep._initial(_Start(family, n_layers, 2), d, generator), d)


def test_descent_begins_at_unequal_rates_between_a_half_and_one_and_a_transformer_at_small_numbers():
    def first(family):
        return deep._initial(_Start(family, 200, 2), 5, Generator().manual_seed(2))

    rates, dampings = first("GD++").T
    for values, low in ((rates, 0.5), (dampings, 0.0), (first("gradient descent")[:, 0], 0.5)):
        assert low <= values.min() < low + 0.02 and low + 0.48 < values.max() < low + 0.5
    assert first("transformer").std() == pytest.approx(0.1, rel=0.05)


@pytest.fixture(scope="module")
def runs() -> list[deep.FinishedTraining]:
    return [deep._train(start, TINY) for start in TWO]


# Errors


@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_prediction_is_linear_in_the_query(n_layers):
    some, stack = prompts(), layers(n_layers=n_layers)
    v = deep.learned_tasks(stack, deep.moments(some).G)
    torch.testing.assert_close((v * some.x_q).sum(1), deep._prediction(stack, some), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("n_layers", [1, 2, 4])
def test_second_moments_are_all_a_deep_transformer_sees(n_layers):
    stack = layers(n_layers=n_layers)
    torch.testing.assert_close(deep._prediction(stack, prompts()), layerwise_prediction(stack, prompts()))


def test_relative_error_is_the_mean_over_all_queries():
    """For any quadratic form the mean over x_q ~ N(0, I) is the sum over the unit vectors."""
    some, stack = prompts(), layers()
    identity = torch.eye(TINY.dimension, dtype=torch.float64)
    unit = [query_shift(some, one) for one in identity]
    total = sum(((deep._prediction(stack, of) - of.y_q) ** 2).mean() for of in unit)
    error = deep._relative_error(stack, deep.moments(some))
    torch.testing.assert_close(error, total / TINY.dimension, atol=1e-12, rtol=1e-12)


def test_sample_is_drawn_in_parts():
    schedule = replace(TINY, dimension=1, n_examples=1)
    sample = schedule.moments(20_003, 3)
    generator = Generator().manual_seed(3)
    parts = [deep.moments(schedule.draw(generator, n, torch.float64)) for n in (20_000, 3)]
    for whole, pieces in zip(sample, zip(*parts, strict=True), strict=True):
        assert torch.equal(whole, torch.cat(pieces))


# Training


def test_balance_changes_no_prediction():
    stack = layers()
    lopsided = LinearAttention(7 * stack.W_PV, stack.W_KQ / 7)
    even = deep._balanced(lopsided)
    norms = [torch.linalg.matrix_norm(matrix) for matrix in even]
    torch.testing.assert_close(*norms)
    torch.testing.assert_close(deep._prediction(even, prompts()), deep._prediction(stack, prompts()))
    nothing = LinearAttention(0 * stack.W_PV, stack.W_KQ)
    assert all(torch.equal(a, b) for a, b in zip(deep._balanced(nothing), nothing, strict=True))


@pytest.mark.parametrize("family", ["gradient descent", "GD++", "transformer"])
def test_parameters_are_read_off_the_layers(family):
    stack = layers(family)
    again = deep._layers(family, deep._parameters(family, deep._balanced(stack)), TINY.dimension)
    torch.testing.assert_close(deep._prediction(again, prompts()), deep._prediction(stack, prompts()))


@pytest.mark.slow
def test_one_trained_layer_is_one_gradient_step():
    d, N = 5, 20
    run, _ = deep._descended(_Start("transformer", 1, 0), _Schedule(steps=600))
    learned, identity = -run.W_PV[0, -1, -1] * run.W_KQ[0, :d, :d], torch.eye(d, dtype=torch.float64)
    torch.testing.assert_close(learned, identity / (1 + (d + 1) / N), atol=0.05, rtol=0)


def test_fitted_gradient_descent_finds_two_unequal_rates():
    run, losses = deep._descended(_Start("gradient descent", 2, 0), _Schedule(steps=300))
    rates = -run.W_PV[:, -1, -1].sort().values
    torch.testing.assert_close(rates, torch.tensor([1.25, 0.515]).double(), atol=0.12, rtol=0)
    assert run.W_PV.dtype == torch.float64 and losses.shape == (301,)


def fit(family: str, sample: deep.Moments) -> deep._Fit:
    return deep._Fit(lambda parameters: deep._layers(family, parameters, TINY.dimension), sample)


def test_normal_equations_are_those_of_the_error(monkeypatch):
    monkeypatch.setattr(deep, "_CHUNK", 3)
    of, parameters = fit("transformer", deep.moments(prompts())), torch.stack(layers(), 1)
    gradient, curvature = of.normal_equations(parameters)
    free = parameters.clone().requires_grad_()
    (whole,) = torch.autograd.grad(deep._relative_error(of.layers_of(free), of.sample), free)
    torch.testing.assert_close(2 * gradient, whole.flatten())
    torch.testing.assert_close(of.gradient(parameters), whole)

    def missed(parameters):
        return (deep.learned_tasks(of.layers_of(parameters), of.sample.G) - of.sample.tasks).flatten()

    J = torch.autograd.functional.jacobian(missed, parameters).flatten(1)
    torch.testing.assert_close(curvature, J.T @ J / len(J))


def test_gauss_newton_solves_what_is_linear():
    """One gradient step: the best rate is a quotient of sums."""
    sample = deep.moments(prompts(40))
    h = sample.G[:, :-1, -1]
    best = (h * sample.tasks).sum() / (h * h).sum()
    start = torch.tensor([[5.0]], dtype=torch.float64)
    rate, errors = deep._gauss_newton(fit("gradient descent", sample), start, 50, 1e-12)
    torch.testing.assert_close(rate.squeeze(), best)
    assert all(after < before for before, after in pairwise(errors))


def test_gauss_newton_ends_where_nothing_is_lower():
    solved = deep.Moments(torch.zeros(3, 3, 3, dtype=torch.float64), torch.zeros(3, 2, dtype=torch.float64))
    start = torch.ones(2, 1, dtype=torch.float64)
    rates, errors = deep._gauss_newton(fit("gradient descent", solved), start, 5, 1e-8)
    assert torch.equal(rates, start) and errors == [0.0]


def test_training_lowers_the_error_and_repeats(runs):
    for start, run in zip(TWO, runs, strict=True):
        first, second = run.record["samples"]
        assert first[-1] <= first[0] and second[-1] <= second[0] != first[-1], "of another sample, which is larger"
        assert len(run.record["adam"]) == 1 and len(run.record["gradients"]) == len(run.record["test"]) == 2
        assert run.layers.W_PV.dtype == torch.float64 and run.layers.W_PV.shape == (2, 3, 3)
        again = deep._train(start, TINY)
        torch.testing.assert_close(again.layers, run.layers, atol=1e-9, rtol=1e-9)


# Files


def same(a: deep.FinishedTraining, b: deep.FinishedTraining) -> bool:
    matrices = zip([*a.adam, *a.layers], [*b.adam, *b.layers], strict=True)
    return a.start == b.start and a.record == b.record and all(torch.equal(x, y) for x, y in matrices)


def test_files_return_the_same_runs(runs, tmp_path):
    deep._save(runs, tmp_path / "new", TINY)
    assert all(map(same, deep._load(tmp_path / "new", TINY), runs))
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["deep_linear.json", "deep_linear.safetensors"]


def test_training_goes_on_where_it_was_stopped(runs, tmp_path, monkeypatch, capsys):
    """A kill in the second start, then another start of the program: the first one is not trained again."""
    trained, by_start = [], dict(zip(TWO, runs, strict=True))

    def train(start, schedule):
        trained.append(start)
        if len(trained) == 2:
            raise KeyboardInterrupt
        return by_start[start]

    monkeypatch.setattr(deep, "_train", train)
    with pytest.raises(KeyboardInterrupt):
        deep._train_missing(tmp_path, TWO, TINY, progress=False)
    assert [run.start for run in deep._load(tmp_path)] == [TWO[0]]
    finished = deep._train_missing(tmp_path, TWO, TINY, progress=False)
    assert trained == [TWO[0], TWO[1], TWO[1]] and all(map(same, finished, runs))
    assert capsys.readouterr().err == "", "a bar that nobody asked for"
    deep._save(runs, tmp_path / "whole", TINY)
    for name in ("deep_linear.json", "deep_linear.safetensors"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_kill_between_the_two_files_loses_one_run_only(runs, tmp_path, monkeypatch):
    deep._save(runs[:1], tmp_path, TINY)
    replaced = files.replace_file

    def until_json(path, content):
        if path.suffix == ".json":
            raise KeyboardInterrupt
        replaced(path, content)

    monkeypatch.setattr(files, "replace_file", until_json)
    with pytest.raises(KeyboardInterrupt):
        deep._save(runs, tmp_path, TINY)
    (left,) = deep._load(tmp_path, TINY)
    assert same(left, runs[0])


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def edit(path, change):
    description = json.loads(path.read_text("utf-8"))
    change(description)
    path.write_text(json.dumps(description), "utf-8")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda weights, text: text.unlink(), r"json cannot be read"),
        (lambda weights, text: cut(text), r"json cannot be read"),
        (lambda weights, text: text.write_text("{}"), r"cannot be loaded.*schedule"),
        (lambda weights, text: text.write_text("[]"), r"cannot be loaded"),
        (lambda weights, text: weights.unlink(), r"cannot be loaded.*No such file"),
        (lambda weights, text: cut(weights), r"cannot be loaded"),
        (lambda weights, text: flip(weights), r"is not what was stored"),
        (lambda weights, text: edit(text, lambda d: d["runs"][0].update(test=[0.1, 0.1])), r"start 0 is not what was"),
        (lambda weights, text: edit(text, lambda d: d["runs"][0].update(seed=7)), r"cannot be loaded.*start 7"),
        (lambda weights, text: edit(text, lambda d: d["schedule"].update(steps=7)), r"is not what was stored"),
        (lambda weights, text: edit(text, lambda d: d["schedule"].update(speed=7)), r"cannot be loaded.*speed"),
        (lambda weights, text: edit(text, lambda d: d["runs"][0].pop("sha256")), r"cannot be loaded.*sha256"),
    ],
)
def test_damaged_files_are_refused(runs, tmp_path, damage, message):
    deep._save(runs, tmp_path, TINY)
    damage(tmp_path / "deep_linear.safetensors", tmp_path / "deep_linear.json")
    with pytest.raises(CheckpointError, match=f"(?s){message}"):
        deep._load(tmp_path)


def test_another_schedule_is_refused(runs, tmp_path):
    deep._save(runs, tmp_path, TINY)
    with pytest.raises(CheckpointError, match="another schedule"):
        deep._train_missing(tmp_path, TWO, replace(TINY, steps=7), progress=False)


def test_command_trains_the_book(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(deep, "_STARTS", TWO)
    monkeypatch.setattr(deep, "_train", lambda start, schedule: dict(zip(TWO, runs, strict=True))[start])
    deep._main(["--directory", str(tmp_path)])
    monkeypatch.setenv("EXPLAINER_WEIGHTS", str(tmp_path))
    deep._main([])  # there by default, where none is missing
    assert [run.start for run in deep.stored("GD++", 2)] == [TWO[1]]
    with pytest.raises(CheckpointError, match="no 'GD' with 2 layers"):
        deep.stored("GD", 2)
    monkeypatch.setattr(deep, "_STARTS", (*TWO, _Start("GD++", 2, 5)))
    with pytest.raises(CheckpointError, match=r"lacks GD\+\+, 2 layers, start 5"):
        deep.stored("GD++", 2)


# The book's runs


def test_book_has_every_start_of_this_schedule():
    assert (WEIGHTS / "deep_linear.safetensors").stat().st_size < MAX_BYTES
    stored = deep._load(WEIGHTS, _Schedule())
    assert [run.start for run in stored] == list(deep._STARTS)


def test_what_is_at_rest_has_stopped_and_holds_for_new_prompts():
    """The error has stopped falling, the gradient is small beside that after Adam, and new prompts give the error."""
    resting = [run for run in deep._load(WEIGHTS) if run.at_rest]
    assert {run.start for run in deep._load(WEIGHTS) if run.start.n_layers == 2} <= {run.start for run in resting}
    assert sum(run.start.family == "transformer" and run.start.n_layers == 3 for run in resting) >= 5
    for run in resting:
        after_adam, at_the_end = run.record["gradients"]
        assert at_the_end < after_adam / 100, run.start.name
        last = run.record["samples"][-1]
        assert last[-1] > 0.999 * last[-2], run.start.name
        assert run.record["test"][1] == pytest.approx(last[-1], rel=0.25), run.start.name


def test_stored_errors_are_measured_again():
    schedule = replace(_Schedule(), test_prompts=20_000)
    test = schedule.moments(schedule.test_prompts, schedule.test_seed)
    for run in filter(lambda run: run.at_rest, deep._load(WEIGHTS)):  # the others err so rarely that few prompts decide
        error = deep._mean_error(run.layers, test)
        assert error == pytest.approx(run.record["test"][1], rel=0.3), run.start.name


@pytest.mark.weekly
@pytest.mark.slow
@pytest.mark.parametrize("n_layers", [2, 3])
def test_most_starts_of_a_short_training_end_where_those_of_the_book_are_at_rest(n_layers):
    short = _Schedule(steps=1000, batch=128, samples=(2**10, 2**12), iterations=(40, 6), test_prompts=20_000)
    resting = [run.record["test"][1] for run in deep.stored("transformer", n_layers) if run.at_rest]
    errors = [deep._train(_Start("transformer", n_layers, seed), short).record["test"][1] for seed in range(5)]
    assert min(errors) > 0.75 * min(resting)
    assert sorted(errors)[2] < 1.5 * max(resting), errors
