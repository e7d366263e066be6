"""The explorable of fast weights: its JavaScript computes what Python does."""

import pytest
import torch
from javascript import computed

from explainer.theory import fast_weights

STATES = [dict(retention=a, momentum=m) for a in (0.0, 0.5, 0.8, 0.97, 1.0) for m in (0.0, 0.5, 0.8, 0.95)]


@pytest.fixture(scope="module")
def results() -> list[dict]:
    return computed("age_weights", STATES, "{ weights: m.weights(s), ...m.summary(s) }").results


def test_weights_are_those_of_the_package(results):
    for state, found in zip(STATES, results, strict=True):
        expected = fast_weights.age_weights(**state, n=60)
        torch.testing.assert_close(torch.tensor(found["weights"]).double(), expected, rtol=1e-6, atol=1e-9)
        assert found["peak"] == expected.argmax()
        assert (expected.cumsum(0) < expected.sum() / 2).sum() == found["half"] - 1


@pytest.mark.parametrize(
    ("retention", "momentum", "words"),
    [
        (0.97, 0.8, "The pair of age 9 counts most"),
        (1.0, 0.8, "The oldest pairs count most, 5.00 times"),
        (0.97, 0.0, "The newest pair counts most"),
        (1.0, 0.0, "All pairs count the same"),
    ],
)
def test_what_counts_most_is_said(results, retention, momentum, words):
    assert words in results[STATES.index(dict(retention=retention, momentum=momentum))]["words"]
