"""explainer.theory.projections: components, directions to compare with, and the nearest combination."""

import pytest
import torch
from draws import randn
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator
from torch.nn.functional import cosine_similarity

from explainer.theory import projections

SEEDS = st.integers(0, 1000)


@given(SEEDS)
def test_a_component_is_along_the_direction_and_what_is_left_at_a_right_angle(seed):
    change, direction = randn(4, 3, 7, seed=seed), randn(4, 3, 7, seed=seed + 1)
    part = projections.component(change, direction)
    torch.testing.assert_close(cosine_similarity(part, direction, dim=-1).abs(), torch.ones(4, 3, dtype=torch.float64))
    assert ((change - part) * direction).sum(-1).abs().max() < 1e-12
    torch.testing.assert_close(projections.component(change, -3 * direction), part)


@given(SEEDS)
def test_random_vectors_have_the_norms_of_the_given(seed):
    vectors = randn(5, 2, 9, seed=seed)
    drawn = projections.random_like(vectors, Generator().manual_seed(seed + 7))
    torch.testing.assert_close(drawn.norm(dim=-1), vectors.norm(dim=-1))
    assert torch.equal(drawn, projections.random_like(vectors, Generator().manual_seed(seed + 7)))
    assert cosine_similarity(drawn, vectors, dim=-1).abs().max() < 0.999


@given(SEEDS)
def test_a_direction_as_near_has_the_same_cosine_and_so_a_component_of_the_same_size(seed):
    change, direction = randn(4, 30, seed=seed), randn(4, 30, seed=seed + 1) + 0.5 * randn(4, 30, seed=seed)
    near = projections.matched_random_direction(change, direction, Generator().manual_seed(seed + 7))
    torch.testing.assert_close(near.norm(dim=-1), torch.ones(4, dtype=torch.float64))
    cosines = (cosine_similarity(x, change, dim=-1) for x in (near, direction))
    torch.testing.assert_close(*cosines)
    sizes = (projections.component(change, x).norm(dim=-1) for x in (near, direction))
    torch.testing.assert_close(*sizes)


@given(SEEDS)
def test_rates_of_a_combination_are_found_again(seed):
    effects, rates = randn(5, 3, 2, 8, seed=seed), randn(2, 3, seed=seed + 1)
    change = projections._combine(effects, rates)
    expected = torch.stack([sum(rates[layer, i] * effects[:, i, layer] for i in range(3)) for layer in range(2)], 1)
    torch.testing.assert_close(change, expected)
    torch.testing.assert_close(projections.least_squares_rates(effects, change), rates, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(
        projections.sums_of_squares(change, expected).explained, torch.ones(2, dtype=torch.float64)
    )


def test_rates_do_not_depend_on_the_size_of_the_effects():
    """Effects of steps at a small rate are small, or large when they are taken for a rate of 1."""
    effects, change = randn(6, 3, 8), randn(6, 8, seed=1)
    sizes = torch.tensor([1e-9, 1.0, 1e9], dtype=torch.float64)
    scaled = projections.least_squares_rates(effects * sizes[:, None], change) * sizes
    rates = projections.least_squares_rates(effects, change)
    torch.testing.assert_close(scaled, rates, rtol=1e-6, atol=1e-9)
    left = change - projections._combine(effects, rates)
    assert (effects * left[:, None]).sum((0, 2)).abs().max() < 1e-10, "the nearest leaves nothing along the effects"


def test_equal_effects_share_the_rate_and_nothing_explains_nothing():
    effect = randn(6, 1, 8)
    rates = projections.least_squares_rates(effect.repeat(1, 2, 1), 3 * effect[:, 0])
    torch.testing.assert_close(rates, torch.tensor([1.5, 1.5], dtype=torch.float64))
    assert not projections.least_squares_rates(torch.zeros(6, 2, 8), effect[:, 0]).any()
    squares = projections.sums_of_squares(effect, torch.zeros_like(effect))
    assert squares.explained == pytest.approx(0)
