"""The explorable of one attention head over three tokens."""

import traitlets

from explainer.explorables.base import Explorable, Pair, Rows

ATTENTIONS = ("softmax", "linear")
"""What the reader can choose: `explainer.theory.duality.softmax_attention` or `linear_attention`."""


class ThreeTokens(Explorable):
    """A head of three tokens in the plane: logits, attention weights and output, with or without softmax.

    Traits: `token_keys` and `token_values`, a row for each of the three tokens; `query`, that of the token which
    attends; `attention`, one of ATTENTIONS.
    """

    name = "three_tokens"
    question = "What does one attention head do with three tokens?"
    height = 810

    # `keys` is taken: ipywidgets keeps the names of the traits there.
    token_keys = Rows(((1.3, 0.7), (-0.8, 1.1), (0.5, -1.2)), fewest=3, most=3)
    token_values = Rows(((1.0, 0.8), (-1.1, 0.9), (-0.3, -1.3)), fewest=3, most=3)
    query = Pair([1.4, 0.9])
    attention = traitlets.Enum(ATTENTIONS, default_value="softmax")
