"""About how long an experiment takes on another checkpoint, from how long the published settings took."""

import math
from collections.abc import Mapping
from typing import Any

from explainer.data.files import PUBLISHED
from explainer.results import published

WEIGHTS_OF_BOOK, LAYERS_OF_BOOK = 134_515_008, 30
"""Of the starter checkpoint, which need not be here."""

_CALLS = 0.1
"""Share of the book's time that its layers take however narrow they are: measured 0.04 to 0.3."""

LEAST = 3.0
"""Seconds of a setting of the smallest model: measured 2 to 5 for a hundred thousand weights."""


def ratio(model: Any) -> float:
    """How many times as long as the book's checkpoint a model takes: by its weights, small ones by their layers."""
    weights = sum(p.numel() for p in model.parameters()) / WEIGHTS_OF_BOOK
    return max(weights, _CALLS * model.config.num_hidden_layers / LAYERS_OF_BOOK)


def of_grids(folder: str, times: float, wanted: Mapping[str, int]) -> str:
    """About how long so many settings of each grid of the book take on a model that takes so many times as long."""
    each = (published.rows_of_experiment(PUBLISHED / folder, "runs", grid)["seconds"].median() for grid in wanted)
    # `max` keeps a NaN that comes first: what the book has not measured stays unknown.
    seconds = sum(n * max(one * times, LEAST) for n, one in zip(wanted.values(), each, strict=True))
    return f"{in_words(seconds)} in one process, the book's scaled by the numbers of weights and layers"


def in_words(seconds: float) -> str:
    """Minutes or hours in words; an unknown time where it is NaN."""
    if math.isnan(seconds):
        return "an unknown time"
    if seconds < 60:
        return "less than a minute"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
