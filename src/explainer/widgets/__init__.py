"""Explorables: figures that a reader changes, one JavaScript module each, the same in a notebook and on the site.

All state is in the traits, so a live kernel reads and sets what the reader drags. The mathematics runs in JavaScript
and agrees with `explainer.duality` to rounding (tests/test_widgets.py).
"""

import html
import math
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

FOLDER = Path(__file__).parent
LIMIT = 2.0  # the planes are drawn from -2 to 2
_VIEW_MIME = "application/vnd.jupyter.widget-view+json"


class Number(traitlets.Float):
    """A finite number between `min` and `max`."""

    def validate(self, obj: traitlets.HasTraits, value: Any) -> float:
        """Return the value as a float, or raise TraitError."""
        number = super().validate(obj, value)
        if not math.isfinite(number):
            raise traitlets.TraitError(f"{self.name} = {number}; it must be a finite number.")
        return number


class Rows(traitlets.List):
    """At most `most` rows of two finite numbers within the drawn plane; takes lists, arrays and tensors."""

    def __init__(self, default: tuple[tuple[float, float], ...], most: int, fewest: int = 1):
        """Take the default rows and the bounds of their number."""
        super().__init__(default_value=default)
        self.fewest, self.most = fewest, most

    def validate(self, obj: traitlets.HasTraits, value: Any) -> list[list[float]]:
        """Return the value as a list of pairs, or raise TraitError."""
        try:
            rows = [_pair(row) for row in value]
        except (TypeError, ValueError) as error:
            raise traitlets.TraitError(f"{self.name} = {value!r}: {error}") from None
        if not self.fewest <= len(rows) <= self.most:
            raise traitlets.TraitError(f"{self.name} has {len(rows)} rows; it must have {self.fewest} to {self.most}.")
        return super().validate(obj, rows)


class Pair(traitlets.List):
    """Two finite numbers within the drawn plane."""

    def validate(self, obj: traitlets.HasTraits, value: Any) -> list[float]:
        """Return the value as a list of two floats, or raise TraitError."""
        try:
            return super().validate(obj, _pair(value))
        except (TypeError, ValueError) as error:
            raise traitlets.TraitError(f"{self.name} = {value!r}: {error}") from None


def _pair(row: Any) -> list[float]:
    pair = [float(entry) for entry in row]
    if len(pair) != 2 or not all(abs(entry) <= LIMIT for entry in pair):
        raise ValueError(f"{pair} must be two numbers from -{LIMIT:g} to {LIMIT:g}, the plane that is drawn.")
    return pair


class Explorable(anywidget.AnyWidget):
    """A figure with state: subclasses name their module, the room they need and what they answer."""

    name: ClassVar[str]
    question: ClassVar[str]
    height: ClassVar[int]  # CSS pixels at the width of a page of the book

    @property
    def _esm(self) -> str:
        # One text: a module that travels in a notebook has no address to import another one from.
        return "\n".join((FOLDER / file).read_text("utf-8") for file in ("common.js", f"{self.name}.js"))

    @property
    def _css(self) -> str:
        return (FOLDER / "explorables.css").read_text("utf-8")

    def state(self) -> dict[str, Any]:
        """Return the traits that the reader can change, by name."""
        return {name: getattr(self, name) for name in self.trait_names(explorable=True)}

    def fallback(self) -> str:
        """Return the figure without JavaScript: the still of the default state, with its question as caption."""
        still = (FOLDER / "stills" / f"{self.name}.svg").read_text("utf-8")
        note = "With JavaScript, this figure is interactive; the picture shows its starting state."
        caption = f"<figcaption>{html.escape(self.question)} {note}</figcaption>"
        return f'<figure class="explorable">{still}{caption}</figure>'

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict] | None:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is not None:
            bundle[0][_VIEW_MIME]["explainer"] = {"fallback": self.fallback(), "height": self.height}
        return bundle


class OneStep(Explorable):
    """One gradient step from W_0 = 0 on 1/(2n) sum_i (W x_i - y_i)^2, against linear attention over the examples.

    Traits: `points` (x_i, y_i), up to eight; `learning_rate`; `query`.
    """

    name = "one_step"
    question = "Does one gradient step give the same answer as linear attention over the examples?"
    height = 610

    points = Rows(((-1.6, -1.1), (-0.9, -0.8), (-0.4, 0.5), (0.5, 0.2), (1.0, 1.3), (1.5, 1.0)), most=8).tag(
        sync=True, explorable=True
    )
    learning_rate = Number(0.85, min=0, max=1.5).tag(sync=True, explorable=True)
    query = Number(1.1, min=-LIMIT, max=LIMIT).tag(sync=True, explorable=True)


class TwoNeurons(Explorable):
    """One gradient step on 1/2 sum_i |W x_i - y_i|^2 for a layer of two inputs and two neurons, against attention.

    Traits: `inputs` x_i and `targets` y_i, as many, up to four; `query`; `learning_rate`; `initial_weights` W_0.
    """

    name = "two_neurons"
    question = "Is a layer after one gradient step the same as linear attention over its training examples?"
    height = 1000

    inputs = Rows(((1.22, 0.31), (0.17, 1.43), (-1.12, 0.74)), most=4).tag(sync=True, explorable=True)
    targets = Rows(((1.34, 0.62), (-0.87, 1.18), (-1.23, -0.81)), most=4).tag(sync=True, explorable=True)
    query = Pair([0.93, 0.78]).tag(sync=True, explorable=True)
    learning_rate = Number(0.4, min=0, max=1).tag(sync=True, explorable=True)
    initial_weights = Rows(((0.31, -0.23), (0.13, 0.22)), fewest=2, most=2).tag(sync=True, explorable=True)

    @traitlets.validate("inputs", "targets")
    def _check_count(self, proposal: traitlets.Bunch) -> list:
        if len(self.inputs) != len(self.targets):
            raise traitlets.TraitError(
                f"{len(self.inputs)} inputs and {len(self.targets)} targets; every input needs one target "
                "(set both inside `with widget.hold_trait_notifications():`)."
            )
        return proposal.value


class SoftmaxBend(Explorable):
    """Softmax attention on Gaussian keys, queries and values, against four forms without softmax.

    Traits: `spread`, the standard deviation of every query's logits over the tokens; `tokens`; `seed`. The default
    seed is the one of 0 to 59 whose errors lie nearest to the medians over these seeds (see tests/js).
    """

    name = "softmax_bend"
    question = "Where does softmax bend linear attention, and by how much?"
    height = 640

    spread = Number(0.5, min=0.125, max=4).tag(sync=True, explorable=True)
    tokens = traitlets.Int(64, min=4, max=128).tag(sync=True, explorable=True)
    seed = traitlets.Int(24, min=0, max=2**31 - 1).tag(sync=True, explorable=True)


from explainer.widgets.error_law import ErrorLaw  # noqa: E402 - these are built on what stands above
from explainer.widgets.explorer import SimilarityExplorer  # noqa: E402
from explainer.widgets.momentum_window import MomentumWindow  # noqa: E402
from explainer.widgets.noise import NoiseValue  # noqa: E402
from explainer.widgets.playground import InContextRegression  # noqa: E402

EXPLORABLES: tuple[type[Explorable], ...] = (
    OneStep,
    TwoNeurons,
    SoftmaxBend,
    NoiseValue,
    SimilarityExplorer,
    MomentumWindow,
    ErrorLaw,
    InContextRegression,
)
