"""Explorables of what was measured once: `stored` is what they show, `measured` computes it again."""

from typing import Any

import traitlets

from explainer.explorables.base import Explorable, Number, Rows, Stored
from explainer.results.thirds import layer_thirds

SIDES = ("training", "context")
LESSONS = ("own", "reordered", "other", "shuffled", "foreign", "nonsense")
"""As the columns of shared_part/layers.parquet name them."""
_UPPER = layer_thirds(30)["upper third"].start
"""The first layer of the upper third, from 0."""


class Ladder(Explorable):
    """Six rungs from a linear layer to a real GPT: how much of attention's output the layer after one step misses.

    On every rung it is missed(F(q), (W_0 + Delta W) q): attention's output F(q) against the output of the layer after
    one gradient step on the demonstrations, at its best scale. Traits: `rung`, 0 to 5; `rungs`, what is stored.
    """

    name = "ladder"
    question = "How much of what attention does is a gradient step?"
    height = 865
    provenance = (
        "Stored: 1,000 random prompts, seed 0, and 270 heads, one prompt; {checkpoint}, float32; computed by "
        "explainer.explorables.Ladder.store()."
    )

    rung = traitlets.Int(5, min=0, max=5)
    rungs = Stored()

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """What is missed on each rung: `running_prompt.measured_rungs`."""
        from explainer.explorables import running_prompt  # noqa: PLC0415 - torch is slow to import

        return running_prompt.measured_rungs()


class RealHead(Explorable):
    """One head of the checkpoint at the arrow of `Japan ->`, with `shift` times the mean key added to every key.

    Traits: `shift` (0: the keys as they are, -1: centred); `head`, the numbers that are stored. Softmax attention and
    all it gives do not depend on the shift; the update Delta W q = sum_i v_i (k_i . q) over the demonstrations changes
    by shift (k_mean . q) sum_i v_i.
    """

    name = "real_head"
    question = "What happens in a real head when one vector is added to all its keys?"
    height = 1245
    provenance = (
        "Stored: keys, values and query of one head; {checkpoint}, float32; read by "
        "explainer.explorables.RealHead.store(); the rest is computed by the page as you look."
    )

    shift = Number(-3.0, min=-4.0, max=2.0)
    head = Stored()

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """The numbers of the head: `running_prompt.measured_head`."""
        from explainer.explorables import running_prompt  # noqa: PLC0415 - torch is slow to import

        return running_prompt.measured_head()


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
            of_seeds = layers[layers["layer"] >= _UPPER].groupby("seed")[column].mean()
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
        from explainer.results import contrasts  # noqa: PLC0415 - pandas and torch are slow to import
        from explainer.results.published import results  # noqa: PLC0415
        from explainer.theory import statistics  # noqa: PLC0415

        layers, pairs = results("shared-part", "layers"), results("minimal-pairs", "strengths")
        by_seed = layers[layers["layer"] >= _UPPER].groupby("seed")[["own", "training_foreign"]].mean()
        strongest = pairs.query("shots == k and epochs == epochs.max() and layers == 'upper third'")
        of = {
            "similarity": statistics.student(by_seed["own"]),
            "foreign": statistics.student(by_seed["training_foreign"]),
            "contrast": contrasts.similarities(strongest)["own"],
        }
        return {name: [its.estimate, its.low, its.high] for name, its in of.items()}


class Yardstick(Explorable):
    """What other examples would cost if the special parts of a context and a training agreed as the whole does.

        yardstick = s sqrt((1 - C) (1 - F))

    Traits: `contexts`, C, how alike two contexts on different examples are; `trainings`, F, the same of two trainings;
    `own`, s, the similarity of a context and a training on the same examples; `falls`, the measured falls.
    """

    name = "yardstick"
    question = "How much could other examples cost, if they counted?"
    height = 710
    provenance = (
        "Stored: 20 draws of four tasks of word pairs (10 where both are swapped), 24 queries each; 10 epochs; "
        "{checkpoint}, float32; computed by explainer-lab agreement and explainer-lab shared-part."
    )

    contexts = Number(0.94, min=0, max=1)
    trainings = Number(0.71, min=0, max=1)
    own = Number(0.38, min=0, max=1)
    falls = Stored()

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """Mean, low and high end of the GPT's falls (`agreement.cost_of_other_examples`), by what is swapped."""
        from explainer.results import agreement  # noqa: PLC0415 - pandas and torch are slow to import
        from explainer.results.published import results  # noqa: PLC0415

        swapped = agreement.cost_of_other_examples(agreement.pairs("agreement"), "sim_aou")
        four = agreement.cost_of_other_examples(
            results("shared-part", "pairs"), "sim_aou", agreement.UpdateFilter("FT", rate=None)
        )
        chosen = {"context": swapped["context swapped"], "both": four["both swapped"]}
        return {name: [of.estimate, of.low, of.high] for name, of in chosen.items()}
