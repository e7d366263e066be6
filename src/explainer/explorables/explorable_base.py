"""What all explorables share: traits that refuse what cannot be drawn, and the widget with its module."""

import json
import math
import re
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

from explainer.data.assets import CHECKPOINT
from explainer.data.files import replace_file
from explainer.palette import palette_css

_FOLDER = Path(__file__).parent
LIMIT = 2.0  # the planes are drawn from -2 to 2
_VIEW_MIME = "application/vnd.jupyter.widget-view+json"
_IMPORT = re.compile(r'^import \{ (.+) \} from "(?:\./|#(\w+)/)(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)
_COMMENT = re.compile(r"^ *//.*\n", re.MULTILINE)


class Rows(traitlets.List):
    """From `fewest` to `most` points of the plane that is drawn, to +-`limits`; takes lists, arrays and tensors."""

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

    def validate(self, obj: traitlets.HasTraits, value: Any) -> list[list[float]]:
        """Return the value as lists of two floats, or raise TraitError."""
        rows, (x, y) = [[float(entry) for entry in row] for row in value], self.limits
        if not self.fewest <= len(rows) <= self.most:
            raise traitlets.TraitError(f"{self.name} has {len(rows)} rows; it must have {self.fewest} to {self.most}.")
        for row in rows:
            if len(row) != 2 or not (abs(row[0]) <= x and abs(row[1]) <= y):
                raise traitlets.TraitError(
                    f"{self.name} = {row}; it must be two numbers up to {x:g} and {y:g} in size."
                )
        return super().validate(obj, rows)


class Pair(Rows):
    """One such point."""

    def __init__(self, default: tuple[float, float]):
        """Take the default."""
        super().__init__(default, most=1)

    def validate(self, obj: traitlets.HasTraits, value: Any) -> list[float]:
        """Return the value as a list of two floats, or raise TraitError."""
        return super().validate(obj, [value])[0]


class Stored(traitlets.Dict):
    """What is stored of an explorable (`Explorable.stored`), unless it is given."""

    def default(self, obj: "Explorable | None" = None) -> dict[str, Any]:
        """Return what is stored of the class."""
        return {} if obj is None else obj.stored()


def _form(trait: traitlets.TraitType) -> dict[str, Any]:
    """The JSON schema of what a reader may put into a trait, and so an address; none of results and of the rest."""
    if isinstance(trait, Rows):
        pair = {"type": "array", "prefixItems": [{"minimum": -limit, "maximum": limit} for limit in trait.limits]}
        pair |= {"minItems": 2, "maxItems": 2}
        several = {"type": "array", "minItems": trait.fewest, "maxItems": trait.most, "items": pair}
        return pair if isinstance(trait, Pair) else several
    if isinstance(trait, traitlets.List):
        item = trait._trait and _form(trait._trait)
        lengths = {"minItems": trait._minlen, "maxItems": min(trait._maxlen, 99)}
        return {"type": "array", "items": item, **lengths} if item else {}
    if isinstance(trait, traitlets.Enum):
        return {"enum": list(trait.values or ())}
    if isinstance(trait, traitlets.Unicode):
        return {"type": "string", "maxLength": 200}
    if isinstance(trait, traitlets.Float | traitlets.Int):
        ends = {"minimum": trait.min, "maximum": trait.max}
        kind = "integer" if isinstance(trait, traitlets.Int) else "number"
        return {"type": kind} | {name: end for name, end in ends.items() if end is not None and abs(end) != math.inf}
    return {"enum": [False, True]} if isinstance(trait, traitlets.Bool) else {}


class Explorable(anywidget.AnyWidget):
    """A figure with state: subclasses name their module, the room they need and what they answer.

    All traits that a subclass declares are its state, which page and kernel share.
    """

    name: ClassVar[str]
    question: ClassVar[str]
    height: ClassVar[int]  # CSS pixels at the width of a page of the book
    folder: ClassVar[Path] = _FOLDER
    """Where its sources and what is stored of it are."""
    provenance: ClassVar[str] = "Live: computed by the page as you look."
    """Where its numbers come from: Live, Stored or Quoted, a colon and the details; {checkpoint} is the starter's."""
    digits: ClassVar[int] = 4
    """Digits after the point of what is stored: what is below them depends on the processor."""

    def __init_subclass__(cls, **options: Any):
        """Tag the traits."""
        super().__init_subclass__(**options)
        for name, trait in vars(cls).items():
            if isinstance(trait, traitlets.TraitType) and not name.startswith("_"):  # anywidget's own, added later
                trait.tag(sync=True, explorable=True)

    @property
    def _esm(self) -> str:
        return _one_module(self.folder / "js" / f"{self.name}.js")

    @property
    def _css(self) -> str:
        return palette_css() + (_FOLDER / "explorables.css").read_text("utf-8")

    def state(self) -> dict[str, Any]:
        """Return the traits that the reader can change, by name."""
        return {name: getattr(self, name) for name in self.trait_names(explorable=True)}

    @classmethod
    def stored(cls) -> dict[str, Any]:
        """What `measured` gave when the book was made."""
        return json.loads((cls.folder / f"{cls.name}.json").read_text("utf-8"))

    @classmethod
    def store(cls) -> None:
        """Write what the subclass has `measured`, which no page can compute, a line for each entry."""
        found = rounded_to(cls.measured(), cls.digits)
        lines = [
            f"{json.dumps(key)}: {json.dumps(each, ensure_ascii=False, separators=(',', ':'))}"
            for key, each in found.items()
        ]
        replace_file(cls.folder / f"{cls.name}.json", "{\n" + ",\n".join(lines) + "\n}\n")

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict] | None:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is not None:
            bundle[0][_VIEW_MIME]["explainer"] = {
                "name": self.name,
                "traits": {
                    name: form for name, trait in self.traits(explorable=True).items() if (form := _form(trait))
                },
                "caption": self.question,
                "height": self.height,
                "provenance": self.provenance.format(checkpoint=CHECKPOINT.name),
                "checkpoint": CHECKPOINT.name if "{checkpoint}" in self.provenance else "",
            }
        return bundle


def rounded_to(found: Any, digits: int) -> Any:
    """The same with so many digits after the point, at any depth."""
    if isinstance(found, float):
        return round(found, digits)
    if isinstance(found, dict):
        return {name: rounded_to(each, digits) for name, each in found.items()}
    return [rounded_to(each, digits) for each in found] if isinstance(found, (list, tuple)) else found


def _one_module(source: Path) -> str:
    """A JavaScript source and all that it imports as one module: one that travels in a notebook can import nothing.

    Each imported source becomes a function, called once, that returns what others import of it; it stands before those.
    Sources import by lines `import { a, b } from "./other.js";` (of another room `"#room/other.js"`), and export what
    they declare. Lines of comment stay behind.
    """
    texts: dict[Path, str] = {}
    wanted: dict[Path, dict[str, None]] = {}

    def read(file: Path) -> None:
        def imported(line: re.Match) -> str:
            names, room, name = line.groups()
            other = (_FOLDER.parent / room / "js" if room else file.parent) / f"{name}.js"
            if other not in texts:
                read(other)
            wanted.setdefault(other, {}).update(dict.fromkeys(names.split(", ")))
            return f"const {{ {names} }} = ${name};"

        texts[file] = _EXPORT.sub("", _IMPORT.sub(imported, _COMMENT.sub("", file.read_text("utf-8"))))

    read(source)
    parts = [
        f"const ${file.stem} = (() => {{\n{texts[file]}return {{ {', '.join(names)} }};\n}})();\n"
        for file, names in ((file, wanted[file]) for file in texts if file != source)
    ]
    return "".join(parts) + texts[source]
