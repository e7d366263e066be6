"""Statistics of predictions: accuracy three ways, because small models are label-biased, intervals, comparisons."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy.stats import binomtest
from scipy.stats import t as student_t

from explainer.errors import ShapeError

Array = np.ndarray


@dataclass(frozen=True)
class Interval:
    """An estimate between the ends of its interval, 95 % unless said otherwise; numbers, or arrays of one shape.

    `p_value` is two-sided, of the value 0; `undefined` the share of resamples without a value. As a sequence it is
    (estimate, low, high). In a format string it is "0.25 [0.20, 0.31]": the format is that of a number, and a number
    that does not exist is a dash.
    """

    estimate: float
    low: float
    high: float
    p_value: float = float("nan")
    undefined: float = 0.0

    def __iter__(self) -> Iterator[float]:
        """Estimate, low end and high end."""
        return iter((self.estimate, self.low, self.high))

    def __len__(self) -> int:
        """Three, so that numpy takes several intervals as the rows of one array."""
        return 3

    def __getitem__(self, index: int | slice) -> float | tuple[float, ...]:
        """As of the tuple."""
        return tuple(self)[index]

    def __format__(self, spec: str) -> str:
        """With no-break spaces and true minus signs; before a rounded zero only at an end, where it says which side."""
        estimate, low, high = (format(x, spec or ".3g") if np.isfinite(x) else "-" for x in self)
        estimate = re.sub(r"^-(?=[0.]+%?$)", "", estimate)
        text = f"{estimate}\N{NO-BREAK SPACE}[{low},\N{NO-BREAK SPACE}{high}]"
        return re.sub(r"-(?=[\d.])", "\N{MINUS SIGN}", text)

    def __rmul__(self, factor: float) -> "Interval":
        """In another unit: 100 * interval is in per cent."""
        return self.map(lambda value: factor * value)

    @property
    def excludes_zero(self) -> bool:
        """Whether both ends are on the same side of zero."""
        return bool(self.low > 0 or self.high < 0)

    def map(self, function: Callable[[float], float]) -> "Interval":
        """The same of a rising function of the value."""
        return replace(self, estimate=function(self.estimate), low=function(self.low), high=function(self.high))


def student(values: Float[Array, "n ..."]) -> Interval:
    """Mean over the first axis with Student's interval, mean +- t sd / sqrt(n), and the p-value of a mean of zero.

    p = P(|T| >= |mean| sqrt(n) / sd) with n - 1 degrees of freedom. It keeps its level where the n numbers are normal,
    however few they are, which the bootstrap does not. The ends of a single number are NaN.
    """
    values = np.asarray(values, dtype=float)
    n, mean = len(values), values.mean(0)
    if n < 2:
        return Interval(mean, np.full_like(mean, np.nan)[()], np.full_like(mean, np.nan)[()])
    error = values.std(0, ddof=1) / np.sqrt(n)
    half = student_t.ppf(0.975, n - 1) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        p_value = 2 * student_t.sf(abs(mean) / error, n - 1)
    return Interval(mean, mean - half, mean + half, p_value)


def binomial_interval(share: float, n: int) -> Interval:
    """The nearest share that a whole number of n queries can have, with Wilson's 95 % interval."""
    count = round(share * n)
    interval = binomtest(count, n).proportion_ci(0.95, method="wilson")
    return Interval(count / n, interval.low, interval.high)


def independent_difference(a: Interval, b: Interval) -> Interval:
    """a - b for two shares with their intervals, as if of different queries.

    The distances from a and b to the ends of their own intervals, (l_a, u_a) and (l_b, u_b), add like standard errors:
    [d - sqrt((a - l_a)^2 + (u_b - b)^2), d + sqrt((u_a - a)^2 + (b - l_b)^2)].
    Source: Newcombe 1998, Interval estimation for the difference between independent proportions, method 10.
    """
    d = a.estimate - b.estimate
    below = np.hypot(a.estimate - a.low, b.high - b.estimate)
    above = np.hypot(a.high - a.estimate, b.estimate - b.low)
    return Interval(d, d - below, d + above)


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
    Resamples without a value (an AUC when one class was not drawn) are left out, but the estimate is NaN if one group
    has none; for a ratio whose denominator may be zero use `ratio_interval`. Raises ShapeError without examples.

    `np.mean`, `np.nanmean` and the statistics of this module are computed for all resamples at once; any other one is
    called for each drawn group, which takes ten to a hundred times as long.
    """
    (total,) = _totals([groups], statistic, seed, n_resamples)
    return Interval(float(np.mean([statistic(*group) for group in groups])), *_ends(total / len(groups), level))


def ratio_interval(
    groups: Sequence[tuple[Shaped[Array, " _"], Shaped[Array, " _"]]],
    *,
    seed: int = 0,
    n_resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Ratio of two sums over all groups, sum_gi a_gi / sum_gi b_gi, with an interval as in `bootstrap_interval`.

    For Rec2FTP: a, true where ZSL is wrong and FT and ICL are right, b, true where ZSL is wrong and FT is right. The
    sums are pooled because the mean of the ratios of the groups would not exist as soon as one group has no b, and
    would give one with a single b the weight of one with fifty.

    Resamples with sum b = 0 have no value. They are left out, so the interval holds on condition that there is
    something to divide by, and counted: with `undefined` above a few per cent, or b in single digits, it is no
    measurement. Without any b all ends are NaN and `undefined` is 1.
    Shapes: per group two arrays (n,), counts or booleans >= 0. Raises ShapeError without examples.
    """
    sides = [[(group[i],) for group in groups] for i in (0, 1)]
    resampled = _ratio(*_totals(sides, np.sum, seed, n_resamples))
    a, b = (sum(float(array.sum()) for (array,) in side) for side in sides)
    ratio, undefined = a / b if b else float("nan"), float(np.isnan(resampled).mean())
    return Interval(ratio, *_ends(resampled, level), undefined=undefined)


def paired_difference(
    groups_a: Sequence[tuple[Shaped[Array, "_ ..."], ...]],
    groups_b: Sequence[tuple[Shaped[Array, "_ ..."], ...]],
    statistic: Callable[..., float] = np.mean,
    *,
    seed: int = 0,
    n_resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Difference of a statistic between two conditions that saw the same seeds and queries, nested bootstrap.

    Groups as in `bootstrap_interval`, in the same order for A and B, with example i of a group the same query in
    both; the estimate is mean_g (statistic(A_g) - statistic(B_g)). Each resample draws the same groups and the same
    examples for both, so that what they share (a hard query, a good choice of demonstrations) cancels.

    p = 2 min(1 + N[d* <= 0], 1 + N[d* >= 0]) / (1 + N), at most 1, over the N resampled differences d* that have a
    value: the level at which the percentile interval begins to hold 0, with 1 added for the sample itself (Davison
    and Hinkley 1997, section 4.2). It cannot fall below 2 / (1 + N): to correct for m comparisons at level alpha,
    `holm` needs N > 2 m / alpha.

    With few groups that differ, p is too small, as the interval is too narrow. Where the differences of the groups
    are normal with mean zero and queries add nothing, p < 0.05 happens not in 5 % but in about 26 % of the cases with
    3 groups, 16 % with 5, 11 % with 10 and 7 % with 20.
    Raises ShapeError without examples, and where the groups of A and B differ in number or size.
    """
    sizes_a, sizes_b = ([len(group[0]) for group in groups] for groups in (groups_a, groups_b))
    if sizes_a != sizes_b:
        raise ShapeError(f"paired groups should have the same numbers of examples, got {sizes_a} and {sizes_b}.")
    a, b = _totals([groups_a, groups_b], statistic, seed, n_resamples)
    resampled = (a - b) / len(sizes_a)
    estimate = np.mean([statistic(*a) - statistic(*b) for a, b in zip(groups_a, groups_b, strict=True)])
    return Interval(float(estimate), *_ends(resampled, level), _p_value(resampled))


def _p_value(resampled: Float[Array, " n"]) -> float:
    n_defined = (~np.isnan(resampled)).sum()
    tails = (1 + (resampled <= 0).sum(), 1 + (resampled >= 0).sum())
    return float(min(1.0, 2 * min(tails) / (1 + n_defined))) if n_defined else float("nan")


class MeanResamples:
    """Draws of the nested bootstrap for groups of given sizes, shared by everything that is compared on them.

    The scheme of `bootstrap_interval`, for means only: a resampled mean is a product with the counts of the draw, so
    that hundreds of comparisons take seconds. For the same sizes, number and seed the draws are always the same.
    """

    def __init__(self, sizes: Sequence[int], n_resamples: int = 2000, seed: int = 0):
        """Draw for groups of these sizes."""
        generator = np.random.default_rng(seed)
        owners = generator.integers(len(sizes), size=(n_resamples, len(sizes)))
        self.n_resamples, self.sizes = n_resamples, tuple(sizes)
        self._rows = [np.nonzero(owners == group)[0] for group in range(len(sizes))]
        self._counts = [
            generator.multinomial(n, np.full(n, 1 / n), size=len(rows)).astype(np.float32)
            for n, rows in zip(sizes, self._rows, strict=True)
        ]

    def means(self, values: Sequence[Float[Array, " _"]]) -> Float[Array, " n_resamples"]:
        """Mean over groups of the mean over examples, without NaN, in every resample."""
        total = np.zeros(self.n_resamples)
        for rows, counts, one in zip(self._rows, self._counts, values, strict=True):
            known = ~np.isnan(one)
            drawn = len(one) if known.all() else counts @ known.astype(np.float32)
            with np.errstate(invalid="ignore"):
                mean = (counts @ np.where(known, one, 0).astype(np.float32)) / drawn
            total += np.bincount(rows, mean, minlength=self.n_resamples)
        return total / len(self.sizes)

    def interval(self, values: Sequence[Float[Array, " _"]]) -> Interval:
        """Mean over groups of the mean over examples, with its interval."""
        estimate = float(np.mean([np.nanmean(one) for one in values]))
        return Interval(estimate, *_ends(self.means(values), 0.95))

    def difference(self, a: Sequence[Float[Array, " _"]], b: Sequence[Float[Array, " _"]]) -> Interval:
        """As `paired_difference` of the means."""
        estimate = np.mean([np.nanmean(one) for one in a]) - np.mean([np.nanmean(one) for one in b])
        resampled = self.means(a) - self.means(b)
        return Interval(float(estimate), *_ends(resampled, 0.95), _p_value(resampled))


def holm(p_values: Float[Array, " m"]) -> Float[Array, " m"]:
    """p-values corrected for their number: p~_(i) = max_{j <= i} min(1, (m - j + 1) p_(j)), p_(1) <= ... <= p_(m).

    Rejecting where p~ <= alpha makes one false rejection or more with probability at most alpha, whatever the
    dependence between the comparisons. A NaN, a comparison that could not be made, stays NaN and is not counted in m.
    Raises ValueError for a p-value outside [0, 1].
    Source: Holm 1979, A simple sequentially rejective multiple test procedure.
    """
    if ((p_values < 0) | (p_values > 1)).any():
        raise ValueError(f"p-values {p_values} should lie in [0, 1].")
    order = np.argsort(p_values)[: (~np.isnan(p_values)).sum()]  # NaN is sorted last
    adjusted = np.full(len(p_values), np.nan)
    adjusted[order] = np.maximum.accumulate(np.minimum(1, np.arange(len(order), 0, -1) * p_values[order]))
    return adjusted


def _totals(
    conditions: Sequence[Sequence[tuple]], statistic: Callable, seed: int, n_resamples: int
) -> Float[Array, "conditions n_resamples"]:
    """Sum of a statistic over the groups of each resample: groups drawn with replacement, then examples within each.

    The conditions have groups of the same sizes and see the same draws.
    """
    sizes = [len(group[0]) for group in conditions[0]]
    if not sizes or min(sizes) == 0:
        raise ShapeError(f"a bootstrap interval needs at least one example in every group, got sizes {sizes}.")
    generator = np.random.default_rng(seed)
    drawn = generator.integers(len(sizes), size=(n_resamples, len(sizes)))
    totals = np.zeros((len(conditions), n_resamples))
    for g, n in enumerate(sizes):
        resamples, _ = np.nonzero(drawn == g)
        for some in np.array_split(resamples, 1 + len(resamples) * n // _AT_ONCE):
            values = _of_draws(
                statistic, [groups[g] for groups in conditions], generator.integers(n, size=(len(some), n))
            )
            totals += [np.bincount(some, each, minlength=n_resamples) for each in values]
    return totals


_AT_ONCE = 1_000_000  # drawn examples, so that memory stays below some tens of MB


def _of_draws(
    statistic: Callable, groups: Sequence[tuple], draws: Int[Array, "draws n"]
) -> list[Float[Array, " draws"]]:
    """A statistic of each group's examples as drawn: from how often each was drawn where possible, else by calls."""
    if weighted := _WEIGHTED.get(statistic):
        places = draws + draws.shape[1] * np.arange(len(draws))[:, None]
        counts = np.bincount(places.ravel(), minlength=draws.size).reshape(draws.shape).astype(float)
        return [weighted(counts, *group) for group in groups]
    return [np.array([statistic(*(array[d] for array in group)) for d in draws], dtype=float) for group in groups]


def _ratio(a: Shaped[Array, "..."], b: Shaped[Array, "..."]) -> Float[Array, "..."]:
    """a / b, NaN where b is zero."""
    return np.divide(a, b, out=np.full(b.shape, np.nan), where=b != 0)


# Statistics of resamples in which example i occurs counts[r, i] times; counts (resamples, n), results (resamples,).


def _weighted_mean(counts: Array, values: Array) -> Array:
    return counts @ values.reshape(len(values), -1).mean(1) / len(values)


def _weighted_nanmean(counts: Array, values: Array) -> Array:
    rows = values.reshape(len(values), -1)
    return _ratio(counts @ np.nansum(rows, 1), counts @ (~np.isnan(rows)).sum(1))


def _weighted_accuracy(counts: Array, log_probs: Array, labels: Array) -> Array:
    return _weighted_mean(counts, log_probs.argmax(1) == labels)


def _weighted_calibrated_accuracy(counts: Array, log_probs: Array, labels: Array) -> Array:
    priors = counts @ log_probs / len(labels)
    correct = (log_probs - priors[:, None]).argmax(2) == labels
    return (counts * correct).mean(1)


def _weighted_macro_f1(counts: Array, log_probs: Array, labels: Array) -> Array:
    classes = np.arange(log_probs.shape[1])
    predicted, present = log_probs.argmax(1)[:, None] == classes, labels[:, None] == classes
    either = counts @ (predicted.astype(float) + present)
    return np.nanmean(_ratio(2 * counts @ (predicted & present), either), 1)


def _weighted_macro_auc(counts: Array, log_probs: Array, labels: Array) -> Array:
    one_vs_rest = []
    for c in range(log_probs.shape[1]):
        scores, positive = _log_odds(log_probs, c), labels == c
        wins = (1 + np.sign(scores[positive][:, None] - scores[~positive])) / 2
        ones, zeros = counts[:, positive], counts[:, ~positive]
        one_vs_rest.append(_ratio((ones @ wins * zeros).sum(1), ones.sum(1) * zeros.sum(1)))
    return _ratio(np.nansum(one_vs_rest, 0), (~np.isnan(one_vs_rest)).sum(0))


_WEIGHTED: Mapping[Callable, Callable] = {
    np.sum: lambda counts, values: counts @ values,
    np.mean: _weighted_mean,
    np.nanmean: _weighted_nanmean,
    accuracy: _weighted_accuracy,
    calibrated_accuracy: _weighted_calibrated_accuracy,
    macro_f1: _weighted_macro_f1,
    macro_auc: _weighted_macro_auc,
}


def _ends(resampled: Float[Array, " n"], level: float) -> tuple[float, float]:
    """Quantiles of the resamples that have a value; NaN without any."""
    defined = resampled[~np.isnan(resampled)]
    if not len(defined):
        return float("nan"), float("nan")
    tail = (1 - level) / 2
    low, high = np.quantile(defined, (tail, 1 - tail))
    return float(low), float(high)


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
