"""Checks for the measures of the comparison."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.stats import nct
from scipy.stats import t as student_t
from torch import Tensor

from explainer.exercises import checks
from explainer.theory import metrics, positive_control, statistics


@checks.check("first find the queries that zero-shot gets wrong and fine-tuning gets right.")
def rec2ftp(reader_fn: Callable[[np.ndarray, np.ndarray, np.ndarray], float]) -> None:
    """Check a function (zsl, icl, ft), each (n,) and true where an answer is right, -> Rec2FTP, a share.

    Properties: 1 where ICL repairs all that FT repairs and 0 where it repairs nothing of it; queries that ZSL gets
    right or FT gets wrong do not count; a hand-counted case; random cases.
    Raises: AssertionError with a hint.
    """

    def answer(zsl: Sequence[int], icl: Sequence[int], ft: Sequence[int]) -> float:
        return float(checks.call_array(reader_fn, *(np.array(right, dtype=bool) for right in (zsl, icl, ft)), shape=()))

    checks.require(
        np.isclose(answer([0, 0, 0], [1, 1, 0], [1, 1, 0]), 1),
        "ICL repairs both queries that FT repairs, and the share is not 1; divide by the number of FT's repairs.",
    )
    checks.require(
        np.isclose(answer([0, 0, 0], [0, 0, 1], [1, 1, 0]), 0),
        "ICL repairs none of FT's repairs, and the share is not 0; count queries that both get right.",
    )
    checks.require(
        np.isclose(answer([0, 0, 0], [1, 1, 1], [1, 0, 0]), 1),
        "queries that FT gets wrong count; Rec2FTP asks only about what FT repairs.",
    )
    checks.require(
        np.isclose(answer([1, 1, 0, 0], [1, 1, 0, 1], [1, 1, 1, 1]), 1 / 2),
        "queries that ZSL gets right count; nothing can be repaired there.",
    )
    for zsl, icl, ft in np.random.default_rng(0).random((5, 3, 40)) < 0.5:
        expected = metrics.rec2ftp(*map(torch.from_numpy, (zsl, icl, ft)))
        checks.require(
            np.isclose(answer(zsl, icl, ft), expected),
            f"for random answers the result is not {expected:.3f}; count step by step what ZSL, FT and ICL get right.",
        )
    print("Passed: a share of what FT repairs, and nothing else counts.")


@checks.check("sort the p-values; the smallest is multiplied by m, the next by m - 1, and so on.")
def holm(reader_fn: Callable[[np.ndarray], np.ndarray]) -> None:
    """Check a function p_values (m,) -> p-values (m,) corrected for their number by Holm's procedure.

    Properties: one p-value stays; the smallest is multiplied by m; none exceeds 1 or overtakes a larger one; the order
    of the p-values does not matter; a hand-counted case; random cases.
    Raises: AssertionError with a hint.
    """

    def answer(*p_values: float) -> np.ndarray:
        return checks.call_array(reader_fn, np.array(p_values), shape=(len(p_values),))

    checks.require(np.allclose(answer(0.03), 0.03), "a single p-value should stay as it is; look at the factor.")
    checks.require(
        np.isclose(answer(0.001, 0.5, 0.6)[0], 0.003),
        "the smallest of three p-values is not multiplied by three; look at the factor of the first.",
    )
    checks.require(
        np.isclose(answer(0.001, 0.01, 0.6)[1], 0.02),
        "the second of three is not multiplied by two; Holm's factors fall from m to 1.",
    )
    checks.require((answer(0.9, 0.8, 0.7) <= 1).all(), "a corrected p-value is larger than 1; cut it there.")
    checks.require(
        np.isclose(answer(0.04, 0.045)[1], 0.08),
        "a larger p-value ends below a smaller one; each takes the largest of the corrected ones up to its place.",
    )
    checks.require(
        np.allclose(answer(0.6, 0.01, 0.001), answer(0.001, 0.01, 0.6)[::-1]),
        "the order in which the p-values come changes the result; sort them, correct, and put them back.",
    )
    for p_values in np.random.default_rng(0).random((5, 6)) ** 3:
        checks.require(
            np.allclose(answer(*p_values), statistics.holm(p_values)),
            f"for {p_values.round(3).tolist()} the result differs from Holm's; compare it step by step on paper.",
        )
    print("Passed: factors from m to 1, never above 1, never out of order.")


@checks.check("count the pairs of tokens that both sides put in the same order, and those in opposite orders.")
def kendall_tau(reader_fn: Callable[[np.ndarray, np.ndarray], float]) -> None:
    """Check a function (x (T,), y (T,)) of scores without ties -> (P_c - P_d) / (T (T - 1) / 2).

    Properties: 1 for a ranking and itself, -1 for the reversed one; unchanged by increasing transforms; a hand-counted
    case; random cases of several lengths.
    Raises: AssertionError with a hint.
    """

    def answer(x: np.ndarray, y: np.ndarray) -> float:
        return float(checks.call_array(reader_fn, x, y, shape=()))

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 6))
    checks.require(
        np.isclose(answer(x, x), 1),
        "a ranking compared with itself does not give 1; there are T (T - 1) / 2 pairs, each counted once.",
    )
    checks.require(
        np.isclose(answer(x, -x), -1), "a reversed ranking does not give -1; discordant pairs count against the others."
    )
    checks.require(
        np.isclose(answer(np.exp(2 * x), y), answer(x, y)),
        "an increasing transform of the scores changes the result; only the order within each pair may matter.",
    )
    checks.require(
        np.isclose(answer(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0])), 4 / 6),
        "five concordant pairs and one discordant of six do not give 4/6; look at which pairs are compared.",
    )
    for T in (2, 5, 9):
        x, y = rng.normal(size=(2, T))
        pairs = [(i, j) for i in range(T) for j in range(i)]
        expected = np.mean([np.sign((x[i] - x[j]) * (y[i] - y[j])) for i, j in pairs])
        checks.require(
            np.isclose(answer(x, y), expected),
            f"two random rankings of {T} places do not give P_c - P_d over all pairs.",
        )
    print("Passed: concordant minus discordant pairs over all pairs, whatever the scores' scale.")


@checks.check("the nearest matrix with rows in the span of the keys is dW K^+ K; which factor holds the values?")
def best_values(reader_fn: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Check a function (dW (d_v, d), keys (T, d)) -> values (T, d_v) for which sum_t v_t k_t^T is nearest to dW.

    Nearest by the cosine, so any positive multiple is right. Properties: one key by hand; for several keys the cosine
    is the highest there is.
    Raises: AssertionError with a hint.
    """
    randn = checks.random_tensors()
    dW, key = randn(3, 4), randn(1, 4)
    values = checks.call(reader_fn, dW, key, shape=(1, 3))
    checks.require(
        _cosine(values, key @ dW.T) > 1 - checks.TOLERANCE,
        "with a single key k, the value should point along dW k; look at the sign and at which side dW is multiplied.",
    )
    for T, d_v, d in [(2, 3, 5), (3, 4, 4), (4, 2, 7)]:
        dW, keys = randn(d_v, d), randn(T, d)
        values = checks.call(reader_fn, dW, keys, shape=(T, d_v))
        highest = positive_control.update_cosine_ceiling(dW, keys).item()
        found = _cosine(values.T @ keys, dW)
        checks.require(
            np.isclose(found, highest),
            f"with {T} keys the cosine is {found:.3f}, and {highest:.3f} can be reached; keys that are not at right "
            "angles share directions, so project on all of them together.",
        )
    print("Passed: no other values of these tokens come nearer to the update.")


def _cosine(A: Tensor, B: Tensor) -> float:
    return ((A * B).sum() / (A.norm() * B.norm())).item()


@checks.check("the half width with S draws is t(.975, S - 1) times the spread over the root of S.")
def draws_needed(reader_fn: Callable[[float, float], int]) -> None:
    """Check a function (spread, difference) -> the fewest draws, at least 2, whose 95 % interval is narrower.

    The half width of Student's interval of S draws with this standard deviation has to be below the difference.
    Raises: AssertionError with a hint.
    """
    for spread, difference in [(1.0, 0.5), (1.0, 0.1), (0.05, 0.05), (0.02, 0.5)]:
        found = int(checks.run(lambda *given: int(reader_fn(*given)), spread, difference))
        checks.require(found >= 2, f"{found} draws have no spread; start with two.")
        checks.require(
            _half_width(spread, found) < difference,
            f"with {found} draws of spread {spread:g} the interval still reaches {difference:g} from its middle; take "
            "Student's t with S - 1 degrees of freedom, and not the normal distribution.",
        )
        checks.require(
            found == 2 or _half_width(spread, found - 1) >= difference,
            f"{found - 1} draws of spread {spread:g} would do for {difference:g}; look for the fewest.",
        )
    print("Passed: so many draws settle a difference of this size, if the spread is right.")


def _half_width(spread: float, draws: int) -> float:
    return float(student_t.ppf(0.975, draws - 1) * spread / np.sqrt(draws))


@checks.check("take the end of Student's interval that is farther from zero.")
def not_excluded(reader_fn: Callable[[Sequence[float]], float]) -> None:
    """Check a function (differences (S,)) -> the largest absolute value in the 95 % Student interval of their mean.

    Raises: AssertionError with a hint.
    """
    for differences in ([0.02, -0.01, 0.03], [-0.04, -0.05, 0.01, -0.02], [0.1, -0.1, 0.2, -0.1, 0.1, -0.1]):
        S, mean, spread = len(differences), np.mean(differences), np.std(differences, ddof=1)
        found, half = checks.run(lambda given: float(reader_fn(given)), differences), _half_width(spread, S)
        checks.require(
            not np.isclose(found, half), f"of {differences} this is the half width alone; the middle is not at zero."
        )
        checks.require(
            not np.isclose(found, abs(mean + half)) or mean >= 0,
            "where the mean is negative, the lower end is farther from zero.",
        )
        checks.require(
            np.isclose(found, abs(mean) + half),
            f"the interval of {differences} reaches {abs(mean) + half:.4g} from zero, and you say {found:.4g}; the "
            "spread of S draws has S - 1 in its denominator, and so has Student's t.",
        )
    print("Passed: what is farther from zero than this is excluded.")


@checks.check("the mean of S draws, in units of its standard error, has a noncentral Student distribution.")
def power(reader_fn: Callable[[float, float, int], float]) -> None:
    """Check a function (spread, difference, S) -> the probability that S draws settle a true difference.

    It is settled where the 95 % Student interval of the mean excludes zero.
    Raises: AssertionError with a hint.
    """
    for spread, difference, S in [(1.0, 1.0, 5), (0.05, 0.02, 20), (1.0, -0.5, 10), (1.0, 0.0, 6)]:
        found = checks.run(lambda *given: float(reader_fn(*given)), spread, difference, S)
        critical, shift = student_t.ppf(0.975, S - 1), difference / spread * np.sqrt(S)
        expected = nct.sf(critical, S - 1, shift) + nct.cdf(-critical, S - 1, shift)
        checks.require(
            difference != 0 or np.isclose(found, 0.05, atol=0.01),
            f"without any difference the interval excludes zero in one of twenty studies, and you say {found:.3g}.",
        )
        checks.require(
            np.isclose(found, expected, atol=0.02),
            f"{S} draws of spread {spread:g} settle a difference of {difference:g} with probability {expected:.3f}, "
            f"and you say {found:.3f}.",
        )
    print("Passed: so often a study of this size finds what is there.")


@checks.check("the time grows with the draws and with the weights.")
def core_hours(reader_fn: Callable[[float, int, int, float], float]) -> None:
    """Check a function (hours, draws, wanted, c) -> hours of one core for the wanted draws on c times the weights.

    Raises: AssertionError with a hint.
    """
    for hours, draws, wanted, c in [(10.0, 5, 20, 1.0), (10.0, 5, 5, 20.0), (6.5, 4, 10, 3.0)]:
        found = checks.run(lambda *given: float(reader_fn(*given)), hours, draws, wanted, c)
        expected = hours * wanted / draws * c
        checks.require(
            np.isclose(found, expected),
            f"{draws} draws took {hours:g} hours; {wanted} draws on {c:g} times the weights take {expected:g}, and you "
            f"say {found:g}.",
        )
    print("Passed: so many hours does it take, if nothing else grows.")


@checks.check("measure everything from the floor: value minus floor, over ceiling minus floor.")
def share_of_the_way(reader_fn: Callable[[float, float, float], float]) -> None:
    """Check a function (floor, value, ceiling) -> where the value stands between them.

    Properties: 0 at the floor and 1 at the ceiling; the same in other units and with another zero.
    Raises: AssertionError with a hint.
    """

    def answer(*given: float) -> float:
        return checks.run(lambda *numbers: float(reader_fn(*numbers)), *given)

    checks.require(np.isclose(answer(0.2, 0.2, 0.7), 0), "a value at the floor should be at 0 of the way.")
    checks.require(np.isclose(answer(0.2, 0.7, 0.7), 1), "a value at the ceiling should be at 1 of the way.")
    checks.require(np.isclose(answer(0.2, 0.1, 0.7), -0.2), "below the floor the share is negative; do not clip it.")
    for floor, value, ceiling in np.random.default_rng(0).random((5, 3)):
        same = answer(3 * floor - 1, 3 * value - 1, 3 * ceiling - 1)
        checks.require(np.isclose(answer(floor, value, ceiling), same), "another unit or zero changes the share.")
    print("Passed: 0 is the floor, 1 the ceiling, and no unit is left.")
