"""Explorables: figures that a reader changes, one JavaScript module each, the same in a notebook and on the site.

All state is in the traits, so a live kernel reads and sets what the reader drags. The mathematics runs in JavaScript
and agrees with `explainer.theory.duality` to rounding (tests/explorables/test_explorables.py).
"""

from explainer.explorables.computed_explorables import (
    AgeWeights,
    BracketMove,
    InContextRegression,
    MemoryOrRidge,
    MomentumWindow,
    NoiseValue,
    OneHead,
    OnePlane,
    OneStep,
    PhasePlane,
    SoftmaxBend,
    ThreeTokens,
    TwoNeurons,
)
from explainer.explorables.explorable_base import Explorable
from explainer.explorables.measured_explorables import (
    Bets,
    Contrast,
    Ladder,
    LearnRule,
    RealHead,
    Swap,
    WhichBox,
    Yardstick,
)
from explainer.explorables.similarity_explorer import SimilarityExplorer

__all__ = [
    "AgeWeights", "Bets", "BracketMove", "Contrast", "Explorable", "InContextRegression", "Ladder",
    "LearnRule", "MemoryOrRidge", "MomentumWindow", "NoiseValue", "OneHead", "OnePlane", "OneStep", "PhasePlane",
    "RealHead", "SimilarityExplorer", "SoftmaxBend", "Swap", "ThreeTokens", "TwoNeurons", "WhichBox", "Yardstick",
]  # fmt: skip
