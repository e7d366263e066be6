"""What the tests of theory share: seeded Gaussians in float64, and when two results are the same number."""

import torch


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def close(actual, expected, tolerance=1e-12):
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)
