"""The explorable of the noise value: what its JavaScript should compute."""

import math
import re
from itertools import product

import numpy as np
import pytest
import torch
from conftest import FRAME_MS
from javascript import close, computed, normals
from scipy import integrate

from bookbuilder.explorables import still
from explainer.explorables import NoiseValue
from explainer.theory import metrics

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
    default = own.results[0]["simulated"]
    assert abs(default["closed"] - 0.25) < 0.002 and abs(default["normalised"] - 0.25) < 0.01
    assert abs(default["raw"]) < 0.02


def test_simulation_confirms_the_expectation():
    """Half way from a change that hardly matters to one that swallows z; two dimensions differ from many."""
    for ratio, dimension in ((1.0, 2), (math.sqrt(3), 512)):
        found = np.mean([np.mean(measures(ratio, dimension, seed)["normalised"]) for seed in range(20)])
        assert found == pytest.approx(expectation(ratio, dimension), abs=0.06 if dimension == 2 else 0.004)


def test_still_states_the_answer():
    label = re.search(r'aria-label="(.*?)"', still(NoiseValue().get_state()))[1]
    assert "1.73 times" in label and "512 dimensions" in label
    formula, simulated, raw = (float(x.replace("−", "-")) for x in re.findall(r"−?0\.\d{3}", label))
    assert formula == pytest.approx(0.25, abs=0.002) and simulated == pytest.approx(0.25, abs=0.01)
    assert abs(raw) < 0.02
