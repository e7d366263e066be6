"""The explorable of a layer of two neurons: after a step it is attention over its training examples."""

import traitlets

from explainer.explorables.base import Explorable, Number, Pair, Rows


class TwoNeurons(Explorable):
    """One gradient step on 1/2 sum_i |W x_i - y_i|^2 for a layer of two inputs and two neurons, against attention.

    Traits: `inputs` x_i and `targets` y_i, as many, up to four; `query`; `learning_rate`; `initial_weights` W_0.
    """

    name = "two_neurons"
    question = "Is a layer after one gradient step the same as linear attention over its training examples?"
    height = 1000

    inputs = Rows(((1.22, 0.31), (0.17, 1.43), (-1.12, 0.74)), most=4)
    targets = Rows(((1.34, 0.62), (-0.87, 1.18), (-1.23, -0.81)), most=4)
    query = Pair([0.93, 0.78])
    learning_rate = Number(0.4, min=0, max=1)
    initial_weights = Rows(((0.31, -0.23), (0.13, 0.22)), fewest=2, most=2)

    @traitlets.validate("inputs", "targets")
    def _check_count(self, proposal: traitlets.Bunch) -> list:
        if len(self.inputs) != len(self.targets):
            raise traitlets.TraitError(
                f"{len(self.inputs)} inputs and {len(self.targets)} targets; every input needs one target "
                "(set both inside `with widget.hold_trait_notifications():`)."
            )
        return proposal.value
