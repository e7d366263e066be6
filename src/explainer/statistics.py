"""Statistics of predictions: accuracy three ways, because small models are label-biased, and bootstrap intervals."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from explainer.errors import ShapeError

Array = np.ndarray


class Interval(NamedTuple):
    """An estimate between the ends of its interval."""

    estimate: float
    low: float
    high: float


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


def macro_auc(log_probs: Float[Array, "n c"], labels: Int[Array, " n"]) -> float:
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
    groups: Sequence[tuple[Shaped[Array, "_ ..."], ...]],  # n differs between groups
    statistic: Callable[..., float] = np.mean,
    *,
    seed: int = 0,
    n_resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Mean of a statistic over groups, with the percentile interval of the nested bootstrap.

    A group is a tuple of arrays over the same n examples, one group per seed; the estimate is
    mean_g statistic(*group_g). Each resample draws as many groups with replacement, then within each drawn group n
    examples with replacement, so that the interval covers the choice of demonstrations and that of queries
    (Davison and Hinkley 1997, section 3.8). One group gives the ordinary bootstrap over examples.

    With few groups the interval is too narrow: of s groups the bootstrap sees (s - 1) / s of their variance.
    Resamples without a value (an AUC when one class was not drawn) are left out. Raises ShapeError without examples.
    """
    sizes = [len(group[0]) for group in groups]
    if not sizes or min(sizes) == 0:
        raise ShapeError(f"a bootstrap interval needs at least one example in every group, got sizes {sizes}.")
    generator = np.random.default_rng(seed)
    resampled = [_resampled(groups, sizes, statistic, generator) for _ in range(n_resamples)]
    tail = (1 - level) / 2
    low, high = np.nanquantile(resampled, (tail, 1 - tail))
    return Interval(float(np.mean([statistic(*group) for group in groups])), float(low), float(high))


def _resampled(groups, sizes: list[int], statistic: Callable[..., float], generator: np.random.Generator) -> float:
    values = []
    for g in generator.integers(len(groups), size=len(groups)):
        draw = generator.integers(sizes[g], size=sizes[g])
        values.append(statistic(*(array[draw] for array in groups[g])))
    return np.mean(values)


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
