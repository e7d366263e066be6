"""Findings: statements about something that was trained or measured, with the numbers that decide them.

An identity holds in exact arithmetic and is an `assert`. What was trained or measured may come out otherwise on
another processor. `finding` says, beside the statement, the numbers and whether it holds where the page was made.
"""

import html
import json
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from IPython.display import display

from explainer.data.files import published_directory
from explainer.data.numbers import in_powers
from explainer.errors import ExplainerError

MIME = "application/vnd.explainer.finding+json"
RECORD = "findings.json"
"""File beside the stored studies with every finding of the published book."""

_HOLDS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SIGNS = {"<=": "≤", ">=": "≥"}


@dataclass(frozen=True)
class Finding:
    """A statement, and the comparison `value relation bound` that decides whether it holds.

    Raises ValueError unless both numbers are finite and the relation is one of <, <=, > and >=.
    """

    statement: str
    value: float
    relation: str
    bound: float

    def __post_init__(self):
        """Refuse what decides nothing."""
        for name in ("value", "bound"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if self.relation not in _HOLDS or not math.isfinite(self.value) or not math.isfinite(self.bound):
            raise ValueError(f"{self.statement!r}: {self.value} {self.relation} {self.bound} decides nothing.")

    @property
    def holds(self) -> bool:
        """Whether the value stands in the relation to the bound."""
        return _HOLDS[self.relation](self.value, self.bound)

    @property
    def margin(self) -> float:
        """Distance from the bound, in the unit of the value: positive on the side where the statement holds."""
        return self.value - self.bound if self.relation.startswith(">") else self.bound - self.value

    @property
    def comparison(self) -> str:
        """`0.023 < 0.5`, or `0.63, not < 0.5`."""
        relation = _SIGNS.get(self.relation, self.relation)
        return in_powers(f"{self.value:.3g}{' ' if self.holds else ', not '}{relation} {self.bound:.3g}")


def finding(statement: str, value: float, relation: str, bound: float) -> None:
    """Show a statement about a measurement, its numbers, and whether it holds here: value <, <=, > or >= bound.

    The statement is a sentence without its full stop. Value and bound have the same unit; both may be measured. Where
    the statement does not hold, the mark says what the numbers were on the machine of the published book. Nothing is
    raised then: `make book` goes on, lists what did not hold, and with STRICT=1 ends with an error. Raises
    ValueError where there is nothing to compare.
    """
    here = Finding(statement, value, relation, bound)
    display(_Shown(here, None if here.holds else _published().get(statement)))


@dataclass(frozen=True)
class _Shown:
    """A finding and the same one of the published book: a line of text, and HTML in which no statement is markup."""

    here: Finding
    there: Finding | None

    @property
    def mark(self) -> str:
        return "✓ Finding." if self.here.holds else "✗ Did not hold on this machine."

    @property
    def text(self) -> str:
        text = f"{self.here.statement}: {self.here.comparison}."
        if self.here.holds:
            return text
        there = self.there.comparison if self.there else "no number is stored"
        return f"{text} On the machine of the published book: {there}."

    def __repr__(self):
        return f"{self.mark} {self.text}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        kind = "xp-finding" if self.here.holds else "xp-finding xp-fails"
        page = f'<p class="{kind}"><strong>{self.mark}</strong> {html.escape(self.text)}</p>'
        return {"text/plain": repr(self), "text/html": page, MIME: asdict(self.here)}


def _published() -> dict[str, Finding]:
    """The findings of the published book, by their statements; none where no stored studies are installed."""
    try:
        record = json.loads((published_directory() / RECORD).read_text("utf-8"))
    except (ExplainerError, OSError, ValueError):
        return {}
    return {one["statement"]: Finding(**one) for chapter in record["chapters"].values() for one in chapter["findings"]}
