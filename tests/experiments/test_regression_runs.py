"""Matched runs of regression in context: training, storing, reading back."""

import shutil
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from explainer.errors import ExplainerError
from explainer.experiments import regression_runs
from explainer.experiments.regression_runs import Run, StudyError
from explainer.lab.store import GRIDS, Store, published_directory
from explainer.models import in_context_gpt as gpt
from explainer.models import momentum_attention

TINY = gpt.Setting(dimension=2, n_examples=4, layers=1, width=8, heads=2, inner=8, steps=10, batch=4)
MOMENTUM = Run(average="momentum", eta=0.5, setting=TINY)
PLAIN = Run(setting=TINY)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory of results without any of the book's."""
    shutil.copy(published_directory() / GRIDS, tmp_path)
    monkeypatch.setenv("EXPLAINER_RESULTS", str(tmp_path))
    monkeypatch.setattr(regression_runs, "RUNS", (PLAIN, MOMENTUM))
    return tmp_path / "regression"


def test_a_set_starts_from_the_same_weights_and_differs_after():
    first = [gpt.InContextGPT(one.setting, one.prepare) for one in (PLAIN, MOMENTUM)]
    assert all(torch.equal(a, b) for a, b in zip(*(model.state_dict().values() for model in first), strict=True))
    prompts = TINY.prompts(3, torch.Generator().manual_seed(0))
    plain, moved = (gpt.predictions(model, prompts) for model in first)
    assert torch.equal(plain[:, 0], moved[:, 0]) and not torch.allclose(plain[:, 1:], moved[:, 1:], atol=1e-6)


def test_prepare_is_momentum_of_the_run():
    model = gpt.InContextGPT(TINY)
    prompts = TINY.prompts(3, torch.Generator().manual_seed(0))
    momentum_attention.with_momentum(model.gpt, 0.5, "previous")
    same = gpt.InContextGPT(TINY, Run(average="previous", eta=0.5, setting=TINY).prepare)
    assert torch.equal(gpt.predictions(model, prompts), gpt.predictions(same, prompts))


@pytest.mark.parametrize(("average", "eta"), [("none", 0.5), ("momentum", 0.0)])
def test_an_eta_needs_an_average_and_the_other_way_round(average, eta):
    with pytest.raises(StudyError, match=f"eta = {eta} does not go with average = '{average}'"):
        Run(average=average, eta=eta)
    assert issubclass(StudyError, ExplainerError)


def test_errors_are_those_of_the_predictions_on_the_common_prompts():
    model = gpt.InContextGPT(TINY).eval()
    measured = regression_runs.measured(model, 20)
    assert list(measured["squared_errors"]) == [1, 2, 3, 4]
    prompts = TINY.prompts(20, torch.Generator().manual_seed(gpt.TEST_SEED))
    for k, errors in measured["squared_errors"].items():
        short = prompts.shortened(k)
        expected = (gpt.query_prediction(model, short) - prompts.y_q) ** 2
        torch.testing.assert_close(errors, expected, rtol=1e-5, atol=1e-6)
    expected = gpt.relative_errors(lambda p: gpt.query_prediction(model, p), prompts, (4,))[4].estimate
    errors, targets = measured["squared_errors"][4].numpy(), measured["squared_targets"].numpy()
    assert regression_runs.relative_error(errors, targets) == pytest.approx(expected, rel=1e-5)


def test_a_run_is_trained_once_and_read_back(place, monkeypatch):
    store = Store(place)
    finished = regression_runs.run((PLAIN, MOMENTUM), store, progress=False)
    monkeypatch.setattr(gpt, "train", None)
    again = regression_runs.run((PLAIN, MOMENTUM), store, progress=False)
    assert [one.result for one in again] == [one.result for one in finished]
    (plain,), (moved,) = regression_runs.stored("none"), regression_runs.stored("momentum")
    assert plain.identity["cell"] == asdict(PLAIN) and moved.identity["cell"] == asdict(MOMENTUM)
    assert plain.result["squared_targets"] == moved.result["squared_targets"]
    ((errors, targets),) = regression_runs.groups([moved], 4)
    assert errors.shape == targets.shape == (regression_runs.N_PROMPTS,)
    assert moved.path.with_suffix(".run").is_file()


def test_what_is_not_stored_is_named_with_the_command(place):
    with pytest.raises(StudyError, match=r"not stored in .* python -m explainer\.experiments\.regression_runs"):
        regression_runs.stored("none")
    with pytest.raises(StudyError, match="no runs with average = 'nesterov'; the book has none, momentum"):
        regression_runs.stored("nesterov")


def test_identity_tells_settings_apart():
    others = [PLAIN, MOMENTUM, Run(setting=replace(TINY, seed=1)), Run(average="momentum", eta=0.9, setting=TINY)]
    assert len({one.identity.filename for one in others}) == len(others)


def test_main_trains_what_is_missing(place, capsys):
    regression_runs.main(["--results", str(place)])
    assert sorted(path.suffix for path in place.iterdir()) == [".json", ".json", ".run", ".run"]


def test_the_books_runs_are_stored_in_full():
    for average in dict.fromkeys(one.average for one in regression_runs.RUNS):
        finished = regression_runs.stored(average)
        assert [one.identity["cell"]["setting"]["seed"] for one in finished] == [0, 1, 2]
        for one in finished:
            assert np.isfinite(one.result["losses"]).all() and one.path.with_suffix(".run").is_file()
