"""The explorable of the noise value: what its JavaScript should compute."""

import math
import re

import numpy as np
import pytest
import torch
from javascript import normals
from scipy import integrate

from bookbuilder.explorables import still
from explainer.explorables import NoiseValue
from explainer.theory import metrics

PAIRS = 64


def draw(dimension: int, seed: int) -> torch.Tensor:
    """Directions e_I and e_F of every pair, (PAIRS, 2, dimension)."""
    return torch.nn.functional.normalize(torch.from_numpy(normals(seed, PAIRS, 2, dimension)), dim=-1)


def case(ratio: float, dimension: int, seed: int) -> dict:
    """The three measures of `theory.metrics` on whole vectors, of which JavaScript keeps three inner products."""
    z = torch.zeros(PAIRS, 1, dimension, dtype=torch.float64)
    z[..., 0] = 1
    icl, ft = (z + ratio * each[:, None] for each in draw(dimension, seed).unbind(1))
    return {
        "state": {"ratio": ratio, "dimension": dimension, "seed": seed},
        "normalised": metrics.sim_aou(z, icl, ft)[:, 0].tolist(),
        "raw": metrics.sim_aou(z, icl, ft, normalize=False)[:, 0].tolist(),
        "noise_value": metrics.normalised_noise_value(z, icl, ft).mean().item(),
    }


def expectation(ratio: float, dimension: int) -> dict:
    """(E|d|)^2 / 4 where the angle between r and z has a density proportional to sin^(dimension - 2)."""

    def length(angle):
        r = np.array([math.cos(angle), math.sin(angle)]) * ratio + (1, 0)
        return np.linalg.norm(r / np.linalg.norm(r) - (1, 0))

    def integral(f):
        return integrate.quad(lambda angle: f(angle) * math.sin(angle) ** (dimension - 2), 0, math.pi, limit=200)[0]

    return {"ratio": ratio, "dimension": dimension, "value": (integral(length) / integral(lambda _: 1)) ** 2 / 4}


def noise_value_fixture() -> dict:
    """What tests/explorables/js/noise_value.test.mjs compares with; tests/explorables/test_explorables.py writes it."""
    states = ((math.sqrt(3), 512, 0), (0.1, 2, 5), (9.0, 16, 2**31 - 1), (1 / 3, 3, 7))
    settings = ((0.2, 2), (math.sqrt(3), 2), (5.0, 3), (1.0, 16), (math.sqrt(3), 512))
    return {"cases": [case(*state) for state in states], "expectations": [expectation(*s) for s in settings]}


def test_simulation_confirms_the_expectation():
    """Half way from a change that hardly matters to one that swallows z; two dimensions differ from many."""
    for ratio, dimension in ((1.0, 2), (math.sqrt(3), 512)):
        found = np.mean([np.mean(case(ratio, dimension, seed)["normalised"]) for seed in range(20)])
        assert found == pytest.approx(expectation(ratio, dimension)["value"], abs=0.06 if dimension == 2 else 0.004)


def test_still_states_the_answer():
    label = re.search(r'aria-label="(.*?)"', still(NoiseValue()))[1]
    assert "1.73 times" in label and "512 dimensions" in label
    formula, simulated, raw = (float(x.replace("−", "-")) for x in re.findall(r"−?0\.\d{3}", label))
    assert formula == pytest.approx(0.25, abs=0.002) and simulated == pytest.approx(0.25, abs=0.01)
    assert abs(raw) < 0.02
