"""What many finished comparisons say together: intervals, a fair selection, tables."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.stats import t as student_t

from explainer.experiments import comparison, study
from explainer.experiments.comparison import Cell, require
from explainer.lab.store import GRIDS, Identity, Store, Stored, published_directory
from explainer.theory import statistics
from explainer.theory.statistics import Interval, PairedDifference, RatioInterval


def stored(grid: str, **where: Any) -> list[Stored]:
    """The results of a grid of the stored studies whose cells have the given values, in the order of the grid.

    `stored("pairs", task="capitals", control="none")` are those of five seeds. Raises StudyError for an unknown grid,
    for values that no cell of it has, and for a cell that is not stored, and ResultsError for a damaged file.
    """
    place = published_directory()
    grids = study.read_grids(place / GRIDS)
    require(grid in grids, f"there is no grid {grid!r} in {place / GRIDS}; it has {', '.join(grids)}.")
    cells = [c for c in grids[grid] if all(getattr(c, key) == value for key, value in where.items())]
    require(bool(cells), f"no cell of the grid {grid!r} has {where}.")
    return [_result_of(cell, place) for cell in cells]


def _result_of(cell: Cell, place: Path) -> Stored:
    """Of the setting and of today's protocol; what else a cell is made of, its file says."""
    known = {"cell": asdict(cell), "dtype": "float32", "protocol": comparison.PROTOCOL}
    found = Store(place).load(Identity(cell.slug, known))
    command = f"explainer study --grid {place / GRIDS} --results {place}"
    require(found is not None, f"{cell.slug} is not stored in {place}; compute it: {command}")
    return found


def by(finished: Sequence[Stored], *keys: str) -> dict[Any, list[Stored]]:
    """The results grouped by what their cells are, as `by(finished, "task")` or `by(finished, "task", "k")`."""
    groups: dict[Any, list[Stored]] = {}
    for one in finished:
        cell = one.identity["cell"]
        groups.setdefault(cell[keys[0]] if len(keys) == 1 else tuple(cell[key] for key in keys), []).append(one)
    return groups


def made(finished: Sequence[Stored]) -> str:
    """Where stored numbers come from, in one sentence: seeds, queries, checkpoint, number format, versions, seconds."""
    cells = [Cell(**one.identity["cell"]) for one in finished]
    runs = [json.loads(one.path.with_suffix(".run").read_text("utf-8")) for one in finished]
    dtype, provenance = finished[0].identity["dtype"], finished[0].provenance
    return (
        f"Stored: {len(finished)} cells, seeds {_range(cell.seed for cell in cells)}, "
        f"{_range(cell.n_queries for cell in cells)} queries each, k = {_range(cell.k for cell in cells)}; "
        f"{cells[0].checkpoint}, {dtype}, {provenance['device']}, "
        f"torch {provenance['versions']['torch']}; {sum(run['cpu_seconds'] for run in runs):.0f} CPU seconds; "
        "computed by explainer study (see Reproduce)."
    )


def _range(numbers: Iterable[int]) -> str:
    distinct = sorted(set(numbers))
    whole = len(distinct) > 2 and distinct == list(range(distinct[0], distinct[-1] + 1))
    return f"{distinct[0]} to {distinct[-1]}" if whole else ", ".join(map(str, distinct))


_STATISTICS: Mapping[str, Callable[..., float]] = {
    "accuracy": lambda correct, *_: correct.mean(),
    "calibrated_accuracy": lambda _, log_probs, labels: statistics.calibrated_accuracy(log_probs, labels),
    "macro_f1": lambda _, log_probs, labels: statistics.macro_f1(log_probs, labels),
    "auc": lambda _, log_probs, labels: statistics.macro_auc(log_probs, labels),
}


def prediction_interval(finished: Sequence[Stored], state: str, measure: str = "accuracy", **options) -> Interval:
    """A measure of the predictions of "zsl", "icl" or "ft", with its interval over seeds and queries.

    The results should differ in their seeds only. Measures: accuracy, calibrated_accuracy, macro_f1, auc; options as
    in `explainer.theory.statistics.bootstrap_interval`. Raises StudyError where a result has no such predictions.
    """
    require(measure in _STATISTICS, f"there is no measure {measure!r}; known: {', '.join(_STATISTICS)}.")
    groups = []
    for stored in finished:
        correct, labels = _correct(stored, state), stored.result["setting"]["labels"]
        require(measure == "accuracy" or labels is not None, f"{measure!r} needs labels; use 'accuracy'.")
        arrays = [correct]
        if labels is not None:
            arrays += [np.array(stored.result["predictions"][state]["log_probs"]), np.array(labels)]
        groups.append(tuple(arrays))
    return statistics.bootstrap_interval(groups, _STATISTICS[measure], **options)


def prediction_values(finished: Sequence[Stored], state: str) -> list[tuple[np.ndarray]]:
    """Whether each query is right, one array (n,) per result, as the groups of `explainer.theory.statistics`."""
    return [(_correct(stored, state),) for stored in finished]


def _correct(stored: Stored, state: str) -> np.ndarray:
    row = stored.result["predictions"][state]
    require(row is not None, f"{stored.path.name} has no predictions of {state!r}: {stored.result['reasons']}")
    return np.array(row["correct"], dtype=bool)


def rec2ftp_interval(finished: Sequence[Stored], **options) -> RatioInterval:
    """Rec2FTP of all queries of all seeds, with its interval over seeds and queries; options as in `ratio_interval`.

    Raises StudyError where FT diverged.
    """
    groups = []
    for stored in finished:
        zsl, icl, ft = (_correct(stored, state) for state in ("zsl", "icl", "ft"))
        groups.append((~zsl & icl & ft, ~zsl & ft))
    return statistics.ratio_interval(groups, **options)


def similarity_values(finished: Sequence[Stored], measure: str) -> list[tuple[np.ndarray]]:
    """A similarity of each query, mean over layers, one array (n,) per result, NaN where it does not exist.

    As the groups of `explainer.statistics`. Measures that are centred over queries (tangent, residual) keep their
    centre when queries are resampled, which ignores that it moves. Raises StudyError where a result has none.
    """
    return [(_numbers(_entry(stored, measure)["queries"]),) for stored in finished]


def similarity_interval(finished: Sequence[Stored], measure: str, **options) -> Interval:
    """A similarity, mean over layers and queries, with its interval over seeds and queries; as `similarity_values`."""
    return statistics.bootstrap_interval(similarity_values(finished, measure), np.nanmean, **options)


class Curve(NamedTuple):
    """One value per layer and the ends of its 95 % interval."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def layer_curve(finished: Sequence[Stored], measure: str) -> Curve:
    """A similarity in each layer: mean over seeds, with Student's interval, mean +- t sd / sqrt(seeds).

    Queries are many and seeds are few, so that the spread over seeds decides. Raises StudyError as above, and for a
    single result, which has no spread.
    """
    require(len(finished) > 1, f"an interval over seeds needs at least 2 results, there are {len(finished)}.")
    rows = np.array([_numbers(_entry(stored, measure)["layers"]) for stored in finished])
    return Curve(*student_interval(rows))


def student_interval(values: Float[np.ndarray, "n ..."]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean over the first axis and the ends of its 95 % interval, mean +- t sd / sqrt(n); n is at least 2."""
    mean, n = values.mean(0), len(values)
    half = student_t.ppf(0.975, n - 1) * values.std(0, ddof=1) / np.sqrt(n)
    return mean, mean - half, mean + half


class Comparison(NamedTuple):
    """A difference of two conditions and its p-value, corrected for the number of comparisons."""

    difference: PairedDifference
    p_adjusted: float


def comparisons(
    pairs: Mapping[str, tuple[Sequence[tuple], Sequence[tuple]]],
    statistic: Callable[..., float] = np.nanmean,
    **options,
) -> dict[str, Comparison]:
    """Paired differences of conditions A and B that saw the same seeds and queries, corrected by Holm's procedure.

    `pairs[name]` are the values of A and B, as `similarity_values` or `prediction_values` gives them. Resamples are
    enough for the correction (`explainer.theory.statistics.paired_difference`, whose options these are).
    """
    options = {"n_resamples": max(2000, 100 * len(pairs))} | options
    differences = {name: statistics.paired_difference(a, b, statistic, **options) for name, (a, b) in pairs.items()}
    adjusted = statistics.holm(np.array([difference.p_value for difference in differences.values()]))
    return {name: Comparison(d, float(p)) for (name, d), p in zip(differences.items(), adjusted, strict=True)}


def _entry(stored: Stored, measure: str) -> Mapping[str, Any]:
    entry = (stored.result["similarity"] or {}).get(measure)
    require(entry is not None, f"{stored.path.name} has no {measure!r}: {stored.result['reasons']}")
    return entry


def _numbers(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values])


def selected(finished: Sequence[Stored], split: str = "selection") -> Stored:
    """The result on the split "report" with the seed and learning rate that are best on `split`.

    The seed by the accuracy of ICL, then the learning rate by that of FT with this seed; the smaller one of equals,
    and none that diverged. With `split="report"` it is the selection of Dai et al. (2023), who report on the queries
    they select on. The results should differ in seed, learning rate and split only, as a `grid` with the splits
    "selection" and "report" gives them. Raises StudyError if there is nothing to select from.
    """
    by_cell = {Cell(**stored.identity["cell"]): stored for stored in finished}
    candidates = sorted(
        (cell for cell, stored in by_cell.items() if cell.split == split and stored.result["predictions"]["ft"]),
        key=lambda cell: (cell.seed, cell.lr),
    )
    require(bool(candidates), f"none of the results on the split {split!r} has an FT that did not diverge.")

    def right(cell: Cell, state: str) -> float:
        return by_cell[cell].result["predictions"][state]["accuracy"]

    seed = max(candidates, key=lambda cell: right(cell, "icl")).seed
    best = max((cell for cell in candidates if cell.seed == seed), key=lambda cell: right(cell, "ft"))
    report = replace(best, split="report")
    require(report in by_cell, f"{report.slug} is selected but not among the results; compute it.")
    return by_cell[report]


def table(finished: Iterable[Stored]) -> list[tuple[str, ...]]:
    """A short row of text for each result, below a row of titles."""
    rows = [("cell", "n", "ZSL", "ICL", "FT", "Rec2FTP", "SimAOU", "floor", "note")]
    for stored in finished:
        cell, result = Cell(**stored.identity["cell"]), stored.result
        right = [_text(_at(result, "predictions", name, "accuracy")) for name in ("zsl", "icl", "ft")]
        aou = [_text(_at(result, "similarity", name, "mean")) for name in ("sim_aou", "sim_aou_isotropic")]
        recall = _at(result, "rec2ftp", "value")
        note = "; ".join(result["reasons"].values())
        rows.append((cell.slug, str(cell.n_queries), *right, _text(recall), *aou, note))
    return rows


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value and value.get(key)
    return value


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
