"""The explorable that swaps the lesson of a context or of a training and shows the similarity in each layer."""

from typing import Any

import traitlets

from explainer.explorables.base import Explorable, Stored

SIDES = ("training", "context")
LESSONS = ("own", "reordered", "other", "shuffled", "foreign", "nonsense")
"""As the columns of shared_part/layers.parquet name them."""
UPPER = 20
"""The first layer of the upper third, from 0."""


class Swap(Explorable):
    """SimAOU of a context and a training in each layer, where one of them has another lesson than the other.

    Traits: `side`, which of the two is swapped, "training" or "context"; `lesson`, what it has learned instead, one of
    `LESSONS`; `similarity`, what is stored. Beside it stand two trainings on different examples, the noise value, and
    the same swaps in a layer of linear attention where the context is a step of gradient descent.
    """

    name = "swap"
    question = "Which lesson must one side get before the similarity falls?"
    height = 785
    provenance = (
        "Stored: 10 draws of four tasks of word pairs, 24 queries each; 16 demonstrations, 10 epochs; "
        "{checkpoint}, float32; computed by explainer-lab shared-part."
    )
    digits = 3

    side = traitlets.Enum(SIDES, "context")
    lesson = traitlets.Enum(LESSONS, "other")
    similarity = Stored()

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """By layer, mean and half the width of its 95 % interval: `own`, `trainings`, and each swap of each side.

        `noise` holds noise values by layer, `upper` half the width of the interval of each mean over the upper third,
        and `true` the means of the layer where a context is a step.
        """
        from explainer.results.published import results  # noqa: PLC0415 - pandas and torch are slow to import
        from explainer.theory import positive_control, statistics  # noqa: PLC0415

        layers = results("shared-part", "layers")

        def by_layer(column: str) -> statistics.Interval:
            of_layer = layers.groupby(["seed", "layer"])[column].mean().unstack()
            return statistics.student(of_layer.to_numpy())

        def half_width(column: str) -> float:
            of_seeds = layers[layers["layer"] >= UPPER].groupby("seed")[column].mean()
            mean, _, high = statistics.student(of_seeds.to_numpy())
            return float(high - mean)

        names = ["own", "trainings", *(f"{side}_{lesson}" for side in SIDES for lesson in LESSONS[1:])]
        found = {name: by_layer(name) for name in names}
        swaps = positive_control.both_swaps(positive_control.PositiveControlSetting(d=64, n_queries=24), range(10))
        return {name: [its.estimate.tolist(), (its.high - its.estimate).tolist()] for name, its in found.items()} | {
            "noise": {name: by_layer(f"{name}_noise").estimate.tolist() for name in names},
            "upper": {name: half_width(name) for name in names},
            "true": {
                side: {lesson: of.estimate for lesson, of in swaps[f"context and training, {side} swapped"].items()}
                for side in SIDES
            },
        }
