"""The explorable of the noise value: what its JavaScript should compute, and that its traits refuse."""

import math
import re

import numpy as np
import pytest
import torch
import traitlets
from scipy import integrate

from bookbuilder.explorables import still
from explainer.explorables import NoiseValue
from explainer.theory import metrics

PAIRS = 64


def uniforms(seed: int, n: int) -> np.ndarray:
    """The first n numbers of mulberry32."""

    def product(a, b):
        return (a.astype(np.uint64) * b.astype(np.uint64) & 0xFFFFFFFF).astype(np.uint32)

    state = ((seed + np.arange(1, n + 1, dtype=np.uint64) * 0x6D2B79F5) & 0xFFFFFFFF).astype(np.uint32)
    bits = product(state ^ state >> 15, state | np.uint32(1))
    bits ^= bits + product(bits ^ bits >> 7, bits | np.uint32(61))
    return (bits ^ bits >> 14) / 2**32


def draw(dimension: int, seed: int) -> torch.Tensor:
    """Directions e_I and e_F of every pair, (PAIRS, 2, dimension)."""
    u = uniforms(seed, 4 * PAIRS * dimension).reshape(-1, 2)
    normal = np.sqrt(-2 * np.log(1 - u[:, 0])) * np.cos(2 * np.pi * u[:, 1])
    return torch.nn.functional.normalize(torch.from_numpy(normal.reshape(PAIRS, 2, dimension)), dim=-1)


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


def test_generator_is_the_one_of_the_other_explorables():
    from test_explorables import uniforms as reference  # noqa: PLC0415 - that module imports the fixture of this one

    stream = reference(2**31 - 1)
    np.testing.assert_array_equal(uniforms(2**31 - 1, 50), [next(stream) for _ in range(50)])


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


@pytest.mark.parametrize("state", [{"ratio": 0.05}, {"ratio": math.nan}, {"dimension": 1}, {"dimension": 2048}])
def test_traits_refuse(state):
    with pytest.raises(traitlets.TraitError):
        NoiseValue(**state)
