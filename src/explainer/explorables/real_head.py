"""The explorable of one real head: a vector added to every key moves the update of linear attention, not softmax."""

from typing import Any

from explainer.explorables.base import Explorable, Number, Stored


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
        """The numbers of the head: `running_prompt.measured`."""
        from explainer.explorables import running_prompt  # noqa: PLC0415 - torch is slow to import

        return running_prompt.measured()
