"""The readout, the figures and the cells of tables of the pages on optimisers and momentum attention."""

import numpy as np
import pytest

from explainer.figures import momentum_figures

B, T, VOCABULARY = 60, 24, 5


@pytest.fixture
def tokens():
    return np.random.default_rng(0).integers(0, VOCABULARY, (B, T))


def shifted(tokens, lag):
    """The token `lag` back in a random code of width 7, zeros before the first."""
    code = np.random.default_rng(1).normal(size=(VOCABULARY, 7))
    out = np.zeros((*tokens.shape, 7))
    out[:, lag:] = code[tokens[:, : tokens.shape[1] - lag]]
    return out


def test_what_the_output_holds_is_read_back_and_nothing_else(tokens):
    found = momentum_figures.readout_by_lag(shifted(tokens, 3), tokens, [1, 2, 3, 4], first=4)
    assert found[2] == pytest.approx(1, abs=1e-4)
    assert all(abs(value) < 0.05 for value in (*found[:2], found[3]))


def test_readout_is_least_squares_on_the_first_half(tokens):
    outputs = np.random.default_rng(3).normal(size=(B, T, 4)) + shifted(tokens, 1)[..., :4]
    X = np.concatenate([outputs, np.ones((B, T, 1))], -1)[:, 2:]
    named = np.eye(VOCABULARY)[tokens[:, 1 : T - 1]]
    fit, *_ = np.linalg.lstsq(X[:30].reshape(-1, 5), named[:30].reshape(-1, VOCABULARY), rcond=None)
    right = named[30:].reshape(-1, VOCABULARY)
    expected = 1 - ((X[30:].reshape(-1, 5) @ fit - right) ** 2).mean() / right.var(0).mean()
    assert momentum_figures.readout_by_lag(outputs, tokens, [1], first=2) == [pytest.approx(expected, abs=1e-5)]


def test_a_quoted_table_is_printed_as_the_paper_prints_it():
    rows = momentum_figures.quoted_rows({"plain": {"a": 0.5, "b": 0.439}, "momentum": {"a": 1, "b": 0.468}}, 1, 100)
    assert rows == [("Transformer", "50.0", "43.9"), ("Transformer, with momentum attention", "100.0", "46.8")]
