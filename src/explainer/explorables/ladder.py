"""The explorable that returns in five chapters: how much of attention a gradient step misses, rung by rung."""

from typing import Any

import traitlets

from explainer.explorables.base import Explorable, Stored

_RUNGS = 6


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

    rung = traitlets.Int(_RUNGS - 1, min=0, max=_RUNGS - 1)
    rungs = Stored()

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """What is missed on each rung: `rungs.measured`."""
        from explainer.explorables import rungs  # noqa: PLC0415 - torch is slow to import

        return rungs.measured()
