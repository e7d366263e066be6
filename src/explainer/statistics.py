"""Statistics of predictions: accuracy three ways, because small models are label-biased, and bootstrap intervals."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int, Shaped

from explainer.errors import ShapeError

Array = np.ndarray
Interval = tuple[float, float]


def accuracy(log_probs: Float[Array, "n c"], labels: Int[Array, " n"]) -> float:
    """Share of queries whose label has the largest log-probability: mean_i [arg max_c s_ic = y_i]."""
    return float((log_probs.argmax(1) == labels).mean())


def batch_prior(log_probs: Float[Array, "n c"]) -> Float[Array, " c"]:
    """The model's preference for each label whatever the query, estimated on the queries: mean_i s_ic."""
    return log_probs.mean(0)


def calibrated_accuracy(
    log_probs: Float[Array, "n c"], labels: Int[Array, " n"], prior: Float[Array, " c"] | None = None
) -> float:
    """Accuracy after the label bias is taken off: mean_i [arg max_c (s_ic - b_c) = y_i].

    The prior b is `batch_prior` of the same (unlabelled) queries, or given: the log-probabilities of a content-free
    query such as "N/A" (Zhao et al. 2021, contextual calibration, with the affine map reduced to its bias).
    """
    return accuracy(log_probs - (batch_prior(log_probs) if prior is None else prior), labels)


def auc(log_probs: Float[Array, "n c"], labels: Int[Array, " n"]) -> float:
    """Probability that a query of a class gets a larger score for that class than a query of another class.

    AUC_c = P(m_ic > m_jc) + P(m_ic = m_jc) / 2 over pairs with y_i = c, y_j != c, where the score is the log-odds
    m_ic = s_ic - log sum_{c' != c} exp s_ic'. Two classes give one number, the same for either; more give the mean
    over classes that have both kinds of query (one against the rest). No label bias can change it for two classes.
    NaN when no class has both kinds of query.
    """
    one_vs_rest = [_rank_auc(_log_odds(log_probs, c), labels == c) for c in range(log_probs.shape[1])]
    defined = [value for value in one_vs_rest if not np.isnan(value)]
    return float(np.mean(defined)) if defined else float("nan")


def macro_f1(log_probs: Float[Array, "n c"], labels: Int[Array, " n"]) -> float:
    """Mean over classes of F_1 = 2 TP / (2 TP + FP + FN), over the classes that are predicted or present."""
    predictions = log_probs.argmax(1)
    classes = np.union1d(predictions, labels)
    shared = [((predictions == c) & (labels == c)).sum() for c in classes]
    either = [(predictions == c).sum() + (labels == c).sum() for c in classes]
    return float(np.mean(2 * np.array(shared) / np.array(either)))


def bootstrap_interval(
    values: Shaped[Array, " n"], *, seed: int, n_resamples: int = 2000, level: float = 0.95
) -> Interval:
    """Percentile bootstrap interval of a mean over n examples (Efron and Tibshirani 1993, chapter 13)."""
    return bootstrap_interval_of(np.mean, values, seed=seed, n_resamples=n_resamples, level=level)


def bootstrap_interval_of(
    statistic: Callable[..., float],
    *arrays: Shaped[Array, "n ..."],
    seed: int,
    n_resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Percentile bootstrap interval of statistic(*arrays), resampling the examples of all arrays together.

    Resamples in which the statistic is NaN (an AUC without one of the classes) are left out.
    """
    n = _require_examples(len(arrays[0]))
    generator = np.random.default_rng(seed)
    draws = generator.integers(n, size=(n_resamples, n))
    return _interval([statistic(*(array[draw] for array in arrays)) for draw in draws], level)


def nested_bootstrap_interval(
    values: Shaped[Array, "seeds n"], *, seed: int, n_resamples: int = 2000, level: float = 0.95
) -> Interval:
    """Percentile bootstrap interval of a mean over seeds and examples: first seeds are drawn, then their examples.

    Covers both the choice of demonstrations (rows) and the choice of queries (columns). With few seeds it is too
    narrow: of s seeds the bootstrap sees a variance (s - 1) / s times the true one.
    """
    s, n = values.shape
    _require_examples(s * n)
    generator = np.random.default_rng(seed)
    rows = generator.integers(s, size=(n_resamples, s, 1))
    columns = generator.integers(n, size=(n_resamples, s, n))
    return _interval(values[rows, columns].mean((1, 2)), level)


def _interval(statistics, level: float) -> Interval:
    tail = (1 - level) / 2
    low, high = np.nanquantile(statistics, (tail, 1 - tail))
    return float(low), float(high)


def _require_examples(n: int) -> int:
    if n == 0:
        raise ShapeError("a bootstrap interval needs at least one example.")
    return n


def _log_odds(log_probs: Float[Array, "n c"], c: int) -> Float[Array, " n"]:
    return log_probs[:, c] - np.logaddexp.reduce(np.delete(log_probs, c, axis=1), axis=1)


def _rank_auc(scores: Float[Array, " n"], positive: Shaped[Array, " n"]) -> float:
    """Mann-Whitney U / (n_1 n_0), with the mean rank for ties."""
    n1 = int(positive.sum())
    n0 = len(positive) - n1
    if n1 == 0 or n0 == 0:
        return float("nan")
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return float((ranks[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))
