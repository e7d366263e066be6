"""The explorable that shows how much other examples could cost: a shared and a special part of two changes."""

from typing import Any

from explainer.explorables.base import Explorable, Number, Stored


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
        """Mean, low and high end of the GPT's falls (`verdict_scale.cost_of_other_examples`), by what is swapped."""
        from explainer.results import agreement, verdict_scale  # noqa: PLC0415 - pandas and torch are slow to import
        from explainer.results.published import results  # noqa: PLC0415

        swapped = verdict_scale.cost_of_other_examples(agreement.pairs("agreement"), "sim_aou")
        four = verdict_scale.cost_of_other_examples(
            results("shared-part", "pairs"), "sim_aou", agreement.UpdateFilter("FT", rate=None)
        )
        chosen = {"context": swapped["context swapped"], "both": four["both swapped"]}
        return {name: [of.estimate, of.low, of.high] for name, of in chosen.items()}
