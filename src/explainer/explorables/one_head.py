"""The explorable of the running example: what each demonstration adds to the output of one head."""

import traitlets

from explainer.explorables.base import Explorable, Pair, Rows
from explainer.explorables.three_tokens import ATTENTIONS

_MOST = 4  # demonstrations


class OneHead(Explorable):
    """One head on `Japan ->` after up to four demonstrations: keys, values, outer products and their sum as a matrix.

    Traits: `token_keys` and `token_values`, a row for each of the four demonstrations and a fifth for the query's own
    text `Japan ->`; `query`, that of the arrow at its end; `demonstrations`, how many are in the prompt; `token`, the
    row that is looked at, 1 to 4 (the last one in the prompt where it is not there), or 0 for `Japan ->`; `attention`,
    one of ATTENTIONS. The matrices and the outputs are those of `explainer.theory.duality.split_attention`. The
    numbers are chosen by hand: in a key, the second number says how far east the country lies; in a value, the first
    says "capital" (below zero "country"), the second east or west.
    """

    name = "one_head"
    question = "What does each demonstration add to the output of a head?"
    height = 1110

    # `keys` is taken: ipywidgets keeps the names of the traits there.
    token_keys = Rows(((0.9, -0.6), (0.9, -0.2), (0.8, 0.1), (0.5, 0.8), (0.2, 0.9)), most=5, fewest=5)
    token_values = Rows(((1, -0.7), (1, -0.4), (1, 0.1), (0.9, 0.9), (-1, 1)), most=5, fewest=5)
    query = Pair([0.9, 0.8])
    demonstrations = traitlets.Int(_MOST, min=0, max=_MOST)
    token = traitlets.Int(_MOST, min=0, max=_MOST)
    attention = traitlets.Enum(ATTENTIONS, default_value="linear")
