"""The small GPT in JavaScript: the same predictions as PyTorch from the weights that travel with the page."""

import base64
import json

import numpy as np
import tiny_models
import torch
from conftest import ROOT
from javascript import run_tests

from explainer.models import in_context_gpt as gpt
from explainer.models.in_context_gpt import InContextGPT, InContextGPTSetting
from explainer.theory.regression import Prompts

RANDOM = InContextGPTSetting(dimension=5, n_examples=6, layers=2, width=12, heads=3, inner=20)


def rounded(model: InContextGPT) -> InContextGPT:
    """The model with the weights that the page has."""
    model.load_state_dict({name: weights.half().float() for name, weights in model.state_dict().items()})
    return model.eval()


def case(model: InContextGPT, n_examples: int, generator: torch.Generator, n_queries: int = 4) -> dict:
    """Predictions for several queries after the same examples, one prompt for each in PyTorch."""
    setting = model.setting
    prompts = setting.prompts(n_queries, generator)
    examples = (prompts.inputs[:1, :n_examples], prompts.targets[:1, :n_examples])
    inputs, targets = (
        torch.cat([part.expand(n_queries, *part.shape[1:]), whole[:, -1:]], 1)
        for part, whole in zip(examples, (prompts.inputs, prompts.targets), strict=True)
    )
    predicted = gpt.query_prediction(model, Prompts(inputs, targets, prompts.tasks))
    pairs = zip(examples[0][0].tolist(), examples[1][0].tolist(), strict=True)
    return {
        "examples": [list(pair) for pair in pairs],
        "queries": prompts.x_q.tolist(),
        "predictions": predicted.tolist(),
    }


def every_half() -> dict:
    """All finite float16 numbers but -0, which JSON's readers disagree about."""
    bits = np.arange(2**16, dtype=np.uint16)
    halves = bits.view(np.float16)
    halves = halves[np.isfinite(halves) & (bits != 1 << 15)]
    return {"data": base64.b64encode(halves.astype("<f2").tobytes()).decode(), "values": halves.tolist()}


def parity(model: InContextGPT) -> dict:
    generator = torch.Generator().manual_seed(3)
    cases = [case(model, n, generator) for n in range(model.setting.n_examples + 1) for _ in range(3)]
    return {"page": gpt.page_weights(model), "cases": cases}


def test_javascript_agrees_with_pytorch(tmp_path):
    models = {
        "random": parity(rounded(tiny_models.with_large_weights(InContextGPT(RANDOM)))),
        "gpt_line": parity(rounded(gpt.stored("gpt_line").model)),
    }
    (tmp_path / "gpt.json").write_text(json.dumps({"models": models, "halves": every_half()}), "utf-8")
    assert run_tests(ROOT / "tests" / "explorables" / "js" / "gpt.parity.mjs", tmp_path) == 4


def test_rounding_to_float16_hardly_changes_a_prediction():
    """The page's model is the measured one, to a tenth of a per cent of a standard deviation of the targets."""
    exact, page = gpt.stored("gpt_line").model, rounded(gpt.stored("gpt_line").model)
    prompts = exact.setting.prompts(500, torch.Generator().manual_seed(0))
    change = gpt._predictions(page, prompts) - gpt._predictions(exact, prompts)
    assert change.square().mean().sqrt() < 1e-3 * prompts.targets.std()
