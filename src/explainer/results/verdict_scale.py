"""How far from floor to ceiling: each similarity and each causal test of a context and a training, on one scale.

The floor is the value where the lesson plays no part, the ceiling the value where the claim is as true as it can be.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from explainer.data.files import PUBLISHED
from explainer.errors import ExperimentError, ResultsError
from explainer.results import aggregate, agreement, published
from explainer.results.agreement import UpdateFilter
from explainer.theory import statistics
from explainer.theory.statistics import Interval

_SIMILARITIES = {
    "attention outputs (SimAOU)": "sim_aou",
    "the same, query by query (residual)": "sim_aou_residual",
    "weights (cos ΔW)": "update_cosine",
}
_OF_PAIRS = tuple(f"{name}{swapped}" for name in _SIMILARITIES for swapped in ("", ", context swapped"))
_SHARED = {
    "fine-tuning needs what is common": ("ft_across_near", "ft_across_icl", "zsl"),
    "the context needs what is common": ("across_near", "across_ft", "zsl"),
}
"""Interventions of `shared_part`, taken out, whose shares of right answers are floor, measured value and ceiling."""
_PATCH = {"the mean patch answers": ("patch_foreign_mean", "patch_mean", "icl")}
"""Interventions of `causal_tests`."""
_EXPLAINED = {
    "steps explain the change (R²)": (
        "r2_icl_foreign",
        "r2_icl_own",
        "r2_descent_own",
    )
}
_LESSONS = {
    "the same": "own",
    "the same, in another order": "reordered",
    "other examples of the task": "other",
    "shuffled answers": "shuffled",
    "another task": agreement.FOREIGN,
    "made-up words": "nonsense",
}
ICL, FT = UpdateFilter("ICL"), UpdateFilter("FT", epochs=10)

_BOOK: Mapping[str, str] = {"agreement": "agreement", "shared_part": "shared-part", "causal_tests": "causal-tests"}
"""The grids of the verdict of the book, by the folder of their experiment."""

_SETTING = ("k", "n_queries", "lr", "epochs", "split", "loss", "tasks", "n_selection", "rate", "training", "batch")
"""What settings of one checkpoint and task must have in common."""

_BOUNDED = ("all", "bounds")
"""Values of `lessons` with which a setting of the agreement has every floor and every ceiling."""


def lesson_swaps(pairs: pd.DataFrame, measure: str, training: UpdateFilter = FT) -> dict[str, dict[str, Interval]]:
    """A measure of a context and a training when either learns another lesson, beside two trainings and two contexts.

    Means over tasks with Student's interval over seeds, by who is compared and then by the lesson of the swapped side,
    as far as the pairs have it.
    """
    kinds = {
        "context and training, training swapped": (ICL, training),
        "context and training, context swapped": (training, ICL),
        "two trainings": (training, training),
        "two contexts": (ICL, ICL),
    }
    return {kind: _swapped(pairs, measure, *two) for kind, two in kinds.items()}


def _swapped(pairs: pd.DataFrame, measure: str, kept: UpdateFilter, swapped: UpdateFilter) -> dict[str, Interval]:
    found = {}
    for name, lesson in _LESSONS.items():
        chosen = agreement.pairs_between(pairs, kept, replace(swapped, lesson=lesson))
        if len(chosen) and not (kept == swapped and lesson == "own"):
            found[name] = agreement.over_tasks(chosen, measure)
    return found


def n_complete_seeds(pairs: pd.DataFrame, training: UpdateFilter = FT) -> dict[str, int]:
    """How many seeds have a training on each lesson of `lesson_swaps` that diverged on no task."""
    trained = {name: agreement.pairs_between(pairs, ICL, replace(training, lesson=of)) for name, of in _LESSONS.items()}
    return {name: len(agreement.by_seed(of, "sim_aou")) for name, of in trained.items() if len(of)}


def cost_of_other_examples(pairs: pd.DataFrame, measure: str, training: UpdateFilter = FT) -> dict[str, Interval]:
    """What a measure loses when one side has other examples of the task, and what it would if examples counted.

        training swapped    own - s(c_own, f_other)
        context swapped     own - s(c_other, f_own)
        both swapped        [own + s(c_other, f_other) - s(c_own, f_other) - s(c_other, f_own)] / 2
        yardstick           own sqrt((1 - C) (1 - F)),  C = s(c_own, c_other), F = s(f_own, f_other)
        order aside         own sqrt((C_r - C) (F_r - F)),  C_r and F_r of the own lesson in two orders

    Either swap alone also asks what this training, or this context, is like; the third leaves that out. The yardstick
    is what the fall would be if what is special to the examples agreed as well as the whole does. It counts the order
    of training as special to the examples; "order aside" does not. Means over tasks, Student over seeds
    (`agreement.mean_difference`); "both swapped" and "order aside" only where the pairs have what they take.
    """
    icl_other, ft_other = (replace(side, lesson="other") for side in (ICL, training))
    own, by_training, by_context, by_both = (
        agreement.pairs_between(pairs, *two)
        for two in ((ICL, training), (ICL, ft_other), (icl_other, training), (icl_other, ft_other))
    )
    found = {
        "training swapped": agreement.mean_difference(own, by_training, measure),
        "context swapped": agreement.mean_difference(own, by_context, measure),
    }
    if len(by_both):
        corners = pd.concat([own, by_both]), pd.concat([by_training, by_context])
        # Where FT diverged one swap alone would count.
        kept, swapped = (_where_known(of, by_both) for of in corners)
        found["both swapped"] = agreement.mean_difference(kept, swapped, measure)

    def of_two(lesson: str) -> list[pd.Series]:
        kinds = (agreement.pairs_between(pairs, side, replace(side, lesson=lesson)) for side in (ICL, training))
        return [agreement.by_seed(of, measure) for of in kinds if len(of)]

    (C, F), s, reordered = of_two("other"), agreement.by_seed(own, measure), of_two("reordered")
    found["yardstick"] = statistics.student((s * ((1 - C) * (1 - F)) ** 0.5).dropna())
    if len(reordered) == 2:
        special = [(same - each).clip(lower=0) for same, each in zip(reordered, (C, F), strict=True)]
        found["order aside"] = statistics.student((s * (special[0] * special[1]) ** 0.5).dropna())
    return found


CORNERS = ["own", "training_other", "context_other", "both_other", "contexts", "trainings"]
"""Columns of tables with `cost_of_other_examples`: the own examples, others on either side and on both, C and F."""


def cost_of_both(m: pd.Series) -> float:
    """What other examples on either side cost, of the means of CORNERS: "both swapped"."""
    return (m.own + m.both_other - m.training_other - m.context_other) / 2


def yardstick(m: pd.Series) -> float:
    """What they would cost if what is special to the examples agreed as well as the whole does."""
    return m.own * ((1 - m.contexts) * (1 - m.trainings)) ** 0.5


def _where_known(pairs: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """The pairs of the seeds and tasks that others have, too."""
    keys = ["seed", "task"]
    return pairs[pairs.set_index(keys).index.isin(others.set_index(keys).index)]


def rows_by_seed(
    pairs: pd.DataFrame,
    shared: pd.DataFrame | None,
    answered: pd.DataFrame | None,
    settings: pd.DataFrame | None,
    training: UpdateFilter = FT,
) -> dict[str, tuple[pd.Series, pd.Series, pd.Series]]:
    """Floor, measured value and ceiling of every row, by seed.

    `pairs` are those of the experiment "agreement", `shared` the queries of "shared_part", `answered` and `settings`
    the tables "queries" and "settings" of "causal_tests"; None leaves out the rows of a table.
    """
    rows = of_similarities(pairs, training)
    for table, value, names in (
        (shared, _right, _SHARED),
        (answered, _right, _PATCH),
        (settings, _explained, _EXPLAINED),
    ):
        if table is not None:
            for name, (floor, measured, ceiling) in names.items():
                rows[name] = value(table, floor), value(table, measured), value(table, ceiling)
    if answered is not None:
        for name in _PATCH:  # a patch that gives less than none carries nothing
            floor, measured, ceiling = rows[name]
            rows[name] = max(floor, _right(answered, "zsl"), key=lambda of: of.mean()), measured, ceiling
    return rows


def of_similarities(
    pairs: pd.DataFrame, training: UpdateFilter = FT
) -> dict[str, tuple[pd.Series, pd.Series, pd.Series]]:
    """Floor, value and ceiling of each similarity, by seed.

    There are two floors: made-up words in the training, and in the context. The ceiling is two trainings on different
    examples of the task.
    """

    def similar(first: UpdateFilter, second: UpdateFilter, measure: str) -> pd.Series:
        return agreement.by_seed(agreement.pairs_between(pairs, first, second), measure)

    in_training, in_context = (replace(side, lesson="nonsense") for side in (training, ICL))
    made_up = {"": (ICL, in_training), ", context swapped": (in_context, training)}
    return {
        f"{name}{swapped}": (
            similar(*floor, measure),
            similar(ICL, training, measure),
            similar(training, replace(training, lesson="other"), measure),
        )
        for name, measure in _SIMILARITIES.items()
        for swapped, floor in made_up.items()
    }


NormalisedPositions = dict[str, dict[str, dict[str, Interval]]]
"""What `normalised_position` gives, by checkpoint and row."""


def of_book() -> NormalisedPositions:
    """`verdict` of the checkpoint of the book, from the tables of the package."""
    return {f"{name} (the book)": rows for name, rows in verdict(PUBLISHED, _BOOK).items()}


def verdict(directory: str | Path, grids: Mapping[str, str] = MappingProxyType({})) -> NormalisedPositions:
    """`normalised_position` of every row of the verdict, by checkpoint, from the published tables of a directory.

    Every setting counts that reports and has all lessons, or those of `grids`, by folder; a training is the whole one
    of its setting. The tables of shared parts and of causal tests may be missing, and then their rows are; so is a row
    without a value. A share is NaN where the ceiling is above the floor for some seeds and below it for others.
    Raises ResultsError, which names the command, without tables of the agreement, and ExperimentError where settings
    differ in more than checkpoint, task and seed.
    """
    directory = Path(directory)
    pairs = _whole(_agreement(directory / "agreement", grids.get("agreement")))
    others = [
        by_checkpoint(reported(directory / name, table, grids.get(name), **usual))
        for name, table, usual in (
            ("shared_part", "queries", {"layer_causal_lr": 0}),
            ("causal_tests", "queries", {"model": "trained"}),
            ("causal_tests", "settings", {"model": "trained"}),
        )
    ]
    found, gains = {}, _gains(directory, grids.get("agreement"))
    for checkpoint, its in by_checkpoint(pairs).items():
        rows = rows_by_seed(its, *(of.get(checkpoint) for of in others), training=UpdateFilter("FT"))
        known = {name: three for name, three in rows.items() if all(of.notna().any() for of in three)}
        learns = bool(gains[checkpoint].low > 0)
        found[checkpoint] = {name: _way(*three, learns=learns) for name, three in known.items()}
    return found


def by_checkpoint(rows: pd.DataFrame | None) -> dict[str, pd.DataFrame]:
    """The rows of each checkpoint; none where nothing is published."""
    return {} if rows is None else aggregate.split(rows, "checkpoint")


def _way(floor: pd.Series, value: pd.Series, ceiling: pd.Series, *, learns: bool = True) -> dict[str, Interval]:
    """`normalised_position`, without a share where nothing is learned.

    Nor where the ceiling is not on one side of the floor for all seeds.
    """
    whole = (ceiling - floor).dropna()
    if learns and ((whole > 0).all() or (whole < 0).all()):
        return normalised_position(floor, value, ceiling)
    three = {"floor": floor, "measured": value, "ceiling": ceiling}
    no_share = {"share of the way": Interval(*3 * [float("nan")])}
    return {name: statistics.student(of.dropna()) for name, of in three.items()} | no_share


def missing_rows(rows: Iterable[str]) -> dict[str, list[str]]:
    """The rows of the verdict of whose experiment there is none, by the folder of its tables."""
    of = {"agreement": _OF_PAIRS, "shared_part": tuple(_SHARED), "causal_tests": tuple(_PATCH | _EXPLAINED)}
    return {folder: list(names) for folder, names in of.items() if not {*names} & {*rows}}


def sentences_not_learned(directory: str | Path) -> list[str]:
    """`sentence_not_learned` of each checkpoint of `verdict` that has no share for this reason."""
    gains = _gains(Path(directory))
    return [sentence_not_learned(name, gain) for name, gain in gains.items() if not gain.low > 0]


def sentence_not_learned(checkpoint: str, gain: Interval) -> str:
    """What is said of a checkpoint to whose right answers demonstrations add nothing that is settled above zero."""
    more = "" if math.isfinite(gain.low) else " One draw has no interval; give --seeds several numbers."
    return (
        f"{checkpoint}: demonstrations add {gain:.2f} to what is right without them, or with the most frequent label "
        f"for all if that is more. That it learns in context is not settled, so there is no learning that could be "
        f"like training, and no share of the way. `explainer look` tries other numbers of demonstrations.{more}"
    )


def gain_in_context(rows: pd.DataFrame) -> Interval:
    """What demonstrations add to right answers without them, or to those of one label, whichever are more in a task.

    Columns task, seed, n_queries, icl_accuracy, zsl_accuracy and, where answers are labels, one_label_accuracy. Where
    all seeds gain alike the interval is that of so many queries of each task (`statistics.independent_difference`).
    """
    without = rows["zsl_accuracy"]
    if "one_label_accuracy" in rows:
        one = rows["one_label_accuracy"].fillna(without)
        means = pd.DataFrame({"one": one, "without": without}).groupby(rows["task"]).transform("mean")
        without = one.where(means["one"] > means["without"], without)
    rows = rows.assign(without=without, gain=rows["icl_accuracy"] - without)
    n_queries = int(rows.groupby("task")["n_queries"].max().sum())
    gain, *shares = (agreement.over_tasks(rows, name) for name in ("gain", "icl_accuracy", "without"))
    after, before = (statistics.binomial_interval(share.estimate, n_queries) for share in shares)
    return statistics.widen_degenerate_difference(gain, after, before)


def _gains(directory: Path, grid: str | None = None) -> dict[str, Interval]:
    """What demonstrations add to the right answers of each checkpoint."""
    settings = published.rows_of_experiment(directory / "agreement", "settings", grid)
    reports = settings[settings["lessons"].isin(_BOUNDED) & (settings["split"] != "selection")]
    return aggregate.by_group(reports, "checkpoint", gain_in_context)


def _agreement(folder: Path, grid: str | None) -> pd.DataFrame:
    """The pairs of the settings that report and have all lessons, or of a checkpoint that has none such, the bounds."""
    pairs, changes = (published.rows_of_experiment(folder, table, grid) for table in ("pairs", "changes"))
    pairs = pairs[pairs["lessons"].isin(_BOUNDED) & (pairs["split"] != "selection")]
    every = pairs["lessons"] == "all"
    pairs = pairs[every | ~pairs["checkpoint"].isin(pairs.loc[every, "checkpoint"])]
    if pairs.empty:
        raise ResultsError(
            f"{folder} has no setting with all lessons that reports; compute some: "
            f"explainer-lab agreement --splits report --publish {folder.parent}"
        )
    return agreement.with_updates(require_same_setting_and_format(pairs, folder), changes)


def _whole(pairs: pd.DataFrame) -> pd.DataFrame:
    """Those whose trainings have all epochs of their setting."""
    of_side = [(pairs[f"{side}_kind"] == "ICL") | (pairs[f"{side}_epochs"] == pairs["epochs"]) for side in "ab"]
    return pairs[of_side[0] & of_side[1]]


def reported(folder: Path, table: str, grid: published.Grids = None, **usual: float | str) -> pd.DataFrame | None:
    """The rows of a table whose settings report and have the usual values; None if nothing of it is published.

    Raises ExperimentError as `require_same_setting_and_format`.
    """
    if not folder.is_dir():
        return None
    rows = published.rows_of_experiment(folder, table, grid)
    rows = rows[rows["split"] != "selection"] if "split" in rows else rows
    for name, value in usual.items():
        rows = rows[rows[name] == value]
    return require_same_setting_and_format(rows, folder)


def require_same_setting_and_format(rows: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """The rows; ExperimentError where those of a checkpoint and a task or cue differ in more than the seed."""
    formats = rows["setting"].map(published.number_formats(published.read(folder, "runs")["runs"].to_pandas()))
    for checkpoint, its in formats.groupby(rows["checkpoint"], sort=False):
        if its.nunique() > 1:
            raise ExperimentError(
                f"{folder}: the settings of {checkpoint} are in {' and '.join(sorted(its.unique()))}; one format "
                "is averaged, so publish each in a directory of its own."
            )
    of = next(name for name in ("task", "cue", "tasks") if name in rows)
    for (checkpoint, task), its in rows.groupby(["checkpoint", of], sort=False):
        for name in _SETTING:
            if name in its and its[name].nunique() > 1:
                values = ", ".join(map(str, its[name].unique()))
                raise ExperimentError(
                    f"{folder}: the settings of {checkpoint} and {task} differ in {name}: {values}; only seeds may "
                    "differ, so publish each in a directory of its own."
                )
    return rows


def answers_by_lesson(changes: pd.DataFrame, training: UpdateFilter = FT) -> dict[str, dict[str, Interval]]:
    """Right answers to the queries of a task after each lesson, by how it was taught and then by the lesson.

    `changes` are those of the experiment "agreement". Means over tasks, Student's interval over seeds.
    """
    told = changes.rename(columns={name: f"a_{name}" for name in agreement.DESCRIBED})

    def right_after(which: UpdateFilter) -> Interval:
        return agreement.over_tasks(told[which.of(told, "a")], "accuracy")

    kinds = {"after the context": ICL, "after the training": training}
    return {
        kind: {name: right_after(replace(which, lesson=lesson)) for name, lesson in _LESSONS.items()}
        for kind, which in kinds.items()
    }


def _right(answered: pd.DataFrame, intervention: str) -> pd.Series:
    """The share of right answers under an intervention, by seed, mean over tasks."""
    return aggregate.nested_means(answered[answered["intervention"] == intervention], "correct", "task")


def _explained(settings: pd.DataFrame, column: str) -> pd.Series:
    """The share of a change that steps explain, by seed, mean over tasks."""
    return settings.groupby("seed")[column].mean()


def n_draws(floor: pd.Series, value: pd.Series, ceiling: pd.Series) -> int:
    """On how many seeds the share of the way rests: those that have all three."""
    return len(pd.concat([floor, value, ceiling], axis="columns").dropna())


_THIRDS = {"lower third": 0, "middle third": 1, "upper third": 2}
_FLOORS = {"made-up words": "nonsense", "another task": "foreign", "shuffled answers": "shuffled"}


def by_layer(layers: pd.DataFrame) -> dict[str, Interval]:
    """SimAOU in each layer: the own lesson on both sides, its floors, and its ceiling, two trainings.

    `layers` are those of the experiment "shared_part"; means over tasks, Student over seeds. A floor is made-up words
    or the other tasks, in the training or in the context.
    """
    columns = {"the same lesson": "own", "two trainings": "trainings", "two contexts": "contexts"}
    columns |= {
        "made-up words in the training": "training_nonsense",
        "made-up words in the context": "context_nonsense",
    }
    columns |= {"another task in the training": "training_foreign", "another task in the context": "context_foreign"}
    of_layer = layers.groupby(["seed", "layer"])[list(columns.values())].mean().unstack()
    return {name: statistics.student(of_layer[column].to_numpy()) for name, column in columns.items()}


def normalised_position_by_thirds(layers: pd.DataFrame, side: str, floor: str = "made-up words") -> dict[str, Interval]:
    """The share of the way in each third of the layers, from a floor to two trainings.

        (own - floor) / (trainings - floor),  of means over tasks, seeds and the layers of the third

    `side` says who learns what the floor is named for: "training" or "context". Jackknife over seeds.
    """
    columns = ["own", f"{side}_{_FLOORS[floor]}", "trainings"]
    thirds = by_thirds(layers, columns)

    def share(means: pd.Series) -> float:
        own, floor, ceiling = means
        return (own - floor) / (ceiling - floor)

    return {name: aggregate.of_means(its, share) for name, its in thirds.items()}


def by_thirds(layers: pd.DataFrame, columns: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Columns of each third of the layers by seed, means over the layers of the third and over tasks.

    Of fewer than three layers the last one is the upper third, and a third may have none.
    """
    n = layers["layer"].nunique()
    third = (layers["layer"] >= round(n / 3)).astype(int) + (layers["layer"] >= min(round(2 * n / 3), n - 1))
    return {name: aggregate.nested_means(layers[third == i], list(columns), "task") for name, i in _THIRDS.items()}


def normalised_position(floor: pd.Series, value: pd.Series, ceiling: pd.Series) -> dict[str, Interval]:
    """Floor, value, ceiling and (value - floor) / (ceiling - floor), each with Student's interval over seeds."""
    each = {"floor": floor, "measured": value, "ceiling": ceiling}
    each["share of the way"] = (value - floor) / (ceiling - floor)
    return {name: statistics.student(of.dropna()) for name, of in each.items()}
