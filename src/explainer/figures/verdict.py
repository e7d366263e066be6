"""The figure and the table of the chapter `verdict`."""

import html
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from explainer.analysis import reporting
from explainer.experiments.controls import CONTROLS
from explainer.figures.base import COLOURS, DASHES, MARKERS, Captioned, Table
from explainer.figures.controls import MEASURES
from explainer.lab.store import Stored

PAIR_CONTROLS = (
    "none",
    "shuffled-training",
    "foreign-training",
    "shuffled-context",
    "foreign-context",
    "ascent",
    "random-direction",
    "untrained",
)

Results = Mapping[str, Mapping[str, Sequence[Stored]]]
"""Results by task and control."""

_FAIR = "sim_aou_tangent_uncentred"  # cos(t_I, t_F): SimAOU without what only the lengths of the changes decide


def interval(value: Sequence[float], digits: int = 2) -> str:
    """An estimate with the ends of its interval, `0.25 [0.20, 0.31]`; values that do not exist are a dash."""
    estimate, low, high = (f"{x:.{digits}f}" if np.isfinite(x) else "-" for x in value[:3])
    return f"{estimate} [{low}, {high}]"


def controls(results: Results, measure: str) -> Captioned:
    """A measure under every control, one marker and its interval for each task."""
    figure, title = go.Figure(), MEASURES.get(measure, measure)
    names = list(dict.fromkeys(control for by_control in results.values() for control in by_control))
    means = {}
    for i, (task, by_control) in enumerate(results.items()):
        found = [reporting.similarity_interval(by_control[name], measure) for name in names]
        means[task] = dict(zip(names, (value.estimate for value in found), strict=True))
        figure.add_scatter(
            x=[value.estimate for value in found],
            y=[k + 0.14 * (i - (len(results) - 1) / 2) for k in range(len(names))],
            mode="markers",
            name=task,
            marker={"symbol": MARKERS[i % 6], "color": COLOURS[i % 6], "size": 9},
            error_x={
                "array": [value.high - value.estimate for value in found],
                "arrayminus": [value.estimate - value.low for value in found],
                "thickness": 1,
            },
        )
    figure.add_vline(x=0, line={"dash": DASHES[2], "width": 1})
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=names, autorange="reversed")
    figure.update_layout(height=120 + 46 * len(names), xaxis_title=title, legend={"orientation": "h", "y": 1.06})
    lowest, highest = (f(v for row in means.values() for v in row.values()) for f in (min, max))
    some = [stored for by_control in results.values() for found in by_control.values() for stored in found]
    return Captioned(
        figure,
        f"{title} of ICL and FT: the comparison itself (none) and its controls. Markers: means over layers, queries "
        "and seeds; bars: 95 % intervals over seeds and queries. It does not show which layers agree.",
        f"A dot plot with one row per control and {len(results)} tasks, values from {lowest:.2f} to {highest:.2f}. "
        + " ".join(f"{name}: {np.mean([row[name] for row in means.values()]):.2f}." for name in names),
        reporting.made(some),
    )


def table(pairs: Results, six: Results) -> Table:
    """Claim, evidence for it, evidence against it, what would settle it.

    Every number has its interval, but for the random update: tasks share its draws, and an interval over tasks would
    pass over the spread of the draws.
    """

    def over(results: Results, control: str, measure: str, digits: int = 2) -> str:
        return interval(_mean_over_tasks(results, control, measure), digits)

    def on_antonyms(control: str) -> str:
        return interval(reporting.similarity_interval(pairs["antonyms"][control], "sim_aou"))

    antonyms = pairs["antonyms"]["none"]
    chance = np.mean([stored.result["rec2ftp"]["chance"] for stored in antonyms])
    fixes = {task: sum(stored.result["rec2ftp"]["ft_fixes"] for stored in by["none"]) for task, by in pairs.items()}
    higher, tasks = _tasks_with_better_maps(pairs | six), len(pairs | six)
    random, draws = _mean_over_tasks(pairs, "random-direction", "sim_aou")[0], len(antonyms)
    rows = [
        (
            "ICL repairs what FT repairs (Rec2FTP)",
            f"antonyms, {fixes['antonyms']} repairs: {interval(reporting.rec2ftp_interval(antonyms))}",
            f"an unrelated ICL would reach {chance:.2f}; on the other word pairs FT repairs "
            f"{sum(fixes.values()) - fixes['antonyms']} answers",
            "a model on which FT repairs hundreds of answers on every task",
        ),
        (
            "ICL changes attention outputs as FT does (SimAOU)",
            f"word pairs {over(pairs, 'none', 'sim_aou')}; ascent {over(pairs, 'ascent', 'sim_aou')}; a random update "
            f"is near zero, {random:.2f} over {draws} draws that are the same for all tasks",
            f"FT on another task {over(pairs, 'foreign-training', 'sim_aou')}; shuffled answers in the context "
            f"{over(pairs, 'shuffled-context', 'sim_aou')}; context of another task: on antonyms, which FT learns, "
            f"{on_antonyms('foreign-context')} against {on_antonyms('none')}; undecided on the tasks that FT does not "
            "learn",
            "the foreign context where FT learns every task, and on the paper's own models",
        ),
        (
            "... and not by normalisation alone",
            f"cos(t_I, t_F), which has no noise value: word pairs {over(pairs, 'none', _FAIR)}, untrained "
            f"{over(pairs, 'untrained', _FAIR)}; six tasks {over(six, 'none', _FAIR)}, untrained "
            f"{over(six, 'untrained', _FAIR)}",
            f"SimAOU alone does not tell them apart: six tasks {over(six, 'none', 'sim_aou')}, untrained "
            f"{over(six, 'untrained', 'sim_aou')} with a noise value of {over(six, 'untrained', 'sim_aou_noise')}; FT "
            f"changes of other queries, word pairs {over(pairs, 'none', 'sim_aou_permuted')}",
            "reporting the noise value, and the pairing with other queries, everywhere",
        ),
        (
            "ICL attends as FT does (SimAM)",
            f"word pairs {over(pairs, 'none', 'sim_am')}, zero-shot {over(pairs, 'none', 'sim_am_zsl')}; FT is ahead "
            f"of zero-shot on {higher} of {tasks} tasks; ascent {over(pairs, 'ascent', 'sim_am')}",
            f"the rise is small; similarity of the changes {over(pairs, 'none', 'sim_am_delta')}, and with a context "
            f"of another task {over(pairs, 'foreign-context', 'sim_am_delta')}",
            "comparing changes, as Deutch et al. do, with the same controls",
        ),
        (
            "ICL and FT weigh the training tokens alike (Kendall)",
            f"word pairs {over(pairs, 'none', 'kendall_tau_b', 3)}",
            f"it does not see the update: ascent {over(pairs, 'ascent', 'kendall_tau_b', 3)}, random update "
            f"{over(pairs, 'random-direction', 'kendall_tau_b', 3)}; an untrained model agrees on whole "
            f"demonstrations by their length: {over(pairs, 'untrained', 'example_tau_b')}",
            "a measure that changes with the update; controlling for length and position of the tokens",
        ),
        (
            "dW_ICL is like dW_FT",
            f"word pairs {over(pairs, 'none', 'update_cosine')}; ascent {over(pairs, 'ascent', 'update_cosine')}",
            f"close to zero, though what two equal lessons would score is not known; context of another task "
            f"{over(pairs, 'foreign-context', 'update_cosine')}; cosine of dW_ICL with W_ZSL "
            f"{over(pairs, 'none', 'update_cosine_zsl')}",
            "a direct test on weights that does not drop the softmax",
        ),
    ]
    cells = [tuple(html.escape(text).replace("dW_", "&Delta;W ") for text in row) for row in rows]
    some = [s for results in (pairs, six) for by in results.values() for found in by.values() for s in found]
    return Table(
        ("claim", "for", "against", "what would settle it"),
        cells,
        "Means over tasks, with 95 % intervals over tasks (Student). Controls as in the chapter Controls: "
        + "; ".join(f"{name}: {CONTROLS[name].note}" for name in PAIR_CONTROLS[1:])
        + ".",
        reporting.made(some),
    )


def _mean_over_tasks(results: Results, control: str, measure: str) -> tuple[float, float, float]:
    return reporting.student_interval(np.array([_mean(by[control], measure) for by in results.values()]))


def _tasks_with_better_maps(results: Results) -> int:
    """How many tasks have attention maps of FT that are more like those of ICL than zero-shot maps are."""
    return sum(_mean(by["none"], "sim_am") > _mean(by["none"], "sim_am_zsl") for by in results.values())


def _mean(finished: Sequence[Stored], measure: str) -> float:
    return reporting.similarity_interval(finished, measure, n_resamples=1).estimate
