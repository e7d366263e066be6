"""The explorable of the solvable transformer in two dimensions: its matrix, and the weights that it implies."""

import math

import traitlets

from explainer.explorables.base import Explorable, Number, Pair

_SHORTEST, _LONGEST = 0.5, 1.5  # half length of the axis that is dragged


class OnePlane(Explorable):
    """The true weights w, and what the layer puts in their place, A (1/M) sum y_i x_i, over redrawn prompts.

    Traits: `w`; `train`, the end of one half axis of the ellipse of training inputs (the other is 0.7 long);
    `turn`, by how many degrees the test inputs' ellipse is turned against it; `training_length` N; `prompt_length` M;
    `time` of training, rate times steps. The layer follows
    `explainer.theory.linear_transformer.train_by_gradient_flow` from `initialisation` there; the two parts of the error
    are `error_parts` there.
    """

    name = "one_plane"
    question = "Which weights does the layer act on, and what moves them away from the true ones?"
    height = 770
    provenance = "Live: computed by the page as you look, with 4,000 drawn prompts."

    w = Pair([1.0, 1.4])
    train = Pair([1.2, 0.5])
    turn = Number(0, min=-90, max=90)
    training_length = traitlets.Int(6, min=1, max=1000)
    prompt_length = traitlets.Int(32, min=1, max=1000)
    time = Number(100.0, min=0.1, max=100.0)

    @traitlets.validate("train")
    def _check_length(self, proposal: traitlets.Bunch) -> list[float]:
        length = math.hypot(*proposal.value)
        if not _SHORTEST - 0.01 <= length <= _LONGEST + 0.01:
            raise traitlets.TraitError(
                f"train = {proposal.value} is {length:.2f} long; it must be {_SHORTEST:g} to {_LONGEST:g} long."
            )
        return proposal.value
