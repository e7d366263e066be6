"""What a run will take, said before it begins: settings, time and memory of each checkpoint."""

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from explainer.data.files import PUBLISHED
from explainer.errors import CheckpointError, TaskError
from explainer.models import loading
from explainer.results import durations, published
from explainer_lab.store import Identity, Store


def estimate_lines(experiment: Any, planned: Sequence[tuple[Any, Identity, str]], store: Store) -> Iterator[str]:
    """A line for each checkpoint with something to compute, and one for what its number format rounds, if it does.

    The time of a setting is the median of those of the checkpoint that are stored, else that of the book's checkpoint
    times `durations.ratio`. The memory is that of the largest setting, as `memory.required_bytes`
    counts it.
    """
    waiting: dict[str, list[Any]] = {}
    took: dict[str, list[float]] = {}
    for setting, identity, state in planned:
        if state == "waiting":
            waiting.setdefault(setting.checkpoint, []).append(setting)
        elif state == "stored" and (stored := store.load(identity)):
            took.setdefault(setting.checkpoint, []).append(stored.run["seconds"])
    for checkpoint, settings in waiting.items():
        try:
            gigabytes = max(map(experiment.needs, settings)) / 1e9
            n, (each, basis) = len(settings), _seconds(experiment, checkpoint, took.get(checkpoint))
            time = f"{durations.in_words(each)} each and {durations.in_words(n * each)} in all in one process ({basis})"
            yield f"{checkpoint}: {n} to compute, {time}; about {gigabytes:.1f} GB of memory."
        except CheckpointError:
            continue  # the run says why
        try:
            rounding = experiment.rounding(settings[0])
        except (CheckpointError, TaskError) as error:
            rounding = f"what its number format rounds is not measured: {error}"
        if rounding:
            yield f"{checkpoint}: {rounding}"


def _seconds(experiment: Any, checkpoint: str, took: Sequence[float] | None) -> tuple[float, str]:
    """Seconds of one setting, and where the number is from."""
    if took:
        return median(took), f"the median of {len(took)} stored"
    if not (PUBLISHED / experiment.name / "runs.parquet").is_file():
        return math.nan, "nothing of this experiment is published"
    runs = published.rows_of_experiment(PUBLISHED / experiment.name, "runs")
    runs = runs[runs["checkpoint"] == loading.STARTER]
    times = durations.ratio(experiment.skeleton(checkpoint))
    seconds = max(durations.LEAST, runs["seconds"].median() * times)
    return seconds, "the book's, scaled by the numbers of weights and layers; longer prompts take longer"
