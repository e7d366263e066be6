"""What all explorables share: traits that refuse what cannot be drawn, and the widget with its still."""

import html
import json
import math
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

from explainer.data.assets import CHECKPOINT
from explainer.data.files import replace_file

_FOLDER = Path(__file__).parent
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


class Pair(traitlets.List):
    """Two finite numbers within the drawn plane, whose corners are +-`limits`."""

    limits = (LIMIT, LIMIT)

    def validate(self, obj: traitlets.HasTraits, value: Any) -> list[float]:
        """Return the value as a list of two floats, or raise TraitError."""
        try:
            return super().validate(obj, self._checked(value))
        except (TypeError, ValueError) as error:
            raise traitlets.TraitError(f"{self.name} = {value!r}: {error}") from None

    def _checked(self, row: Any) -> list[float]:
        pair = [float(entry) for entry in row]
        if len(pair) != 2 or not all(abs(entry) <= most for entry, most in zip(pair, self.limits, strict=True)):
            ranges = "and".join(f" from -{most:g} to {most:g} " for most in dict.fromkeys(self.limits))
            raise ValueError(f"{pair} must be two numbers{ranges.rstrip()}, the plane that is drawn.")
        return pair


class Rows(Pair):
    """At least `fewest` and at most `most` rows of two such numbers; takes lists, arrays and tensors."""

    def __init__(
        self,
        default: tuple[tuple[float, float], ...],
        most: int,
        fewest: int = 1,
        limits: tuple[float, float] = (LIMIT, LIMIT),
    ):
        """Take the default rows and the bounds of their number and of their entries."""
        super().__init__(default_value=default)
        self.fewest, self.most, self.limits = fewest, most, limits

    def _checked(self, rows: Any) -> list[list[float]]:
        pairs = [super(Rows, self)._checked(row) for row in rows]
        if not self.fewest <= len(pairs) <= self.most:
            raise ValueError(f"it has {len(pairs)} rows; it must have {self.fewest} to {self.most}.")
        return pairs


class Stored(traitlets.Dict):
    """What is stored of an explorable (`Explorable.stored`), unless it is given."""

    def default(self, obj: "Explorable | None" = None) -> dict[str, Any]:
        """Return what is stored of the class."""
        return {} if obj is None else obj.stored()


class Explorable(anywidget.AnyWidget):
    """A figure with state: subclasses name their module, the room they need and what they answer.

    All traits that a subclass declares are its state, which page and kernel share.
    """

    name: ClassVar[str]
    question: ClassVar[str]
    height: ClassVar[int]  # CSS pixels at the width of a page of the book
    folder: ClassVar[Path] = _FOLDER
    """Where its bundle, its stills and what is stored of it are."""
    provenance: ClassVar[str] = "Live: computed by the page as you look."
    """Where its numbers come from: Live, Stored or Quoted, a colon and the details; {checkpoint} is the starter's."""
    digits: ClassVar[int] = 4
    """Digits after the point of what is stored: what is below them depends on the processor."""
    starts: ClassVar[tuple[dict[str, Any], ...]] = ({},)
    """The traits of each start that has a still of its own."""

    def __init_subclass__(cls, **options: Any):
        """Tag the traits."""
        super().__init_subclass__(**options)
        for name, trait in vars(cls).items():
            if isinstance(trait, traitlets.TraitType) and not name.startswith("_"):  # anywidget's own, added later
                trait.tag(sync=True, explorable=True)

    @property
    def _esm(self) -> str:
        # A bundle: a module that travels in a notebook has no address to import another one from.
        return (self.folder / "bundles" / f"{self.name}.js").read_text("utf-8")

    @property
    def _css(self) -> str:
        return (_FOLDER / "explorables.css").read_text("utf-8")

    def state(self) -> dict[str, Any]:
        """Return the traits that the reader can change, by name."""
        return {name: getattr(self, name) for name in self.trait_names(explorable=True)}

    @classmethod
    def stored(cls) -> dict[str, Any]:
        """What `measured` gave when the book was made."""
        return json.loads((cls.folder / f"{cls.name}.json").read_text("utf-8"))

    @classmethod
    def measured(cls) -> dict[str, Any]:
        """The numbers that the figure shows and that no page can compute."""
        raise NotImplementedError

    @classmethod
    def store(cls) -> None:
        """Write what `measured` gives, a line for each entry."""
        found = rounded(cls.measured(), cls.digits)
        lines = [f"{json.dumps(key)}: {_compact(each)}" for key, each in found.items()]
        replace_file(cls.folder / f"{cls.name}.json", "{\n" + ",\n".join(lines) + "\n}\n")

    @property
    def still_name(self) -> str:
        """The name of the file with the still of its start."""
        return self.name

    def fallback(self) -> str:
        """Return the figure without JavaScript: the still of the default state, with its question as caption."""
        still = (self.folder / "stills" / f"{self.still_name}.svg").read_text("utf-8")
        note = "With JavaScript, this figure is interactive; the picture shows its starting state."
        caption = f"<figcaption>{html.escape(self.question)} {note}</figcaption>"
        return f'<figure class="explorable">{still}{caption}</figure>'

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict] | None:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is not None:
            bundle[0][_VIEW_MIME]["explainer"] = {
                "fallback": self.fallback(),
                "height": self.height,
                "provenance": self.provenance.format(checkpoint=CHECKPOINT.name),
                "checkpoint": CHECKPOINT.name if "{checkpoint}" in self.provenance else "",
            }
        return bundle


def rounded(found: Any, digits: int) -> Any:
    """The same with so many digits after the point, at any depth."""
    if isinstance(found, float):
        return round(found, digits)
    if isinstance(found, dict):
        return {name: rounded(each, digits) for name, each in found.items()}
    return [rounded(each, digits) for each in found] if isinstance(found, (list, tuple)) else found


def _compact(found: Any) -> str:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))
