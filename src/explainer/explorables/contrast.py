"""The explorable of two contrasts: what the difference of two lessons keeps, and what it cancels."""

from typing import Any

import traitlets

from explainer.explorables.base import Explorable, Number, Rows, Stored

_UPPER = 20
"""The first layer of the upper third, from 0."""


class Contrast(Explorable):
    """The changes by a context and by a training on two lessons A and B, and their differences, the contrasts.

        similarity    cos(c_A, f_A), mean of A and B
        contrast      cos(c_A - c_B, f_A - f_B)

    What both lessons share on one side falls out of its contrast. Traits: `points`, c_A, c_B, f_A and f_B in the plane,
    without `shared`, the length along the first axis that is added to all four; `exchanged`, whether the trainings on A
    and B have changed places; `found`, what the GPT scores.
    """

    name = "contrast"
    question = "What does the difference of two lessons keep, and what does it cancel?"
    height = 670
    provenance = (
        "Stored: similarity of 10 draws of four tasks of word pairs, contrast of 10 draws of five pairs of tasks; "
        "layers 21 to 30; 10 epochs; {checkpoint}, float32; computed by explainer-lab shared-part "
        "and explainer-lab minimal-pairs."
    )

    points = Rows(((-0.18, 0.92), (0.25, 0.36), (0.25, -0.36), (-0.18, -0.92)), most=4, fewest=4, limits=(4.0, 2.0))
    shared = Number(1.1, min=0, max=1.6)
    exchanged = traitlets.Bool(False)
    found = Stored()

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """Mean, low and high end in the upper third: the similarity, that of two tasks, and the cosine of contrasts."""
        from explainer.results import minimal_pairs  # noqa: PLC0415 - pandas and torch are slow to import
        from explainer.results.published import results  # noqa: PLC0415
        from explainer.theory import statistics  # noqa: PLC0415

        layers, pairs = results("shared-part", "layers"), results("minimal-pairs", "strengths")
        by_seed = layers[layers["layer"] >= _UPPER].groupby("seed")[["own", "training_foreign"]].mean()
        strongest = pairs.query("shots == k and epochs == epochs.max() and layers == 'upper third'")
        of = {
            "similarity": statistics.student(by_seed["own"]),
            "foreign": statistics.student(by_seed["training_foreign"]),
            "contrast": minimal_pairs.similarities(strongest)["own"],
        }
        return {name: [its.estimate, its.low, its.high] for name, its in of.items()}
