"""What all explorables share: traits that refuse what cannot be drawn, and the widget with its still."""

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
    made: ClassVar[str] = "Live: computed by the page as you look."
    """Where its numbers come from: Live, Stored or Quoted, a colon and the details."""
    starts: ClassVar[tuple[dict[str, Any], ...]] = ({},)
    """The traits of each start that has a still of its own."""

    @property
    def _esm(self) -> str:
        # A bundle: a module that travels in a notebook has no address to import another one from.
        return (FOLDER / "bundles" / f"{self.name}.js").read_text("utf-8")

    @property
    def _css(self) -> str:
        return (FOLDER / "explorables.css").read_text("utf-8")

    def state(self) -> dict[str, Any]:
        """Return the traits that the reader can change, by name."""
        return {name: getattr(self, name) for name in self.trait_names(explorable=True)}

    @property
    def still_name(self) -> str:
        """The name of the file with the still of its start."""
        return self.name

    def fallback(self) -> str:
        """Return the figure without JavaScript: the still of the default state, with its question as caption."""
        still = (FOLDER / "stills" / f"{self.still_name}.svg").read_text("utf-8")
        note = "With JavaScript, this figure is interactive; the picture shows its starting state."
        caption = f"<figcaption>{html.escape(self.question)} {note}</figcaption>"
        return f'<figure class="explorable">{still}{caption}</figure>'

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict] | None:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is not None:
            extra = {"fallback": self.fallback(), "height": self.height, "made": self.made}
            bundle[0][_VIEW_MIME]["explainer"] = extra
        return bundle
