"""Matched runs of regression in context: training, storing, reading back."""

from dataclasses import asdict, replace

import pytest
import torch

from explainer.data.files import published_directory
from explainer.models import in_context_gpt as gpt
from explainer.results import published
from explainer_lab import regression
from explainer_lab.regression import Regression, _RegressionSetting

TINY = gpt.InContextGPTSetting(dimension=2, n_examples=4, layers=1, width=8, heads=2, inner=8, steps=10, batch=4)
PLAIN = _RegressionSetting(**asdict(TINY))
MOMENTUM = replace(PLAIN, average="momentum", eta=0.5)


def test_a_set_starts_from_the_same_weights_and_differs_after():
    first = [gpt.InContextGPT(one, one.prepare) for one in (PLAIN, MOMENTUM)]
    assert all(torch.equal(a, b) for a, b in zip(*(model.state_dict().values() for model in first), strict=True))
    prompts = TINY.prompts(3, torch.Generator().manual_seed(0))
    plain, moved = (model(prompts.inputs, prompts.targets) for model in first)
    assert torch.equal(plain[:, 0], moved[:, 0]) and not torch.allclose(plain[:, 1:], moved[:, 1:], atol=1e-6)


def test_errors_are_those_of_the_predictions_on_the_common_prompts():
    model = gpt.InContextGPT(TINY).eval()
    tables = regression._tables(model, 20)
    errors = {k: tables["prompts"][f"squared_error_{k}"] for k in (1, 2, 3, 4)}
    assert len(tables["prompts"]) == 1 + len(errors)
    prompts = TINY.prompts(20, torch.Generator().manual_seed(gpt.TEST_SEED))
    for k, error in errors.items():
        short = prompts.shortened(k)
        expected = (gpt.query_prediction(model, short) - prompts.y_q) ** 2
        torch.testing.assert_close(error, expected, rtol=1e-5, atol=1e-6)
    expected = gpt.relative_errors(lambda p: gpt.query_prediction(model, p), prompts, (4,))[4].estimate
    relative = errors[4].sum() / tables["prompts"]["squared_target"].sum()
    assert relative == pytest.approx(expected, rel=1e-5)
    longest = regression._tables(gpt.InContextGPT(replace(TINY, n_examples=13)), 2)["prompts"]
    stored = published.read(published_directory() / "regression", "prompts")["prompts"]
    assert {"setting", *longest} == set(stored.column_names)


def test_plain_attention_comes_once_in_a_grid():
    made = Regression.grid(average=["none", "momentum"], eta=[0.5, 0.9], seed=[0, 1], dimension=3)
    assert [(one.seed, one.average, one.eta) for one in made[:3]] == [
        (0, "none", 0.0),
        (0, "momentum", 0.5),
        (0, "momentum", 0.9),
    ]
    assert len(made) == 6
