"""The readout, the figures and the cells of the table of the chapter on momentum attention."""

import numpy as np
import pytest

from explainer.errors import ShapeError
from explainer.figures import momentum

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
    found = momentum.readout_by_lag(shifted(tokens, 3), tokens, [1, 2, 3, 4], first=4)
    assert found[2] == pytest.approx(1, abs=1e-4)
    assert all(abs(value) < 0.05 for value in (*found[:2], found[3]))


def test_a_sum_over_lags_is_read_back_by_its_squared_weights(tokens):
    outputs = shifted(tokens, 1) + 0.5 * shifted(tokens, 2)
    assert momentum.readout_by_lag(outputs, tokens, [1, 2], first=2) == pytest.approx([0.8, 0.2], abs=0.05)


def test_readout_is_least_squares_on_the_first_half(tokens):
    outputs = np.random.default_rng(3).normal(size=(B, T, 4)) + shifted(tokens, 1)[..., :4]
    X = np.concatenate([outputs, np.ones((B, T, 1))], -1)[:, 2:]
    named = np.eye(VOCABULARY)[tokens[:, 1 : T - 1]]
    fit, *_ = np.linalg.lstsq(X[:30].reshape(-1, 5), named[:30].reshape(-1, VOCABULARY), rcond=None)
    right = named[30:].reshape(-1, VOCABULARY)
    expected = 1 - ((X[30:].reshape(-1, 5) @ fit - right) ** 2).mean() / right.var(0).mean()
    assert momentum.readout_by_lag(outputs, tokens, [1], first=2) == [pytest.approx(expected, abs=1e-5)]


def test_readout_refuses_what_does_not_fit(tokens):
    with pytest.raises(ShapeError, match=r"\(60, 24\)"):
        momentum.readout_by_lag(np.zeros((B, T)), tokens, [1], first=2)
    with pytest.raises(ShapeError):
        momentum.readout_by_lag(np.zeros((B, T + 1, 3)), tokens, [1], first=2)
    for lag in (0, 3):
        with pytest.raises(ValueError, match=rf"lags = \[{lag}\]"):
            momentum.readout_by_lag(np.zeros((B, T, 3)), tokens, [lag], first=2)


def test_a_valley_has_a_panel_for_each_path_and_contours_of_equal_loss():
    paths = {"a": np.array([[-10.0, 1.0], [0.0, 0.0]]), "b": np.array([[-10.0, 1.0], [1.0, 1.0], [0.0, 0.5]])}
    figure = momentum.optimiser_paths(paths, kappa=4, levels=[2, 8])
    assert [title.text for title in figure.layout.annotations] == ["a", "b"]
    assert [trace.name for trace in figure.data] == ["a", "b"]
    assert list(figure.data[1].x) == [-10, 1, 0] and list(figure.data[1].y) == [1, 1, 0.5]
    ends = {(shape.x1, shape.y1) for shape in figure.layout.shapes}
    assert len(figure.layout.shapes) == 4 and ends == {(2, 1), (4, 2)}  # losses 2 and 8 at both ends


def test_a_quoted_table_is_printed_as_the_paper_prints_it():
    rows = momentum.quoted_rows({"plain": {"a": 0.5, "b": 0.439}, "momentum": {"a": 1, "b": 0.468}}, 1, 100)
    assert rows == [("Transformer", "50.0", "43.9"), ("Transformer, with momentum attention", "100.0", "46.8")]


def test_ratios_are_taken_pair_by_pair():
    """A pause that hits both of a pair leaves the ratio alone."""
    rows = momentum.timing_rows({512: [(0.1, 0.11), (0.2, 0.22), (0.4, 0.44)]})
    assert rows == [("512", "200 (150 to 300)", "220 (165 to 330)", "1.10 (1.10 to 1.10)")]
