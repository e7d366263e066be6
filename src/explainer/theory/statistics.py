"""Statistics of predictions: accuracy three ways, because small models are label-biased, intervals, comparisons.

Seeds draw the demonstrations, and queries are drawn from one pool for all of them: the two are *crossed*, and every
interval here covers both draws.
"""

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, overload

import numpy as np
from jaxtyping import Float, Int, Shaped
from numpy.typing import ArrayLike
from scipy.stats import binomtest
from scipy.stats import t as student_t

from explainer.errors import ShapeError

_Array = np.ndarray


@dataclass(frozen=True)
class Interval:
    """An estimate between the ends of its interval, 95 % unless said otherwise; numbers, or arrays of one shape.

    `p_value` is two-sided, of the value 0; `undefined` the share of resamples without a value. As a sequence it is
    (estimate, low, high), in a format string "0.25 [0.20, 0.31]" with a dash for a number that does not exist.
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

    @overload
    def __getitem__(self, index: int) -> float: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[float, ...]: ...

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
        """In another unit: 100 * interval is in per cent; a negative factor swaps the ends."""
        scaled = self.map(lambda value: factor * value)
        return replace(scaled, low=scaled.high, high=scaled.low) if factor < 0 else scaled

    @property
    def excludes_zero(self) -> bool:
        """Whether both ends are on the same side of zero."""
        return bool(self.low > 0 or self.high < 0)

    @property
    def of_share(self) -> "Interval":
        """The same of a share: no end leaves [0, 1]."""
        return Interval(self.estimate, *np.clip((self.low, self.high), 0, 1))

    def map(self, function: Callable[[float], float]) -> "Interval":
        """The same of a rising function of the value."""
        return replace(self, estimate=function(self.estimate), low=function(self.low), high=function(self.high))


def student(values: ArrayLike) -> Interval:
    """Mean over n of values (n, ...) with Student's interval, mean +- t sd / sqrt(n), and the p-value of a zero mean.

    Numbers that are all zero have p = 1; the ends of a single number are NaN.
    """
    values = np.asarray(values, dtype=float)
    n = len(values)
    mean: Any = values.mean(0)  # a number, or an array, which an `Interval` holds as if it were one
    if n < 2:
        return Interval(mean, np.full_like(mean, np.nan)[()], np.full_like(mean, np.nan)[()])
    return _student_interval(mean, values.std(0, ddof=1) / np.sqrt(n), n - 1.0)


def _student_interval(mean: Any, error: Any, df: float) -> Interval:
    half = student_t.ppf(0.975, df) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        p_value: Any = np.where((mean == 0) & (error == 0), 1.0, 2 * student_t.sf(abs(mean) / error, df))[()]
    return Interval(mean, mean - half, mean + half, p_value)


def sign_test(differences: Float[_Array, " n"]) -> float:
    """Two-sided p-value of the signs of paired differences, if either were as likely: 2 P(K >= k), at most 1.

    k is the larger of the numbers of positive and of negative differences, K ~ Binomial(their sum, 1/2).
    Raises: ShapeError unless the differences are one row of finite numbers.
    Source: Dixon and Mood 1946, The statistical sign test.
    """
    differences = np.asarray(differences, dtype=float)
    if differences.ndim != 1 or not np.isfinite(differences).all():
        raise ShapeError(f"differences of shape {differences.shape} should be one row of finite numbers.")
    positive, n = int((differences > 0).sum()), int((differences != 0).sum())
    return float(binomtest(positive, n).pvalue) if n else 1.0


def binomial_interval(share: float, n: int) -> Interval:
    """The nearest share that a whole number of n queries can have, with Wilson's 95 % interval."""
    count = round(share * n)
    interval = binomtest(count, n).proportion_ci(0.95, method="wilson")
    return Interval(count / n, interval.low, interval.high)


def widen_degenerate(share: Interval, n_queries: int) -> Interval:
    """The interval of a share; Wilson's of so many different queries where every resample is all right or all wrong."""
    if share.low == share.high == share.estimate and share.estimate in (0, 1) and n_queries:
        return replace(binomial_interval(share.estimate, n_queries), undefined=share.undefined)
    return share


def independent_difference(a: Interval, b: Interval) -> Interval:
    """a - b for two shares with their intervals, (l_a, u_a) and (l_b, u_b), as if of different queries.

    [d - sqrt((a - l_a)^2 + (u_b - b)^2), d + sqrt((u_a - a)^2 + (b - l_b)^2)].
    Source: Newcombe 1998, Interval estimation for the difference between independent proportions, method 10.
    """
    d = a.estimate - b.estimate
    below = np.hypot(a.estimate - a.low, b.high - b.estimate)
    above = np.hypot(a.high - a.estimate, b.estimate - b.low)
    return Interval(d, d - below, d + above)


def widen_degenerate_difference(difference: Interval, a: Interval, b: Interval) -> Interval:
    """The interval of a difference of the shares a and b; `independent_difference` where all seeds differ alike.

    Student's interval over equal numbers has no width, but two seeds with few queries are often equal by chance.
    """
    return independent_difference(a, b) if np.isclose(difference.high, difference.low) else difference


def accuracy(log_probs: Float[_Array, "n c"], labels: Int[_Array, " n"]) -> float:
    """Share of queries whose label has the largest log-probability: mean_i [arg max_c s_ic = y_i]."""
    return float((log_probs.argmax(1) == labels).mean())


def calibrated_accuracy(log_probs: Float[_Array, "n c"], labels: Int[_Array, " n"]) -> float:
    """Accuracy after the label bias is taken off: mean_i [arg max_c (s_ic - b_c) = y_i], b the mean over the queries.

    Source: Zhao et al. 2021, contextual calibration, with the affine map reduced to its bias.
    """
    return accuracy(log_probs - log_probs.mean(0), labels)


def macro_auc(log_probs: Float[_Array, "n c"], labels: Int[_Array, " n"]) -> float:
    """Probability that a query of a class gets a larger score for that class than a query of another class.

    AUC_c = P(m_ic > m_jc) + P(m_ic = m_jc) / 2 over pairs with y_i = c, y_j != c, of the log-odds m_ic = s_ic - log
    sum_{c' != c} exp s_ic'; of several classes the mean over those that have both kinds of query, NaN if none has.
    """
    return float(_weighted_macro_auc(np.ones((1, len(labels))), log_probs, labels)[0])


def ratio_of_sums(a: Shaped[_Array, " n"], b: Shaped[_Array, " n"]) -> float:
    """sum_i a_i / sum_i b_i; NaN where the lower sum is zero."""
    return float(_ratio(np.asarray(a.sum()), np.asarray(b.sum())))


_Groups = Sequence[tuple[Shaped[_Array, "_ ..."], ...]]  # n differs between groups


@dataclass(frozen=True, eq=False)
class Sample:
    """What was measured: a tuple of arrays over the same n examples for each group; a group is a seed of a task.

    `ids[g]` says of which query each example of group g is, `strata[g]` its task, `seeds[g]` its seed; without ids or
    seeds all are different. Tasks are fixed: a mean is that over tasks of the mean over groups, sum_g w_g T_g.
    Raises: ShapeError without examples in some group, and where ids, strata or seeds do not belong to the groups.
    """

    groups: _Groups
    ids: Sequence[Shaped[_Array, " _"]] | None = None
    strata: Sequence[Hashable] | None = None
    seeds: Sequence[Hashable] | None = None

    def __post_init__(self):
        """Refuse what is no sample."""
        if not self.sizes or min(self.sizes) == 0:
            raise ShapeError(f"an interval needs at least one example in every group, got sizes {list(self.sizes)}.")
        if self.ids is not None and (sizes := tuple(map(len, self.ids))) != self.sizes:
            raise ShapeError(f"there should be an id for each example, got {list(sizes)} for {list(self.sizes)}.")
        for name, each in (("stratum", self.strata), ("seed", self.seeds)):
            if each is not None and len(each) != len(self.groups):
                raise ShapeError(f"there should be a {name} for each of {len(self.groups)} groups, got {each}.")

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of examples of each group."""
        return tuple(len(group[0]) for group in self.groups)

    @cached_property
    def queries(self) -> list[Int[_Array, " _"]]:
        """For each group, the number of each example's query among all queries."""
        total = sum(self.sizes)
        numbers = np.arange(total) if self.ids is None else np.unique(np.concatenate(self.ids), return_inverse=True)[1]
        return np.split(numbers, np.cumsum(self.sizes)[:-1])

    @cached_property
    def n_queries(self) -> int:
        """Number of different queries."""
        return 1 + max(int(numbers.max()) for numbers in self.queries)

    @cached_property
    def stratum(self) -> Int[_Array, " groups"]:
        """For each group, the number of its stratum."""
        return _numbers(self.strata or [None] * len(self.groups))

    @cached_property
    def seed(self) -> Int[_Array, " groups"]:
        """For each group, the number of its seed."""
        return _numbers(self.seeds or range(len(self.groups)))

    @cached_property
    def weights(self) -> Float[_Array, " groups"]:
        """The weight of each group in a mean: all strata count alike, and so do all groups of a stratum."""
        counts = np.bincount(self.stratum)
        return 1 / (len(counts) * counts[self.stratum])

    def mean(self, statistic: Callable[..., float]) -> float:
        """Mean over strata of the mean over groups of a statistic of the group's arrays, sum_g w_g T_g."""
        return self.mean_of(np.array([statistic(*group) for group in self.groups], dtype=float))

    def mean_of(self, values: Float[_Array, " groups"]) -> float:
        """Mean over strata of the mean over groups, sum_g w_g T_g, without rounding where all T_g are equal."""
        return float(np.mean([values[self.stratum == t].mean() for t in range(1 + self.stratum.max())]))


def bootstrap_interval(
    sample: Sample | _Groups,
    statistic: Callable[..., float] = np.mean,
    *,
    seed: int = 0,
    n_resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Mean of a statistic over groups, with the percentile interval of the crossed bootstrap.

    Each resample draws as many seeds and as many queries as there are, both with replacement; an example counts as
    often as its seed was drawn times as often as its query was. With few groups the interval is too narrow: of s groups
    it sees (s - 1) / s of their variance. Resamples without a value are left out, and `undefined` is their share.

    `np.mean`, `np.nanmean` and the statistics of this module are computed for all resamples at once, others one by one.
    Raises: ShapeError as `Sample`.
    Source: Owen 2007, The pigeonhole bootstrap; McCullagh 2000, Resampling and exchangeable arrays.
    """
    sample = _as_sample(sample)
    totals, times = _totals(sample, statistic, seed, n_resamples)
    of_stratum = np.eye(1 + sample.stratum.max())[sample.stratum]
    resampled = _ratio(totals @ of_stratum, times @ of_stratum).mean(1)
    return Interval(sample.mean(statistic), *_ends(resampled, level), undefined=float(np.isnan(resampled).mean()))


def ratio_interval(
    sample: Sample | _Groups,
    *,
    seed: int = 0,
    n_resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Ratio of two sums over all groups, sum_gi a_gi / sum_gi b_gi, with an interval as in `bootstrap_interval`.

    Each group has two arrays of counts or booleans. Resamples with sum b = 0 are left out and counted in `undefined`.
    Raises: ShapeError as `Sample`.
    """
    sample = _as_sample(sample)
    sides = [replace(sample, groups=[(group[i],) for group in sample.groups]) for i in (0, 1)]
    resampled = _ratio(*(_totals(side, np.sum, seed, n_resamples)[0].sum(1) for side in sides))
    a, b = (sum(float(array.sum()) for (array,) in side.groups) for side in sides)
    ratio, undefined = a / b if b else float("nan"), float(np.isnan(resampled).mean())
    return Interval(ratio, *_ends(resampled, level), undefined=undefined)


def crossed_draws(
    sample: Sample, *, seed: int = 0, n_resamples: int = 2000
) -> tuple[Int[_Array, "n_resamples groups"], Int[_Array, "n_resamples n_queries"]]:
    """How often each group and each query is drawn in each resample of `bootstrap_interval`: m and w."""
    times, drawn = _draws(1 + int(sample.seed.max()), sample.n_queries, n_resamples, seed)
    return times[:, sample.seed], drawn


def paired_difference(
    sample_a: Sample | _Groups, sample_b: Sample | _Groups, statistic: Callable[..., float] = np.mean
) -> Interval:
    """Difference of a statistic between two conditions that saw the same seeds and queries: Student over seeds.

        mean_g D_g +- t_{S-1} sqrt(s^2 / S + c),    c = max(0, mean_{g != h} c_gh)

    of the differences D_g = statistic(A_g) - statistic(B_g) of S groups, which are in the same order and ask the same
    queries; s is their standard deviation, c the covariance of groups that share queries: c_gh is the sum over i of g
    and j of h, the same query, of d_gi d_hj with the jackknife's d_gi = D_g - D_g without i. Over strata, D_g - mean D
    of its stratum is summed over the groups of each seed, and S is the fewest seeds of a stratum. One group alone gives
    Student's interval over its examples; where a stratum of several has one group only, the ends are NaN.
    Raises: ShapeError as `Sample`, and where A and B differ in sizes, queries, strata or seeds.
    Source: own; two-way clustering with the same aim: Cameron, Gelbach and Miller 2011; Miller 2024.
    """
    a, b = _as_sample(sample_a), _as_sample(sample_b)
    _require_pairs(a, b)
    pairs = list(zip(a.groups, b.groups, strict=True))
    differences = np.array([statistic(*x) - statistic(*y) for x, y in pairs], dtype=float)
    mean, sizes = a.mean_of(differences), np.bincount(a.stratum)
    if len(pairs) == 1:
        return _over_examples(mean, _contributions(statistic, *pairs[0]))
    if sizes.min() == 1:
        return Interval(mean, float("nan"), float("nan"))
    scale = a.weights * np.sqrt(sizes / (sizes - 1))[a.stratum]  # as s^2 has n - 1 in place of n
    centred = differences - np.bincount(a.stratum, differences)[a.stratum] / sizes[a.stratum]
    variance = (np.bincount(a.seed, scale * centred) ** 2).sum()
    if a.ids is not None:
        contributions = [_contributions(statistic, *pair) for pair in pairs]
        variance += max(0.0, _covariance(a, [by * each for by, each in zip(scale, contributions, strict=True)]))
    return _student_interval(mean, np.sqrt(variance), sizes.min() - 1.0)


def _over_examples(mean: float, contributions: Float[_Array, " n"]) -> Interval:
    """Student's interval of one group over its examples; with one example the ends are NaN."""
    n = len(contributions)
    if n == 1:
        return Interval(mean, float("nan"), float("nan"))
    return _student_interval(mean, np.sqrt((n - 1) / n * (contributions**2).sum()), n - 1.0)


def _require_pairs(a: Sample, b: Sample) -> None:
    if a.sizes != b.sizes:
        raise ShapeError(f"pairs should have the same numbers of examples, got {list(a.sizes)} and {list(b.sizes)}.")
    for what, of_a, of_b in (("tasks", a.strata, b.strata), ("seeds", a.seeds, b.seeds)):
        if of_a is not None and of_b is not None and list(of_a) != list(of_b):
            raise ShapeError(f"pairs should be of the same {what}, got {list(of_a)} and {list(of_b)}.")
    if a.ids is not None and b.ids is not None:
        for g, (ids_a, ids_b) in enumerate(zip(a.ids, b.ids, strict=True)):
            if (differ := np.flatnonzero(np.asarray(ids_a) != np.asarray(ids_b))).size:
                i = differ[0]
                raise ShapeError(
                    f"pairs should be of the same queries, example {i} of group {g} is {ids_a[i]} in A "
                    f"and {ids_b[i]} in B."
                )


def _contributions(statistic: Callable, a: tuple, b: tuple) -> Float[_Array, " n"]:
    """D - D without example i, for each example; 0 where the statistic does not exist without it."""
    without = 1 - np.eye(len(a[0]))
    of_a, of_b = (statistic(*group) - _of_counts(statistic, group, without) for group in (a, b))
    return np.nan_to_num(of_a - of_b, posinf=0.0, neginf=0.0)


def _covariance(sample: Sample, contributions: Sequence[_Array]) -> float:
    """Sum of d_gi d_hj over examples i and j of the same query, in groups g and h of different seeds."""
    by_query = np.zeros((len(sample.groups), sample.n_queries))
    for row, numbers, each in zip(by_query, sample.queries, contributions, strict=True):
        np.add.at(row, numbers, each)
    of_seeds = np.zeros((1 + sample.seed.max(), sample.n_queries))
    np.add.at(of_seeds, sample.seed, by_query)
    return float((by_query.sum(0) ** 2).sum() - (of_seeds**2).sum())


class Components(NamedTuple):
    """Variances of the effect of a seed, of that of a query, and of what is left."""

    seed: float
    query: float
    rest: float

    @property
    def shares(self) -> tuple[float, float, float]:
        """As parts of their sum."""
        return tuple((np.array(self) / sum(self)).tolist())


def variance_components(sample: Sample) -> Components:
    """Variances in y = mean + seed effect + query effect + rest, by three sums of squares; each group has one array.

    Raises: ShapeError for several strata, and where no two groups share a query.
    Source: Gao and Owen 2017, Efficient moment calculations for variance components, section 3.
    """
    if sample.stratum.any():
        strata = list(dict.fromkeys(sample.strata or ()))
        raise ShapeError(f"variances are those of one stratum, got {strata}; take one.")
    y = np.concatenate([np.asarray(values, dtype=float) for (values,) in sample.groups])
    by_seed, by_query = np.repeat(np.arange(len(sample.groups)), sample.sizes), np.concatenate(sample.queries)
    n, n_i, n_j = len(y), np.bincount(by_seed), np.bincount(by_query)
    if len(n_j) == n or len(n_i) == 1:
        raise ShapeError("the variances of seeds and queries cannot be told apart where no two seeds share a query.")
    within = [((y - (np.bincount(of, y) / np.bincount(of))[of]) ** 2).sum() for of in (by_seed, by_query)]
    expected = [
        [0, n - len(n_i), n - len(n_i)],
        [n - len(n_j), 0, n - len(n_j)],
        [n**2 - (n_i**2).sum(), n**2 - (n_j**2).sum(), n**2 - n],
    ]
    return Components(*np.linalg.solve(expected, [*within, n * ((y - y.mean()) ** 2).sum()]).tolist())


def holm(p_values: Float[_Array, " m"]) -> Float[_Array, " m"]:
    """p-values corrected for their number: p~_(i) = max_{j <= i} min(1, (m - j + 1) p_(j)); NaN is not counted.

    Raises: ValueError for a p-value outside [0, 1].
    Source: Holm 1979, A simple sequentially rejective multiple test procedure.
    """
    if ((p_values < 0) | (p_values > 1)).any():
        raise ValueError(f"p-values {p_values} should lie in [0, 1].")
    order = np.argsort(p_values)[: (~np.isnan(p_values)).sum()]  # NaN is sorted last
    adjusted = np.full(len(p_values), np.nan)
    adjusted[order] = np.maximum.accumulate(np.minimum(1, np.arange(len(order), 0, -1) * p_values[order]))
    return adjusted


def _as_sample(sample: Sample | _Groups) -> Sample:
    return sample if isinstance(sample, Sample) else Sample(sample)


def _numbers(names: Sequence[Hashable]) -> Int[_Array, " n"]:
    """Equal names as equal numbers, from 0 in the order in which they come."""
    known = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return np.array([known[name] for name in names])


def _totals(
    sample: Sample, statistic: Callable, seed: int, n_resamples: int
) -> tuple[Float[_Array, "n_resamples groups"], Int[_Array, "n_resamples groups"]]:
    """Times that each group is drawn, and times these its statistic in each resample, NaN without a value."""
    times, drawn = crossed_draws(sample, seed=seed, n_resamples=n_resamples)
    totals = np.zeros(times.shape)
    for g, (group, numbers) in enumerate(zip(sample.groups, sample.queries, strict=True)):
        rows = np.flatnonzero(times[:, g])
        totals[rows, g] = times[rows, g] * _of_counts(statistic, group, drawn[rows][:, numbers].astype(float))
    return totals, times


@lru_cache(maxsize=8)  # conditions that saw the same seeds and queries share their draws, hundreds of times in a figure
def _draws(n_seeds: int, n_queries: int, n_resamples: int, seed: int) -> tuple[_Array, _Array]:
    """Times that each seed and each query is drawn, (n_resamples, n_seeds) and (n_resamples, n_queries)."""
    generator = np.random.default_rng(seed)
    counts = []
    for n in (n_seeds, n_queries):
        places = generator.integers(n, size=(n_resamples, n)) + n * np.arange(n_resamples)[:, None]
        counts.append(np.bincount(places.ravel(), minlength=places.size).reshape(places.shape).astype(np.int16))
        counts[-1].flags.writeable = False
    return tuple(counts)


def _of_counts(statistic: Callable, group: tuple, counts: Float[_Array, "resamples n"]) -> Float[_Array, " resamples"]:
    """A statistic of a group in which example i stands counts[r, i] times: at once where possible, else by calls."""
    if weighted := _WEIGHTED.get(statistic):
        return weighted(counts, *group)
    drawn = (np.repeat(np.arange(counts.shape[1]), row.astype(int)) for row in counts)
    return np.array([statistic(*(array[d] for array in group)) if len(d) else np.nan for d in drawn], dtype=float)


def _ratio(a: Shaped[_Array, "..."], b: Shaped[_Array, "..."]) -> Float[_Array, "..."]:
    """a / b, NaN where b is zero."""
    return np.divide(a, b, out=np.full(b.shape, np.nan), where=b != 0)


# Statistics of resamples in which example i occurs counts[r, i] times; counts (resamples, n), results (resamples,).


def _weighted_mean(counts: _Array, values: _Array) -> _Array:
    return _ratio(counts @ values.reshape(len(values), -1).mean(1), counts.sum(1))


def _weighted_nanmean(counts: _Array, values: _Array) -> _Array:
    rows = values.reshape(len(values), -1)
    return _ratio(counts @ np.nansum(rows, 1), counts @ (~np.isnan(rows)).sum(1))


def _weighted_accuracy(counts: _Array, log_probs: _Array, labels: _Array) -> _Array:
    return _weighted_mean(counts, log_probs.argmax(1) == labels)


def _weighted_calibrated_accuracy(counts: _Array, log_probs: _Array, labels: _Array) -> _Array:
    totals = counts.sum(1)
    priors = _ratio(counts @ log_probs, np.broadcast_to(totals[:, None], (len(counts), log_probs.shape[1])))
    correct = (log_probs - priors[:, None]).argmax(2) == labels
    return _ratio((counts * correct).sum(1), totals)


def _weighted_macro_auc(counts: _Array, log_probs: _Array, labels: _Array) -> _Array:
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
    ratio_of_sums: lambda counts, a, b: _ratio(counts @ a, counts @ b),
    macro_auc: _weighted_macro_auc,
}


def _ends(resampled: Float[_Array, " n"], level: float) -> tuple[float, float]:
    """Quantiles of the resamples that have a value; NaN without any."""
    defined = resampled[~np.isnan(resampled)]
    if not len(defined):
        return float("nan"), float("nan")
    tail = (1 - level) / 2
    low, high = np.quantile(defined, (tail, 1 - tail))
    return float(low), float(high)


def _log_odds(log_probs: Float[_Array, "n c"], c: int) -> Float[_Array, " n"]:
    return log_probs[:, c] - np.logaddexp.reduce(np.delete(log_probs, c, axis=1), axis=1)
