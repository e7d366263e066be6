"""Checks for scores of classification."""

from collections.abc import Callable

import numpy as np

from explainer.exercises import checks


@checks.check("for each candidate, subtract its mean log-probability over the queries.")
def calibration(reader_fn: Callable[[np.ndarray], np.ndarray]) -> None:
    """Check a function log_probs (n, m) -> scores (n, m) that removes label bias.

    Properties: afterwards no candidate is preferred on average; the differences between queries are as before; a bias
    added to every query changes nothing.
    Raises: AssertionError with a hint.
    """
    log_probs = np.random.default_rng(0).normal(size=(7, 3))
    scores = checks.call_array(reader_fn, log_probs, shape=(7, 3))
    checks.require(
        np.allclose(scores.mean(axis=0), scores.mean()),
        "on average over the queries, one candidate still scores higher than another; look at the axis of the mean.",
    )
    checks.require(
        np.allclose(np.diff(scores, axis=0), np.diff(log_probs, axis=0)),
        "the difference between two queries' scores has changed; subtract the same numbers from every query.",
    )
    shifted = checks.call_array(reader_fn, log_probs + np.array([3.0, -1.0, 0.5]), shape=(7, 3))
    checks.require(
        np.allclose(shifted - scores, (shifted - scores)[0, 0]),
        "a constant bias towards one candidate still changes the scores; look at what the mean runs over.",
    )
    print("Passed: no candidate is preferred on average, and the queries still differ as before.")


@checks.check("compare every positive query with every negative one; a tie counts half.")
def auc(reader_fn: Callable[[np.ndarray, np.ndarray], float]) -> None:
    """Check a function (scores (n,), labels (n,) of 0 and 1) -> area under the ROC curve.

    Properties: 1 for perfect order, 0 for reversed, 1/2 for equal scores; unchanged by increasing transforms; turned
    into 1 - AUC by swapping the classes; a hand-counted case.
    Raises: AssertionError with a hint.
    """
    labels = np.array([0, 1, 0, 1, 1])
    scores = np.array([-0.5, 0.2, 0.1, 0.1, 2.0])

    def answer(scores: np.ndarray, labels: np.ndarray) -> float:
        return float(checks.call_array(reader_fn, scores, labels, shape=()))

    checks.require(
        np.isclose(answer(labels * 1.0, labels), 1), "perfectly ordered scores do not give 1; look at the comparison."
    )
    checks.require(
        np.isclose(answer(-labels * 1.0, labels), 0), "scores in reversed order do not give 0; look at its direction."
    )
    checks.require(
        np.isclose(answer(np.zeros(5), labels), 0.5), "equal scores do not give one half; how do ties count?"
    )
    checks.require(
        np.isclose(answer(np.exp(3 * scores) - 7, labels), answer(scores, labels)),
        "an increasing transform of the scores changes the result; only their order may matter.",
    )
    checks.require(
        np.isclose(answer(scores, 1 - labels), 1 - answer(scores, labels)),
        "swapping the classes does not give one minus the result; look at which pairs are counted.",
    )
    checks.require(np.isclose(answer(scores, labels), 5.5 / 6), "five wins and a tie of six pairs do not give 5.5/6.")
    print("Passed: order alone decides, ties count one half, swapping the classes mirrors the result.")
