"""Explorables: figures that a reader changes, one JavaScript module each, the same in a notebook and on the site.

All state is in the traits, so a live kernel reads and sets what the reader drags. The mathematics runs in JavaScript
and agrees with `explainer.theory.duality` to rounding (tests/explorables/test_explorables.py).
"""

from explainer.explorables.age_weights import AgeWeights
from explainer.explorables.base import Explorable
from explainer.explorables.bets import Bets
from explainer.explorables.contrast import Contrast
from explainer.explorables.in_context_regression import InContextRegression
from explainer.explorables.ladder import Ladder
from explainer.explorables.memory_or_ridge import MemoryOrRidge
from explainer.explorables.momentum_window import MomentumWindow
from explainer.explorables.noise_value import NoiseValue
from explainer.explorables.one_head import OneHead
from explainer.explorables.one_plane import OnePlane
from explainer.explorables.one_step import OneStep
from explainer.explorables.phase_plane import PhasePlane
from explainer.explorables.real_head import RealHead
from explainer.explorables.similarity_explorer import SimilarityExplorer
from explainer.explorables.softmax_bend import SoftmaxBend
from explainer.explorables.swap import Swap
from explainer.explorables.three_tokens import ThreeTokens
from explainer.explorables.two_neurons import TwoNeurons
from explainer.explorables.which_box import WhichBox
from explainer.explorables.yardstick import Yardstick

__all__ = [
    "EXPLORABLES", "AgeWeights", "Bets", "Contrast", "Explorable", "InContextRegression", "Ladder", "MemoryOrRidge",
    "MomentumWindow", "NoiseValue", "OneHead", "OnePlane", "OneStep", "PhasePlane", "RealHead", "SimilarityExplorer",
    "SoftmaxBend", "Swap", "ThreeTokens", "TwoNeurons", "WhichBox", "Yardstick",
]  # fmt: skip

EXPLORABLES: tuple[type[Explorable], ...] = (
    ThreeTokens,
    OneHead,
    OneStep,
    TwoNeurons,
    SoftmaxBend,
    NoiseValue,
    SimilarityExplorer,
    MomentumWindow,
    AgeWeights,
    PhasePlane,
    OnePlane,
    InContextRegression,
    MemoryOrRidge,
    RealHead,
    Ladder,
    WhichBox,
    Swap,
    Contrast,
    Yardstick,
    Bets,
)
