"""The explorable of the distance between softmax attention and its forms without softmax."""

import traitlets

from explainer.explorables.base import Explorable, Number


class SoftmaxBend(Explorable):
    """Softmax attention on Gaussian keys, queries and values, against four forms without softmax.

    Traits: `spread`, the standard deviation of every query's logits over the tokens; `tokens`; `seed`. The default
    seed is the one of 0 to 59 whose errors lie nearest to the medians over these seeds (see test_softmax_bend.py).
    """

    name = "softmax_bend"
    question = "Where does softmax bend linear attention, and by how much?"
    height = 640

    spread = Number(0.5, min=0.125, max=4)
    tokens = traitlets.Int(64, min=4, max=128)
    seed = traitlets.Int(24, min=0, max=2**31 - 1)
