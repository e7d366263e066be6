"""What a run will take, said before it begins: settings, time and memory of each checkpoint."""

import os
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from explainer.data.files import PUBLISHED
from explainer.errors import CheckpointError
from explainer.models import checkpoints
from explainer.results import published
from explainer.study.store import Identity, Store

BESIDE_WEIGHTS = 6.0
"""GB that one cell takes beside the weights: measured 5.6 GB for 24 layers of width 2048 (`benchmarks/at_size.py`)."""

_WEIGHTS_OF_BOOK = 134_515_008
"""Of the starter checkpoint, which need not be here."""

_LEAST = 3.0
"""Seconds of a setting of the smallest model: measured 2 to 5 for a hundred thousand weights."""


def memory() -> float:
    """GB of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def lines(experiment: Any, planned: Sequence[tuple[Any, Identity, str]], store: Store, size: int) -> Iterator[str]:
    """A line for each checkpoint with something to compute; `size` is that of a weight, in bytes.

    The time of a setting is the median of those of the checkpoint that are stored, else that of the book's checkpoint
    times the ratio of the numbers of weights.
    """
    waiting: dict[str, int] = {}
    took: dict[str, list[float]] = {}
    for setting, identity, state in planned:
        if state == "waiting":
            waiting[setting.checkpoint] = waiting.get(setting.checkpoint, 0) + 1
        elif state == "stored":
            took.setdefault(setting.checkpoint, []).append(store.load(identity).run["seconds"])
    for checkpoint, n in waiting.items():
        try:
            weights = checkpoints.n_parameters(checkpoint)
        except CheckpointError:
            continue  # the run says why
        each, basis = _seconds(experiment.name, weights, took.get(checkpoint))
        time = f", {_said(each)} each and {_said(n * each)} in all in one process ({basis})" if each else ""
        room = f"; {weights * size / 1e9:.1f} GB of weights and up to {BESIDE_WEIGHTS:g} GB beside" if weights else ""
        yield f"{checkpoint}: {n} to compute{time}{room}."
        if weights and weights * size / 1e9 + BESIDE_WEIGHTS > memory():
            yield f"{checkpoint} may not fit this machine's {memory():.0f} GB; --dtype bfloat16 takes half of float32."


def _seconds(experiment: str, weights: int | None, took: Sequence[float] | None) -> tuple[float | None, str]:
    """Seconds of one setting, and where the number is from."""
    if took:
        return median(took), f"the median of {len(took)} stored"
    if weights is None:
        return None, ""
    runs = published.of_folder(PUBLISHED / experiment, "runs")
    runs = runs[runs["checkpoint"] == checkpoints.STARTER]
    seconds = max(_LEAST, runs["seconds"].median() * weights / _WEIGHTS_OF_BOOK)
    return seconds, "the book's, scaled by the number of weights; longer prompts take longer"


def _said(seconds: float) -> str:
    if seconds < 60:
        return "less than a minute"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
