"""Explorables: figures that a reader changes, one JavaScript module each, the same in a notebook and on the site.

All state is in the traits, so a live kernel reads and sets what the reader drags. The mathematics runs in JavaScript
and agrees with `explainer.theory.duality` to rounding (tests/explorables/test_explorables.py).
"""

from explainer.explorables.base import Explorable
from explainer.explorables.bets import Bets
from explainer.explorables.computed import (
    AgeWeights,
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
from explainer.explorables.in_context_regression import InContextRegression
from explainer.explorables.measured import Contrast, Ladder, RealHead, Swap, Yardstick
from explainer.explorables.similarity_explorer import SimilarityExplorer
from explainer.explorables.which_box import WhichBox

__all__ = [
    "AgeWeights", "Bets", "Contrast", "Explorable", "InContextRegression", "Ladder", "MemoryOrRidge",
    "MomentumWindow", "NoiseValue", "OneHead", "OnePlane", "OneStep", "PhasePlane", "RealHead",
    "SimilarityExplorer", "SoftmaxBend", "Swap", "ThreeTokens", "TwoNeurons", "WhichBox", "Yardstick",
]  # fmt: skip
